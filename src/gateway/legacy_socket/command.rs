//! A command frame of a client: one call, from its record to the reply.
//!
//! Used by `rpc::websocket_session`.

use std::mem;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode, Version, request};

use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{FullResponse, acknowledgement, rpc_message, status};
use crate::gateway::failures::memory_exhausted;
use crate::gateway::recording::{self, RequestContent, RequestKind, SampledRequest};
use crate::gateway::request_line::RequestLine;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::response_observer::Observer;
use crate::gateway::rpc_reply::context;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::serve::{IdentifiedRequest, ProtocolCall, TwoWayCall, serve};
use crate::gateway::sessions::SessionLookup;
use crate::gateway::socket_call::{queue_request, record_result, to_failure};
use crate::gateway::translate::{RpcCallParts, RpcSent, parse_reply, send_rpc};
use crate::gateway::worker::Worker;
use crate::telemetry::clock;
use crate::upstream::{LegacySocketUpstream, PendingReply, SocketReply, SocketRequest, Upstream};
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::frame::{self, answer_to_frame, command_to_rpc, failure_to_frame};
use dualgauge_model::outcome::RpcAnswer;
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{DecisionReason, Requester, Stage};
use dualgauge_model::route::Route;
use dualgauge_net::BudgetExhausted;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// The client that sent a frame.
pub(in crate::gateway) struct FrameClient<'a> {
    pub(in crate::gateway) worker: &'a Rc<Worker>,
    /// The head of the handshake, as if each message were posted.
    pub(in crate::gateway) head: &'a request::Parts,
    pub(in crate::gateway) origin: &'a RequestOrigin,
    /// The number of the client's socket.
    pub(in crate::gateway) socket: u64,
}

/// The outcome of serving a frame.
pub(in crate::gateway) enum FrameOutcome {
    /// The reply to the client, if any, and its observer.
    Replied(Option<Bytes>, Option<Observer>),
    /// The frame was forwarded unchanged.
    Forwarded(Box<PassthroughFrame>),
}

/// Serves one frame until it is answered or forwarded; refuses it if there is no memory for it.
pub(in crate::gateway) async fn serve_frame(
    client: &FrameClient<'_>,
    frame: Json,
    text: Bytes,
    reservation: Result<(), BudgetExhausted>,
) -> FrameOutcome {
    let runtime_plan = client.worker.runtime_plan();
    let line = RequestLine {
        method: Method::GET,
        version: Version::HTTP_11,
        ..RequestLine::for_call(client.head, client.origin)
    };
    let mut record = AccessRecord::begin(client.worker, &runtime_plan, Side::Rest, line);
    record.set_old(OldTransport::Socket, 1);
    let mut call = FrameCall {
        worker: client.worker,
        socket: client.socket,
        route: runtime_plan.plan.routes.select_frame(&frame),
        frame,
        text,
        reservation,
        observer: None,
    };
    let request = ClientRequest {
        head: client.head,
        origin: client.origin,
    };
    serve(record, request, &mut call).await
}

/// Formats a failure for the client, if an outcome of the route can express it.
fn failure_frame(
    runtime_plan: &RuntimePlan,
    route: Option<usize>,
    frame: &Json,
    failure: &Failure,
) -> Option<Bytes> {
    let plan = &runtime_plan.plan;
    let route = plan.routes.route(route?);
    let call = route.bindings_with_id_only(frame);
    let context = context(&plan.limits);
    let codes = &plan.face.failure_codes;
    frame_text(failure_to_frame(route, failure, codes, &call, context).answer)
}

fn frame_text(reply: frame::FrameReply) -> Option<Bytes> {
    match reply {
        frame::FrameReply::Frame(frame) => Some(frame.into_bytes()),
        frame::FrameReply::Silence | frame::FrameReply::NoRow => None,
    }
}

/// The outcome of a command, before the record moves into it.
enum Disposition {
    Replied(Option<Bytes>),
    Forwarded(PendingReply, Rc<LegacySocketUpstream>, Duration),
}

/// A frame in the pipeline. It has no second run, because it belongs to the session of its socket.
struct FrameCall<'a> {
    worker: &'a Worker,
    /// The number of the client's socket.
    socket: u64,
    frame: Json,
    /// The text as received.
    text: Bytes,
    /// The result of reserving memory for the frame.
    reservation: Result<(), BudgetExhausted>,
    route: Option<usize>,
    /// The recorder of the call, if it is in the sample of a recording.
    observer: Option<Observer>,
}

