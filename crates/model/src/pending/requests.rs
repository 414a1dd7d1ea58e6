//! Requests that finish independently of their link: timeouts, cancellations and retries.

use std::time::Duration;

use super::link_machine::LinkMachine;
use super::queue::QueuedRequest;
use super::state::{LinkState, WriteState};
use super::{LinkFault, RequestError, RetryRule};
use crate::mcp::InputCapabilities;

/// The time that the other requests on a link get after the server has forgotten its session. The server refuses most
/// of them too; the link only has to receive those refusals.
const DRAIN_TIME: Duration = Duration::from_secs(1);

impl LinkMachine {
    /// Fails one request and leaves the link as it is.
    pub(super) fn failed(&mut self, id: u64, why: RequestError) {
        self.subscription_failed(id, why);
        if let Some(in_flight) = self.in_flight.end(id) {
            self.consecutive_timeouts = 0;
            match why {
                RequestError::Cut => self.cut(in_flight),
                RequestError::Busy
                | RequestError::Unreachable
                | RequestError::LoginFailed
                | RequestError::Unauthenticated
                | RequestError::Late
                | RequestError::TooLarge(_)
                | RequestError::NoMemory
                | RequestError::CodedStream
                | RequestError::Misnumbered
                | RequestError::InputRequired(_)
                | RequestError::Unusable(_) => self.fail(in_flight.request.ticket, why),
            }
        }
    }

    /// Fails a request whose response stream the server ended. If the caller had given up, the server has stopped
    /// working on the request.
    pub(super) fn ended(&mut self, id: u64) {
        self.unattributed.ended(id);
        self.failed(id, RequestError::Cut);
    }

    /// Drains the link because the server no longer knows its session. The server did not accept the request `id`.
    pub(super) fn forgotten(&mut self, now: Duration, id: Option<u64>) {
        match self.state {
            LinkState::Greeting { .. } => {
                let why = "it does not know the session".to_owned();
                return self.close(LinkFault::Refused(why));
            }
            LinkState::LoggingIn { .. } => {
                return self.login_refused("it does not know the session".to_owned());
            }
            LinkState::Ready(since) => {
                if now.saturating_sub(since) >= self.settings.backoff.steady {
                    self.attempts = 0;
                }
                self.state = LinkState::Leaving(now + DRAIN_TIME);
            }
            LinkState::Down(_)
            | LinkState::Opening(_)
            | LinkState::Leaving(_)
            | LinkState::Closing => {}
        }
        if let Some(id) = id {
            self.subscription_failed(id, RequestError::Cut);
        }
        let Some(in_flight) = id.and_then(|id| self.in_flight.end(id)) else {
            return;
        };
        // A server that has sent a request during a call has begun it.
        match in_flight.was_sent || in_flight.suspension.is_some() {
            false => self.again(in_flight),
            true => self.fail(in_flight.request.ticket, RequestError::Cut),
        }
    }

    /// Fails all queued requests because no link follows. The error tells whether the request was ever written.
    pub(super) fn over(&mut self) {
        while let Some(queued) = self.queue.pop_first() {
            let why = match queued.was_sent {
                false => self.unsent_error(),
                true => RequestError::Cut,
            };
            self.fail(queued.request.ticket, why);
        }
    }

    /// Fails the notification that was being written: it could not be delivered.
    pub(super) fn unwritten(&mut self, now: Duration, why: RequestError) {
        if let WriteState::Notice(ticket, _) = self.wire {
            self.fail(ticket, why);
            self.wire = WriteState::Unanswered;
        }
        self.written(now);
    }

    /// Retries or fails a request that was written and whose fate is unknown.
    pub(super) fn cut(&mut self, in_flight: QueuedRequest) {
        let is_used = in_flight.was_sent || in_flight.suspension.is_some();
        match (in_flight.request.repeat, is_used) {
            (RetryRule::Once, false) => self.again(in_flight),
            (RetryRule::Once, true) | (RetryRule::Never, _) => {
                self.fail(in_flight.request.ticket, RequestError::Cut);
            }
        }
    }

    /// Puts a request back into the queue, at the front of its rank.
    fn again(&mut self, in_flight: QueuedRequest) {
        let mut request = in_flight.request;
        request.start_by = request.deadline;
        let was_sent = true;
        self.queue.put_back(QueuedRequest {
            request,
            was_sent,
            suspension: None,
            missing: InputCapabilities::default(),
        });
    }
}
