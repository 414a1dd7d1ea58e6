//! The deprecations of a plan. Used by `plan`.

use http::HeaderMap;

use super::deprecated::Deprecated;
use super::prefixes::Prefixes;
use dualgauge_patterns::side::Side;

/// The deprecations of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifecycle {
    /// The deprecation of each route, by its index in the table.
    pub routes: Vec<Option<Deprecated>>,
    /// The path prefixes under which calls of no route are counted.
    pub prefixes: Prefixes,
}

impl Lifecycle {
    /// Returns the deprecation announced to callers of one side of a route.
    #[must_use]
    pub fn of(&self, route: Option<usize>, side: Side) -> Option<&Deprecated> {
        let deprecated = self.routes.get(route?)?.as_ref()?;
        (deprecated.side() == side).then_some(deprecated)
    }

    /// Adds the deprecation headers to an answer to a call of a route from a side.
    pub fn announce(&self, route: Option<usize>, side: Side, headers: &mut HeaderMap) {
        if let Some(deprecated) = self.of(route, side) {
            deprecated.announce(headers);
        }
    }
}
