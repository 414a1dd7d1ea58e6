//! The conduct of a link: what is asked, written, given up, and when.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::queue::{Attempted, QueuedRequest, RequestQueue};
use super::state::{Handshake, LinkState, WriteState};
use super::subscriptions::Subscriptions;
use super::unattributed::{UnattributedReplies, UnattributedReply};
use super::{
    LinkFault, LinkInput, LinkOutput, LinkSettings, Outbound, Request, RequestError, Ticket,
};
use crate::domain::json::Json;
use crate::domain::jsonrpc;
use crate::domain::rope::Rope;

/// How many messages of the link's own may wait; they are answers and advice that a server can do without.
const CONTROLS: usize = 64;

/// What has happened on all links so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Links that were opened, or tried to.
    pub opened: u64,
    /// Answers that came when their caller had given up.
    pub late: u64,
    /// Answers to nothing that was asked, or to something that was answered; errors that could be anybody's.
    pub foreign: u64,
    /// Messages that are none, or too long.
    pub skipped: u64,
    /// Requests of the server that were declined.
    pub declined: u64,
    /// Notifications of the server.
    pub notified: u64,
}

/// A question that is written, and not answered yet.
#[derive(Debug)]
pub(super) struct InFlightRequest {
    pub(super) waiting: QueuedRequest,
}

/// Whether a server hears that nobody waits for an answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelNotice {
    Told,
    Silent,
}

/// The questions on a link, and the link itself.
#[derive(Debug)]
pub struct LinkMachine {
    pub(super) settings: LinkSettings,
    pub(super) state: LinkState,
    pub(super) wire: WriteState,
    pub(super) in_flight: BTreeMap<u64, InFlightRequest>,
    pub(super) queue: RequestQueue,
    pub(super) subscriptions: Subscriptions,
    pub(super) unattributed: UnattributedReplies,
    pub(super) greeted: Option<Handshake>,
    pub(super) controls: VecDeque<Bytes>,
    next_id: u64,
    /// Calls in a row that had no answer in time.
    pub(super) unanswered: usize,
    /// Links in a row that did not last.
    pub(super) attempts: u32,
    pub(super) heard: Duration,
    pinged: Option<Duration>,
    pub(super) counts: LinkCounts,
    pub(super) out: VecDeque<LinkOutput>,
}

impl LinkMachine {
    /// No link yet; the first [`LinkInput::Tick`] asks for one.
    #[must_use]
    pub fn new(settings: LinkSettings) -> LinkMachine {
        LinkMachine {
            settings,
            state: LinkState::Down(Duration::ZERO),
            wire: WriteState::Free,
            in_flight: BTreeMap::new(),
            queue: RequestQueue::default(),
            subscriptions: Subscriptions::default(),
            unattributed: UnattributedReplies::default(),
            greeted: None,
            controls: VecDeque::new(),
            next_id: 1,
            unanswered: 0,
            attempts: 0,
            heard: Duration::ZERO,
            pinged: None,
            counts: LinkCounts::default(),
            out: VecDeque::new(),
        }
    }

    /// Something has happened; what is to be done about it is handed out by [`LinkMachine::output`].
    pub fn take(&mut self, now: Duration, input: LinkInput) {
        // First, so that nobody is told anything but that after its deadline.
        self.expire(now);
        match input {
            LinkInput::Ask(ask) => self.request(ask),
            LinkInput::Cancel(ticket) => self.cancel(ticket, self.cancel_notice()),
            LinkInput::Recall(ticket) => self.cancel(ticket, CancelNotice::Told),
            LinkInput::Opened => self.opened(now),
            LinkInput::Written => self.written(now),
            LinkInput::Message(message) => self.message(now, message, None),
            LinkInput::Beside(id, message) => self.message(now, message, Some(id)),
            LinkInput::Overlong => self.overlong(now),
            LinkInput::Failed(id, why) => self.failed(id, why),
            LinkInput::Forgotten(id) => self.forgotten(now, id),
            LinkInput::Unwritten(why) => self.unwritten(now, why),
            LinkInput::Sign => self.on_received(now),
            LinkInput::Lost { luck } => self.lost(now, luck),
            LinkInput::Over => self.over(),
            LinkInput::Unsubscribe => self.end_subscriptions(),
            LinkInput::Tick => {}
        }
        self.tick(now);
        self.dispatch();
    }

    /// The next thing to do.
    pub fn output(&mut self) -> Option<LinkOutput> {
        self.out.pop_front()
    }

