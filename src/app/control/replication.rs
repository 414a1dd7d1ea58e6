//! Changes by other replicas, and an unavailable store.

use super::state::{Control, Known, StartError, Tenure};
use crate::config::raw::RawConfig;
use crate::server::admin::{Readiness, Refusal};
use crate::store::{
    Health, START_LIMIT, SnapshotContents, SnapshotDir, SnapshotKind, Store, StoreError,
    StoreSettings, Versioned, legacy, within,
};
use crate::telemetry::clock::rfc3339;
use dualgauge_model::rollout::overrides::{ChangeMeta, FlagOverrides, Flip, Overrides};

/// The note on files that are not in force.
pub(super) const REFUSED: &str =
    "the configuration has problems, which are in the log; what was in force before is in force";

/// The state that a process starts with.
pub(super) struct InitialState {
    pub(super) overrides: Overrides,
    pub(super) revision: u64,
    pub(super) known: Known,
    pub(super) trouble: Option<String>,
    /// The file in the state folder that contains the overrides, if any.
    pub(super) way_out: Option<&'static str>,
    /// The folder for copies of a shared store's state.
    pub(super) copies: Option<SnapshotDir>,
}

/// Reads the store for the first time. An unavailable shared store does not prevent the start: the process uses the
/// last copy. Without a copy it serves according to the files, and is not ready.
pub(super) async fn begin(
    store: &mut Store,
    config: &RawConfig,
    tenure: Tenure,
) -> Result<InitialState, StartError> {
    let mut copies = copies(config, tenure).await;
    let (overrides, revision, known) = match store.read(0).await {
        Ok(Some(found)) => {
            let overrides = Overrides::read(&found.text)?;
            if let Some(copies) = copies.as_mut().filter(|_| tenure == Tenure::Own) {
                copies.note(&found, rfc3339());
                copies.flush().await;
            }
            (overrides, found.revision, Known::Yes)
        }
        Ok(None) => (earlier(config).await?, 0, Known::Yes),
        Err(error) => match store {
            Store::File(_) => return Err(error.into()),
            Store::Shared(_) => {
                let copied = match &copies {
                    Some(copies) => copies.load().await,
                    None => None,
                };
                without_store(store, copied, &error)
            }
        },
    };
    let way_out = match (&*store, &known) {
        (Store::File(_), _) => Some("rollout.json"),
        (Store::Shared(_), Known::Copied { .. }) => Some("rollout.copy.json"),
        (Store::Shared(_), Known::Yes | Known::NotYet) => None,
    };
    Ok(InitialState {
        way_out,
        overrides,
        revision,
        known,
        trouble: None,
        copies,
    })
}

/// Opens the copies of a shared store; a file store needs none.
async fn copies(config: &RawConfig, tenure: Tenure) -> Option<SnapshotDir> {
    let StoreSettings::Shared(settings) = StoreSettings::new(&config.rollout) else {
        return None;
    };
    let folder = config.rollout.state.value.clone();
    let open = match tenure {
        Tenure::Own => SnapshotDir::open,
        Tenure::Awaited => SnapshotDir::open_unlocked,
    };
    let id = settings.identity();
    Some(SnapshotDir::open_in_background(SnapshotKind::Store, folder, id, open).await)
}

/// Returns the state that applies until a shared store responds.
fn without_store(
    store: &mut Store,
    copied: Option<SnapshotContents>,
    error: &StoreError,
) -> (Overrides, u64, Known) {
    if let Some(SnapshotContents { state, at }) = copied {
        match Overrides::read(&state.text) {
            Ok(overrides) => {
                let revision = state.revision;
                tracing::error!(%error, revision, at, "the store is unavailable; the copy of its last good flags is used");
                store.mark_known(&state);
                return (overrides, revision, Known::Copied { at });
            }
            Err(damage) => {
                tracing::warn!(%damage, "the copy of the last good flags is damaged")
            }
        }
    }
    tracing::error!(%error, "the store is unavailable; the flags file applies");
    (Overrides::default(), 0, Known::NotYet)
}

/// Returns the flips that an earlier version left.
async fn earlier(config: &RawConfig) -> Result<Overrides, StoreError> {
    let mut overrides = Overrides::default();
    let StoreSettings::File { folder } = StoreSettings::new(&config.rollout) else {
        return Ok(overrides);
    };
    let flips = within(START_LIMIT, move || legacy(&folder)).await??;
    for flip in flips.into_iter().flatten() {
        let by = ChangeMeta {
            who: flip.who,
            at: flip.at,
            why: None,
        };
        let stands = FlagOverrides {
            text_hash: flip.text_hash,
            flip: Some(Flip {
                stage: flip.stage,
                percent: flip.percent,
                by,
            }),
            ..FlagOverrides::default()
        };
        overrides.flags.insert(flip.flag, stands);
    }
    Ok(overrides)
}

