//! A store, wherever it lies.

use std::path::PathBuf;

use crate::config::compile::tls;
use crate::config::raw::RawRollout;
use crate::store::background::{START_LIMIT, within};
use crate::store::error::{CommitError, StoreError};
use crate::store::file::FileStore;
use crate::store::redis::{RedisSettings, RedisStore};
use crate::store::state::{Health, ReplicaReport, Reports, Versioned};

/// Where the store is to lie.
#[derive(Debug, Clone)]
pub enum StoreSettings {
    /// In a folder that this process has for itself.
    File {
        /// The folder; it is made where it is missing.
        folder: PathBuf,
    },
    /// On a server that many replicas share.
    Shared(RedisSettings),
}

impl StoreSettings {
    /// As the configuration says: on the server of `rollout.store`, or in the folder `rollout.state`.
    #[must_use]
    pub fn new(rollout: &RawRollout) -> StoreSettings {
        match &rollout.store {
            None => StoreSettings::File {
                folder: rollout.state.value.clone(),
            },
            Some(store) => StoreSettings::Shared(RedisSettings {
                server: store.url.value.server().clone(),
                // What is wrong with it was told when it was compiled.
                tls: tls::store(store, &mut Vec::new()).map(Box::new),
                prefix: store.prefix.value.clone(),
                timeout: store.timeout.value,
            }),
        }
    }
}

/// What changes at run time: a state, and what the processes have counted.
///
/// Files are worked on off the task that calls, which waits for so long at most. Every call may be dropped while it waits, and
/// may be made again.
#[derive(Debug)]
pub enum Store {
    /// In a folder.
    File(FileStore),
    /// On a server.
    Shared(Box<RedisStore>),
}

impl Store {
    /// Takes the folder and reads its files; of a server nothing is asked yet, so that one which is away shows at the
    /// first [`Store::read`].
    ///
    /// # Errors
    /// [`StoreError`] where the folder belongs to another process, the system refuses, or a file is damaged.
    pub async fn open(settings: &StoreSettings) -> Result<Store, StoreError> {
        Ok(match settings {
            StoreSettings::File { folder } => {
                let folder = folder.clone();
                Store::File(within(START_LIMIT, move || FileStore::open(&folder)).await??)
            }
            StoreSettings::Shared(settings) => Store::Shared(Box::new(RedisStore::open(settings)?)),
        })
    }

    /// Opens it while the process of before still writes: a folder is read, and taken as soon as it is free.
    ///
    /// # Errors
    /// [`StoreError`] where the system refuses, or a file is damaged.
    pub async fn await_turn(settings: &StoreSettings) -> Result<Store, StoreError> {
        match settings {
            StoreSettings::File { folder } => {
                let folder = folder.clone();
                let read = within(START_LIMIT, move || FileStore::await_turn(&folder));
                Ok(Store::File(read.await??))
            }
            StoreSettings::Shared(_) => Store::open(settings).await,
        }
    }

    /// Takes a folder that the process of before has left since; [`Store::read`] tells what it has written.
    ///
    /// # Errors
    /// [`StoreError`] where the system refuses, or a file is damaged.
    pub async fn acquire(&mut self) -> Result<(), StoreError> {
        match self {
            Store::File(store) => store.acquire().await,
            Store::Shared(_) => Ok(()),
        }
    }

    /// Leaves a folder to the process that follows: nothing is written from here on.
    pub fn release(&mut self) {
        match self {
            Store::File(store) => store.release(),
            // Replicas share it.
            Store::Shared(_) => {}
        }
    }

    /// Whether it waits for a folder that the other process of a restart has.
    #[must_use]
    pub const fn is_elsewhere(&self) -> bool {
        match self {
            Store::File(store) => !store.is_owned(),
            Store::Shared(_) => false,
        }
    }

