//! A ramp: a percentage that rises step by step while the guard of the flag is content.
//!
//! Only time in which the guard is content counts. What it cannot tell holds the ramp where it is, a trip ends it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::guard::{Guard, GuardDecision, Mode};
use super::{Percent, UnixMillis};

/// The most time that passes between two looks and is believed to have been as the ruling says.
const BELIEVED: Duration = Duration::from_secs(10);

/// The percentages of a flag, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ramp {
    steps: Vec<Percent>,
    every: Duration,
}

/// Why there is no such ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RampFault {
    /// Nothing to do.
    #[error("a ramp has at least one step")]
    NoStep,
    /// A step that does not rise.
    #[error(
        "the step {step} does not rise above {before}; write steps such as `[1, 5, 25, 50, 100]`"
    )]
    Falls {
        /// The place of the step.
        place: usize,
        /// The step.
        step: Percent,
        /// The one before it, or nought.
        before: Percent,
    },
    /// Nobody would stop it.
    #[error("a ramp needs a `guard`: without one nothing would ever stop it")]
    NoGuard,
    /// A step would be over before the guard has seen a window of it.
    #[error("a step of {every:?} is shorter than the guard's window of {window:?}")]
    Hasty {
        /// The time of a step.
        every: Duration,
        /// The window.
        window: Duration,
    },
}

/// Where a ramp is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RampState {
    /// Which step, from nought.
    pub step: usize,
    /// When it began.
    pub since: UnixMillis,
    /// For how long the guard was content with it.
    pub healthy: Duration,
    /// The last look.
    pub seen: UnixMillis,
}

impl RampState {
    /// The beginning of a step.
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

/// What becomes of a ramp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RampStep {
    /// It stays at its step.
    Stay(RampState),
    /// It goes on to the next one.
    Advance(RampState),
    /// It is at its last step.
    Finished,
    /// The guard has taken the flag back.
    Ended,
}

impl Ramp {
    /// A ramp of rising steps, each held for so long.
    ///
    /// # Errors
    /// [`RampFault`] where there is no step, or one that does not rise.
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

    /// Whether the guard of the flag can watch over the ramp.
    ///
    /// # Errors
    /// [`RampFault`] where there is no guard, or one that looks at more time than a step has.
    pub fn guarded(&self, guard: Option<&Guard>) -> Result<(), RampFault> {
        let window = guard.ok_or(RampFault::NoGuard)?.window;
        if self.every < window {
            let every = self.every;
            return Err(RampFault::Hasty { every, window });
        }
        Ok(())
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[Percent] {
        &self.steps
    }

    /// How long the guard must be content with a step.
    #[must_use]
    pub const fn every(&self) -> Duration {
        self.every
    }

    /// The percentage of a step; that of the last one beyond it, for a file may have been shortened.
    #[must_use]
    pub fn percent(&self, step: usize) -> Percent {
        let last = self.steps.last().copied().unwrap_or(Percent::ALL);
        self.steps.get(step).copied().unwrap_or(last)
    }

    /// What becomes of the ramp at a moment, the guard having ruled so.
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
