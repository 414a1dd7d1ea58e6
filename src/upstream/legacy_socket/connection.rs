//! The task that owns one socket at a server that uses frames.
//!
//! It feeds events to [`FrameCorrelator`] and applies the outputs. It keeps the routes of the plan that the socket was
//! opened with until no call waits. While the client's queue is not empty, nothing is read from the server. When every
//! handle is dropped the socket closes without replies, because all callers have left.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::client_queue::{ClientSender, SocketClientQueue};
use super::request::{
    LegacyServerMessage, QueuedRequest, SequencedSocketReply, SocketCallError, SocketReply,
    SocketReplySender, SocketRequest,
};
use super::server::LegacySocketUpstream;
use crate::telemetry::clock;
use crate::upstream::callers::{Caller, Callers};
use crate::upstream::link::{Event, LinkGauges, LinkStats, StatsHandle};
use crate::upstream::{
    Activity, CountGuard, IdleAction, IdleTimer, MessageStream, ReadMode, Tasks,
};
use dualgauge_model::frame::{
    CorrelatorOutput, FrameCallError, FrameCommand, FrameCorrelator, ObservedRequest,
    SocketMessage, Undelivered, command_to_rpc,
};
use dualgauge_model::pending::{LinkCounts, RequestError, Ticket};
use dualgauge_model::plan::Plan;
use dualgauge_model::route::{RouteTable, Wire};
use dualgauge_model::translate::{MethodCall, TranslateContext};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::rope::Rope;

/// The capacity of a socket's request queue, and of its write queue.
pub(super) const QUEUE: usize = 64;

/// The first id for calls: above ids that clients count up from 1, below the Unix time in seconds, within 32 bits.
const FIRST_ID: u64 = 1_000_000_001;

/// The values of a worker that its sockets need.
#[derive(Clone)]
pub struct SocketContext {
    /// The plan in use.
    pub plan: Arc<Plan>,
    /// The tasks of the worker.
    pub tasks: Tasks,
    /// Counts a message of a server that has no receiver.
    pub count_undelivered: Rc<dyn Fn(Undelivered)>,
}

/// Opens a socket, and runs it until it closes.
pub(super) async fn serve(
    mut task: ConnectionTask,
    permit: CountGuard,
    mut inbox: mpsc::Receiver<QueuedRequest>,
    caller_gone: Rc<Notify>,
) {
    let upstream = task.server.clone();
    let name = upstream.plan().name.as_str();
    task.report(0);
    let mut frames = match upstream.connect().await {
        Ok(frames) => frames,
        Err(error) => {
            tracing::warn!(upstream = name, cause = error, "legacy socket lost");
            upstream.stats().record_refused();
            task.stats.end();
            refuse_queued(&task.client_queue, &mut inbox);
            drop(permit);
            return task.client_queue.end().await;
        }
    };
    tracing::debug!(upstream = name, "legacy socket opened");
    if let Some(error) = task.run(&mut frames, &mut inbox, &caller_gone).await {
        let waiting = task.correlator.len();
        tracing::warn!(
            upstream = name,
            waiting,
            cause = error,
            "legacy socket lost"
        );
        task.correlator.connection_lost();
        task.apply_all(None);
        task.report(0);
    }
    task.stats.end();
    refuse_queued(&task.client_queue, &mut inbox);
    let close_server = async {
        frames.end().await;
        drop(permit);
    };
    // A slow client must not keep the server's socket open.
    tokio::join!(close_server, task.client_queue.end());
}

/// Refuses queued requests: a client that lost a socket gets no other, so none may be written.
fn refuse_queued(client_queue: &SocketClientQueue, inbox: &mut mpsc::Receiver<QueuedRequest>) {
    client_queue.mark_lost();
    inbox.close();
    while let Ok(queued) = inbox.try_recv() {
        let result = Err(SocketCallError::Link(RequestError::Unreachable));
        let sequence = 0;
        // A send fails only if the caller no longer waits.
        drop(queued.reply.send(SequencedSocketReply { result, sequence }));
    }
}

/// The task of one socket.
pub(super) struct ConnectionTask {
    server: Rc<LegacySocketUpstream>,
    /// The plan whose routes apply while a call waits.
    plan: Arc<Plan>,
    count_undelivered: Rc<dyn Fn(Undelivered)>,
    correlator: FrameCorrelator,
    callers: Callers<SocketReplySender>,
    /// Frames to be written.
    out: VecDeque<(Ticket, Bytes)>,
    writing: Option<Ticket>,
    /// Messages to the client, and replies to callers.
    client_queue: SocketClientQueue,
    idle_timer: IdleTimer,
    /// The maximum age; an older socket closes as soon as no call waits.
    max_age: Option<Duration>,
    /// The origin of the correlator's clock.
    began: Instant,
    /// Counts of events, for reporting.
    counts: LinkCounts,
    stats: StatsHandle<Arc<LinkStats>>,
}

