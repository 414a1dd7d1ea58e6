//! Responses that the proxy itself gives before routing: records and renders them.
//!
//! The model decides which calls have one.
//!
//! Used by `rest` and `rpc`.

use super::access_record::AccessRecord;
use super::call_response::{CallResponse, FullResponse, rpc_message};
use super::request_origin::ClientRequest;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, Call, RequestId};
use dualgauge_model::local_reply::blame_of;
use dualgauge_model::mcp::{self, ClientRevision};
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::DecisionReason;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_patterns::rope::Rope;

/// Returns the proxy's own response to a REST call, if it has one.
pub(super) fn answer_rest(
    record: &mut AccessRecord,
    plan: &Plan,
    request: ClientRequest<'_>,
) -> Result<Option<CallResponse>, Failure> {
    let head = RequestHead::new(request.head);
    let found = routing::local(plan, head, request.origin.entry());
    if !matches!(found, Ok(None)) {
        record.context.handle_locally(DecisionReason::Local);
    }
    let Some(local) = found? else {
        return Ok(None);
    };
    let error = local.blame().map(|blame| (blame, None));
    record.set_local_response(local.status.as_u16(), error);
    Ok(Some(CallResponse::Full(Box::new(FullResponse {
        status: local.status,
        headers: local.headers.clone(),
        body: Rope::from(local.body.clone()),
    }))))
}

/// Returns the proxy's own response to an RPC call, if it has one. The caller does not send it to notifications.
pub(super) fn answer_rpc(
    record: &mut AccessRecord,
    plan: &Plan,
    request: ClientRequest<'_>,
    call: &Call,
    revision: ClientRevision,
) -> Result<Option<FullResponse>, Failure> {
    let Some(answer) = plan.locals.rpc(&call.method) else {
        return Ok(None);
    };
    record.context.handle_locally(DecisionReason::Local);
    routing::check_origin(plan, RequestHead::new(request.head), request.origin.entry())?;
    let id = call.id.clone().unwrap_or(RequestId::null());
    let reply = answer.respond(call.params.as_ref());
    let error = reply.as_ref().err();
    let error = error.map(|error| (blame_of(error), Some(error.code)));
    let full = rpc_message(match reply {
        Ok(result) => {
            let converted = mcp::missing_members_for(revision, &call.method, &result);
            let converted = converted.map_err(|_| rejections::input_required())?;
            let result = converted.unwrap_or_else(|| Rope::from(result.into_bytes()));
            jsonrpc::result(&id, result)
        }
        Err(error) => jsonrpc::error(&id, &error),
    });
    record.set_local_response(full.status.as_u16(), error);
    Ok(Some(full))
}
