//! The REST side: one call per HTTP request. Used by `gateway`, `event_stream` and `rpc`.

mod call;
mod replay;

use std::rc::Rc;

use http::{HeaderValue, Response, request};

use super::access_record::AccessRecord;
use super::call_response::CallResponse;
use super::exchange::with_total_timeout;
use super::identity::identify;
use super::old_failure::OldMessage;
use super::passthrough::{PassthroughRequest, forward};
use super::request_body::RequestBody;
use super::request_origin::RequestOrigin;
use super::response::{self, ResponseAnnotations};
use super::response_body::ResponseBody;
use super::response_observer::Observer;
use super::runtime_plan::RuntimePlan;
use super::serve::{ChosenWay, IncomingRequest, choose_way};
use super::{agent_card, cors, resource_metadata, translate};
use crate::upstream::HttpUpstream;
use dualgauge_model::agent_card::requested_card;
use dualgauge_model::dialect;
use dualgauge_model::failure::Failure;
use dualgauge_model::rejections;
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_net::pinned;
use dualgauge_patterns::side::Side;

use call::RestCall;
use replay::ShadowCall;

/// Serves one REST call.
pub(super) async fn serve(request: IncomingRequest) -> Response<ResponseBody> {
    let IncomingRequest {
        record,
        head,
        body,
        origin,
    } = request;
    serve_content(record, head, RequestBody::Streaming(body, None), origin).await
}

/// Serves one REST call whose body may already be read.
pub(super) async fn serve_content(
    mut record: Box<AccessRecord>,
    head: Box<request::Parts>,
    content: RequestBody,
    origin: RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let cors_origin = cors::origin(&runtime_plan.plan, &head.headers);
    let mut kept = CallEnd {
        old: OldMessage::new(&runtime_plan.plan, &head),
        observer: None,
    };
    let answer = with_total_timeout(&mut record, async |record| {
        serve_call(record, head, content, &origin, &mut kept).await
    })
    .await;
    let CallEnd { old, observer } = kept;
    let answer = match (answer, old) {
        (Err(failure), Some(old)) => pinned(|| old.render(&mut record, failure)).await,
        (answer, _) => answer,
    };
    respond(record, answer, observer, cors_origin.as_ref())
}

/// State of a call that is needed after it has ended, also by its total timeout.
struct CallEnd {
    /// The message of a client in an old dialect.
    old: Option<OldMessage>,
    /// The receiver of the control's response, if the call has a candidate.
    observer: Option<Observer>,
}

/// Renders the response for a REST client, with the annotations of the route and the CORS headers.
pub(super) fn respond(
    record: Box<AccessRecord>,
    answer: Result<CallResponse, Failure>,
    observer: Option<Observer>,
    cors_origin: Option<&HeaderValue>,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let is_built_by_proxy = record.context.is_built_by_proxy();
    let annotations = ResponseAnnotations::new(&record.context);
    let mut response = response::render(record, answer, observer);
    annotations.write(plan, response.headers_mut());
    if let Some(cors) = plan.cors.as_ref().filter(|_| is_built_by_proxy) {
        cors.mark(cors_origin, response.headers_mut());
    }
    response
}

async fn serve_call(
    record: &mut AccessRecord,
    head: Box<request::Parts>,
    content: RequestBody,
    origin: &RequestOrigin,
    kept: &mut CallEnd,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let identity = identify(&mut record.context, &head.headers, origin);
    if let Some(request) = routing::metadata_request(&runtime_plan.plan, RequestHead::new(&head)) {
        // Boxed, because few calls need it: inline, it takes memory in the future of every call.
        return pinned(|| resource_metadata::serve(record, &head, origin, request)).await;
    }
    let mut call = RestCall {
        runtime_plan: &runtime_plan,
        head: RequestHead::new(&head),
        parts: &head,
        origin,
        caller: identity.caller(&runtime_plan.plan.rollout.clients),
        content,
        shadow_call: ShadowCall::default(),
        server: None,
    };
    let way = choose_way(record, &mut call).await;
    let RestCall {
        content,
        shadow_call,
        server,
        ..
    } = call;
    kept.observer = shadow_call.candidate;
    let content = content.with_copy(shadow_call.copy);
    let failing = match &way {
        Ok(ChosenWay::Translate(route)) => Some(*route),
        Ok(ChosenWay::Local(_) | ChosenWay::PassThrough(_)) => None,
        Err(_) => record.context.route(),
    };
    let content = match &mut kept.old {
        // Boxed, because few calls need it: inline, it takes memory in the future of every call.
        Some(old) => pinned(|| old.keep_body(&mut record.context, content, failing)).await,
        None => Ok(content),
    };
    match way? {
        ChosenWay::Local(answer) => Ok(answer),
        ChosenWay::Translate(index) => {
            translate::serve_rest_call(record, index, head, content?, origin).await
        }
        ChosenWay::PassThrough(route) => {
            pass_through(record, server.or(route), head, content?, origin).await
        }
    }
}

/// Sends a call to the server of its own side: that of a route, if one is given.
async fn pass_through(
    record: &mut AccessRecord,
    route: Option<usize>,
    mut head: Box<request::Parts>,
    content: RequestBody,
    origin: &RequestOrigin,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let upstream =
        passthrough_upstream(&runtime_plan, route, RequestHead::new(&head)).ok_or_else(|| {
            let treatment = runtime_plan.plan.unrouted;
            rejections::unrouted(treatment, &head.method, head.uri.path())
        })?;
    if let Some(card) = requested_card(&runtime_plan.plan, RequestHead::new(&head)) {
        agent_card::ask_for_whole(&mut head);
        let call = unchanged(head, content);
        // Boxed, because few calls need it: inline, it takes memory in the future of every call.
        return pinned(|| agent_card::pass_through(record, upstream, call, origin, card)).await;
    }
    forward(record, upstream, unchanged(head, content), origin).await
}

fn unchanged(head: Box<request::Parts>, content: RequestBody) -> PassthroughRequest {
    match content {
        RequestBody::Streaming(body, copy) => PassthroughRequest::streamed(head, body, copy),
        RequestBody::Read(body) => PassthroughRequest::from_bytes(head, body),
    }
}

/// Returns the upstream that a call passes through to.
fn passthrough_upstream<'i>(
    runtime_plan: &'i RuntimePlan,
    route: Option<usize>,
    head: RequestHead<'_>,
) -> Option<&'i Rc<HttpUpstream>> {
    let plan = &runtime_plan.plan;
    let server = route.or_else(|| dialect::unrouted_server(plan, head));
    let upstream = runtime_plan.upstream(server, Side::Rest).or_else(|| {
        // Without a REST upstream, unrouted calls go to the RPC upstream.
        routing::other_path(plan, head.uri.path())?;
        runtime_plan.upstream(None, Side::Rpc)
    });
    upstream?.http()
}
