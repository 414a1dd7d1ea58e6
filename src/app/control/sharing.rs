//! What other replicas have changed, and a store that is away.

use super::{Control, Known, StartError};
use crate::config::raw::RawConfig;
use crate::domain::rollout::standing::{FlagStanding, Flip, Signature, Standing};
use crate::server::admin::{Readiness, Refusal};
use crate::store::{Health, Settings, Store, StoreError, Versioned, legacy};

/// What a process begins with.
pub(super) struct Begun {
    pub(super) standing: Standing,
    pub(super) revision: u64,
    pub(super) known: Known,
    pub(super) trouble: Option<String>,
}

/// Reads the store for the first time. A shared one that is away does not keep the process from starting: it serves
/// as the files say, and is not ready.
pub(super) async fn begin(store: &mut Store, config: &RawConfig) -> Result<Begun, StartError> {
    let begun = |standing, revision, known| Begun {
        standing,
        revision,
        known,
        trouble: None,
    };
    match store.read(0).await {
        Ok(Some(Versioned { revision, text })) => {
            Ok(begun(Standing::read(&text)?, revision, Known::Yes))
        }
        Ok(None) => Ok(begun(earlier(config)?, 0, Known::Yes)),
        Err(error) => match store {
            Store::File(_) => Err(error.into()),
            Store::Shared(_) => {
                tracing::error!(%error, "the store is away; calls are served as the flags file says");
                Ok(begun(Standing::default(), 0, Known::NotYet))
            }
        },
    }
}

/// The flips that a version of before has left.
fn earlier(config: &RawConfig) -> Result<Standing, StoreError> {
    let mut standing = Standing::default();
    let Settings::File { folder } = Settings::of(&config.rollout) else {
        return Ok(standing);
    };
    for flip in legacy(&folder)?.into_iter().flatten() {
        let by = Signature {
            who: flip.who,
            at: flip.at,
            why: None,
        };
        let stands = FlagStanding {
            text_hash: flip.text_hash,
            flip: Some(Flip {
                stage: flip.stage,
                percent: flip.percent,
                by,
            }),
            ..FlagStanding::default()
        };
        standing.flags.insert(flip.flag, stands);
    }
    Ok(standing)
}

impl Control {
    /// Whether other replicas may change the standing.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.store, Store::Shared(_))
    }

    /// Looks whether another replica has changed something. A store that has forgotten gets the last good standing.
    pub async fn sync(&mut self) {
        let before = self.store.health();
        self.look_at_store().await;
        match (before, self.store.health()) {
            (Health::Fine, Health::Away { error, .. }) => {
                tracing::error!(error, "the store is away; the flags stay as they are");
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
            // Readiness tells.
            Err(_) => {}
        }
    }

    /// Looks at a shared store before a change: a tag that another replica has told is known here as well, and what is
    /// so already is so everywhere.
    ///
    /// # Errors
    /// [`Refusal::Store`] where the store cannot tell.
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

    pub(super) async fn give_back(&mut self) {
        let Ok(text) = self.standing.written() else {
            return;
        };
        tracing::warn!(
            revision = self.revision,
            "the store has forgotten what was changed at run time; it is given back"
        );
        let good = Versioned {
            revision: self.revision,
            text,
        };
        if let Err(error) = self.store.restore(&good).await {
            tracing::error!(%error, "the store could not be given back what it has forgotten");
        }
    }

    /// Whether calls can be served, and what an operator should look at.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        let mut readiness = Readiness::default();
        if self.known == Known::NotYet {
            let obstacle =
                "the store has been away since the start: which flags are flipped is not known";
            readiness.obstacles.push(obstacle.to_owned());
        }
        if self.refused.is_some() {
            readiness.notes.push(
                "the configuration has problems, which are in the log; what was in force before is in force"
                    .to_owned(),
            );
        }
        if let Health::Away { error, .. } = self.store.health() {
            let hold = match self.known {
                Known::Yes => "the last good flags hold",
                Known::NotYet => "calls are served as the flags file says",
            };
            let note = format!("the store is away, and {hold}: {error}");
            readiness.notes.push(note);
        }
        readiness.notes.extend(self.trouble.clone());
        readiness
    }
}
