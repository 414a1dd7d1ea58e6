//! A command frame of a client: one call, from its record to the reply.
//!
//! Used by `legacy_socket::call` and `rpc::websocket_session`.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Version, request};

use super::call::{queue_request, record_result, to_failure};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::failures::memory_exhausted;
use crate::gateway::identity::identify;
use crate::gateway::protocol_call::ProtocolCall;
use crate::gateway::request_line::RequestLine;
use crate::gateway::request_origin::{ClientRequest, RequestOrigin};
use crate::gateway::rpc_reply::context;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::serve::{ChosenWay, choose_way};
use crate::gateway::sessions::SessionLookup;
use crate::gateway::translate::{RpcCallParts, RpcSent, parse_reply, send_rpc};
use crate::gateway::worker::Worker;
use crate::telemetry::clock;
use crate::upstream::{LegacySocketUpstream, PendingReply, SocketReply, SocketRequest, Upstream};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::frame::{self, answer_to_frame, command_to_rpc, failure_to_frame};
use dualgauge_model::outcome::RpcAnswer;
use dualgauge_model::rejections;
use dualgauge_model::rollout::{Caller, DecisionReason, Requester, Stage};
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

/// A frame to serve.
struct FrameInfo<'a> {
    frame: Json,
    /// The text as received.
    text: Bytes,
    /// The result of reserving memory for the frame.
    reservation: Result<(), BudgetExhausted>,
    route: Option<(usize, &'a Route)>,
}

/// The outcome of serving a frame.
pub(in crate::gateway) enum FrameOutcome {
    /// The reply to the client, if any.
    Replied(Option<Bytes>),
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
    let routes = &runtime_plan.plan.routes;
    let selected = routes.select_frame(&frame);
    let info = FrameInfo {
        frame: frame.clone(),
        text,
        reservation,
        route: selected.map(|index| (index, routes.route(index))),
    };
    match serve_command(&mut record, client, info, &runtime_plan).await {
        Ok(Disposition::Replied(text)) => FrameOutcome::Replied(text),
        // The record continues with the server's reply.
        Ok(Disposition::Forwarded(pending, upstream, limit)) => {
            FrameOutcome::Forwarded(Box::new(PassthroughFrame {
                record,
                route: selected,
                frame,
                pending,
                upstream,
                limit,
            }))
        }
        Err(failure) => {
            record.set_failure(failure.reason.row().status, &failure);
            FrameOutcome::Replied(failure_frame(&runtime_plan, selected, &frame, &failure))
        }
    }
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

async fn serve_command(
    record: &mut AccessRecord,
    client: &FrameClient<'_>,
    info: FrameInfo<'_>,
    runtime_plan: &RuntimePlan,
) -> Result<Disposition, Failure> {
    let identity = identify(&mut record.context, &client.head.headers, client.origin);
    let mut call = FrameCall {
        client,
        info: &info,
        runtime_plan,
        caller: identity.caller(&runtime_plan.plan.rollout.clients),
    };
    match choose_way(record, &mut call).await? {
        ChosenWay::Local(text) => Ok(Disposition::Replied(text)),
        ChosenWay::Translate(index) => {
            let route = runtime_plan.plan.routes.route(index);
            translate(record, client, route, info.frame).await
        }
        ChosenWay::PassThrough(_) => forward(record, client, info).await,
    }
}

/// A frame in the pipeline.
struct FrameCall<'a> {
    client: &'a FrameClient<'a>,
    info: &'a FrameInfo<'a>,
    runtime_plan: &'a RuntimePlan,
    caller: Caller<'a>,
}

impl ProtocolCall for FrameCall<'_> {
    type Reply = Option<Bytes>;

    fn answer_locally(
        &mut self,
        record: &mut AccessRecord,
    ) -> Result<Option<Option<Bytes>>, Failure> {
        self.info.reservation.map_err(memory_exhausted)?;
        let plan = &self.runtime_plan.plan;
        let reply = plan.locals.frame(&self.info.frame, context(&plan.limits));
        Ok(reply.map(|reply| {
            record.context.handle_locally(DecisionReason::Local);
            record.set_local_response(200, None);
            frame_text(reply)
        }))
    }

    async fn select_route(&mut self, _: &mut CallContext) -> Result<Option<usize>, Failure> {
        Ok(self.info.route.map(|(index, _)| index))
    }

    fn decide(&mut self, context: &mut CallContext, route: Option<usize>) -> Stage {
        let sessions = SessionLookup {
            table: self.client.worker.sessions(),
            runtime_plan: self.runtime_plan,
            caller: self.caller,
        };
        let session = Some(sessions.for_socket(self.client.socket));
        let requester =
            Requester::new(self.caller, &self.client.head.headers).with_session(session);
        context.decide(&self.runtime_plan.plan, requester, route)
    }

    /// The origin was checked when the WebSocket was accepted.
    fn check_origin(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Frames have no second run: they belong to the session of their socket.
    fn attach_shadow(&mut self, _: &AccessRecord, _: Stage) {}

    fn unserved(&self, context: &CallContext, route: usize) -> Failure {
        context.unserved_failure(&self.runtime_plan.plan, route)
    }
}

/// Translates a command, and sends it to the RPC upstream.
async fn translate(
    record: &mut AccessRecord,
    client: &FrameClient<'_>,
    route: &Route,
    frame: Json,
) -> Result<Disposition, Failure> {
    let context = context(&record.context.runtime_plan().plan.limits);
    let call = command_to_rpc(route, frame, context).map_err(rejections::bind_failure)?;
    record.add_dropped(call.dropped);
    let request = ClientRequest {
        head: client.head,
        origin: client.origin,
    };
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
    let (reply, code) = parse_reply(record, route, &reply)?;
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

/// Forwards a frame unchanged over the client's socket at the server. Frames are written in order of arrival.
async fn forward(
    record: &mut AccessRecord,
    client: &FrameClient<'_>,
    info: FrameInfo<'_>,
) -> Result<Disposition, Failure> {
    let index = info.route.map(|(index, _)| index);
    let runtime_plan = record.context.runtime_plan().clone();
    let upstream = match index {
        Some(_) => record.context.upstream(Side::Rest),
        None => runtime_plan.default_frames_upstream(),
    };
    let upstream = upstream.and_then(Upstream::frames);
    let upstream = upstream
        .ok_or_else(|| rejections::no_frame(&info.frame))?
        .clone();
    let route_timeout = info.route.and_then(|(_, route)| route.timeout);
    let limit = route_timeout.unwrap_or(upstream.plan().timeout);
    let request = SocketRequest::Passed {
        frame: info.frame,
        text: info.text,
    };
    let pending = queue_request(&record.context, client.origin, &upstream, request, limit)?;
    Ok(Disposition::Forwarded(pending, upstream, limit))
}

/// A forwarded frame. Dropping it means that the client has left.
pub(in crate::gateway) struct PassthroughFrame {
    record: Box<AccessRecord>,
    route: Option<usize>,
    frame: Json,
    pending: PendingReply,
    upstream: Rc<LegacySocketUpstream>,
    limit: Duration,
}

impl PassthroughFrame {
    /// Records the outcome. The server's reply reaches the client as a server message; this returns a message only if
    /// the frame was never sent.
    pub(in crate::gateway) async fn await_reply(self) -> Option<Bytes> {
        let mut record = self.record;
        let since = clock::now();
        let reply = self.pending.answer().await?;
        record.add_upstream_time(since);
        let error = match reply {
            Ok(SocketReply::Sent) => {
                record.set_response(202);
                return None;
            }
            Ok(SocketReply::Answer(translated)) => {
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
