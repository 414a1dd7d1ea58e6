//! Who waits for which frame, on a socket whose server speaks in frames.
//!
//! It does no I/O: what happens comes in with the time, [`Output`]s say what to do. Laws (held by a seeded simulation):
//! a caller is told exactly one thing, by his deadline, unless he went away; a frame answers a call only where every
//! hole that they share has one value, among equals the one that waits for longest; a frame that bears an id reaches
//! its caller or nobody; the list of those who wait is bounded, and empty when nobody asks. A client that speaks in
//! frames itself is only listened to: what answers it goes on to it, so that there a frame of nobody is its own, unless
//! it bears an id that was given here. No two that wait have one id, whoever gave it. Of a frame that no route reads the
//! answer is known by its id alone, so that nothing is made of it but the end of the waiting.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::json::Json;
use crate::domain::outcome::{Addressed, Answered, RpcAnswer};
use crate::domain::pattern::{Bindings, Bound};
use crate::domain::pending::Ticket;
use crate::domain::pieces::Pieces;
use crate::domain::route::{BindError, RouteTable, Waits};
use crate::domain::translate::Terms;

use super::strangers::{self, Strangers};
use super::translate::rpc_to_command;

/// An RPC call that is to be said in a frame.
#[derive(Debug, Clone, Copy)]
pub struct Command<'c> {
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
pub struct Overheard {
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
pub enum Output {
    /// Write a frame; [`Waiting::sent`] is expected for the ticket.
    Write(Ticket, Pieces),
    /// A caller has his answer.
    Answer(Ticket, Answered<RpcAnswer>),
    /// A caller gets none.
    Failed(Ticket, Unanswered),
    /// A frame that is news, for `[[event]]`.
    News(Json),
    /// A frame that answers the client itself, or may.
    Passed(Json),
    /// A frame of the client that no route reads has its answer, or none came in time.
    Over(Ticket),
}

/// Why a caller gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
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
pub struct Counts {
    /// Frames that answered a call.
    pub answered: u64,
    /// Silences that did.
    pub silent: u64,
    /// Frames that bear an id for which nobody waits: late, given twice, or of another one's call.
    pub stray: u64,
}

/// Who waits, in the order of asking.
#[derive(Debug)]
pub struct Waiting {
    calls: VecDeque<Call>,
    strangers: Strangers,
    most: usize,
    /// The ids that were given are from here on, up to the next one.
    first: u64,
    next: u64,
    counts: Counts,
    client: Client,
    out: VecDeque<Output>,
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
struct Call {
    ticket: Ticket,
    route: usize,
    call: Bindings,
    deadline: Duration,
    dropped: usize,
    asked: Client,
    /// From when on the silence is an answer; unknown until the frame is written.
    silent: Option<Duration>,
}

impl Waiting {
    /// Nobody waits, and so many may.
    #[must_use]
    pub fn new(most: usize) -> Waiting {
        Waiting {
            calls: VecDeque::new(),
            strangers: Strangers::default(),
            most,
            first: 1,
            next: 1,
            counts: Counts::default(),
            client: Client::Rpc,
            out: VecDeque::new(),
        }
    }

    /// The ids that are given are numbers from here on.
    #[must_use]
    pub fn giving_from(self, first: u64) -> Waiting {
        Waiting {
            first,
            next: first,
            ..self
        }
    }

