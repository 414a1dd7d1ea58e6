//! A command frame of a client: one call, from its record to the reply.
//!
//! Used by `rpc::websocket_session`.

use std::mem;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Method, StatusCode, Version, request};

use super::replay::FrameReplay;
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::call_response::{FullResponse, status};
use crate::gateway::failures::memory_exhausted;
use crate::gateway::recording::{self, RequestContent, RequestKind, SampledRequest};
use crate::gateway::request_line::RequestLine;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::response_observer::Observer;
use crate::gateway::rpc_reply::context;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::serve::{IdentifiedRequest, ProtocolCall, TwoWayCall, serve};
use crate::gateway::sessions::SessionLookup;
use crate::gateway::shadow;
use crate::gateway::socket_call::{queue_request, record_result, to_failure};
use crate::gateway::translate::{RpcCallParts, RpcSent, parse_reply, send_rpc};
use crate::gateway::worker::Worker;
use crate::telemetry::clock;
use crate::upstream::{LegacySocketUpstream, PendingReply, SocketReply, SocketRequest, Upstream};
use dualgauge_model::compare::Skip;
use dualgauge_model::dialect::{self, OldRequest, OldTransport};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::frame::{self, answer_to_frame, command_to_rpc};
use dualgauge_model::headers::JSON;
use dualgauge_model::outcome::RpcAnswer;
use dualgauge_model::plan::Plan;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{DecisionReason, Requester, Stage};
use dualgauge_model::route::Route;
use dualgauge_net::BudgetExhausted;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;
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
    /// The frame was answered.
    Replied(FrameEnd),
    /// The frame was forwarded unchanged.
    Forwarded(Box<PassthroughFrame>),
}

/// The end of a call.
#[derive(Default)]
pub(in crate::gateway) struct FrameEnd {
    /// The frame that the client still has to get.
    pub(in crate::gateway) text: Option<Bytes>,
    /// The observer of the response.
    pub(in crate::gateway) observer: Option<Observer>,
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
        message: FrameMessage {
            socket: client.socket,
            route: runtime_plan.plan.routes.select_frame(&frame),
            frame,
            text,
        },
        reservation,
        observer: None,
    };
    let request = ClientRequest {
        head: client.head,
        origin: client.origin,
    };
    serve(record, request, &mut call).await
}

/// A message of a client.
#[derive(Clone)]
pub(super) struct FrameMessage {
    /// The number of the client's socket.
    socket: u64,
    frame: Json,
    /// The text as received.
    pub(super) text: Bytes,
    route: Option<usize>,
}

impl FrameMessage {
    /// Formats a failure for the client, if an outcome of the route can express it.
    pub(super) fn failure(&self, runtime_plan: &RuntimePlan, failure: &Failure) -> Option<Bytes> {
        let plan = &runtime_plan.plan;
        let route = plan.routes.route(self.route?);
        let request = OldRequest::of_frame(&self.frame);
        let codes = &plan.face.failure_codes;
        let answer = dialect::failure(route, request, failure, codes, context(&plan.limits))?;
        (!answer.body.is_empty()).then(|| answer.body.into_bytes())
    }
}

fn frame_text(reply: frame::FrameReply) -> Option<Bytes> {
    match reply {
        frame::FrameReply::Frame(frame) => Some(frame.into_bytes()),
        frame::FrameReply::Silence | frame::FrameReply::NoRow => None,
    }
}

/// Returns the response to a frame, in the form in which responses are compared and recorded: silence has no content.
pub(super) fn full_response(frame: Option<Bytes>, failure: Option<&Failure>) -> FullResponse {
    let of_failure = failure.map(|failure| failure.reason.row().status);
    FullResponse {
        status: match (of_failure.filter(|status| *status >= 500), &frame) {
            // A refused call has a frame like any other.
            (Some(failed), _) => status(failed),
            (None, Some(_)) => StatusCode::OK,
            (None, None) => StatusCode::NO_CONTENT,
        },
        headers: frame.iter().map(|_| (CONTENT_TYPE, JSON)).collect(),
        body: frame.map(Rope::from).unwrap_or_default(),
    }
}

/// Shows the response to its observer, if it has one.
fn observe(observer: &mut Option<Observer>, frame: &Option<Bytes>, failure: Option<&Failure>) {
    if let Some(observer) = observer {
        observer.on_full(&full_response(frame.clone(), failure), failure);
    }
}

/// The outcome of a command, before the record moves into it.
pub(super) enum Disposition {
    Replied(Option<Bytes>),
    Forwarded(ForwardedFrame),
}

/// A frame that waits for its answer from the server.
pub(super) struct ForwardedFrame {
    pending: PendingReply,
    upstream: Rc<LegacySocketUpstream>,
    limit: Duration,
}

impl ForwardedFrame {
    /// Waits for the answer, and records it; returns `None` if the client's connection has ended.
    pub(super) async fn answer(
        self,
        record: &mut AccessRecord,
    ) -> Option<Result<SocketReply, Failure>> {
        let since = clock::now();
        let reply = self.pending.answer().await?;
        record.add_upstream_time(since);
        match &reply {
            Ok(SocketReply::Sent) => record.set_response(202),
            Ok(SocketReply::Answer(translated, _)) => {
                let code = match &translated.answer {
                    RpcAnswer::Result(_) => None,
                    RpcAnswer::Error(error) => Some(error.code),
                };
                record_result(record, code);
            }
            Err(_) => {}
        }
        Some(reply.map_err(|error| to_failure(error, self.upstream.plan(), self.limit)))
    }
}