impl Caller for SocketReplySender {
    fn is_gone(&self) -> bool {
        self.is_closed()
    }
}

impl ConnectionTask {
    pub(super) fn new(
        context: SocketContext,
        upstream: &Rc<LegacySocketUpstream>,
        client_sender: ClientSender,
    ) -> ConnectionTask {
        let (plan, frames) = (upstream.plan(), upstream.frames());
        ConnectionTask {
            server: upstream.clone(),
            plan: context.plan,
            count_undelivered: context.count_undelivered,
            correlator: FrameCorrelator::new(frames.in_flight).with_first_id(FIRST_ID),
            callers: Callers::default(),
            out: VecDeque::new(),
            writing: None,
            client_queue: SocketClientQueue::new(client_sender),
            idle_timer: IdleTimer::new(plan.idle_timeout, frames.heartbeat),
            max_age: plan.max_age,
            began: clock::now(),
            counts: LinkCounts {
                opened: 1,
                ..LinkCounts::default()
            },
            stats: StatsHandle::new(upstream.stats().clone()),
        }
    }

    /// Runs an open socket; returns the cause if it was lost, or `None` if it was closed.
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        frames: &mut MessageStream<S>,
        inbox: &mut mpsc::Receiver<QueuedRequest>,
        caller_gone: &Notify,
    ) -> Option<String> {
        let mut takes_requests = true;
        self.idle_timer.on_activity();
        let end = self.max_age.map(|age| clock::now() + age);
        loop {
            self.report(1);
            if !frames.is_writing()
                && let Some((ticket, text)) = self.out.pop_front()
            {
                self.writing = Some(ticket);
                frames.send(text);
            }
            if !takes_requests && !frames.is_writing() {
                return None;
            }
            let has_capacity = takes_requests && self.out.len() < QUEUE;
            let read_mode = match self.client_queue.is_empty() {
                true => ReadMode::Open,
                false => ReadMode::Shut,
            };
            let call_timeout = self.correlator.alarm().map(|at| self.began + at);
            let idle_deadline = self.idle_timer.next_deadline();
            let is_quiet = self.is_idle() && self.client_queue.is_empty() && !frames.is_writing();
            let end = self.close_time(end).filter(|_| is_quiet);
            // Every branch is cancel-safe: a pending item is still there in the next iteration.
            tokio::select! {
                queued = inbox.recv(), if has_capacity => match queued {
                    Some(queued) => self.on_request(queued),
                    None => takes_requests = false,
                },
                () = self.server.wait_for_end() => {}
                () = caller_gone.notified() => self.cancel_abandoned(),
                event = frames.next(read_mode) => {
                    if let Some(error) = self.on_event(event) {
                        return Some(error);
                    }
                }
                () = self.client_queue.send_next() => {}
                () = sleep_until(call_timeout.unwrap_or(idle_deadline)), if call_timeout.is_some() => self.tick(),
                () = sleep_until(end.unwrap_or(idle_deadline)), if end.is_some() => {
                    if self.may_close(inbox) {
                        return None;
                    }
                }
                () = sleep_until(idle_deadline) => match self.next_deadline() {
                    IdleAction::Ping => frames.ping(),
                    IdleAction::Wait => {}
                    IdleAction::Close if self.is_idle() => {
                        if self.may_close(inbox) {
                            return None;
                        }
                    }
                    IdleAction::Close => return Some("it did not answer a ping in time".to_owned()),
                },
            }
        }
    }

    /// Returns the time at which the socket may close: at its maximum age, or immediately if no plan has the server
    /// any more. `began` is in the past, so a server that keeps sending cannot postpone the close.
    fn close_time(&self, max_age_end: Option<Instant>) -> Option<Instant> {
        match self.server.is_over() {
            false => max_age_end,
            true => Some(self.began),
        }
    }

    /// Returns true if the idle socket may close. A request that has just been queued is served first.
    fn may_close(&mut self, inbox: &mut mpsc::Receiver<QueuedRequest>) -> bool {
        match inbox.try_recv() {
            Ok(queued) => {
                self.on_request(queued);
                false
            }
            Err(_) => true,
        }
    }

    /// Reports the state of the socket; `ready` is 1 while it accepts calls.
    fn report(&mut self, ready: usize) {
        let queued = self.out.len();
        let levels = LinkGauges {
            ready,
            in_flight: self.callers.len().saturating_sub(queued),
            queued,
        };
        self.stats.set_gauges(levels, self.counts);
    }

    fn is_idle(&self) -> bool {
        self.correlator.is_empty() && self.out.is_empty()
    }

    fn next_deadline(&mut self) -> IdleAction {
        if !self.client_queue.is_empty() {
            // Reading is paused, so silence says nothing about the server.
            self.idle_timer.on_received();
        }
        let open = self.correlator.len() + self.out.len() + self.client_queue.len();
        self.idle_timer.on_deadline(Activity::new(open))
    }

    fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.began)
    }

    fn translate_context(&self) -> TranslateContext {
        TranslateContext {
            depth: self.plan.limits.depth,
            now: clock::rfc3339,
        }
    }

    fn on_request(&mut self, queued: QueuedRequest) {
        if queued.reply.is_closed() {
            return;
        }
        self.idle_timer.on_activity();
        if self.correlator.is_empty() && !Arc::ptr_eq(&self.plan, &queued.plan) {
            self.plan = queued.plan;
        }
        let ticket = self.callers.add(queued.reply);
        if queued.deadline <= clock::now() {
            return self.send_reply(ticket, Err(SocketCallError::Link(RequestError::Late)));
        }
        let deadline = queued.deadline.saturating_duration_since(self.began);
        match queued.request {
            SocketRequest::Call { method, params } => {
                let call = MethodCall::new(&method, params.as_ref());
                self.call(ticket, call, deadline);
            }
            SocketRequest::Passed { frame, text } => self.pass(ticket, frame, text, deadline),
        }
        self.apply_all(None);
    }

    fn call(&mut self, ticket: Ticket, call: MethodCall<'_>, deadline: Duration) {
        let plan = self.plan.clone();
        let (context, now) = (self.translate_context(), self.now());
        let table = &plan.routes;
        let Some(route) = table.select_rpc_to(Wire::Frame, call) else {
            // A plan that was installed in between has the route, and this one does not.
            return self.send_reply(ticket, Err(SocketCallError::Link(RequestError::Busy)));
        };
        let command = FrameCommand {
            ticket,
            route,
            call,
            deadline,
        };
        self.correlator.ask(table, (now, command), context);
    }

    /// Writes a frame of the client, and watches for its answer if the route describes it.
    fn pass(&mut self, ticket: Ticket, frame: Json, text: Bytes, deadline: Duration) {
        let (plan, context) = (self.plan.clone(), self.translate_context());
        let table = &plan.routes;
        match observe(table, ticket, frame.clone(), deadline, context) {
            Some(observed) if self.correlator.clashes(table, &observed) => {
                return self.send_reply(ticket, Err(SocketCallError::Link(RequestError::Busy)));
            }
            Some(observed) => self.correlator.observe(table, observed),
            None => self
                .correlator
                .forward_unread(table, (ticket, &frame), deadline),
        };
        self.out.push_back((ticket, text));
    }

    fn cancel_abandoned(&mut self) {
        for (ticket, _) in self.callers.take_gone() {
            self.correlator.cancel(ticket);
            self.withdraw(ticket);
        }
    }

    /// Handles an event of the socket; returns the cause if the socket is lost.
    fn on_event(&mut self, event: Event) -> Option<String> {
        match event {
            Event::Message(text) => self.on_message(text),
            Event::Written => {
                self.idle_timer.on_activity();
                if let Some(ticket) = self.writing.take() {
                    self.on_written(ticket);
                }
            }
            Event::SignOfLife => self.idle_timer.on_received(),
            // `Event::Lost` follows.
            Event::Overlong => {}
            Event::Lost(error) => return Some(error),
            // A plain socket yields none of these.
            Event::StreamMessage(..)
            | Event::Failed(..)
            | Event::SessionLost(_)
            | Event::Undelivered(_) => {}
        }
        None
    }

    fn on_written(&mut self, ticket: Ticket) {
        let (plan, now) = (self.plan.clone(), self.now());
        self.correlator.sent(&plan.routes, (now, ticket));
        if !self.correlator.waits(ticket) {
            self.send_reply(ticket, Ok(SocketReply::Sent));
        }
    }

    fn on_message(&mut self, text: Bytes) {
        self.idle_timer.on_activity();
        let plan = self.plan.clone();
        let table = &plan.routes;
        let (context, now) = (self.translate_context(), self.now());
        match SocketMessage::new(&text, context.depth) {
            SocketMessage::Frame(frame) => {
                // Expired calls first, so that their outcome does not count as the effect of this frame.
                self.correlator.tick(table, now, context);
                self.apply_all(None);
                self.correlator.receive(table, (now, frame), context);
                self.apply_all(Some(&text));
            }
            // A client with forwarded frames talks to the server itself, and may understand the message.
            SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_)
                if self.correlator.has_passed() =>
            {
                self.client_queue.notify(LegacyServerMessage::Answer(text));
            }
            SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_) => {
                self.counts.skipped += 1;
                (self.count_undelivered)(Undelivered::Noise);
            }
        }
    }

    fn tick(&mut self) {
        let plan = self.plan.clone();
        let (context, now) = (self.translate_context(), self.now());
        self.correlator.tick(&plan.routes, now, context);
        self.apply_all(None);
    }

    /// Applies all outputs of the correlator; `received_text` is the text of the frame that was just read.
    fn apply_all(&mut self, received_text: Option<&Bytes>) {
        while let Some(output) = self.correlator.output() {
            self.apply(output, received_text);
        }
        let undelivered = self.correlator.counts().unmatched;
        for _ in self.counts.late..undelivered {
            (self.count_undelivered)(Undelivered::Late);
        }
        self.counts.late = undelivered;
    }

    fn apply(&mut self, output: CorrelatorOutput, received_text: Option<&Bytes>) {
        let text = |frame: Json| received_text.cloned().unwrap_or_else(|| frame.into_bytes());
        match output {
            CorrelatorOutput::Write(ticket, frame) => {
                let frame: Rope = frame;
                self.out.push_back((ticket, frame.into_bytes()));
            }
            CorrelatorOutput::Answer(ticket, answer) => {
                self.send_reply(ticket, Ok(SocketReply::Answer(answer)))
            }
            CorrelatorOutput::Failed(ticket, error) => {
                self.withdraw(ticket);
                self.send_reply(ticket, Err(call_error(error)));
            }
            CorrelatorOutput::Notification(frame) => {
                self.counts.notified += 1;
                let delivery = self
                    .client_queue
                    .notify(LegacyServerMessage::Event(text(frame)));
                self.stats.stats().on_delivery(delivery);
            }
            CorrelatorOutput::Passed(frame) => {
                self.client_queue
                    .notify(LegacyServerMessage::Answer(text(frame)));
            }
            // The deadline has passed before the frame was written completely.
            CorrelatorOutput::Done(ticket)
                if received_text.is_none() && self.is_unwritten(ticket) =>
            {
                self.withdraw(ticket);
                self.send_reply(ticket, Err(SocketCallError::Link(RequestError::Late)));
            }
            CorrelatorOutput::Done(ticket) => self.send_reply(ticket, Ok(SocketReply::Sent)),
        }
    }

    /// Returns true if the frame is queued or being written.
    fn is_unwritten(&self, ticket: Ticket) -> bool {
        self.writing == Some(ticket) || self.out.iter().any(|(queued, _)| *queued == ticket)
    }

    /// Removes a frame from the write queue; a frame that is being written stays.
    fn withdraw(&mut self, ticket: Ticket) {
        self.out.retain(|(queued, _)| *queued != ticket);
    }

    fn send_reply(&mut self, ticket: Ticket, result: Result<SocketReply, SocketCallError>) {
        if let Some(reply) = self.callers.take(ticket) {
            self.client_queue.answer(reply, result);
        }
    }
}

/// Reads a client's frame whose answer its route describes.
fn observe(
    table: &RouteTable,
    ticket: Ticket,
    frame: Json,
    deadline: Duration,
    context: TranslateContext,
) -> Option<ObservedRequest> {
    let route = table.select_frame(&frame)?;
    let read = command_to_rpc(table.route(route), frame, context).ok()?;
    Some(ObservedRequest {
        ticket,
        route,
        call: read.bindings,
        deadline,
    })
}

fn call_error(error: FrameCallError) -> SocketCallError {
    match error {
        FrameCallError::Busy => SocketCallError::Link(RequestError::Busy),
        FrameCallError::Late => SocketCallError::Link(RequestError::Late),
        FrameCallError::Cut => SocketCallError::Link(RequestError::Cut),
        FrameCallError::Misfit(error) => SocketCallError::Misfit(error),
    }
}

#[cfg(test)]
mod tests;
