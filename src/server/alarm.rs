//! What hyper measures the time between two requests with: one alarm for a connection, and not a timer for each request.
//!
//! Law: it does not ring while some of an answer has yet to go, of which hyper has been told that it is sent. How long a
//! client may take nothing of that is for the pace of writes.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

use crate::telemetry::clock;
use crate::upstream::{Alarm, Local, Reins};

/// The timer of one connection. Of its times, the last one rings.
#[derive(Debug, Clone)]
pub(super) struct OneAlarm(Local<Shared>);

#[derive(Debug)]
struct Shared {
    alarm: Alarm,
    reins: Reins,
}

struct Deadline {
    alarm: OneAlarm,
    at: Instant,
    /// How long it is waited for at most, from when nothing is late.
    length: Duration,
}

impl OneAlarm {
    /// The timer of the connection whose socket has these reins.
    pub(super) fn new(reins: Reins) -> OneAlarm {
        let alarm = Alarm::default();
        OneAlarm(Local::new(Shared { alarm, reins }))
    }
}

impl Timer for OneAlarm {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, at: std::time::Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline {
            alarm: self.clone(),
            at: at.into(),
            length: at.saturating_duration_since(self.now()),
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
        ready!(shared.alarm.poll(this.at, cx));
        if shared.reins.late() == 0 {
            return Poll::Ready(());
        }
        this.at = clock::now() + this.length;
        shared.alarm.poll(this.at, cx)
    }
}
