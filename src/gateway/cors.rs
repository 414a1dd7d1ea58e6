//! The CORS protocol: what a browser asks before a call, and what lets a page read the answer.
//!
//! Which call, origin and header that is, the domain says. A call that passes through is left as it is.

use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::ResponseBody;
use super::record::Record;
use super::response::{self, CallResponse};
use crate::domain::cors;
use crate::domain::plan::Plan;
use crate::domain::rollout::{Caller, DecisionReason};
use crate::domain::routing::{self, RequestHead};

/// The origin of a request, to be kept where answers depend on it.
pub(super) fn origin(plan: &Plan, headers: &HeaderMap) -> Option<HeaderValue> {
    plan.cors.as_ref()?;
    cors::origin(headers).cloned()
}

/// Lets the page that has sent these headers read an answer that the proxy has written.
pub(super) fn mark(plan: &Plan, asked: &HeaderMap, answer: &mut Response<ResponseBody>) {
    if let Some(cors) = &plan.cors {
        cors.mark(cors::origin(asked), answer.headers_mut());
    }
}

/// The proxy's own answer to a preflight, if it has one.
pub(super) fn preflight(
    record: &mut Record,
    plan: &Plan,
    (caller, head): (Caller<'_>, RequestHead<'_>),
) -> Option<CallResponse> {
    let headers = routing::preflight(plan, (caller, record.at()), head)?;
    record.handle_locally(DecisionReason::Preflight);
    record.answered_here(StatusCode::NO_CONTENT.as_u16(), None);
    let mut answer = response::acknowledged(StatusCode::NO_CONTENT);
    answer.headers = headers;
    Some(CallResponse::Full(Box::new(answer)))
}
