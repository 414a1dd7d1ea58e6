//! The state folder, which has one owner and whose files are replaced atomically.
//!
//! Laws: after a kill or a power failure, a file has either its old or its new contents; a confirmed replacement
//! survives both. A symlink stays a symlink: its target is replaced, in the target's folder.
//!
//! Used by `legacy` and `snapshot`.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::{progress, regular};
use crate::store::error::StoreError;

const LOCK: &str = "lock";
/// The maximum number of damaged files kept per name; the last one is overwritten.
const MAX_DAMAGED: u32 = 9;
/// The maximum number of symlinks followed to a file.
const MAX_SYMLINKS: usize = 16;

/// The state folder, owned by this process or waiting to be. Clones are for background operations; the folder is free
/// once the last clone is dropped.
#[derive(Debug, Clone)]
pub(super) struct StateDir {
    path: PathBuf,
    /// The lock, held as long as the file is open. Without it nothing is written.
    lock: Option<Arc<File>>,
}

impl StateDir {
    /// Locks the folder, which is created if missing.
    pub(super) fn lock(path: &Path) -> Result<StateDir, StoreError> {
        progress::note(path);
        fs::create_dir_all(path).map_err(io_error(path, "created"))?;
        Ok(StateDir {
            path: path.to_path_buf(),
            lock: Some(Arc::new(lock_file(path)?)),
        })
    }

    /// Opens a folder that the previous process still owns.
    pub(super) fn open_unlocked(path: &Path) -> StateDir {
        StateDir {
            path: path.to_path_buf(),
            lock: None,
        }
    }

    /// Returns true if this process owns the folder.
    pub(super) const fn is_owned(&self) -> bool {
        self.lock.is_some()
    }

    /// Locks the folder if it is free. Returns true if this call has locked it.
    pub(super) fn acquire(&mut self) -> Result<bool, StoreError> {
        if self.is_owned() {
            return Ok(false);
        }
        match StateDir::lock(&self.path) {
            Ok(locked) => *self = locked,
            Err(StoreError::InUse(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Releases the folder for the next owner.
    pub(super) fn release(&mut self) {
        self.lock = None;
    }

    /// Returns the path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a file in the folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the path of a file after following symlinks, even dangling ones.
    ///
    /// # Errors
    /// Fails if there are too many symlinks.
    fn target(&self, name: &str) -> Result<PathBuf, StoreError> {
        let mut path = self.file(name);
        progress::note(&path);
        for _ in 0..MAX_SYMLINKS {
            // Not a symlink, or missing: the following operation reports it.
            let Ok(next) = fs::read_link(&path) else {
                return Ok(path);
            };
            path = folder_of(&path).join(next);
        }
        let error = io::Error::other("too many symlinks");
        Err(io_error(&self.file(name), "followed")(error))
    }

    /// Removes an unfinished replacement, which was never confirmed.
    pub(super) fn clean(&self, name: &str) -> Result<(), StoreError> {
        let unfinished = unfinished(&self.target(name)?);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(io_error(&unfinished, "removed")(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Reads a file, if it exists.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.file(name);
        match regular::read(&path, regular::LONGEST_STATE) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(&path, "read")(error)),
        }
    }

    /// Renames a damaged file, so that people can examine it. Returns its new path.
    pub(super) fn set_aside(&self, name: &str) -> Result<PathBuf, StoreError> {
        let path = self.target(name)?;
        let free = (1..MAX_DAMAGED).map(|number| damaged_path(&path, number));
        let mut free = free.filter(|path| !path.exists());
        let damaged = free
            .next()
            .unwrap_or_else(|| damaged_path(&path, MAX_DAMAGED));
        fs::rename(&path, &damaged).map_err(io_error(&damaged, "replaced"))?;
        Ok(damaged)
    }

    /// Replaces a file atomically; on failure it is unchanged. The replacement survives a power failure once
    /// [`StateDir::flush`] has returned as well.
    pub(super) fn replace(&self, name: &str, text: &[u8]) -> Result<(), StoreError> {
        if !self.is_owned() {
            return Err(StoreError::NotOwned(self.path.clone()));
        }
        let path = self.target(name)?;
        let unfinished = unfinished(&path);
        write(&unfinished, text).map_err(io_error(&unfinished, "written"))?;
        fs::rename(&unfinished, &path).map_err(io_error(&path, "replaced"))
    }

    /// Makes the replacement of a file durable.
    pub(super) fn flush(&self, name: &str) -> Result<(), StoreError> {
        let path = self.target(name)?;
        let folder = folder_of(&path);
        progress::note(folder);
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(io_error(folder, "flushed"))
    }
}

/// Returns the folder of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Returns the path of an unfinished replacement.
fn unfinished(path: &Path) -> PathBuf {
    with_suffix(path, ".new")
}

fn damaged_path(path: &Path, number: u32) -> PathBuf {
    with_suffix(path, &format!(".damaged-{number}"))
}

/// Returns the path with a suffix.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut suffixed = path.as_os_str().to_owned();
    suffixed.push(suffix);
    PathBuf::from(suffixed)
}

/// Returns a function that adds the path and the action to an I/O error.
pub(super) fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> StoreError {
    let path = path.to_path_buf();
    move |source| StoreError::Io {
        path,
        action,
        source,
    }
}

fn lock_file(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    progress::note(&path);
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    let file = options.open(&path).map_err(io_error(&path, "opened"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(folder.to_path_buf())),
        Err(TryLockError::Error(error)) => Err(io_error(&path, "locked")(error)),
    }
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    progress::note(path);
    let mut file = File::create(path)?;
    file.write_all(text)?;
    file.sync_all()
}
