//! The REST side: one call per HTTP request. Used by `gateway`, `event_stream`, `legacy_socket` and `rpc`.

use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderValue, Response, request};

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
use crate::telemetry::clock;
use crate::upstream::{HttpUpstream, IncomingBody};
use dualgauge_model::failure::Failure;
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Requester, Stage, Way};
use dualgauge_model::routing::{self, RequestHead, RouteMatch};
use dualgauge_patterns::side::Side;

/// Serves one REST call.
pub(super) async fn serve(request: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        record,
        head,
        body,
        origin,
    } = request;
    serve_content(record, (head, RequestBody::Streaming(body, None)), origin).await
}

/// Serves one REST call whose body may already be read.
pub(super) async fn serve_content(
    mut record: Box<Record>,
    (head, content): (Box<request::Parts>, RequestBody),
    origin: RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.runtime_plan().clone();
    let cors_origin = cors::origin(&runtime_plan.plan, &head.headers);
    let answer = with_total_timeout(&mut record, async |record| {
        serve_call(record, (head, content), &origin).await
    })
    .await;
    respond((record, &runtime_plan.plan), answer, cors_origin.as_ref())
}

/// Renders the response for a REST client, with the annotations of the route and the CORS headers.
pub(super) fn respond(
    (record, plan): (Box<Record>, &Plan),
    answer: Result<CallResponse, Failure>,
    cors_origin: Option<&HeaderValue>,
) -> Response<ResponseBody> {
    let (is_built_by_proxy, annotations) = (
        record.is_built_by_proxy(),
        ResponseAnnotations::new(&record),
    );
    let mut response = response::render(record, answer);
    annotations.write(plan, response.headers_mut());
    if let Some(cors) = plan.cors.as_ref().filter(|_| is_built_by_proxy) {
        cors.mark(cors_origin, response.headers_mut());
    }
    response
}

async fn serve_call(
    record: &mut Record,
    (head, content): (Box<request::Parts>, RequestBody),
    origin: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let identity = identify(record, &head.headers, origin);
    let caller = identity.caller(&plan.rollout.clients);
    record.admit()?;
    let request_head = RequestHead::new(&head);
    let requester = Requester::new(caller, &head.headers);
    if let Some(answer) = local_reply::answer_rest(record, plan, (request_head, origin))? {
        return Ok(answer);
    }
    if let Some(answer) = cors::answer_preflight(record, plan, (caller, request_head)) {
        return Ok(answer);
    }
    let selected = routing::match_route(plan, request_head)?;
    let (selected, content) = match selected {
        RouteMatch::Route(route) => (Some(route), content),
        RouteMatch::Unrouted => (None, content),
        RouteMatch::Near(nearby) => {
            routing::pass_near(plan, requester, &nearby, record.wall_time())?;
            (None, content)
        }
        RouteMatch::ByBody(group) => {
            let body = match content {
                RequestBody::Streaming(body, _) => read_for_matching(record, body).await?,
                RequestBody::Read(body) => body,
            };
            let bounds = (&plan.limits, &**record.worker());
            let json = request_body::read_json(&head.headers, body.clone(), bounds, None).await;
            let index = routing::by_body(plan, group, request_head, json.ok().flatten().as_ref())?;
            (index, RequestBody::Read(body))
        }
    };
    let session = sessions::for_rest((record, &runtime_plan), caller, request_head, selected);
    let stage = decide(record, plan, requester.with_session(session), selected);
    if stage.control() != Some(Way::Old) {
        routing::check_origin(plan, request_head, origin.entry())?;
    }
    let copy = shadow::attach_rest(record, stage, (&head, &content), origin);
    let content = content.with_copy(copy);
    match (stage.control(), selected) {
        (None, Some(index)) => Err(record.unserved_failure(plan, index)),
        (Some(Way::New), Some(index)) => {
            translate::serve_rest_call(record, index, (head, content), origin).await
        }
        (Some(Way::Old), _) | (_, None) => {
            let upstream = passthrough_upstream(&runtime_plan, selected, head.uri.path())
                .ok_or_else(|| rejections::no_route(&head.method, head.uri.path()))?;
            let passthrough = match content {
                RequestBody::Streaming(body, copy) => {
                    PassthroughRequest::streamed(head, body, copy)
                }
                RequestBody::Read(body) => PassthroughRequest::from_bytes(head, body),
            };
            forward(record, upstream, passthrough, origin).await
        }
    }
}

/// Returns the upstream that a call passes through to.
fn passthrough_upstream<'i>(
    runtime_plan: &'i RuntimePlan,
    route: Option<usize>,
    path: &str,
) -> Option<&'i Rc<HttpUpstream>> {
    let upstream = runtime_plan.upstream(route, Side::Rest).or_else(|| {
        // Without a REST upstream, unrouted calls go to the RPC upstream.
        routing::other_path(&runtime_plan.plan, path)?;
        runtime_plan.upstream(None, Side::Rpc)
    });
    upstream?.http()
}

/// Reads a body that is needed to match the route.
async fn read_for_matching(record: &mut Record, body: IncomingBody) -> Result<Bytes, Failure> {
    let (worker, runtime_plan) = (record.worker().clone(), record.runtime_plan().clone());
    let since = body.is_awaited().then(clock::now);
    let body = request_body::read_raw(body, (&runtime_plan.plan.limits, &*worker)).await?;
    record.add_body_time(since);
    Ok(body)
}

/// Decides the stage of a call and records it. Unrouted calls pass through.
pub(super) fn decide(
    record: &mut Record,
    plan: &Plan,
    requester: Requester<'_>,
    selected: Option<usize>,
) -> Stage {
    let decision = routing::decide(plan, requester, selected, record.side(), record.wall_time());
    let stage = decision.stage;
    record.set_decision(selected, decision);
    stage
}
