//! Permits for one worker's calls to a server.
//!
//! Law: waiters get permits in the order of asking, before later callers.
//!
//! Used by `http`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::count_guard::CountGuard;

/// The right to use one connection, until it is dropped.
pub type Permit = OwnedSemaphorePermit;

/// A semaphore with a count of its waiters, which tokio's does not tell.
#[derive(Debug)]
pub(super) struct Permits {
    semaphore: Arc<Semaphore>,
    waiting: Rc<Cell<usize>>,
}

impl Permits {
    pub(super) fn new(count: usize) -> Permits {
        Permits {
            semaphore: Arc::new(Semaphore::new(count)),
            waiting: Rc::default(),
        }
    }

    /// Returns the number of free permits.
    pub(super) fn free(&self) -> usize {
        self.semaphore.available_permits()
    }

    /// Returns the number of waiting calls. A call that has just been given its permit counts until it runs.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Takes a permit without waiting. While one is free, no call waits.
    pub(super) fn take(&self) -> Option<Permit> {
        self.semaphore.clone().try_acquire_owned().ok()
    }

    /// Waits for a permit for at most `limit`.
    pub(super) async fn wait(&self, limit: Duration) -> Option<Permit> {
        let _waits = CountGuard::new(self.waiting.clone());
        let permit = self.semaphore.clone().acquire_owned();
        // The semaphore is never closed.
        timeout(limit, permit).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_times_out_is_not_counted_any_more() {
        let permits = Permits::new(1);
        let held_permit = permits.take();
        let mut wait = pin!(permits.wait(LONG));
        assert!(wait.as_mut().now_or_never().is_none());
        assert_eq!((permits.free(), permits.waiting()), (0, 1));
        assert!(wait.await.is_none());
        assert_eq!(permits.waiting(), 0);
        drop(held_permit);
        assert_eq!(permits.free(), 1);
    }

    #[tokio::test]
    async fn permits_go_to_the_waiters_in_their_order_past_those_that_left() {
        let permits = Permits::new(1);
        let held_permit = permits.take();
        let mut first = Box::pin(permits.wait(LONG));
        let mut second = pin!(permits.wait(LONG));
        let mut third = pin!(permits.wait(LONG));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        assert!(third.as_mut().now_or_never().is_none());
        drop(held_permit);
        // The permit is the first waiter's: no other call takes it.
        assert!(permits.take().is_none());
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        let held_permit = second.now_or_never().flatten();
        assert!(held_permit.is_some());
        assert_eq!((permits.free(), permits.waiting()), (0, 1));
        drop(held_permit);
        assert!(third.now_or_never().flatten().is_some());
        assert_eq!((permits.free(), permits.waiting()), (1, 0));
    }
}
