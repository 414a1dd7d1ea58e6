//! Ramps: percentages that rise in steps while the guard of the flag reports no problem.
//!
//! Only time with the decision [`GuardDecision::Content`] counts. An inconclusive decision holds the ramp at its step;
//! a trip ends it.
//!
//! Used by `app::control::guards`, `config::compile::guard` and `rollout::flag`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::{Guard, GuardDecision, Mode};
use super::{Percent, UnixMillis};

/// The maximum time between two observations that counts towards the current decision.
const BELIEVED: Duration = Duration::from_secs(10);

/// The percentages of a flag, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ramp {
    steps: Vec<Percent>,
    every: Duration,
}

/// The reason why a ramp is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RampFault {
    /// There is no step.
    #[error("a ramp has at least one step")]
    NoStep,
    /// A step does not rise.
    #[error(
        "the step {step} does not rise above {before}; write steps such as `[1, 5, 25, 50, 100]`"
    )]
    Falls {
        /// The index of the step.
        place: usize,
        /// The percentage of the step.
        step: Percent,
        /// The percentage of the step before it, or zero.
        before: Percent,
    },
    /// The flag has no guard that could stop the ramp.
    #[error("a ramp needs a `guard`: without one nothing would ever stop it")]
    NoGuard,
    /// A step is shorter than the window of the guard.
    #[error("a step of {every:?} is shorter than the guard's window of {window:?}")]
    Hasty {
        /// The duration of a step.
        every: Duration,
        /// The window of the guard.
        window: Duration,
    },
}

/// The progress of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RampState {
    /// The index of the current step.
    pub step: usize,
    /// The time at which the step began.
    pub since: UnixMillis,
    /// The time for which the guard has approved the step.
    pub healthy: Duration,
    /// The time of the last observation.
    pub seen: UnixMillis,
}

impl RampState {
    /// Returns the state at the beginning of a step.
    #[must_use]
    pub const fn begin(step: usize, at: UnixMillis) -> RampState {
        RampState {
            step,
            since: at,
            healthy: Duration::ZERO,
            seen: at,
        }
    }
}

/// The next state of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampStep {
    /// The ramp stays at its step.
    Stay(RampState),
    /// The ramp advances to the next step.
    Advance(RampState),
    /// The ramp is at its last step.
    Finished,
    /// The guard has tripped.
    Ended,
}

impl Ramp {
    /// Creates a ramp of rising steps, each held for `every`.
    ///
    /// # Errors
    ///
    /// Fails if there is no step, or one that does not rise.
    pub fn new(steps: Vec<Percent>, every: Duration) -> Result<Ramp, RampFault> {
        if steps.is_empty() {
            return Err(RampFault::NoStep);
        }
        let mut before = Percent::from_thousandths(0);
        for (place, step) in steps.iter().copied().enumerate() {
            if let Some(before) = before.filter(|before| step <= *before) {
                return Err(RampFault::Falls {
                    place,
                    step,
                    before,
                });
            }
            before = Some(step);
        }
        Ok(Ramp { steps, every })
    }

    /// Checks that the guard of the flag can supervise the ramp.
    ///
    /// # Errors
    ///
    /// Fails if there is no guard, or if its window is longer than a step.
    pub fn guarded(&self, guard: Option<&Guard>) -> Result<(), RampFault> {
        let window = guard.ok_or(RampFault::NoGuard)?.window;
        if self.every < window {
            let every = self.every;
            return Err(RampFault::Hasty { every, window });
        }
        Ok(())
    }

    /// Returns the steps.
    #[must_use]
    pub fn steps(&self) -> &[Percent] {
        &self.steps
    }

    /// Returns the time for which the guard must approve each step.
    #[must_use]
    pub const fn every(&self) -> Duration {
        self.every
    }

    /// Returns the percentage of a step. Beyond the last step it returns the last one: the configured list may have
    /// become shorter.
    #[must_use]
    pub fn percent(&self, step: usize) -> Percent {
        let last = self.steps.last().copied().unwrap_or(Percent::ALL);
        self.steps.get(step).copied().unwrap_or(last)
    }

    /// Returns the next state of the ramp at a time, given the decision of the guard.
    #[must_use]
    pub fn advance(&self, state: &RampState, at: UnixMillis, ruling: &GuardDecision) -> RampStep {
        let passed = at.since(state.seen).min(BELIEVED);
        let healthy = match ruling {
            GuardDecision::Trip(trip) if trip.mode == Mode::Act => return RampStep::Ended,
            GuardDecision::Content => state.healthy.saturating_add(passed),
            GuardDecision::Inconclusive(_) | GuardDecision::Trip(_) => state.healthy,
        };
        if state.step + 1 >= self.steps.len() {
            return RampStep::Finished;
        }
        if healthy >= self.every {
            return RampStep::Advance(RampState::begin(state.step + 1, at));
        }
        RampStep::Stay(RampState {
            healthy,
            seen: at,
            ..*state
        })
    }
}

#[cfg(test)]
mod tests;
