//! File operations in background threads: a file system may take long to respond, or may never do so.
//!
//! Laws: each [`Background`] runs one operation at a time, so a hanging file system blocks one thread and no more. Such
//! an operation cannot be aborted: its callers give up, and it is abandoned when the process ends.
//!
//! Used by `app`, `server` and `store`.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::config::progress::Progress;
use crate::telemetry::clock::now;

/// The time after which an operation on the state folder is reported late.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// The time limit of file operations at the start.
pub const START_LIMIT: Duration = Duration::from_secs(30);

/// A file system that has not responded in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} not responded within {} s; check its file system", shown(file.as_ref()), limit.as_secs())]
pub struct Late {
    /// The file or folder, if known.
    pub file: Option<PathBuf>,
    /// The time limit.
    pub limit: Duration,
}

fn shown(file: Option<&PathBuf>) -> String {
    match file {
        Some(file) => format!("`{}` has", file.display()),
        None => "the files have".to_owned(),
    }
}

/// A background thread for file operations, one at a time.
#[derive(Debug)]
pub struct Background<T>(Option<Running<T>>);

#[derive(Debug)]
struct Running<T> {
    work: JoinHandle<T>,
    progress: Progress,
    since: Instant,
}

impl<T> Default for Background<T> {
    fn default() -> Self {
        Background(None)
    }
}

impl<T: Send + 'static> Background<T> {
    /// Returns true if no operation is running.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Starts an operation. Does nothing while another one is running.
    pub fn begin(&mut self, work: impl FnOnce() -> T + Send + 'static) {
        if !self.is_idle() {
            return;
        }
        let progress = Progress::default();
        let tracker = progress.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "no call waits for it, and `is_idle` allows one at a time"
        )]
        let work = spawn_blocking(move || tracker.follow(work));
        self.0 = Some(Running {
            work,
            progress,
            since: now(),
        });
    }

    /// Waits for the running operation and returns its result, or `None` if it panicked. Never completes if none is
    /// running. Cancel-safe: the operation continues.
    pub async fn ended(&mut self) -> Option<T> {
        let Some(Running { work, .. }) = &mut self.0 else {
            return std::future::pending().await;
        };
        let result = work.await;
        self.0 = None;
        result
            .inspect_err(|error| tracing::error!(%error, "a file operation panicked"))
            .ok()
    }

    /// Returns the result of an operation that has ended, or `None` at once if it has not.
    pub async fn ended_by_now(&mut self) -> Option<T> {
        match &self.0 {
            Some(running) if running.work.is_finished() => self.ended().await,
            Some(_) | None => None,
        }
    }

    /// Returns an error if the operation has been running for at least `limit`.
    #[must_use]
    pub fn late(&self, limit: Duration) -> Option<Late> {
        let Running {
            progress, since, ..
        } = self.0.as_ref()?;
        (now() - *since >= limit).then(|| Late {
            file: progress.last(),
            limit,
        })
    }

    /// Returns the file or folder that the operation accessed last.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        self.0.as_ref()?.progress.last()
    }
}

/// Runs an operation in the background and waits for it. Meant for the start, when nothing else can be done meanwhile.
///
/// # Errors
/// Returns [`Late`] after `limit`, when the operation is abandoned, and if it panics.
pub async fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Late> {
    let mut background = Background::default();
    background.begin(work);
    let result = timeout_at(now() + limit, background.ended()).await;
    result.ok().flatten().ok_or_else(|| Late {
        file: background.file(),
        limit,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{Receiver, Sender, channel};

    use tokio::time::{advance, timeout};

    use super::*;
    use crate::config::progress::note;

    const LIMIT: Duration = Duration::from_secs(3);

    /// Returns an operation that accesses a file and hangs until the sender is dropped.
    fn hanging() -> (Sender<()>, impl FnOnce() -> u8) {
        let (release, hangs): (Sender<()>, Receiver<()>) = channel();
        let work = move || {
            note(Path::new("/mnt/flags.toml"));
            let _ = hangs.recv();
            1
        };
        (release, work)
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_operation_blocks_no_caller_and_no_other_starts() {
        let (release, work) = hanging();
        let mut background = Background::default();
        background.begin(work);
        let waited = timeout(Duration::ZERO, background.ended()).await;
        assert!(waited.is_err());
        assert_eq!(background.ended_by_now().await, None);
        assert_eq!(background.late(LIMIT), None);
        // Nothing else begins meanwhile.
        background.begin(|| 2);
        while background.file().is_none() {
            std::thread::yield_now();
        }
        advance(LIMIT).await;
        let late = background.late(LIMIT).unwrap();
        assert_eq!(
            late.to_string(),
            "`/mnt/flags.toml` has not responded within 3 s; check its file system"
        );
        assert!(!background.is_idle());
        drop(release);
        assert_eq!(background.ended().await, Some(1));
        assert!(background.is_idle() && background.late(LIMIT).is_none());
        background.begin(|| 3);
        assert_eq!(background.ended().await, Some(3));
    }

    #[tokio::test]
    async fn within_waits_up_to_the_limit() {
        assert_eq!(within(LIMIT, || 4).await, Ok(4));
        let (release, work) = hanging();
        let limit = Duration::from_millis(50);
        let late = within(limit, work).await.unwrap_err();
        assert_eq!(late.limit, limit);
        drop(release);
    }
}
