//! Runtime changes of flags that were edited or removed since: they are dropped, and the history records it.
//!
//! Such a change has no effect from the edit on, because it belongs to another text. Removing it from the store is
//! tried until the store accepts. Only changes that became stale by the files read here are dropped: while new files
//! reach one replica after the other, those with the old files still change flags of the old text, and the replicas
//! must not undo each other's changes.

use std::time::SystemTime;

use super::apply::{ATTEMPTS, log_change};
use super::state::{Control, StaleChanges};
use crate::store::{CommitError, StoreError, Versioned};
use crate::telemetry::clock::Rfc3339;
use dualgauge_model::rollout::overrides::{Change, ChangeMeta, ChangeResult, Overrides};

/// The author of these removals.
const PROGRAM: &str = "dualgauge";

impl Control {
    /// Drops the runtime changes of flags that were edited or removed since, and logs it.
    pub(super) async fn forget(&mut self, at: SystemTime) {
        self.void = self.void_now();
        for (flag, reason) in &self.void {
            tracing::warn!(flag, by = PROGRAM, "a runtime change is dropped: {reason}");
        }
        if self.void.is_empty() && self.trouble.is_some() {
            // The files may now be compatible with the stored state.
            self.hold_against_store().await;
        }
        self.drop_void(at).await;
    }

    fn void_now(&self) -> StaleChanges {
        let void = self.overrides.flags.iter().filter_map(|(name, stands)| {
            let mut flags = self.file_flags.iter();
            let reason = match flags.find(|flag| flag.name.value == *name) {
                Some(flag) if flag.text_hash == stands.text_hash => return None,
                Some(_) if stands.trip.is_some() => {
                    "the flag was edited in the flags file since; its guard had taken it back, and it is in force again"
                }
                Some(_) => "the flag was edited in the flags file since",
                None => "the flag is no longer in the flags file",
            };
            Some((name.clone(), reason))
        });
        void.collect()
    }

    /// Removes stale changes from the store, or tries again later.
    pub(super) async fn drop_void(&mut self, at: SystemTime) {
        for _ in 0..ATTEMPTS {
            let still = self.void_now();
            self.void.retain(|flag, _| still.contains_key(flag));
            if self.void.is_empty() {
                return;
            }
            let next = self.without_void(at);
            let text = match next.written() {
                Ok(text) => text,
                Err(error) => return self.cannot_drop(&error),
            };
            match self.store.commit(self.revision, &text).await {
                Ok(revision) => {
                    for (change, by) in self.drops(at) {
                        log_change(&change, &by);
                    }
                    self.copy(&Versioned { revision, text });
                    self.revision = revision;
                    self.overrides = next;
                    self.trouble = None;
                    self.void.clear();
                    return;
                }
                Err(CommitError::Conflict(found)) => self.take(found),
                Err(CommitError::Store(StoreError::Forgot { .. })) => self.give_back().await,
                Err(CommitError::Store(error)) => return self.cannot_drop(&error),
            }
        }
    }

    fn drops(&self, at: SystemTime) -> impl Iterator<Item = (Change, ChangeMeta)> {
        self.void.iter().map(move |(flag, reason)| {
            let by = ChangeMeta {
                who: PROGRAM.to_owned(),
                at: Rfc3339(at).to_string(),
                why: Some((*reason).to_owned()),
            };
            let flag = flag.clone();
            (Change::Drop { flag }, by)
        })
    }

    /// Returns the overrides without stale changes; all removals share one revision.
    fn without_void(&self, at: SystemTime) -> Overrides {
        let revision = self.revision + 1;
        let mut next = self.overrides.clone();
        for (change, by) in self.drops(at) {
            let changed = next.change(&change, revision, &by, |flag| self.text_hash(flag));
            match changed {
                Ok(ChangeResult::To(without)) => next = *without,
                // The change is gone already.
                Ok(ChangeResult::Already) | Err(_) => {}
            }
        }
        next
    }

    async fn hold_against_store(&mut self) {
        match self.store.read(self.revision).await {
            Ok(Some(found)) => self.take(found),
            Ok(None) => self.trouble = None,
            // Readiness shows the error.
            Err(_) => {}
        }
    }

    /// Logs a failure once; the removal is tried again.
    fn cannot_drop(&mut self, error: &dyn std::error::Error) {
        let trouble = Some(format!(
            "what was changed for flags that were edited since is still stored: {error}"
        ));
        if self.trouble != trouble {
            let error = error.to_string();
            tracing::error!(error, "dropped changes cannot be removed from the store");
            self.trouble = trouble;
        }
    }
}
