//! The translation of one event of a response, as that of a complete response.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

use super::call::{StreamClient, StreamEnd, StreamScope, StreamedCall, unreadable};
use super::output::{ERROR, one_line, text_lines};
use crate::failure::{Failure, Reason};
use crate::headers::JSON;
use crate::jsonrpc::{self, RequestId, ResponseFault, ResponseReply};
use crate::mcp::{ClientRevision, ResultType, render_for};
use crate::outcome::{RestAnswer, RestReply, RpcAnswer, error_object, is_json, write_problem};
use crate::rejections;
use crate::reply::{self, ExpectedReply, blame_of_rest_error, blame_of_rpc_error};
use crate::route::Route;
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::rope::Rope;
use dualgauge_patterns::side::Side;

/// The data of an event for the client.
#[derive(Debug)]
pub(super) struct Translated {
    pub(super) data: String,
    pub(super) dropped: usize,
    /// Set if the event ends the stream: it is an error.
    pub(super) end: Option<StreamEnd>,
}

/// The status of an error event whose body names none.
const UNKNOWN_ERROR: u16 = 500;

impl StreamedCall {
    /// Translates the data of an event with this type.
    ///
    /// # Errors
    /// A [`Failure`], which becomes the last event.
    pub(super) fn translate(
        &self,
        event: &str,
        data: Bytes,
        scope: StreamScope<'_>,
    ) -> Result<Translated, Failure> {
        match &self.client {
            StreamClient::Rest { upstream_id } => self.to_rest(&data, *upstream_id, scope),
            StreamClient::Rpc {
                id,
                method,
                revision,
                status,
                headers,
            } => {
                let reply = rest_reply(event, data, *status, headers, scope.context.depth);
                let client = RpcClient {
                    id,
                    method,
                    revision: *revision,
                };
                self.to_rpc(&reply, client, scope)
            }
        }
    }

    /// Returns true if the client's messages are those of an old dialect, whose error has no event type of its own.
    pub(super) fn is_in_old_dialect(&self, route: &Route) -> bool {
        route.is_old() && self.client.side() == Side::Rest
    }

    /// Returns a failure of the proxy as a message of the client's old dialect; `None` if the client speaks none, or no
    /// row describes the failure.
    pub(super) fn old_failure(&self, failure: &Failure, scope: StreamScope<'_>) -> Option<String> {
        if !self.is_in_old_dialect(scope.route) {
            return None;
        }
        let error = ResponseReply::Error(error_object(failure, scope.codes));
        let outcomes = &scope.route.outcomes;
        let translated = outcomes.rpc_to_rest(error, &self.bindings, scope.context);
        translated.row?;
        body_data(translated.answer).ok()
    }

    fn to_rest(
        &self,
        data: &Bytes,
        upstream_id: u64,
        scope: StreamScope<'_>,
    ) -> Result<Translated, Failure> {
        let (route, context) = (scope.route, scope.context);
        let expected = ExpectedReply {
            id: upstream_id,
            may_ask: true,
        };
        let read = reply::read_rpc(route, data, expected, context.depth, no_response);
        let (response, code) = read?;
        let error = match &response {
            ResponseReply::Result(_) => None,
            ResponseReply::Error(error) => Some(error.clone()),
        };
        let translated = route
            .outcomes
            .rpc_to_rest(response, &self.bindings, context);
        let end = match code {
            _ if translated.answer.status < 400 && !(route.is_old() && code.is_some()) => None,
            None => Some(StreamEnd::ToolError),
            Some(code) => Some(StreamEnd::Error {
                code,
                blame: blame_of_rpc_error(&translated, code),
            }),
        };
        let (dropped, mut answer) = (translated.dropped, translated.answer);
        if let Some(error) = error.filter(|_| end.is_some() && answer.body.is_empty()) {
            // An event without data would not be dispatched (§9.2.6).
            answer = write_problem(answer.status, "", &error);
        }
        Ok(Translated {
            data: body_data(answer)?,
            dropped,
            end,
        })
    }

