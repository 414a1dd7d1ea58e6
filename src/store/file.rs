//! The store of one process: `rollout.json` and `watch.json` in the state folder, each replaced atomically.
//!
//! The contents are kept in memory too, since no other process writes the files. They are formatted for people; a text
//! without insignificant white space is read back byte for byte.
//!
//! A background thread writes the files, one at a time. A change waits for its write within a time limit. A late change
//! is refused, and so is each further one until that write has ended. Counts never wait.
//!
//! Used by `backend`.

mod contents;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use crate::store::background::{Background, LIMIT, Late};
use crate::store::error::{CommitError, Corruption, StoreError};
use crate::store::state::{Health, HealthTracker, MOST_REPORTS, ReplicaReport, Reports, check};
use crate::store::state_dir::StateDir;
use crate::store::versioned::Versioned;
use crate::telemetry::clock::{now, wall};
use contents::WatchContents;

const ROLLOUT: &str = "rollout.json";
const WATCH: &str = "watch.json";
/// The time to wait for a folder that the previous process may just have released; later attempts follow.
const LOCK_WAIT: Duration = Duration::from_millis(100);
/// The number of attempts to write pending data at the end of the process.
const LAST_ATTEMPTS: usize = 3;

/// The state and the counts on disk. The process that holds this owns the state folder.
#[derive(Debug)]
pub struct FileStore {
    folder: StateDir,
    state: Versioned,
    /// True if `rollout.json` is replaced, but the folder is not flushed: the state may not survive a power failure.
    is_unflushed: bool,
    watch: WatchContents,
    /// True if `watch.json` must be written.
    is_watch_unwritten: bool,
    work: Background<Done>,
    health_tracker: HealthTracker,
}

/// The result of a file operation.
#[derive(Debug)]
enum Done {
    /// `rollout.json` was to be replaced by this state.
    State(Versioned, Result<(), StoreError>),
    /// The folder was to be flushed, so that `rollout.json` survives a power failure.
    Flushed(Result<(), StoreError>),
    /// `watch.json` was to be written.
    Watch(Result<(), StoreError>),
    /// The folder was to be locked. Contains its contents, or `None` if another process still owns it.
    Locked(Result<Option<(StateDir, Versioned, WatchContents)>, StoreError>),
}

/// Sets a damaged `watch.json` aside for people and starts with empty counts: losing them is no reason not to serve.
fn reset_damaged(folder: &StateDir, damage: &Corruption) -> Result<WatchContents, StoreError> {
    let aside = folder.set_aside(WATCH)?;
    tracing::warn!(
        error = %damage,
        aside = %aside.display(),
        "`{WATCH}` is damaged and was set aside; guards and usage start from zero"
    );
    Ok(WatchContents::default())
}

/// Locks the folder if it is free, and reads its contents.
fn lock_and_load(
    mut folder: StateDir,
) -> Result<Option<(StateDir, Versioned, WatchContents)>, StoreError> {
    if !folder.acquire()? {
        return Ok(None);
    }
    let (state, watch) = load(&folder)?;
    Ok(Some((folder, state, watch)))
}

/// Reads the contents of the folder. Only its owner cleans up.
fn load(folder: &StateDir) -> Result<(Versioned, WatchContents), StoreError> {
    if folder.is_owned() {
        folder.clean(ROLLOUT)?;
        folder.clean(WATCH)?;
    }
    let damaged = |name: &str| {
        let path = folder.file(name);
        |source| StoreError::Damaged { path, source }
    };
    let state = match folder.read(ROLLOUT)? {
        Some(text) => contents::read_state(&text).map_err(damaged(ROLLOUT))?,
        None => Versioned::default(),
    };
    let watch = match folder.read(WATCH)?.map(|text| contents::read_watch(&text)) {
        Some(Ok(watch)) => watch,
        Some(Err(damage)) if folder.is_owned() => reset_damaged(folder, &damage)?,
        Some(Err(_)) | None => WatchContents::default(),
    };
    Ok((state, watch))
}

impl FileStore {
    /// Locks the state folder, which is created if missing, and reads its contents.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if another process owns the folder, the operating system reports an error, or the state
    /// is damaged.
    pub fn open(folder: &Path) -> Result<FileStore, StoreError> {
        FileStore::new(StateDir::lock(folder)?)
    }

