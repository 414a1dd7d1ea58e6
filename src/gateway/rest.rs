//! The REST side: one call per HTTP request. Used by `gateway` and `rpc`.

mod event_socket;
mod metadata;
mod old_batch;
pub(super) mod recorded;
mod replay;

use std::mem;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderValue, Response, request};

use super::access_record::AccessRecord;
use super::call_context::CallContext;
use super::call_response::CallResponse;
use super::old_failure::OldMessage;
use super::passthrough::{InterimResponses, PassthroughRequest, forward};
use super::recording::{self, RequestContent, RequestKind, SampledRequest};
use super::request_body::{self, BodyHead, RequestBody};
use super::request_origin::{ClientRequest, RequestOrigin};
use super::response::{self, render_annotated};
use super::response_body::ResponseBody;
use super::response_observer::Observer;
use super::runtime_plan::RuntimePlan;
use super::serve::{IdentifiedRequest, IncomingRequest, ProtocolCall, TwoWayCall, serve};
use super::sessions::SessionLookup;
use super::{agent_card, local_reply, translate};
use crate::telemetry::recorder::ActiveRecording;
use crate::upstream::HttpUpstream;
use dualgauge_model::agent_card::requested_card;
use dualgauge_model::dialect::{self, OldBatch, OldTransport};
use dualgauge_model::failure::Failure;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Requester, Stage};
use dualgauge_model::routing::{self, RequestHead, RouteMatch};
use dualgauge_net::pinned;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

use event_socket::EventSocket;
use metadata::MetadataCall;
use replay::ShadowCall;

/// Serves one REST call.
pub(super) async fn serve_request(request: IncomingRequest) -> Response<ResponseBody> {
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
    record: Box<AccessRecord>,
    head: Box<request::Parts>,
    content: RequestBody,
    origin: RequestOrigin,
) -> Response<ResponseBody> {
    let runtime_plan = record.context.runtime_plan().clone();
    let plan = &runtime_plan.plan;
    let cors_origin = response::cors_origin(plan, &head.headers);
    let origin = &origin;
    if let Some(metadata) = routing::metadata_request(plan, RequestHead::new(&head)) {
        let mut call = MetadataCall {
            metadata,
            cors_origin,
        };
        let request = ClientRequest {
            head: &*head,
            origin,
        };
        // Boxed, because few calls need it: inline, it takes memory in the future of every call.
        return pinned(|| serve(record, request, &mut call)).await;
    }
    let old = OldMessage::new(plan, &head).map(Box::new);
    let from_query = match old {
        Some(_) if content.is_empty() && !record.is_old() => {
            dialect::message_in_query(plan, RequestHead::new(&head))
        }
        Some(_) | None => None,
    };
    let (content, passed) = match from_query {
        Some(message) => (RequestBody::Read(message), Some(Box::new(content))),
        None => (content, None),
    };
    let mut call = RestCall {
        content,
        passed,
        observer: None,
        socket: None,
        is_in_batch: record.is_old(),
        batch: None,
        old,
        origin,
        cors_origin,
    };
    serve(record, ClientRequest { head, origin }, &mut call).await
}

/// The result of sending a call.
enum Served {
    Response(CallResponse),
    /// The messages of a batch of an old dialect, each of which is a call of its own.
    Split(Box<request::Parts>, Vec<Json>),
}

/// A REST call in the pipeline.
struct RestCall<'a> {
    /// The body, until it is sent.
    content: RequestBody,
    /// The content that passes through, if `content` is a message from the query. Boxed, because few calls have one.
    passed: Option<Box<RequestBody>>,
    /// The receiver of the control's response, if the call has a candidate.
    observer: Option<Observer>,
    /// The socket that gets the events of the response, if the client asks for one.
    socket: Option<Box<EventSocket>>,
    /// True for a message of a split batch of an old dialect, which is no batch itself.
    is_in_batch: bool,
    /// The batch of an old dialect, if the call is one.
    batch: Option<OldBatch>,
    /// The message of a client in an old dialect. Boxed, because few calls have one.
    old: Option<Box<OldMessage>>,
    origin: &'a RequestOrigin,
    cors_origin: Option<HeaderValue>,
}