impl<'a> TwoWayCall for FrameCall<'a> {
    type Head = &'a request::Parts;
    type Answer = Disposition;

    /// The origin was checked when the WebSocket was accepted.
    fn check_origin(&self, _: &Plan, _: ClientRequest<'_>) -> Result<(), Failure> {
        Ok(())
    }

    async fn translate(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, &'a request::Parts>,
        index: usize,
    ) -> Result<Disposition, Failure> {
        let runtime_plan = record.context.runtime_plan().clone();
        let route = runtime_plan.plan.routes.route(index);
        translate(record, request, route, self.frame.clone()).await
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        request: ClientRequest<'_, &'a request::Parts>,
        _: Option<usize>,
    ) -> Result<Disposition, Failure> {
        self.forward(&record.context, request.origin)
    }
}

impl ProtocolCall for FrameCall<'_> {
    type Response = FrameOutcome;

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
        request: &IdentifiedRequest<'_>,
    ) -> Result<Option<Disposition>, Failure> {
        self.reservation.map_err(memory_exhausted)?;
        let plan = request.plan();
        let reply = plan.locals.frame(&self.frame, context(&plan.limits));
        Ok(reply.map(|reply| {
            record.context.handle_locally(DecisionReason::Local);
            record.set_local_response(200, None);
            Disposition::Replied(frame_text(reply))
        }))
    }

    async fn select_route(
        &mut self,
        _: &mut CallContext,
        _: &IdentifiedRequest<'_>,
    ) -> Result<Option<usize>, Failure> {
        Ok(self.route)
    }

    fn decide(
        &mut self,
        record: &mut AccessRecord,
        request: &IdentifiedRequest<'_>,
        route: Option<usize>,
    ) -> Stage {
        let sessions = SessionLookup {
            table: self.worker.sessions(),
            runtime_plan: request.runtime_plan,
            caller: request.caller,
        };
        let session = Some(sessions.for_socket(self.socket));
        let requester = Requester::new(request.caller, &request.head.headers);
        record.decide(request.plan(), requester.with_session(session), route)
    }

    fn attach_recorder(&mut self, record: &AccessRecord, identified: &IdentifiedRequest<'_>) {
        if let Some(recording) = self.worker.call_recorder().sample() {
            let request = SampledRequest {
                head: identified.head,
                kind: RequestKind::Frame,
                content: RequestContent::Read(&self.text),
                recording,
            };
            self.observer = recording::observer(record, &request, &mut None, None);
        }
    }

    async fn respond(
        &mut self,
        mut record: Box<AccessRecord>,
        result: Result<Disposition, Failure>,
    ) -> FrameOutcome {
        let mut observer = self.observer.take();
        match result {
            Ok(Disposition::Replied(text)) => {
                if let Some(observer) = &mut observer {
                    observer.on_full(&posted_reply(text.clone()), None);
                }
                FrameOutcome::Replied(text, observer)
            }
            // The record continues with the server's reply.
            Ok(Disposition::Forwarded(pending, upstream, limit)) => {
                FrameOutcome::Forwarded(Box::new(PassthroughFrame {
                    record,
                    route: self.route,
                    frame: self.frame.clone(),
                    pending,
                    upstream,
                    limit,
                    observer,
                }))
            }
            Err(failure) => {
                record.set_failure(failure.reason.row().status, &failure);
                let runtime_plan = record.context.runtime_plan();
                let text = failure_frame(runtime_plan, self.route, &self.frame, &failure);
                if let Some(observer) = &mut observer {
                    let full = FullResponse {
                        status: status(failure.reason.row().status),
                        ..posted_reply(text.clone())
                    };
                    observer.on_full(&full, Some(&failure));
                }
                FrameOutcome::Replied(text, observer)
            }
        }
    }
}

/// Returns the reply to a frame as if the frame had been posted.
fn posted_reply(text: Option<Bytes>) -> FullResponse {
    match text {
        Some(text) => rpc_message(text.into()),
        None => acknowledgement(StatusCode::ACCEPTED),
    }
}

