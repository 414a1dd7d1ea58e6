//! The terms on which the response to a call may stream: what the route says, and what the client accepts.

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::headers::first_value;
use crate::outcome::ToolResult;
use crate::route::Route;
use crate::stream_format::{Acceptance, RouteStream, StreamFormat, StreamFormats};
use dualgauge_patterns::side::Side;

/// The id of the last event that a reconnecting client received (WHATWG HTML Living Standard §9.2.4).
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The terms on which the response to a call may stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamTerms {
    declared: RouteStream,
    client: Side,
}

impl StreamTerms {
    /// Returns the terms of a REST call; `None` if its response must be complete. A client gets a stream as from its own
    /// server, unless its `Accept` excludes it.
    #[must_use]
    pub fn for_rest_client(route: &Route, headers: &HeaderMap) -> Option<StreamTerms> {
        let terms = StreamTerms::new(route, Side::Rest)?;
        (terms.acceptance(headers) != Acceptance::Excluded).then_some(terms)
    }

    /// Returns the terms of an RPC call outside of batches and sockets; `None` if its response must be complete. The
    /// client must name the format: JSON-RPC clients expect one JSON text otherwise.
    #[must_use]
    pub fn for_rpc_client(route: &Route, headers: &HeaderMap) -> Option<StreamTerms> {
        let terms = StreamTerms::new(route, Side::Rpc)?;
        // MCP allows one response to a call of a tool (MCP 2025-11-25, "Sending Messages to the Server").
        let is_tool = route.outcomes.tool() == ToolResult::Succeeded;
        (!is_tool && terms.acceptance(headers) == Acceptance::Named).then_some(terms)
    }

    fn new(route: &Route, client: Side) -> Option<StreamTerms> {
        let may_stream = route.expects_reply && !route.is_frame();
        let declared = route.stream;
        (may_stream && declared != RouteStream::Never).then_some(StreamTerms { declared, client })
    }

    fn acceptance(self, headers: &HeaderMap) -> Acceptance {
        self.declared.format(self.client).acceptance(headers)
    }

    /// Returns the format that the client gets.
    #[must_use]
    pub const fn client_format(self) -> StreamFormat {
        self.declared.format(self.client)
    }

    /// Returns whether the route says that its responses stream.
    #[must_use]
    pub const fn is_declared(self) -> bool {
        matches!(self.declared, RouteStream::Formats { .. })
    }

    /// Adds the request fields that a stream needs. Only a route that says so asks for a stream: a server that can
    /// respond in both ways keeps responding as before otherwise.
    pub fn ask(self, client: &HeaderMap, upstream: &mut HeaderMap) {
        if self.is_declared() {
            upstream.insert(
                ACCEPT,
                match self.declared.format(self.client.other()) {
                    StreamFormat::EventStream => {
                        const { HeaderValue::from_static("application/json, text/event-stream") }
                    }
                    StreamFormat::JsonLines => {
                        const { HeaderValue::from_static("application/json, application/x-ndjson") }
                    }
                },
            );
        }
        if let Some(last) = client.get(LAST_EVENT_ID) {
            upstream.insert(LAST_EVENT_ID, last.clone());
        }
    }

    /// Returns the formats of a response with this head; `None` if it is complete, encoded or an error.
    #[must_use]
    pub fn formats(self, status: StatusCode, headers: &HeaderMap) -> Option<StreamFormats> {
        if !status.is_success() {
            return None;
        }
        let value = |name: HeaderName| first_value(headers, &name)?.to_str().ok();
        let is_plain =
            value(CONTENT_ENCODING).is_none_or(|coding| coding.eq_ignore_ascii_case("identity"));
        let kind = value(CONTENT_TYPE).filter(|_| is_plain)?;
        self.declared.formats(kind, self.client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::test_syntax::route;

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
            StreamTerms::for_rest_client(route, headers).is_some()
        };
        let rpc = |route: &Route, headers: &HeaderMap| {
            StreamTerms::for_rpc_client(route, headers).is_some()
        };
        assert!(rest(&one, &HeaderMap::new()) && rest(&one, &events) && !rest(&one, &json));
        assert!(!rpc(&one, &HeaderMap::new()) && rpc(&one, &events) && !rpc(&one, &json));
        one.stream = RouteStream::Never;
        assert!(!rest(&one, &events) && !rpc(&one, &events));
        let tool = route(
            "POST /r",
            "tools/call",
            r#"{"params": {"name": "t"}, "body": {}}"#,
        );
        assert!(rest(&tool, &events) && !rpc(&tool, &events));
    }

    #[test]
    fn only_a_route_that_says_so_asks_for_a_stream() {
        let mut one = route("POST /r", "m", "");
        let mut client = HeaderMap::new();
        client.insert(LAST_EVENT_ID, HeaderValue::from_static("7"));
        let asked = |route: &Route| {
            let mut upstream = accepting("application/json");
            let terms = StreamTerms::for_rest_client(route, &client).unwrap();
            terms.ask(&client, &mut upstream);
            assert_eq!(upstream.get(LAST_EVENT_ID).unwrap(), "7");
            upstream.remove(ACCEPT).unwrap()
        };
        assert_eq!(asked(&one), "application/json");
        one.stream = RouteStream::Formats {
            rest: StreamFormat::JsonLines,
            rpc: StreamFormat::EventStream,
        };
        assert_eq!(asked(&one), "application/json, text/event-stream");
    }

    #[test]
    fn an_error_or_an_encoded_response_does_not_stream() {
        let one = route("POST /r", "m", "");
        let terms = StreamTerms::for_rest_client(&one, &HeaderMap::new()).unwrap();
        let mut head = HeaderMap::new();
        head.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        assert!(terms.formats(StatusCode::ACCEPTED, &head).is_some());
        assert!(terms.formats(StatusCode::NOT_FOUND, &head).is_none());
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        assert!(terms.formats(StatusCode::OK, &head).is_none());
        head.insert(CONTENT_ENCODING, HeaderValue::from_static("Identity"));
        assert!(terms.formats(StatusCode::OK, &head).is_some());
    }
}
