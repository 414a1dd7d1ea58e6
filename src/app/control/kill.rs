//! The kill switch, which acts first and is stored second.
//!
//! Law: once it is on, neither a failure of the store nor a flag that does not compile turns it off; storing it is
//! tried again at each evaluation of the guards.

use std::time::SystemTime;

use super::apply::Applied;
use super::overrides::{self, RuntimeChanges};
use super::state::{Control, KillRequest};
use crate::server::admin::{ChangeRequest, Refusal};
use crate::telemetry::clock::Rfc3339;
use dualgauge_model::rollout::overrides::{Change, ChangeMeta};
use dualgauge_net::chain;

impl Control {
    /// Turns the kill switch on in this process at once; [`Control::change`] stores it.
    ///
    /// # Errors
    /// Returns [`Refusal::Stale`] without any change if the requester has seen another revision.
    pub fn throw(&mut self, asked: &ChangeRequest, at: SystemTime) -> Result<(), Refusal> {
        self.check(asked)?;
        if self.thrown.is_none() {
            let by = ChangeMeta {
                who: asked.who.clone(),
                at: Rfc3339(at).to_string(),
                why: asked.why.clone(),
            };
            tracing::warn!(who = by.who, why = by.why, "the kill switch is on");
            self.thrown = Some(KillRequest { by, error: None });
        }
        self.lay_kill();
        Ok(())
    }

    /// Stores a kill switch that acts in this process. On failure it still acts, and is stored later.
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
                // The precondition of the requester does not hold.
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

    /// Stores the kill switch before another change, or as a retry.
    pub(super) async fn store_kill_first(&mut self) -> Result<(), Refusal> {
        self.store_kill(None).await.map(drop)
    }

    /// Turns the kill switch on and stores it; it acts even if it cannot be stored.
    pub(super) async fn kill(
        &mut self,
        asked: &ChangeRequest,
        at: SystemTime,
    ) -> Result<Applied, Refusal> {
        self.throw(asked, at)?;
        match self.store_kill(asked.expected.clone()).await {
            Err(refusal @ Refusal::Stale { .. }) => Err(refusal),
            Ok(made) => Ok(made),
            // [`Control::flags`] shows the error.
            Err(_) => Ok(Applied::Swapped),
        }
    }

    /// Tries to store the kill switch before the process ends.
    pub(super) async fn store_kill_last(&mut self) {
        drop(self.store_kill(None).await);
        if let Some(error) = self.kill_unstored() {
            tracing::error!(
                error,
                "the kill switch was never stored; the next process starts without it"
            );
        }
    }

    /// Returns the kill switch: the stored one, or else the one that acts only in this process.
    pub(super) fn kill_over(&self, stored: Option<&ChangeMeta>) -> Option<ChangeMeta> {
        let here = self.thrown.as_ref().map(|thrown| &thrown.by);
        stored.or(here).cloned()
    }

    /// Returns the reason why the kill switch is not stored; `None` if it is stored or off.
    pub(super) fn kill_unstored(&self) -> Option<&str> {
        self.thrown.as_ref()?.error.as_deref()
    }

    /// Applies the kill switch to the flags in force, whatever else is stored.
    pub(super) fn lay_kill(&mut self) {
        let kill = self.kill_over(self.overrides.kill.as_ref());
        if overrides::kill(kill.as_ref()) == self.plan.rollout.kill {
            return;
        }
        let changes = RuntimeChanges {
            overrides: &self.overrides,
            tripped_here: &self.tripped_here,
            kill: kill.as_ref(),
            source: &self.source.values,
        };
        match overrides::plan(&self.config, &self.flags, changes) {
            Ok(plan) => self.plan = plan.into(),
            // Cannot happen: these flags have compiled already.
            Err(problems) => {
                tracing::error!(%problems, "cannot compile a plan with the kill switch")
            }
        }
    }

    /// Logs a failure to store the kill switch when its reason changes; it is tried again each second.
    fn kill_is_unstored(&mut self, refusal: &Refusal) {
        let error = chain(refusal);
        let Some(thrown) = &mut self.thrown else {
            return;
        };
        if thrown.error.as_ref() != Some(&error) {
            tracing::error!(
                error,
                "the kill switch is on, but not stored; retrying every second"
            );
            thrown.error = Some(error);
        }
    }
}
