//! Requests to an RPC path with another method than POST: they belong to the RPC upstream, where it takes HTTP requests.

use http::{Response, request};

use crate::domain::claim::Head;
use crate::domain::failure::Failure;
use crate::domain::refusal;
use crate::domain::side::Side;
use crate::gateway::caller::identify;
use crate::gateway::forward::{Forwarded, at_upstream, forward};
use crate::gateway::record::Record;
use crate::gateway::render::{self, Answer};
use crate::gateway::{AnswerBody, Arrival, cors};
use crate::upstream::{Inflow, Upstream};

/// Serves such a request. A page may read the failures that the proxy writes.
pub(super) async fn pass(
    mut record: Box<Record>,
    (head, body): (Box<request::Parts>, Inflow),
    arrival: Arrival,
) -> Response<AnswerBody> {
    let installed = record.installed().clone();
    let origin = cors::origin(&installed.plan, &head.headers);
    let answer = answer(&mut record, (head, body), &arrival).await;
    let failed = answer.is_err();
    let mut response = render::settled(record, answer);
    if let Some(cors) = installed.plan.cors.as_ref().filter(|_| failed) {
        cors.mark(origin.as_ref(), response.headers_mut());
    }
    response
}

async fn answer(
    record: &mut Record,
    (mut head, body): (Box<request::Parts>, Inflow),
    arrival: &Arrival,
) -> Result<Answer, Failure> {
    let installed = record.installed().clone();
    let plan = &installed.plan;
    let identity = identify(record, &head.headers, arrival);
    let caller = identity.caller(&plan.rollout.clients);
    record.admit()?;
    if let Some(answer) = cors::preflight(record, plan, (caller, Head::of(&head))) {
        return Ok(answer);
    }
    let upstream = installed
        .upstream(None, Side::Rpc)
        .and_then(Upstream::http)
        .ok_or_else(|| refusal::not_posted(&head.method))?;
    head.uri = at_upstream(&upstream.plan().path, head.uri.query())?;
    forward(
        record,
        upstream,
        Forwarded::streamed(head, body, None),
        arrival,
    )
    .await
}
