//! The REST side: one call per HTTP request. Used by `gateway`, `event_stream` and `rpc`.

mod replay;

use std::mem;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderValue, Response, request};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::CallResponse;
use super::exchange::with_total_timeout;
use super::identity::identify;
use super::passthrough::{PassthroughRequest, forward};
use super::request_body::{self, BodyHead, RequestBody};
use super::request_origin::RequestOrigin;
use super::response::{self, ResponseAnnotations};
use super::response_body::ResponseBody;
use super::response_observer::Observer;
use super::runtime_plan::RuntimePlan;
use super::serve::{ChosenWay, IncomingRequest, ProtocolCall, choose_way, decide};
use super::sessions::SessionLookup;
use super::{cors, local_reply, resource_metadata, translate};
use crate::telemetry::clock;
use crate::upstream::HttpUpstream;
use dualgauge_model::failure::Failure;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Caller, Requester, Stage};
use dualgauge_model::routing::{self, RequestHead, RouteMatch};
use dualgauge_patterns::side::Side;

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
    let mut observer = None;
    let answer = with_total_timeout(&mut record, async |record| {
        serve_call(record, head, content, &origin, &mut observer).await
    })
    .await;
    respond(record, answer, observer, cors_origin.as_ref())
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
    observer: &mut Option<Observer>,
) -> Result<CallResponse, Failure> {
    let runtime_plan = record.context.runtime_plan().clone();
    let identity = identify(&mut record.context, &head.headers, origin);
    if let Some(request) = routing::metadata_request(&runtime_plan.plan, RequestHead::new(&head)) {
        return resource_metadata::serve(record, &head, origin, request).await;
    }
    let mut call = RestCall {
        runtime_plan: &runtime_plan,
        head: RequestHead::new(&head),
        parts: &head,
        origin,
        caller: identity.caller(&runtime_plan.plan.rollout.clients),
        content,
        shadow_call: ShadowCall::default(),
    };
    let way = choose_way(record, &mut call).await;
    let RestCall {
        content,
        shadow_call,
        ..
    } = call;
    *observer = shadow_call.candidate;
    let content = content.with_copy(shadow_call.copy);
    match way? {
        ChosenWay::Local(answer) => Ok(answer),
        ChosenWay::Translate(index) => {
            translate::serve_rest_call(record, index, head, content, origin).await
        }
        ChosenWay::PassThrough(route) => {
            let upstream = passthrough_upstream(&runtime_plan, route, head.uri.path())
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

/// A REST call in the pipeline.
struct RestCall<'a> {
    runtime_plan: &'a RuntimePlan,
    head: RequestHead<'a>,
    parts: &'a request::Parts,
    origin: &'a RequestOrigin,
    caller: Caller<'a>,
    content: RequestBody,
    shadow_call: ShadowCall,
}

impl RestCall<'_> {
    /// Reads a body that is needed to match the route.
    async fn read_body(&mut self, context: &mut CallContext) -> Result<Bytes, Failure> {
        let content = mem::replace(&mut self.content, RequestBody::Read(Bytes::new()));
        let body = match content {
            RequestBody::Streaming(body, _) => {
                let worker = context.worker().clone();
                let since = body.is_awaited().then(clock::now);
                let limits = &self.runtime_plan.plan.limits;
                let body = request_body::read_raw(body, limits, &worker).await?;
                context.add_body_time(since);
                body
            }
            RequestBody::Read(body) => body,
        };
        self.content = RequestBody::Read(body.clone());
        Ok(body)
    }
}

impl ProtocolCall for RestCall<'_> {
    type Reply = CallResponse;

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
    ) -> Result<Option<CallResponse>, Failure> {
        let plan = &self.runtime_plan.plan;
        let local = local_reply::answer_rest(record, plan, self.head, self.origin)?;
        Ok(local.or_else(|| cors::answer_preflight(record, plan, self.caller, self.head)))
    }

    async fn select_route(&mut self, context: &mut CallContext) -> Result<Option<usize>, Failure> {
        let plan = &self.runtime_plan.plan;
        match routing::match_route(plan, self.head)? {
            RouteMatch::Route(route) => Ok(Some(route)),
            RouteMatch::Unrouted => Ok(None),
            RouteMatch::Near(nearby) => {
                let headers = &self.parts.headers;
                let at = context.wall_time();
                routing::pass_near(plan, Requester::new(self.caller, headers), &nearby, at)?;
                Ok(None)
            }
            RouteMatch::ByBody(group) => {
                let body = self.read_body(context).await?;
                let worker = context.worker();
                let head = BodyHead {
                    headers: &self.parts.headers,
                    format: plan.routes.body_format(group),
                };
                let json = request_body::read_json(head, body, &plan.limits, worker, None).await;
                routing::by_body(plan, group, self.head, json.ok().flatten().as_ref())
            }
        }
    }

    fn decide(&mut self, context: &mut CallContext, route: Option<usize>) -> Stage {
        let sessions = SessionLookup {
            table: context.worker().sessions(),
            runtime_plan: self.runtime_plan,
            caller: self.caller,
        };
        let session = sessions.for_rest(self.head, route);
        let requester = Requester::new(self.caller, &self.parts.headers).with_session(session);
        decide(context, &self.runtime_plan.plan, requester, route)
    }

    fn check_origin(&self) -> Result<(), Failure> {
        routing::check_origin(&self.runtime_plan.plan, self.head, self.origin.entry())
    }

    fn attach_shadow(&mut self, record: &AccessRecord, stage: Stage) {
        self.shadow_call =
            replay::shadow_call(record, stage, self.parts, &self.content, self.origin);
    }

    fn unserved(&self, context: &CallContext, route: usize) -> Failure {
        context.unserved_failure(&self.runtime_plan.plan, route)
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
