//! Questions that fare otherwise than the link that they were asked on.

use std::time::Duration;

use super::link_machine::{InFlightRequest, LinkMachine};
use super::queue::{Attempted, QueuedRequest};
use super::state::{LinkState, WriteState};
use super::{LinkFault, RequestError, RetryRule};

/// How long the others on a link that the server has forgotten are waited for. Most of them were refused as well, and
/// need only to hear it.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl LinkMachine {
    /// One question gets no answer, and the link is as it was.
    pub(super) fn failed(&mut self, id: u64, why: RequestError) {
        self.subscription_failed(id, why);
        if let Some(flight) = self.in_flight.remove(&id) {
            self.unanswered = 0;
            match why {
                RequestError::Cut => self.cut(flight),
                RequestError::Busy
                | RequestError::Unreachable
                | RequestError::Late
                | RequestError::TooLarge(_)
                | RequestError::NoRoom
                | RequestError::CodedStream
                | RequestError::Misnumbered
                | RequestError::Unusable(_) => self.fail(flight.waiting.ask.ticket, why),
            }
        }
    }

    /// The server knows the link no longer, and has not taken the question that it said so to.
    pub(super) fn forgotten(&mut self, now: Duration, id: Option<u64>) {
        match self.state {
            LinkState::Greeting { .. } => return self.close(LinkFault::Refused),
            LinkState::Ready(since) => {
                if now.saturating_sub(since) >= self.settings.backoff.steady {
                    self.attempts = 0;
                }
                self.state = LinkState::Leaving(now + LAST_WORDS);
            }
            LinkState::Down(_)
            | LinkState::Opening(_)
            | LinkState::Leaving(_)
            | LinkState::Closing => {}
        }
        if let Some(id) = id {
            self.subscription_failed(id, RequestError::Cut);
        }
        let Some(flight) = id.and_then(|id| self.in_flight.remove(&id)) else {
            return;
        };
        match flight.waiting.past {
            Attempted::Unsent => self.again(flight),
            Attempted::Sent => self.fail(flight.waiting.ask.ticket, RequestError::Cut),
        }
    }

    /// Nobody is asked any more: who waits is told whether the server has seen the question.
    pub(super) fn over(&mut self) {
        while let Some(waiting) = self.queue.pop_first() {
            let why = match waiting.past {
                Attempted::Unsent => RequestError::Unreachable,
                Attempted::Sent => RequestError::Cut,
            };
            self.fail(waiting.ask.ticket, why);
        }
    }

    /// What was being written reaches nobody.
    pub(super) fn unwritten(&mut self, now: Duration, why: RequestError) {
        if let WriteState::Notice(ticket, _) = self.wire {
            self.fail(ticket, why);
            self.wire = WriteState::Unanswered;
        }
        self.written(now);
    }

    /// A question was written, and what became of it is not known.
    pub(super) fn cut(&mut self, flight: InFlightRequest) {
        match (flight.waiting.ask.repeat, flight.waiting.past) {
            (RetryRule::Once, Attempted::Unsent) => self.again(flight),
            (RetryRule::Once, Attempted::Sent) | (RetryRule::Never, _) => {
                self.fail(flight.waiting.ask.ticket, RequestError::Cut);
            }
        }
    }

    /// A question goes back to where it came from.
    fn again(&mut self, flight: InFlightRequest) {
        let mut ask = flight.waiting.ask;
        ask.start_by = ask.deadline;
        let past = Attempted::Sent;
        self.queue.put_back(QueuedRequest { ask, past });
    }
}
