//! The minimum rate of a body sent by a client.
//!
//! Law: only time spent waiting for the client counts, from a read without data to the next read with data.
//!
//! Used by `incoming_body`.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::clock;
use dualgauge_transport::upload_rate::MinimumRate;

/// The rate measurement of one body.
#[derive(Debug)]
pub(super) struct UploadPace {
    rate: MinimumRate,
    received: u64,
    /// The time spent waiting for the client, before the current wait.
    waited: Duration,
    waits_since: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl UploadPace {
    pub(super) fn new(rate: MinimumRate) -> UploadPace {
        UploadPace {
            rate,
            received: 0,
            waited: Duration::ZERO,
            waits_since: None,
            timer: None,
        }
    }

    /// Returns the minimum rate.
    pub(super) fn rate(&self) -> MinimumRate {
        self.rate
    }

    /// Counts bytes received from the client, and ends the current wait.
    pub(super) fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
        if let Some(since) = self.waits_since.take() {
            self.waited += clock::now() - since;
        }
    }

    /// Waits for the client. Ready means that the client was too slow.
    pub(super) fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let since = *self.waits_since.get_or_insert_with(clock::now);
        let remaining = self
            .rate
            .allowance(self.received)
            .saturating_sub(self.waited);
        // Bounded to a day, which is as good as never.
        let remaining = remaining.min(Duration::from_secs(24 * 60 * 60));
        let end = since + remaining;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::num::NonZeroU64;

    use tokio::time::{advance, timeout};

    use super::*;

    fn pace() -> UploadPace {
        UploadPace::new(MinimumRate {
            bytes: NonZeroU64::new(240).unwrap(),
            grace: Duration::from_secs(5),
        })
    }

    /// Returns the wait until the client is too slow, if that is within `limit`.
    async fn lasts(pace: &mut UploadPace, limit: Duration) -> Option<Duration> {
        let began = clock::now();
        let slow = timeout(limit, poll_fn(|cx| pace.poll_too_slow(cx)));
        slow.await.ok().map(|()| clock::now() - began)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_nothing_has_the_grace_time() {
        let took = lasts(&mut pace(), 60 * SECOND).await.unwrap();
        assert!((5 * SECOND..6 * SECOND).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_trickles_ends_and_one_that_keeps_the_rate_does_not() {
        let mut slow = pace();
        let mut seconds = 0;
        while lasts(&mut slow, SECOND).await.is_none() {
            slow.received(120);
            seconds += 1;
        }
        // Each second earns half of one, and the last wait is cut short.
        assert!((8..=9).contains(&seconds), "{seconds}");
        let mut steady = pace();
        for _ in 0..1000 {
            assert_eq!(lasts(&mut steady, SECOND).await, None);
            steady.received(240);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_upstream_takes_no_more_does_not_count() {
        let mut pace = pace();
        for _ in 0..10 {
            assert_eq!(lasts(&mut pace, SECOND / 10).await, None);
            pace.received(1);
            advance(60 * SECOND).await;
        }
        let took = lasts(&mut pace, 60 * SECOND).await.unwrap();
        assert!(took > 3 * SECOND, "{took:?}");
    }
}
