//! The conduct of a link: what is asked, written, given up, and when.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::doubts::{Doubt, Doubts};
use super::queue::{Past, Queue, Waiting};
use super::subscriptions::Subscriptions;
use super::turn::{Greeted, State, Wire};
use super::{Ask, Fault, Input, Output, Say, Settings, Ticket, Unanswered};
use crate::domain::json::Json;
use crate::domain::jsonrpc;
use crate::domain::pieces::Pieces;

/// How many messages of the link's own may wait; they are answers and advice that a server can do without.
const CONTROLS: usize = 64;

/// What has happened on all links so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
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
pub(super) struct Flight {
    pub(super) waiting: Waiting,
}

/// Whether a server hears that nobody waits for an answer any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Farewell {
    Told,
    Silent,
}

/// The questions on a link, and the link itself.
#[derive(Debug)]
pub struct Pending {
    pub(super) settings: Settings,
    pub(super) state: State,
    pub(super) wire: Wire,
    pub(super) flights: BTreeMap<u64, Flight>,
    pub(super) queue: Queue,
    pub(super) subscriptions: Subscriptions,
    pub(super) doubts: Doubts,
    pub(super) greeted: Option<Greeted>,
    pub(super) controls: VecDeque<Bytes>,
    next_id: u64,
    /// Calls in a row that had no answer in time.
    pub(super) unanswered: usize,
    /// Links in a row that did not last.
    pub(super) attempts: u32,
    pub(super) heard: Duration,
    pinged: Option<Duration>,
    pub(super) counts: Counts,
    pub(super) out: VecDeque<Output>,
}

impl Pending {
    /// No link yet; the first [`Input::Tick`] asks for one.
    #[must_use]
    pub fn new(settings: Settings) -> Pending {
        Pending {
            settings,
            state: State::Down(Duration::ZERO),
            wire: Wire::Free,
            flights: BTreeMap::new(),
            queue: Queue::default(),
            subscriptions: Subscriptions::default(),
            doubts: Doubts::default(),
            greeted: None,
            controls: VecDeque::new(),
            next_id: 1,
            unanswered: 0,
            attempts: 0,
            heard: Duration::ZERO,
            pinged: None,
            counts: Counts::default(),
            out: VecDeque::new(),
        }
    }

    /// Something has happened; what is to be done about it is handed out by [`Pending::output`].
    pub fn take(&mut self, now: Duration, input: Input) {
        // First, so that nobody is told anything but that after its deadline.
        self.expire(now);
        match input {
            Input::Ask(ask) => self.ask(ask),
            Input::Cancel(ticket) => self.cancel(ticket, self.farewell()),
            Input::Recall(ticket) => self.cancel(ticket, Farewell::Told),
            Input::Opened => self.opened(now),
            Input::Written => self.written(now),
            Input::Message(message) => self.message(now, message, None),
            Input::Beside(id, message) => self.message(now, message, Some(id)),
            Input::Overlong => self.overlong(now),
            Input::Failed(id, why) => self.failed(id, why),
            Input::Forgotten(id) => self.forgotten(now, id),
            Input::Unwritten(why) => self.unwritten(now, why),
            Input::Sign => self.heard(now),
            Input::Lost { luck } => self.lost(now, luck),
            Input::Over => self.over(),
            Input::Unsubscribe => self.end_subscriptions(),
            Input::Tick => {}
        }
        self.tick(now);
        self.dispatch();
    }

    /// The next thing to do.
    pub fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When the time has to be told again, at the latest.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        let state = match self.state {
            State::Down(at) => Some(at),
            State::Opening(by) | State::Greeting { by, .. } | State::Leaving(by) => Some(by),
            State::Ready(_) => self.heartbeat(),
            State::Closing => None,
        };
        let flights = self.flights.values();
        let deadline = flights.map(|flight| flight.waiting.ask.deadline).min();
        let wire = match self.wire {
            Wire::Notice(_, at) | Wire::Resting(at) => Some(at),
            Wire::Free | Wire::Busy | Wire::Unanswered => None,
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
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many questions are written and not answered.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// How many wait for their turn.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether calls go out.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }

    /// Whether nobody waits for anything.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let noticed = matches!(self.wire, Wire::Notice(..));
        self.flights.is_empty()
            && self.subscriptions.is_empty()
            && self.queue.len() == 0
            && !noticed
    }

