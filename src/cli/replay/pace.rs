//! The pace of a replay: the shortest time between the starts of two calls. Used by `driver`.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::telemetry::clock;

/// The times at which calls may start.
#[derive(Debug)]
pub(super) struct Pace {
    interval: Duration,
    next: Instant,
}

impl Pace {
    /// Creates the pace of a number of calls per second; `None` for no limit.
    pub(super) fn new(rate: Option<u32>) -> Pace {
        Pace {
            interval: rate.map_or(Duration::ZERO, |rate| Duration::from_secs(1) / rate.max(1)),
            next: clock::now(),
        }
    }

    /// Waits until a call may start. Returns at once if the time has passed. Cancel-safe.
    pub(super) async fn ready(&self) {
        if self.next > clock::now() {
            sleep_until(self.next).await;
        }
    }

    /// Notes the start of a call. Calls after a pause start no faster than others.
    pub(super) fn start(&mut self) {
        self.next = self.next.max(clock::now()) + self.interval;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Starts this number of calls, and returns the milliseconds until the last one.
    async fn starts(pace: &mut Pace, calls: u32) -> u128 {
        let began = clock::now();
        for _ in 0..calls {
            pace.ready().await;
            pace.start();
        }
        (clock::now() - began).as_millis()
    }

    #[tokio::test(start_paused = true)]
    async fn calls_start_at_the_rate_and_no_faster_after_a_pause() {
        let mut pace = Pace::new(Some(20));
        assert_eq!(starts(&mut pace, 21).await, 1_000);
        sleep(Duration::from_secs(10)).await;
        assert_eq!(starts(&mut pace, 21).await, 1_000);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_no_call_waits() {
        assert_eq!(starts(&mut Pace::new(None), 1_000).await, 0);
    }
}
