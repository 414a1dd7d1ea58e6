//! A circuit breaker: it rejects calls to an upstream that keeps failing, and then lets one trial call through.

use std::time::Duration;

use super::{CallRole, End, HealthEvent};

/// The configuration of a circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPlan {
    /// Consecutive failures, at any address, after which it opens.
    pub failures: u32,
    /// Time that it stays open; doubles with each opening in a row, up to eight times.
    pub pause: Duration,
}

#[derive(Debug)]
pub(super) struct Breaker {
    plan: BreakerPlan,
    state: BreakerState,
    /// The number of openings without a close.
    times: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    Closed {
        /// Consecutive failures.
        failures: u32,
    },
    Open {
        until: Duration,
    },
    /// Half-open: one trial call is in flight.
    Trial {
        /// The end of the wait for the trial; after it another call becomes a trial, too.
        until: Duration,
    },
}

impl Breaker {
    pub(super) fn new(plan: BreakerPlan) -> Breaker {
        Breaker {
            plan,
            state: BreakerState::Closed { failures: 0 },
            times: 0,
        }
    }

    /// Admits a call, or returns the recommended wait.
    pub(super) fn try_acquire(&mut self, now: Duration) -> Result<CallRole, Duration> {
        match self.state {
            BreakerState::Closed { .. } => Ok(CallRole::Usual),
            BreakerState::Open { until } | BreakerState::Trial { until } if until <= now => {
                self.state = BreakerState::Trial {
                    until: now + self.plan.pause,
                };
                Ok(CallRole::Trial)
            }
            BreakerState::Open { until } | BreakerState::Trial { until } => Err(until - now),
        }
    }

    /// Records the end of an admitted call: the trial, or another call.
    pub(super) fn record(
        &mut self,
        end: End,
        role: CallRole,
        now: Duration,
    ) -> Option<HealthEvent> {
        if let (BreakerState::Trial { .. }, CallRole::Usual, End::Failed | End::Abandoned) =
            (self.state, role, end)
        {
            // The call began before the breaker opened, and so contains no new information.
            return None;
        }
        match (self.state, end) {
            (BreakerState::Closed { failures: 0 }, End::Answered)
            | (BreakerState::Closed { .. }, End::Abandoned) => None,
            (BreakerState::Closed { .. }, End::Answered) => {
                self.state = BreakerState::Closed { failures: 0 };
                None
            }
            (BreakerState::Closed { failures }, End::Failed)
                if failures + 1 < self.plan.failures =>
            {
                self.state = BreakerState::Closed {
                    failures: failures + 1,
                };
                None
            }
            (BreakerState::Closed { .. } | BreakerState::Trial { .. }, End::Failed) => {
                let pause = self.plan.pause * (1 << self.times.min(3));
                self.times += 1;
                self.state = BreakerState::Open { until: now + pause };
                Some(HealthEvent::Opened(pause))
            }
            // A call that began before the breaker opened also proves that the upstream is back.
            (BreakerState::Trial { .. } | BreakerState::Open { .. }, End::Answered) => {
                self.state = BreakerState::Closed { failures: 0 };
                self.times = 0;
                Some(HealthEvent::Closed)
            }
            // The next call becomes the trial.
            (BreakerState::Trial { .. }, End::Abandoned) => {
                self.state = BreakerState::Open { until: now };
                None
            }
            (BreakerState::Open { .. }, End::Failed | End::Abandoned) => None,
        }
    }
}
