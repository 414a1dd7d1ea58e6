//! Permits for one worker's calls to a server.
//!
//! Laws: no more permits are out than the limit; waiters get permits in the order of asking, before later callers.
//!
//! Used by `connection_pool`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::unconstrained;
use tokio::time::timeout;

/// The right to use one connection, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    #[expect(dead_code, reason = "it is returned when it is dropped")]
    permit: OwnedSemaphorePermit,
    waiters: Rc<Waiters>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        // The semaphore assigns the permit to the next waiter.
        if self.waiters.queued() > 0 {
            self.waiters.assigned.set(self.waiters.assigned.get() + 1);
        }
    }
}

/// Counts of waiting calls, which the semaphore of tokio does not tell.
#[derive(Debug, Default)]
struct Waiters {
    /// Calls that wait, including those that have a permit but have not run since.
    waiting: Cell<usize>,
    /// Those that have a permit but have not run since.
    assigned: Cell<usize>,
}

impl Waiters {
    /// Returns the number of calls that wait for a permit.
    fn queued(&self) -> usize {
        self.waiting.get() - self.assigned.get()
    }
}

/// A call that waits, until it is dropped.
struct Waiter(Rc<Waiters>);

impl Waiter {
    fn new(waiters: &Rc<Waiters>) -> Waiter {
        waiters.waiting.set(waiters.waiting.get() + 1);
        Waiter(waiters.clone())
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let waiting = self.0.waiting.get() - 1;
        self.0.waiting.set(waiting);
        // A permit that was assigned to this waiter goes to the next, if there is one.
        self.0.assigned.set(self.0.assigned.get().min(waiting));
    }
}

/// A semaphore that counts its waiters.
#[derive(Debug)]
pub(super) struct Permits {
    semaphore: Arc<Semaphore>,
    waiters: Rc<Waiters>,
}

impl Permits {
    pub(super) fn new(count: usize) -> Permits {
        Permits {
            semaphore: Arc::new(Semaphore::new(count)),
            waiters: Rc::default(),
        }
    }

    /// Returns the number of free permits.
    pub(super) fn free(&self) -> usize {
        self.semaphore.available_permits()
    }

    /// Returns the number of calls that wait for a permit.
    pub(super) fn waiting(&self) -> usize {
        self.waiters.queued()
    }

    /// Takes a permit without waiting. While one is free, no call waits.
    pub(super) fn take(&self) -> Option<Permit> {
        let permit = self.semaphore.clone().try_acquire_owned().ok()?;
        Some(self.permit(permit))
    }

    /// Waits for a permit for at most `limit`. The caller has found none free.
    pub(super) async fn wait(&self, limit: Duration) -> Option<Permit> {
        let waiter = Waiter::new(&self.waiters);
        // Unconstrained, so that the first poll takes a place in the queue in any case.
        let permit = unconstrained(self.semaphore.clone().acquire_owned());
        // The semaphore is never closed.
        let permit = timeout(limit, permit).await.ok()?.ok()?;
        let assigned = &self.waiters.assigned;
        assigned.set(assigned.get().saturating_sub(1));
        drop(waiter);
        Some(self.permit(permit))
    }

    fn permit(&self, permit: OwnedSemaphorePermit) -> Permit {
        Permit {
            permit,
            waiters: self.waiters.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::pin::{Pin, pin};

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::runtime::Builder;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    type Wait<'p> = Pin<Box<dyn Future<Output = Option<Permit>> + 'p>>;

    /// Returns a wait that is in the queue.
    fn waits(permits: &Permits) -> Wait<'_> {
        let mut wait: Wait<'_> = Box::pin(permits.wait(LONG));
        assert!(wait.as_mut().now_or_never().is_none());
        wait
    }

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
    async fn a_call_with_a_permit_does_not_wait_even_before_it_runs() {
        let permits = Permits::new(1);
        let held_permit = permits.take();
        let (first, mut second) = (waits(&permits), waits(&permits));
        drop(held_permit);
        // The permit is the first waiter's: no other call takes it.
        assert!(permits.take().is_none());
        assert_eq!(permits.waiting(), 1);
        drop(first);
        assert_eq!(permits.waiting(), 0);
        assert!(second.as_mut().now_or_never().flatten().is_some());
        assert_eq!((permits.free(), permits.waiting()), (1, 0));
    }

    /// An operation on the semaphore.
    #[derive(Debug, Clone, Copy)]
    enum Step {
        Ask,
        /// The n-th permit is returned, or the n-th waiter leaves, if there is one.
        Return(usize),
        Leave(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Ask),
            3 => (0..4_usize).prop_map(Step::Return),
            1 => (0..4_usize).prop_map(Step::Leave),
        ]
    }

    /// Runs the steps against a model: the holders, and the waiters in their order.
    fn run(count: usize, steps: Vec<Step>) {
        let permits = Permits::new(count);
        let (mut held_permits, mut queue) = (Vec::new(), VecDeque::<(usize, Wait<'_>)>::new());
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Ask => match permits.take() {
                    Some(permit) => held_permits.push((number, permit)),
                    None => queue.push_back((number, waits(&permits))),
                },
                Step::Return(at) if at < held_permits.len() => drop(held_permits.swap_remove(at)),
                Step::Leave(at) => drop(queue.remove(at)),
                Step::Return(_) => {}
            }
            // A returned permit is assigned at once, before its waiter runs.
            let free = count - held_permits.len();
            assert_eq!(permits.waiting(), queue.len().saturating_sub(free));
            // Only the first waiters get a permit.
            while held_permits.len() < count
                && let Some((number, mut first)) = queue.pop_front()
            {
                let given = first.as_mut().now_or_never().flatten();
                held_permits.push((number, given.expect("the first in the queue gets it")));
            }
            for (_, wait) in &mut queue {
                assert!(wait.as_mut().now_or_never().is_none());
            }
            assert_eq!(permits.free(), count - held_permits.len());
            assert_eq!(permits.waiting(), queue.len());
        }
    }

    proptest! {
        #[test]
        fn permits_are_granted_in_order_and_never_too_many(
            count in 1..4_usize,
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let runtime = Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async { run(count, steps) });
        }
    }
}
