//! Parsing of large bodies on other threads, so that it does not delay other calls of a worker.
//!
//! Used by the code that parses and translates bodies. Laws: short texts are parsed on the worker, where that costs
//! less than the hand-over; at most as many long ones as there are permits are parsed at once, in order of arrival;
//! jobs own all their data.

use std::sync::Arc;

use tokio::sync::Semaphore;

use dualgauge_model::failure::{Failure, Reason};
use dualgauge_net::run_blocking;

/// The length from which a text is offloaded; a worker scans a shorter one in about a millisecond or less.
const LONG: usize = 64 * 1024;

/// The length from which an encoded body is offloaded; it may decode to a thousand times its size.
const LONG_CODED: usize = 1024;

/// The limit of texts that all workers parse on other threads at the same time.
#[derive(Debug, Clone)]
pub struct Offload(Arc<Semaphore>);

impl Offload {
    /// Creates the limit for a number of workers: half of them, at least one, so that workers keep part of the CPUs.
    #[must_use]
    pub fn for_workers(workers: usize) -> Offload {
        Offload::new((workers / 2).max(1))
    }

    fn new(permits: usize) -> Offload {
        Offload(Arc::new(Semaphore::new(permits)))
    }

    /// Returns an offload that never starts a job.
    #[cfg(test)]
    pub(super) fn stopped() -> Offload {
        Offload::new(0)
    }

    /// Runs a job on the blocking pool and returns its result. A job that has started runs to its end, even if its
    /// caller is gone.
    ///
    /// # Errors
    ///
    /// Fails when the job panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = self.0.clone().acquire_owned().await;
        // The semaphore is never closed.
        let permit = permit.map_err(|closed| offload_failure().because(closed))?;
        let done = run_blocking(permit, work).await;
        done.map_err(|error| offload_failure().because(error))
    }
}

fn offload_failure() -> Failure {
    Failure::new(
        Reason::Internal,
        "a long body was not read because of a fault of this program",
    )
}

/// Returns true when a text of this length is offloaded.
#[inline]
pub(super) const fn is_long(bytes: usize) -> bool {
    bytes >= LONG
}

/// Returns true when an encoded body of this length is offloaded.
pub(super) const fn is_long_coded(bytes: usize) -> bool {
    bytes >= LONG_CODED
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_worker_is_not_blocked_by_a_long_text() {
        let (start, wait) = mpsc::channel();
        let offload = Offload::for_workers(1);
        let job = offload.run(move || {
            wait.recv().unwrap();
            thread::current().id()
        });
        // Only this thread lets the other one go on.
        let other = async { start.send(()).unwrap() };
        let (read, ()) = tokio::join!(job, other);
        assert_ne!(read.unwrap(), thread::current().id());
    }

    #[tokio::test]
    async fn permits_bound_the_concurrent_jobs() {
        let (start, wait) = mpsc::channel::<()>();
        let offload = Offload::new(1);
        let mut first = Box::pin(offload.run(move || wait.recv().is_ok()));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(offload.run(|| 2));
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(offload.0.available_permits(), 0);
        start.send(()).unwrap();
        assert!(first.await.unwrap());
        assert_eq!(second.await.unwrap(), 2);
        assert_eq!(offload.0.available_permits(), 1);
    }

    #[tokio::test]
    async fn a_panic_fails_only_its_own_job() {
        let offload = Offload::new(1);
        let failed = offload.run(|| -> u8 { panic!("on purpose") }).await;
        assert_eq!(failed.unwrap_err().reason, Reason::Internal);
        assert_eq!(offload.run(|| 7).await.unwrap(), 7);
    }
}