    /// The state, or `None` where it is still the one that is known. After a store has forgotten, it may be another
    /// one with the same revision: whatever is told is what holds.
    ///
    /// # Errors
    /// [`StoreError::Forgot`] where the store is behind that revision; others where it fails.
    pub async fn read(&mut self, known: u64) -> Result<Option<Versioned>, StoreError> {
        match self {
            Store::File(store) => store.read(known),
            Store::Shared(store) => store.read(known).await,
        }
    }

    /// Takes it that this state was told before, to another process: [`Store::read`] tells what differs from it.
    pub fn recall(&mut self, good: &Versioned) {
        match self {
            // Nobody else writes it.
            Store::File(_) => {}
            Store::Shared(store) => store.recall(good),
        }
    }

    /// Replaces the state by a JSON text if its revision is still the expected one. Tells the new revision, which is
    /// the next one.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] where somebody else was first; what it tells is then known. With [`CommitError::Store`] the text may be stored
    /// all the same; the same call again tells, and never stores it twice.
    pub async fn commit(&mut self, expected: u64, text: &str) -> Result<u64, CommitError> {
        match self {
            Store::File(store) => store.commit(expected, text).await,
            Store::Shared(store) => store.commit(expected, text).await,
        }
    }

    /// Gives a store that has forgotten its state back, unless somebody has been faster: it is written only over a
    /// lower revision. [`Store::read`] tells what is there then.
    ///
    /// # Errors
    /// [`StoreError`] where the store fails.
    pub async fn restore(&mut self, good: &Versioned) -> Result<(), StoreError> {
        match self {
            Store::File(store) => store.restore(good).await,
            Store::Shared(store) => store.restore(good).await,
        }
    }

    /// Leaves the report of this process in place of its last one, and tells everybody's. Into a folder it is written
    /// later, and so is a fold: [`Store::tend`] goes on with it, [`Store::flush`] ends it, [`Store::health`] tells.
    ///
    /// # Errors
    /// [`StoreError`] where the store fails.
    pub async fn exchange(&mut self, own: &ReplicaReport) -> Result<Reports, StoreError> {
        match self {
            Store::File(store) => store.exchange(own).await,
            Store::Shared(store) => store.exchange(own).await,
        }
    }

    /// Replaces the archive by a JSON text if its revision is still the expected one, and removes the reports that
    /// were folded into it, in one step. Nothing happens where one of them was removed or left anew since.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] with the archive where it or a report has changed: exchange again. That is also
    /// what is told of a fold that was made, but whose answer was lost.
    pub async fn fold(
        &mut self,
        expected: u64,
        text: &str,
        folded: &[ReplicaReport],
    ) -> Result<(), CommitError> {
        match self {
            Store::File(store) => store.fold(expected, text, folded).await,
            Store::Shared(store) => store.fold(expected, text, folded).await,
        }
    }

    /// Gives a store that has no archive any more its archive back. An older archive is left alone: the reports that
    /// were folded since are then there as well.
    ///
    /// # Errors
    /// [`StoreError`] where the store fails.
    pub async fn restore_archive(&mut self, good: &Versioned) -> Result<(), StoreError> {
        match self {
            Store::File(store) => store.restore_archive(good).await,
            Store::Shared(store) => store.restore_archive(good).await,
        }
    }

    /// Takes what work on the folder has led to, and begins what is due. Waits for nothing.
    pub async fn tend(&mut self) {
        match self {
            Store::File(store) => store.tend().await,
            // Each call has waited for the server.
            Store::Shared(_) => {}
        }
    }

    /// Ends what is still to be written into the folder, within a time: the process is about to end.
    pub async fn flush(&mut self) {
        match self {
            Store::File(store) => store.flush().await,
            // As above.
            Store::Shared(_) => {}
        }
    }

    /// How the store fares.
    #[must_use]
    pub fn health(&self) -> Health {
        match self {
            Store::File(store) => store.health(),
            Store::Shared(store) => store.health(),
        }
    }
}
