//! What the proxy itself answers, before any route: in the record, and on the wire.
//!
//! Which answer a call has, and whether it may have it, the domain says.

use http::request;

use super::Arrival;
use super::record::Record;
use super::render::{self, Answer, Whole};
use crate::domain::claim::{self, Head};
use crate::domain::failure::Failure;
use crate::domain::jsonrpc::{self, Call, RequestId};
use crate::domain::local::blame_of;
use crate::domain::mcp::{self, Era};
use crate::domain::pieces::Pieces;
use crate::domain::plan::Plan;
use crate::domain::refusal;
use crate::domain::rollout::Why;

/// The answer to a REST call, if the proxy itself has one.
pub(super) fn rest(
    record: &mut Record,
    plan: &Plan,
    (head, arrival): (Head<'_>, &Arrival),
) -> Result<Option<Answer>, Failure> {
    let found = claim::local(plan, head, arrival.entry());
    if !matches!(found, Ok(None)) {
        record.stays_here(Why::Local);
    }
    let Some(local) = found? else {
        return Ok(None);
    };
    let error = local.blame().map(|blame| (blame, None));
    record.answered_here(local.status.as_u16(), error);
    Ok(Some(Answer::Whole(Box::new(Whole {
        status: local.status,
        headers: local.headers.clone(),
        body: Pieces::from(local.body.clone()),
    }))))
}

/// The answer to an RPC call, if the proxy itself has one. To a notification it is not sent.
pub(super) fn rpc(
    record: &mut Record,
    plan: &Plan,
    (head, arrival): (&request::Parts, &Arrival),
    (call, era): (&Call, Era),
) -> Result<Option<Whole>, Failure> {
    let Some(answer) = plan.locals.rpc(&call.method) else {
        return Ok(None);
    };
    record.stays_here(Why::Local);
    claim::guard(plan, Head::of(head), arrival.entry())?;
    let id = call.id.clone().unwrap_or(RequestId::null());
    let answered = answer.to(call.params.as_ref());
    let error = answered.as_ref().err();
    let error = error.map(|error| (blame_of(error), Some(error.code)));
    let whole = render::rpc_message(match answered {
        Ok(result) => {
            let fitted = mcp::fitted(era, &call.method, &result);
            let fitted = fitted.map_err(|_| refusal::input_required())?;
            let result = fitted.unwrap_or_else(|| Pieces::from(result.into_bytes()));
            jsonrpc::result(&id, result)
        }
        Err(error) => jsonrpc::error(&id, &error),
    });
    record.answered_here(whole.status.as_u16(), error);
    Ok(Some(whole))
}
