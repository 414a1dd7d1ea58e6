//! A thread for long comparisons, one job after the other, beside the workers.
//!
//! A worker passes owned data and awaits the result. Laws: no job blocks a worker; a full queue rejects new jobs; a
//! panic ends only its own job; a job whose caller has gone is not started.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::{mpsc, oneshot};

/// Capacity of the job queue.
const PIECES: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

/// A handle that queues jobs for the compare thread.
#[derive(Clone)]
pub struct ComparePool(mpsc::Sender<Option<Job>>);

/// The thread that runs the queued jobs.
pub struct CompareThread(mpsc::Receiver<Option<Job>>);

/// The reason why a job has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OffloadError {
    /// The queue is full.
    Full,
    /// The job panicked.
    Panicked,
}

impl ComparePool {
    /// Creates an empty queue and the thread side of it.
    #[must_use]
    pub fn open() -> (ComparePool, CompareThread) {
        let (pieces, waiting) = mpsc::channel(PIECES);
        (ComparePool(pieces), CompareThread(waiting))
    }

    /// Runs a job on the compare thread and returns its result.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, OffloadError> {
        let (result, done) = oneshot::channel();
        let piece: Job = Box::new(move || {
            if !result.is_closed() {
                // The receiver may have gone since the check; the result is then not needed.
                drop(result.send(work()));
            }
        });
        self.0
            .try_send(Some(piece))
            .map_err(|_| OffloadError::Full)?;
        // The sender is dropped without a result only when the job panicked.
        done.await.map_err(|_| OffloadError::Panicked)
    }

    /// Stops the thread after the queued jobs.
    pub async fn close(&self) {
        // Sending fails only if the thread has already stopped.
        let _ = self.0.send(None).await;
    }
}

impl CompareThread {
    /// Runs jobs until the queue is closed.
    pub fn work(mut self) {
        while let Some(Some(piece)) = self.0.blocking_recv() {
            // The job owns all its data, so a panic leaves no shared state half-written.
            if catch_unwind(AssertUnwindSafe(piece)).is_err() {
                tracing::error!("a comparison panicked");
            }
        }
    }
}

impl fmt::Debug for ComparePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComparePool").finish_non_exhaustive()
    }
}

impl fmt::Debug for CompareThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompareThread").finish_non_exhaustive()
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
