//! The kill switch: it acts first and is stored second.
//!
//! Law: once it is thrown, no fault of the store and no flag that cannot be in force lifts it; what could not be stored
//! is tried again with each look of the guards.

use std::time::SystemTime;

use super::apply::Applied;
use super::{Control, overrides};
use crate::domain::rollout::overrides::{Change, ChangeMeta};
use crate::server::admin::{ChangeRequest, Refusal};
use crate::telemetry::clock::Rfc3339;
use crate::upstream::chain;

/// A kill switch that acts in this process and is not stored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KillRequest {
    /// The person who has thrown it.
    by: ChangeMeta,
    /// The reason why it is not stored; none before the first attempt has ended.
    error: Option<String>,
}

impl Control {
    /// Lets the kill switch act in this process at once; [`ControlResponse::change`] stores it.
    ///
    /// # Errors
    /// Fails with [`Refusal::Stale`] where the asker has seen another revision; nothing is changed then.
    pub fn throw(&mut self, asked: &ChangeRequest, at: SystemTime) -> Result<(), Refusal> {
        self.check(asked)?;
        if self.thrown.is_none() {
            let by = ChangeMeta {
                who: asked.who.clone(),
                at: Rfc3339(at).to_string(),
                why: asked.why.clone(),
            };
            tracing::warn!(who = by.who, why = by.why, "the kill switch acts");
            self.thrown = Some(KillRequest { by, error: None });
        }
        self.lay_kill();
        Ok(())
    }

    /// Stores a kill switch that acts in this process. Where that fails it goes on acting, and is stored later.
    pub(super) async fn store_kill(
        &mut self,
        expected: Option<Vec<String>>,
    ) -> Result<Applied, Refusal> {
        let Some(KillRequest { by, .. }) = self.thrown.clone() else {
            return Ok(Applied::Already);
        };
        let asked = ChangeRequest {
            change: Change::Kill,
            who: by.who.clone(),
            why: by.why.clone(),
            expected,
        };
        let stored = match self.refresh().await {
            Ok(()) => self.make(&asked, &by).await,
            Err(refusal) => Err(refusal),
        };
        match stored {
            Ok(made) => {
                self.thrown = None;
                Ok(made)
            }
            Err(refusal @ Refusal::Stale { .. }) => {
                // The condition that the asker has set does not hold.
                self.thrown = None;
                self.lay_kill();
                Err(refusal)
            }
            Err(refusal) => {
                self.kill_is_unstored(&refusal);
                Err(refusal)
            }
        }
    }

    /// Stores it for somebody who wants to change something else, or for the next attempt.
    pub(super) async fn store_kill_first(&mut self) -> Result<(), Refusal> {
        self.store_kill(None).await.map(drop)
    }

    /// Throws the kill switch and stores it; it acts whether or not it could be stored.
    pub(super) async fn kill(
        &mut self,
        asked: &ChangeRequest,
        at: SystemTime,
    ) -> Result<Applied, Refusal> {
        self.throw(asked, at)?;
        match self.store_kill(asked.expected.clone()).await {
            Err(refusal @ Refusal::Stale { .. }) => Err(refusal),
            Ok(made) => Ok(made),
            // [`ControlResponse::flags`] tells.
            Err(_) => Ok(Applied::Swapped),
        }
    }

    /// Tries it once more before the process ends.
    pub(super) async fn store_kill_last(&mut self) {
        drop(self.store_kill(None).await);
        if let Some(error) = self.kill_unstored() {
            tracing::error!(
                error,
                "the kill switch was never stored, so the next process begins without it"
            );
        }
    }

    /// The kill switch of a standing, with what acts in this process only.
    pub(super) fn kill_over(&self, stored: Option<&ChangeMeta>) -> Option<ChangeMeta> {
        let here = self.thrown.as_ref().map(|thrown| &thrown.by);
        stored.or(here).cloned()
    }

    /// Returns why the kill switch is not stored; `None` where it is, or is off.
    pub(super) fn kill_unstored(&self) -> Option<&str> {
        self.thrown.as_ref()?.error.as_deref()
    }

    /// Puts the kill switch over the flags that are in force, whatever else is stored.
    pub(super) fn lay_kill(&mut self) {
        let kill = self.kill_over(self.standing.kill.as_ref());
        if overrides::kill(kill.as_ref()) == self.plan.rollout.kill {
            return;
        }
        match overrides::plan(&self.config, &self.flags, (&self.standing, kill.as_ref())) {
            Ok(plan) => self.plan = plan.into(),
            // These flags are in force already.
            Err(problems) => tracing::error!(%problems, "no plan with the kill switch"),
        }
    }

    /// It is tried again at each look, and logged when the reason is another one.
    fn kill_is_unstored(&mut self, refusal: &Refusal) {
        let error = chain(refusal);
        let Some(thrown) = &mut self.thrown else {
            return;
        };
        if thrown.error.as_ref() != Some(&error) {
            tracing::error!(
                error,
                "the kill switch acts, but is not stored; storing it is tried again each second"
            );
            thrown.error = Some(error);
        }
    }
}
