//! The desk at which long work is done beside the workers, piece by piece, on a thread of its own.
//!
//! A worker hands over what it owns, and waits for the result as it waits for an answer. Laws: nothing that is done here
//! holds up a worker; a desk with too much on it takes nothing more; what panics ends alone; what nobody waits for any
//! more is not begun.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::{mpsc, oneshot};

/// Pieces of work that may wait.
const PIECES: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// Where work is handed over.
#[derive(Clone)]
pub struct ComparePool(mpsc::Sender<Option<Job>>);

/// Who does it.
pub struct CompareThread(mpsc::Receiver<Option<Job>>);

/// Why a piece of work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffloadError {
    /// There is too much on the desk.
    Full,
    /// By a fault of this program.
    Panicked,
}

impl ComparePool {
    /// An empty desk, and who is to sit there.
    #[must_use]
    pub fn open() -> (ComparePool, CompareThread) {
        let (pieces, waiting) = mpsc::channel(PIECES);
        (ComparePool(pieces), CompareThread(waiting))
    }

    /// Has a piece of work done, and waits for its result.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, OffloadError> {
        let (result, done) = oneshot::channel();
        let piece: Job = Box::new(move || {
            if !result.is_closed() {
                // Whoever went away since does not miss it.
                drop(result.send(work()));
            }
        });
        self.0
            .try_send(Some(piece))
            .map_err(|_| OffloadError::Full)?;
        // Dropped without a result, the piece has panicked.
        done.await.map_err(|_| OffloadError::Panicked)
    }

    /// Lets the clerk go when what waits is done.
    pub async fn close(&self) {
        // A clerk who is gone need not be told.
        let _ = self.0.send(None).await;
    }
}

impl CompareThread {
    /// Works until the desk is closed.
    pub fn work(mut self) {
        while let Some(Some(piece)) = self.0.blocking_recv() {
            // It owns all that it touches, so nobody sees it half done.
            if catch_unwind(AssertUnwindSafe(piece)).is_err() {
                tracing::error!("a comparison panicked");
            }
        }
    }
}

impl fmt::Debug for ComparePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl fmt::Debug for CompareThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clerk").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn work_waits_for_the_clerk_and_not_for_the_worker() {
        let (desk, clerk) = ComparePool::open();
        let mut done = Box::pin(desk.run(|| thread::current().id()));
        assert!((&mut done).now_or_never().is_none());
        let clerk = thread::spawn(|| clerk.work());
        assert_eq!(done.await, Ok(clerk.thread().id()));
        desk.close().await;
        clerk.join().unwrap();
    }

    #[tokio::test]
    async fn a_full_desk_takes_nothing_and_nobody_waits_for_room() {
        let (desk, clerk) = ComparePool::open();
        let mut waiting: Vec<_> = (0..PIECES)
            .map(|place| Box::pin(desk.run(move || place)))
            .collect();
        for one in &mut waiting {
            assert!(one.now_or_never().is_none());
        }
        assert_eq!(desk.run(|| 0).await, Err(OffloadError::Full));
        let clerk = thread::spawn(|| clerk.work());
        let done = join_all(waiting).await;
        assert_eq!(done, (0..PIECES).map(Ok).collect::<Vec<_>>());
        desk.close().await;
        clerk.join().unwrap();
        assert_eq!(desk.run(|| 0).await, Err(OffloadError::Full));
    }

    #[tokio::test]
    async fn work_that_panics_ends_alone() {
        let (desk, clerk) = ComparePool::open();
        let clerk = thread::spawn(|| clerk.work());
        let panicking = || -> u8 { panic!("on purpose") };
        assert_eq!(desk.run(panicking).await, Err(OffloadError::Panicked));
        assert_eq!(desk.run(|| 7).await, Ok(7));
        desk.close().await;
        clerk.join().unwrap();
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_not_begun() {
        let (desk, clerk) = ComparePool::open();
        let (begun, saw) = std::sync::mpsc::channel();
        let mut dropped = Box::pin(desk.run(move || begun.send(()).unwrap()));
        assert!((&mut dropped).now_or_never().is_none());
        drop(dropped);
        let clerk = thread::spawn(|| clerk.work());
        assert_eq!(desk.run(|| 7).await, Ok(7));
        assert!(saw.recv().is_err());
        desk.close().await;
        clerk.join().unwrap();
    }
}