impl RestCall<'_> {
    fn take_content(&mut self) -> RequestBody {
        mem::replace(&mut self.content, RequestBody::Read(Bytes::new()))
    }

    /// Reads a body that is needed to match the route.
    async fn read_body(&mut self, context: &mut CallContext) -> Result<Bytes, Failure> {
        let body = match self.take_content() {
            RequestBody::Streaming(body, _) => request_body::read_timed(context, body).await?,
            RequestBody::Read(body) => body,
        };
        self.content = RequestBody::Read(body.clone());
        Ok(body)
    }

    /// Records the call, with a copy of its body if that still arrives.
    fn attach_sampled(
        &mut self,
        record: &AccessRecord,
        request: &IdentifiedRequest<'_>,
        recording: ActiveRecording,
    ) {
        let (content, mut copy) = match &self.content {
            content if content.is_empty() || self.passed.is_some() => (RequestContent::Empty, None),
            RequestBody::Read(whole) => (RequestContent::Read(whole), None),
            RequestBody::Streaming(_, copy) => (RequestContent::Arriving, copy.clone()),
        };
        let sampled = SampledRequest {
            head: request.head,
            kind: RequestKind::Http,
            content,
            recording,
        };
        self.observer = recording::observer(record, &sampled, &mut copy, self.observer.take());
        self.content = self.take_content().with_copy(copy);
    }

    /// Keeps the body of a message of an old dialect. `failing` is the route whose outcomes write a failure of the call.
    async fn keep_old_body(
        &mut self,
        context: &mut CallContext,
        failing: Option<usize>,
    ) -> Result<(), Failure> {
        let content = self.take_content();
        if let Some(old) = &mut self.old {
            self.content = old.keep_body(context, content, failing).await?;
        }
        Ok(())
    }
}

impl TwoWayCall for RestCall<'_> {
    type Head = Box<request::Parts>;
    type Answer = Served;

    async fn translate(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        index: usize,
    ) -> Result<Served, Failure> {
        if self.old.is_some() {
            // Boxed, because few calls need it: inline, it takes memory in the future of every call.
            pinned(|| self.keep_old_body(&mut record.context, Some(index))).await?;
        }
        let content = self.take_content();
        let ClientRequest { mut head, origin } = request;
        let routes = &record.context.runtime_plan().plan.routes;
        let route = routes.route(index);
        if route.subscription.is_some() {
            self.socket = EventSocket::take(&mut head, &record.context, route)?.map(Box::new);
        }
        let request = ClientRequest {
            head: &*head,
            origin,
        };
        let response = translate::serve_rest_call(record, index, request, content);
        response.await.map(Served::Response)
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, Box<request::Parts>>,
        index: Option<usize>,
    ) -> Result<Served, Failure> {
        let ClientRequest { mut head, origin } = request;
        let server = match self.batch.take() {
            Some(OldBatch::Split(messages)) => return Ok(Served::Split(head, messages)),
            Some(OldBatch::Whole(whole)) => {
                old_batch::note_whole(record, &whole);
                whole.server
            }
            None => index,
        };
        if self.old.is_some() {
            // Boxed, because few calls need it: inline, it takes memory in the future of every call.
            pinned(|| self.keep_old_body(&mut record.context, None)).await?;
        }
        let content = match self.passed.take() {
            Some(content) => *content,
            None => self.take_content(),
        };
        let runtime_plan = record.context.runtime_plan().clone();
        let plan = &runtime_plan.plan;
        let upstream = passthrough_upstream(&runtime_plan, server, RequestHead::new(&head));
        let upstream = upstream
            .ok_or_else(|| rejections::unrouted(plan.unrouted, &head.method, head.uri.path()))?;
        if let Some(card) = requested_card(plan, RequestHead::new(&head)) {
            agent_card::ask_for_whole(&mut head);
            let call = PassthroughRequest::unchanged(head, content);
            // Boxed, because few calls need it: inline, it takes memory in the future of every call.
            let response =
                pinned(|| agent_card::pass_through(record, upstream, call, origin, card)).await;
            return response.map(Served::Response);
        }
        let mut call = PassthroughRequest::unchanged(head, content);
        if self.is_in_batch {
            call.interims = InterimResponses::Dropped;
        }
        let response = forward(record, upstream, call, origin).await;
        response.map(Served::Response)
    }
}

