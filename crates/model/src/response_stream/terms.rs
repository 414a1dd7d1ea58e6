//! The terms on which the response to a call may stream: what the route says, and what the client accepts.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::outcome::{ToolResult, is_json};
use crate::route::Route;
use crate::stream_format::{
    Acceptance, RouteStream, StreamFormat, StreamFormats, StreamHead, accepts_json,
};
use dualgauge_patterns::side::Side;

/// The terms on which the response to a call may stream. Most calls never need them, so the headers of the client are
/// read only when the route or the response is about a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamTerms<'h> {
    declared: RouteStream,
    client: Side,
    headers: &'h HeaderMap,
}

impl<'h> StreamTerms<'h> {
    /// Returns the terms of a REST call; `None` if its response must be complete.
    #[must_use]
    pub fn for_rest_client(route: &Route, headers: &'h HeaderMap) -> Option<StreamTerms<'h>> {
        StreamTerms::new(route, Side::Rest, headers)
    }

    /// Returns the terms of an RPC call outside of batches and sockets; `None` if its response must be complete.
    #[must_use]
    pub fn for_rpc_client(route: &Route, headers: &'h HeaderMap) -> Option<StreamTerms<'h>> {
        // MCP allows one response to a call of a tool (MCP 2025-11-25, "Sending Messages to the Server").
        let is_tool = route.outcomes.tool() == ToolResult::Succeeded;
        StreamTerms::new(route, Side::Rpc, headers).filter(|_| !is_tool)
    }

    fn new(route: &Route, client: Side, headers: &'h HeaderMap) -> Option<StreamTerms<'h>> {
        let declared = route.stream;
        let may_stream = match declared {
            RouteStream::Undeclared => !route.is_old(),
            RouteStream::Formats { .. } => true,
            RouteStream::Never => false,
        };
        (route.expects_reply && may_stream).then_some(StreamTerms {
            declared,
            client,
            headers,
        })
    }

    /// Returns whether the client accepts a stream. A REST client gets one as from its own server, unless its `Accept`
    /// excludes it; an RPC client must name the format, since JSON-RPC clients expect one JSON text otherwise.
    #[must_use]
    pub fn is_accepted(self) -> bool {
        let acceptance = self.client_format().acceptance(self.headers);
        match self.client {
            Side::Rest => acceptance != Acceptance::Excluded,
            Side::Rpc => acceptance == Acceptance::Named,
        }
    }

    /// Returns the format that the client gets.
    #[must_use]
    pub const fn client_format(self) -> StreamFormat {
        self.declared.format(self.client)
    }

    /// Sets `Accept` of the request to the upstream. Only a route that says so asks for a stream: a server that can
    /// respond in both ways keeps responding as before otherwise.
    pub fn ask(self, upstream: &mut HeaderMap) {
        if !matches!(self.declared, RouteStream::Formats { .. }) || !self.is_accepted() {
            return;
        }
        let accept = match self.declared.format(self.client.other()) {
            StreamFormat::EventStream => {
                const { HeaderValue::from_static("application/json, text/event-stream") }
            }
            StreamFormat::JsonLines => {
                const { HeaderValue::from_static("application/json, application/x-ndjson") }
            }
        };
        upstream.insert(ACCEPT, accept);
    }

    /// Returns the formats of a response with this head; `None` if the client gets no stream of it: the response is an
    /// error or encoded, or the client does not accept one.
    #[must_use]
    pub fn formats(self, upstream: StreamHead, status: StatusCode) -> Option<StreamFormats> {
        let formats = self.declared.formats(upstream.format, self.client)?;
        (status.is_success() && !upstream.is_coded && self.is_accepted()).then_some(formats)
    }
}

/// Returns true if a complete response becomes one event: the client of a route with an old dialect reads event streams
/// only. Such clients expect also an error as an event.
#[must_use]
pub fn becomes_event(
    route: &Route,
    client: &HeaderMap,
    status: StatusCode,
    content_type: Option<&HeaderValue>,
) -> bool {
    let is_json = || content_type.is_some_and(|kind| kind.to_str().is_ok_and(is_json));
    route.is_old() && status == StatusCode::OK && is_json() && reads_only_events(route, client)
}

/// Returns true if the client of a route with an old dialect reads event streams only.
#[must_use]
pub fn reads_only_events(route: &Route, client: &HeaderMap) -> bool {
    let RouteStream::Formats { rest, .. } = route.stream else {
        return false;
    };
    let events = StreamFormat::EventStream;
    route.is_old()
        && rest == events
        && events.acceptance(client) == Acceptance::Named
        && !accepts_json(client)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcomes;
    use crate::route::test_syntax::route;
    use dualgauge_patterns::pattern::HoleFacts;

    fn accepting(accept: &'static str) -> HeaderMap {
        [(ACCEPT, HeaderValue::from_static(accept))]
            .into_iter()
            .collect()
    }

    #[test]
    fn the_route_and_the_client_decide_together() {
        let mut one = route("POST /r", "m", "");
        let events = accepting("application/json, text/event-stream");
        let json = accepting("application/json");
        let rest = |route: &Route, headers: &HeaderMap| {
            StreamTerms::for_rest_client(route, headers).is_some_and(StreamTerms::is_accepted)
        };
        let rpc = |route: &Route, headers: &HeaderMap| {
            StreamTerms::for_rpc_client(route, headers).is_some_and(StreamTerms::is_accepted)
        };
        assert!(rest(&one, &HeaderMap::new()) && rest(&one, &events) && !rest(&one, &json));
        assert!(!rpc(&one, &HeaderMap::new()) && rpc(&one, &events) && !rpc(&one, &json));
        one.stream = RouteStream::Never;
        assert!(!rest(&one, &events) && !rpc(&one, &events));
        let mut tool = route(
            "POST /r",
            "tools/call",
            r#"{"params": {"name": "t"}, "body": {}}"#,
        );
        tool.outcomes =
            Outcomes::build(Vec::new(), &HoleFacts::default(), ToolResult::Succeeded).unwrap();
        assert!(rest(&tool, &events) && !rpc(&tool, &events));
    }

    #[test]
    fn only_a_route_that_says_so_asks_for_a_stream() {
        let mut one = route("POST /r", "m", "");
        let asked = |route: &Route, client: &HeaderMap| {
            let mut upstream = accepting("application/json");
            StreamTerms::for_rest_client(route, client)
                .unwrap()
                .ask(&mut upstream);
            upstream.remove(ACCEPT).unwrap()
        };
        let any = HeaderMap::new();
        assert_eq!(asked(&one, &any), "application/json");
        one.stream = RouteStream::Formats {
            rest: StreamFormat::JsonLines,
            rpc: StreamFormat::EventStream,
        };
        assert_eq!(asked(&one, &any), "application/json, text/event-stream");
        let json = accepting("application/json");
        assert_eq!(asked(&one, &json), "application/json");
    }

    #[test]
    fn an_error_or_an_encoded_response_does_not_stream() {
        let one = route("POST /r", "m", "");
        let client = HeaderMap::new();
        let terms = StreamTerms::for_rest_client(&one, &client).unwrap();
        let streams = |status: StatusCode, is_coded: bool| {
            let format = StreamFormat::EventStream;
            let head = StreamHead { format, is_coded };
            terms.formats(head, status).is_some()
        };
        assert!(streams(StatusCode::ACCEPTED, false) && streams(StatusCode::OK, false));
        assert!(!streams(StatusCode::NOT_FOUND, false) && !streams(StatusCode::OK, true));
    }
}
