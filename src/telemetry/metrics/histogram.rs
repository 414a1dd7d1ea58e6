//! Histograms of durations with fixed buckets. Used by `metrics`.

use std::time::Duration;

/// The upper bounds of the buckets in nanoseconds, ascending; an unbounded bucket follows them.
pub(super) type BucketBounds = [u64; 15];

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;
const S: u64 = 1_000 * MS;

/// The bounds for whole calls and for upstreams: half a millisecond to half a minute.
pub(super) const LATENCY: BucketBounds = [
    MS / 2,
    MS,
    5 * MS / 2,
    5 * MS,
    10 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    250 * MS,
    500 * MS,
    S,
    5 * S / 2,
    5 * S,
    10 * S,
    30 * S,
];

/// The bounds for the proxy's own share of a call, which is much smaller.
pub(super) const OVERHEAD: BucketBounds = [
    10 * US,
    25 * US,
    50 * US,
    100 * US,
    250 * US,
    500 * US,
    MS,
    5 * MS / 2,
    5 * MS,
    10 * MS,
    25 * MS,
    50 * MS,
    100 * MS,
    500 * MS,
    5 * S,
];

/// A histogram of durations. The sum is in whole nanoseconds, so that it does not depend on the order of additions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Histogram {
    bounds: &'static BucketBounds,
    counts: [u64; 16],
    nanoseconds: u64,
}

impl Histogram {
    pub(super) const fn new(bounds: &'static BucketBounds) -> Histogram {
        Histogram {
            bounds,
            counts: [0; 16],
            nanoseconds: 0,
        }
    }

    /// Counts one duration. A bucket includes its upper bound.
    pub(super) fn observe(&mut self, value: Duration) {
        let nanoseconds = u64::try_from(value.as_nanos()).unwrap_or(u64::MAX);
        let bucket = self.bounds.partition_point(|bound| *bound < nanoseconds);
        self.counts[bucket] += 1;
        self.nanoseconds = self.nanoseconds.saturating_add(nanoseconds);
    }

    /// Adds the counts of a histogram with the same bounds.
    pub(super) fn add(&mut self, other: &Histogram) {
        debug_assert_eq!(self.bounds, other.bounds);
        for (own, count) in self.counts.iter_mut().zip(other.counts) {
            *own += count;
        }
        self.nanoseconds = self.nanoseconds.saturating_add(other.nanoseconds);
    }

    /// Returns the number of durations.
    pub(super) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum in seconds.
    pub(super) fn seconds(&self) -> f64 {
        seconds(self.nanoseconds)
    }

    /// Returns an estimate of a quantile in seconds, by linear interpolation within its bucket; zero without durations.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let rank = self.count() as f64 * share;
        let (mut before, mut lower) = (0.0, 0.0);
        for (bound, count) in self.bounds.iter().zip(self.counts) {
            let (bound, count) = (seconds(*bound), count as f64);
            if count > 0.0 && before + count >= rank {
                return lower + (bound - lower) * (rank - before) / count;
            }
            before += count;
            lower = bound;
        }
        // All beyond the last bound count as that bound.
        if self.count() == 0 { 0.0 } else { lower }
    }

    /// Returns, for each bound in seconds, the number of durations up to it.
    pub(super) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut under = 0;
        self.bounds.iter().zip(self.counts).map(move |(bound, n)| {
            under += n;
            (seconds(*bound), under)
        })
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / S as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_rise_and_print_short() {
        for bounds in [&LATENCY, &OVERHEAD] {
            assert!(bounds.is_sorted_by(|a, b| a < b));
            for bound in bounds {
                assert!(seconds(*bound).to_string().len() <= 8, "{bound}");
            }
        }
    }

    #[test]
    fn a_bound_belongs_to_its_own_bucket_and_a_nanosecond_more_does_not() {
        let mut histogram = Histogram::new(&LATENCY);
        histogram.observe(Duration::from_millis(1));
        histogram.observe(Duration::from_millis(1) + Duration::from_nanos(1));
        let under: Vec<_> = histogram.cumulative().take(3).collect();
        assert_eq!(under, [(0.0005, 0), (0.001, 1), (0.0025, 2)]);
    }

    #[test]
    fn a_quantile_lies_in_its_bucket() {
        let mut histogram = Histogram::new(&LATENCY);
        assert_eq!(histogram.quantile(0.5), 0.0);
        for _ in 0..9 {
            histogram.observe(Duration::from_millis(4));
        }
        histogram.observe(Duration::from_secs(99));
        let median = histogram.quantile(0.5);
        assert!(median > 0.0025 && median <= 0.005, "{median}");
        assert_eq!(histogram.quantile(0.99), 30.0);
    }

    #[test]
    fn the_longest_durations_are_counted_beyond_all_bounds() {
        let mut histogram = Histogram::new(&LATENCY);
        histogram.observe(Duration::MAX);
        histogram.observe(Duration::MAX);
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.cumulative().last(), Some((30.0, 0)));
        assert_eq!(histogram.nanoseconds, u64::MAX);
    }
}