    /// When the time has to be told again, at the latest.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        let state = match self.state {
            LinkState::Down(at) => Some(at),
            LinkState::Opening(by) | LinkState::Greeting { by, .. } | LinkState::Leaving(by) => {
                Some(by)
            }
            LinkState::Ready(_) => self.heartbeat(),
            LinkState::Closing => None,
        };
        let flights = self.in_flight.values();
        let deadline = flights.map(|flight| flight.waiting.ask.deadline).min();
        let wire = match self.wire {
            WriteState::Notice(_, at) | WriteState::Resting(at) => Some(at),
            WriteState::Free | WriteState::Busy | WriteState::Unanswered => None,
        };
        let subscriptions = self.subscriptions.alarm();
        [state, deadline, wire, self.queue.alarm(), subscriptions]
            .into_iter()
            .flatten()
            .min()
    }

    /// How deep messages may be nested.
    #[must_use]
    pub fn depth(&self) -> u16 {
        self.settings.depth
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> LinkCounts {
        self.counts
    }

    /// How many questions are written and not answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// How many wait for their turn.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether calls go out.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, LinkState::Ready(_))
    }

    /// Whether nobody waits for anything.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let noticed = matches!(self.wire, WriteState::Notice(..));
        self.in_flight.is_empty()
            && self.subscriptions.is_empty()
            && self.queue.len() == 0
            && !noticed
    }

    /// Whether nothing is left to be written: neither what a caller has asked nor what the link says by itself.
    #[must_use]
    pub fn has_sent_all(&self) -> bool {
        let is_written = matches!(self.wire, WriteState::Free | WriteState::Resting(_));
        !self.is_ready() || (is_written && self.controls.is_empty())
    }

    /// How many things are kept for which nobody waits.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.unattributed.len() + self.controls.len()
    }

    fn request(&mut self, ask: Request) {
        let hopeless = matches!(self.state, LinkState::Down(until) if until >= ask.start_by);
        if hopeless {
            return self.fail(ask.ticket, RequestError::Unreachable);
        }
        let has_room = match ask.say {
            Outbound::Subscription(..) => self.subscriptions.has_room(),
            Outbound::Call(_) | Outbound::Notice(_) | Outbound::Greeting => true,
        };
        if !has_room || !self.queue.takes(ask.rank, self.settings.queue) {
            return self.fail(ask.ticket, RequestError::Busy);
        }
        self.queue.push(QueuedRequest {
            ask,
            past: Attempted::Unsent,
        });
    }

    fn cancel(&mut self, ticket: Ticket, farewell: CancelNotice) {
        if self.queue.remove(ticket) || self.unsubscribe(ticket) {
            return;
        }
        let mut flights = self.in_flight.iter();
        let found = flights.find(|(_, flight)| flight.waiting.ask.ticket == ticket);
        if let Some(id) = found.map(|(id, _)| *id) {
            self.in_flight.remove(&id);
            self.abandon(id, farewell);
        }
    }

    /// Nobody waits for an answer any more, but the server may still give it.
    pub(super) fn abandon(&mut self, id: u64, farewell: CancelNotice) {
        self.unattributed.add(id, UnattributedReply::Abandoned);
        if farewell == CancelNotice::Told {
            let params = format!("{{\"requestId\":{id}}}");
            let params = Rope::from(Bytes::from(params));
            let method = "notifications/cancelled";
            self.control(jsonrpc::notification(method, params, &[]).into_bytes());
        }
    }

    /// Whether a server knows what it means that nobody waits any more, as far as the link itself can tell.
    fn cancel_notice(&self) -> CancelNotice {
        match self.settings.greeting {
            Some(_) => CancelNotice::Told,
            None => CancelNotice::Silent,
        }
    }

    /// A message of the link's own.
    pub(super) fn control(&mut self, message: Bytes) {
        if self.controls.len() < CONTROLS {
            self.controls.push_back(message);
        }
    }

    pub(super) fn fail(&mut self, ticket: Ticket, why: RequestError) {
        self.out.push_back(LinkOutput::Failed(ticket, why));
    }

    pub(super) fn next_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn opened(&mut self, now: Duration) {
        let LinkState::Opening(by) = self.state else {
            return;
        };
        self.on_received(now);
        let Some(params) = &self.settings.greeting else {
            return self.ready(now);
        };
        let params = Rope::from(Json::clone(params).into_bytes());
        let id = self.next_id();
        let message = jsonrpc::request(id, "initialize", params, &[]);
        self.state = LinkState::Greeting { id, by };
        self.write(message.into_bytes(), WriteState::Busy);
    }

    pub(super) fn ready(&mut self, now: Duration) {
        self.state = LinkState::Ready(now);
        self.out.push_back(LinkOutput::Ready);
    }

    pub(super) fn write(&mut self, message: Bytes, wire: WriteState) {
        self.wire = wire;
        self.out.push_back(LinkOutput::Write(message));
    }

    pub(super) fn written(&mut self, now: Duration) {
        let rest = match self.settings.pause {
            Duration::ZERO => WriteState::Free,
            pause => WriteState::Resting(now + pause),
        };
        self.wire = match self.wire {
            WriteState::Notice(ticket, _) => {
                self.out.push_back(LinkOutput::Told(ticket));
                rest
            }
            WriteState::Unanswered => rest,
            WriteState::Busy | WriteState::Free | WriteState::Resting(_) => WriteState::Free,
        };
    }

    /// Gives the link up; nobody who waits on it is answered any more.
    pub(super) fn close(&mut self, why: LinkFault) {
        self.state = LinkState::Closing;
        self.drop_in_flight();
        self.out.push_back(LinkOutput::Close(why));
    }

    fn lost(&mut self, now: Duration, luck: u16) {
        if let LinkState::Ready(since) = self.state
            && now.saturating_sub(since) >= self.settings.backoff.steady
        {
            self.attempts = 0;
        }
        self.drop_in_flight();
        self.controls.clear();
        self.unattributed.clear();
        self.greeted = None;
        self.unanswered = 0;
        self.pinged = None;
        let wait = self.settings.backoff.wait(self.attempts, luck);
        self.attempts = self.attempts.saturating_add(1);
        self.state = LinkState::Down(now + wait);
    }

    /// What was written to a link that is over is answered no more. In the order of asking it goes back to where it
    /// came from, if it may.
    fn drop_in_flight(&mut self) {
        if let WriteState::Notice(ticket, _) = self.wire {
            self.fail(ticket, RequestError::Cut);
        }
        self.wire = WriteState::Free;
        self.cut_subscriptions();
        for (_, flight) in std::mem::take(&mut self.in_flight).into_iter().rev() {
            self.cut(flight);
        }
    }

    fn tick(&mut self, now: Duration) {
        if matches!(self.wire, WriteState::Resting(until) if until <= now) {
            self.wire = WriteState::Free;
        }
        match self.state {
            LinkState::Down(at) if at <= now => {
                self.state = LinkState::Opening(now + self.settings.start_timeout);
                self.counts.opened += 1;
                self.out.push_back(LinkOutput::Open);
            }
            LinkState::Opening(by) | LinkState::Greeting { by, .. } if by <= now => {
                self.close(LinkFault::Slow);
            }
            LinkState::Ready(_) if self.is_stalled() => self.close(LinkFault::Stalled),
            LinkState::Ready(_) => self.on_heartbeat(now),
            LinkState::Leaving(by) if by <= now || self.in_flight.is_empty() => {
                self.close(LinkFault::Forgotten);
            }
            LinkState::Leaving(_)
            | LinkState::Down(_)
            | LinkState::Opening(_)
            | LinkState::Greeting { .. }
            | LinkState::Closing => {}
        }
    }

    fn is_stalled(&self) -> bool {
        let limit = self.settings.unanswered;
        limit > 0 && self.unanswered >= limit
    }

    fn expire(&mut self, now: Duration) {
        let nobody = match self.state {
            LinkState::Ready(_) => RequestError::Busy,
            LinkState::Down(_)
            | LinkState::Opening(_)
            | LinkState::Greeting { .. }
            | LinkState::Leaving(_)
            | LinkState::Closing => RequestError::Unreachable,
        };
        for over in self.queue.take_expired(now) {
            let why = match over.past {
                Attempted::Unsent => nobody,
                Attempted::Sent => RequestError::Cut,
            };
            self.fail(over.ask.ticket, why);
            let writes = !matches!(self.wire, WriteState::Free | WriteState::Resting(_));
            if self.is_ready() && writes {
                // A server that does not read does not answer, either.
                self.unanswered += 1;
            }
        }
        if let WriteState::Notice(ticket, deadline) = self.wire
            && deadline <= now
        {
            self.wire = WriteState::Unanswered;
            self.fail(ticket, RequestError::Late);
            self.unanswered += 1;
        }
        self.expire_subscriptions(now);
        let late = |flight: &InFlightRequest| flight.waiting.ask.deadline <= now;
        let late = self.in_flight.iter().filter(|(_, flight)| late(flight));
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        for id in late {
            if let Some(flight) = self.in_flight.remove(&id) {
                self.fail(flight.waiting.ask.ticket, RequestError::Late);
                self.abandon(id, self.cancel_notice());
                self.unanswered += 1;
            }
        }
    }

    /// When the heart is to beat, or to have beaten.
    fn heartbeat(&self) -> Option<Duration> {
        let heartbeat = self.settings.heartbeat?;
        Some(match self.pinged {
            None => self.heard + heartbeat.every,
            Some(at) => at + heartbeat.within,
        })
    }

    fn on_heartbeat(&mut self, now: Duration) {
        if self.heartbeat().is_none_or(|at| at > now) {
            return;
        }
        if self.pinged.is_some() {
            return self.close(LinkFault::Silent);
        }
        self.pinged = Some(now);
        self.out.push_back(LinkOutput::Ping);
    }

    /// The server lives.
    pub(super) fn on_received(&mut self, now: Duration) {
        self.heard = now;
        self.pinged = None;
    }
}
