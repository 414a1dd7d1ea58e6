//! The state folder: one owner, and files that are replaced whole.
//!
//! Laws: a file is as it was or as it was to become, whenever the process is killed or the power fails; what has
//! been replaced survives both. A file that is a symlink stays one: its target is replaced, in the folder of the target.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{progress, regular};
use crate::store::error::StoreError;

const LOCK: &str = "lock";
/// How many damaged files of one name are kept; the last one is replaced.
const MOST_ASIDE: u32 = 9;
/// How many symlinks are followed to a file.
const MOST_LINKS: usize = 16;

/// The folder. Whoever holds this is its only owner, or waits to be. A copy is for work off the task that owns it: the folder
/// is free once the last copy is gone.
#[derive(Debug, Clone)]
pub(super) struct StateDir {
    path: PathBuf,
    /// Locked as long as it is open. Without it nothing is written.
    lock: Option<Arc<File>>,
}

impl StateDir {
    /// Takes the folder, which is made where it is missing.
    pub(super) fn take(path: &Path) -> Result<StateDir, StoreError> {
        progress::note(path);
        fs::create_dir_all(path).map_err(refused(path, "made"))?;
        Ok(StateDir {
            path: path.to_path_buf(),
            lock: Some(Arc::new(lock(path)?)),
        })
    }

    /// Reads a folder that the process of before still owns.
    pub(super) fn await_turn(path: &Path) -> StateDir {
        StateDir {
            path: path.to_path_buf(),
            lock: None,
        }
    }

    /// Whether this is its owner.
    pub(super) const fn is_owned(&self) -> bool {
        self.lock.is_some()
    }

    /// Takes it if it is free: whether this is its owner from here on, and was not before.
    pub(super) fn acquire(&mut self) -> Result<bool, StoreError> {
        if self.is_owned() {
            return Ok(false);
        }
        match StateDir::take(&self.path) {
            Ok(taken) => *self = taken,
            Err(StoreError::InUse(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Leaves it to the next owner.
    pub(super) fn release(&mut self) {
        self.lock = None;
    }

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns where a file is: symlinks are followed, also where nothing is at their end yet.
    ///
    /// # Errors
    /// Fails when the symlinks do not end.
    fn target(&self, name: &str) -> Result<PathBuf, StoreError> {
        let mut path = self.file(name);
        progress::note(&path);
        for _ in 0..MOST_LINKS {
            // No symlink, or nothing there: the action on it tells.
            let Ok(next) = fs::read_link(&path) else {
                return Ok(path);
            };
            path = folder_of(&path).join(next);
        }
        let error = io::Error::other("it leads from symlink to symlink");
        Err(refused(&self.file(name), "followed")(error))
    }

    /// Removes a replacement that was never finished, and so was never said to be stored.
    pub(super) fn clean(&self, name: &str) -> Result<(), StoreError> {
        let unfinished = unfinished(&self.target(name)?);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(refused(&unfinished, "removed")(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// What a file holds, if there is one.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.file(name);
        match regular::read(&path, regular::LONGEST_STATE) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(&path, "read")(error)),
        }
    }

    /// Moves a file out of the way, where it stays until somebody looks at it. Tells how it is called from then on.
    pub(super) fn set_aside(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.target(name)?;
        let free = (1..MOST_ASIDE).map(|number| aside(&path, number));
        let mut free = free.filter(|path| !path.exists());
        let aside = free.next().unwrap_or_else(|| aside(&path, MOST_ASIDE));
        fs::rename(&path, &aside).map_err(refused(&aside, "replaced"))?;
        Ok(aside)
    }

    /// Replaces a file whole. It is as it was where this fails, and it survives a loss of power once
    /// [`StateDir::flush`] has returned as well.
    pub(super) fn replace(&self, name: &str, text: &[u8]) -> Result<(), StoreError> {
        if !self.is_owned() {
            return Err(StoreError::Elsewhere(self.path.clone()));
        }
        let path = self.target(name)?;
        let unfinished = unfinished(&path);
        write(&unfinished, text).map_err(refused(&unfinished, "written"))?;
        fs::rename(&unfinished, &path).map_err(refused(&path, "replaced"))
    }

    /// Makes the replacement of a file survive a loss of power.
    pub(super) fn flush(&self, name: &str) -> Result<(), StoreError> {
        let path = self.target(name)?;
        let folder = folder_of(&path);
        progress::note(folder);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(refused(folder, "flushed"))
    }
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Returns the path of a replacement until it is complete.
fn unfinished(path: &Path) -> PathBuf {
    beside(path, ".new")
}

fn aside(path: &Path, number: u32) -> PathBuf {
    beside(path, &format!(".damaged-{number}"))
}

/// Returns the path with more at the end of its name.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut longer = path.as_os_str().to_owned();
    longer.push(more);
    PathBuf::from(longer)
}

/// The error of an action that the system refuses.
pub(super) fn refused(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io {
        path,
        action,
        source,
    }
}

fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    progress::note(&path);
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(refused(&path, "opened"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(folder.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(refused(&path, "locked")(error)),
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    progress::note(path);
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}