impl Control {
    /// Returns true if other replicas share the store.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.store, Store::Shared(_))
    }

    /// Returns true if the stored state may change elsewhere: in other replicas, or in the other process of a restart.
    #[must_use]
    pub const fn follows_store(&self) -> bool {
        self.is_shared() || self.store.is_owned_elsewhere()
    }

    /// Releases the stored state for the next process. Nothing is changed here any more.
    pub fn hand_over(&mut self) {
        self.store.release();
        if let Some(copies) = &mut self.copies {
            copies.release();
        }
        self.source.release();
    }

    /// Completes pending writes, within a time limit, before the process ends.
    pub async fn flush(&mut self) {
        self.store.flush().await;
        if let Some(copies) = &mut self.copies {
            copies.flush().await;
        }
        self.source.flush().await;
    }

    /// Continues background writes. A change that was refused as late but then stored is put in force.
    pub(super) async fn tend(&mut self) {
        self.source.tend().await;
        let before = self.store.health();
        self.store.tend().await;
        match (before, self.store.health()) {
            (Health::Fine, Health::Away { error, .. }) => {
                tracing::error!(error, "the state cannot be written; retrying every second");
            }
            (Health::Away { .. }, Health::Fine) => tracing::info!("the state is written again"),
            (Health::Fine, Health::Fine) | (Health::Away { .. }, Health::Away { .. }) => {}
        }
        if !self.follows_store()
            && let Ok(Some(found)) = self.store.read(self.revision).await
        {
            self.take(found);
        }
    }

    /// Checks the store for changes by other replicas. A store that has lost data is restored from the last good
    /// overrides.
    pub async fn sync(&mut self) {
        let before = self.store.health();
        if let Err(error) = self.store.acquire().await {
            tracing::error!(%error, "the state of the previous process cannot be loaded");
        }
        self.look_at_store().await;
        match (before, self.store.health()) {
            (Health::Fine, Health::Away { error, .. }) => {
                tracing::error!(
                    error,
                    "the store is unavailable; the flags stay as they are"
                );
            }
            (Health::Away { .. }, Health::Fine) => tracing::info!("the store is back"),
            (Health::Fine, Health::Fine) | (Health::Away { .. }, Health::Away { .. }) => {}
        }
    }

    async fn look_at_store(&mut self) {
        match self.store.read(self.revision).await {
            Ok(found) => {
                self.known = Known::Yes;
                found.into_iter().for_each(|found| self.take(found));
            }
            Err(StoreError::Forgot { .. }) => self.give_back().await,
            // Readiness shows the error.
            Err(_) => {}
        }
    }

    /// Reads a shared store before a change, so that tags and changes of other replicas are known here.
    ///
    /// # Errors
    /// Returns [`Refusal::Store`] if the store fails.
    pub(super) async fn refresh(&mut self) -> Result<(), Refusal> {
        if !self.is_shared() {
            return Ok(());
        }
        match self.store.read(self.revision).await {
            Ok(found) => {
                self.known = Known::Yes;
                found.into_iter().for_each(|found| self.take(found));
            }
            Err(StoreError::Forgot { .. }) => self.give_back().await,
            Err(error) => return Err(Refusal::Store(error)),
        }
        Ok(())
    }

    /// Schedules a copy of a state that was read or stored and is in force. It is written later, because no change
    /// waits for a disk before it acts.
    pub(super) fn copy(&mut self, state: &Versioned) {
        if let Some(copies) = &mut self.copies {
            copies.note(state, rfc3339());
        }
    }

    /// Writes the pending copies.
    pub(super) async fn copy_now(&mut self) {
        if let Some(copies) = &mut self.copies {
            copies.tend().await;
        }
        self.source.tend().await;
    }

    pub(super) async fn give_back(&mut self) {
        let Ok(text) = self.overrides.written() else {
            return;
        };
        tracing::warn!(
            revision = self.revision,
            "the store has lost the runtime changes; restoring them"
        );
        let good = Versioned {
            revision: self.revision,
            text,
        };
        if let Err(error) = self.store.restore(&good).await {
            tracing::error!(%error, "the lost changes cannot be restored to the store");
        }
    }

    /// Returns the readiness for calls, with notes for operators.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let mut readiness = Readiness::default();
        match &self.known {
            Known::Yes => {}
            Known::Copied { at } => readiness.notes.push(format!(
                "the store has been away since the start: a copy of revision {} from {at} is in force",
                self.revision
            )),
            Known::NotYet => readiness.obstacles.push(
                "the store has been away since the start: which flags are flipped is not known"
                    .to_owned(),
            ),
        }
        if self.refused.is_some() {
            readiness.notes.push(REFUSED.to_owned());
        }
        if let Health::Away { error, .. } = self.store.health() {
            let hold = match &self.known {
                Known::Yes | Known::Copied { .. } => "the last good flags hold",
                Known::NotYet => "calls are served as the flags file says",
            };
            let note = format!("the store is unavailable, and {hold}: {error}");
            readiness.notes.push(note);
        }
        if self.store.is_owned_elsewhere() {
            readiness.notes.push(
                "what is changed at run time is with the other process of a restart; it cannot be changed here now"
                    .to_owned(),
            );
        }
        if let Some(error) = self.kill_unstored() {
            readiness.notes.push(format!(
                "the kill switch is on, but not stored yet; retrying every second: {error}"
            ));
        }
        readiness.notes.extend(self.trouble.clone());
        self.source.add_readiness(&mut readiness);
        readiness
    }
}
