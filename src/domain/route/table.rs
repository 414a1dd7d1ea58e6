//! The table of all routes: which one a call belongs to.

use std::collections::HashMap;

use http::Method;

use super::path::{Found, Tree};
use super::specificity::{refines, share, slots};
use super::url::{self, Query};
use super::{PathError, Route, Segments};
use crate::domain::json::{Json, Member};
use crate::domain::side::Side;

/// Why routes cannot stand in one table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct TableError {
    /// The route that is refused, by its place in the list.
    pub route: usize,
    /// The key that is wrong.
    pub key: &'static str,
    /// Why, naming the other route.
    pub what: String,
}

/// All routes, compiled.
#[derive(Debug, Default)]
pub struct RouteTable {
    routes: Vec<Route>,
    tree: Tree,
    by_rpc: HashMap<String, Vec<usize>>,
}

/// What the table says of a REST call.
#[derive(Debug)]
pub enum RestSelection {
    /// The route of the call, or the nearest one, which will say what does not fit.
    Route(usize),
    /// The path has other methods.
    OtherMethods(Vec<Method>),
    /// No route has this path.
    Unrouted,
    /// The path names a route only after normalising.
    Unsafe(Unsafe),
}

/// A path that two programs may read in two ways, one of which is a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsafe {
    /// The route that it names for a program that tidies up.
    pub route: usize,
    /// What is irregular.
    pub why: PathError,
}

impl RouteTable {
    /// Compiles the table.
    ///
    /// # Errors
    /// Every pair of routes that cannot be told apart, and every name given twice.
    pub fn build(mut routes: Vec<Route>) -> Result<RouteTable, Vec<TableError>> {
        let mut errors = duplicate_names(&routes);
        let mut tree = Tree::default();
        let mut by_rpc: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, route) in routes.iter().enumerate() {
            tree.insert(route, index);
            by_rpc.entry(route.rpc.clone()).or_default().push(index);
        }
        for group in tree.groups_mut() {
            arrange(group, &mut routes, Side::Rest, &mut errors);
        }
        for group in by_rpc.values_mut() {
            arrange(group, &mut routes, Side::Rpc, &mut errors);
        }
        if errors.is_empty() {
            Ok(RouteTable {
                routes,
                tree,
                by_rpc,
            })
        } else {
            Err(errors)
        }
    }

    /// All routes, in the order in which they were declared.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// The route at a place that a selection has named.
    #[must_use]
    pub fn route(&self, index: usize) -> &Route {
        &self.routes[index]
    }

    /// Finds the route of a REST call.
    #[must_use]
    pub fn select_rest(
        &self,
        method: &Method,
        segments: &Segments<'_>,
        query: Option<&str>,
    ) -> RestSelection {
        if let Some(why) = segments.irregular() {
            return match self.tree.find(&segments.tidied(), method) {
                Found::Routes([route, ..]) => RestSelection::Unsafe(Unsafe { route: *route, why }),
                Found::Routes([]) | Found::OtherMethods(_) | Found::Nothing => {
                    RestSelection::Unrouted
                }
            };
        }
        match self.tree.find(segments, method) {
            Found::Routes([route]) => RestSelection::Route(*route),
            Found::Routes(group) => RestSelection::Route(self.among_rest(group, segments, query)),
            Found::OtherMethods(methods) => RestSelection::OtherMethods(methods),
            Found::Nothing => RestSelection::Unrouted,
        }
    }

    /// Finds the route of an RPC call; the nearest one where none fits.
    #[must_use]
    pub fn select_rpc(&self, method: &str, params: Option<&Json>) -> Option<usize> {
        match self.by_rpc.get(method)?.as_slice() {
            [route] => Some(*route),
            group => {
                let text = params.map_or(&b""[..], Json::as_bytes);
                let members = params
                    .and_then(|params| params.open().ok())
                    .unwrap_or_default();
                let fits =
                    |route: &&usize| url::write(&self.routes[**route], text, &members).is_ok();
                group
                    .iter()
                    .find(fits)
                    .or_else(|| self.nearest_rpc(group, &members))
                    .copied()
            }
        }
    }

    /// Among routes of one path and method: the most specific that fits, else the nearest.
    fn among_rest(&self, group: &[usize], segments: &Segments<'_>, query: Option<&str>) -> usize {
        let Ok(query) = Query::parse(query) else {
            return group[0];
        };
        let fits = |route: &&usize| url::read(&self.routes[**route], segments, &query).is_ok();
        let named = |route: &&usize| {
            let items = &self.routes[**route].query;
            items.iter().filter(|item| query.has(&item.key)).count()
        };
        // `max_by_key` takes the last of equals, and the first in the order of the group is wanted.
        let nearest = || group.iter().rev().max_by_key(named);
        group
            .iter()
            .find(fits)
            .or_else(nearest)
            .copied()
            .unwrap_or(group[0])
    }

    fn nearest_rpc<'g>(&self, group: &'g [usize], members: &[Member]) -> Option<&'g usize> {
        let named = |route: &&usize| {
            let holes = self.routes[**route].holes();
            holes
                .filter(|hole| members.iter().any(|member| member.name == hole.name))
                .count()
        };
        group.iter().rev().max_by_key(named)
    }
}

