//! Polling of a connection by the call that it serves.
//!
//! A separate connection task would read the response and wake the call, which then runs after every task woken
//! meanwhile: two task switches instead of one, and the bytes have left the CPU caches. So a call polls its
//! connection; the connection's task polls it between calls, and while the client still sends. Laws: each wake-up of
//! the connection wakes exactly one of the two; a wake-up while neither waits goes to the next one that does.
//!
//! Used by `http1` and `incoming_body`.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use fragile::Fragile;

/// A connection, shared by the call and the task that may poll it.
#[derive(Debug, Clone)]
pub(super) struct ConnectionDriver(Rc<DriverShared>);

struct DriverShared {
    /// `None` once it has ended.
    connection: RefCell<Option<Pin<Box<ConnectionFuture>>>>,
    wake_target: Arc<WakeTarget>,
    /// Wakes the call or task that polls the connection.
    waker: Waker,
}

/// The future of hyper's connection, which ends with it.
type ConnectionFuture = dyn Future<Output = ()>;

impl fmt::Debug for DriverShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionDriver")
            .field("wake_target", &self.wake_target)
            .finish_non_exhaustive()
    }
}

/// The receiver of the connection's wake-ups.
#[derive(Debug)]
struct WakeTarget {
    task: OnceLock<Waker>,
    local: Fragile<LocalState>,
}

/// State that is accessible on the connection's thread only.
#[derive(Debug, Default)]
struct LocalState {
    /// The waker of the call that polls the connection; without one, its task does.
    call: RefCell<Option<Waker>>,
    mode: Cell<WakeMode>,
    /// The number of consecutive ready results of a call.
    consecutive_ready: Cell<u8>,
}

/// The limit of consecutive ready results before other tasks get a turn: a server may send as fast as it is read.
const MAX_CONSECUTIVE_READY: u8 = 8;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WakeMode {
    #[default]
    Forwarded,
    /// Suppressed: the connection is polled before anything waits for it.
    Suppressed,
    /// Suppressed, and a wake-up was missed.
    Missed,
    /// Suppressed, and the connection asked to be polled again.
    RepollRequested,
}

impl ConnectionDriver {
    /// Wraps a connection that its task polls first.
    pub(super) fn new(connection: impl Future<Output = ()> + 'static) -> ConnectionDriver {
        let wake_target = Arc::new(WakeTarget {
            task: OnceLock::new(),
            local: Fragile::new(LocalState::default()),
        });
        ConnectionDriver(Rc::new(DriverShared {
            connection: RefCell::new(Some(Box::pin(connection))),
            waker: Waker::from(wake_target.clone()),
            wake_target,
        }))
    }

    /// Polls the connection in its task, until it has ended. While a call polls it, wakes that call instead.
    pub(super) fn poll_in_task(&self, cx: &Context<'_>) -> Poll<()> {
        self.0.wake_target.task.get_or_init(|| cx.waker().clone());
        if self.0.connection.borrow().is_none() {
            return Poll::Ready(());
        }
        if self.local_state().call.borrow().is_some() {
            self.0.wake_target.wake_by_ref();
            return Poll::Pending;
        }
        self.poll()
    }

    /// Polls the connection, then `ask`, which returns what only the connection can provide. When `ask` is pending,
    /// the call receives the connection's wake-ups from then on.
    pub(super) fn poll_for_call<T>(
        &self,
        cx: &Context<'_>,
        mut ask: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let LocalState {
            mode,
            consecutive_ready,
            ..
        } = self.local_state();
        if consecutive_ready.get() == MAX_CONSECUTIVE_READY {
            consecutive_ready.set(0);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            self.poll_in_call(cx);
            let repoll_requested = mode.replace(WakeMode::Suppressed) == WakeMode::Missed;
            let polled = ask(&mut Context::from_waker(Waker::noop()));
            if polled.is_ready() {
                if repoll_requested {
                    mode.set(WakeMode::RepollRequested);
                }
                consecutive_ready.set(consecutive_ready.get() + 1);
                return polled;
            }
            consecutive_ready.set(0);
            let missed = mode.replace(WakeMode::Forwarded) == WakeMode::Missed;
            if repoll_requested {
                // The connection asked to be polled again.
                cx.waker().wake_by_ref();
                return polled;
            }
            // `ask` may have unblocked the connection: poll again.
            if !missed {
                return polled;
            }
        }
    }

