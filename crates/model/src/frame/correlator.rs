//! Correlation of frames and pending calls, on a connection to a server that speaks in frames.
//!
//! It does no I/O: events come in with the time, and [`CorrelatorOutput`]s go out. Laws (held by a seeded simulation):
//! - A caller gets exactly one output, by its deadline, unless it was cancelled.
//! - A frame answers a call only if every hole that they share has the same value; among equals, the oldest call wins.
//! - A frame with an id reaches the caller with this id or is dropped.
//! - The list of pending calls is bounded, and empty when no call is pending.
//! - No two pending calls have the same id, no matter which side assigned it.
//! - A client that speaks in frames itself is only observed. Its answers go on to it, and so does a frame of no pending
//!   call, unless its id was assigned here.
//! - The answer to a frame that no route reads is known by its id alone; it only ends the wait.
//!
//! Used by `frame::unrouted` and `gateway::legacy_socket::connection`.

use std::collections::VecDeque;
use std::time::Duration;

use crate::outcome::{Correlation, RpcAnswer, TranslatedReply};
use crate::pending::Ticket;
use crate::route::{MatchError, RouteTable};
use crate::translate::{MethodCall, TranslateContext};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{Bindings, BoundValue};
use dualgauge_patterns::rope::Rope;

use super::translate::rpc_to_command;
use super::unrouted::{self, UnroutedRequests};

/// An RPC call to be sent as a frame.
#[derive(Debug, Clone, Copy)]
pub struct FrameCommand<'c> {
    /// The ticket of the caller.
    pub ticket: Ticket,
    /// The route, by its index in the table.
    pub route: usize,
    /// The method and the params.
    pub call: MethodCall<'c>,
    /// The time when the caller stops waiting.
    pub deadline: Duration,
}

/// A frame that a client has written itself. It is observed to find its answer.
#[derive(Debug)]
pub struct ObservedRequest {
    /// The ticket of the request.
    pub ticket: Ticket,
    /// The route, by its index in the table.
    pub route: usize,
    /// The values of the holes.
    pub call: Bindings,
    /// The time when the observation ends.
    pub deadline: Duration,
}

/// An action for the caller of the correlator.
#[derive(Debug)]
pub enum CorrelatorOutput {
    /// Write a frame; [`FrameCorrelator::sent`] is expected for the ticket.
    Write(Ticket, Rope),
    /// The answer for a caller.
    Answer(Ticket, TranslatedReply<RpcAnswer>),
    /// A caller gets no answer.
    Failed(Ticket, FrameCallError),
    /// A notification from the server, for `[[event]]`.
    Notification(Json),
    /// A frame that answers the client itself, or may do so.
    Passed(Json),
    /// A frame of the client that no route reads was answered, or its deadline has passed.
    Done(Ticket),
}

/// The reason why a caller gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameCallError {
    /// Too many calls are pending; nothing was written.
    Busy,
    /// The call does not match its route; nothing was written.
    Misfit(MatchError),
    /// No answer came before the deadline.
    Late,
    /// The connection was lost.
    Cut,
}

/// Totals since the start of the connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrameCounts {
    /// Frames that answered a call.
    pub answered: u64,
    /// Calls that were answered by silence.
    pub silent: u64,
    /// Frames with an id of no pending call: late, duplicate, or of another client's call.
    pub unmatched: u64,
}

/// The pending calls of a connection, oldest first.
#[derive(Debug)]
pub struct FrameCorrelator {
    calls: VecDeque<PendingFrame>,
    unrouted_requests: UnroutedRequests,
    limit: usize,
    /// Ids from `first` up to `next`, exclusive, were assigned here.
    first: u64,
    next: u64,
    counts: FrameCounts,
    client: Client,
    out: VecDeque<CorrelatorOutput>,
}

/// The protocol of the client on the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    /// JSON-RPC: the proxy writes the frames.
    Rpc,
    /// Frames: the client has written some itself.
    Frames,
}

#[derive(Debug)]
struct PendingFrame {
    ticket: Ticket,
    route: usize,
    call: Bindings,
    deadline: Duration,
    dropped: usize,
    requester: Client,
    /// The time from which silence counts as the answer; `None` until the frame is written.
    silent: Option<Duration>,
}

impl FrameCorrelator {
    /// Creates an empty correlator for at most `limit` pending calls.
    #[must_use]
    pub fn new(limit: usize) -> FrameCorrelator {
        FrameCorrelator {
            calls: VecDeque::new(),
            unrouted_requests: UnroutedRequests::default(),
            limit,
            first: 1,
            next: 1,
            counts: FrameCounts::default(),
            client: Client::Rpc,
            out: VecDeque::new(),
        }
    }

