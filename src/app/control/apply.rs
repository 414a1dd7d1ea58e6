//! Changes of the overrides at run time: compiled, stored, and only then put in force.
//!
//! Used by `control::guards`, `control::kill` and `control::stale_changes`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::overrides::{self, RuntimeChanges};
use super::state::Control;
use crate::config::raw::RawFlag;
use crate::server::admin::{ChangeRequest, Refusal, StaleSubject};
use crate::store::{CommitError, StoreError, Versioned};
use crate::telemetry::clock::Rfc3339;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::overrides::{Change, ChangeMeta, ChangeResult, Overrides};

/// The number of attempts to store a change when other replicas are faster.
pub(super) const ATTEMPTS: usize = 8;
/// The author of changes by guards and ramps.
const GUARD: &str = "guard";

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// A new plan is in force.
    Swapped,
    /// The change had been made already.
    Already,
}

/// The state to put in force after a change.
struct Installed {
    flags: Vec<RawFlag>,
    plan: Arc<Plan>,
    trouble: Option<String>,
}

impl Control {
    /// Makes a change: on return it is stored and in [`Control::plan`]. Only the kill switch acts even if it cannot be
    /// stored.
    ///
    /// # Errors
    /// Returns a [`Refusal`]; the state is then unchanged, except for changes by other replicas.
    pub async fn change(
        &mut self,
        asked: &ChangeRequest,
        at: SystemTime,
    ) -> Result<Applied, Refusal> {
        let by = ChangeMeta {
            who: asked.who.clone(),
            at: Rfc3339(at).to_string(),
            why: asked.why.clone(),
        };
        if asked.change == Change::Kill {
            return self.kill(asked, at).await;
        }
        self.refresh().await?;
        // The kill switch is stored first, to keep the order in which changes were made.
        self.store_kill_first().await?;
        self.store_local_trip(&asked.change, at).await?;
        self.make(asked, &by).await
    }

    /// Makes a change on top of the known state, and again if another replica was faster.
    pub(super) async fn make(
        &mut self,
        asked: &ChangeRequest,
        by: &ChangeMeta,
    ) -> Result<Applied, Refusal> {
        for _ in 0..ATTEMPTS {
            self.check(asked)?;
            let revision = self.revision + 1;
            let changed = self
                .overrides
                .change(&asked.change, revision, by, |flag| self.text_hash(flag));
            let next = match changed.map_err(Refusal::Fault)? {
                ChangeResult::To(next) => *next,
                ChangeResult::Already => return Ok(Applied::Already),
            };
            self.check_governed(&asked.change, Some(&next))?;
            let here = self.unstored(&next);
            let laid = self.lay(&next, &asked.change, &here)?;
            let text = next.written().map_err(Refusal::Unwritable)?;
            match self.store.commit(self.revision, &text).await {
                Ok(revision) => {
                    log_change(&asked.change, by);
                    self.copy(&Versioned { revision, text });
                    self.revision = revision;
                    self.overrides = next;
                    self.tripped_here = here;
                    self.flags = laid.flags;
                    self.plan = laid.plan;
                    self.trouble = laid.trouble;
                    return Ok(Applied::Swapped);
                }
                Err(CommitError::Conflict(found)) => self.take(found),
                Err(CommitError::Store(StoreError::Forgot { .. })) => self.give_back().await,
                Err(CommitError::Store(error)) => return Err(Refusal::Store(error)),
            }
        }
        Err(Refusal::Lost)
    }

    /// Applies new overrides to the files. The kill switch does not require that the rest of the stored state
    /// compiles.
    fn lay(
        &self,
        next: &Overrides,
        change: &Change,
        tripped_here: &BTreeMap<String, String>,
    ) -> Result<Installed, Refusal> {
        let kill = self.kill_over(next.kill.as_ref());
        let changes = RuntimeChanges {
            overrides: next,
            tripped_here,
            kill: kill.as_ref(),
            source: &self.source.values,
        };
        let flags = overrides::laid(&self.file_flags, changes);
        let (flags, plan, trouble) = match overrides::plan(&self.config, &flags, changes) {
            Ok(plan) => (flags, plan, None),
            Err(problems) if *change != Change::Kill => return Err(Refusal::Invalid(problems)),
            Err(_) => {
                let flags = self.flags.clone();
                let plan = overrides::plan(&self.config, &flags, changes);
                let plan = plan.map_err(Refusal::Invalid)?;
                (flags, plan, self.trouble.clone())
            }
        };
        Ok(Installed {
            flags,
            plan: Arc::new(plan),
            trouble,
        })
    }

