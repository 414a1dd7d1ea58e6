//! The state machine of a connection to a server that speaks in frames: the frames to write, and the calls that wait
//! for an answer.
//!
//! It does no I/O: events come in with the time, and [`FrameOutput`]s go out. Laws (held by a seeded simulation), in
//! addition to those of [`Correlator`]:
//! - Frames are written one at a time, in order of arrival. One whose call has failed or was
//!   cancelled before its turn is not written.
//! - A frame answers a call only if every hole that they share has the same value; among equals, the oldest call wins.
//! - A frame with an id reaches the caller with this id or is dropped.
//! - No two pending calls have the same id, no matter which side assigned it.
//! - A client that speaks in frames itself is only observed. Its answers go on to it, and so does a frame of no pending
//!   call, unless its id was assigned here.
//! - The answer to a frame that no route reads is known by its id alone; it only ends the wait.
//!
//! Used by `frame` and `upstream`.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;

use super::classify::SocketMessage;
use super::context::{ClientFrame, FrameCommand, FrameContext};
use super::pending_frame::{Client, FrameCall, PendingFrame, RoutedCall, frame_id, spelled};
use super::translate::command_to_rpc;
use super::undelivered::Undelivered;
use crate::correlator::{AssignedIds, Correlator};
use crate::outcome::{Correlation, RpcAnswer, TranslatedReply};
use crate::pending::Ticket;
use crate::route::{MatchError, RouteTable, Wire};
use dualgauge_patterns::json::Json;

/// An action for the owner of the connection.
#[derive(Debug)]
pub enum FrameOutput {
    /// Write the frame of a ticket; [`FrameMachine::written`] must follow before the next.
    Write(Ticket, Bytes),
    /// The answer for a caller, and the frame that it came in; silence has none.
    Answer(Ticket, TranslatedReply<RpcAnswer>, Option<Bytes>),
    /// The frame is written and no answer is expected, or a frame that no route reads is done.
    Sent(Ticket),
    /// A caller gets no answer.
    Failed(Ticket, FrameCallError),
    /// A notification from the server as received, for `[[event]]`.
    Notification(Bytes),
    /// A message that answers the client itself, or may do so.
    Passed(Bytes),
    /// A message from the server has no receiver.
    Undelivered(Undelivered),
}

/// The reason why a caller gets no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameCallError {
    /// Too many calls are pending, or the frame has an id that is in use; nothing was written.
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
    /// Messages of no protocol that the client speaks.
    pub skipped: u64,
    /// Notifications.
    pub notified: u64,
}

/// The state machine.
#[derive(Debug)]
pub struct FrameMachine {
    calls: Correlator<Ticket, PendingFrame>,
    ids: AssignedIds,
    /// The frames that wait to be written.
    queue: VecDeque<QueuedFrame>,
    writing: Option<Writing>,
    counts: FrameCounts,
    client: Client,
    out: VecDeque<FrameOutput>,
}

#[derive(Debug)]
struct QueuedFrame {
    ticket: Ticket,
    text: Bytes,
    /// True if no answer is expected, so that the caller gets a reply once the frame is written.
    ends_when_written: bool,
}

/// The frame that is being written.
#[derive(Debug)]
struct Writing {
    ticket: Ticket,
    ends_when_written: bool,
}

impl FrameMachine {
    /// Creates the machine of a new connection for at most `limit` pending calls, with ids from `first_id` upwards.
    #[must_use]
    pub fn new(limit: usize, first_id: u64) -> FrameMachine {
        FrameMachine {
            calls: Correlator::new(limit),
            ids: AssignedIds::from(first_id),
            queue: VecDeque::new(),
            writing: None,
            counts: FrameCounts::default(),
            client: Client::Rpc,
            out: VecDeque::new(),
        }
    }

    /// Removes and returns the next output.
    pub fn output(&mut self) -> Option<FrameOutput> {
        self.out.pop_front()
    }

    /// Returns the latest time for the next [`FrameMachine::tick`]; `None` if no call is pending.
    #[must_use]
    pub fn alarm(&self) -> Option<Duration> {
        self.calls.alarm()
    }

