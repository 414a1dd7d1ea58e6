//! The task that owns one socket at a server that uses frames.
//!
//! It feeds events to [`FrameCorrelator`] and applies the outputs. It keeps the routes of the plan that the socket was
//! opened with until no call waits. While the client's queue is not empty, nothing is read from the server. When every
//! handle is dropped the socket closes without replies, because all callers have left.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::client_queue::{ClientSender, SocketClientQueue};
use super::connections::{
    QUEUE, QueuedRequest, SequencedSocketReply, ServerNews, SocketCallError, SocketReply,
    SocketReplySender, SocketRequest,
};
use crate::domain::frame::{
    CorrelatorOutput, FrameCallError, FrameCommand, FrameCorrelator, ObservedRequest,
    SocketMessage, Undelivered, command_to_rpc,
};
use crate::domain::json::Json;
use crate::domain::pending::{self as link, LinkCounts, Ticket};
use crate::domain::rope::Rope;
use crate::domain::route::{RouteTable, Wire};
use crate::domain::translate::TranslateContext;
use crate::gateway::idle_timer::{Activity, IdleAction, IdleTimer};
use crate::gateway::{RuntimePlan, Worker};
use crate::telemetry::clock;
use crate::upstream::link::{Event, LinkGauges, LinkStats, StatsHandle};
use crate::upstream::{LegacySocketUpstream, MessageStream, ReadMode, SocketPermit};

/// The first id for calls. It is far above ids that clients count up from 1, below the Unix time in seconds, and fits
/// in 32 bits.
const FIRST_ID: u64 = 1_000_000_001;

/// Opens a socket, and runs it until it closes.
pub(super) async fn serve(
    mut owner: ConnectionTask,
    (upstream, place): (Rc<LegacySocketUpstream>, SocketPermit),
    (mut inbox, gone): (mpsc::Receiver<QueuedRequest>, Rc<Notify>),
) {
    let name = upstream.plan().name.as_str();
    owner.report(0);
    let mut frames = match upstream.connect().await {
        Ok(frames) => frames,
        Err(why) => {
            tracing::warn!(upstream = name, cause = why, "a socket of frames is lost");
            upstream.stats().refuses();
            owner.share.end();
            refuse(&owner.outlet, &mut inbox);
            drop(place);
            return owner.outlet.end().await;
        }
    };
    tracing::debug!(upstream = name, "a socket of frames is open");
    if let Some(why) = owner.run(&mut frames, (&mut inbox, &gone)).await {
        let waiting = owner.waiting.len();
        tracing::warn!(
            upstream = name,
            waiting,
            cause = why,
            "a socket of frames is lost"
        );
        owner.waiting.connection_lost();
        owner.apply_all(None);
        owner.report(0);
    }
    owner.share.end();
    refuse(&owner.outlet, &mut inbox);
    let ends = async {
        frames.end().await;
        drop(place);
    };
    // A slow client must not keep the server's socket open.
    tokio::join!(ends, owner.outlet.end());
}

/// Refuses queued requests: a client that lost a socket gets no other, so none may be written.
fn refuse(outlet: &SocketClientQueue, inbox: &mut mpsc::Receiver<QueuedRequest>) {
    outlet.lose();
    inbox.close();
    while let Ok(asked) = inbox.try_recv() {
        let said = Err(SocketCallError::Link(link::RequestError::Unreachable));
        // A send fails only if the caller no longer waits.
        drop(asked.reply.send(SequencedSocketReply { said, behind: 0 }));
    }
}

/// The task of one socket.
pub(super) struct ConnectionTask {
    worker: Rc<Worker>,
    server: Rc<LegacySocketUpstream>,
    /// The plan whose routes apply while a call waits.
    installed: Rc<RuntimePlan>,
    waiting: FrameCorrelator,
    callers: BTreeMap<Ticket, SocketReplySender>,
    /// Frames to be written.
    out: VecDeque<(Ticket, Bytes)>,
    writing: Option<Ticket>,
    /// Messages to the client, and replies to callers.
    outlet: SocketClientQueue,
    silence: IdleTimer,
    /// The maximum age; an older socket closes as soon as no call waits.
    max_age: Option<Duration>,
    next: u64,
    /// The origin of the correlator's clock.
    began: Instant,
    /// Counts of events, for reporting.
    counts: LinkCounts,
    share: StatsHandle<Arc<LinkStats>>,
}

