//! The lookup of old messages. Used by `dialect`.

use http::{HeaderMap, Method};

use super::{OverlapGroup, RouteTable, TERMS};
use crate::route::definition::Route;
use crate::route::frame::frame_method;
use crate::route::old::OldRoutes;
use crate::route::overlaps::has_literals;
use crate::route::path::PathMatch;
use crate::route::segments::Segments;
use crate::translate::{RestHead, TranslateContext, read_body, read_rest};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::PatternReader;

impl RouteTable {
    /// Returns which routes have old messages.
    #[must_use]
    pub fn old(&self) -> OldRoutes {
        self.old
    }

    /// Returns the routes of a path and method if some of them have old messages.
    #[must_use]
    pub fn old_at(&self, method: &Method, segments: &Segments<'_>) -> Option<&OverlapGroup> {
        if !self.old.any {
            return None;
        }
        let group = match self.http.find(segments, method) {
            PathMatch::Routes(group) => group,
            PathMatch::OtherMethods(_) | PathMatch::Nothing => return None,
        };
        let mut routes = group.routes().iter();
        routes
            .any(|route| self.route(*route).is_old())
            .then_some(group)
    }

    /// Returns true when a message has the literals of an old route of a group.
    #[must_use]
    pub fn resembles_old(&self, group: &OverlapGroup, message: &Json) -> bool {
        let mut routes = group.routes().iter().map(|route| self.route(*route));
        routes.any(|route| {
            let pattern = route.rest_call.body.as_ref().filter(|_| route.is_old());
            pattern.is_some_and(|pattern| has_literals(pattern, Some(message)))
        })
    }

    /// Returns true when a frame with a version of JSON-RPC belongs to the old dialect: if it has `2.0`, a frame must read
    /// all of it.
    #[must_use]
    pub fn reads_versioned_frame(&self, message: &Json) -> bool {
        let segments = Segments::split("/");
        let Some(group) = self.entered_by(&segments, &frame_method()) else {
            return false;
        };
        if !has_version(message) {
            return self.resembles_old(group, message);
        }
        let head = RestHead {
            segments: &segments,
            query: None,
            headers: &HeaderMap::new(),
        };
        self.reads_old(group, head, message)
    }

    /// Returns true when an old route of a group reads a message, and knows all of its members.
    #[must_use]
    pub fn reads_old(&self, group: &OverlapGroup, head: RestHead<'_>, message: &Json) -> bool {
        let mut routes = group.routes().iter().map(|route| self.route(*route));
        routes.any(|route| {
            let read = || route.read_message(head, Some(message), TERMS);
            route.has_version() && read().is_some_and(|reading| reading.dropped == 0)
        })
    }
}

/// Returns true when a message has the version of JSON-RPC 2.0.
#[must_use]
pub fn has_version(message: &Json) -> bool {
    let version = message.member("jsonrpc");
    version.is_some_and(|version| version.as_bytes() == b"\"2.0\"")
}

impl Route {
    /// Reads a REST call as a whole; `None` if it does not fit.
    #[must_use]
    pub fn read_message(
        &self,
        head: RestHead<'_>,
        body: Option<&Json>,
        context: TranslateContext,
    ) -> Option<PatternReader> {
        let mut reading = read_rest(self, head, context).ok()?;
        read_body(self, body, &mut reading).ok()?;
        reading.settle().ok()?;
        Some(reading)
    }
}
