//! The state of the guards of flags, and the actions that their decisions require.
//!
//! Used by `control::guards`, `control::reports` and `control::state`.

use std::collections::BTreeMap;

use crate::telemetry::metrics::GuardTrips;
use dualgauge_model::rollout::overrides::FlagOverrides;
use dualgauge_model::rollout::{
    Aggregate, Arming, Flag, Guard, GuardDecision, GuardState, Mode, RampState, RampStep,
    UnixMillis,
};

/// The state of the guards, by the name of the flag.
#[derive(Debug, Default)]
pub(super) struct Guards {
    pub(super) watched: BTreeMap<String, GuardedFlag>,
    pub(super) summed: Aggregate,
    /// The trips of guards, enforced or dry-run.
    pub(super) trips: BTreeMap<(String, &'static str, &'static str), u64>,
}

impl Guards {
    pub(super) fn trips(&self) -> Vec<GuardTrips> {
        let trips = self.trips.iter();
        trips
            .map(|((flag, limit, mode), count)| GuardTrips {
                flag: flag.clone(),
                limit,
                mode,
                count: *count,
            })
            .collect()
    }

    /// Describes the last decision of a flag's guard.
    pub(super) fn last_decision(&self, flag: &str) -> Option<String> {
        Some(match self.watched.get(flag)?.ruling()? {
            GuardDecision::Content => "content".to_owned(),
            GuardDecision::Inconclusive(why) => format!("inconclusive: {why}"),
            GuardDecision::Trip(trip) => format!("trip: {trip}"),
        })
    }

    /// Returns the last decision of each guard.
    pub(super) fn rulings(&self) -> Vec<(String, &'static str)> {
        let watched = self.watched.iter();
        let rulings = watched.filter_map(|(flag, watched)| Some((flag, watched.ruling()?)));
        rulings
            .map(|(flag, ruling)| (flag.clone(), ruling.as_str()))
            .collect()
    }
}

/// The guard of one flag.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct GuardedFlag {
    pub(super) watch: GuardState,
    ramp: Option<RampState>,
    #[serde(skip)]
    pub(super) ruling: Option<GuardDecision>,
    /// The arming state of the flag at the last evaluation.
    #[serde(skip)]
    arming: Option<Arming>,
    /// The revision that last re-armed the flag, as of the last evaluation.
    #[serde(default)]
    armed_by: Option<u64>,
}

impl GuardedFlag {
    pub(super) fn ruling(&self) -> Option<&GuardDecision> {
        self.ruling.as_ref()
    }

    /// Resets the guard when a person has re-armed the flag. The trip may come from this or another replica, and trip
    /// and re-arming may both lie between two evaluations.
    pub(super) fn see(&mut self, flag: &Flag, armed_by: Option<u64>, guard: &Guard) {
        let last = self.arming.replace(flag.arming);
        // A re-arming that has dropped out of the history is not new.
        let armed = armed_by.is_some() && armed_by != self.armed_by;
        self.armed_by = armed_by.or(self.armed_by);
        let was_tripped = last == Some(Arming::Tripped) || is_tripped(&self.watch, guard);
        if flag.arming == Arming::Armed && (was_tripped || armed) {
            self.watch.rearm();
        }
    }

    /// Forgets the time for which the current step of the ramp has been healthy.
    pub(super) const fn stop_ramp(&mut self) {
        self.ramp = None;
    }

    /// Returns the action that the last decision requires.
    pub(super) fn next_action(
        &mut self,
        flag: &Flag,
        guard: &Guard,
        stands: Option<&FlagOverrides>,
        at: UnixMillis,
    ) -> Option<GuardAction> {
        if flag.arming == Arming::Tripped {
            self.ramp = None;
            return None;
        }
        let ruling = self.ruling.as_ref()?;
        if let (GuardDecision::Trip(trip), Mode::Act) = (ruling, guard.mode) {
            return Some(GuardAction::Trip {
                reason: trip.to_string(),
            });
        }
        let ramp = flag.ramp.as_ref()?;
        if stands.is_some_and(|stands| stands.flip.is_some()) {
            // A manual override replaces the ramp.
            self.ramp = None;
            return None;
        }
        let Some(stored) = stands.and_then(|stands| stands.ramp) else {
            return Some(GuardAction::Advance { from: None, to: 0 });
        };
        let now = self
            .ramp
            .filter(|state| state.step == stored.step)
            .unwrap_or(RampState::begin(stored.step, at));
        match ramp.advance(&now, at, ruling) {
            RampStep::Stay(next) => self.ramp = Some(next),
            RampStep::Advance(next) => {
                return Some(GuardAction::Advance {
                    from: Some(stored.step),
                    to: next.step,
                });
            }
            RampStep::Finished | RampStep::Ended => {}
        }
        None
    }
}

/// The action that a decision requires.
pub(super) enum GuardAction {
    Trip { reason: String },
    Advance { from: Option<usize>, to: usize },
}

/// Returns true if the guard has tripped the flag before, in enforcing mode.
fn is_tripped(watch: &GuardState, guard: &Guard) -> bool {
    guard.mode == Mode::Act && watch.trip().is_some()
}
