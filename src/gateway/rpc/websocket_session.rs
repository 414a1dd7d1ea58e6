//! A WebSocket client that sends JSON-RPC or legacy frames: each message is served as if it were posted.
//!
//! If the plan has legacy frames, the protocol is detected per message, and events use the form of the first
//! recognised one. Calls run concurrently and are answered as they finish; a server message sent before an answer is
//! delivered before it. When the client leaves, its work is dropped. On shutdown no further message is served, and the
//! connection closes after the last answer, including that of a forwarded frame.
//!
//! Used by `rpc`.

mod call;
mod listening;

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION};
use http::{HeaderValue, Method, Response, request};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, watch};
use tokio::time::sleep_until;

use super::client_channel::ClientChannel;
use super::in_flight::{InFlight, InboundMessage, OutboundMessage, ServeEnd, SessionLimits};
use super::server_messages::{self, ServerMessage, ServerMessages, close_reason};
use crate::gateway::access_record::AccessRecord;
use crate::gateway::call_context::CallContext;
use crate::gateway::cancellation::CancelScope;
use crate::gateway::headers::{strip_hop_by_hop, strip_websocket_handshake};
use crate::gateway::identity::identify;
use crate::gateway::legacy_socket::{
    FrameClient, FrameOutcome, ServerEvent, format_event, serve_frame,
};
use crate::gateway::request_origin::RequestOrigin;
use crate::gateway::response;
use crate::gateway::response_body::ResponseBody;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::socket_call::socket_context;
use crate::gateway::worker::Worker;
use crate::upstream::link::Notification;
use crate::upstream::{Activity, IdleAction, IdleTimer, LegacyServerMessage, Upstream};
use dualgauge_model::event::EventForm;
use dualgauge_model::failure::Failure;
use dualgauge_model::frame::{SocketMessage, Undelivered};
use dualgauge_model::mcp::{ClientInfo, InputCapabilities};
use dualgauge_model::pending::Heartbeat;
use dualgauge_model::plan::{ClientSocketPlan, SocketProtocol};
use dualgauge_model::routing::{self, RequestHead};
use dualgauge_model::websocket;
use dualgauge_net::{CloseReason, MessageEvent, MessageStream, accept_key};
use dualgauge_patterns::json::unmarked;
use dualgauge_patterns::side::Side;

/// The maximum number of messages read ahead of those being served.
const READ_AHEAD: usize = 64;

/// Accepts a WebSocket handshake, and serves the connection in a task of its own.
pub(super) fn accept(
    mut request_record: Box<AccessRecord>,
    mut head: Box<request::Parts>,
    origin: RequestOrigin,
    sockets: ClientSocketPlan,
) -> Response<ResponseBody> {
    let runtime_plan = request_record.context.runtime_plan().clone();
    identify(&mut request_record, &head.headers, &origin);
    let response = match accept_handshake(&request_record.context, &runtime_plan, &origin, &head) {
        Ok(response) => response,
        Err(failure) => {
            let mut response = response::render_failure(request_record, failure, None);
            let version = HeaderValue::from_static(websocket::VERSION);
            response
                .headers_mut()
                .insert(SEC_WEBSOCKET_VERSION, version);
            return response;
        }
    };
    let upgrade = head.extensions.remove::<OnUpgrade>();
    let worker = request_record.context.worker().clone();
    let peer = origin.peer_in_limits().cloned();
    // Each message has its own record from here on.
    request_record.discard();
    let origin = origin.with_header_case(None);
    let session = WebSocketSession::new(&worker, message_head(head), origin, sockets);
    let connection_guard = worker.count_connection(peer);
    worker.tasks().start(async move {
        // A failed upgrade means that the client has already left.
        if let Some(upgrade) = upgrade
            && let Ok(upgraded) = upgrade.await
        {
            let limit = runtime_plan.plan.limits.body;
            let frames = MessageStream::server(TokioIo::new(upgraded), limit).await;
            Box::pin(Rc::new(session).run_and_listen(frames)).await;
        }
        // The connection counts against the worker's connection limit until here.
        drop(connection_guard);
    });
    response
}

