//! The REST side: one call per HTTP request.

use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, request};

use super::exchange::with_total_timeout;
use super::identity::identify;
use super::passthrough::{PassthroughRequest, forward};
use super::record::Record;
use super::request_body::{self, RequestBody};
use super::response::{self, CallResponse};
use super::response_annotations::ResponseAnnotations;
use super::{
    IncomingRequest, RequestOrigin, ResponseBody, RuntimePlan, cors, local_reply, sessions, shadow,
    translate,
};
use crate::domain::failure::Failure;
use crate::domain::plan::Plan;
use crate::domain::rejections;
use crate::domain::rollout::{Caller, Path, SessionStart, Stage};
use crate::domain::routing::{self, RequestHead, RouteMatch};
use crate::domain::side::Side;
use crate::telemetry::clock;
use crate::upstream::{HttpUpstream, IncomingBody};

/// Serves one REST call.
pub(super) async fn serve(delivery: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        record,
        head,
        body,
        arrival,
    } = delivery;
    serve_content(record, (head, RequestBody::Coming(body, None)), arrival).await
}

/// Serves one REST call whose body may already be read.
pub(super) async fn serve_content(
    mut record: Box<Record>,
    (head, content): (Box<request::Parts>, RequestBody),
    arrival: RequestOrigin,
) -> Response<ResponseBody> {
    let installed = record.installed().clone();
    let origin = cors::origin(&installed.plan, &head.headers);
    let answer = with_total_timeout(&mut record, async |record| {
        call(record, (head, content), &arrival).await
    })
    .await;
    respond((record, &installed.plan), answer, origin.as_ref())
}

/// Renders the response for a REST client, with the annotations of the route and the CORS headers.
pub(super) fn respond(
    (record, plan): (Box<Record>, &Plan),
    answer: Result<CallResponse, Failure>,
    origin: Option<&HeaderValue>,
) -> Response<ResponseBody> {
    let (ours, marks) = (record.is_ours(), ResponseAnnotations::new(&record));
    let mut response = response::render(record, answer);
    marks.write(plan, response.headers_mut());
    if let Some(cors) = plan.cors.as_ref().filter(|_| ours) {
        cors.mark(origin, response.headers_mut());
    }
    response
}

async fn call(
    record: &mut Record,
    (head, content): (Box<request::Parts>, RequestBody),
    arrival: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    let installed = record.installed().clone();
    let plan = &installed.plan;
    let identity = identify(record, &head.headers, arrival);
    let caller = identity.caller(&plan.rollout.clients);
    record.admit()?;
    let claimed = RequestHead::new(&head);
    if let Some(answer) = local_reply::rest(record, plan, (claimed, arrival))? {
        return Ok(answer);
    }
    if let Some(answer) = cors::preflight(record, plan, (caller, claimed)) {
        return Ok(answer);
    }
    let selected = routing::match_route(plan, claimed)?;
    let (selected, content) = match selected {
        RouteMatch::Route(route) => (Some(route), content),
        RouteMatch::Nobody => (None, content),
        RouteMatch::Near(nearby) => {
            routing::pass_near(plan, (caller, &head.headers), &nearby, record.at())?;
            (None, content)
        }
        RouteMatch::ByBody(group) => {
            let body = match content {
                RequestBody::Coming(body, _) => read(record, body).await?,
                RequestBody::Read(body) => body,
            };
            let bounds = (&plan.limits, &**record.worker());
            let json = request_body::read_json(&head.headers, body.clone(), bounds, None).await;
            let index = routing::by_body(plan, (group, claimed), json.ok().flatten().as_ref())?;
            (index, RequestBody::Read(body))
        }
    };
    let session = sessions::of_rest((record, &installed), caller, claimed, selected);
    let stage = decide(record, plan, (caller, &head.headers, session), selected);
    if stage.control() != Some(Path::Old) {
        routing::guard(plan, claimed, arrival.entry())?;
    }
    let tap = shadow::attach_rest(record, stage, (&head, &content), arrival);
    let content = content.copy_within(tap);
    match (stage.control(), selected) {
        (None, Some(index)) => Err(record.unserved_failure(plan, index)),
        (Some(Path::New), Some(index)) => {
            translate::rest_call(record, index, (head, content), arrival).await
        }
        (Some(Path::Old), _) | (_, None) => {
            let upstream = passing(&installed, selected, head.uri.path())
                .ok_or_else(|| rejections::no_route(&head.method, head.uri.path()))?;
            let forwarded = match content {
                RequestBody::Coming(body, tap) => PassthroughRequest::streamed(head, body, tap),
                RequestBody::Read(body) => PassthroughRequest::read(head, body),
            };
            forward(record, upstream, forwarded, arrival).await
        }
    }
}

/// Returns the upstream that a call passes through to.
fn passing<'i>(
    installed: &'i RuntimePlan,
    route: Option<usize>,
    path: &str,
) -> Option<&'i Rc<HttpUpstream>> {
    let upstream = installed.upstream(route, Side::Rest).or_else(|| {
        // Without a REST upstream, unrouted calls go to the RPC upstream.
        routing::other_path(&installed.plan, path)?;
        installed.upstream(None, Side::Rpc)
    });
    upstream?.http()
}

/// Reads a body that is needed to match the route.
async fn read(record: &mut Record, body: IncomingBody) -> Result<Bytes, Failure> {
    let (worker, installed) = (record.worker().clone(), record.installed().clone());
    let since = body.is_awaited().then(clock::now);
    let body = request_body::raw(body, (&installed.plan.limits, &*worker)).await?;
    record.add_body_time(since);
    Ok(body)
}

/// Decides the stage of a call and records it. Unrouted calls pass through.
pub(super) fn decide(
    record: &mut Record,
    plan: &Plan,
    (caller, headers, session): (Caller<'_>, &HeaderMap, Option<SessionStart<'_>>),
    selected: Option<usize>,
) -> Stage {
    let (asked, at) = ((selected, record.side()), record.at());
    let decision = routing::decide(plan, (caller, headers), asked, at, session);
    let stage = decision.stage;
    record.decided(selected, decision);
    stage
}
