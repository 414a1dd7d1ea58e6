//! The REST face.

use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, request};

use super::ask::in_all;
use super::caller::identify;
use super::forward::{Forwarded, forward};
use super::intake::{self, Content};
use super::marks::Marks;
use super::record::Record;
use super::render::{self, Answer};
use super::{
    AnswerBody, Arrival, Delivery, Installed, candidate, cors, local, sessions, translated,
};
use crate::domain::claim::{self, Claim, Head};
use crate::domain::failure::Failure;
use crate::domain::plan::Plan;
use crate::domain::refusal;
use crate::domain::rollout::{Caller, Session, Stage, Way};
use crate::domain::side::Side;
use crate::telemetry::clock;
use crate::upstream::{HttpUpstream, Inflow};

/// Serves one REST call.
pub(super) async fn serve(delivery: Delivery) -> Response<AnswerBody> {
    let Delivery {
        record,
        head,
        body,
        arrival,
    } = delivery;
    serve_content(record, (head, Content::Coming(body, None)), arrival).await
}

/// Serves one REST call whose body may have been read.
pub(super) async fn serve_content(
    mut record: Box<Record>,
    (head, content): (Box<request::Parts>, Content),
    arrival: Arrival,
) -> Response<AnswerBody> {
    let installed = record.installed().clone();
    let origin = cors::origin(&installed.plan, &head.headers);
    let answer = in_all(&mut record, async |record| {
        call(record, (head, content), &arrival).await
    })
    .await;
    settled((record, &installed.plan), answer, origin.as_ref())
}

/// What a client of the REST face gets: the answer, what is announced of its route, and whether the page that asked
/// may read it.
pub(super) fn settled(
    (record, plan): (Box<Record>, &Plan),
    answer: Result<Answer, Failure>,
    origin: Option<&HeaderValue>,
) -> Response<AnswerBody> {
    let (ours, marks) = (record.is_ours(), Marks::of(&record));
    let mut response = render::settled(record, answer);
    marks.write(plan, response.headers_mut());
    if let Some(cors) = plan.cors.as_ref().filter(|_| ours) {
        cors.mark(origin, response.headers_mut());
    }
    response
}

async fn call(
    record: &mut Record,
    (head, content): (Box<request::Parts>, Content),
    arrival: &Arrival,
) -> Result<Answer, Failure> {
    let installed = record.installed().clone();
    let plan = &installed.plan;
    let identity = identify(record, &head.headers, arrival);
    let caller = identity.caller(&plan.rollout.clients);
    record.admit()?;
    let claimed = Head::of(&head);
    if let Some(answer) = local::rest(record, plan, (claimed, arrival))? {
        return Ok(answer);
    }
    if let Some(answer) = cors::preflight(record, plan, (caller, claimed)) {
        return Ok(answer);
    }
    let selected = claim::claim(plan, claimed)?;
    let (selected, content) = match selected {
        Claim::Route(route) => (Some(route), content),
        Claim::Nobody => (None, content),
        Claim::Near(nearby) => {
            claim::pass_near(plan, (caller, &head.headers), &nearby, record.at())?;
            (None, content)
        }
        Claim::ByBody(group) => {
            let body = match content {
                Content::Coming(body, _) => read(record, body).await?,
                Content::Read(body) => body,
            };
            let bounds = (&plan.limits, &**record.worker());
            let json = intake::read_json(&head.headers, body.clone(), bounds, None).await;
            let index = claim::by_body(plan, (group, claimed), json.ok().flatten().as_ref())?;
            (index, Content::Read(body))
        }
    };
    let session = sessions::of_rest((record, &installed), caller, claimed, selected);
    let stage = decide(record, plan, (caller, &head.headers, session), selected);
    if stage.control() != Some(Way::Old) {
        claim::guard(plan, claimed, arrival.entry())?;
    }
    let tap = candidate::behind_rest(record, stage, (&head, &content), arrival);
    let content = content.copied(tap);
    match (stage.control(), selected) {
        (None, Some(index)) => Err(record.refused(plan, index)),
        (Some(Way::New), Some(index)) => {
            translated::rest_call(record, index, (head, content), arrival).await
        }
        (Some(Way::Old), _) | (_, None) => {
            let upstream = passing(&installed, selected, head.uri.path())
                .ok_or_else(|| refusal::no_route(&head.method, head.uri.path()))?;
            let forwarded = match content {
                Content::Coming(body, tap) => Forwarded::streamed(head, body, tap),
                Content::Read(body) => Forwarded::read(head, body),
            };
            forward(record, upstream, forwarded, arrival).await
        }
    }
}

/// The upstream that a call passes to.
fn passing<'i>(
    installed: &'i Installed,
    route: Option<usize>,
    path: &str,
) -> Option<&'i Rc<HttpUpstream>> {
    let upstream = installed.upstream(route, Side::Rest).or_else(|| {
        // Without a REST upstream a call of no route is the RPC upstream's.
        claim::other_path(&installed.plan, path)?;
        installed.upstream(None, Side::Rpc)
    });
    upstream?.http()
}

/// Reads the body that tells which route a call is of.
async fn read(record: &mut Record, body: Inflow) -> Result<Bytes, Failure> {
    let (worker, installed) = (record.worker().clone(), record.installed().clone());
    let since = body.is_awaited().then(clock::now);
    let body = intake::raw(body, (&installed.plan.limits, &*worker)).await?;
    record.body_came(since);
    Ok(body)
}

/// Decides for a call, and notes it. What belongs to no route passes through.
pub(super) fn decide(
    record: &mut Record,
    plan: &Plan,
    (caller, headers, session): (Caller<'_>, &HeaderMap, Option<Session<'_>>),
    selected: Option<usize>,
) -> Stage {
    let (asked, at) = ((selected, record.side()), record.at());
    let decision = claim::decide(plan, (caller, headers), asked, at, session);
    let stage = decision.stage;
    record.decided(selected, decision);
    stage
}
