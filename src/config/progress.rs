//! The file that a thread works on, for those who wait for that thread: a file system that does not answer has a name.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

thread_local! {
    static OF_THIS_THREAD: RefCell<Progress> = RefCell::default();
}

/// The file or folder that some work has turned to last.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Option<PathBuf>>>);

impl Progress {
    /// Does work on this thread. The files that it turns to are noted here.
    pub fn follow<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = OF_THIS_THREAD.replace(self.clone());
        let done = work();
        OF_THIS_THREAD.set(before);
        done
    }

    /// Returns the file or folder that was noted last.
    #[must_use]
    pub fn last(&self) -> Option<PathBuf> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// Notes the file or folder that this thread turns to.
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
