//! The store of one process: `rollout.json` and `watch.json` in the state folder, each replaced whole.
//!
//! What was stored is kept in memory too, since nobody else writes the files. They are laid out for people; a text
//! without white space between its tokens comes back byte for byte.

mod contents;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::Path;

use crate::store::error::{CommitError, Damage, StoreError};
use crate::store::folder::Folder;
use crate::store::state::{Faring, Health, MOST_REPORTS, Report, Reports, Versioned, check};
use crate::telemetry::clock::wall;
use contents::Watch;

const ROLLOUT: &str = "rollout.json";
const WATCH: &str = "watch.json";

/// The state and the counts on disk. Whoever holds this is the only owner of the state folder.
#[derive(Debug)]
pub struct FileStore {
    folder: Folder,
    state: Versioned,
    watch: Watch,
    flushed: Flushed,
    faring: Faring,
}

/// Whether the state survives a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flushed {
    Yes,
    /// It is in its place, but the folder could not be flushed.
    NotYet,
}

/// What was watched is no reason not to serve: guards watch anew, and the damaged file is kept for people.
fn begin_anew(folder: &Folder, damage: &Damage) -> Result<Watch, StoreError> {
    let aside = folder.set_aside(WATCH)?;
    tracing::warn!(
        error = %damage,
        aside = %aside.display(),
        "`{WATCH}` is damaged and was set aside; guards and usage begin anew"
    );
    Ok(Watch::default())
}

/// What is in the folder. Only its owner tidies up.
fn load(folder: &Folder) -> Result<(Versioned, Watch), StoreError> {
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
        Some(Err(damage)) if folder.is_owned() => begin_anew(folder, &damage)?,
        Some(Err(_)) | None => Watch::default(),
    };
    Ok((state, watch))
}

impl FileStore {
    /// Takes the state folder, which is made where it is missing, and reads what is in it.
    ///
    /// # Errors
    /// [`StoreError`] where another process has the folder, the system refuses, or what was changed is damaged.
    pub fn open(folder: &Path) -> Result<FileStore, StoreError> {
        FileStore::of(Folder::take(folder)?)
    }

    /// Reads what is in a state folder that the process of before still owns. Nothing can be written until
    /// `acquire` has taken it.
    ///
    /// # Errors
    /// [`StoreError`] where the system refuses, or what was changed is damaged.
    pub fn await_turn(folder: &Path) -> Result<FileStore, StoreError> {
        FileStore::of(Folder::await_turn(folder))
    }

    /// Takes the folder if the process of before has left it, and reads what it has written since.
    pub(super) fn acquire(&mut self) -> Result<(), StoreError> {
        if !self.folder.acquire()? {
            return Ok(());
        }
        let (state, watch) = load(&self.folder).inspect_err(|_| self.folder.release())?;
        self.state = state;
        self.watch = watch;
        Ok(())
    }

    /// Leaves the folder to the process that follows.
    pub(super) fn release(&mut self) {
        self.folder.release();
    }

    pub(super) const fn is_owned(&self) -> bool {
        self.folder.is_owned()
    }

    fn of(folder: Folder) -> Result<FileStore, StoreError> {
        let (state, watch) = load(&folder)?;
        Ok(FileStore {
            folder,
            state,
            watch,
            flushed: Flushed::Yes,
            faring: Faring::default(),
        })
    }

    pub(super) fn read(&self, known: u64) -> Result<Option<Versioned>, StoreError> {
        let found = self.state.revision;
        if found < known {
            return Err(StoreError::Forgot { known, found });
        }
        Ok((found > known).then(|| self.state.clone()))
    }

    pub(super) fn commit(&mut self, expected: u64, text: &str) -> Result<u64, CommitError> {
        check(text)?;
        let found = self.state.revision;
        let again = found == expected + 1 && self.state.text == text;
        if again && self.flushed == Flushed::NotYet {
            self.flush_state()?;
            return Ok(found);
        }
        if found < expected {
            let known = expected;
            return Err(CommitError::Store(StoreError::Forgot { known, found }));
        }
        if found > expected {
            return Err(CommitError::Conflict(self.state.clone()));
        }
        self.write_state(Versioned {
            revision: expected + 1,
            text: text.to_owned(),
        })?;
        Ok(expected + 1)
    }

    pub(super) fn restore(&mut self, good: &Versioned) -> Result<(), StoreError> {
        check(&good.text)?;
        if self.state.revision >= good.revision {
            return Ok(());
        }
        self.write_state(good.clone())
    }

    pub(super) fn exchange(&mut self, own: &Report) -> Result<Reports, StoreError> {
        check(&own.text)?;
        let mut watch = self.watch.clone();
        watch.reports.retain(|report| !report.is_of(own));
        watch.reports.push_front(own.clone());
        self.write_watch(watch)?;
        let told = self.watch.reports.iter().take(MOST_REPORTS);
        Ok(Reports {
            archive: self.watch.archive.clone(),
            reports: told.cloned().collect(),
        })
    }

    pub(super) fn fold(
        &mut self,
        expected: u64,
        text: &str,
        folded: &[Report],
    ) -> Result<(), CommitError> {
        check(text)?;
        let as_it_was = |report: &Report| {
            let mut there = self.watch.reports.iter();
            there.any(|other| other.is_of(report) && other.at == report.at)
        };
        if self.watch.archive.revision != expected || !folded.iter().all(as_it_was) {
            return Err(CommitError::Conflict(self.watch.archive.clone()));
        }
        let left = self.watch.reports.iter();
        let left = left.filter(|report| !folded.iter().any(|gone| gone.is_of(report)));
        let watch = Watch {
            archive: Versioned {
                revision: expected + 1,
                text: text.to_owned(),
            },
            reports: left.cloned().collect::<VecDeque<_>>(),
        };
        Ok(self.write_watch(watch)?)
    }

    pub(super) fn restore_archive(&mut self, good: &Versioned) -> Result<(), StoreError> {
        check(&good.text)?;
        if self.watch.archive.revision > 0 {
            return Ok(());
        }
        let mut watch = self.watch.clone();
        watch.archive = good.clone();
        self.write_watch(watch)
    }

    pub(super) fn health(&self) -> Health {
        self.faring.health()
    }

    fn write_state(&mut self, state: Versioned) -> Result<(), StoreError> {
        let written = self.folder.replace(ROLLOUT, &contents::state(&state));
        self.faring.note(written, wall())?;
        // From here on the file has this revision, whatever follows.
        self.state = state;
        self.flush_state()
    }

    fn flush_state(&mut self) -> Result<(), StoreError> {
        self.flushed = Flushed::NotYet;
        self.flush(ROLLOUT)?;
        self.flushed = Flushed::Yes;
        Ok(())
    }

    fn write_watch(&mut self, watch: Watch) -> Result<(), StoreError> {
        let written = self.folder.replace(WATCH, &contents::watch(&watch));
        self.faring.note(written, wall())?;
        self.watch = watch;
        self.flush(WATCH)
    }

    fn flush(&mut self, name: &str) -> Result<(), StoreError> {
        let flushed = self.folder.flush(name);
        self.faring.note(flushed, wall())
    }
}
