//! Work on files, off the task that waits for it: a file system may not answer for long, or never again.
//!
//! Laws: one piece of work at a time for each [`Background`], so a file system that hangs holds one thread and no more;
//! nobody can end such work, so it is given up by those who wait, and left behind when the process ends.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::config::progress::Progress;
use crate::telemetry::clock::now;

/// How long work on the state folder may take before those who wait for it are told.
pub(super) const LIMIT: Duration = Duration::from_secs(2);
/// How long files may take at a start.
pub const START_LIMIT: Duration = Duration::from_secs(30);

/// A file system that has not answered in time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} not answered within {} s; is its file system there?", shown(file.as_ref()), limit.as_secs())]
pub struct Late {
    /// The file or folder, where it is known.
    pub file: Option<PathBuf>,
    /// The time that it had.
    pub limit: Duration,
}

fn shown(file: Option<&PathBuf>) -> String {
    match file {
        Some(file) => format!("`{}` has", file.display()),
        None => "the files have".to_owned(),
    }
}

/// Work on files on a thread of its own, one piece at a time.
#[derive(Debug)]
pub struct Background<T>(Option<UnderWay<T>>);

#[derive(Debug)]
struct UnderWay<T> {
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
    /// Returns whether no work is under way.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Begins work. Does nothing while other work is under way.
    pub fn begin(&mut self, work: impl FnOnce() -> T + Send + 'static) {
        if !self.is_idle() {
            return;
        }
        let progress = Progress::default();
        let followed = progress.clone();
        #[expect(
            clippy::disallowed_methods,
            reason = "no call waits for it; `is_idle` bounds how much there is"
        )]
        let work = spawn_blocking(move || followed.follow(work));
        self.0 = Some(UnderWay {
            work,
            progress,
            since: now(),
        });
    }

    /// Returns what the work has led to, once it has; `None` where it has panicked. Never returns while no work is under
    /// way. Cancel-safe: the work goes on.
    pub async fn ended(&mut self) -> Option<T> {
        let Some(UnderWay { work, .. }) = &mut self.0 else {
            return std::future::pending().await;
        };
        let done = work.await;
        self.0 = None;
        done.inspect_err(|error| tracing::error!(%error, "work on files has failed"))
            .ok()
    }

    /// The same where the work has ended; `None` at once where it has not.
    pub async fn ended_by_now(&mut self) -> Option<T> {
        match &self.0 {
            Some(under_way) if under_way.work.is_finished() => self.ended().await,
            Some(_) | None => None,
        }
    }

    /// Returns that the work is late, where it takes longer than `limit`.
    #[must_use]
    pub fn late(&self, limit: Duration) -> Option<Late> {
        let UnderWay {
            progress, since, ..
        } = self.0.as_ref()?;
        (now() - *since >= limit).then(|| Late {
            file: progress.last(),
            limit,
        })
    }

    /// Returns the file or folder that the work has turned to last.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        self.0.as_ref()?.progress.last()
    }
}

/// Does work off this task, and waits for it. For a start, where there is nothing else to do meanwhile.
///
/// # Errors
/// [`DeferredWrites`] after `limit`; the work is then left behind. The same where it panics.
pub async fn within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Late> {
    let mut background = Background::default();
    background.begin(work);
    let done = timeout_at(now() + limit, background.ended()).await;
    done.ok().flatten().ok_or_else(|| Late {
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

    /// Work that turns to a file and hangs until the other end is dropped.
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
    async fn work_that_hangs_keeps_nobody_waiting_and_is_the_only_one() {
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
            "`/mnt/flags.toml` has not answered within 3 s; is its file system there?"
        );
        assert!(!background.is_idle());
        drop(release);
        assert_eq!(background.ended().await, Some(1));
        assert!(background.is_idle() && background.late(LIMIT).is_none());
        background.begin(|| 3);
        assert_eq!(background.ended().await, Some(3));
    }

    #[tokio::test]
    async fn a_start_waits_for_so_long_and_names_the_file() {
        assert_eq!(within(LIMIT, || 4).await, Ok(4));
        let (release, work) = hanging();
        let limit = Duration::from_millis(50);
        let late = within(limit, work).await.unwrap_err();
        assert_eq!(late.limit, limit);
        drop(release);
    }
}
