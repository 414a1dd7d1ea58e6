//! A thread for long comparisons, separate from the workers; it runs one job at a time.
//!
//! A worker passes owned data and awaits the result. Laws: no job blocks a worker; a full queue rejects new jobs; a
//! panic ends only its own job; a job whose caller has gone is not started.
//!
//! Used by `app::compare_thread`, `shadow::comparison` and `worker`.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::{mpsc, oneshot};

/// Capacity of the job queue.
const CAPACITY: usize = 64;

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
        let (sender, jobs) = mpsc::channel(CAPACITY);
        (ComparePool(sender), CompareThread(jobs))
    }

    /// Runs a job on the compare thread and returns its result.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, OffloadError> {
        let (result, done) = oneshot::channel();
        let job: Job = Box::new(move || {
            if !result.is_closed() {
                // The receiver may have gone since the check; the result is then not needed.
                drop(result.send(work()));
            }
        });
        self.0.try_send(Some(job)).map_err(|_| OffloadError::Full)?;
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
    pub fn run_jobs(mut self) {
        while let Some(Some(job)) = self.0.blocking_recv() {
            // The job owns all its data, so a panic leaves no shared state half-written.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("comparison panicked");
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
    async fn jobs_run_on_the_compare_thread() {
        let (compare_pool, compare_thread) = ComparePool::open();
        let mut done = Box::pin(compare_pool.run(|| thread::current().id()));
        assert!((&mut done).now_or_never().is_none());
        let compare_thread = thread::spawn(|| compare_thread.run_jobs());
        assert_eq!(done.await, Ok(compare_thread.thread().id()));
        compare_pool.close().await;
        compare_thread.join().unwrap();
    }

    #[tokio::test]
    async fn a_full_queue_rejects_jobs_at_once() {
        let (compare_pool, compare_thread) = ComparePool::open();
        let mut jobs: Vec<_> = (0..CAPACITY)
            .map(|index| Box::pin(compare_pool.run(move || index)))
            .collect();
        for one in &mut jobs {
            assert!(one.now_or_never().is_none());
        }
        assert_eq!(compare_pool.run(|| 0).await, Err(OffloadError::Full));
        let compare_thread = thread::spawn(|| compare_thread.run_jobs());
        let done = join_all(jobs).await;
        assert_eq!(done, (0..CAPACITY).map(Ok).collect::<Vec<_>>());
        compare_pool.close().await;
        compare_thread.join().unwrap();
        assert_eq!(compare_pool.run(|| 0).await, Err(OffloadError::Full));
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_job() {
        let (compare_pool, compare_thread) = ComparePool::open();
        let compare_thread = thread::spawn(|| compare_thread.run_jobs());
        let panicking = || -> u8 { panic!("on purpose") };
        assert_eq!(
            compare_pool.run(panicking).await,
            Err(OffloadError::Panicked)
        );
        assert_eq!(compare_pool.run(|| 7).await, Ok(7));
        compare_pool.close().await;
        compare_thread.join().unwrap();
    }

    #[tokio::test]
    async fn an_abandoned_job_is_not_started() {
        let (compare_pool, compare_thread) = ComparePool::open();
        let (started, started_jobs) = std::sync::mpsc::channel();
        let mut dropped = Box::pin(compare_pool.run(move || started.send(()).unwrap()));
        assert!((&mut dropped).now_or_never().is_none());
        drop(dropped);
        let compare_thread = thread::spawn(|| compare_thread.run_jobs());
        assert_eq!(compare_pool.run(|| 7).await, Ok(7));
        assert!(started_jobs.recv().is_err());
        compare_pool.close().await;
        compare_thread.join().unwrap();
    }
}
