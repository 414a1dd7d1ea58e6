//! The percentiles of a number of times, in constant memory. Used by `summary`.

use std::time::Duration;

/// The buckets of each power of two: a percentile is at most 1/32 too small.
const STEPS: u64 = 32;
/// The buckets up to an hour.
const BUCKETS: usize = 1024;

/// A histogram of times.
#[derive(Debug, Clone, Default)]
pub(super) struct Latencies {
    counts: Vec<u64>,
    total: u64,
    longest_us: u64,
}

impl Latencies {
    pub(super) fn add(&mut self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        if let Some(count) = self.counts.get_mut(bucket(us).min(BUCKETS - 1)) {
            *count += 1;
        }
        self.total += 1;
        self.longest_us = self.longest_us.max(us);
    }

    /// Returns the microseconds that this percentage of the times does not exceed; `None` without a time.
    pub(super) fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let index = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        Some(start(index).min(self.longest_us))
    }

    /// Returns the longest time in microseconds; `None` without a time.
    pub(super) fn longest(&self) -> Option<u64> {
        (self.total > 0).then_some(self.longest_us)
    }
}

/// Returns the index of the bucket of a time: exact up to 63, then 32 buckets for each power of two.
fn bucket(us: u64) -> usize {
    let power = u64::from(us.max(1).ilog2()).saturating_sub(5);
    usize::try_from(power * STEPS + (us >> power)).unwrap_or(usize::MAX)
}

/// Returns the shortest time of a bucket.
fn start(index: usize) -> u64 {
    let index = index as u64;
    let power = (index / STEPS).saturating_sub(1);
    (index - power * STEPS) << power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_begins_at_most_a_thirty_second_below_its_times() {
        for us in (0..5_000_u64).chain((13..31).map(|power| (1 << power) + 77)) {
            let begin = start(bucket(us));
            assert!(begin <= us && us - begin <= us / 32, "{us}: {begin}");
        }
        assert!(bucket(3_600_000_000) < BUCKETS);
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let mut latencies = Latencies::default();
        assert_eq!(
            (latencies.percentile(50), latencies.longest()),
            (None, None)
        );
        for us in 1..=60 {
            latencies.add(Duration::from_micros(us));
        }
        assert_eq!(latencies.percentile(50), Some(30));
        assert_eq!(latencies.percentile(99), Some(60));
        latencies.add(Duration::from_secs(90_000));
        assert_eq!(latencies.longest(), Some(90_000_000_000));
    }
}
