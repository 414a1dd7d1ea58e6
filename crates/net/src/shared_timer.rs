//! hyper's timer for the idle time between two requests: one timer per connection instead of one per request.
//!
//! Law: the time restarts while a part of a response is still buffered that hyper considers sent. The write timeout
//! bounds how long a client may leave such data unread.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

use crate::clock;
use crate::{ReusableTimer, ThreadBound, WriteControl};

/// The timer of one connection; only the latest deadline applies.
#[derive(Debug, Clone)]
pub struct SharedTimer(ThreadBound<TimerState>);

#[derive(Debug)]
struct TimerState {
    timer: ReusableTimer,
    write_control: WriteControl,
    /// The idle limit, counted from when nothing is buffered.
    limit: Duration,
}

struct Deadline {
    timer: SharedTimer,
    at: Instant,
}

impl SharedTimer {
    /// Creates the timer of a connection with this write control and idle limit.
    pub fn new(write_control: WriteControl, limit: Duration) -> SharedTimer {
        SharedTimer(ThreadBound::new(TimerState {
            timer: ReusableTimer::default(),
            write_control,
            limit,
        }))
    }
}

impl Timer for SharedTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, at: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline {
            timer: self.clone(),
            at: at.into(),
        })
    }

    fn now(&self) -> std::time::Instant {
        clock::now().into_std()
    }
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut shared = this.timer.0.get();
        if shared.write_control.buffered() > 0 {
            this.at = clock::now() + shared.limit;
        }
        shared.timer.poll(this.at, cx)
    }
}
