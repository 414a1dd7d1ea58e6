//! What a link writes next: messages of its own first, then what waits, as far as its turn has come.

use super::doubts::Doubt;
use super::link::{Flight, Pending};
use super::queue::Waiting;
use super::turn::{Greeted, State, Wire};
use super::{Order, Output, Say, Unanswered};

impl Pending {
    /// Writes what may be written now. One message is on its way at a time, so that what waits can still be taken back.
    pub(super) fn dispatch(&mut self) {
        while self.wire == Wire::Free {
            let open = match self.state {
                State::Ready(_) => true,
                State::Greeting { .. } => false,
                State::Down(_) | State::Opening(_) | State::Leaving(_) | State::Closing => return,
            };
            if let Some(message) = self.controls.pop_front() {
                let id = self.mint();
                self.doubts.add(id, Doubt::Notice);
                self.write(message, Wire::Unanswered);
            } else if !open || !self.say_next() {
                return;
            }
        }
    }

    /// Says what may be said next; tells whether there may be more.
    fn say_next(&mut self) -> bool {
        let Some(next) = self.take_next() else {
            return false;
        };
        let ticket = next.ask.ticket;
        match &next.ask.say {
            Say::Call(call) => {
                let id = self.mint();
                let message = call.with_id(id);
                self.flights.insert(id, Flight { waiting: next });
                self.write(message, Wire::Busy);
            }
            Say::Subscription(call, client) => {
                let id = self.mint();
                self.subscriptions.begin(id, &next.ask, client.clone());
                self.write(call.with_id(id), Wire::Unanswered);
            }
            Say::Notice(message) => {
                let id = self.mint();
                self.doubts.add(id, Doubt::Notice);
                let deadline = next.ask.deadline;
                self.write(message.clone(), Wire::Notice(ticket, deadline));
            }
            Say::Greeting => match self.greeted.clone() {
                Some(Greeted { id, message }) => self.out.push_back(Output::Answer {
                    ticket,
                    id,
                    message,
                }),
                None => self.fail(ticket, Unanswered::Unreachable),
            },
        }
        true
    }

    /// Takes what waits first, if its turn has come. A subscription needs no slot, and overtakes calls that wait for one;
    /// a serial server hears it, as a notification, when it has answered what was asked before.
    fn take_next(&mut self) -> Option<Waiting> {
        let free = self.flights.len() < self.settings.order.in_flight();
        let first = self.queue.first()?;
        let has_turn = match (&first.ask.say, self.settings.order) {
            (Say::Greeting, _) => true,
            (Say::Notice(_) | Say::Subscription(..), Order::Pipelined(_)) => true,
            (Say::Call(_), _) => free,
            (Say::Notice(_) | Say::Subscription(..), Order::Serial) => free,
        };
        match (has_turn, self.settings.order) {
            (true, _) => self.queue.take_first(),
            (false, Order::Pipelined(_)) => self.queue.take_subscription(),
            (false, Order::Serial) => None,
        }
    }
}
