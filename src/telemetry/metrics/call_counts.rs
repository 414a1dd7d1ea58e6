//! The durations of calls. Used by `metrics::named` and `metrics::shard`.

use super::histogram::{Histogram, LATENCY};

/// The durations of the calls with one set of labels. Their number is the count of `duration`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallCounts {
    pub(super) duration: Histogram,
    pub(super) upstream: Histogram,
}

impl CallCounts {
    pub(super) fn add(&mut self, other: &CallCounts) {
        self.duration.add(&other.duration);
        self.upstream.add(&other.upstream);
    }
}

impl Default for CallCounts {
    fn default() -> Self {
        CallCounts {
            duration: Histogram::new(&LATENCY),
            upstream: Histogram::new(&LATENCY),
        }
    }
}