impl ProtocolCall for RestCall<'_> {
    type Response = Response<ResponseBody>;

    const AWAITS_BODY: bool = true;

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
        request: &IdentifiedRequest<'_>,
    ) -> Result<Option<Served>, Failure> {
        let (plan, head) = (request.plan(), request.head());
        if self.old.is_some() && !record.is_old() {
            record.set_old(OldTransport::Http, 1);
        }
        let local = local_reply::answer_rest(record, plan, request.client_request())?;
        let local =
            local.or_else(|| local_reply::answer_preflight(record, plan, request.caller, head));
        Ok(local.map(Served::Response))
    }

    async fn select_route(
        &mut self,
        context: &mut CallContext,
        request: &IdentifiedRequest<'_>,
    ) -> Result<Option<usize>, Failure> {
        let (plan, head) = (request.plan(), request.head());
        if self.old.is_some() && !self.is_in_batch {
            // Boxed, because few calls need it: inline, it takes memory in the future of every call.
            self.batch = pinned(|| self.read_batch(context, request)).await?;
            if self.batch.is_some() {
                return Ok(None);
            }
        }
        let requester = Requester::new(request.caller, head.headers);
        match routing::match_route(plan, head)? {
            RouteMatch::Route(route) => Ok(Some(route)),
            RouteMatch::Unrouted => Ok(None),
            RouteMatch::Near(nearby) => {
                routing::pass_near(plan, requester, &nearby, context.wall_time())?;
                Ok(None)
            }
            RouteMatch::ByBody(group) => {
                let body = self.read_body(context).await?;
                let worker = context.worker();
                let body_head = BodyHead {
                    headers: head.headers,
                    content: plan.routes.body_content(group),
                };
                let json = request_body::read_json(body_head, body, &plan.limits, worker, None);
                let json = json.await.ok().flatten();
                routing::by_body(plan, group, head, json.as_ref())
            }
        }
    }

    fn decide(
        &mut self,
        record: &mut AccessRecord,
        request: &IdentifiedRequest<'_>,
        route: Option<usize>,
    ) -> Stage {
        let requester = requester(&record.context, request, route);
        record.decide(request.plan(), requester, route)
    }

    fn attach_shadow(
        &mut self,
        record: &AccessRecord,
        request: &IdentifiedRequest<'_>,
        stage: Stage,
    ) {
        // Most calls have no candidate.
        if stage.candidate().is_some() {
            let ShadowCall { candidate, copy } =
                replay::shadow_call(record, request, stage, &self.content);
            self.observer = candidate;
            self.content = self.take_content().with_copy(copy);
        }
    }

    fn attach_recorder(&mut self, record: &AccessRecord, request: &IdentifiedRequest<'_>) {
        // Each message of a batch that is split is recorded as a call of its own.
        if let Some(OldBatch::Split(_)) = self.batch {
            return;
        }
        if let Some(recording) = record.context.worker().call_recorder().sample() {
            self.attach_sampled(record, request, recording);
        }
    }

    async fn prepare_refusal(&mut self, context: &mut CallContext) {
        if self.old.is_some() {
            let failing = context.route();
            // The failure of the call is the one to report, not that of its body.
            let _ = pinned(|| self.keep_old_body(context, failing)).await;
        }
    }

    async fn respond(
        &mut self,
        mut record: Box<AccessRecord>,
        result: Result<Served, Failure>,
    ) -> Response<ResponseBody> {
        let result = match (result, self.old.take()) {
            (Ok(Served::Split(head, messages)), _) => {
                let (head, origin) = (&*head, self.origin);
                let client = ClientRequest { head, origin };
                // Boxed, because few calls need it: inline, it takes memory in the future of every call.
                return pinned(|| old_batch::serve(record, client, messages)).await;
            }
            (Ok(Served::Response(response)), _) => Ok(response),
            (Err(failure), Some(old)) => pinned(|| old.render(&mut record, failure)).await,
            (Err(failure), None) => Err(failure),
        };
        let socket = self.socket.take();
        let socket = socket.map(|socket| (socket, record.context.worker().clone()));
        let (observer, cors_origin) = (self.observer.take(), self.cors_origin.as_ref());
        let response = render_annotated(record, result, observer, cors_origin);
        match socket {
            Some((socket, worker)) => {
                socket.open(response, &worker, self.origin.peer_in_limits().cloned())
            }
            None => response,
        }
    }
}

/// Returns the sender of a call of a route, with its session.
fn requester<'a>(
    context: &CallContext,
    request: &IdentifiedRequest<'a>,
    route: Option<usize>,
) -> Requester<'a> {
    let sessions = SessionLookup {
        table: context.worker().sessions(),
        runtime_plan: request.runtime_plan,
        caller: request.caller,
    };
    let session = sessions.for_rest(request.head(), route);
    Requester::new(request.caller, &request.head.headers).with_session(session)
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