fn accept_handshake(
    context: &CallContext,
    runtime_plan: &RuntimePlan,
    origin: &RequestOrigin,
    head: &request::Parts,
) -> Result<Response<ResponseBody>, Failure> {
    context.admit()?;
    // A page of any origin may open a WebSocket; only this check prevents that (RFC 6455 §10.2).
    routing::check_origin(&runtime_plan.plan, RequestHead::new(head), origin.entry())?;
    let handshake = websocket::handshake(&head.headers)?;
    let accept = HeaderValue::try_from(accept_key(handshake.key)).ok();
    let mut response = response::switch_to_websocket(accept);
    if let Some(protocol) = handshake.protocol {
        let protocol = HeaderValue::from_static(protocol);
        response
            .headers_mut()
            .insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

/// Builds the head of each message from that of the handshake, as if the message were posted.
fn message_head(mut head: Box<request::Parts>) -> Box<request::Parts> {
    strip_hop_by_hop(&mut head.headers);
    strip_websocket_handshake(&mut head.headers);
    let json = HeaderValue::from_static("application/json");
    head.headers.insert(CONTENT_TYPE, json.clone());
    head.headers.entry(ACCEPT).or_insert(json);
    head.method = Method::POST;
    // Extensions belong to the handshake only.
    head.extensions = http::Extensions::new();
    head
}

/// A WebSocket session of a client.
pub(super) struct WebSocketSession {
    /// The number of the session, unique in the process.
    number: u64,
    head: Box<request::Parts>,
    origin: RequestOrigin,
    sockets: ClientSocketPlan,
    worker: Rc<Worker>,
    /// The form of the first recognised message.
    form: Cell<Option<EventForm>>,
    /// The close reason, if the proxy closes because a link was lost.
    close_reason: Cell<Option<CloseReason>>,
    /// The program that the client declared at `initialize`.
    program: RefCell<Option<Rc<ClientInfo>>>,
    /// The capabilities to give input that the client declared at `initialize`.
    input: Cell<InputCapabilities>,
    /// Notified when an `initialize` of the client was answered.
    begun: Notify,
}

/// The intake of client messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intake {
    Open,
    /// No more messages are read; holds the reason for the client.
    Closed(&'static str),
}

/// Reasons for closing the client's connection.
const GONE: &str = "the server is gone";
const OVER: &str = "the program ends";

impl WebSocketSession {
    /// Creates the session of a client whose request has the head `head`.
    fn new(
        worker: &Rc<Worker>,
        head: Box<request::Parts>,
        origin: RequestOrigin,
        sockets: ClientSocketPlan,
    ) -> WebSocketSession {
        WebSocketSession {
            number: worker.sessions().next_socket_number(),
            head,
            origin,
            sockets,
            worker: worker.clone(),
            form: Cell::new(None),
            close_reason: Cell::new(None),
            program: RefCell::new(None),
            input: Cell::default(),
            begun: Notify::new(),
        }
    }

    async fn run(self: Rc<Self>, mut frames: impl ClientChannel) {
        let mut drain_signal = self.worker.drain_signal();
        let mut intake = Intake::Open;
        let mut server_messages = ServerMessages::new(&self.origin);
        self.subscribe(intake);
        let mut idle_timer = IdleTimer::new(self.sockets.idle_timeout, Some(Heartbeat::OF_CLIENTS));
        let mut in_flight = InFlight::new(self.limits());
        loop {
            self.advance(&mut in_flight, &mut frames);
            let activity = Activity::new(in_flight.count() + usize::from(frames.is_writing()));
            if let (Intake::Closed(why), Activity::Idle) = (intake, activity) {
                frames.set_close(Some(CloseReason::from_text(why)));
                break;
            }
            let read_mode = self.read_mode(intake, &in_flight);
            // Server messages are read during shutdown too, until the last answer: some answers arrive as server
            // messages, and others are ordered after them.
            let is_listening = !frames.is_writing();
            let deadline = idle_timer.next_deadline();
            // Each branch is cancel-safe: work in flight stays in its queues.
            tokio::select! {
                event = frames.next(read_mode) => {
                    if self.on_event(event, &mut idle_timer, &mut in_flight, intake).is_break() {
                        break;
                    }
                }
                event = server_messages.next(&mut in_flight, is_listening) => match event {
                    server_messages::ClientEvent::Answer(reply) => {
                        let sequence = self.origin.sockets().sequence();
                        for message in server_messages.pending_before(sequence) {
                            intake = self.on_message(message, &mut in_flight, intake);
                        }
                        in_flight.replies.extend(reply);
                    }
                    server_messages::ClientEvent::Unsolicited(message) => {
                        idle_timer.on_activity();
                        intake = self.on_message(message, &mut in_flight, intake);
                    }
                },
                () = wait_for_shutdown(&mut drain_signal), if intake == Intake::Open => intake = Intake::Closed(OVER),
                () = sleep_until(deadline) => match idle_timer.action_when_paused(read_mode, activity) {
                    IdleAction::Ping => {
                        frames.ping();
                        self.subscribe(intake);
                    }
                    IdleAction::Wait => {}
                    IdleAction::Close => break,
                },
            }
        }
        // The remaining work has no receiver.
        drop(in_flight);
        self.close(frames).await;
    }

    /// Handles an event of the client's socket. Breaks if the connection is lost.
    fn on_event(
        &self,
        event: MessageEvent,
        idle_timer: &mut IdleTimer,
        in_flight: &mut InFlight,
        intake: Intake,
    ) -> ControlFlow<()> {
        match event {
            MessageEvent::Message(message) => {
                idle_timer.on_activity();
                let message = unmarked(message);
                // A message that comes after the intake has closed is never served.
                if !self.take_response(&message) && intake == Intake::Open {
                    in_flight.receive(message, |id| self.cancel(id));
                }
            }
            MessageEvent::Written => {
                idle_timer.on_activity();
                in_flight.on_written();
            }
            MessageEvent::SignOfLife => {
                idle_timer.on_received();
                self.subscribe(intake);
            }
            // `MessageEvent::Lost` follows.
            MessageEvent::Overlong => {}
            MessageEvent::Lost(_) => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    /// Closes the client's socket with a reason.
    async fn close(&self, mut frames: impl ClientChannel) {
        frames.set_close(response::flood_reason(&self.worker, frames.is_flooded()));
        frames.set_close(self.close_reason.take());
        frames.end().await;
    }

    /// Cancels the calls of this client with this id; returns the ids that upstreams know them by.
    fn cancel(&self, id: &Bytes) -> Vec<u64> {
        self.worker
            .cancellations()
            .cancel(CancelScope::Socket(self.number), id)
    }

    /// Starts queued messages, and writes the next one if the socket is idle.
    fn advance(self: &Rc<Self>, in_flight: &mut InFlight, frames: &mut impl ClientChannel) {
        in_flight.start_queued(|message| {
            let session = self.clone();
            Box::pin(async move { session.serve_message(message).await })
        });
        while !frames.is_writing()
            && let Some(reply) = in_flight.replies.pop_front()
        {
            in_flight.observers = reply.observers;
            in_flight.permit = reply.permit;
            match reply.text {
                Some(text) => frames.send(text),
                None => in_flight.on_written(),
            }
        }
    }

    fn limits(&self) -> SessionLimits {
        let limits = &self.worker.runtime_plan().plan.limits;
        SessionLimits {
            concurrency: self.sockets.concurrency,
            ahead: READ_AHEAD,
            bytes: limits.body,
            depth: limits.depth,
        }
    }

    /// Returns the form in which the client gets events.
    fn form(&self) -> EventForm {
        let first = match self.sockets.protocol {
            SocketProtocol::Rpc => EventForm::Rpc,
            SocketProtocol::Both => EventForm::Frame,
        };
        self.form.get().unwrap_or(first)
    }

    /// Opens the upstream connection of a client that only listens, if exactly one upstream applies. Called again
    /// whenever data arrives: a link that expired, went unused or was not admitted would otherwise wait for a call of
    /// the client.
    fn subscribe(&self, intake: Intake) {
        if intake != Intake::Open {
            return;
        }
        let runtime_plan = self.worker.runtime_plan();
        let frames = runtime_plan
            .default_frames_upstream()
            .and_then(Upstream::frames);
        match (frames, runtime_plan.upstream(None, Side::Rpc)) {
            (Some(frames), None) => {
                self.origin.links().record_request(Side::Rest);
                let sockets = self.origin.sockets();
                let context = || socket_context(&self.worker, &runtime_plan);
                sockets.subscribe(context, frames);
            }
            (None, Some(Upstream::Link(link))) => {
                link.listen(self.origin.links(), &self.head.headers);
            }
            (_, Some(_)) | (None, None) => {}
        }
    }

    /// Converts an unsolicited server message to the client's form; returns `None` if the client does not get it.
    fn convert_event(&self, side: Side, text: Bytes) -> Option<Bytes> {
        match self.sockets.protocol {
            // This client accepts only JSON-RPC messages.
            SocketProtocol::Rpc => Some(text).filter(is_rpc),
            SocketProtocol::Both if self.origin.links().receives_events_of(side) => {
                let runtime_plan = self.worker.runtime_plan();
                let event = ServerEvent { side, text };
                format_event(&self.worker, &runtime_plan, event, self.form())
            }
            SocketProtocol::Both => None,
        }
    }

    /// Queues a server message for the client; returns the new state of the intake.
    fn on_message(
        &self,
        message: ServerMessage,
        in_flight: &mut InFlight,
        intake: Intake,
    ) -> Intake {
        let mut permit = None;
        let text = match message {
            ServerMessage::Link(Notification::Message(text, queue_permit)) => {
                permit = Some(queue_permit);
                self.convert_event(Side::Rpc, text)
            }
            ServerMessage::Link(Notification::Lost(loss)) => {
                // The close is the only sign to the client that its server state is lost.
                self.close_reason.set(Some(close_reason(&loss)));
                return Intake::Closed(GONE);
            }
            ServerMessage::LegacySocket(LegacyServerMessage::Answer(text)) => Some(text),
            ServerMessage::LegacySocket(LegacyServerMessage::Event(text)) => {
                self.convert_event(Side::Rest, text)
            }
            ServerMessage::LegacySocket(LegacyServerMessage::Gone) => {
                self.origin.links().on_quiet(Side::Rest);
                // The close is the only sign to the client that its server state is lost.
                return Intake::Closed(GONE);
            }
        };
        let reply = text.map(|text| OutboundMessage {
            permit,
            ..OutboundMessage::new(text)
        });
        in_flight.replies.extend(reply);
        intake
    }

    /// Serves one message.
    async fn serve_message(&self, message: InboundMessage) -> ServeEnd {
        let body = message.text.clone();
        if self.sockets.protocol == SocketProtocol::Both {
            let runtime_plan = self.worker.runtime_plan();
            let (depth, routes) = (runtime_plan.plan.limits.depth, &runtime_plan.plan.routes);
            // Values parsed from the message share its buffer, and keep its memory accounted.
            let (accounted, permit) = match self.worker.memory().account(body.clone()) {
                Ok(accounted) => (accounted, Ok(())),
                Err(full) => (body.clone(), Err(full)),
            };
            match SocketMessage::of_client(&accounted, depth, routes) {
                SocketMessage::Rpc(_) => self.record_form(EventForm::Rpc),
                SocketMessage::Frame(frame) => {
                    self.record_form(EventForm::Frame);
                    return match serve_frame(&self.frame_client(), frame, accounted, permit).await {
                        FrameOutcome::Replied(end) => {
                            ServeEnd::Replied(OutboundMessage::of_frame(end))
                        }
                        FrameOutcome::Forwarded(frame) => {
                            let end =
                                async { OutboundMessage::of_frame(frame.await_reply().await) };
                            ServeEnd::Forwarded(Box::pin(end))
                        }
                    };
                }
                SocketMessage::Unrecognized(_) => {
                    self.worker
                        .count(|shard| shard.count_undelivered(Undelivered::Noise));
                    return ServeEnd::Replied(None);
                }
            }
        }
        ServeEnd::Replied(self.serve_rpc_message(message).await)
    }

    fn record_form(&self, form: EventForm) {
        self.form.set(Some(self.form.get().unwrap_or(form)));
    }

    fn frame_client(&self) -> FrameClient<'_> {
        FrameClient {
            worker: &self.worker,
            head: &self.head,
            origin: &self.origin,
            socket: self.number,
        }
    }
}

/// Returns true if a message is JSON-RPC.
fn is_rpc(text: &Bytes) -> bool {
    matches!(SocketMessage::new(text, u16::MAX), SocketMessage::Rpc(_))
}

/// Waits for the shutdown signal.
async fn wait_for_shutdown(drain_signal: &mut watch::Receiver<bool>) {
    // The sender lives in the worker, which outlives this future.
    let _ = drain_signal.wait_for(|is_draining| *is_draining).await;
}
