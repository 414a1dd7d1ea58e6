//! Work on long texts, done on other threads than the worker's so that it delays no other call.
//!
//! The code that reads and translates bodies calls this. Laws: short texts are read on the worker, where that costs less
//! than to hand them over; as many long ones as there are permits are read at a time, in the order of arrival; work owns
//! all that it touches.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::domain::failure::{Failure, Reason};

/// The shortest text that is long: a worker scans a shorter one in about a millisecond or less.
const LONG: usize = 64 * 1024;

/// The shortest body with a content coding that is handled as long: it may decode to a thousand times as much.
const LONG_CODED: usize = 1024;

/// Bounds how many long texts all workers read at a time.
#[derive(Debug, Clone)]
pub struct Offload(Arc<Semaphore>);

impl Offload {
    /// Returns a bound for so many workers: half as many texts as workers are read at a time, and at least one, so that
    /// workers keep a part of the processors.
    #[must_use]
    pub fn for_workers(workers: usize) -> Offload {
        Offload::new((workers / 2).max(1))
    }

    fn new(permits: usize) -> Offload {
        Offload(Arc::new(Semaphore::new(permits)))
    }

    /// Returns an offload that never begins anything.
    #[cfg(test)]
    pub(super) fn stopped() -> Offload {
        Offload::new(0)
    }

    /// Runs work on a thread of the blocking pool and returns its result. Work that has begun runs to its end, also when
    /// nobody waits for it any more.
    ///
    /// # Errors
    /// Fails when the work panics.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = self.0.clone().acquire_owned().await;
        // The semaphore is never closed.
        let permit = permit.map_err(|closed| not_done().because(closed))?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the call waits for it; the permit bounds how many there are"
        )]
        let done = spawn_blocking(move || {
            let result = work();
            drop(permit);
            result
        });
        done.await.map_err(|error| not_done().because(error))
    }
}

fn not_done() -> Failure {
    Failure::new(
        Reason::Internal,
        "a long body was not read because of a fault of this program",
    )
}

/// Returns whether a text of so many bytes is long.
#[inline]
pub(super) const fn is_long(bytes: usize) -> bool {
    bytes >= LONG
}

/// Returns whether a body of so many bytes that has a content coding may be long without it.
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
    async fn a_worker_goes_on_while_a_long_text_is_read() {
        let (go, wait) = mpsc::channel();
        let offload = Offload::for_workers(1);
        let reading = offload.run(move || {
            wait.recv().unwrap();
            thread::current().id()
        });
        // Only this thread lets the other one go on.
        let other = async { go.send(()).unwrap() };
        let (read, ()) = tokio::join!(reading, other);
        assert_ne!(read.unwrap(), thread::current().id());
    }

    #[tokio::test]
    async fn no_more_is_read_at_a_time_than_there_are_permits() {
        let (go, wait) = mpsc::channel::<()>();
        let offload = Offload::new(1);
        let mut first = Box::pin(offload.run(move || wait.recv().is_ok()));
        assert!((&mut first).now_or_never().is_none());
        let mut second = Box::pin(offload.run(|| 2));
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(offload.0.available_permits(), 0);
        go.send(()).unwrap();
        assert!(first.await.unwrap());
        assert_eq!(second.await.unwrap(), 2);
        assert_eq!(offload.0.available_permits(), 1);
    }

    #[tokio::test]
    async fn work_that_panics_fails_its_own_call_alone() {
        let offload = Offload::new(1);
        let failed = offload.run(|| -> u8 { panic!("on purpose") }).await;
        assert_eq!(failed.unwrap_err().reason, Reason::Internal);
        assert_eq!(offload.run(|| 7).await.unwrap(), 7);
    }
}
