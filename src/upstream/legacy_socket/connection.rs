//! The task that owns one socket at a server that uses frames.
//!
//! It feeds events to [`FrameMachine`] and applies the outputs. It keeps the routes of the plan that the socket was
//! opened with until no call waits. While the client's queue is not empty, nothing is read from the server. When every
//! handle is dropped the socket closes without replies, because all callers have left.

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
use crate::upstream::link::{LinkGauges, LinkStats, StatsHandle};
use crate::upstream::{Activity, IdleAction, IdleTimer};
use dualgauge_model::frame::{
    ClientFrame, FrameCallError, FrameCommand, FrameContext, FrameMachine, FrameOutput, Undelivered,
};
use dualgauge_model::pending::{LinkCounts, RequestError, Ticket};
use dualgauge_model::plan::Plan;
use dualgauge_model::translate::{MethodCall, TranslateContext};
use dualgauge_net::{CountGuard, MessageEvent, MessageStream, ReadMode, Tasks};

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
        let waiting = task.machine.pending();
        tracing::warn!(
            upstream = name,
            waiting,
            cause = error,
            "legacy socket lost"
        );
        task.machine.connection_lost();
        task.apply_all();
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
    machine: FrameMachine,
    callers: Callers<SocketReplySender>,
    /// The frame to be written next.
    next_write: Option<Bytes>,
    /// Messages to the client, and replies to callers.
    client_queue: SocketClientQueue,
    idle_timer: IdleTimer,
    /// The maximum age; an older socket closes as soon as no call waits.
    max_age: Option<Duration>,
    /// The origin of the machine's clock.
    began: Instant,
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
            machine: FrameMachine::new(frames.in_flight, FIRST_ID),
            callers: Callers::default(),
            next_write: None,
            client_queue: SocketClientQueue::new(client_sender),
            idle_timer: IdleTimer::new(plan.idle_timeout, frames.heartbeat),
            max_age: plan.max_age,
            began: clock::now(),
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
                && let Some(text) = self.next_write.take()
            {
                frames.send(text);
            }
            if !takes_requests && !frames.is_writing() {
                return None;
            }
            let has_capacity = takes_requests && self.queued() < QUEUE;
            let read_mode = match self.client_queue.is_empty() {
                true => ReadMode::Open,
                false => ReadMode::Shut,
            };
            let call_timeout = self.machine.alarm().map(|at| self.began + at);
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

    /// Returns the number of frames whose writing has not begun.
    fn queued(&self) -> usize {
        self.machine.queued() + usize::from(self.next_write.is_some())
    }

    fn is_idle(&self) -> bool {
        self.machine.is_idle() && self.next_write.is_none()
    }

    /// Reports the state of the socket; `ready` is 1 while it accepts calls.
    fn report(&mut self, ready: usize) {
        let queued = self.queued();
        let levels = LinkGauges {
            ready,
            in_flight: self.callers.len().saturating_sub(queued),
            queued,
            subscribed: 0,
        };
        let counts = self.machine.counts();
        let counts = LinkCounts {
            opened: 1,
            late: counts.unmatched,
            skipped: counts.skipped,
            notified: counts.notified,
            ..LinkCounts::default()
        };
        self.stats.set_gauges(levels, counts);
    }

    fn next_deadline(&mut self) -> IdleAction {
        if !self.client_queue.is_empty() {
            // Reading is paused, so silence says nothing about the server.
            self.idle_timer.on_received();
        }
        let open = self.machine.pending() + self.queued() + self.client_queue.len();
        self.idle_timer.on_deadline(Activity::new(open))
    }

    fn on_request(&mut self, queued: QueuedRequest) {
        if queued.reply.is_closed() {
            return;
        }
        self.idle_timer.on_activity();
        if self.machine.pending() == 0 && !Arc::ptr_eq(&self.plan, &queued.plan) {
            self.plan = queued.plan;
        }
        let ticket = self.callers.add(queued.reply);
        if queued.deadline <= clock::now() {
            return self.send_reply(ticket, Err(SocketCallError::Link(RequestError::Late)));
        }
        let deadline = queued.deadline.saturating_duration_since(self.began);
        match queued.request {
            SocketRequest::Call { method, params } => {
                let command = FrameCommand {
                    ticket,
                    call: MethodCall::new(&method, params.as_ref()),
                    deadline,
                };
                self.update(|machine, context| machine.call(context, command));
            }
            SocketRequest::Passed { frame, text } => {
                let sent = ClientFrame {
                    ticket,
                    frame,
                    text,
                    deadline,
                };
                self.update(|machine, context| machine.forward(context, sent));
            }
        }
    }

    fn cancel_abandoned(&mut self) {
        for (ticket, _) in self.callers.take_gone() {
            self.machine.cancel(ticket);
        }
    }

    /// Handles an event of the socket; returns the cause if the socket is lost.
    fn on_event(&mut self, event: MessageEvent) -> Option<String> {
        match event {
            MessageEvent::Message(text) => {
                self.idle_timer.on_activity();
                self.update(|machine, context| machine.receive(context, text));
            }
            MessageEvent::Written => {
                self.idle_timer.on_activity();
                self.update(FrameMachine::written);
            }
            MessageEvent::SignOfLife => self.idle_timer.on_received(),
            // `MessageEvent::Lost` follows.
            MessageEvent::Overlong => {}
            MessageEvent::Lost(error) => return Some(error),
        }
        None
    }

    fn tick(&mut self) {
        self.update(FrameMachine::tick);
    }

    /// Feeds an event to the machine, and applies the outputs.
    fn update(&mut self, event: impl FnOnce(&mut FrameMachine, FrameContext<'_>)) {
        let context = FrameContext {
            routes: &self.plan.routes,
            translate: TranslateContext {
                depth: self.plan.limits.depth,
                now: clock::rfc3339,
            },
            now: clock::now().saturating_duration_since(self.began),
        };
        event(&mut self.machine, context);
        self.apply_all();
    }

    fn apply_all(&mut self) {
        while let Some(output) = self.machine.output() {
            self.apply(output);
        }
    }

    fn apply(&mut self, output: FrameOutput) {
        match output {
            FrameOutput::Write(_, text) => self.next_write = Some(text),
            FrameOutput::Answer(ticket, answer, frame) => {
                self.send_reply(ticket, Ok(SocketReply::Answer(answer, frame)))
            }
            FrameOutput::Sent(ticket) => self.send_reply(ticket, Ok(SocketReply::Sent)),
            FrameOutput::Failed(ticket, error) => self.send_reply(ticket, Err(call_error(error))),
            FrameOutput::Notification(text) => {
                let delivery = self.client_queue.notify(LegacyServerMessage::Event(text));
                self.stats.stats().on_delivery(delivery);
            }
            FrameOutput::Passed(text) => {
                self.client_queue.notify(LegacyServerMessage::Answer(text));
            }
            FrameOutput::Undelivered(why) => (self.count_undelivered)(why),
        }
    }

    fn send_reply(&mut self, ticket: Ticket, result: Result<SocketReply, SocketCallError>) {
        if let Some(reply) = self.callers.take(ticket) {
            self.client_queue.answer(reply, result);
        }
    }
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
