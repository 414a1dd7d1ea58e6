//! Who waits for which frame, on a socket whose server speaks in frames.
//!
//! It does no I/O: what happens comes in with the time, [`CorrelatorOutput`]s say what to do. Laws (held by a seeded simulation):
//! a caller is told exactly one thing, by his deadline, unless he went away; a frame answers a call only where every
//! hole that they share has one value, among equals the one that waits for longest; a frame that bears an id reaches
//! its caller or nobody; the list of those who wait is bounded, and empty when nobody asks. A client that speaks in
//! frames itself is only listened to: what answers it goes on to it, so that there a frame of nobody is its own, unless
//! it bears an id that was given here. No two that wait have one id, whoever gave it. Of a frame that no route reads the
//! answer is known by its id alone, so that nothing is made of it but the end of the waiting.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::json::Json;
use crate::domain::outcome::{Correlation, RpcAnswer, TranslatedReply};
use crate::domain::pattern::{Bindings, BoundValue};
use crate::domain::pending::Ticket;
use crate::domain::rope::Rope;
use crate::domain::route::{BindError, ExpectsReply, RouteTable};
use crate::domain::translate::TranslateContext;

use super::translate::rpc_to_command;
use super::unrouted::{self, UnroutedRequests};

/// An RPC call that is to be said in a frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameCommand<'c> {
    /// Who asks.
    pub ticket: Ticket,
    /// The route, by its place in the table.
    pub route: usize,
    /// The method and the params.
    pub call: (&'c str, Option<&'c Json>),
    /// When it is given up.
    pub deadline: Duration,
}

/// A frame that a client has written itself, whose answer is looked for in passing.
#[derive(Debug)]
pub struct ObservedRequest {
    /// Its name.
    pub ticket: Ticket,
    /// The route, by its place in the table.
    pub route: usize,
    /// What the holes are.
    pub call: Bindings,
    /// When nothing is looked for any more.
    pub deadline: Duration,
}

/// What is to be done.
#[derive(Debug)]
pub enum CorrelatorOutput {
    /// Write a frame; [`FrameCorrelator::sent`] is expected for the ticket.
    Write(Ticket, Rope),
    /// A caller has his answer.
    Answer(Ticket, TranslatedReply<RpcAnswer>),
    /// A caller gets none.
    Failed(Ticket, FrameCallError),
    /// A frame that is news, for `[[event]]`.
    News(Json),
    /// A frame that answers the client itself, or may.
    Passed(Json),
    /// A frame of the client that no route reads has its answer, or none came in time.
    Over(Ticket),
}

/// Why a caller gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameCallError {
    /// Too many wait; nothing was written.
    Busy,
    /// The call does not fit its route; nothing was written.
    Misfit(BindError),
    /// No answer came in time.
    Late,
    /// The socket is gone.
    Cut,
}

/// What has happened so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames that answered a call.
    pub answered: u64,
    /// Silences that did.
    pub silent: u64,
    /// Frames that bear an id for which nobody waits: late, given twice, or of another one's call.
    pub stray: u64,
}

/// Who waits, in the order of asking.
#[derive(Debug)]
pub struct FrameCorrelator {
    calls: VecDeque<PendingFrame>,
    strangers: UnroutedRequests,
    most: usize,
    /// The ids that were given are from here on, up to the next one.
    first: u64,
    next: u64,
    counts: FrameCounts,
    client: Client,
    out: VecDeque<CorrelatorOutput>,
}

/// What the client on the other end speaks here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// Frames are written for it.
    Rpc,
    /// It has written some itself.
    Frames,
}

#[derive(Debug)]
struct PendingFrame {
    ticket: Ticket,
    route: usize,
    call: Bindings,
    deadline: Duration,
    dropped: usize,
    asked: Client,
    /// From when on the silence is an answer; unknown until the frame is written.
    silent: Option<Duration>,
}

impl FrameCorrelator {
    /// Nobody waits, and so many may.
    #[must_use]
    pub fn new(most: usize) -> FrameCorrelator {
        FrameCorrelator {
            calls: VecDeque::new(),
            strangers: UnroutedRequests::default(),
            most,
            first: 1,
            next: 1,
            counts: FrameCounts::default(),
            client: Client::Rpc,
            out: VecDeque::new(),
        }
    }

    /// The ids that are given are numbers from here on.
    #[must_use]
    pub fn with_first_id(self, first: u64) -> FrameCorrelator {
        FrameCorrelator {
            first,
            next: first,
            ..self
        }
    }

    /// The next thing to do.
    pub fn output(&mut self) -> Option<CorrelatorOutput> {
        self.out.pop_front()
    }