    /// Reads a state folder that the previous process still owns. Nothing can be written until `acquire` has locked it.
    ///
    /// # Errors
    /// Returns a [`StoreError`] if the operating system reports an error, or the state is damaged.
    pub fn open_unlocked(folder: &Path) -> Result<FileStore, StoreError> {
        FileStore::new(StateDir::open_unlocked(folder))
    }

    /// Locks the folder if the previous process has released it, and reads what that process wrote.
    pub(super) async fn acquire(&mut self) -> Result<(), StoreError> {
        if let Some(done) = self.work.ended_by_now().await {
            self.settle(Some(done))?;
        }
        if self.is_owned() || !self.work.is_idle() {
            return Ok(());
        }
        self.begin(|folder| Done::Locked(lock_and_load(folder)));
        match timeout(LOCK_WAIT, self.work.ended()).await {
            Ok(done) => self.settle(done),
            Err(_) => Ok(()),
        }
    }

    /// Releases the folder for the next process.
    pub(super) fn release(&mut self) {
        self.folder.release();
    }

    pub(super) const fn is_owned(&self) -> bool {
        self.folder.is_owned()
    }

    fn new(folder: StateDir) -> Result<FileStore, StoreError> {
        let (state, watch) = load(&folder)?;
        Ok(FileStore {
            folder,
            state,
            is_unflushed: false,
            watch,
            is_watch_unwritten: false,
            work: Background::default(),
            health_tracker: HealthTracker::default(),
        })
    }

    pub(super) fn read(&self, known: u64) -> Result<Option<Versioned>, StoreError> {
        let found = self.state.revision;
        if found < known {
            return Err(StoreError::Forgot { known, found });
        }
        Ok((found > known).then(|| self.state.clone()))
    }

    pub(super) async fn commit(&mut self, expected: u64, text: &str) -> Result<u64, CommitError> {
        check(text)?;
        let until = now() + LIMIT;
        self.idle(until).await?;
        let found = self.state.revision;
        let again = found == expected + 1 && self.state.text == text;
        if again && self.is_unflushed {
            self.flush_state(until).await?;
            return Ok(found);
        }
        if found < expected {
            let known = expected;
            return Err(CommitError::Store(StoreError::Forgot { known, found }));
        }
        if found > expected {
            return Err(CommitError::Conflict(self.state.clone()));
        }
        let next = Versioned {
            revision: expected + 1,
            text: text.to_owned(),
        };
        self.write_state(next, until).await?;
        Ok(expected + 1)
    }

    pub(super) async fn restore(&mut self, good: &Versioned) -> Result<(), StoreError> {
        check(&good.text)?;
        let until = now() + LIMIT;
        self.idle(until).await?;
        if self.state.revision >= good.revision {
            return Ok(());
        }
        self.write_state(good.clone(), until).await
    }

    pub(super) async fn exchange(&mut self, own: &ReplicaReport) -> Result<Reports, StoreError> {
        check(&own.text)?;
        if !self.is_owned() {
            return Err(StoreError::NotOwned(self.folder.path().to_path_buf()));
        }
        self.watch
            .reports
            .retain(|report| !report.has_same_boot(own));
        self.watch.reports.push_front(own.clone());
        self.schedule_watch().await;
        let reports = self.watch.reports.iter().take(MOST_REPORTS);
        Ok(Reports {
            archive: self.watch.archive.clone(),
            reports: reports.cloned().collect(),
        })
    }

    pub(super) async fn fold(
        &mut self,
        expected: u64,
        text: &str,
        folded: &[ReplicaReport],
    ) -> Result<(), CommitError> {
        check(text)?;
        let is_unchanged = |report: &ReplicaReport| {
            let mut current = self.watch.reports.iter();
            current.any(|other| other.has_same_boot(report) && other.at == report.at)
        };
        if self.watch.archive.revision != expected || !folded.iter().all(is_unchanged) {
            return Err(CommitError::Conflict(self.watch.archive.clone()));
        }
        let reports = &mut self.watch.reports;
        reports.retain(|report| !folded.iter().any(|folded| folded.has_same_boot(report)));
        self.watch.archive = Versioned {
            revision: expected + 1,
            text: text.to_owned(),
        };
        self.schedule_watch().await;
        Ok(())
    }

    pub(super) async fn restore_archive(&mut self, good: &Versioned) -> Result<(), StoreError> {
        check(&good.text)?;
        if self.watch.archive.revision == 0 {
            self.watch.archive = good.clone();
            self.schedule_watch().await;
        }
        Ok(())
    }