    /// Polls the connection in a call, which receives its wake-ups from then on.
    fn poll_in_call(&self, cx: &Context<'_>) {
        self.suppress_wakes();
        let mut call = self.local_state().call.borrow_mut();
        match &mut *call {
            Some(waker) => waker.clone_from(cx.waker()),
            empty => *empty = Some(cx.waker().clone()),
        }
        drop(call);
        if self.poll().is_ready()
            && let Some(task) = self.0.wake_target.task.get()
        {
            task.wake_by_ref();
        }
    }

    fn poll(&self) -> Poll<()> {
        let mut connection = self.0.connection.borrow_mut();
        let Some(open) = connection.as_mut() else {
            return Poll::Ready(());
        };
        let polled = open.as_mut().poll(&mut Context::from_waker(&self.0.waker));
        polled.map(|()| *connection = None)
    }

    fn local_state(&self) -> &LocalState {
        self.0.wake_target.local.get()
    }

    /// Suppresses wake-ups until the connection is polled next, or handed back to its task.
    pub(super) fn suppress_wakes(&self) {
        self.local_state().mode.set(WakeMode::Suppressed);
    }

    /// Discards a wake-up missed since the last poll.
    pub(super) fn clear_wake(&self) {
        let mode = &self.local_state().mode;
        if mode.get() == WakeMode::Missed {
            mode.set(WakeMode::Suppressed);
        }
    }

    /// Hands the connection back to its task.
    pub(super) fn return_to_task(&self) {
        let state = self.local_state();
        state.call.take();
        state.consecutive_ready.take();
        if matches!(
            state.mode.take(),
            WakeMode::Missed | WakeMode::RepollRequested
        ) {
            self.0.wake_target.wake_by_ref();
        }
    }

    /// Drops the connection, which closes it.
    pub(super) fn close(&self) {
        self.0.connection.take();
    }
}

