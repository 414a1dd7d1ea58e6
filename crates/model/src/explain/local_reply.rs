//! Explanations of replies by the proxy itself. Used by `explain::frame`, `explain::rest` and `explain::rpc`.

use bytes::Bytes;
use http::HeaderMap;

use super::case::Case;
use super::view::{Decided, ExplainedAnswer, Explanation, Value};
use crate::failure::Failure;
use crate::jsonrpc::{self, Call};
use crate::rollout::DecisionReason;
use crate::routing;
use dualgauge_patterns::rope::Rope;

/// The result of looking for a reply by the proxy itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalExplanation {
    /// The proxy replies; the explanation is complete.
    Complete,
    /// The proxy does not reply.
    NotLocal,
}

/// Explains a REST call that a `[[local]]` or a CORS preflight answers.
pub(super) fn rest(
    case: &Case<'_>,
    explanation: &mut Explanation,
) -> Result<LocalExplanation, Failure> {
    let (plan, head) = (case.plan, case.request.head);
    let found = routing::local(plan, head, case.entry());
    if !matches!(found, Ok(None)) {
        record_decision(case, DecisionReason::Local, explanation);
    }
    if let Some(local) = found? {
        explanation.answer = Some(answer(
            case,
            local.status.as_u16(),
            &local.headers,
            &local.body,
        ));
        return Ok(LocalExplanation::Complete);
    }
    Ok(preflight(case, explanation))
}

/// Explains a preflight that the proxy answers.
pub(super) fn preflight(case: &Case<'_>, explanation: &mut Explanation) -> LocalExplanation {
    let head = case.request.head;
    let Some(headers) = routing::preflight(case.plan, case.caller, case.at(), head) else {
        return LocalExplanation::NotLocal;
    };
    record_decision(case, DecisionReason::Preflight, explanation);
    explanation.answer = Some(answer(case, 204, &headers, &Bytes::new()));
    LocalExplanation::Complete
}

/// Explains an RPC call that a `[[local]]` answers.
pub(super) fn rpc(
    case: &Case<'_>,
    call: &Call,
    explanation: &mut Explanation,
) -> Result<LocalExplanation, Failure> {
    let Some(local) = case.plan.locals.rpc(&call.method) else {
        return Ok(LocalExplanation::NotLocal);
    };
    record_decision(case, DecisionReason::Local, explanation);
    routing::check_origin(case.plan, case.request.head, case.entry())?;
    if let Some(id) = &call.id {
        let message = match local.respond(call.params.as_ref()) {
            Ok(result) => jsonrpc::result(id, Rope::from(result.into_bytes())),
            Err(error) => jsonrpc::error(id, &error),
        };
        let message = message.into_bytes();
        explanation.answer = Some(answer(case, 200, &HeaderMap::new(), &message));
    }
    Ok(LocalExplanation::Complete)
}

pub(super) fn record_decision(case: &Case<'_>, why: DecisionReason, explanation: &mut Explanation) {
    explanation.decision = Some(Decided {
        stage: "none".into(),
        flag: None,
        changed: None,
        candidate: None,
        why: case.plan.rollout.describe(why).into_owned(),
        passed_over: Vec::new(),
    });
}

/// Returns a reply of the proxy of which only status and headers are known beforehand.
pub(super) fn noted(
    case: &Case<'_>,
    status: u16,
    headers: &HeaderMap,
    note: &'static str,
) -> ExplainedAnswer {
    ExplainedAnswer {
        note: Some(note.into()),
        ..answer(case, status, headers, &Bytes::new())
    }
}

fn answer(case: &Case<'_>, status: u16, headers: &HeaderMap, body: &Bytes) -> ExplainedAnswer {
    let mut secrets = case.secrets();
    secrets.note_members(&case.plan.redaction, body, case.context.depth);
    let hidden = secrets.hide_bytes(body);
    ExplainedAnswer {
        row: None,
        status,
        headers: case.headers(headers),
        body: (!body.is_empty()).then(|| Value::from_text(hidden)),
        dropped: 0,
        note: Some("by the proxy itself".into()),
    }
}
