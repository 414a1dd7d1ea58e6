//! A store with blocking calls, which return after its file operations.

use tokio::runtime::{Builder, Runtime};

use crate::store::error::{CommitError, StoreError};
use crate::store::file::FileStore;
use crate::store::state::{Health, ReplicaReport, Reports};
use crate::store::versioned::Versioned;

/// A store and the runtime that runs its calls.
pub(super) struct BlockingStore {
    store: FileStore,
    runtime: Runtime,
}

impl BlockingStore {
    pub(super) fn new(store: FileStore) -> BlockingStore {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        BlockingStore { store, runtime }
    }

    pub(super) fn read(&self, known: u64) -> Result<Option<Versioned>, StoreError> {
        self.store.read(known)
    }

    pub(super) fn commit(&mut self, expected: u64, text: &str) -> Result<u64, CommitError> {
        self.runtime.block_on(self.store.commit(expected, text))
    }

    pub(super) fn restore(&mut self, good: &Versioned) -> Result<(), StoreError> {
        self.runtime.block_on(self.store.restore(good))
    }

    pub(super) fn acquire(&mut self) -> Result<(), StoreError> {
        self.runtime.block_on(self.store.acquire())
    }

    pub(super) fn release(&mut self) {
        self.store.release();
    }

    pub(super) fn health(&self) -> Health {
        self.store.health()
    }

    pub(super) fn exchange(&mut self, own: &ReplicaReport) -> Result<Reports, StoreError> {
        self.runtime.block_on(async {
            let reports = self.store.exchange(own).await;
            self.store.flush().await;
            reports
        })
    }

    pub(super) fn fold(
        &mut self,
        expected: u64,
        text: &str,
        folded: &[ReplicaReport],
    ) -> Result<(), CommitError> {
        self.runtime.block_on(async {
            let reports = self.store.fold(expected, text, folded).await;
            self.store.flush().await;
            reports
        })
    }

    pub(super) fn restore_archive(&mut self, good: &Versioned) -> Result<(), StoreError> {
        self.runtime.block_on(self.store.restore_archive(good))
    }

    pub(super) fn flush(&mut self) {
        self.runtime.block_on(self.store.flush());
    }
}