impl Wake for WakeTarget {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Ok(state) = self.local.try_get() {
            match state.mode.get() {
                WakeMode::Forwarded => {}
                WakeMode::Suppressed => return state.mode.set(WakeMode::Missed),
                WakeMode::Missed | WakeMode::RepollRequested => return,
            }
            if let Some(call) = &*state.call.borrow() {
                call.wake_by_ref();
                return;
            }
        }
        if let Some(task) = self.task.get() {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::thread;

    use super::*;
    use crate::counting_waker::CountingWaker;

    /// A connection that ends when `is_ended` is set, its waker, and counters of the wake-ups of its task and of a
    /// call.
    struct TestDriver {
        driver: ConnectionDriver,
        is_ended: Rc<Cell<bool>>,
        waker: Waker,
        task: Arc<CountingWaker>,
        call: Arc<CountingWaker>,
    }

    impl TestDriver {
        fn new() -> TestDriver {
            let (is_ended, waker) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
            let (is_ended_now, recorded_waker) = (is_ended.clone(), waker.clone());
            let driver = ConnectionDriver::new(poll_fn(move |cx| {
                *recorded_waker.borrow_mut() = Some(cx.waker().clone());
                match is_ended_now.get() {
                    true => Poll::Ready(()),
                    false => Poll::Pending,
                }
            }));
            let (task, call) = (Arc::<CountingWaker>::default(), Arc::default());
            let task_waker = Waker::from(task.clone());
            assert!(
                driver
                    .poll_in_task(&Context::from_waker(&task_waker))
                    .is_pending()
            );
            let waker = waker.take().unwrap();
            TestDriver {
                driver,
                is_ended,
                waker,
                task,
                call,
            }
        }

        /// Polls in a call, with `wake_ups` wake-ups while it asks. Returns how often the call asked.
        fn calls(&self, wake_ups: usize) -> usize {
            let waker = Waker::from(self.call.clone());
            let mut asked = 0;
            let polled = self
                .driver
                .poll_for_call(&Context::from_waker(&waker), |_| {
                    asked += 1;
                    if asked <= wake_ups {
                        self.waker.wake_by_ref();
                    }
                    Poll::<()>::Pending
                });
            assert!(polled.is_pending());
            asked
        }

        fn in_task(&self) -> Poll<()> {
            let waker = Waker::from(self.task.clone());
            self.driver.poll_in_task(&Context::from_waker(&waker))
        }

        fn woken(&self) -> (usize, usize) {
            (self.task.count(), self.call.count())
        }
    }

    #[test]
    fn the_last_poller_is_woken() {
        let test = TestDriver::new();
        test.waker.wake_by_ref();
        assert_eq!(test.woken(), (1, 0));
        assert_eq!(test.calls(0), 1);
        test.waker.wake_by_ref();
        assert_eq!(test.woken(), (1, 1));
        test.driver.return_to_task();
        test.waker.wake_by_ref();
        assert_eq!(test.woken(), (2, 1));
    }

    #[test]
    fn a_wake_up_without_a_call_wakes_the_task() {
        let test = TestDriver::new();
        assert_eq!(test.calls(0), 1);
        test.driver.suppress_wakes();
        test.waker.wake_by_ref();
        assert_eq!(test.woken(), (0, 0));
        test.driver.return_to_task();
        assert_eq!(test.woken(), (1, 0));
        test.driver.return_to_task();
        assert_eq!(test.woken(), (1, 0));
    }

    #[test]
    fn a_wake_up_during_a_poll_polls_again() {
        let test = TestDriver::new();
        test.driver.suppress_wakes();
        test.waker.wake_by_ref();
        assert_eq!(test.calls(0), 1, "it was polled since");
        assert_eq!(test.calls(2), 3);
        assert_eq!(test.woken(), (0, 0));
        test.waker.wake_by_ref();
        assert_eq!(test.woken(), (0, 1));
    }

    #[test]
    fn a_connection_that_wakes_itself_is_polled_again() {
        let driver = ConnectionDriver::new(poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let (task, call) = (
            Arc::<CountingWaker>::default(),
            Arc::<CountingWaker>::default(),
        );
        let [in_task, in_call] = [&task, &call].map(|counter| Waker::from(counter.clone()));
        assert!(
            driver
                .poll_in_task(&Context::from_waker(&in_task))
                .is_pending()
        );
        assert_eq!((task.count(), call.count()), (1, 0));
        let cx = Context::from_waker(&in_call);
        assert!(
            driver
                .poll_for_call(&cx, |_| Poll::<()>::Pending)
                .is_pending()
        );
        assert_eq!((task.count(), call.count()), (1, 1));
        assert!(driver.poll_for_call(&cx, |_| Poll::Ready(())).is_ready());
        driver.clear_wake();
        driver.return_to_task();
        assert_eq!((task.count(), call.count()), (2, 1));
    }

    #[test]
    fn a_call_with_much_data_yields() {
        let test = TestDriver::new();
        let waker = Waker::from(test.call.clone());
        let cx = Context::from_waker(&waker);
        let asked = |_: &mut Context<'_>| Poll::Ready(());
        for turn in 1..4 {
            for _ in 0..MAX_CONSECUTIVE_READY {
                assert!(test.driver.poll_for_call(&cx, asked).is_ready());
            }
            assert!(test.driver.poll_for_call(&cx, asked).is_pending());
            assert_eq!(test.woken(), (0, turn));
        }
    }

    #[test]
    fn a_task_that_is_woken_from_elsewhere_wakes_the_call() {
        let test = TestDriver::new();
        assert_eq!(test.calls(0), 1);
        thread::scope(|scope| drop(scope.spawn(|| test.waker.wake_by_ref())));
        assert_eq!(test.woken(), (1, 0));
        assert!(test.in_task().is_pending());
        assert_eq!(test.woken(), (1, 1));
    }

    #[test]
    fn the_task_ends_with_its_connection() {
        let test = TestDriver::new();
        test.is_ended.set(true);
        assert_eq!(test.calls(0), 1);
        assert_eq!(test.woken(), (1, 0));
        assert!(test.in_task().is_ready());
        let other = TestDriver::new();
        other.driver.close();
        assert!(other.in_task().is_ready());
    }
}