    /// Returns the totals.
    #[must_use]
    pub fn counts(&self) -> FrameCounts {
        self.counts
    }

    /// Returns the number of calls that wait for an answer.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.calls.len()
    }

    /// Returns the number of frames that wait to be written.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns true when no call is pending and no frame waits to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.queue.is_empty()
    }

    /// Sends a call. It stays pending only if its route has an answer.
    pub fn call(&mut self, context: FrameContext<'_>, command: FrameCommand<'_>) {
        self.tick(context);
        if let Err(why) = self.try_call(context, command) {
            self.fail(command.ticket, why);
        }
        self.dispatch();
    }

    fn try_call(
        &mut self,
        context: FrameContext<'_>,
        command: FrameCommand<'_>,
    ) -> Result<(), FrameCallError> {
        let routes = context.routes;
        // If there is no route, a plan that was installed in between has it.
        let index = routes.select_rpc_to(Wire::Frame, command.call);
        let index = index.ok_or(FrameCallError::Busy)?;
        let waits = routes.route(index).expects_reply;
        if waits && !self.calls.has_capacity() {
            return Err(FrameCallError::Busy);
        }
        if command.deadline <= context.now {
            return Err(FrameCallError::Late);
        }
        let number = self.assign_id(routes);
        let id = routes.route(index).id_for(number);
        let written = routes.write_rest_of(index, command.call, id, context.translate);
        let written = written.map_err(FrameCallError::Misfit)?;
        if waits {
            let call = RoutedCall {
                route: index,
                call: written.bindings,
                dropped: written.dropped,
                requester: Client::Rpc,
                silent: None,
            };
            self.begin(command.ticket, command.deadline, FrameCall::Routed(call));
        }
        self.queue.push_back(QueuedFrame {
            ticket: command.ticket,
            text: written.body.unwrap_or_default().into_bytes(),
            ends_when_written: !waits,
        });
        Ok(())
    }

    /// Forwards a frame of the client, which from now on counts as a client of frames. The frame is observed if its
    /// route describes the answer, or if no route reads it and it has an id of its own, unless too many calls are
    /// pending. It is refused if it has the id that was assigned to a pending call: one answer would match both.
    pub fn forward(&mut self, context: FrameContext<'_>, sent: ClientFrame) {
        let call = match observe(context, &sent.frame) {
            Some(routed) if self.clashes(context.routes, &routed) => {
                return self.fail(sent.ticket, FrameCallError::Busy);
            }
            Some(routed) => {
                let route = context.routes.route(routed.route);
                let waits = route.expects_reply;
                waits.then_some(FrameCall::Routed(routed))
            }
            None => {
                let id = frame_id(context.routes, &sent.frame);
                let id = id.filter(|id| !self.is_used(context.routes, id));
                id.map(FrameCall::Unrouted)
            }
        };
        self.client = Client::Frames;
        let call = call.filter(|_| self.calls.has_capacity());
        self.queue.push_back(QueuedFrame {
            ticket: sent.ticket,
            text: sent.text,
            ends_when_written: call.is_none(),
        });
        if let Some(call) = call {
            self.begin(sent.ticket, sent.deadline, call);
        }
        self.dispatch();
    }

    fn begin(&mut self, ticket: Ticket, deadline: Duration, call: FrameCall) {
        self.calls.begin(ticket, PendingFrame { deadline, call });
    }

    /// Returns true when the id of a client's frame was assigned to a pending call.
    fn clashes(&self, routes: &RouteTable, sent: &RoutedCall) -> bool {
        let id = sent.id(routes);
        let mut calls = self.calls.calls();
        id.is_some()
            && calls.any(|(_, pending)| match &pending.call {
                FrameCall::Routed(call) => call.requester == Client::Rpc && call.id(routes) == id,
                FrameCall::Unrouted(_) => false,
            })
    }

    /// Returns true when a pending call has this id.
    fn is_used(&self, routes: &RouteTable, id: &str) -> bool {
        let mut calls = self.calls.calls();
        calls.any(|(_, pending)| pending.call.has_id(routes, id))
    }

    /// Returns a number that is the id of no pending call.
    fn assign_id(&mut self, routes: &RouteTable) -> u64 {
        let calls = &self.calls;
        self.ids.assign_unused(|number| {
            let id = number.to_string();
            let mut calls = calls.calls();
            calls.any(|(_, pending)| pending.call.has_id(routes, &id))
        })
    }

    /// Writes the next frame if none is being written.
    fn dispatch(&mut self) {
        if self.writing.is_none()
            && let Some(next) = self.queue.pop_front()
        {
            self.writing = Some(Writing {
                ticket: next.ticket,
                ends_when_written: next.ends_when_written,
            });
            self.out
                .push_back(FrameOutput::Write(next.ticket, next.text));
        }
    }

    /// Records that the frame of [`FrameOutput::Write`] is written completely. Silence is measured from here.
    pub fn written(&mut self, context: FrameContext<'_>) {
        if let Some(written) = self.writing.take() {
            if written.ends_when_written {
                self.out.push_back(FrameOutput::Sent(written.ticket));
            }
            if let Some(pending) = self.calls.get_mut(written.ticket) {
                pending.call.start_silence(context.routes, context.now);
            }
        }
        self.dispatch();
    }

    /// Removes the call of a caller that has gone away. A frame that is being written is completed.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.calls.end(ticket);
        self.withdraw(ticket);
        if let Some(writing) = self.writing.as_mut().filter(|own| own.ticket == ticket) {
            writing.ends_when_written = false;
        }
    }

    /// Fails all pending calls, because the connection is lost. A caller that expects no answer gets no output.
    pub fn connection_lost(&mut self) {
        self.queue.clear();
        self.writing = None;
        for (ticket, _) in self.calls.end_all() {
            self.fail(ticket, FrameCallError::Cut);
        }
    }

    /// Takes a message of the server.
    pub fn receive(&mut self, context: FrameContext<'_>, text: Bytes) {
        match SocketMessage::of_server(&text, context.translate.depth, context.routes) {
            SocketMessage::Frame(frame) => {
                // First, so that a caller gets nothing but the timeout after its deadline.
                self.tick(context);
                self.receive_frame(context, &frame, text);
            }
            // A client with forwarded frames talks to the server itself, and may understand the message.
            SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_)
                if self.client == Client::Frames =>
            {
                self.out.push_back(FrameOutput::Passed(text));
            }
            SocketMessage::Rpc(_) | SocketMessage::Unrecognized(_) => {
                self.counts.skipped += 1;
                self.out
                    .push_back(FrameOutput::Undelivered(Undelivered::Noise));
            }
        }
    }

    fn receive_frame(&mut self, context: FrameContext<'_>, frame: &Json, text: Bytes) {
        let answered = self.calls.end_first(|pending| match &pending.call {
            FrameCall::Routed(call) => call.answer(context, frame),
            FrameCall::Unrouted(_) => None,
        });
        let Some((ticket, pending, (answer, correlation))) = answered else {
            return self.receive_unmatched(context, frame, text);
        };
        self.counts.answered += 1;
        match (pending.call.requester(), correlation) {
            (Client::Frames, _) => {
                // Before the end of the call, so that a waiter for the end has the answer by then.
                self.out.push_back(FrameOutput::Passed(text.clone()));
                self.answer(ticket, answer, Some(text));
            }
            (Client::Rpc, Correlation::ToAll) => {
                self.answer(ticket, answer, Some(text.clone()));
                self.notify(text);
            }
            (Client::Rpc, Correlation::ToCaller) => self.answer(ticket, answer, Some(text)),
        }
    }

    /// Takes a frame that answers no call of a route.
    fn receive_unmatched(&mut self, context: FrameContext<'_>, frame: &Json, text: Bytes) {
        let done = self.end_unrouted(context.routes, frame);
        match (reply_id(context, frame), self.client) {
            (None, _) => self.notify(text),
            (Some(id), Client::Frames) if !self.is_assigned(&id) => {
                self.out.push_back(FrameOutput::Passed(text));
            }
            (Some(_), Client::Frames | Client::Rpc) => {
                self.counts.unmatched += 1;
                self.out
                    .push_back(FrameOutput::Undelivered(Undelivered::Late));
            }
        }
        // After the frame, so that a waiter for the end has the frame by then.
        self.out.extend(done.map(FrameOutput::Sent));
    }

    /// Ends the call that no route reads and that has the id of a frame, at the place where any answer of the table
    /// has one.
    fn end_unrouted(&mut self, routes: &RouteTable, frame: &Json) -> Option<Ticket> {
        let is_unrouted =
            |(_, pending): (Ticket, &PendingFrame)| matches!(pending.call, FrameCall::Unrouted(_));
        if !self.calls.calls().any(is_unrouted) {
            return None;
        }
        let routes = routes.routes().iter();
        let ids = routes.filter_map(|route| Some(route.outcomes.ids_in_frame(frame, route.id?)));
        let mut ids = ids.flatten().map(|id| spelled(&id));
        let answered = ids.find_map(|id| {
            self.calls.end_first(|pending| match &pending.call {
                FrameCall::Unrouted(own) => (*own == id).then_some(()),
                FrameCall::Routed(_) => None,
            })
        });
        answered.map(|(ticket, ..)| ticket)
    }

    /// Ends the calls whose deadline or silence has passed.
    pub fn tick(&mut self, context: FrameContext<'_>) {
        for (ticket, pending) in self.calls.end_expired(context.now) {
            let answer = match pending.call {
                FrameCall::Routed(call) => call.silence(pending.deadline, context),
                FrameCall::Unrouted(_) if self.is_unwritten(ticket) => None,
                FrameCall::Unrouted(_) => {
                    self.out.push_back(FrameOutput::Sent(ticket));
                    continue;
                }
            };
            match answer {
                Some(answer) => {
                    self.counts.silent += 1;
                    self.answer(ticket, answer, None);
                }
                None => self.fail(ticket, FrameCallError::Late),
            }
        }
    }

    /// Returns true if the frame is queued or being written.
    fn is_unwritten(&self, ticket: Ticket) -> bool {
        let writes = self.writing.as_ref();
        writes.is_some_and(|writing| writing.ticket == ticket)
            || self.queue.iter().any(|queued| queued.ticket == ticket)
    }

    /// Removes a frame from the write queue; a frame that is being written stays.
    fn withdraw(&mut self, ticket: Ticket) {
        self.queue.retain(|queued| queued.ticket != ticket);
    }

    fn answer(&mut self, ticket: Ticket, answer: TranslatedReply<RpcAnswer>, frame: Option<Bytes>) {
        self.out
            .push_back(FrameOutput::Answer(ticket, answer, frame));
    }

    fn notify(&mut self, text: Bytes) {
        self.counts.notified += 1;
        self.out.push_back(FrameOutput::Notification(text));
    }

    fn fail(&mut self, ticket: Ticket, why: FrameCallError) {
        self.withdraw(ticket);
        self.out.push_back(FrameOutput::Failed(ticket, why));
    }

    /// Returns true when an id was assigned here.
    fn is_assigned(&self, id: &str) -> bool {
        id.parse().is_ok_and(|id| self.ids.contains(id))
    }
}

/// Reads a client's frame whose answer its route describes.
fn observe(context: FrameContext<'_>, frame: &Json) -> Option<RoutedCall> {
    let index = context.routes.select_frame(frame)?;
    let route = context.routes.route(index);
    let read = command_to_rpc(route, frame.clone(), context.translate).ok()?;
    Some(RoutedCall {
        route: index,
        call: read.bindings,
        dropped: 0,
        requester: Client::Frames,
        silent: None,
    })
}

/// Returns the id of a frame that answers some route's call, though no pending one.
fn reply_id(context: FrameContext<'_>, frame: &Json) -> Option<String> {
    let depth = context.translate.depth;
    let mut routes = context.routes.routes().iter();
    let id = routes.find_map(|route| route.outcomes.reply_id(frame, route.id?, depth));
    id.map(|id| spelled(&id))
}
