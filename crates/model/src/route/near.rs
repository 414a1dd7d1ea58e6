//! Paths that match no route, but that another program may take for the path of one.
//!
//! A path is near a route if a program that normalizes it gets the path of the route: by removing empty and dot
//! segments, or by removing or adding a slash at the end. A path is also near if it would match with an empty hole.
//!
//! Used by `rejections`, `route` and `routing`.

use http::Method;

use super::path::{PathMatch, PathTree};
use super::segments::{AmbiguousPath, Segments};

/// The routes near a path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NearRoutes {
    /// The routes by index, each with the difference of the path.
    pub routes: Vec<(usize, Likeness)>,
    /// The methods of routes with exactly this path.
    pub methods: Vec<Method>,
}

/// The difference of a path from that of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// The path matches without this irregularity.
    Without(AmbiguousPath),
    /// The path matches with a slash at its end.
    WithSlash,
    /// The path matches if a hole may be empty.
    EmptyHole,
}

/// A search in both trees of paths, for one method.
pub(super) struct NearSearch<'t, 'm> {
    /// The routes whose paths do not end in a slash.
    pub(super) plain: &'t PathTree,
    /// The routes whose paths end in a slash.
    pub(super) slashed: &'t PathTree,
    pub(super) method: &'m Method,
}

impl NearSearch<'_, '_> {
    /// Returns the routes near a path that matches none.
    pub(super) fn of(&self, segments: &Segments<'_>) -> Vec<(usize, Likeness)> {
        let mut found = Vec::new();
        match segments.ambiguity() {
            Some(why) => self.odd(segments, why, &mut found),
            None => self.even(segments, &mut found),
        }
        found
    }

    /// Handles a path without empty and dot segments.
    fn even(&self, segments: &Segments<'_>, found: &mut Vec<(usize, Likeness)>) {
        let path = segments.path();
        if !self.slashed.is_empty() {
            self.add(self.slashed, path, Likeness::WithSlash, found);
        }
        let begins = |path: &str| {
            path.rsplit('/')
                .next()
                .is_some_and(|last| last.starts_with(':'))
        };
        if self.plain.has_texts() || self.plain.has_verbs() && path.is_some_and(begins) {
            self.add(self.plain, path, Likeness::EmptyHole, found);
        }
    }

    fn odd(&self, segments: &Segments<'_>, why: AmbiguousPath, found: &mut Vec<(usize, Likeness)>) {
        let (without, empty) = (Likeness::Without(why), Likeness::EmptyHole);
        let tidied = segments.tidied();
        let tidy = Segments::split(&tidied);
        self.add(self.plain, tidy.path(), without, found);
        self.add(self.slashed, tidy.path(), without, found);
        // Tries the path as received, and after dot removal by RFC 3986 §5.2.4: `/items/7/..` is `/items/`.
        let undotted = segments.undotted();
        let undotted = Segments::split(&undotted);
        for path in [segments.path(), undotted.path()] {
            self.add(self.plain, path, empty, found);
            let before = path.and_then(|path| path.strip_suffix('/'));
            if before.is_some() {
                self.add(self.slashed, before, empty, found);
            }
        }
        if undotted.ends_in_slash() {
            let slashed = format!("{tidied}/");
            let slashed = Segments::split(&slashed);
            self.add(self.plain, slashed.path(), empty, found);
        }
    }

