//! Questions that fare otherwise than the link that they were asked on.

use std::time::Duration;

use super::link::{Flight, Pending};
use super::queue::{Past, Waiting};
use super::turn::{State, Wire};
use super::{Fault, Repeat, Unanswered};

/// How long the others on a link that the server has forgotten are waited for. Most of them were refused as well, and
/// need only to hear it.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Pending {
    /// One question gets no answer, and the link is as it was.
    pub(super) fn failed(&mut self, id: u64, why: Unanswered) {
        self.subscription_failed(id, why);
        if let Some(flight) = self.flights.remove(&id) {
            self.unanswered = 0;
            match why {
                Unanswered::Cut => self.cut(flight),
                Unanswered::Busy
                | Unanswered::Unreachable
                | Unanswered::Late
                | Unanswered::TooLarge(_)
                | Unanswered::NoRoom
                | Unanswered::CodedStream
                | Unanswered::Misnumbered
                | Unanswered::Unusable(_) => self.fail(flight.waiting.ask.ticket, why),
            }
        }
    }

    /// The server knows the link no longer, and has not taken the question that it said so to.
    pub(super) fn forgotten(&mut self, now: Duration, id: Option<u64>) {
        match self.state {
            State::Greeting { .. } => return self.close(Fault::Refused),
            State::Ready(since) => {
                if now.saturating_sub(since) >= self.settings.backoff.steady {
                    self.attempts = 0;
                }
                self.state = State::Leaving(now + LAST_WORDS);
            }
            State::Down(_) | State::Opening(_) | State::Leaving(_) | State::Closing => {}
        }
        if let Some(id) = id {
            self.subscription_failed(id, Unanswered::Cut);
        }
        let Some(flight) = id.and_then(|id| self.flights.remove(&id)) else {
            return;
        };
        match flight.waiting.past {
            Past::Unsent => self.again(flight),
            Past::Sent => self.fail(flight.waiting.ask.ticket, Unanswered::Cut),
        }
    }

    /// Nobody is asked any more: who waits is told whether the server has seen the question.
    pub(super) fn over(&mut self) {
        while let Some(waiting) = self.queue.take_first() {
            let why = match waiting.past {
                Past::Unsent => Unanswered::Unreachable,
                Past::Sent => Unanswered::Cut,
            };
            self.fail(waiting.ask.ticket, why);
        }
    }

    /// What was being written reaches nobody.
    pub(super) fn unwritten(&mut self, now: Duration, why: Unanswered) {
        if let Wire::Notice(ticket, _) = self.wire {
            self.fail(ticket, why);
            self.wire = Wire::Unanswered;
        }
        self.written(now);
    }

    /// A question was written, and what became of it is not known.
    pub(super) fn cut(&mut self, flight: Flight) {
        match (flight.waiting.ask.repeat, flight.waiting.past) {
            (Repeat::Once, Past::Unsent) => self.again(flight),
            (Repeat::Once, Past::Sent) | (Repeat::Never, _) => {
                self.fail(flight.waiting.ask.ticket, Unanswered::Cut);
            }
        }
    }

    /// A question goes back to where it came from.
    fn again(&mut self, flight: Flight) {
        let mut ask = flight.waiting.ask;
        ask.start_by = ask.deadline;
        let past = Past::Sent;
        self.queue.put_back(Waiting { ask, past });
    }
}
