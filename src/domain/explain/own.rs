//! What the proxy itself answers, explained.

use bytes::Bytes;
use http::HeaderMap;

use super::{Answer, Case, Decided, Explanation, Value};
use crate::domain::claim;
use crate::domain::failure::Failure;
use crate::domain::jsonrpc::{self, Call};
use crate::domain::pieces::Pieces;
use crate::domain::rollout::Why;

/// Whether the proxy itself answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// It does, and everything is told.
    Told,
    /// It does not.
    No,
}

/// A REST call: one that a `[[local]]` answers, or a preflight.
pub(super) fn rest(case: &Case<'_>, explanation: &mut Explanation) -> Result<Own, Failure> {
    let (plan, head) = (case.plan, case.asked.head);
    let found = claim::local(plan, head, case.entry());
    if !matches!(found, Ok(None)) {
        decided(case, Why::Local, explanation);
    }
    if let Some(local) = found? {
        explanation.answer = Some(answer(
            case,
            (local.status.as_u16(), &local.headers),
            &local.body,
        ));
        return Ok(Own::Told);
    }
    Ok(preflight(case, explanation))
}

/// A preflight that the proxy answers.
pub(super) fn preflight(case: &Case<'_>, explanation: &mut Explanation) -> Own {
    let head = case.asked.head;
    let Some(headers) = claim::preflight(case.plan, (case.caller, case.at()), head) else {
        return Own::No;
    };
    decided(case, Why::Preflight, explanation);
    explanation.answer = Some(answer(case, (204, &headers), &Bytes::new()));
    Own::Told
}

/// An RPC call that a `[[local]]` answers.
pub(super) fn rpc(
    case: &Case<'_>,
    call: &Call,
    explanation: &mut Explanation,
) -> Result<Own, Failure> {
    let Some(local) = case.plan.locals.rpc(&call.method) else {
        return Ok(Own::No);
    };
    decided(case, Why::Local, explanation);
    claim::guard(case.plan, case.asked.head, case.entry())?;
    if let Some(id) = &call.id {
        let message = match local.to(call.params.as_ref()) {
            Ok(result) => jsonrpc::result(id, Pieces::from(result.into_bytes())),
            Err(error) => jsonrpc::error(id, &error),
        };
        let message = message.into_bytes();
        explanation.answer = Some(answer(case, (200, &HeaderMap::new()), &message));
    }
    Ok(Own::Told)
}

pub(super) fn decided(case: &Case<'_>, why: Why, explanation: &mut Explanation) {
    explanation.decision = Some(Decided {
        stage: "none".into(),
        flag: None,
        changed: None,
        candidate: None,
        why: case.plan.rollout.describe(why).into_owned(),
        passed_over: Vec::new(),
    });
}

/// An answer of the proxy's own, of which only this is known beforehand.
pub(super) fn noted(
    case: &Case<'_>,
    (status, headers): (u16, &HeaderMap),
    note: &'static str,
) -> Answer {
    Answer {
        note: Some(note.into()),
        ..answer(case, (status, headers), &Bytes::new())
    }
}

fn answer(case: &Case<'_>, (status, headers): (u16, &HeaderMap), body: &Bytes) -> Answer {
    let mut secrets = case.secrets();
    secrets.learn_members(&case.plan.redaction, body, case.terms.depth);
    let hidden = secrets.hide_bytes(body);
    Answer {
        row: None,
        status,
        headers: case.headers(headers),
        body: (!body.is_empty()).then(|| Value::of(hidden)),
        dropped: 0,
        note: Some("by the proxy itself".into()),
    }
}
