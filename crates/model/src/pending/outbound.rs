//! Outbound messages of a link: its own control messages first, then queued requests as their turn comes.

use super::link_machine::LinkMachine;
use super::queue::QueuedRequest;
use super::state::{Handshake, LinkState, WriteState};
use super::unattributed::UnattributedReply;
use super::{AnswerOrder, LinkOutput, Outbound, RequestError};

impl LinkMachine {
    /// Writes the messages that may be written now. Only one message is in flight to the transport, so that queued
    /// requests can still be cancelled.
    pub(super) fn dispatch(&mut self) {
        while self.wire == WriteState::Free {
            let open = match self.state {
                LinkState::Ready(_) => true,
                LinkState::Greeting { .. } | LinkState::LoggingIn { .. } => false,
                LinkState::Down(_)
                | LinkState::Opening(_)
                | LinkState::Leaving(_)
                | LinkState::Closing => return,
            };
            if let Some(message) = self.controls.pop_front() {
                let id = self.next_id();
                self.unattributed.add(id, UnattributedReply::Notice);
                self.write(message, WriteState::Unanswered);
            } else if !self.write_login() && (!open || !self.send_next()) {
                return;
            }
        }
    }

    /// Sends the next message that may be sent. Returns true if there may be more.
    fn send_next(&mut self) -> bool {
        let Some(next) = self.pop_next() else {
            return false;
        };
        let ticket = next.request.ticket;
        match &next.request.message {
            Outbound::Call(call) => {
                let id = self.next_id();
                let message = call.with_id(id);
                self.in_flight.begin(id, next);
                self.write(message, WriteState::Busy);
            }
            // Others may have opened theirs since it was queued.
            Outbound::IdSubscription(..) if !self.id_subscriptions.has_capacity() => {
                self.fail(ticket, RequestError::Busy);
            }
            Outbound::IdSubscription(call, rule) => {
                let id = self.next_id();
                let message = call.with_id(id);
                self.id_subscriptions.begin(id, rule.clone());
                self.in_flight.begin(id, next);
                self.write(message, WriteState::Busy);
            }
            Outbound::Subscription(call, client) if self.emulates_listen => {
                self.listen(ticket, call, client.clone());
            }
            Outbound::Subscription(call, client) => {
                let id = self.next_id();
                self.subscriptions.begin(id, &next.request, client.clone());
                self.write(call.with_id(id), WriteState::Unanswered);
            }
            Outbound::Notice(message) => {
                let id = self.next_id();
                self.unattributed.add(id, UnattributedReply::Notice);
                let deadline = next.request.deadline;
                self.write(message.clone(), WriteState::Notice(ticket, deadline));
            }
            Outbound::Greeting => match self.greeted.clone() {
                Some(Handshake { id, message }) => self.out.push_back(LinkOutput::Answer {
                    ticket,
                    id,
                    message,
                }),
                None => self.fail(ticket, RequestError::Unreachable),
            },
        }
        true
    }

    /// Takes the first queued request whose turn has come. A subscription needs no slot and overtakes calls that wait
    /// for one. A serial server receives it, like a notification, only after replying to the earlier requests.
    fn pop_next(&mut self) -> Option<QueuedRequest> {
        let free = self.in_flight.has_capacity();
        let first = self.queue.first()?;
        let has_turn = match (&first.request.message, self.settings.order) {
            (Outbound::Greeting, _) => true,
            (Outbound::Notice(_) | Outbound::Subscription(..), AnswerOrder::Pipelined(_)) => true,
            (Outbound::Call(_) | Outbound::IdSubscription(..), _) => free,
            (Outbound::Notice(_) | Outbound::Subscription(..), AnswerOrder::Serial) => free,
        };
        match (has_turn, self.settings.order) {
            (true, _) => self.queue.pop_first(),
            (false, AnswerOrder::Pipelined(_)) => self.queue.take_subscription(),
            (false, AnswerOrder::Serial) => None,
        }
    }
}