    /// Whether nothing is left to be written: neither what a caller has asked nor what the link says by itself.
    #[must_use]
    pub fn has_said_all(&self) -> bool {
        let is_written = matches!(self.wire, Wire::Free | Wire::Resting(_));
        !self.is_ready() || (is_written && self.controls.is_empty())
    }

    /// How many things are kept for which nobody waits.
    #[must_use]
    pub fn left_over(&self) -> usize {
        self.doubts.len() + self.controls.len()
    }

    fn ask(&mut self, ask: Ask) {
        let hopeless = matches!(self.state, State::Down(until) if until >= ask.start_by);
        if hopeless {
            return self.fail(ask.ticket, Unanswered::Unreachable);
        }
        let has_room = match ask.say {
            Say::Subscription(..) => self.subscriptions.has_room(),
            Say::Call(_) | Say::Notice(_) | Say::Greeting => true,
        };
        if !has_room || !self.queue.takes(ask.rank, self.settings.queue) {
            return self.fail(ask.ticket, Unanswered::Busy);
        }
        self.queue.push(Waiting {
            ask,
            past: Past::Unsent,
        });
    }

    fn cancel(&mut self, ticket: Ticket, farewell: Farewell) {
        if self.queue.remove(ticket) || self.unsubscribe(ticket) {
            return;
        }
        let mut flights = self.flights.iter();
        let found = flights.find(|(_, flight)| flight.waiting.ask.ticket == ticket);
        if let Some(id) = found.map(|(id, _)| *id) {
            self.flights.remove(&id);
            self.abandon(id, farewell);
        }
    }

    /// Nobody waits for an answer any more, but the server may still give it.
    pub(super) fn abandon(&mut self, id: u64, farewell: Farewell) {
        self.doubts.add(id, Doubt::Abandoned);
        if farewell == Farewell::Told {
            let params = format!("{{\"requestId\":{id}}}");
            let params = Pieces::from(Bytes::from(params));
            let method = "notifications/cancelled";
            self.control(jsonrpc::notification(method, params, &[]).into_bytes());
        }
    }

    /// Whether a server knows what it means that nobody waits any more, as far as the link itself can tell.
    fn farewell(&self) -> Farewell {
        match self.settings.greeting {
            Some(_) => Farewell::Told,
            None => Farewell::Silent,
        }
    }

    /// A message of the link's own.
    pub(super) fn control(&mut self, message: Bytes) {
        if self.controls.len() < CONTROLS {
            self.controls.push_back(message);
        }
    }

    pub(super) fn fail(&mut self, ticket: Ticket, why: Unanswered) {
        self.out.push_back(Output::Failed(ticket, why));
    }

