//! A filter of wake-ups from hyper, so that a connection task is not woken for nothing.
//!
//! hyper wakes the task whenever a piece of a body is taken, to read the next piece: even after the last one, when
//! the task has nothing to do. Law: a wake-up is discarded only if a sized body was taken to its end while the filter
//! suppressed wake-ups. The caller, `IncomingBody`, decides: it calls `discard` after the last piece, and drops the
//! guard otherwise.

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
    /// The task to wake: the first one that polled the connection. A later task is woken directly.
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

/// Polls a connection so that its wake-ups pass the filter.
#[derive(Debug)]
pub struct FilteredPoller {
    filter: Arc<FilterShared>,
    waker: Waker,
}

impl FilteredPoller {
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
    pub fn poller(&self) -> FilteredPoller {
        FilteredPoller {
            filter: self.0.clone(),
            waker: Waker::from(self.0.clone()),
        }
    }

    /// Suppresses wake-ups while a piece of a body is taken. Dropping the guard delivers a wake-up that came
    /// meanwhile.
    pub(super) fn suppress(&self) -> SuppressGuard<'_> {
        self.0.replace_state(WakeState::Suppressed);
        SuppressGuard(&self.0)
    }
}

/// A guard that suppresses wake-ups.
pub(super) struct SuppressGuard<'a>(&'a FilterShared);

impl SuppressGuard<'_> {
    /// Ends the suppression and discards a wake-up that came meanwhile.
    pub(super) fn discard(self) {
        self.0.replace_state(WakeState::Idle);
    }
}

impl Drop for SuppressGuard<'_> {
    fn drop(&mut self) {
        if self.0.replace_state(WakeState::Idle) == Some(WakeState::Deferred) {
            self.0.wake_task();
        }
    }
}

impl FilterShared {
    /// Replaces the state and returns the previous one; `None` on another thread, or before the first poll.
    fn replace_state(&self, wake_state: WakeState) -> Option<WakeState> {
        self.wake_state().map(|state| state.replace(wake_state))
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
        let mut waker = None;
        let connection = poll_fn(|cx| {
            waker = Some(cx.waker().clone());
            Poll::<()>::Pending
        });
        let task = Waker::from(woken.clone());
        let polled = filter
            .poller()
            .poll(pin!(connection), &mut Context::from_waker(&task));
        assert!(polled.is_pending());
        (filter, waker.unwrap(), woken)
    }

    #[test]
    fn a_wake_up_wakes_the_task() {
        let (_filter, waker, woken) = polled_filter();
        waker.wake_by_ref();
        waker.wake();
        assert_eq!(woken.count(), 2);
    }

    #[test]
    fn a_wake_up_is_deferred_while_suppressed_and_dropped_if_needless() {
        let (filter, waker, woken) = polled_filter();
        let count = || woken.count();
        let guard = filter.suppress();
        waker.wake_by_ref();
        waker.wake_by_ref();
        assert_eq!(count(), 0);
        drop(guard);
        assert_eq!(count(), 1);
        drop(filter.suppress());
        assert_eq!(count(), 1, "no wake-up came");
        let guard = filter.suppress();
        waker.wake_by_ref();
        guard.discard();
        assert_eq!(count(), 1);
        waker.wake_by_ref();
        assert_eq!(count(), 2);
    }

    #[test]
    fn another_thread_wakes_the_task_at_any_time() {
        let (filter, waker, woken) = polled_filter();
        let guard = filter.suppress();
        thread::scope(|scope| drop(scope.spawn(|| waker.wake_by_ref())));
        assert_eq!(woken.count(), 1);
        guard.discard();
        drop(filter.suppress());
        assert_eq!(woken.count(), 1);
    }

    #[test]
    fn a_connection_that_has_changed_its_task_wakes_that_one() {
        let filter = WakeFilter::default();
        let poller = filter.poller();
        for counter in [Arc::<CountingWaker>::default(), Arc::default()] {
            let connection = poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::<()>::Pending
            });
            let task = Waker::from(counter.clone());
            let polled = poller.poll(pin!(connection), &mut Context::from_waker(&task));
            assert!(polled.is_pending());
            assert_eq!(counter.count(), 1);
        }
    }
}