    /// Sets the first id to assign.
    #[must_use]
    pub fn with_first_id(self, first: u64) -> FrameCorrelator {
        FrameCorrelator {
            first,
            next: first,
            ..self
        }
    }

    /// Removes and returns the next output.
    pub fn output(&mut self) -> Option<CorrelatorOutput> {
        self.out.pop_front()
    }

    /// Returns the latest time for the next [`FrameCorrelator::tick`]; `None` if no call is pending.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        let calls = self.calls.iter().map(PendingFrame::ends);
        calls.chain(self.unrouted_requests.alarm()).min()
    }

    /// Returns the totals.
    #[must_use]
    pub fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// Returns true when the call of a ticket is pending.
    #[must_use]
    pub fn waits(&self, ticket: Ticket) -> bool {
        self.calls.iter().any(|call| call.ticket == ticket) || self.unrouted_requests.has(ticket)
    }

    /// Returns true when the client has written frames itself.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.client == Client::Frames
    }

    /// Returns the number of pending calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len() + self.unrouted_requests.len()
    }

    /// Returns true when no call is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sends a call. It stays pending only if its route has an answer.
    pub fn ask(
        &mut self,
        table: &RouteTable,
        (now, command): (Duration, FrameCommand<'_>),
        context: TranslateContext,
    ) {
        self.tick(table, now, context);
        let ticket = command.ticket;
        let waits = table.route(command.route).expects_reply;
        if waits && self.len() >= self.limit {
            return self.fail(ticket, FrameCallError::Busy);
        }
        if command.deadline <= now {
            return self.fail(ticket, FrameCallError::Late);
        }
        let number = self.assign_id(table);
        match rpc_to_command(table, command.route, (command.call, number), context) {
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
                        requester: Client::Rpc,
                        silent: None,
                    });
                }
            }
        }
    }

    /// Records that the client writes a frame of its own. From now on it counts as a client of frames.
    pub fn mark_frame_client(&mut self) {
        self.client = Client::Frames;
    }

    /// Records a frame of the client and observes it, if it has an answer and not too many calls are pending. Returns
    /// true when it is observed.
    pub fn observe(&mut self, table: &RouteTable, request: ObservedRequest) -> bool {
        self.mark_frame_client();
        let waits = table.route(request.route).expects_reply;
        if !waits || self.len() >= self.limit {
            return false;
        }
        self.calls.push_back(PendingFrame {
            ticket: request.ticket,
            route: request.route,
            call: request.call,
            deadline: request.deadline,
            dropped: 0,
            requester: Client::Frames,
            silent: None,
        });
        true
    }

    /// Records a frame of the client that no route reads. It is observed if it has an id that no pending call has.
    /// Returns true when it is observed.
    pub fn forward_unread(
        &mut self,
        table: &RouteTable,
        (ticket, frame): (Ticket, &Json),
        deadline: Duration,
    ) -> bool {
        self.mark_frame_client();
        let Some(id) = unrouted::id_of(table, frame) else {
            return false;
        };
        let mut calls = self.calls.iter();
        let is_used = self.unrouted_requests.carries_id(&id)
            || calls.any(|call| id_of(table, call.route, &call.call).as_ref() == Some(&id));
        if is_used || self.len() >= self.limit {
            return false;
        }
        self.unrouted_requests.add(ticket, id, deadline);
        true
    }

    /// Returns true when a client's frame has the id that was assigned to a pending call: one answer would match both.
    #[must_use]
    pub fn clashes(&self, table: &RouteTable, request: &ObservedRequest) -> bool {
        let id = id_of(table, request.route, &request.call);
        let mut assigned = self
            .calls
            .iter()
            .filter(|call| call.requester == Client::Rpc);
        id.is_some() && assigned.any(|call| id_of(table, call.route, &call.call) == id)
    }

    /// Returns a number that is the id of no pending call.
    fn assign_id(&mut self, table: &RouteTable) -> u64 {
        loop {
            let number = self.next;
            self.next += 1;
            let mut ids = self
                .calls
                .iter()
                .filter_map(|call| id_of(table, call.route, &call.call));
            let number_as_id = number.to_string();
            if !ids.any(|id| id == number_as_id)
                && !self.unrouted_requests.carries_id(&number_as_id)
            {
                return number;
            }
        }
    }

    /// Records that the frame of a caller is written completely. Silence is measured from here.
    pub fn sent(&mut self, table: &RouteTable, (now, ticket): (Duration, Ticket)) {
        let mut calls = self.calls.iter_mut();
        if let Some(call) = calls.find(|call| call.ticket == ticket) {
            let silence = table.route(call.route).silence;
            call.silent = silence.map(|silence| now + silence);
        }
    }

    /// Removes the call of a caller that has gone away.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.calls.retain(|call| call.ticket != ticket);
        self.unrouted_requests.cancel(ticket);
    }

    /// Fails all calls, because the connection is lost.
    pub fn connection_lost(&mut self) {
        for call in std::mem::take(&mut self.calls) {
            self.fail(call.ticket, FrameCallError::Cut);
        }
        for ticket in self.unrouted_requests.take() {
            self.fail(ticket, FrameCallError::Cut);
        }
    }

    /// Takes a frame of the server.
    pub fn receive(
        &mut self,
        table: &RouteTable,
        (now, frame): (Duration, Json),
        context: TranslateContext,
    ) {
        // First, so that a caller gets nothing but the timeout after its deadline.
        self.tick(table, now, context);
        let mut calls = self.calls.iter().enumerate();
        let found = calls.find_map(|(index, call)| {
            let route = table.route(call.route);
            let reply = route
                .outcomes
                .correlate(&frame, &call.call, route.id, context)?;
            Some((index, reply))
        });
        let Some((index, (answer, addressed))) = found else {
            let done = self.unrouted_requests.answered(table, &frame);
            let output = match (self.reply_id(table, &frame, context.depth), self.client) {
                (None, _) => CorrelatorOutput::Notification(frame),
                (Some(id), Client::Frames) if !self.is_assigned(&id) => {
                    CorrelatorOutput::Passed(frame)
                }
                (Some(_), Client::Frames | Client::Rpc) => {
                    self.counts.unmatched += 1;
                    return self.out.extend(done.map(CorrelatorOutput::Done));
                }
            };
            self.out.push_back(output);
            // After the frame, so that a waiter for the end has the frame by then.
            self.out.extend(done.map(CorrelatorOutput::Done));
            return;
        };
        let Some(call) = self.calls.remove(index) else {
            return;
        };
        self.counts.answered += 1;
        match (call.requester, addressed) {
            (Client::Frames, _) => {
                // Before the end of the call, so that a waiter for the end has the answer by then.
                self.out.push_back(CorrelatorOutput::Passed(frame));
                self.answer(&call, answer);
            }
            (Client::Rpc, Correlation::ToAll) => {
                self.answer(&call, answer);
                self.out.push_back(CorrelatorOutput::Notification(frame));
            }
            (Client::Rpc, Correlation::ToCaller) => self.answer(&call, answer),
        }
    }

    /// Ends the calls whose deadline or silence has passed.
    pub fn tick(&mut self, table: &RouteTable, now: Duration, context: TranslateContext) {
        while let Some(index) = self.calls.iter().position(|call| call.ends() <= now) {
            let Some(call) = self.calls.remove(index) else {
                return;
            };
            // The earlier of silence and deadline counts, even if the tick is late.
            let silent = call.silent.filter(|silent| *silent < call.deadline);
            let outcomes = &table.route(call.route).outcomes;
            match silent.and_then(|_| outcomes.correlate_silence(&call.call, context)) {
                Some(answer) => {
                    self.counts.silent += 1;
                    self.answer(&call, answer);
                }
                None => self.fail(call.ticket, FrameCallError::Late),
            }
        }
        let done = self.unrouted_requests.expired(now);
        self.out
            .extend(done.into_iter().map(CorrelatorOutput::Done));
    }

    /// Answers a caller. The count of dropped members includes those of its call.
    fn answer(&mut self, call: &PendingFrame, answer: TranslatedReply<RpcAnswer>) {
        let dropped = answer.dropped + call.dropped;
        let answer = TranslatedReply { dropped, ..answer };
        self.out
            .push_back(CorrelatorOutput::Answer(call.ticket, answer));
    }

    fn fail(&mut self, ticket: Ticket, why: FrameCallError) {
        self.out.push_back(CorrelatorOutput::Failed(ticket, why));
    }

    /// Returns the id of a frame that answers some route's call, though no pending one.
    fn reply_id(&self, table: &RouteTable, frame: &Json, depth: u16) -> Option<String> {
        let mut routes = table.routes().iter();
        let id = routes.find_map(|route| route.outcomes.reply_id(frame, route.id?, depth));
        id.map(|id| spelled(&id))
    }

    /// Returns true when an id was assigned here.
    fn is_assigned(&self, id: &str) -> bool {
        id.parse()
            .is_ok_and(|id| (self.first..self.next).contains(&id))
    }
}

/// Returns the id of a call as text, whether its frame has it as a text or a number.
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