/// A frame in the pipeline.
pub(super) struct FrameCall<'a> {
    pub(super) worker: &'a Worker,
    pub(super) message: FrameMessage,
    /// The result of reserving memory for the frame.
    pub(super) reservation: Result<(), BudgetExhausted>,
    /// The receiver of the response, if the call has a candidate or is in the sample of a recording.
    pub(super) observer: Option<Observer>,
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
        translate(record, request, route, self.message.frame.clone()).await
    }

    async fn pass_through(
        &mut self,
        record: &mut AccessRecord,
        _: ClientRequest<'_, &'a request::Parts>,
        _: Option<usize>,
    ) -> Result<Disposition, Failure> {
        self.forward(&record.context)
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
        let reply = plan
            .locals
            .frame(&self.message.frame, context(&plan.limits));
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
        Ok(self.message.route)
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
        let session = Some(sessions.for_socket(self.message.socket));
        let requester = Requester::new(request.caller, &request.head.headers);
        record.decide(request.plan(), requester.with_session(session), route)
    }

    fn attach_recorder(&mut self, record: &AccessRecord, identified: &IdentifiedRequest<'_>) {
        if let Some(recording) = self.worker.call_recorder().sample() {
            let request = SampledRequest {
                head: identified.head,
                kind: RequestKind::Frame,
                content: RequestContent::Read(&self.message.text),
                recording,
            };
            self.observer = recording::observer(record, &request, &mut None, self.observer.take());
        }
    }

    fn attach_shadow(
        &mut self,
        record: &AccessRecord,
        request: &IdentifiedRequest<'_>,
        stage: Stage,
    ) {
        // Most calls have no candidate.
        if stage.candidate().is_some() && shadow::may_attach(&record.context, stage, Ok(())) {
            let replay = FrameReplay::new(
                self,
                request.client_request(),
                record.context.runtime_plan(),
            );
            self.observer = shadow::candidate(record, Box::new(replay));
        }
    }

    async fn respond(
        &mut self,
        mut record: Box<AccessRecord>,
        result: Result<Disposition, Failure>,
    ) -> FrameOutcome {
        let mut observer = self.observer.take();
        let text = match result {
            Ok(Disposition::Replied(text)) => {
                observe(&mut observer, &text, None);
                text
            }
            // The record continues with the server's reply.
            Ok(Disposition::Forwarded(forwarded)) => {
                return FrameOutcome::Forwarded(Box::new(PassthroughFrame {
                    record,
                    message: self.message.clone(),
                    forwarded,
                    observer,
                }));
            }
            Err(failure) => {
                record.set_failure(failure.reason.row().status, &failure);
                let text = self
                    .message
                    .failure(record.context.runtime_plan(), &failure);
                observe(&mut observer, &text, Some(&failure));
                text
            }
        };
        FrameOutcome::Replied(FrameEnd { text, observer })
    }
}

impl FrameCall<'_> {
    /// Forwards the frame unchanged over the client's socket at the server. Frames are written in order of arrival.
    fn forward(&mut self, context: &CallContext) -> Result<Disposition, Failure> {
        let runtime_plan = context.runtime_plan();
        let message = &mut self.message;
        let upstream = match message.route {
            Some(_) => context.upstream(Side::Rest),
            None => runtime_plan.default_frames_upstream(),
        };
        let upstream = upstream.and_then(Upstream::frames);
        let upstream = upstream
            .ok_or_else(|| rejections::no_frame(&message.frame))?
            .clone();
        let routes = &runtime_plan.plan.routes;
        let route = message.route.map(|index| routes.route(index));
        let route_timeout = route.and_then(|route| route.timeout);
        let limit = route_timeout.unwrap_or(upstream.plan().timeout);
        let request = SocketRequest::Passed {
            frame: message.frame.clone(),
            text: mem::take(&mut message.text),
        };
        let pending = queue_request(context, &upstream, request, limit)?;
        Ok(Disposition::Forwarded(ForwardedFrame {
            pending,
            upstream,
            limit,
        }))
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
    message: FrameMessage,
    forwarded: ForwardedFrame,
    observer: Option<Observer>,
}

impl PassthroughFrame {
    /// Records the outcome. The server's reply reaches the client as a server message; this returns a frame only if that
    /// of the client was never sent.
    pub(in crate::gateway) async fn await_reply(self) -> FrameEnd {
        let mut record = self.record;
        let mut observer = self.observer;
        let Some(reply) = self.forwarded.answer(&mut record).await else {
            return FrameEnd::default();
        };
        let failure = match reply {
            Ok(SocketReply::Answer(_, frame)) => {
                observe(&mut observer, &frame, None);
                return FrameEnd {
                    text: None,
                    observer,
                };
            }
            Ok(SocketReply::Sent) => {
                // No frame is known to answer this one.
                if let Some(observer) = observer {
                    observer.skip(Skip::Stream);
                }
                return FrameEnd::default();
            }
            Err(failure) => failure,
        };
        record.set_failure(failure.reason.row().status, &failure);
        let was_not_sent = failure.reason == Reason::UpstreamBusy;
        let runtime_plan = record.context.runtime_plan();
        let frame = was_not_sent.then(|| self.message.failure(runtime_plan, &failure));
        let text = frame.flatten();
        observe(&mut observer, &text, Some(&failure));
        FrameEnd { text, observer }
    }
}
