//! A filter of wake-ups from hyper, so that a connection task is not woken for nothing.
//!
//! hyper wakes the task whenever a piece of a body is taken, to read the next piece: even after the last one, when
//! the task has nothing to do. Law: a wake-up is discarded only if a sized body was taken to its end while the filter
//! suppressed wake-ups.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use fragile::Fragile;

/// The filter of one connection.
///
/// Only wake-ups on the thread of the connection's task are deferred or discarded, so no lock is needed. Those from
/// other threads pass: a call may wait for a link on another thread.
#[derive(Debug, Clone, Default)]
pub struct WakeFilter(Arc<FilterShared>);

#[derive(Debug, Default)]
struct FilterShared {
    /// The task to wake: the first one that polled the connection.
    task: OnceLock<FilteredTask>,
}

#[derive(Debug)]
struct FilteredTask {
    waker: Waker,
    /// Accessible on the task's thread only.
    wake_state: Fragile<Cell<WakeState>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeState {
    Idle,
    /// Wake-ups are suppressed, and none has come.
    Suppressed,
    /// Wake-ups are suppressed, and one has come.
    Deferred,
}

/// The poller of a connection, which receives its wake-ups through the filter.
#[derive(Debug)]
pub struct FilteredPoll {
    filter: Arc<FilterShared>,
    waker: Waker,
}

impl FilteredPoll {
    /// Polls the connection.
    pub fn poll<F: Future>(
        &self,
        connection: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let task = self.filter.task.get_or_init(|| FilteredTask {
            waker: cx.waker().clone(),
            wake_state: Fragile::new(Cell::new(WakeState::Idle)),
        });
        if task.waker.will_wake(cx.waker()) {
            return connection.poll(&mut Context::from_waker(&self.waker));
        }
        // The connection has moved to another task, whose wake-ups are not filtered.
        connection.poll(cx)
    }
}

impl WakeFilter {
    /// Returns the poller of the connection.
    #[must_use]
    pub fn filtered_poll(&self) -> FilteredPoll {
        FilteredPoll {
            filter: self.0.clone(),
            waker: Waker::from(self.0.clone()),
        }
    }

    /// Suppresses wake-ups while a piece of a body is taken. Dropping the guard delivers a wake-up that came
    /// meanwhile.
    pub(super) fn suppress(&self) -> SuppressGuard<'_> {
        self.0.set(WakeState::Suppressed);
        SuppressGuard(&self.0)
    }
}

/// A guard that suppresses wake-ups.
pub(super) struct SuppressGuard<'a>(&'a FilterShared);

impl SuppressGuard<'_> {
    /// Ends the suppression and discards a wake-up that came meanwhile.
    pub(super) fn discard(self) {
        self.0.set(WakeState::Idle);
    }
}

impl Drop for SuppressGuard<'_> {
    fn drop(&mut self) {
        if self.0.set(WakeState::Idle) == Some(WakeState::Deferred) {
            self.0.wake_task();
        }
    }
}

impl FilterShared {
    /// Replaces the state and returns the previous one; `None` on another thread, or before the first poll.
    fn set(&self, wake_state: WakeState) -> Option<WakeState> {
        self.wake_state().map(|own| own.replace(wake_state))
    }

    fn wake_state(&self) -> Option<&Cell<WakeState>> {
        self.task.get()?.wake_state.try_get().ok()
    }

    fn wake_task(&self) {
        if let Some(task) = self.task.get() {
            task.waker.wake_by_ref();
        }
    }
}

impl Wake for FilterShared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match self.wake_state() {
            Some(wake_state) if wake_state.get() != WakeState::Idle => {
                wake_state.set(WakeState::Deferred)
            }
            _ => self.wake_task(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::thread;

    use super::*;
    use crate::upstream::counting_waker::CountingWaker;

    /// Returns a filter that has polled a future, the future's waker, and a counter of the task's wake-ups.
    fn polled_filter() -> (WakeFilter, Waker, Arc<CountingWaker>) {
        let (filter, woken) = (WakeFilter::default(), Arc::<CountingWaker>::default());
        let mut filtered_poll = None;
        let asked = poll_fn(|cx| {
            filtered_poll = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        let task = Waker::from(woken.clone());
        let polled = filter
            .filtered_poll()
            .poll(pin!(asked), &mut Context::from_waker(&task));
        assert!(polled.is_pending());
        (filter, filtered_poll.unwrap(), woken)
    }

    #[test]
    fn a_wake_up_wakes_the_task() {
        let (_bell, filtered_poll, woken) = polled_filter();
        filtered_poll.wake_by_ref();
        filtered_poll.wake();
        assert_eq!(woken.count(), 2);
    }

    #[test]
    fn a_wake_up_is_deferred_while_suppressed_and_dropped_where_useless() {
        let (filter, filtered_poll, woken) = polled_filter();
        let count = || woken.count();
        let held = filter.suppress();
        filtered_poll.wake_by_ref();
        filtered_poll.wake_by_ref();
        assert_eq!(count(), 0);
        drop(held);
        assert_eq!(count(), 1);
        drop(filter.suppress());
        assert_eq!(count(), 1, "nobody has rung");
        let held = filter.suppress();
        filtered_poll.wake_by_ref();
        held.discard();
        assert_eq!(count(), 1);
        filtered_poll.wake_by_ref();
        assert_eq!(count(), 2);
    }

    #[test]
    fn another_thread_wakes_the_task_at_any_time() {
        let (filter, filtered_poll, woken) = polled_filter();
        let held = filter.suppress();
        thread::scope(|scope| drop(scope.spawn(|| filtered_poll.wake_by_ref())));
        assert_eq!(woken.count(), 1);
        held.discard();
        drop(filter.suppress());
        assert_eq!(woken.count(), 1);
    }

    #[test]
    fn a_connection_that_has_changed_its_task_wakes_that_one() {
        let filter = WakeFilter::default();
        let filtered_poll = filter.filtered_poll();
        for own in [Arc::<CountingWaker>::default(), Arc::default()] {
            let asked = poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            });
            let task = Waker::from(own.clone());
            let polled = filtered_poll.poll(pin!(asked), &mut Context::from_waker(&task));
            assert!(polled.is_pending());
            assert_eq!(own.count(), 1);
        }
    }
}
