//! The response of an upstream to one translated call: read, checked and translated for the other side.
//!
//! The same functions serve a complete response and each event of a response that streams. Law: an event is translated
//! exactly as a complete response with the same content.
//!
//! Used by `response_stream` and `gateway`.

use bytes::Bytes;

use crate::failure::{Blame, Failure, Reason};
use crate::jsonrpc::{
    NoResult, Response, ResponseFault, ResponseReply, parse_response, parse_response_with,
};
use crate::mcp::{InputCapabilities, is_input_required};
use crate::outcome::{ReplyLimits, RestAnswer, RestReply, RpcAnswer, TranslatedReply};
use crate::rejections;
use crate::route::Route;
use crate::translate::TranslateContext;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Bindings;

/// A response for a REST client, and the code of the RPC error that it was translated from.
pub type RestResult = (TranslatedReply<RestAnswer>, Option<i64>);

/// A response for an RPC client, and the failure of a result that violates the schema of the route.
pub type RpcResult = (TranslatedReply<RpcAnswer>, Result<(), Failure>);

/// The properties that a valid response to a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpectedReply {
    /// The id that the call had.
    pub id: u64,
    /// True if the server may ask for input in place of a result.
    pub may_ask: bool,
}

/// Reads the response of an RPC server to a call; the code is set if it is an error. `unreadable` turns a text that is
/// not a response into a failure.
///
/// # Errors
/// A [`Failure`] if the response is not one, has another id, asks for input, or violates the schema of the route.
pub fn read_rpc(
    route: &Route,
    body: &Bytes,
    expected: ExpectedReply,
    depth: u16,
    unreadable: impl FnOnce(ResponseFault) -> Failure,
) -> Result<(ResponseReply, Option<i64>), Failure> {
    let response = parse_for(route, body, depth).map_err(unreadable)?;
    let code = match &response.reply {
        ResponseReply::Result(_) => None,
        ResponseReply::Error(error) => Some(error.code),
    };
    check_id(&response, expected.id)?;
    if let ResponseReply::Result(result) = &response.reply {
        if expected.may_ask {
            check_result(route, result)?;
        } else {
            rejections::unless_valid(route, result)?;
        }
    }
    Ok((response.reply, code))
}

/// Parses the response of an RPC server to a call of a route. A response without a result is `null` if a row reads `null`.
///
/// # Errors
/// [`ResponseFault`] describes the content.
pub fn parse_for(route: &Route, body: &Bytes, depth: u16) -> Result<Response, ResponseFault> {
    parse_response(body, depth).or_else(|fault| {
        if route.outcomes.reads_no_result(depth) {
            parse_response_with(body, depth, NoResult::Null)
        } else {
            Err(fault)
        }
    })
}

/// Checks the result of a translated call. One that asks for input is no result: a REST client cannot be asked.
///
/// # Errors
/// A [`Failure`] if the result asks for input, or violates the schema of the route.
pub fn check_result(route: &Route, result: &Json) -> Result<(), Failure> {
    if InputCapabilities::is_interactive(&route.rpc) && is_input_required(result) {
        let required = InputCapabilities::required_by_result(result);
        return Err(rejections::input_impossible(required));
    }
    rejections::unless_valid(route, result)
}

/// Checks that a response has the id of the call.
///
/// # Errors
/// A [`Failure`] with both ids for the log.
pub fn check_id(response: &Response, id: u64) -> Result<(), Failure> {
    let matches = response
        .id
        .as_ref()
        .is_some_and(|id_text| id_text.as_bytes() == itoa::Buffer::new().format(id).as_bytes());
    // An error may have a null or missing id if the server could not read it. The exchange has only one call.
    let is_missing = response
        .id
        .as_ref()
        .is_none_or(|id_text| id_text.as_bytes() == b"null");
    if matches || (is_missing && matches!(response.reply, ResponseReply::Error(_))) {
        return Ok(());
    }
    let found = response
        .id
        .as_ref()
        .map_or("no id".into(), |id| String::from_utf8_lossy(id.as_bytes()));
    let shown: String = found.chars().take(64).collect();
    let message = "the server answered with an id other than that of the call";
    Err(Failure::new(Reason::UpstreamWrongId, message).because(format!("sent {id}, got {shown}")))
}

/// Translates the response of a REST server for an RPC client.
///
/// # Errors
/// A [`Failure`] if the response cannot be represented in JSON-RPC.
pub fn to_rpc(
    route: &Route,
    reply: &RestReply,
    call: &Bindings,
    limits: ReplyLimits,
    context: TranslateContext,
) -> Result<RpcResult, Failure> {
    let mut translated = route.outcomes.rest_to_rpc(reply, call, limits, context)?;
    translated.answer = route.outcomes.completed(translated.answer);
    // The schema of a tool's result does not apply to a result translated from an HTTP error.
    let validity = match &translated.answer {
        RpcAnswer::Result(_) if translated.tool_error && reply.status >= 400 => Ok(()),
        RpcAnswer::Result(result) if route.schema.result.is_some() => {
            rejections::unless_valid(route, &Json::sent(result.clone()))
        }
        RpcAnswer::Result(_) | RpcAnswer::Error(_) => Ok(()),
    };
    Ok((translated, validity))
}

/// Returns the blame for the response that a REST client gets for an RPC error.
#[must_use]
pub fn blame_of_rpc_error(translated: &TranslatedReply<RestAnswer>, code: i64) -> Blame {
    let status = translated.answer.status;
    // A 500 from the built-in table is the default for unknown codes, so it says nothing about the blame.
    let is_meaningful = translated.row.is_some() || status != 500;
    let by_status = Blame::of_status(status).filter(|_| is_meaningful);
    by_status.unwrap_or_else(|| Blame::of_code(code))
}

/// Returns the blame for an error that an RPC client gets for a REST response with `status`. If an outcome row chose a
/// code that blames the client, that takes precedence, as it does for the same error of an RPC server.
#[must_use]
pub fn blame_of_rest_error(status: u16, code: i64, row: Option<usize>) -> Blame {
    let by_code = Blame::of_code(code);
    match Blame::of_status(status) {
        Some(by_status) if row.is_none() || by_code != Blame::Client => by_status,
        Some(_) | None => by_code,
    }
}
