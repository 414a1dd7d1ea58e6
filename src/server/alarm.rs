//! What hyper measures the time between two requests with: one alarm for a connection, and not a timer for each request.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Sleep, Timer};
use tokio::time::Instant;

use crate::telemetry::clock;
use crate::upstream::{Alarm, Local};

/// The timer of one connection. Of its times, the last one rings.
#[derive(Debug, Clone, Default)]
pub(super) struct OneAlarm(Local<Alarm>);

struct Deadline {
    alarm: OneAlarm,
    at: Instant,
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

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.0.get().poll(self.at, cx)
    }
}
