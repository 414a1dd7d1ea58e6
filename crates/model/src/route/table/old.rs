//! The lookup of old messages. Used by `dialect`.

use http::Method;

use super::{OverlapGroup, RouteTable, TERMS};
use crate::route::old::OldRoutes;
use crate::route::overlaps::has_literals;
use crate::route::path::PathMatch;
use crate::route::segments::Segments;
use crate::translate::{RestHead, read_body, read_rest};
use dualgauge_patterns::json::Json;

impl RouteTable {
    /// Returns which routes have old messages.
    #[must_use]
    pub fn old(&self) -> OldRoutes {
        self.old
    }

    /// Returns the routes of a path and method if some of them have old messages.
    #[must_use]
    pub fn old_at(&self, method: &Method, segments: &Segments<'_>) -> Option<&OverlapGroup> {
        let group = match self.http.find(segments, method) {
            PathMatch::Routes(group) if self.old.any => group,
            PathMatch::Routes(_) | PathMatch::OtherMethods(_) | PathMatch::Nothing => return None,
        };
        let mut routes = group.routes().iter();
        routes
            .any(|route| self.route(*route).is_old())
            .then_some(group)
    }

    /// Returns true when a message has the literals of an old route of a group.
    #[must_use]
    pub fn resembles_old(&self, group: &OverlapGroup, message: &Json) -> bool {
        let mut routes = group.routes().iter();
        routes.any(|route| {
            let pattern = self.route(*route).rest_call.body.as_ref();
            pattern.is_some_and(|pattern| has_literals(pattern, Some(message)))
        })
    }

    /// Returns true when an old route of a group reads a message, and knows all of its members.
    #[must_use]
    pub fn reads_old(&self, group: &OverlapGroup, head: RestHead<'_>, message: &Json) -> bool {
        let mut routes = group.routes().iter().map(|route| self.route(*route));
        routes.any(|route| {
            let reads = || {
                let mut reading = read_rest(route, head, TERMS).ok()?;
                read_body(route, Some(message), &mut reading).ok()?;
                reading.settle().ok()?;
                Some(reading.dropped == 0)
            };
            route.has_version() && reads() == Some(true)
        })
    }
}