fn duplicate_names(routes: &[Route]) -> Vec<TableError> {
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut errors = Vec::new();
    for (index, route) in routes.iter().enumerate() {
        if seen.insert(&route.name, index).is_some() {
            let what = format!("the name `{}` is given to two routes", route.name);
            errors.push(TableError {
                route: index,
                key: "name",
                what,
            });
        }
    }
    errors
}

/// Makes siblings of the routes that one side cannot tell apart by path or method, most specific first.
fn arrange(group: &mut [usize], routes: &mut [Route], side: Side, errors: &mut Vec<TableError>) {
    if group.len() < 2 {
        return;
    }
    let seen: HashMap<usize, _> = group
        .iter()
        .map(|index| (*index, slots(&routes[*index], side)))
        .collect();
    for (place, one) in group.iter().enumerate() {
        for other in &group[place + 1..] {
            let (first, second) = (&seen[one], &seen[other]);
            let told_apart = refines(first, second, side) != refines(second, first, side);
            if share(first, second, side) && !told_apart {
                errors.push(overlap(
                    routes,
                    (*one).min(*other),
                    (*one).max(*other),
                    side,
                ));
            }
        }
    }
    let refined = |index: &usize| group_count(&seen, *index, side);
    let mut order: Vec<(usize, usize)> =
        group.iter().map(|index| (refined(index), *index)).collect();
    order.sort_by(|(one, a), (other, b)| {
        other
            .cmp(one)
            .then_with(|| routes[*a].name.cmp(&routes[*b].name))
    });
    for (place, (_, index)) in order.into_iter().enumerate() {
        group[place] = index;
    }
    make_siblings(group, routes, side);
}

/// How many of its siblings a route refines.
fn group_count(
    seen: &HashMap<usize, Vec<super::specificity::Slot>>,
    index: usize,
    side: Side,
) -> usize {
    seen.values()
        .filter(|other| refines(&seen[&index], other, side))
        .count()
}

fn overlap(routes: &[Route], first: usize, second: usize, side: Side) -> TableError {
    let what = format!(
        "shares calls with the route `{}`, and neither is more specific: name a query parameter that tells them apart, or remove one",
        routes[first].name
    );
    TableError {
        route: second,
        key: side.as_str(),
        what,
    }
}

fn make_siblings(group: &[usize], routes: &mut [Route], side: Side) {
    let names = |route: &Route| -> Vec<String> {
        match side {
            Side::Rest => route.query.iter().map(|item| item.key.clone()).collect(),
            Side::Rpc => route.holes().map(|hole| hole.name.clone()).collect(),
        }
    };
    let all: Vec<String> = group
        .iter()
        .flat_map(|index| names(&routes[*index]))
        .collect();
    for index in group {
        let own = names(&routes[*index]);
        let mut foreign: Vec<String> = all
            .iter()
            .filter(|name| !own.contains(name))
            .cloned()
            .collect();
        foreign.sort();
        foreign.dedup();
        match side {
            Side::Rest => routes[*index].foreign.query = foreign,
            Side::Rpc => routes[*index].foreign.members = foreign,
        }
    }
}
