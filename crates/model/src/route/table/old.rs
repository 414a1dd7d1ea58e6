//! The lookup of old messages, over HTTP and on sockets. Used by `dialect`, `explain`, `frame` and `gateway`.

use std::sync::LazyLock;

use http::{HeaderMap, Method};

use super::{OverlapGroup, RouteTable, TERMS};
use crate::route::definition::Route;
use crate::route::old::{OldRoutes, frame_method};
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

    /// Returns true when a message belongs to an old route of a group: one with the version of JSON-RPC 2.0 if a route
    /// reads it and knows all of its members, any other if it has the literals of a route.
    #[must_use]
    pub fn is_old(&self, group: &OverlapGroup, head: RestHead<'_>, message: &Json) -> bool {
        let is_versioned = has_version(message);
        let mut routes = group.routes().iter().map(|route| self.route(*route));
        routes.any(|route| match (&route.rest_call.body, is_versioned) {
            (_, true) => {
                let read = || route.read_message(head, Some(message), TERMS);
                route.has_version() && read().is_some_and(|reading| reading.dropped == 0)
            }
            (Some(pattern), false) => route.is_old() && has_literals(pattern, Some(message)),
            (None, false) => false,
        })
    }

    /// Returns true when a message on a socket, which has some version of JSON-RPC, is a frame.
    #[must_use]
    pub fn is_frame(&self, message: &Json) -> bool {
        let frames = self.all_frames();
        frames.is_some_and(|group| self.is_old(group, RestHead::of_frame(), message))
    }

    /// Finds the route of a frame. If none matches, returns the nearest one whose literals the frame has.
    #[must_use]
    pub fn select_frame(&self, frame: &Json) -> Option<usize> {
        self.select_by_body(self.all_frames()?, RestHead::of_frame(), Some(frame))
    }

    /// Returns the routes of frames.
    fn all_frames(&self) -> Option<&OverlapGroup> {
        let head = RestHead::of_frame();
        match self.frames.find(head.segments, &frame_method()) {
            PathMatch::Routes(group) => Some(group),
            PathMatch::OtherMethods(_) | PathMatch::Nothing => None,
        }
    }
}

impl RestHead<'static> {
    /// Returns the head of a message on a socket, which has none.
    #[must_use]
    pub fn of_frame() -> RestHead<'static> {
        static SEGMENTS: LazyLock<Segments<'static>> = LazyLock::new(|| Segments::split("/"));
        static HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);
        RestHead {
            segments: &SEGMENTS,
            query: None,
            headers: &HEADERS,
        }
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
