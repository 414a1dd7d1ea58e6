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
use crate::upstream::{Alarm, Local, Reins};

/// The timer of one connection. Of its times, the last one rings.
#[derive(Debug, Clone)]
pub(super) struct OneAlarm(Local<Shared>);

#[derive(Debug)]
struct Shared {
    alarm: Alarm,
    reins: Reins,
    /// What hyper waits for, from when nothing is late.
    limit: Duration,
}

struct Deadline {
    alarm: OneAlarm,
    at: Instant,
}

impl OneAlarm {
    /// The timer of the connection whose socket has these reins, and of which hyper waits for so long.
    pub(super) fn new(reins: Reins, limit: Duration) -> OneAlarm {
        OneAlarm(Local::new(Shared {
            alarm: Alarm::default(),
            reins,
            limit,
        }))
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
        if shared.reins.late() > 0 {
            this.at = clock::now() + shared.limit;
        }
        shared.alarm.poll(this.at, cx)
    }
}