    /// The next thing to do.
    pub fn output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// When the time has to be told again, at the latest.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        let calls = self.calls.iter().map(Call::ends);
        calls.chain(self.strangers.alarm()).min()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
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
        (now, command): (Duration, Command<'_>),
        terms: Terms,
    ) {
        self.tick(table, now, terms);
        let ticket = command.ticket;
        let waits = table.route(command.route).waits == Waits::Yes;
        if waits && self.len() >= self.most {
            return self.fail(ticket, Unanswered::Busy);
        }
        if command.deadline <= now {
            return self.fail(ticket, Unanswered::Late);
        }
        let number = self.give(table);
        match rpc_to_command(table, command.route, (command.call, number), terms) {
            Err(why) => self.fail(ticket, Unanswered::Misfit(why)),
            Ok(framed) => {
                self.out.push_back(Output::Write(ticket, framed.frame));
                if waits {
                    self.calls.push_back(Call {
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
    pub fn passes(&mut self) {
        self.client = Client::Frames;
    }

    /// The same, and its answer is looked for, if it has one and not too many wait; tells whether it is.
    pub fn overhear(&mut self, table: &RouteTable, overheard: Overheard) -> bool {
        self.passes();
        let waits = table.route(overheard.route).waits == Waits::Yes;
        if !waits || self.len() >= self.most {
            return false;
        }
        self.calls.push_back(Call {
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
    pub fn pass_unread(
        &mut self,
        table: &RouteTable,
        (ticket, frame): (Ticket, &Json),
        deadline: Duration,
    ) -> bool {
        self.passes();
        let Some(id) = strangers::id_of(table, frame) else {
            return false;
        };
        let mut calls = self.calls.iter();
        let is_taken = self.strangers.bears(&id)
            || calls.any(|call| id_of(table, call.route, &call.call).as_ref() == Some(&id));
        if is_taken || self.len() >= self.most {
            return false;
        }
        self.strangers.add(ticket, id, deadline);
        true
    }

    /// Whether a client's frame has the id that was given to a call, which waits still: one answer would fit both.
    #[must_use]
    pub fn clashes(&self, table: &RouteTable, overheard: &Overheard) -> bool {
        let id = id_of(table, overheard.route, &overheard.call);
        let mut given = self.calls.iter().filter(|call| call.asked == Client::Rpc);
        id.is_some() && given.any(|call| id_of(table, call.route, &call.call) == id)
    }

    /// A number that nobody who waits has for his id.
    fn give(&mut self, table: &RouteTable) -> u64 {
        loop {
            let number = self.next;
            self.next += 1;
            let mut ids = self
                .calls
                .iter()
                .filter_map(|call| id_of(table, call.route, &call.call));
            let number_as_id = number.to_string();
            if !ids.any(|id| id == number_as_id) && !self.strangers.bears(&number_as_id) {
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
    pub fn lost(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.fail(call.ticket, Unanswered::Cut);
        }
        for ticket in self.strangers.take() {
            self.fail(ticket, Unanswered::Cut);
        }
    }

    /// The server has said something.
    pub fn hear(&mut self, table: &RouteTable, (now, frame): (Duration, Json), terms: Terms) {
        // First, so that nobody is told anything but that after his deadline.
        self.tick(table, now, terms);
        let mut calls = self.calls.iter().enumerate();
        let found = calls.find_map(|(place, call)| {
            let route = table.route(call.route);
            let heard = route.outcomes.hear(&frame, (&call.call, route.id), terms)?;
            Some((place, heard))
        });
        let Some((place, (answer, addressed))) = found else {
            let over = self.strangers.answered(table, &frame);
            let told = match (self.id_borne(table, &frame, terms.depth), self.client) {
                (None, _) => Output::News(frame),
                (Some(id), Client::Frames) if !self.has_given(&id) => Output::Passed(frame),
                (Some(_), Client::Frames | Client::Rpc) => {
                    self.counts.stray += 1;
                    return self.out.extend(over.map(Output::Over));
                }
            };
            self.out.push_back(told);
            // Behind the frame, so that whoever waits for the end has it by then.
            self.out.extend(over.map(Output::Over));
            return;
        };
        let Some(call) = self.calls.remove(place) else {
            return;
        };
        self.counts.answered += 1;
        match (call.asked, addressed) {
            (Client::Frames, _) => {
                // Before the call is over, so that whoever waits for its end has the answer by then.
                self.out.push_back(Output::Passed(frame));
                self.answer(&call, answer);
            }
            (Client::Rpc, Addressed::ToAll) => {
                self.answer(&call, answer);
                self.out.push_back(Output::News(frame));
            }
            (Client::Rpc, Addressed::ToCaller) => self.answer(&call, answer),
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, table: &RouteTable, now: Duration, terms: Terms) {
        while let Some(place) = self.calls.iter().position(|call| call.ends() <= now) {
            let Some(call) = self.calls.remove(place) else {
                return;
            };
            // Of a silence and a deadline the earlier one counts, however late the time is told.
            let silent = call.silent.filter(|silent| *silent < call.deadline);
            let outcomes = &table.route(call.route).outcomes;
            match silent.and_then(|_| outcomes.hear_nothing(&call.call, terms)) {
                Some(answer) => {
                    self.counts.silent += 1;
                    self.answer(&call, answer);
                }
                None => self.fail(call.ticket, Unanswered::Late),
            }
        }
        let over = self.strangers.expired(now);
        self.out.extend(over.into_iter().map(Output::Over));
    }

    /// Tells a caller his answer, with what his call had no place for.
    fn answer(&mut self, call: &Call, answer: Answered<RpcAnswer>) {
        let dropped = answer.dropped + call.dropped;
        let answer = Answered { dropped, ..answer };
        self.out.push_back(Output::Answer(call.ticket, answer));
    }

    fn fail(&mut self, ticket: Ticket, why: Unanswered) {
        self.out.push_back(Output::Failed(ticket, why));
    }

    /// The id of a frame that is the answer of somebody's call, though of none that waits.
    fn id_borne(&self, table: &RouteTable, frame: &Json, depth: u16) -> Option<String> {
        let mut routes = table.routes().iter();
        let borne = routes.find_map(|route| route.outcomes.id_borne(frame, route.id?, depth));
        borne.map(|id| spelled(&id))
    }

    /// Whether an id was given here.
    fn has_given(&self, id: &str) -> bool {
        id.parse()
            .is_ok_and(|id| (self.first..self.next).contains(&id))
    }
}

/// The id of a call, whether its frame has it as a text or as a number.
fn id_of(table: &RouteTable, route: usize, call: &Bindings) -> Option<String> {
    match call.get(table.route(route).id?) {
        Bound::Value(id) => Some(spelled(id)),
        Bound::Unbound | Bound::Absent | Bound::Members(_) | Bound::Each(_) => None,
    }
}

pub(super) fn spelled(id: &Json) -> String {
    match id.text() {
        Some(Ok(text)) => text,
        Some(Err(_)) | None => String::from_utf8_lossy(id.as_bytes()).into_owned(),
    }
}

impl Call {
    fn ends(&self) -> Duration {
        let silent = self.silent.unwrap_or(self.deadline);
        silent.min(self.deadline)
    }
}
