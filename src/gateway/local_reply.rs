//! Responses that the proxy itself gives before routing: records and renders them.
//!
//! The model decides which calls and preflights have one. The hop limits of TRACE and OPTIONS may make the proxy the final
//! recipient of a request.
//!
//! Used by `gateway`, `rest` and `rpc`.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode, request};

use super::access_record::AccessRecord;
use super::call_response::{CallResponse, FullResponse, acknowledgement, rpc_message};
use super::headers::{is_hop_by_hop, named_by_connection};
use super::request_origin::ClientRequest;
use dualgauge_model::failure::Failure;
use dualgauge_model::jsonrpc::{self, Call, RequestId};
use dualgauge_model::local_reply::blame_of;
use dualgauge_model::mcp::{self, ClientRevision};
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Caller, DecisionReason};
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

/// Returns the proxy's own response to a preflight, if it has one.
pub(super) fn answer_preflight(
    record: &mut AccessRecord,
    plan: &Plan,
    caller: Caller<'_>,
    head: RequestHead<'_>,
) -> Option<CallResponse> {
    let headers = routing::preflight(plan, caller, record.context.wall_time(), head)?;
    record.context.handle_locally(DecisionReason::Preflight);
    record.set_local_response(StatusCode::NO_CONTENT.as_u16(), None);
    let mut answer = acknowledgement(StatusCode::NO_CONTENT);
    answer.headers = headers;
    Some(CallResponse::Full(Box::new(answer)))
}

/// Returns the response of the final recipient of a TRACE or OPTIONS request (RFC 9110 §7.6.2).
pub(super) fn answer_as_recipient(
    record: &mut AccessRecord,
    request: ClientRequest<'_>,
) -> Result<CallResponse, Failure> {
    record.context.handle_locally(DecisionReason::Local);
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let ClientRequest { head, origin } = request;
    routing::check_origin(plan, RequestHead::new(head), origin.entry())?;
    let full = match head.method {
        Method::TRACE => trace_response(head, plan),
        _ => acknowledgement(StatusCode::NO_CONTENT),
    };
    record.set_local_response(full.status.as_u16(), None);
    Ok(CallResponse::Full(Box::new(full)))
}

/// Returns the request as it arrived, without hop-by-hop fields and secrets (RFC 9110 §9.3.8).
fn trace_response(head: &request::Parts, plan: &Plan) -> FullResponse {
    let connection_fields = named_by_connection(&head.headers);
    let target = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str());
    let mut text = format!("TRACE {target} {:?}\r\n", head.version).into_bytes();
    for (name, value) in &head.headers {
        if is_hop_by_hop(name) || connection_fields.contains(name) || plan.is_secret(name) {
            continue;
        }
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("message/http"));
    FullResponse {
        status: StatusCode::OK,
        headers,
        body: Rope::from(Bytes::from(text)),
    }
}
