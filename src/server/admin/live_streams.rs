//! The limit and the counts of live streams.
//!
//! Used by `admin::api`, `admin::live`, `admin::serve` and `app::run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::telemetry::metrics::LiveStreamCounts;

/// The maximum number of live streams. It is well below the number of connections of ordinary requests, so that some
/// stay free for these.
const STREAMS: usize = 16;

/// The live streams of an admin listener. Clones share the limit and the counts.
#[derive(Debug, Clone)]
pub struct LiveStreams(Arc<Counted>);

#[derive(Debug)]
struct Counted {
    free: Arc<Semaphore>,
    opened: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Default for LiveStreams {
    fn default() -> LiveStreams {
        LiveStreams(Arc::new(Counted {
            free: Arc::new(Semaphore::new(STREAMS)),
            opened: AtomicU64::default(),
            refused: AtomicU64::default(),
            failed: AtomicU64::default(),
        }))
    }
}

impl LiveStreams {
    /// Returns the permit of one more stream; `None` if the limit is reached.
    pub(super) fn admit(&self) -> Option<OwnedSemaphorePermit> {
        let permit = self.0.free.clone().try_acquire_owned().ok();
        if permit.is_none() {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
        }
        permit
    }

    /// Counts a stream that begins.
    pub(super) fn opened(&self) {
        self.0.opened.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a stream that cannot begin.
    pub(super) fn failed(&self) {
        self.0.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts.
    #[must_use]
    pub fn counts(&self) -> LiveStreamCounts {
        LiveStreamCounts {
            open: (STREAMS - self.0.free.available_permits()) as u64,
            opened: self.0.opened.load(Ordering::Relaxed),
            refused: self.0.refused.load(Ordering::Relaxed),
            failed: self.0.failed.load(Ordering::Relaxed),
        }
    }
}
