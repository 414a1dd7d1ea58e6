//! The store, on files or on a server. Used by `app::control::replication` and `app::startup_summary`.

use std::path::PathBuf;

use crate::config::compile::tls;
use crate::config::raw::RawRollout;
use crate::store::background::{START_LIMIT, within};
use crate::store::error::{CommitError, StoreError};
use crate::store::file::FileStore;
use crate::store::redis::{RedisSettings, RedisStore};
use crate::store::state::{Health, ReplicaReport, Reports};
use crate::store::versioned::Versioned;

/// The location of the store.
#[derive(Debug, Clone)]
pub enum StoreSettings {
    /// A folder that belongs to this process alone.
    File {
        /// The path of the folder, which is created if missing.
        folder: PathBuf,
    },
    /// A server that many replicas share.
    Shared(RedisSettings),
}

impl StoreSettings {
    /// Reads the settings from the configuration: the server of `rollout.store`, or else the folder `rollout.state`.
    #[must_use]
    pub fn new(rollout: &RawRollout) -> StoreSettings {
        match &rollout.store {
            None => StoreSettings::File {
                folder: rollout.state.value.clone(),
            },
            Some(store) => StoreSettings::Shared(RedisSettings {
                server: store.url.value.server().clone(),
                // Errors were reported when the configuration was compiled.
                tls: tls::store(store, &mut Vec::new()).map(Box::new),
                prefix: store.prefix.value.clone(),
                timeout: store.timeout.value,
            }),
        }
    }
}

/// The store of the runtime state, and of the counts of all processes.
///
/// File operations run in the background, and callers wait for a limited time. Every call is cancel-safe and may be
/// repeated.
#[derive(Debug)]
pub enum Store {
    /// A folder.
    File(FileStore),
    /// A server.
    Shared(Box<RedisStore>),
}

impl Store {
    /// Opens the store. A folder is locked and read. A server is not contacted yet, so that an unavailable one shows at
    /// the first [`Store::read`].
    ///
    /// # Errors
    /// Returns a [`StoreError`] if another process owns the folder, the operating system reports an error, or a file is
    /// damaged.
    pub async fn open(settings: &StoreSettings) -> Result<Store, StoreError> {
        Ok(match settings {
            StoreSettings::File { folder } => {
                let folder = folder.clone();
                Store::File(within(START_LIMIT, move || FileStore::open(&folder)).await??)
            }
            StoreSettings::Shared(settings) => Store::Shared(Box::new(RedisStore::open(settings)?)),
        })
    }

    /// Opens the store while the previous process still writes to it: a folder is read now, and locked as soon as it is
    /// free.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if the operating system reports an error, or a file is damaged.
    pub async fn open_unlocked(settings: &StoreSettings) -> Result<Store, StoreError> {
        match settings {
            StoreSettings::File { folder } => {
                let folder = folder.clone();
                let read = within(START_LIMIT, move || FileStore::open_unlocked(&folder));
                Ok(Store::File(read.await??))
            }
            StoreSettings::Shared(_) => Store::open(settings).await,
        }
    }

    /// Locks a folder that the previous process has released; [`Store::read`] then returns what that process wrote.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if the operating system reports an error, or a file is damaged.
    pub async fn acquire(&mut self) -> Result<(), StoreError> {
        match self {
            Store::File(store) => store.acquire().await,
            Store::Shared(_) => Ok(()),
        }
    }

    /// Releases a folder for the next process. Nothing is written from here on.
    pub fn release(&mut self) {
        match self {
            Store::File(store) => store.release(),
            // Replicas share the server, so there is nothing to release.
            Store::Shared(_) => {}
        }
    }

    /// Returns true if the folder is still owned by the other process of a restart.
    #[must_use]
    pub const fn is_owned_elsewhere(&self) -> bool {
        match self {
            Store::File(store) => !store.is_owned(),
            Store::Shared(_) => false,
        }
    }

    /// Returns the state, or `None` if it is still the known revision. After a store has lost data, the same revision
    /// may return with another text; the returned one is valid.
    ///
    /// # Errors
    /// Returns [`StoreError::Forgot`] if the store is behind `known`, and other errors if it fails.
    pub async fn read(&mut self, known: u64) -> Result<Option<Versioned>, StoreError> {
        match self {
            Store::File(store) => store.read(known),
            Store::Shared(store) => store.read(known).await,
        }
    }

    /// Marks a state as known because it was read earlier, by another process. [`Store::read`] then returns only a
    /// different one.
    pub fn mark_known(&mut self, good: &Versioned) {
        match self {
            // No other process writes the file.
            Store::File(_) => {}
            Store::Shared(store) => store.mark_known(good),
        }
    }

    /// Replaces the state by a JSON text if its revision is still `expected`. Returns the new revision, which is the
    /// next one.
    ///
    /// # Errors
    /// Returns [`CommitError::Conflict`] with the current state if another writer was first; that state then counts as
    /// known. After [`CommitError::Store`], the text may be stored all the same; repeating the call finds out, and
    /// never stores it twice.
    pub async fn commit(&mut self, expected: u64, text: &str) -> Result<u64, CommitError> {
        match self {
            Store::File(store) => store.commit(expected, text).await,
            Store::Shared(store) => store.commit(expected, text).await,
        }
    }

    /// Restores the state of a store that has lost it. It overwrites only a lower revision, so another replica may have
    /// been faster; [`Store::read`] returns what is there then.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if the store fails.
    pub async fn restore(&mut self, good: &Versioned) -> Result<(), StoreError> {
        match self {
            Store::File(store) => store.restore(good).await,
            Store::Shared(store) => store.restore(good).await,
        }
    }

    /// Replaces the report of this process and returns the reports of all. Into a folder, reports and folds are written
    /// later: [`Store::tend`] continues the write, [`Store::flush`] completes it, and [`Store::health`] shows failures.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if the store fails.
    pub async fn exchange(&mut self, own: &ReplicaReport) -> Result<Reports, StoreError> {
        match self {
            Store::File(store) => store.exchange(own).await,
            Store::Shared(store) => store.exchange(own).await,
        }
    }

    /// Replaces the archive by a JSON text if its revision is still `expected`, and removes the folded reports, in one
    /// step. Does nothing if one of them was removed or replaced since.
    ///
    /// # Errors
    /// Returns [`CommitError::Conflict`] with the archive if it or a report has changed; exchange again. A repeated
    /// fold whose first result was lost returns this too.
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

    /// Restores the archive of a store that has none any more. An older archive is kept: the store then still has the
    /// reports that were folded since.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if the store fails.
    pub async fn restore_archive(&mut self, good: &Versioned) -> Result<(), StoreError> {
        match self {
            Store::File(store) => store.restore_archive(good).await,
            Store::Shared(store) => store.restore_archive(good).await,
        }
    }

    /// Collects the results of file operations and starts due ones, without waiting.
    pub async fn tend(&mut self) {
        match self {
            Store::File(store) => store.tend().await,
            // Calls to a server have completed already.
            Store::Shared(_) => {}
        }
    }

    /// Completes pending file operations, within a time limit, before the process ends.
    pub async fn flush(&mut self) {
        match self {
            Store::File(store) => store.flush().await,
            // Calls to a server have completed already.
            Store::Shared(_) => {}
        }
    }

    /// Returns the health of the store.
    #[must_use]
    pub fn health(&self) -> Health {
        match self {
            Store::File(store) => store.health(),
            Store::Shared(store) => store.health(),
        }
    }
}
