//! The order of the routes of a group: declared, then by path, then by specificity.
//!
//! Used by `route::table`.

use std::collections::{HashMap, HashSet};

use super::definition::Route;
use super::order::DeclaredOrder;
use super::overlaps::{
    OverlapGroup, TableError, discriminate, holds_literal, make_rivals, may_be_confused, pairs,
    sort,
};
use super::path_order::{PathOrder, common_path, path_contains, path_order};
use super::specificity::{heads_share, refines, share};
use super::template::SegmentPattern;
use dualgauge_patterns::side::Side;

/// The arrangement of groups of one table.
pub(super) struct Arrangement<'a> {
    pub(super) routes: &'a mut [Route],
    pub(super) order: &'a DeclaredOrder,
    pub(super) errors: &'a mut Vec<TableError>,
}

/// The relations between the routes of a group.
#[derive(Debug, Default)]
struct Relations {
    /// The number of routes that each one is more specific than.
    refined: HashMap<usize, usize>,
    /// Pairs of which the first is tried before the second.
    before: HashSet<(usize, usize)>,
    /// Pairs that no literal distinguishes.
    rivals: Vec<(usize, usize)>,
    /// True if the body distinguishes two routes.
    needs_body: bool,
}

impl Arrangement<'_> {
    /// Reports the routes whose paths overlap only in part: text beside holes, as in `/{id}.json` and `/tx{id}`.
    pub(super) fn check_paths(&mut self, among: &[usize]) {
        let has_text = |route: &&usize| {
            let mut segments = self.routes[**route].rest_call.path.segments.iter();
            segments.any(|segment| matches!(segment, SegmentPattern::Text(_)))
        };
        let with_text: Vec<usize> = among.iter().filter(has_text).copied().collect();
        for (at, one) in with_text.iter().enumerate() {
            for other in &with_text[at + 1..] {
                let (first, second) = (&self.routes[*one], &self.routes[*other]);
                let (path, other_path) = (&first.rest_call.path, &second.rest_call.path);
                if first.method != second.method
                    || self.order.relates(*one, *other)
                    || path_order(path, other_path) != PathOrder::Undecided
                {
                    continue;
                }
                let what = format!(
                    "shares paths such as `{}` with the route `{}`, and neither is more specific: order them by `after`, change the text beside a hole, set `from = \"rest\"` or `from = \"rpc\"` on one of them, or remove one",
                    common_path(path, other_path),
                    first.name
                );
                self.errors.push(TableError {
                    route: *other,
                    key: "rest",
                    what,
                });
            }
        }
    }

    /// Orders the routes of a group, and reports those that cannot be distinguished.
    pub(super) fn arrange(&mut self, group: &mut OverlapGroup, side: Side) {
        let has_literal = |route: &usize| {
            let route = &self.routes[*route];
            let body = route.rest_call.body.as_ref();
            // An old message may be one of a batch.
            body.is_some_and(|body| route.is_old() || holds_literal(body))
        };
        if side == Side::Rest && group.routes.iter().any(has_literal) {
            group.needs_body = true;
        }
        if let [only] = group.routes[..] {
            let asks = group.needs_body || self.routes[only].rest_call.has_literal();
            group.only = (!asks).then_some(only);
        }
        if group.routes.len() < 2 {
            return;
        }
        if side == Side::Rpc {
            discriminate(group, self.routes);
        }
        let mut relations = Relations::default();
        for (one, other) in pairs(group) {
            self.relate(one, other, side, &mut relations);
        }
        group.needs_body |= relations.needs_body;
        let rank = |index: &usize| relations.refined.get(index).copied().unwrap_or(0);
        let mut ranked = group.routes.clone();
        ranked.sort_by(|one, other| {
            let names = self.routes[*one].name.cmp(&self.routes[*other].name);
            rank(other).cmp(&rank(one)).then(names)
        });
        let ordered = self.in_order(ranked, &relations.before);
        sort(group, ordered);
        make_rivals(&relations.rivals, self.routes, side);
    }

    /// Determines the relation of two routes.
    fn relate(&mut self, one: usize, other: usize, side: Side, relations: &mut Relations) {
        let (first, second) = (&self.routes[one], &self.routes[other]);
        let by_path = match side {
            Side::Rest => path_order(&first.rest_call.path, &second.rest_call.path),
            Side::Rpc => PathOrder::Same,
        };
        if by_path == PathOrder::Apart {
            return;
        }
        let is_confused = may_be_confused(first, second, side);
        if side == Side::Rest && !heads_share(first, second) {
            if is_confused && by_path == PathOrder::Same {
                relations.rivals.push((one, other));
            }
            return;
        }
        if side == Side::Rest && first.rest_call.format != second.rest_call.format {
            let error = other_format(self.routes, one.min(other), one.max(other));
            return self.errors.push(error);
        }
        // Different bodies, or different treatment of unknown members, distinguish routes as well.
        let takes = |route: &Route| (route.rest_call.body.clone(), route.extra);
        if side == Side::Rest && takes(first) != takes(second) {
            relations.needs_body = true;
        }
        if is_confused {
            relations.rivals.push((one, other));
        }
        if self.order.relates(one, other) {
            let is_first = self.order.is_before(one, other);
            let (front, back) = if is_first { (one, other) } else { (other, one) };
            relations.before.insert((front, back));
            return self.check_reached(front, back, side);
        }
        match by_path {
            PathOrder::First => drop(relations.before.insert((one, other))),
            PathOrder::Second => drop(relations.before.insert((other, one))),
            // `check_paths` reports them.
            PathOrder::Undecided | PathOrder::Apart => {}
            PathOrder::Same => self.compare(one, other, side, relations),
        }
    }

    /// Compares two routes of one path or method by specificity.
    fn compare(&mut self, one: usize, other: usize, side: Side, relations: &mut Relations) {
        let (first, second) = (&self.routes[one], &self.routes[other]);
        let (down, up) = (refines(first, second, side), refines(second, first, side));
        *relations.refined.entry(one).or_default() += usize::from(down);
        *relations.refined.entry(other).or_default() += usize::from(up);
        if down && !up {
            relations.before.insert((one, other));
        }
        if up && !down {
            relations.before.insert((other, one));
        }
        if share(first, second, side) && down == up {
            // Of two routes that fit the same calls, the second one would get none.
            let order = if down { "" } else { "order them by `after`, " };
            let what = format!(
                "shares calls with the route `{}`, and neither is more specific: name a query parameter or a literal that distinguishes them, {order}set `from = \"rest\"` or `from = \"rpc\"` on one of them, or remove one",
                self.routes[one.min(other)].name
            );
            self.errors.push(TableError {
                route: one.max(other),
                key: side.as_str(),
                what,
            });
        }
    }

    /// Reports a route that no call of a side reaches, because the one in front takes all of them.
    fn check_reached(&mut self, front: usize, back: usize, side: Side) {
        let (first, second) = (&self.routes[front], &self.routes[back]);
        let is_within =
            side == Side::Rpc || path_contains(&first.rest_call.path, &second.rest_call.path);
        if is_within && refines(second, first, side) {
            let what = format!(
                "every {side} call of this route fits the route `{}`, which comes first: remove it from `after`, or set `from = \"{}\"` on this route",
                first.name,
                side.other()
            );
            let error = TableError {
                route: back,
                key: "after",
                what,
            };
            // Both may be in two groups.
            if !self.errors.contains(&error) {
                self.errors.push(error);
            }
        }
    }

    /// Returns ranked routes in an order that respects all pairs.
    fn in_order(&mut self, ranked: Vec<usize>, before: &HashSet<(usize, usize)>) -> Vec<usize> {
        if self.order.pairs().next().is_none() {
            return ranked;
        }
        let mut ordered = Vec::with_capacity(ranked.len());
        let mut waiting = ranked;
        while !waiting.is_empty() {
            let is_free = |route: &usize| {
                waiting
                    .iter()
                    .all(|other| !before.contains(&(*other, *route)))
            };
            let next = waiting.iter().position(is_free).unwrap_or_else(|| {
                let names = waiting.iter().map(|route| &*self.routes[*route].name);
                let what = format!(
                    "the order contradicts which of these routes are more specific: `{}`",
                    names.collect::<Vec<_>>().join("`, `")
                );
                self.errors.push(TableError {
                    route: waiting[0],
                    key: "after",
                    what,
                });
                0
            });
            ordered.push(waiting.remove(next));
        }
        ordered
    }
}

fn other_format(routes: &[Route], first: usize, second: usize) -> TableError {
    let what = format!(
        "shares calls with the route `{}`, which has another `body_format`; give both the same, or name a literal in the query of each",
        routes[first].name
    );
    TableError {
        route: second,
        key: "body_format",
        what,
    }
}
