//! Responses of RPC upstreams: parsed, and checked against the call.
//!
//! Used by `offloaded_parsing`, `translate`, `legacy_socket`, `link_call` and `rpc`.

use super::call_response::UpstreamResponse;
use crate::telemetry::clock;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::jsonrpc::{self, Response, ResponseFault, parse_response};
use dualgauge_model::outcome::RestReply;
use dualgauge_model::plan::Limits;
use dualgauge_model::rejections;
use dualgauge_model::route::Route;
use dualgauge_model::translate::TranslateContext;

/// The response of an RPC upstream, with the id that the call had there.
#[derive(Debug, Clone)]
pub(super) struct RpcReply {
    pub(super) response: UpstreamResponse,
    pub(super) id: u64,
}

/// Returns the context of a translation that may read the clock.
pub(super) fn context(limits: &Limits) -> TranslateContext {
    TranslateContext {
        depth: limits.depth,
        now: clock::rfc3339,
    }
}

/// Parses the response to a call of a route; the code is set if it is an error.
pub(super) fn read_response(
    limits: &Limits,
    route: &Route,
    reply: &RpcReply,
) -> Result<(jsonrpc::ResponseReply, Option<i64>), Failure> {
    let answer = parse_response(&reply.response.body, limits.depth)
        .map_err(|fault| no_response(&reply.response, fault, limits.error_text))?;
    let code = match &answer.reply {
        jsonrpc::ResponseReply::Result(_) => None,
        jsonrpc::ResponseReply::Error(error) => Some(error.code),
    };
    check_id(&answer, reply.id)?;
    if let jsonrpc::ResponseReply::Result(result) = &answer.reply {
        rejections::unless_valid(route, result)?;
    }
    Ok((answer.reply, code))
}

/// Checks that the response has the id of the call.
pub(super) fn check_id(response: &Response, id: u64) -> Result<(), Failure> {
    let matches = response
        .id
        .as_ref()
        .is_some_and(|id_text| id_text.as_bytes() == itoa::Buffer::new().format(id).as_bytes());
    // An error may have a null or missing id if the server could not read it. The exchange has only one call.
    let is_missing = response
        .id
        .as_ref()
        .is_none_or(|id_text| id_text.as_bytes() == b"null");
    if matches || (is_missing && matches!(response.reply, jsonrpc::ResponseReply::Error(_))) {
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

/// Returns the failure for an upstream response that is not an RPC response.
pub(super) fn no_response(
    reply: &UpstreamResponse,
    fault: ResponseFault,
    error_text: usize,
) -> Failure {
    rejections::no_response(&rest_reply(reply), fault, error_text)
}

/// Returns a response as that of a REST server.
pub(super) fn rest_reply(reply: &UpstreamResponse) -> RestReply {
    RestReply {
        status: reply.status.as_u16(),
        headers: reply.headers.clone(),
        body: reply.body.clone(),
    }
}