    /// Checks that the flag or route of a change exists, and that the requester has seen its current state.
    pub(super) fn check(&self, asked: &ChangeRequest) -> Result<(), Refusal> {
        if let Some(flag) = asked.change.flag()
            && !self.flags.iter().any(|known| known.name.value == flag)
        {
            return Err(self.unknown(flag));
        }
        if let Change::CallOff { route } | Change::CallOn { route } = &asked.change
            && !self
                .config
                .routes
                .iter()
                .any(|known| known.name.value == *route)
        {
            let names = self
                .config
                .routes
                .iter()
                .map(|route| route.name.value.as_str());
            return Err(Refusal::UnknownRoute {
                nearest: crate::config::problem::nearest(route, names).map(str::to_owned),
            });
        }
        self.check_governed(&asked.change, None)?;
        let (subject, found) = match asked.change.flag() {
            Some(flag) => (StaleSubject::Flag, self.flag_tag(flag)),
            None => (StaleSubject::Rollout, self.revision.to_string()),
        };
        match &asked.expected {
            Some(expected) if expected.iter().all(|tag| *tag != found && tag != "*") => {
                Err(Refusal::Stale { subject, found })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the tag of a flag's state: the revision that changed it last, and the hash of its text.
    pub(super) fn flag_tag(&self, name: &str) -> String {
        let text_hash = self.text_hash(name);
        let overrides = self.overrides.of(name, &text_hash);
        let revision = overrides.map_or(0, |overrides| overrides.revision);
        let text: String = text_hash.chars().take(8).collect();
        format!("{revision}-{text}")
    }

    pub(super) fn text_hash(&self, name: &str) -> String {
        let mut flags = self.file_flags.iter();
        let flag = flags.find(|flag| flag.name.value == name);
        flag.map(|flag| flag.text_hash.clone()).unwrap_or_default()
    }

    /// Stores the trip of a flag before a person reverts it, if only this process has tripped it, so that all replicas
    /// learn of both.
    async fn store_local_trip(&mut self, change: &Change, at: SystemTime) -> Result<(), Refusal> {
        let (Change::Rearm { flag } | Change::Unflip { flag }) = change else {
            return Ok(());
        };
        let Some(reason) = self.tripped_here.get(flag) else {
            return Ok(());
        };
        let (asked, by) = trip(flag, reason, at);
        self.make(&asked, &by).await.map(drop)
    }

    /// Returns the trips in this process that `overrides` does not contain.
    fn unstored(&self, overrides: &Overrides) -> BTreeMap<String, String> {
        let mut here = self.tripped_here.clone();
        here.retain(|flag, _| {
            let stands = overrides.of(flag, &self.text_hash(flag));
            stands.is_none_or(|stands| stands.trip.is_none())
        });
        here
    }

    /// Applies a state that another replica has stored. If it does not compile here, the previous plan stays.
    pub(super) fn take(&mut self, found: Versioned) {
        let overrides = match Overrides::read(&found.text) {
            Ok(overrides) => overrides,
            // The revision stays unknown, so that no change from here is ever stored over an unreadable state.
            Err(error) => return self.cannot_take(found.revision, error.to_string()),
        };
        self.tripped_here = self.unstored(&overrides);
        if overrides.kill.is_some() {
            self.thrown = None;
        }
        let kill = self.kill_over(overrides.kill.as_ref());
        let changes = RuntimeChanges {
            overrides: &overrides,
            tripped_here: &self.tripped_here,
            kill: kill.as_ref(),
            source: &self.source.values,
        };
        let flags = overrides::laid(&self.file_flags, changes);
        match overrides::plan(&self.config, &flags, changes) {
            Ok(plan) => {
                let revision = found.revision;
                match self.follows_store() {
                    true => tracing::info!(revision, "another replica has changed flags"),
                    false => tracing::warn!(
                        revision,
                        "a change that was stored too late to be confirmed is in force"
                    ),
                }
                self.plan = Arc::new(plan);
                self.flags = flags;
                self.overrides = overrides;
                self.trouble = None;
                self.copy(&found);
            }
            Err(problems) => {
                // The overrides are kept, so that changes from here build on it, but they are not in force.
                self.overrides = overrides;
                // The kill switch acts all the same.
                self.lay_kill();
                self.cannot_take(found.revision, problems.to_string());
            }
        }
        self.revision = found.revision;
    }

    fn cannot_take(&mut self, revision: u64, error: String) {
        let trouble = Some(format!(
            "the changes stored by another replica cannot be applied here: {error}"
        ));
        if self.trouble == trouble {
            return;
        }
        tracing::error!(
            revision,
            error,
            "the changes stored by another replica cannot be applied here"
        );
        self.trouble = trouble;
    }
}

pub(super) fn log_change(change: &Change, by: &ChangeMeta) {
    let to = if let Change::Flip { stage, percent, .. } = change {
        Some(format!("{} {percent} %", stage.as_str()))
    } else if let Change::Advance { to, .. } = change {
        Some(format!("step {}", to + 1))
    } else {
        None
    };
    tracing::info!(
        what = change.as_str(),
        flag = change.flag(),
        to,
        who = by.who,
        why = by.why,
        "the rollout was changed"
    );
}

/// Returns the change with which a guard trips a flag.
fn trip(flag: &str, reason: &str, at: SystemTime) -> (ChangeRequest, ChangeMeta) {
    let change = Change::Trip {
        flag: flag.to_owned(),
        reason: reason.to_owned(),
    };
    let by = ChangeMeta {
        who: GUARD.to_owned(),
        at: Rfc3339(at).to_string(),
        why: None,
    };
    (asked_by_guard(change), by)
}

/// Returns the request of a guard or ramp for `change`.
pub(super) fn asked_by_guard(change: Change) -> ChangeRequest {
    ChangeRequest {
        change,
        who: GUARD.to_owned(),
        why: None,
        expected: None,
    }
}