    fn to_rpc(
        &self,
        reply: &RestReply,
        client: RpcClient<'_>,
        scope: StreamScope<'_>,
    ) -> Result<Translated, Failure> {
        let translated = reply::to_rpc(
            scope.route,
            reply,
            &self.bindings,
            scope.limits,
            scope.context,
        );
        let (translated, validity) = translated?;
        validity?;
        let (message, end) = match translated.answer {
            RpcAnswer::Result(result) => {
                let result = client.render(result, translated.result_type)?;
                (jsonrpc::result(client.id, result), None)
            }
            RpcAnswer::Error(error) => {
                let blame = blame_of_rest_error(reply.status, error.code, translated.row);
                let code = error.code;
                let end = StreamEnd::Error { code, blame };
                (jsonrpc::error(client.id, &error), Some(end))
            }
        };
        Ok(Translated {
            data: one_line(&message.into_bytes()),
            dropped: translated.dropped,
            end,
        })
    }
}

/// The RPC client of a stream.
#[derive(Clone, Copy)]
struct RpcClient<'a> {
    id: &'a RequestId,
    method: &'a str,
    revision: ClientRevision,
}

impl RpcClient<'_> {
    fn render(self, result: Rope, result_type: ResultType) -> Result<Rope, Failure> {
        let rendered = render_for(self.revision, self.method, result, result_type);
        rendered.map_err(|_| rejections::input_required())
    }
}

/// Returns the failure of an event that is not a response.
fn no_response(fault: ResponseFault) -> Failure {
    let reason = match &fault {
        ResponseFault::Json(_) => Reason::UpstreamNotJson,
        ResponseFault::Protocol(_) => Reason::UpstreamNotProtocol,
    };
    let message = format!("the server's response streams, and an event cannot be read: {fault}");
    Failure::new(reason, message)
}

/// Returns the body of a REST response as the data of an event. A response without a body is `null`, because an event
/// without data would not be dispatched.
fn body_data(answer: RestAnswer) -> Result<String, Failure> {
    let body = answer.body.into_bytes();
    if body.is_empty() {
        return Ok("null".to_owned());
    }
    if is_json(answer.content_type.as_deref().unwrap_or_default()) {
        return Ok(one_line(&body));
    }
    match std::str::from_utf8(&body) {
        Ok(text) => Ok(text_lines(text)),
        Err(_) => Err(unreadable("the body of the response is not text")),
    }
}

/// Returns an event of a REST upstream as a complete response: with the status and the headers of the stream, or as an
/// error response.
fn rest_reply(event: &str, body: Bytes, status: u16, headers: &HeaderMap, depth: u16) -> RestReply {
    let json = Json::read(body.clone(), depth).ok();
    let mut headers = headers.clone();
    headers.remove(CONTENT_LENGTH);
    let (status, kind) = match (&json, event) {
        (Some(json), ERROR) => error_head(json),
        (None, ERROR) => (UNKNOWN_ERROR, TEXT),
        (Some(_), _) => (status, JSON),
        (None, _) => (status, TEXT),
    };
    headers.insert(CONTENT_TYPE, kind);
    RestReply {
        status,
        headers,
        body,
    }
}

const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Returns the status and the type of an error event's body: `status` of a problem document (RFC 9457 §3.1.2), or
/// `error.code` of an API error (AIP-193).
fn error_head(body: &Json) -> (u16, HeaderValue) {
    let number = |value: Option<Json>| {
        let value = value.filter(|value| value.kind() == JsonKind::Number)?;
        let status = std::str::from_utf8(value.as_bytes()).ok()?.parse().ok()?;
        (400..=599_u16).contains(&status).then_some(status)
    };
    if body.kind() != JsonKind::Object {
        return (UNKNOWN_ERROR, JSON);
    }
    let status = number(body.member("status"));
    let is_problem = status.is_some() && (body.has("title") || body.has("type"));
    let error = body.member("error");
    let error = error.filter(|error| error.kind() == JsonKind::Object);
    let nested = || number(error?.member("code"));
    let status = status.or_else(nested).unwrap_or(UNKNOWN_ERROR);
    (status, if is_problem { PROBLEM } else { JSON })
}