    pub(super) fn mint(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    fn opened(&mut self, now: Duration) {
        let State::Opening(by) = self.state else {
            return;
        };
        self.heard(now);
        let Some(params) = &self.settings.greeting else {
            return self.ready(now);
        };
        let params = Pieces::from(Json::clone(params).into_bytes());
        let id = self.mint();
        let message = jsonrpc::request(id, "initialize", params, &[]);
        self.state = State::Greeting { id, by };
        self.write(message.into_bytes(), Wire::Busy);
    }

    pub(super) fn ready(&mut self, now: Duration) {
        self.state = State::Ready(now);
        self.out.push_back(Output::Ready);
    }

    pub(super) fn write(&mut self, message: Bytes, wire: Wire) {
        self.wire = wire;
        self.out.push_back(Output::Write(message));
    }

    pub(super) fn written(&mut self, now: Duration) {
        let rest = match self.settings.pause {
            Duration::ZERO => Wire::Free,
            pause => Wire::Resting(now + pause),
        };
        self.wire = match self.wire {
            Wire::Notice(ticket, _) => {
                self.out.push_back(Output::Told(ticket));
                rest
            }
            Wire::Unanswered => rest,
            Wire::Busy | Wire::Free | Wire::Resting(_) => Wire::Free,
        };
    }

    /// Gives the link up; nobody who waits on it is answered any more.
    pub(super) fn close(&mut self, why: Fault) {
        self.state = State::Closing;
        self.drop_flights();
        self.out.push_back(Output::Close(why));
    }

    fn lost(&mut self, now: Duration, luck: u16) {
        if let State::Ready(since) = self.state
            && now.saturating_sub(since) >= self.settings.backoff.steady
        {
            self.attempts = 0;
        }
        self.drop_flights();
        self.controls.clear();
        self.doubts.clear();
        self.greeted = None;
        self.unanswered = 0;
        self.pinged = None;
        let wait = self.settings.backoff.wait(self.attempts, luck);
        self.attempts = self.attempts.saturating_add(1);
        self.state = State::Down(now + wait);
    }

    /// What was written to a link that is over is answered no more. In the order of asking it goes back to where it
    /// came from, if it may.
    fn drop_flights(&mut self) {
        if let Wire::Notice(ticket, _) = self.wire {
            self.fail(ticket, Unanswered::Cut);
        }
        self.wire = Wire::Free;
        self.cut_subscriptions();
        for (_, flight) in std::mem::take(&mut self.flights).into_iter().rev() {
            self.cut(flight);
        }
    }

    fn tick(&mut self, now: Duration) {
        if matches!(self.wire, Wire::Resting(until) if until <= now) {
            self.wire = Wire::Free;
        }
        match self.state {
            State::Down(at) if at <= now => {
                self.state = State::Opening(now + self.settings.start_timeout);
                self.counts.opened += 1;
                self.out.push_back(Output::Open);
            }
            State::Opening(by) | State::Greeting { by, .. } if by <= now => {
                self.close(Fault::Slow);
            }
            State::Ready(_) if self.is_stalled() => self.close(Fault::Stalled),
            State::Ready(_) => self.beat(now),
            State::Leaving(by) if by <= now || self.flights.is_empty() => {
                self.close(Fault::Forgotten);
            }
            State::Leaving(_)
            | State::Down(_)
            | State::Opening(_)
            | State::Greeting { .. }
            | State::Closing => {}
        }
    }

    fn is_stalled(&self) -> bool {
        let limit = self.settings.unanswered;
        limit > 0 && self.unanswered >= limit
    }

    fn expire(&mut self, now: Duration) {
        let nobody = match self.state {
            State::Ready(_) => Unanswered::Busy,
            State::Down(_)
            | State::Opening(_)
            | State::Greeting { .. }
            | State::Leaving(_)
            | State::Closing => Unanswered::Unreachable,
        };
        for over in self.queue.take_expired(now) {
            let why = match over.past {
                Past::Unsent => nobody,
                Past::Sent => Unanswered::Cut,
            };
            self.fail(over.ask.ticket, why);
            let writes = !matches!(self.wire, Wire::Free | Wire::Resting(_));
            if self.is_ready() && writes {
                // A server that does not read does not answer, either.
                self.unanswered += 1;
            }
        }
        if let Wire::Notice(ticket, deadline) = self.wire
            && deadline <= now
        {
            self.wire = Wire::Unanswered;
            self.fail(ticket, Unanswered::Late);
            self.unanswered += 1;
        }
        self.expire_subscriptions(now);
        let late = |flight: &Flight| flight.waiting.ask.deadline <= now;
        let late = self.flights.iter().filter(|(_, flight)| late(flight));
        let late: Vec<u64> = late.map(|(id, _)| *id).collect();
        for id in late {
            if let Some(flight) = self.flights.remove(&id) {
                self.fail(flight.waiting.ask.ticket, Unanswered::Late);
                self.abandon(id, self.farewell());
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

    fn beat(&mut self, now: Duration) {
        if self.heartbeat().is_none_or(|at| at > now) {
            return;
        }
        if self.pinged.is_some() {
            return self.close(Fault::Silent);
        }
        self.pinged = Some(now);
        self.out.push_back(Output::Ping);
    }

    /// The server lives.
    pub(super) fn heard(&mut self, now: Duration) {
        self.heard = now;
        self.pinged = None;
    }
}