/// The intake of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Intake {
    Open,
    Closed,
}

impl ConnectionTask {
    pub(super) fn new(
        worker: &Rc<Worker>,
        installed: &Rc<RuntimePlan>,
        upstream: &Rc<LegacySocketUpstream>,
        way: ClientSender,
    ) -> ConnectionTask {
        let (plan, frames) = (upstream.plan(), upstream.frames());
        ConnectionTask {
            worker: worker.clone(),
            server: upstream.clone(),
            installed: installed.clone(),
            waiting: FrameCorrelator::new(frames.in_flight).with_first_id(FIRST_ID),
            callers: BTreeMap::new(),
            out: VecDeque::new(),
            writing: None,
            outlet: SocketClientQueue::new(way),
            silence: IdleTimer::new(plan.idle_timeout, frames.heartbeat),
            max_age: plan.max_age,
            next: 0,
            began: clock::now(),
            counts: LinkCounts {
                opened: 1,
                ..LinkCounts::default()
            },
            share: StatsHandle::new(upstream.stats().clone()),
        }
    }

    /// Runs an open socket; returns the cause if it was lost, or `None` if it was closed.
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        frames: &mut MessageStream<S>,
        (inbox, gone): (&mut mpsc::Receiver<QueuedRequest>, &Notify),
    ) -> Option<String> {
        let mut entry = Intake::Open;
        self.silence.on_activity();
        let end = self.max_age.map(|age| clock::now() + age);
        loop {
            self.report(1);
            if !frames.is_writing()
                && let Some((ticket, text)) = self.out.pop_front()
            {
                self.writing = Some(ticket);
                frames.send(text);
            }
            if entry == Intake::Closed && !frames.is_writing() {
                return None;
            }
            let takes = entry == Intake::Open && self.out.len() < QUEUE;
            let intake = match self.outlet.is_empty() {
                true => ReadMode::Open,
                false => ReadMode::Shut,
            };
            let alarm = self.waiting.alarm().map(|at| self.began + at);
            let silence = self.silence.next_deadline();
            let is_quiet = self.is_idle() && self.outlet.is_empty() && !frames.is_writing();
            let end = self.ends(end).filter(|_| is_quiet);
            // Every branch is cancel-safe: a pending item is still there in the next iteration.
            tokio::select! {
                asked = inbox.recv(), if takes => match asked {
                    Some(asked) => self.asked(asked),
                    None => entry = Intake::Closed,
                },
                () = self.worker.swapped() => {}
                () = gone.notified() => self.forget_gone(),
                event = frames.next(intake) => {
                    if let Some(why) = self.on_event(event) {
                        return Some(why);
                    }
                }
                () = self.outlet.go_on() => {}
                () = sleep_until(alarm.unwrap_or(silence)), if alarm.is_some() => self.tick(),
                () = sleep_until(end.unwrap_or(silence)), if end.is_some() => {
                    if self.may_close(inbox) {
                        return None;
                    }
                }
                () = sleep_until(silence) => match self.next_deadline() {
                    IdleAction::Ask => frames.ping(),
                    IdleAction::Wait => {}
                    IdleAction::End if self.is_idle() => {
                        if self.may_close(inbox) {
                            return None;
                        }
                    }
                    IdleAction::End => return Some("it showed no sign of life".to_owned()),
                },
            }
        }
    }

    /// Returns the time at which the socket may close: at its maximum age, or immediately if no plan has the server
    /// any more. `began` is in the past, so a server that keeps sending cannot postpone the close.
    fn ends(&self, aged: Option<Instant>) -> Option<Instant> {
        match self.server.is_over() {
            false => aged,
            true => Some(self.began),
        }
    }

    /// Returns true if the idle socket may close. A request that has just been queued is served first.
    fn may_close(&mut self, inbox: &mut mpsc::Receiver<QueuedRequest>) -> bool {
        match inbox.try_recv() {
            Ok(asked) => {
                self.asked(asked);
                false
            }
            Err(_) => true,
        }
    }

    /// Reports the state of the socket; `ready` is 1 while it takes calls.
    fn report(&mut self, ready: usize) {
        let queued = self.out.len();
        let levels = LinkGauges {
            ready,
            in_flight: self.callers.len().saturating_sub(queued),
            queued,
        };
        self.share.set_gauges(levels, self.counts);
    }

    fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.out.is_empty()
    }

    fn next_deadline(&mut self) -> IdleAction {
        if !self.outlet.is_empty() {
            // Reading is paused, so silence says nothing about the server.
            self.silence.on_received();
        }
        let open = self.waiting.len() + self.out.len() + self.outlet.len();
        self.silence.on_deadline(Activity::new(open))
    }

    fn now(&self) -> Duration {
        clock::now().saturating_duration_since(self.began)
    }

    fn terms(&self) -> TranslateContext {
        TranslateContext {
            depth: self.installed.plan.limits.depth,
            now: clock::rfc3339,
        }
    }

    fn asked(&mut self, asked: QueuedRequest) {
        if asked.reply.is_closed() {
            return;
        }
        self.silence.on_activity();
        if self.waiting.is_empty() && !Rc::ptr_eq(&self.installed, &asked.installed) {
            self.installed = asked.installed;
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.callers.insert(ticket, asked.reply);
        if asked.deadline <= clock::now() {
            return self.send_reply(ticket, Err(SocketCallError::Link(link::RequestError::Late)));
        }
        let deadline = asked.deadline.saturating_duration_since(self.began);
        match asked.question {
            SocketRequest::Call { method, params } => {
                self.call(ticket, (&method, params.as_ref()), deadline);
            }
            SocketRequest::Passed { frame, text } => self.pass(ticket, (frame, text), deadline),
        }
        self.apply_all(None);
    }

    fn call(&mut self, ticket: Ticket, call: (&str, Option<&Json>), deadline: Duration) {
        let (installed, terms, now) = (self.installed.clone(), self.terms(), self.now());
        let table = &installed.plan.routes;
        let Some(route) = table.select_rpc_to(Wire::Frame, call) else {
            // A plan that was installed in between has the route, and this one does not.
            return self.send_reply(ticket, Err(SocketCallError::Link(link::RequestError::Busy)));
        };
        let command = FrameCommand {
            ticket,
            route,
            call,
            deadline,
        };
        self.waiting.ask(table, (now, command), terms);
    }

    /// Writes a frame of the client, and watches for its answer if the route describes it.
    fn pass(&mut self, ticket: Ticket, (frame, text): (Json, Bytes), deadline: Duration) {
        let (installed, terms) = (self.installed.clone(), self.terms());
        let table = &installed.plan.routes;
        match observe(table, (ticket, frame.clone()), (deadline, terms)) {
            Some(overheard) if self.waiting.clashes(table, &overheard) => {
                return self
                    .send_reply(ticket, Err(SocketCallError::Link(link::RequestError::Busy)));
            }
            Some(overheard) => self.waiting.observe(table, overheard),
            None => self
                .waiting
                .forward_unread(table, (ticket, &frame), deadline),
        };
        self.out.push_back((ticket, text));
    }

    fn forget_gone(&mut self) {
        let callers = self.callers.iter();
        let gone = callers.filter(|(_, reply)| reply.is_closed());
        let gone: Vec<Ticket> = gone.map(|(ticket, _)| *ticket).collect();
        for ticket in gone {
            self.callers.remove(&ticket);
            self.waiting.cancel(ticket);
            self.withdraw(ticket);
        }
    }

    /// Handles an event of the socket; returns the cause if the socket is lost.
    fn on_event(&mut self, event: Event) -> Option<String> {
        match event {
            Event::Message(text) => self.on_message(text),
            Event::Written => {
                self.silence.on_activity();
                if let Some(ticket) = self.writing.take() {
                    self.written(ticket);
                }
            }
            Event::Sign => self.silence.on_received(),
            // `Event::Lost` follows.
            Event::Overlong => {}
            Event::Lost(why) => return Some(why),
            // A plain socket yields none of these.
            Event::Aside(..) | Event::Failed(..) | Event::Forgotten(_) | Event::Unwritten(_) => {}
        }
        None
    }

    fn written(&mut self, ticket: Ticket) {
        let (installed, now) = (self.installed.clone(), self.now());
        self.waiting.sent(&installed.plan.routes, (now, ticket));
        if !self.waiting.waits(ticket) {
            self.send_reply(ticket, Ok(SocketReply::Told));
        }
    }

    fn on_message(&mut self, text: Bytes) {
        self.silence.on_activity();
        let (installed, terms, now) = (self.installed.clone(), self.terms(), self.now());
        match SocketMessage::new(&text, terms.depth) {
            SocketMessage::Frame(frame) => {
                // Expired calls first, so that their outcome does not count as the effect of this frame.
                self.waiting.tick(&installed.plan.routes, now, terms);
                self.apply_all(None);
                self.waiting
                    .receive(&installed.plan.routes, (now, frame), terms);
                self.apply_all(Some(&text));
            }
            // A client with forwarded frames talks to the server itself, and may understand the message.
            SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_) if self.waiting.has_passed() => {
                self.outlet.notify(ServerNews::Answer(text));
            }
            SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_) => {
                self.counts.skipped += 1;
                self.worker.count(|shard| shard.stray(Undelivered::Noise));
            }
        }
    }

    fn tick(&mut self) {
        let (installed, terms, now) = (self.installed.clone(), self.terms(), self.now());
        self.waiting.tick(&installed.plan.routes, now, terms);
        self.apply_all(None);
    }

    /// Applies all outputs of the correlator; `heard` is the text of the frame that was just read.
    fn apply_all(&mut self, heard: Option<&Bytes>) {
        while let Some(output) = self.waiting.output() {
            self.apply(output, heard);
        }
        let strays = self.waiting.counts().unmatched;
        for _ in self.counts.late..strays {
            self.worker.count(|shard| shard.stray(Undelivered::Late));
        }
        self.counts.late = strays;
    }

    fn apply(&mut self, output: CorrelatorOutput, heard: Option<&Bytes>) {
        let text = |frame: Json| heard.cloned().unwrap_or_else(|| frame.into_bytes());
        match output {
            CorrelatorOutput::Write(ticket, frame) => {
                let frame: Rope = frame;
                self.out.push_back((ticket, frame.into_bytes()));
            }
            CorrelatorOutput::Answer(ticket, answer) => {
                self.send_reply(ticket, Ok(SocketReply::Answer(answer)))
            }
            CorrelatorOutput::Failed(ticket, why) => {
                self.withdraw(ticket);
                self.send_reply(ticket, Err(fault(why)));
            }
            CorrelatorOutput::Notification(frame) => {
                self.counts.notified += 1;
                let fate = self.outlet.notify(ServerNews::Event(text(frame)));
                self.share.standing().on_delivery(fate);
            }
            CorrelatorOutput::Passed(frame) => {
                self.outlet.notify(ServerNews::Answer(text(frame)));
            }
            // The deadline has passed before the frame was written completely.
            CorrelatorOutput::Done(ticket) if heard.is_none() && self.is_unwritten(ticket) => {
                self.withdraw(ticket);
                self.send_reply(ticket, Err(SocketCallError::Link(link::RequestError::Late)));
            }
            CorrelatorOutput::Done(ticket) => self.send_reply(ticket, Ok(SocketReply::Told)),
        }
    }

    /// Returns true if the frame is queued or being written.
    fn is_unwritten(&self, ticket: Ticket) -> bool {
        self.writing == Some(ticket) || self.out.iter().any(|(own, _)| *own == ticket)
    }

    /// Removes a frame from the write queue; a frame that is being written stays.
    fn withdraw(&mut self, ticket: Ticket) {
        self.out.retain(|(own, _)| *own != ticket);
    }

    fn send_reply(&mut self, ticket: Ticket, said: Result<SocketReply, SocketCallError>) {
        if let Some(reply) = self.callers.remove(&ticket) {
            self.outlet.answer(reply, said);
        }
    }
}

/// Reads a client's frame whose answer its route describes.
fn observe(
    table: &RouteTable,
    (ticket, frame): (Ticket, Json),
    (deadline, terms): (Duration, TranslateContext),
) -> Option<ObservedRequest> {
    let route = table.select_frame(&frame)?;
    let read = command_to_rpc(table.route(route), frame, terms).ok()?;
    Some(ObservedRequest {
        ticket,
        route,
        call: read.call,
        deadline,
    })
}

fn fault(why: FrameCallError) -> SocketCallError {
    match why {
        FrameCallError::Busy => SocketCallError::Link(link::RequestError::Busy),
        FrameCallError::Late => SocketCallError::Link(link::RequestError::Late),
        FrameCallError::Cut => SocketCallError::Link(link::RequestError::Cut),
        FrameCallError::Misfit(why) => SocketCallError::Misfit(why),
    }
}

#[cfg(test)]
mod tests;
