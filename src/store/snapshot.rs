//! A copy of the last good state of a shared store, or of a source of flags, in a folder, for a process that starts
//! while the store or the source is unavailable.
//!
//! Laws: a copy is replaced atomically, and only by a state that the store returned or accepted; the copy of another
//! store is never used; failures are logged and have no other effect. Copies are written in the background, one at a
//! time, and only the latest state is kept. A copy that fails is repeated after a pause until it is written.
//!
//! Used by `app::control::replication`.

use std::mem;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout};

use crate::store::background::{Background, LIMIT, START_LIMIT, within};
use crate::store::error::{Corruption, StoreError, chain};
use crate::store::legacy::Header;
use crate::store::pretty_json::pretty;
use crate::store::record::compact;
use crate::store::state::HIGHEST_REVISION;
use crate::store::state_dir::StateDir;
use crate::store::versioned::Versioned;
use crate::telemetry::clock::now;

const VERSION: u32 = 1;
/// The pause between attempts to write the same copy.
const RETRY: Duration = Duration::from_secs(5);

/// The state that is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotKind {
    /// The runtime changes of a shared store.
    Store,
    /// The values of a source of flags.
    Source,
}

impl SnapshotKind {
    /// Returns the name of the file.
    const fn file(self) -> &'static str {
        match self {
            SnapshotKind::Store => "rollout.copy.json",
            SnapshotKind::Source => "source.json",
        }
    }
}

/// The folder for copies of a state; absent if this process cannot write there.
#[derive(Debug)]
pub struct SnapshotDir {
    kind: SnapshotKind,
    folder: Option<StateDir>,
    /// The identity of the store or source, without secrets.
    store_id: String,
    /// True if the last copy failed.
    is_failing: bool,
    due: Option<Pending>,
    /// The time before which a copy that failed is not written again.
    retry_at: Option<Instant>,
    work: Background<Done>,
}

/// A state to copy.
#[derive(Debug)]
struct Pending {
    store_id: String,
    state: Versioned,
    /// The time at which it was noted.
    at: String,
}

/// The result of writing a copy.
#[derive(Debug)]
enum Done {
    /// This process owns the folder, and the copy was written.
    Written(StateDir),
    /// The folder cannot be locked, or the copy cannot be written.
    Failed(StateDir, Pending, StoreError),
    /// Another process still owns the folder.
    NotOwned(Pending),
}

/// A copied state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotContents {
    /// The state.
    pub state: Versioned,
    /// The time of the copy, in RFC 3339.
    pub at: String,
}

/// The format on disk.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SnapshotFile<'t> {
    version: u32,
    store: String,
    at: String,
    revision: u64,
    #[serde(borrow)]
    state: &'t RawValue,
}

impl SnapshotDir {
    /// Locks the folder. If that fails, for instance because another replica uses it, this process keeps no copies.
    #[must_use]
    pub fn open(kind: SnapshotKind, folder: &Path, store_id: String) -> SnapshotDir {
        let locked = StateDir::lock(folder).and_then(|folder| {
            folder.clean(kind.file())?;
            Ok(folder)
        });
        if let Err(error) = &locked {
            let error = chain(error);
            let file = kind.file();
            tracing::warn!(error, file, "no local copy of the last good state is kept");
        }
        SnapshotDir {
            kind,
            folder: locked.ok(),
            store_id,
            is_failing: false,
            due: None,
            retry_at: None,
            work: Background::default(),
        }
    }

    /// Opens the folder while the previous process still owns it, and locks it as soon as it is free.
    #[must_use]
    pub fn open_unlocked(kind: SnapshotKind, folder: &Path, store_id: String) -> SnapshotDir {
        SnapshotDir {
            kind,
            folder: Some(StateDir::open_unlocked(folder)),
            store_id,
            is_failing: false,
            due: None,
            retry_at: None,
            work: Background::default(),
        }
    }

    /// Opens the folder in the background. If the folder does not respond, this process keeps no copies.
    pub async fn open_in_background(
        kind: SnapshotKind,
        folder: PathBuf,
        store_id: String,
        open: impl FnOnce(SnapshotKind, &Path, String) -> SnapshotDir + Send + 'static,
    ) -> SnapshotDir {
        let id = store_id.clone();
        let opened = within(START_LIMIT, move || open(kind, &folder, store_id)).await;
        opened.unwrap_or_else(|late| {
            let file = kind.file();
            tracing::warn!(error = %late, file, "no local copy of the last good state is kept");
            SnapshotDir {
                kind,
                folder: None,
                store_id: id,
                is_failing: true,
                due: None,
                retry_at: None,
                work: Background::default(),
            }
        })
    }

    /// Reads the copy in the background: see [`SnapshotDir::read`].
    pub async fn load(&self) -> Option<SnapshotContents> {
        let (kind, folder) = (self.kind, self.folder.clone()?);
        let id = self.store_id.clone();
        match within(START_LIMIT, move || read(kind, &folder, &id)).await {
            Ok(copied) => copied,
            Err(late) => {
                let file = kind.file();
                tracing::warn!(error = %late, file, "the local copy of the last good state cannot be read");
                None
            }
        }
    }

    /// Sets the identity of the store or source for later copies. Returns true if it is another one; the pending copy is
    /// dropped then.
    pub fn identify(&mut self, store_id: String) -> bool {
        let is_other = store_id != self.store_id;
        if is_other {
            self.store_id = store_id;
            self.due = None;
        }
        is_other
    }

    /// Releases the folder for the next process.
    pub fn release(&mut self) {
        self.folder = None;
    }

    /// Returns the copy, if there is one of this store. A damaged one is set aside.
    #[must_use]
    pub fn read(&self) -> Option<SnapshotContents> {
        read(self.kind, self.folder.as_ref()?, &self.store_id)
    }

