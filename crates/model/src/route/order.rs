//! The order that routes declare with `after`: where calls fit both, the other route takes them.
//!
//! The order is transitive. Routes that it relates may be found by different paths or methods. Then each is also in the
//! group of the other, so that a call that fits only one of them finds that one.
//!
//! Used by `route::overlaps` and `route::table`.

use std::collections::HashMap;

use super::definition::Route;
use super::overlaps::TableError;
use crate::precedence::{cycle, reached};

/// The declared order of all routes.
#[derive(Debug, Default)]
pub(super) struct DeclaredOrder {
    /// The routes that come before each route, directly or not; empty if no route declares an order.
    fronts: Vec<Vec<usize>>,
}

impl DeclaredOrder {
    /// Resolves `after` of all routes, and reports unknown names and cycles.
    pub(super) fn new(routes: &[Route], errors: &mut Vec<TableError>) -> DeclaredOrder {
        if routes.iter().all(|route| route.after.is_empty()) {
            return DeclaredOrder::default();
        }
        let named = routes.iter().enumerate();
        let named: HashMap<&str, usize> =
            named.map(|(index, route)| (&*route.name, index)).collect();
        let direct: Vec<Vec<usize>> = routes
            .iter()
            .enumerate()
            .map(|(index, route)| {
                let known = |name: &String| match named.get(name.as_str()) {
                    Some(front) => Some(*front),
                    None => {
                        errors.push(fault(index, format!("no route has the name `{name}`")));
                        None
                    }
                };
                route.after.iter().filter_map(known).collect()
            })
            .collect();
        let fronts = (0..routes.len()).map(|route| reached(&direct, route));
        let mut fronts: Vec<Vec<usize>> = fronts.collect();
        let in_cycle = |route: &usize| fronts[*route].contains(route);
        let cyclic: Vec<usize> = (0..routes.len()).filter(in_cycle).collect();
        for index in &cyclic {
            // Each cycle is reported once, at its first route.
            let is_first = |other: &usize| other >= index || !cyclic.contains(other);
            if fronts[*index].iter().all(is_first) {
                let chain = cycle(&direct, *index);
                let names: Vec<&str> = chain.iter().map(|route| &*routes[*route].name).collect();
                let what = format!("the order has a cycle: `{}`", names.join("` after `"));
                errors.push(fault(*index, what));
            }
        }
        // A cycle is no order.
        for route in cyclic {
            fronts[route].clear();
        }
        DeclaredOrder { fronts }
    }

    /// Returns true when a route comes before another one.
    pub(super) fn is_before(&self, front: usize, back: usize) -> bool {
        let fronts = self.fronts.get(back);
        fronts.is_some_and(|fronts| fronts.contains(&front))
    }

    /// Returns the routes that come before a route.
    pub(super) fn fronts(&self, route: usize) -> &[usize] {
        self.fronts.get(route).map_or(&[], Vec::as_slice)
    }

    /// Returns true when the order of two routes is declared.
    pub(super) fn relates(&self, one: usize, other: usize) -> bool {
        self.is_before(one, other) || self.is_before(other, one)
    }

    /// Returns all pairs, the route in front first.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        let backs = self.fronts.iter().enumerate();
        backs.flat_map(|(back, fronts)| fronts.iter().map(move |front| (*front, back)))
    }
}

fn fault(route: usize, what: String) -> TableError {
    TableError {
        route,
        key: "after",
        what,
    }
}
