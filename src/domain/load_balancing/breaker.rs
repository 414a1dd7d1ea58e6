//! A circuit breaker: an upstream that fails and fails is left alone for a while, and then asked by one call.

use std::time::Duration;

use super::{End, News, Part};

/// When an upstream is left alone as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerPlan {
    /// After so many failures one behind the other, whichever address they were of.
    pub failures: u32,
    /// For so long; each further time in a row twice as long, up to eight times.
    pub pause: Duration,
}

#[derive(Debug)]
pub(super) struct Breaker {
    plan: BreakerPlan,
    state: BreakerState,
    /// How often it has opened without closing in between.
    times: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    Closed {
        /// One behind the other.
        failures: u32,
    },
    Open {
        until: Duration,
    },
    /// One call is under way that shows whether the upstream is back.
    Trial {
        /// For so long the others wait for it; then another one is asked as well.
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

    /// Lets a call through, or tells how long it is best to wait.
    pub(super) fn try_acquire(&mut self, now: Duration) -> Result<Part, Duration> {
        match self.state {
            BreakerState::Closed { .. } => Ok(Part::Usual),
            BreakerState::Open { until } | BreakerState::Trial { until } if until <= now => {
                self.state = BreakerState::Trial {
                    until: now + self.plan.pause,
                };
                Ok(Part::Trial)
            }
            BreakerState::Open { until } | BreakerState::Trial { until } => Err(until - now),
        }
    }

    /// A call that was let through has ended: the trial, or one of all others.
    pub(super) fn record(&mut self, (end, part): (End, Part), now: Duration) -> Option<News> {
        if let (BreakerState::Trial { .. }, Part::Usual, End::Failed | End::Abandoned) =
            (self.state, part, end)
        {
            // It began before the breaker opened, and says nothing new.
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
                Some(News::Opened(pause))
            }
            // A call that began before it opened says that the upstream is back as well.
            (BreakerState::Trial { .. } | BreakerState::Open { .. }, End::Answered) => {
                self.state = BreakerState::Closed { failures: 0 };
                self.times = 0;
                Some(News::Closed)
            }
            // The next call is the one that shows it.
            (BreakerState::Trial { .. }, End::Abandoned) => {
                self.state = BreakerState::Open { until: now };
                None
            }
            (BreakerState::Open { .. }, End::Failed | End::Abandoned) => None,
        }
    }
}