    /// When the time has to be told again, at the latest.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        let calls = self.calls.iter().map(PendingFrame::ends);
        calls.chain(self.strangers.alarm()).min()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// Whether a caller waits.
    #[must_use]
    pub fn waits(&self, ticket: Ticket) -> bool {
        self.calls.iter().any(|call| call.ticket == ticket) || self.strangers.has(ticket)
    }

    /// Whether the client has written frames itself.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.client == Client::Frames
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len() + self.strangers.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Somebody asks. What answers nothing is not waited for.
    pub fn ask(
        &mut self,
        table: &RouteTable,
        (now, command): (Duration, FrameCommand<'_>),
        terms: TranslateContext,
    ) {
        self.tick(table, now, terms);
        let ticket = command.ticket;
        let waits = table.route(command.route).waits == ExpectsReply::Yes;
        if waits && self.len() >= self.most {
            return self.fail(ticket, FrameCallError::Busy);
        }
        if command.deadline <= now {
            return self.fail(ticket, FrameCallError::Late);
        }
        let number = self.assign_id(table);
        match rpc_to_command(table, command.route, (command.call, number), terms) {
            Err(why) => self.fail(ticket, FrameCallError::Misfit(why)),
            Ok(framed) => {
                self.out
                    .push_back(CorrelatorOutput::Write(ticket, framed.frame));
                if waits {
                    self.calls.push_back(PendingFrame {
                        ticket,
                        route: command.route,
                        call: framed.call,
                        deadline: command.deadline,
                        dropped: framed.dropped,
                        asked: Client::Rpc,
                        silent: None,
                    });
                }
            }
        }
    }

    /// A client writes a frame of its own; from now on it is one that does.
    pub fn forwards(&mut self) {
        self.client = Client::Frames;
    }

    /// The same, and its answer is looked for, if it has one and not too many wait; tells whether it is.
    pub fn observe(&mut self, table: &RouteTable, overheard: ObservedRequest) -> bool {
        self.forwards();
        let waits = table.route(overheard.route).waits == ExpectsReply::Yes;
        if !waits || self.len() >= self.most {
            return false;
        }
        self.calls.push_back(PendingFrame {
            ticket: overheard.ticket,
            route: overheard.route,
            call: overheard.call,
            deadline: overheard.deadline,
            dropped: 0,
            asked: Client::Frames,
            silent: None,
        });
        true
    }

    /// A client writes a frame that no route reads. If it has an id that no call has which waits, the frame that bears
    /// the same is looked for; tells whether it is.
    pub fn forward_unread(
        &mut self,
        table: &RouteTable,
        (ticket, frame): (Ticket, &Json),
        deadline: Duration,
    ) -> bool {
        self.forwards();
        let Some(id) = unrouted::id_of(table, frame) else {
            return false;
        };
        let mut calls = self.calls.iter();
        let is_taken = self.strangers.carries_id(&id)
            || calls.any(|call| id_of(table, call.route, &call.call).as_ref() == Some(&id));
        if is_taken || self.len() >= self.most {
            return false;
        }
        self.strangers.add(ticket, id, deadline);
        true
    }

    /// Whether a client's frame has the id that was given to a call, which waits still: one answer would fit both.
    #[must_use]
    pub fn clashes(&self, table: &RouteTable, overheard: &ObservedRequest) -> bool {
        let id = id_of(table, overheard.route, &overheard.call);
        let mut given = self.calls.iter().filter(|call| call.asked == Client::Rpc);
        id.is_some() && given.any(|call| id_of(table, call.route, &call.call) == id)
    }

    /// A number that nobody who waits has for his id.
    fn assign_id(&mut self, table: &RouteTable) -> u64 {
        loop {
            let number = self.next;
            self.next += 1;
            let mut ids = self
                .calls
                .iter()
                .filter_map(|call| id_of(table, call.route, &call.call));
            let number_as_id = number.to_string();
            if !ids.any(|id| id == number_as_id) && !self.strangers.carries_id(&number_as_id) {
                return number;
            }
        }
    }

    /// The frame of a caller is written whole: from now on a silence is one.
    pub fn sent(&mut self, table: &RouteTable, (now, ticket): (Duration, Ticket)) {
        let mut calls = self.calls.iter_mut();
        if let Some(call) = calls.find(|call| call.ticket == ticket) {
            let silence = table.route(call.route).silence;
            call.silent = silence.map(|silence| now + silence);
        }
    }

    /// A caller has gone away.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.calls.retain(|call| call.ticket != ticket);
        self.strangers.cancel(ticket);
    }

