//! A timer that is reused for successive calls of a connection.
//!
//! Setting and cancelling a timer costs more than most of the operations it bounds. So this one stays registered, and
//! is set again if it fires too early; most never fire. Laws: it fires at the deadline of the last poll, and not
//! before; the task that polled last is woken.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// A timer of one connection.
#[derive(Debug, Default)]
pub struct ReusableTimer {
    sleep: Option<Pin<Box<Sleep>>>,
    /// The waker that the pending sleep has registered.
    woken: Option<Waker>,
}

impl ReusableTimer {
    /// Returns ready when the deadline has passed. If pending, the task is woken then, and possibly before.
    pub fn poll(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        let is_early = sleep.deadline() <= at && !sleep.is_elapsed();
        let wakes = |woken: &Waker| woken.will_wake(cx.waker());
        if is_early && self.woken.as_ref().is_some_and(wakes) {
            return Poll::Pending;
        }
        self.woken = None;
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
        }
        // Unconstrained: with its cooperative budget exhausted, the sleep would not register the waker.
        while pin!(unconstrained(sleep.as_mut())).poll(cx).is_ready() {
            if sleep.deadline() >= at {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(at);
        }
        self.woken = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Waits for `awaited` until the deadline; returns `None` after it.
    pub async fn until<F: Future>(
        &mut self,
        at: Instant,
        mut awaited: Pin<&mut F>,
    ) -> Option<F::Output> {
        poll_fn(|cx| match awaited.as_mut().poll(cx) {
            Poll::Ready(come) => Poll::Ready(Some(come)),
            Poll::Pending => self.poll(at, cx).map(|()| None),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use super::*;
    use crate::clock;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn it_fires_at_the_last_deadline_whether_later_or_earlier_than_before() {
        let mut timer = ReusableTimer::default();
        for seconds in [3, 5, 1, 1, 7, 2] {
            let began = clock::now();
            let at = began + seconds * SECOND;
            assert_eq!(timer.until(at, pin!(ready(seconds))).await, Some(seconds));
            // The timer stays set, and is polled for another time.
            let polled = poll_fn(|cx| Poll::Ready(timer.poll(at + SECOND, cx)));
            assert!(polled.await.is_pending());
            assert_eq!(timer.until(at, pin!(pending::<()>())).await, None);
            assert_eq!(clock::now() - began, seconds * SECOND);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_past_deadline_fires_at_once() {
        let mut timer = ReusableTimer::default();
        let began = clock::now();
        assert_eq!(timer.until(began, pin!(pending::<()>())).await, None);
        tokio::time::advance(SECOND).await;
        assert_eq!(timer.until(began, pin!(pending::<()>())).await, None);
        assert_eq!(clock::now() - began, SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_waiter_is_woken() {
        let mut timer = ReusableTimer::default();
        let at = clock::now() + SECOND;
        let mut no_future = Context::from_waker(Waker::noop());
        assert!(timer.poll(at, &mut no_future).is_pending());
        assert_eq!(timer.until(at, pin!(pending::<()>())).await, None);
    }
}
