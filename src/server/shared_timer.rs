//! What hyper measures the time between two requests with: one alarm for a connection, and not a timer for each request.
//!
//! Law: the time begins anew while some of an answer has yet to go, of which hyper has been told that it is sent. How long a
//! client may take nothing of that is for the pace of writes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

use crate::telemetry::clock;
use crate::upstream::{ReusableTimer, ThreadBound, WriteControl};

/// The timer of one connection. Of its times, the last one rings.
#[derive(Debug, Clone)]
pub(super) struct SharedTimer(ThreadBound<TimerState>);

#[derive(Debug)]
struct TimerState {
    alarm: ReusableTimer,
    reins: WriteControl,
    /// What hyper waits for, from when nothing is late.
    limit: Duration,
}

struct Deadline {
    alarm: SharedTimer,
    at: Instant,
}

impl SharedTimer {
    /// The timer of the connection whose socket has these reins, and of which hyper waits for so long.
    pub(super) fn new(reins: WriteControl, limit: Duration) -> SharedTimer {
        SharedTimer(ThreadBound::new(TimerState {
            alarm: ReusableTimer::default(),
            reins,
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
            alarm: self.clone(),
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
        let mut shared = this.alarm.0.get();
        if shared.reins.buffered() > 0 {
            this.at = clock::now() + shared.limit;
        }
        shared.alarm.poll(this.at, cx)
    }
}
