//! The CORS protocol: responses to preflights, and the headers that let a page read a response.
//!
//! The model decides which calls, origins and headers are allowed. Passed-through responses are not changed.
//!
//! Used by `gateway`, `event_stream`, `rest` and `rpc`.

use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::access_record::AccessRecord;
use super::call_response::{CallResponse, acknowledgement};
use super::response_body::ResponseBody;
use dualgauge_model::cors;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Caller, DecisionReason};
use dualgauge_model::routing::{self, RequestHead};

/// Returns the origin of a request, if the plan configures CORS.
pub(super) fn origin(plan: &Plan, headers: &HeaderMap) -> Option<HeaderValue> {
    plan.cors.as_ref()?;
    cors::origin(headers).cloned()
}

/// Adds the CORS headers to a response that the proxy wrote for a request with the headers `request_headers`.
pub(super) fn add_headers(
    plan: &Plan,
    request_headers: &HeaderMap,
    answer: &mut Response<ResponseBody>,
) {
    if let Some(cors) = &plan.cors {
        cors.mark(cors::origin(request_headers), answer.headers_mut());
    }
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