impl FrameCall<'_> {
    /// Forwards the frame unchanged over the client's socket at the server. Frames are written in order of arrival.
    fn forward(
        &mut self,
        context: &CallContext,
        origin: &RequestOrigin,
    ) -> Result<Disposition, Failure> {
        let runtime_plan = context.runtime_plan();
        let upstream = match self.route {
            Some(_) => context.upstream(Side::Rest),
            None => runtime_plan.default_frames_upstream(),
        };
        let upstream = upstream.and_then(Upstream::frames);
        let upstream = upstream
            .ok_or_else(|| rejections::no_frame(&self.frame))?
            .clone();
        let route = self
            .route
            .map(|index| runtime_plan.plan.routes.route(index));
        let route_timeout = route.and_then(|route| route.timeout);
        let limit = route_timeout.unwrap_or(upstream.plan().timeout);
        let request = SocketRequest::Passed {
            frame: self.frame.clone(),
            text: mem::take(&mut self.text),
        };
        let pending = queue_request(context, origin, &upstream, request, limit)?;
        Ok(Disposition::Forwarded(pending, upstream, limit))
    }
}

/// Translates a command, and sends it to the RPC upstream.
async fn translate(
    record: &mut AccessRecord,
    request: ClientRequest<'_>,
    route: &Route,
    frame: Json,
) -> Result<Disposition, Failure> {
    let context = context(&record.context.runtime_plan().plan.limits);
    let call = command_to_rpc(route, frame, context).map_err(rejections::bind_failure)?;
    record.add_dropped(call.dropped);
    let sent = RpcCallParts {
        method: &call.method,
        params: call.params,
        headers: call.headers,
    };
    let reply = match send_rpc(record, route, sent, request).await? {
        RpcSent::Reply(reply) => reply,
        RpcSent::Acknowledged => {
            record.set_response(202);
            return Ok(Disposition::Replied(None));
        }
        // Frame routes accept no stream.
        RpcSent::Stream(..) => return Err(rejections::event_stream(200)),
    };
    let (reply, code) = parse_reply(&record.context, route, &reply)?;
    let translated = answer_to_frame(route, reply, &call.bindings, context);
    record.add_dropped(translated.dropped);
    if translated.answer == frame::FrameReply::NoRow {
        let message = "no outcome of the route maps the server's answer to a frame";
        let cause = match code {
            Some(code) => format!("an error with the code {code}"),
            None => "a result".to_owned(),
        };
        return Err(Failure::new(Reason::UpstreamNotProtocol, message).because(cause));
    }
    record_result(record, code);
    Ok(Disposition::Replied(frame_text(translated.answer)))
}

/// A forwarded frame. Dropping it means that the client has left.
pub(in crate::gateway) struct PassthroughFrame {
    record: Box<AccessRecord>,
    route: Option<usize>,
    frame: Json,
    pending: PendingReply,
    upstream: Rc<LegacySocketUpstream>,
    limit: Duration,
    /// The recorder of the call. The reply of the server is not recorded: it reaches the client as a server message.
    observer: Option<Observer>,
}

impl PassthroughFrame {
    /// Records the outcome. The server's reply reaches the client as a server message; this returns a message only if
    /// the frame was never sent.
    pub(in crate::gateway) async fn await_reply(self) -> Option<Bytes> {
        let (mut record, mut observer) = (self.record, self.observer);
        let since = clock::now();
        let reply = self.pending.answer().await?;
        record.add_upstream_time(since);
        let mut observe = |full: &FullResponse, failure: Option<&Failure>| {
            if let Some(mut observer) = observer.take() {
                observer.on_full(full, failure);
                observer.on_sent();
            }
        };
        let error = match reply {
            Ok(SocketReply::Sent) => {
                record.set_response(202);
                observe(&posted_reply(None), None);
                return None;
            }
            Ok(SocketReply::Answer(translated)) => {
                observe(&acknowledgement(StatusCode::OK), None);
                let code = match translated.answer {
                    RpcAnswer::Result(_) => None,
                    RpcAnswer::Error(error) => Some(error.code),
                };
                record_result(&mut record, code);
                return None;
            }
            Err(error) => error,
        };
        let failure = to_failure(error, self.upstream.plan(), self.limit);
        record.set_failure(failure.reason.row().status, &failure);
        observe(
            &acknowledgement(status(failure.reason.row().status)),
            Some(&failure),
        );
        let was_not_sent = failure.reason == Reason::UpstreamBusy;
        let frame = was_not_sent.then(|| {
            failure_frame(
                record.context.runtime_plan(),
                self.route,
                &self.frame,
                &failure,
            )
        });
        frame.flatten()
    }
}