    fn add(
        &self,
        tree: &PathTree,
        path: Option<&str>,
        likeness: Likeness,
        found: &mut Vec<(usize, Likeness)>,
    ) {
        let PathMatch::Routes(group) = tree.find_with(path, self.method, true) else {
            return;
        };
        for route in group.routes() {
            if found.iter().all(|(known, _)| known != route) {
                found.push((*route, likeness));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::route::{RestSelection, RouteSource, RouteTable, parse_route};

    fn table(rows: &[&str]) -> RouteTable {
        let routes = rows.iter().enumerate().map(|(at, rest)| {
            let source = RouteSource {
                name: (*rest).to_owned(),
                rest: (*rest).to_owned(),
                rpc: format!("m{at}"),
                ..RouteSource::default()
            };
            parse_route(source).unwrap()
        });
        RouteTable::build(routes.collect()).unwrap()
    }

    /// The route that has a path, or the routes that it is near to.
    fn found(table: &RouteTable, request: &str) -> Vec<String> {
        let (method, path) = request.split_once(' ').unwrap();
        let segments = Segments::split(path);
        let method = method.parse().unwrap();
        let name = |route: usize| table.route(route).name.clone();
        match table.select_rest(&method, &segments, None, &HeaderMap::new()) {
            RestSelection::Route(route) => vec![name(route)],
            RestSelection::Near(near) => {
                let near = near.routes.iter();
                near.map(|(route, like)| format!("{like:?} {}", name(*route)))
                    .collect()
            }
            RestSelection::ByBody(_)
            | RestSelection::OtherMethods(_)
            | RestSelection::OtherLiterals
            | RestSelection::Unrouted => Vec::new(),
        }
    }

    #[test]
    fn a_slash_at_the_end_makes_another_path() {
        let table = table(&[
            "GET /items",
            "GET /items/",
            "GET /items/{id}",
            "GET /items/{id}/",
            "POST /other/",
            "GET /files/{path=**}",
        ]);
        for (request, route) in [
            ("GET /items", "GET /items"),
            ("GET /items/", "GET /items/"),
            ("HEAD /items/", "GET /items/"),
            ("GET /%69tems/", "GET /items/"),
            ("GET /items/7", "GET /items/{id}"),
            ("GET /items/7/", "GET /items/{id}/"),
            ("POST /other/", "POST /other/"),
            ("POST /other", "WithSlash POST /other/"),
            (
                "GET /files/a/",
                "Without(TrailingSlash) GET /files/{path=**}",
            ),
        ] {
            assert_eq!(found(&table, request)[..1], [route], "{request}");
        }
        for request in ["GET /other", "GET /other/", "PUT /items/", "GET /items/7/8"] {
            assert_eq!(found(&table, request), [""; 0], "{request}");
        }
    }

    #[test]
    fn a_path_that_another_program_may_read_as_that_of_a_route_is_near_it() {
        let table = table(&[
            "GET /things",
            "DELETE /things/{id}",
            "POST /things/{id}:stop",
            "GET /things/{id}/parts",
            "GET /slashed/{id}/",
            "GET /blocks/{id}.json",
        ]);
        for (request, near) in [
            ("GET /things/", "Without(TrailingSlash) GET /things"),
            ("GET //things", "Without(EmptySegment) GET /things"),
            ("GET /x/../things/", "Without(DotSegment) GET /things"),
            ("DELETE /things/", "EmptyHole DELETE /things/{id}"),
            ("DELETE //things/", "EmptyHole DELETE /things/{id}"),
            ("DELETE /things//", "EmptyHole DELETE /things/{id}"),
            ("DELETE /things/.", "EmptyHole DELETE /things/{id}"),
            ("DELETE /things/7/%2E.", "EmptyHole DELETE /things/{id}"),
            ("POST /things/:stop", "EmptyHole POST /things/{id}:stop"),
            (
                "POST /.//things/:stop",
                "Without(DotSegment) POST /things/{id}:stop",
            ),
            ("GET /things//parts", "EmptyHole GET /things/{id}/parts"),
            ("GET /slashed/7", "WithSlash GET /slashed/{id}/"),
            ("GET /blocks/.json", "EmptyHole GET /blocks/{id}.json"),
            (
                "GET /slashed//7",
                "Without(EmptySegment) GET /slashed/{id}/",
            ),
            ("GET /slashed//", "EmptyHole GET /slashed/{id}/"),
        ] {
            assert_eq!(found(&table, request), [near], "{request}");
        }
        for request in ["DELETE /things", "PUT /things/", "GET /slashed/", "GET /"] {
            assert_eq!(found(&table, request), [""; 0], "{request}");
        }
    }
}
