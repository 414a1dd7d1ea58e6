//! A semaphore for one worker's calls to a server.
//!
//! Laws: no more permits are out than the limit; waiters get permits in the order of asking, before later callers; a
//! permit that its receiver abandons goes to the next. All permits stay on their thread, so no lock is needed.
//!
//! Used by `http`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

/// A fair semaphore for one thread.
#[derive(Debug, Clone)]
pub(super) struct LocalSemaphore(Rc<SemaphoreState>);

#[derive(Debug)]
struct SemaphoreState {
    free: Cell<usize>,
    /// The waiters by number, in the order of asking.
    queue: RefCell<VecDeque<(u64, oneshot::Sender<Permit>)>>,
    /// The number of waiters so far.
    numbers: Cell<u64>,
}

/// The right to use one connection, until it is dropped.
#[derive(Debug)]
pub struct Permit(LocalSemaphore);

impl LocalSemaphore {
    pub(super) fn new(count: usize) -> LocalSemaphore {
        LocalSemaphore(Rc::new(SemaphoreState {
            free: Cell::new(count),
            queue: RefCell::default(),
            numbers: Cell::new(0),
        }))
    }

    /// Returns the number of free permits.
    pub(super) fn free(&self) -> usize {
        self.0.free.get()
    }

    /// Returns the number of waiting calls.
    pub(super) fn waiting(&self) -> usize {
        self.0.queue.borrow().len()
    }

    /// Takes a permit without waiting. While one is free, no call waits.
    pub(super) fn take(&self) -> Option<Permit> {
        self.0.free.set(self.free().checked_sub(1)?);
        Some(Permit(self.clone()))
    }

    /// Waits for a permit for at most `limit`. The caller has found none free.
    pub(super) async fn wait(&self, limit: Duration) -> Option<Permit> {
        let number = self.0.numbers.get();
        self.0.numbers.set(number + 1);
        // Dropped after the receiver, however the wait ends: a closed sender takes no space in the queue.
        let _leaves = CancelGuard(self, number);
        let (grant, granted) = oneshot::channel();
        self.0.queue.borrow_mut().push_back((number, grant));
        timeout(limit, granted).await.ok()?.ok()
    }

    /// Passes a returned permit on to the next waiter.
    fn pass_on(&self) {
        loop {
            let next = self.0.queue.borrow_mut().pop_front();
            match next {
                Some((_, next)) if next.is_closed() => {}
                // A permit that is not received is dropped, and passed on again.
                Some((_, next)) => return drop(next.send(Permit(self.clone()))),
                None => return self.0.free.set(self.free() + 1),
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

/// Removes a waiter that gave up from the queue. One that got its permit is not in the queue any more.
struct CancelGuard<'p>(&'p LocalSemaphore, u64);

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.0.queue.borrow_mut();
        if let Ok(place) = queue.binary_search_by_key(&self.1, |(number, _)| *number) {
            queue.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::runtime::Builder;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    type Wait = Pin<Box<dyn Future<Output = Option<Permit>>>>;

    /// Returns a wait that is in the queue.
    fn waits(permits: &LocalSemaphore) -> Wait {
        let task_permits = permits.clone();
        let mut wait: Wait = Box::pin(async move { task_permits.wait(LONG).await });
        assert!(wait.as_mut().now_or_never().is_none());
        wait
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_times_out_leaves_the_queue() {
        let permits = LocalSemaphore::new(1);
        let held_permits = permits.take();
        assert!(permits.wait(LONG).await.is_none());
        assert_eq!(permits.waiting(), 0);
        drop(held_permits);
        assert_eq!(permits.free(), 1);
    }

    #[tokio::test]
    async fn a_permit_of_a_dropped_wait_goes_to_the_next() {
        let permits = LocalSemaphore::new(1);
        let held_permits = permits.take();
        let (first, mut second) = (waits(&permits), waits(&permits));
        drop(held_permits);
        drop(first);
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
        let permits = LocalSemaphore::new(count);
        let (mut held_permits, mut queue) = (Vec::new(), VecDeque::<(usize, Wait)>::new());
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
