//! Responses of RPC upstreams: parsed, and checked against the call.
//!
//! Used by `offloaded_parsing`, the ways and the adapters.

use super::call_response::UpstreamResponse;
use crate::telemetry::clock;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, ResponseFault};
use dualgauge_model::outcome::RestReply;
use dualgauge_model::plan::Limits;
use dualgauge_model::rejections;
use dualgauge_model::reply::{self, ExpectedReply};
use dualgauge_model::route::Route;
use dualgauge_model::translate::TranslateContext;

/// The response of an RPC upstream, with the id that the call had there.
#[derive(Debug, Clone)]
pub(super) struct RpcReply {
    pub(super) response: UpstreamResponse,
    pub(super) id: u64,
    /// True if the upstream may ask for input in place of a result: one that speaks plain JSON-RPC does not.
    pub(super) may_ask: bool,
}

impl RpcReply {
    /// Creates the response of a server that speaks plain JSON-RPC.
    pub(super) fn plain(response: UpstreamResponse, id: u64) -> RpcReply {
        RpcReply {
            response,
            id,
            may_ask: false,
        }
    }
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
    let unreadable = |fault| no_response(&reply.response, fault, limits.error_text);
    let body = &reply.response.body;
    let expected = ExpectedReply {
        id: reply.id,
        may_ask: reply.may_ask,
    };
    reply::read_rpc(route, body, expected, limits.depth, unreadable)
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
