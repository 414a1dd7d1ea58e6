//! Explanations of responses that stream. Used by `explain::rest` and `explain::rpc`.

use http::HeaderMap;

use super::case::Case;
use crate::response_stream::{StreamTerms, reads_only_events};
use crate::route::Route;
use crate::stream_format::RouteStream;
use crate::websocket;
use dualgauge_patterns::side::Side;

/// Returns the terms on which the response to a call of a side may stream.
fn terms<'a>(case: &Case<'a>, route: &Route, client: Side) -> Option<StreamTerms<'a>> {
    let headers = case.request.head.headers;
    match client {
        Side::Rest => StreamTerms::for_rest_client(route, headers),
        Side::Rpc => StreamTerms::for_rpc_client(route, headers),
    }
}

/// Adds the request fields that a stream needs.
pub(super) fn ask(case: &Case<'_>, route: &Route, client: Side, headers: &mut HeaderMap) {
    if let Some(terms) = terms(case, route, client) {
        terms.ask(headers);
    }
}

/// Describes how a response that streams is treated, if the route says something about it. `is_alone` is false for a
/// member of a batch.
pub(super) fn describe(
    case: &Case<'_>,
    route: &Route,
    client: Side,
    is_alone: bool,
) -> Option<String> {
    if let (Some(rule), Side::Rest) = (&route.subscription, client) {
        let head = case.request.head;
        if websocket::is_asked(head.method, head.headers) {
            return Some(format!(
                "the call opens a subscription: each notification `{}` with its id is a message of a WebSocket that the proxy serves; `{}` ends it",
                rule.method, rule.unsubscribe
            ));
        }
        let accepts = terms(case, route, client).is_some_and(StreamTerms::is_accepted);
        return Some(match accepts {
            true => format!(
                "the call opens a subscription: each notification `{}` with its id is an event; `{}` ends it",
                rule.method, rule.unsubscribe
            ),
            false => "the subscription is refused with `upstream_stream`: the client does not accept `text/event-stream`".to_owned(),
        });
    }
    let refused = "a response that streams is refused with `upstream_stream`";
    match route.stream {
        RouteStream::Undeclared => None,
        RouteStream::Never => Some(format!("{refused}: the route has `stream = false`")),
        RouteStream::Formats { .. } => Some(
            match terms(case, route, client).filter(|terms| terms.is_accepted()) {
                Some(terms) if is_alone => {
                    let kind = terms.client_format().content_type();
                    let complete = match reads_only_events(route, case.request.head.headers) {
                        true => ", and a complete response as one event",
                        false => "",
                    };
                    format!(
                        "each event is translated as it arrives; the client gets `{kind}`{complete}"
                    )
                }
                Some(_) => format!("{refused}: the call is part of a batch"),
                None if terms(case, route, client).is_none() => {
                    format!("{refused}: the result of a tool is one response")
                }
                None => {
                    let kind = route.stream.format(client).content_type();
                    format!("{refused}: the client does not accept `{kind}`")
                }
            },
        ),
    }
}
