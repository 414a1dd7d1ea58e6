//! Guards and ramps, evaluated about once a second on the counts of all replicas. A guard trips its flag if the new
//! path is worse; a ramp advances while its guard is content.
//!
//! Used by `control::reports`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use super::Control;
use super::apply::{Applied, asked_by_guard};
use super::overrides::{self, RuntimeChanges};
use crate::server::admin::Refusal;
use crate::telemetry::clock::millis;
use crate::telemetry::metrics::GuardTrips;
use dualgauge_model::rollout::overrides::{Change, FlagStanding};
use dualgauge_model::rollout::{
    Aggregate, Arming, Flag, Guard, GuardDecision, GuardState, Mode, RampState, RampStep, Tally,
    UnixMillis,
};

/// The state of the guards, by the name of the flag.
#[derive(Debug, Default)]
pub(super) struct Guards {
    pub(super) watched: BTreeMap<String, GuardedFlag>,
    pub(super) summed: Aggregate,
    /// The trips of guards, enforced or dry-run.
    trips: BTreeMap<(String, &'static str, &'static str), u64>,
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
    watch: GuardState,
    ramp: Option<RampState>,
    #[serde(skip)]
    ruling: Option<GuardDecision>,
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
    fn see(&mut self, flag: &Flag, armed_by: Option<u64>, guard: &Guard) {
        let last = self.arming.replace(flag.arming);
        // A re-arming that has dropped out of the history is not new.
        let armed = armed_by.is_some() && armed_by != self.armed_by;
        self.armed_by = armed_by.or(self.armed_by);
        let was_tripped = last == Some(Arming::Tripped) || is_tripped(&self.watch, guard);
        if flag.arming == Arming::Armed && (was_tripped || armed) {
            self.watch.rearm();
        }
    }

    /// Returns the action that the last decision requires.
    fn next_action(
        &mut self,
        flag: &Flag,
        guard: &Guard,
        stands: Option<&FlagStanding>,
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
            // A person has taken over.
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
enum GuardAction {
    Trip { reason: String },
    Advance { from: Option<usize>, to: usize },
}

impl Control {
    /// Evaluates the counts so far, and acts on the decisions of the guards.
    pub async fn observe(&mut self, at: SystemTime) {
        // On failure the kill switch still acts, and storing it is tried again.
        drop(self.store_kill_first().await);
        self.drop_void(at).await;
        for (flag, due) in self.rulings(at) {
            let change = match due {
                GuardAction::Trip { reason } => {
                    if !self.tripped_here.contains_key(&flag) {
                        tracing::error!(flag, reason, "the guard of a flag tripped");
                    }
                    Change::Trip { flag, reason }
                }
                GuardAction::Advance { from, to } => {
                    let at = millis(at);
                    Change::Advance { flag, from, to, at }
                }
            };
            let asked = asked_by_guard(change);
            match self.change(&asked, at).await {
                // On a refusal another replica was faster, or the flag is gone: there is nothing to store.
                Ok(_) | Err(Refusal::Fault(_) | Refusal::Unknown { .. }) => {}
                Err(refusal) => {
                    // It is tried again at each evaluation, and logged once.
                    if self.trip_locally(&asked.change) == Applied::Swapped {
                        let flag = asked.change.flag();
                        tracing::warn!(flag, error = %refusal, "a trip is in force only in this process until it is stored");
                    }
                }
            }
        }
    }

    /// Evaluates every flag that has a guard.
    fn rulings(&mut self, at: SystemTime) -> Vec<(String, GuardAction)> {
        let plan = self.plan();
        let here = self.tripped_here.iter();
        let unstored = here.map(|(flag, reason)| {
            let reason = reason.clone();
            (flag.clone(), GuardAction::Trip { reason })
        });
        let at = UnixMillis::from_millis(millis(at));
        let none = Tally::default();
        let mut due: Vec<_> = unstored.collect();
        let guards = &mut self.guards;
        guards
            .watched
            .retain(|name, _| plan.rollout.flags.iter().any(|flag| flag.name == *name));
        for (flag, raw) in plan.rollout.flags.iter().zip(&self.flags) {
            let Some(guard) = &flag.guard else {
                continue;
            };
            let watched = guards.watched.entry(flag.name.clone()).or_default();
            let tally = guards.summed.total().get(&flag.name).unwrap_or(&none);
            watched.see(flag, self.standing.armed_by(&flag.name), guard);
            let before = watched.ruling.take();
            let ruling = watched.watch.observe(guard, at, tally);
            if let GuardDecision::Trip(trip) = &ruling
                && !matches!(before, Some(GuardDecision::Trip(_)))
            {
                let key = (
                    flag.name.clone(),
                    trip.breach.limit().as_str(),
                    mode_word(guard.mode),
                );
                *guards.trips.entry(key).or_default() += 1;
                if guard.mode == Mode::DryRun {
                    let reason = trip.to_string();
                    tracing::warn!(flag = flag.name, reason, "the guard of a flag would trip");
                }
            }
            let stands = self.standing.of(&flag.name, &raw.text_hash);
            watched.ruling = Some(ruling);
            let action = watched.next_action(flag, guard, stands, at);
            due.extend(action.map(|action| (flag.name.clone(), action)));
        }
        due
    }
}

const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Act => "act",
        Mode::DryRun => "dry_run",
    }
}

/// Returns true if the guard has tripped the flag before, in enforcing mode.
fn is_tripped(watch: &GuardState, guard: &Guard) -> bool {
    guard.mode == Mode::Act && watch.trip().is_some()
}

impl Control {
    /// Trips a flag in this process only, while the store is unavailable.
    fn trip_locally(&mut self, change: &Change) -> Applied {
        let Change::Trip { flag, reason } = change else {
            return Applied::Already;
        };
        if self
            .tripped_here
            .insert(flag.clone(), reason.clone())
            .is_some()
        {
            return Applied::Already;
        }
        self.lay_anew()
    }

    /// Compiles the plan from the current state.
    pub(super) fn lay_anew(&mut self) -> Applied {
        let kill = self.kill_over(self.standing.kill.as_ref());
        let changes = RuntimeChanges {
            standing: &self.standing,
            tripped_here: &self.tripped_here,
            kill: kill.as_ref(),
        };
        let flags = overrides::laid(&self.file_flags, changes);
        match overrides::plan(&self.config, &flags, changes) {
            Ok(plan) => {
                self.flags = flags;
                self.plan = plan.into();
                Applied::Swapped
            }
            // Tripping a flag cannot invalidate a plan.
            Err(problems) => {
                tracing::error!(%problems, "cannot compile a plan with a tripped flag");
                Applied::Already
            }
        }
    }
}
