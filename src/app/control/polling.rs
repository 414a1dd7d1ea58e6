//! The polls of the source of flags, one at a time. Used by `control::source` and `control::task`.

use std::pin::Pin;
use std::time::Duration;

use http::HeaderValue;
use tokio::time::{Instant, sleep_until};

use crate::store::{PollError, PolledFlags, SourceSettings};
use crate::telemetry::clock::now;

/// The result of a poll.
#[derive(Debug)]
pub(super) struct PollOutcome {
    /// The settings of the poll.
    pub(super) settings: SourceSettings,
    /// The values, or the reason why there are none.
    pub(super) result: Result<PolledFlags, PollError>,
}

/// The running poll, or the time of the next one.
pub(super) struct SourcePolls {
    running: Option<Pin<Box<dyn Future<Output = PollOutcome>>>>,
    next: Instant,
    /// The settings of the last poll. Others are used at once.
    last: Option<SourceSettings>,
}

impl SourcePolls {
    /// Starts with a poll that is due.
    pub(super) fn new() -> SourcePolls {
        SourcePolls {
            running: None,
            next: now(),
            last: None,
        }
    }

    /// Returns the result of the next poll, with these settings and this tag. Never completes without settings.
    /// Cancel-safe: a running poll continues with the next call, and there is only one.
    pub(super) async fn next(
        &mut self,
        request: Option<(SourceSettings, Option<HeaderValue>)>,
    ) -> PollOutcome {
        let Some((settings, tag)) = request else {
            self.running = None;
            return std::future::pending().await;
        };
        if self.last.as_ref() != Some(&settings) {
            self.running = None;
            self.next = now();
            self.last = Some(settings.clone());
        }
        if self.running.is_none() {
            sleep_until(self.next).await;
        }
        let running = self.running.get_or_insert_with(|| {
            Box::pin(async move {
                let result = settings.poll(tag.as_ref()).await;
                PollOutcome { settings, result }
            })
        });
        let outcome = running.await;
        self.running = None;
        outcome
    }

    /// Sets the delay of the next poll.
    pub(super) fn wait(&mut self, delay: Duration) {
        self.next = now() + delay;
    }
}