    pub(super) fn health(&self) -> Health {
        self.health_tracker.health()
    }

    /// Collects the result of a file operation and starts the next due one, without waiting.
    pub(super) async fn tend(&mut self) {
        if let Some(done) = self.work.ended_by_now().await {
            // The error is visible in the health.
            let _ = self.settle(Some(done));
        }
        if self.work.late(LIMIT).is_some() {
            let _ = self.record_late();
        }
        if !self.work.is_idle() || !self.is_owned() {
            return;
        }
        if self.is_unflushed {
            self.begin(|folder| Done::Flushed(folder.flush(ROLLOUT)));
        } else if self.is_watch_unwritten {
            self.is_watch_unwritten = false;
            let watch = self.watch.clone();
            self.begin(move |folder| {
                let replaced = folder.replace(WATCH, &contents::watch(&watch));
                Done::Watch(replaced.and_then(|()| folder.flush(WATCH)))
            });
        }
    }

    /// Writes pending data, within a time limit.
    pub(super) async fn flush(&mut self) {
        let until = now() + LIMIT;
        for _ in 0..LAST_ATTEMPTS {
            self.tend().await;
            if self.idle(until).await.is_err() || !self.is_watch_unwritten {
                return;
            }
        }
    }

    async fn schedule_watch(&mut self) {
        self.is_watch_unwritten = true;
        self.tend().await;
    }

    async fn write_state(&mut self, state: Versioned, until: Instant) -> Result<(), StoreError> {
        self.begin(move |folder| {
            let replaced = folder.replace(ROLLOUT, &contents::state(&state));
            Done::State(state, replaced)
        });
        self.wait(until).await?;
        self.flush_state(until).await
    }

    async fn flush_state(&mut self, until: Instant) -> Result<(), StoreError> {
        self.begin(|folder| Done::Flushed(folder.flush(ROLLOUT)));
        self.wait(until).await
    }

    /// Starts a file operation; none may be running.
    fn begin(&mut self, work: impl FnOnce(StateDir) -> Done + Send + 'static) {
        let folder = self.folder.clone();
        self.work.begin(move || work(folder));
    }

    /// Waits for the running operation and processes its result.
    async fn wait(&mut self, until: Instant) -> Result<(), StoreError> {
        match timeout_at(until, self.work.ended()).await {
            Ok(done) => self.settle(done),
            Err(_) => Err(self.record_late()),
        }
    }

    /// Waits until no operation is running, but not for one that is late already. Its result matters only to the caller
    /// that started it, and to the health.
    async fn idle(&mut self, until: Instant) -> Result<(), StoreError> {
        let until = match self.work.late(LIMIT) {
            Some(_) => now(),
            None => until,
        };
        while !self.work.is_idle() {
            match timeout_at(until, self.work.ended()).await {
                Ok(done) => drop(self.settle(done)),
                Err(_) => return Err(self.record_late()),
            }
        }
        Ok(())
    }

    /// Records that the folder does not respond.
    fn record_late(&mut self) -> StoreError {
        let late = || {
            StoreError::Late(Late {
                file: self.work.file(),
                limit: LIMIT,
            })
        };
        let (recorded, returned) = (late(), late());
        drop(self.health_tracker.note(Err::<(), _>(recorded), wall()));
        returned
    }

    /// Processes the result of a file operation.
    fn settle(&mut self, done: Option<Done>) -> Result<(), StoreError> {
        let result = match done {
            Some(Done::State(state, replaced)) => {
                if replaced.is_ok() {
                    // The file has this revision from here on, even if the flush fails.
                    self.state = state;
                    self.is_unflushed = true;
                }
                replaced
            }
            Some(Done::Flushed(flushed)) => {
                if flushed.is_ok() {
                    self.is_unflushed = false;
                }
                flushed
            }
            Some(Done::Watch(written)) => {
                if written.is_err() {
                    self.is_watch_unwritten = true;
                }
                written
            }
            Some(Done::Locked(locked)) => {
                if let Some((folder, state, watch)) = locked? {
                    self.folder = folder;
                    self.state = state;
                    self.watch = watch;
                }
                return Ok(());
            }
            None => Err(StoreError::Io {
                path: self.folder.path().to_path_buf(),
                action: "used",
                source: std::io::Error::other("internal error"),
            }),
        };
        self.health_tracker.note(result, wall())
    }
}
