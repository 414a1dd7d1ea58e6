//! The CORS protocol around REST calls: what a browser asks before a call, and what lets a page read the answer.
//!
//! Which call, origin and header that is, the domain says. A call that passes through is left as it is.

use http::{HeaderMap, HeaderValue, StatusCode};

use super::record::Record;
use super::render::{self, Answer};
use crate::domain::claim::{self, Head};
use crate::domain::cors;
use crate::domain::plan::Plan;
use crate::domain::rollout::{Caller, Why};

/// The origin of a request, to be kept where answers depend on it.
pub(super) fn origin(plan: &Plan, headers: &HeaderMap) -> Option<HeaderValue> {
    plan.cors.as_ref()?;
    cors::origin(headers).cloned()
}

/// The proxy's own answer to a preflight, if it has one.
pub(super) fn preflight(
    record: &mut Record,
    plan: &Plan,
    (caller, head): (Caller<'_>, Head<'_>),
) -> Option<Answer> {
    let headers = claim::preflight(plan, (caller, record.at()), head)?;
    record.stays_here(Why::Preflight);
    record.answered_here(StatusCode::NO_CONTENT.as_u16(), None);
    let mut answer = render::acknowledged(StatusCode::NO_CONTENT);
    answer.headers = headers;
    Some(Answer::Whole(Box::new(answer)))
}
