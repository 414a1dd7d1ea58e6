//! Guards and ramps, evaluated about once a second on the counts of all replicas. A guard trips its flag if the new
//! path is worse; a ramp advances while its guard is content.
//!
//! Used by `control`.

use std::time::SystemTime;

use super::apply::{Applied, asked_by_guard};
use super::guarded_flag::GuardAction;
use super::overrides::{self, RuntimeChanges};
use super::state::Control;
use crate::server::admin::Refusal;
use crate::telemetry::clock::millis;
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::rollout::{GuardDecision, Mode, Tally, UnixMillis};

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
            watched.see(flag, self.overrides.armed_by(&flag.name), guard);
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
            let stands = self.overrides.of(&flag.name, &raw.text_hash);
            watched.ruling = Some(ruling);
            let mut action = watched.next_action(flag, guard, stands, at);
            if self.source.of(&flag.name).is_some() {
                // The source replaces the ramp, as a manual override does.
                watched.stop_ramp();
                action = action.filter(|action| match action {
                    GuardAction::Trip { .. } => true,
                    GuardAction::Advance { .. } => false,
                });
            }
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
        let kill = self.kill_over(self.overrides.kill.as_ref());
        let changes = RuntimeChanges {
            overrides: &self.overrides,
            tripped_here: &self.tripped_here,
            kill: kill.as_ref(),
            source: &self.source.values,
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
