//! The file that a thread is working on. Those who wait for the thread can name the file when a file system hangs.
//!
//! Used by `app`, `include`, `regular` and `store`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    static OF_THIS_THREAD: RefCell<Progress> = RefCell::default();
}

/// The last file or folder that was accessed.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Option<PathBuf>>>);

impl Progress {
    /// Runs work on this thread, and records the files that it accesses.
    pub fn follow<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = OF_THIS_THREAD.replace(self.clone());
        let done = work();
        OF_THIS_THREAD.set(before);
        done
    }

    /// Returns the last recorded file or folder.
    #[must_use]
    pub fn last(&self) -> Option<PathBuf> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Records the file or folder that this thread is about to access.
pub fn note(path: &Path) {
    OF_THIS_THREAD.with_borrow(|progress| {
        let mut last = progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some(path.to_path_buf());
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_work_that_is_followed_is_noted() {
        let progress = Progress::default();
        note(Path::new("before"));
        assert_eq!(progress.last(), None);
        progress.follow(|| {
            note(Path::new("one"));
            note(Path::new("two"));
        });
        note(Path::new("behind"));
        assert_eq!(progress.last(), Some(PathBuf::from("two")));
    }
}