    /// Schedules a copy of a state, in place of one that is still pending.
    pub fn note(&mut self, state: &Versioned, at: String) {
        if state.revision > 0 && self.folder.is_some() {
            self.due = Some(Pending {
                store_id: self.store_id.clone(),
                state: state.clone(),
                at,
            });
            self.retry_at = None;
        }
    }

    /// Starts the pending copy once the last one has ended, without waiting.
    pub async fn tend(&mut self) {
        if let Some(done) = self.work.ended_by_now().await {
            self.settle(done);
        }
        if let Some(late) = self.work.late(LIMIT)
            && !self.is_failing
        {
            let file = self.kind.file();
            tracing::warn!(error = %late, file, "the local copy of the last good state cannot be written");
            self.is_failing = true;
        }
        self.start();
    }

    /// Writes the pending copy, within a time limit.
    pub async fn flush(&mut self) {
        self.retry_at = None;
        self.start();
        while !self.work.is_idle() {
            let Ok(Some(done)) = timeout(LIMIT, self.work.ended()).await else {
                return;
            };
            let is_not_owned = matches!(done, Done::NotOwned(_));
            self.settle(done);
            if is_not_owned {
                return;
            }
            self.start();
        }
    }

    fn start(&mut self) {
        let Some(folder) = self.folder.clone().filter(|_| self.work.is_idle()) else {
            return;
        };
        if self.retry_at.is_some_and(|at| now() < at) {
            return;
        }
        if let Some(pending) = self.due.take() {
            let kind = self.kind;
            self.work.begin(move || copy(kind, folder, pending));
        }
    }

    /// Processes the result of a copy. A failure is logged once, until a copy succeeds again.
    fn settle(&mut self, done: Done) {
        let file = self.kind.file();
        match done {
            Done::NotOwned(pending) => self.keep(pending),
            Done::Written(folder) => {
                self.own(folder);
                if mem::take(&mut self.is_failing) {
                    tracing::info!(
                        file,
                        "the local copy of the last good state is written again"
                    );
                }
            }
            Done::Failed(folder, pending, error) => {
                self.own(folder);
                if self.due.is_none() {
                    self.retry_at = Some(now() + RETRY);
                }
                self.keep(pending);
                if !mem::replace(&mut self.is_failing, true) {
                    let error = chain(&error);
                    tracing::warn!(
                        error,
                        file,
                        "the local copy of the last good state cannot be written"
                    );
                }
            }
        }
    }

    /// Keeps the folder with its lock. A folder that was released meanwhile stays released.
    fn own(&mut self, folder: StateDir) {
        self.folder = self.folder.take().map(|_| folder);
    }

    /// Keeps a copy that was not written, unless there is a later one, or the store is another one now.
    fn keep(&mut self, pending: Pending) {
        if pending.store_id == self.store_id {
            self.due.get_or_insert(pending);
        }
    }
}

/// Reads the copy in a folder, if it belongs to this store.
fn read(kind: SnapshotKind, folder: &StateDir, store_id: &str) -> Option<SnapshotContents> {
    let file = kind.file();
    let text = match folder.read(file) {
        Ok(text) => text?,
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                file,
                "the local copy of the last good state cannot be read"
            );
            return None;
        }
    };
    match parse(&text) {
        Ok((found, copied)) if found == store_id => Some(copied),
        Ok((other, _)) => {
            tracing::warn!(
                of = other,
                file,
                "the local copy belongs to another store or source and is not used"
            );
            None
        }
        Err(damage) => {
            let owned = Some(folder).filter(|folder| folder.is_owned());
            let aside = owned.and_then(|folder| folder.set_aside(file).ok());
            let aside = aside.map(|path| path.display().to_string());
            tracing::warn!(error = %damage, aside, "`{file}` is damaged and was set aside");
            None
        }
    }
}

/// Locks the folder if the previous process has released it, and copies a state.
fn copy(kind: SnapshotKind, mut folder: StateDir, pending: Pending) -> Done {
    let written = match folder.acquire() {
        Ok(_) if folder.is_owned() => write(kind.file(), &folder, &pending),
        Ok(_) => return Done::NotOwned(pending),
        Err(error) => Err(error),
    };
    match written {
        Ok(()) => Done::Written(folder),
        Err(error) => Done::Failed(folder, pending, error),
    }
}

fn write(name: &str, folder: &StateDir, pending: &Pending) -> Result<(), StoreError> {
    let not_json = |error: serde_json::Error| StoreError::Damaged {
        path: folder.file(name),
        source: error.into(),
    };
    let file = SnapshotFile {
        version: VERSION,
        store: pending.store_id.clone(),
        at: pending.at.clone(),
        revision: pending.state.revision,
        state: serde_json::from_str(&pending.state.text).map_err(not_json)?,
    };
    let text = serde_json::to_string(&file).map_err(not_json)?;
    folder.replace(name, pretty(&text).as_bytes())?;
    folder.flush(name)
}

/// Parses the file into the identity of its store and the copy.
fn parse(text: &[u8]) -> Result<(String, SnapshotContents), Corruption> {
    let header: Header = serde_json::from_slice(text)?;
    if header.version != VERSION {
        return Err(Corruption::Version {
            found: header.version,
            known: VERSION,
        });
    }
    let file: SnapshotFile<'_> = serde_json::from_slice(text)?;
    if file.revision == 0 || file.revision > HIGHEST_REVISION {
        return Err(Corruption::Revision(file.revision));
    }
    let state = Versioned {
        revision: file.revision,
        text: compact(file.state)?,
    };
    let copied = SnapshotContents { state, at: file.at };
    Ok((file.store, copied))
}

#[cfg(test)]
mod tests;
