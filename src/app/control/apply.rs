//! Changes of the standing at run time: compiled, stored, and only then in force.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::guards::trip;
use super::{Control, overrides};
use crate::config::raw::RawFlag;
use crate::domain::plan::Plan;
use crate::domain::rollout::overrides::{Change, ChangeMeta, ChangeResult, Standing};
use crate::server::admin::{ChangeRequest, Refusal};
use crate::store::{CommitError, StoreError, Versioned};
use crate::telemetry::clock::Rfc3339;

/// How often a change is tried anew because another replica was first.
pub(super) const ATTEMPTS: usize = 8;

/// What came of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applied {
    /// The plan is another one.
    Swapped,
    /// It was so already.
    Already,
}

/// What is in force after a change.
struct Installed {
    flags: Vec<RawFlag>,
    plan: Arc<Plan>,
    trouble: Option<String>,
}

impl Control {
    /// Makes a change: when this returns, it is stored and [`ControlResponse::plan`] has it. Only the kill switch
    /// acts although it cannot be stored.
    ///
    /// # Errors
    /// [`Refusal`]; everything is then what it was, or what another replica has made of it.
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
        // The order in which people have changed something stays.
        self.store_kill_first().await?;
        self.tell_of_trip_here(&asked.change, at).await?;
        self.make(asked, &by).await
    }

    /// Makes a change over what is known, and again over what another replica was faster with.
    pub(super) async fn make(
        &mut self,
        asked: &ChangeRequest,
        by: &ChangeMeta,
    ) -> Result<Applied, Refusal> {
        for _ in 0..ATTEMPTS {
            self.check(asked)?;
            let revision = self.revision + 1;
            let changed = self
                .standing
                .change(&asked.change, (revision, by), |flag| self.text_hash(flag));
            let next = match changed.map_err(Refusal::Fault)? {
                ChangeResult::To(next) => *next,
                ChangeResult::Already => return Ok(Applied::Already),
            };
            let here = self.unstored(&next);
            let laid = self.lay(&next, (&asked.change, &here))?;
            let text = next.written().map_err(Refusal::Unwritable)?;
            match self.store.commit(self.revision, &text).await {
                Ok(revision) => {
                    log_change(&asked.change, by);
                    self.copy(&Versioned { revision, text });
                    self.revision = revision;
                    self.standing = next;
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

    /// Lays a next standing over the files. The kill switch needs no plan with the rest of what is stored.
    fn lay(
        &self,
        next: &Standing,
        (change, here): (&Change, &BTreeMap<String, String>),
    ) -> Result<Installed, Refusal> {
        let kill = self.kill_over(next.kill.as_ref());
        let flags = overrides::laid(&self.file_flags, next, here);
        let over = (next, kill.as_ref());
        let (flags, plan, trouble) = match overrides::plan(&self.config, &flags, over) {
            Ok(plan) => (flags, plan, None),
            Err(problems) if *change != Change::Kill => return Err(Refusal::Invalid(problems)),
            Err(_) => {
                let flags = self.flags.clone();
                let plan = overrides::plan(&self.config, &flags, over).map_err(Refusal::Invalid)?;
                (flags, plan, self.trouble.clone())
            }
        };
        Ok(Installed {
            flags,
            plan: Arc::new(plan),
            trouble,
        })
    }

    /// What is asked for must be of something that is there, and as the asker has seen it.
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
        let found = match asked.change.flag() {
            Some(flag) => self.flag_tag(flag),
            None => self.revision.to_string(),
        };
        match &asked.expected {
            Some(expected) if expected.iter().all(|tag| *tag != found && tag != "*") => {
                Err(Refusal::Stale { found })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What tells a state of a flag from every other one: the revision that changed it last, and what the file says.
    pub(super) fn flag_tag(&self, name: &str) -> String {
        let text_hash = self.text_hash(name);
        let standing = self.standing.of(name, &text_hash);
        let revision = standing.map_or(0, |standing| standing.revision);
        let text: String = text_hash.chars().take(8).collect();
        format!("{revision}-{text}")
    }

    pub(super) fn text_hash(&self, name: &str) -> String {
        let mut flags = self.file_flags.iter();
        let flag = flags.find(|flag| flag.name.value == name);
        flag.map(|flag| flag.text_hash.clone()).unwrap_or_default()
    }

    /// Who takes back what only this process has taken from the old way is heard of by all: that it was tripped is
    /// stored first.
    async fn tell_of_trip_here(&mut self, change: &Change, at: SystemTime) -> Result<(), Refusal> {
        let (Change::Rearm { flag } | Change::Unflip { flag }) = change else {
            return Ok(());
        };
        let Some(reason) = self.tripped_here.get(flag) else {
            return Ok(());
        };
        let (asked, by) = trip(flag, reason, at);
        self.make(&asked, &by).await.map(drop)
    }

    /// What this process has taken back and this standing does not tell of.
    fn unstored(&self, standing: &Standing) -> BTreeMap<String, String> {
        let mut here = self.tripped_here.clone();
        here.retain(|flag, _| {
            let stands = standing.of(flag, &self.text_hash(flag));
            stands.is_none_or(|stands| stands.trip.is_none())
        });
        here
    }

    /// Takes what another replica has stored. Where it has no plan here, the plan of before stays.
    pub(super) fn take(&mut self, found: Versioned) {
        let standing = match Standing::read(&found.text) {
            Ok(standing) => standing,
            // Its revision stays unknown, so that no change from here is ever stored over what cannot be read.
            Err(error) => return self.cannot_take(found.revision, error.to_string()),
        };
        self.tripped_here = self.unstored(&standing);
        if standing.kill.is_some() {
            self.thrown = None;
        }
        let flags = overrides::laid(&self.file_flags, &standing, &self.tripped_here);
        let kill = self.kill_over(standing.kill.as_ref());
        match overrides::plan(&self.config, &flags, (&standing, kill.as_ref())) {
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
                self.standing = standing;
                self.trouble = None;
                self.copy(&found);
            }
            Err(problems) => {
                // It is known, so that changes from here on build on it, but it is not in force.
                self.standing = standing;
                // The kill switch acts all the same.
                self.lay_kill();
                self.cannot_take(found.revision, problems.to_string());
            }
        }
        self.revision = found.revision;
    }

    fn cannot_take(&mut self, revision: u64, error: String) {
        let trouble = Some(format!(
            "what another replica has stored cannot be in force here: {error}"
        ));
        if self.trouble == trouble {
            return;
        }
        tracing::error!(
            revision,
            error,
            "what another replica has stored cannot be in force here"
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