    /// The socket is gone, and with it all answers.
    pub fn connection_lost(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.fail(call.ticket, FrameCallError::Cut);
        }
        for ticket in self.strangers.take() {
            self.fail(ticket, FrameCallError::Cut);
        }
    }

    /// The server has said something.
    pub fn receive(
        &mut self,
        table: &RouteTable,
        (now, frame): (Duration, Json),
        terms: TranslateContext,
    ) {
        // First, so that nobody is told anything but that after his deadline.
        self.tick(table, now, terms);
        let mut calls = self.calls.iter().enumerate();
        let found = calls.find_map(|(place, call)| {
            let route = table.route(call.route);
            let heard = route
                .outcomes
                .correlate(&frame, (&call.call, route.id), terms)?;
            Some((place, heard))
        });
        let Some((place, (answer, addressed))) = found else {
            let over = self.strangers.answered(table, &frame);
            let told = match (self.id_borne(table, &frame, terms.depth), self.client) {
                (None, _) => CorrelatorOutput::News(frame),
                (Some(id), Client::Frames) if !self.is_assigned(&id) => {
                    CorrelatorOutput::Passed(frame)
                }
                (Some(_), Client::Frames | Client::Rpc) => {
                    self.counts.stray += 1;
                    return self.out.extend(over.map(CorrelatorOutput::Over));
                }
            };
            self.out.push_back(told);
            // Behind the frame, so that whoever waits for the end has it by then.
            self.out.extend(over.map(CorrelatorOutput::Over));
            return;
        };
        let Some(call) = self.calls.remove(place) else {
            return;
        };
        self.counts.answered += 1;
        match (call.asked, addressed) {
            (Client::Frames, _) => {
                // Before the call is over, so that whoever waits for its end has the answer by then.
                self.out.push_back(CorrelatorOutput::Passed(frame));
                self.answer(&call, answer);
            }
            (Client::Rpc, Correlation::ToAll) => {
                self.answer(&call, answer);
                self.out.push_back(CorrelatorOutput::News(frame));
            }
            (Client::Rpc, Correlation::ToCaller) => self.answer(&call, answer),
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, table: &RouteTable, now: Duration, terms: TranslateContext) {
        while let Some(place) = self.calls.iter().position(|call| call.ends() <= now) {
            let Some(call) = self.calls.remove(place) else {
                return;
            };
            // Of a silence and a deadline the earlier one counts, however late the time is told.
            let silent = call.silent.filter(|silent| *silent < call.deadline);
            let outcomes = &table.route(call.route).outcomes;
            match silent.and_then(|_| outcomes.correlate_nothing(&call.call, terms)) {
                Some(answer) => {
                    self.counts.silent += 1;
                    self.answer(&call, answer);
                }
                None => self.fail(call.ticket, FrameCallError::Late),
            }
        }
        let over = self.strangers.expired(now);
        self.out
            .extend(over.into_iter().map(CorrelatorOutput::Over));
    }

    /// Tells a caller his answer, with what his call had no place for.
    fn answer(&mut self, call: &PendingFrame, answer: TranslatedReply<RpcAnswer>) {
        let dropped = answer.dropped + call.dropped;
        let answer = TranslatedReply { dropped, ..answer };
        self.out
            .push_back(CorrelatorOutput::Answer(call.ticket, answer));
    }

    fn fail(&mut self, ticket: Ticket, why: FrameCallError) {
        self.out.push_back(CorrelatorOutput::Failed(ticket, why));
    }

    /// The id of a frame that is the answer of somebody's call, though of none that waits.
    fn id_borne(&self, table: &RouteTable, frame: &Json, depth: u16) -> Option<String> {
        let mut routes = table.routes().iter();
        let borne = routes.find_map(|route| route.outcomes.id_borne(frame, route.id?, depth));
        borne.map(|id| spelled(&id))
    }

    /// Whether an id was given here.
    fn is_assigned(&self, id: &str) -> bool {
        id.parse()
            .is_ok_and(|id| (self.first..self.next).contains(&id))
    }
}

/// The id of a call, whether its frame has it as a text or as a number.
fn id_of(table: &RouteTable, route: usize, call: &Bindings) -> Option<String> {
    match call.get(table.route(route).id?) {
        BoundValue::Value(id) => Some(spelled(id)),
        BoundValue::Unbound | BoundValue::Absent | BoundValue::Members(_) | BoundValue::Each(_) => {
            None
        }
    }
}

pub(super) fn spelled(id: &Json) -> String {
    match id.text() {
        Some(Ok(text)) => text,
        Some(Err(_)) | None => String::from_utf8_lossy(id.as_bytes()).into_owned(),
    }
}

impl PendingFrame {
    fn ends(&self) -> Duration {
        let silent = self.silent.unwrap_or(self.deadline);
        silent.min(self.deadline)
    }
}
