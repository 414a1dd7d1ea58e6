//! Latency histograms with fixed buckets, so that any two of them can be added.
//!
//! Four buckets for each doubling, from 0.512 ms to 67 s. A bucket is at most a quarter wider than its lower edge,
//! which bounds the error of a quantile. Finding a bucket takes only shifts.
//!
//! Used by `rollout::guard::comparison`.

use std::fmt;
use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The exponent of the first edge: times below 2^9 µs share the first bucket.
const FIRST: usize = 9;
/// The number of doublings, from 2^9 µs to 2^26 µs.
const DOUBLINGS: usize = 17;
/// The buckets of a doubling, as a power of two.
const STEPS: usize = 2;
/// The number of buckets, with one for shorter and one for longer times.
const BUCKETS: usize = 2 + (DOUBLINGS << STEPS);

/// A histogram of latencies.
///
/// ```
/// use std::time::Duration;
/// use dualgauge_model::rollout::Latency;
/// let mut latency = Latency::default();
/// (1..=100).for_each(|millis| latency.record(Duration::from_millis(millis)));
/// let median = latency.quantile(0.5).unwrap().as_secs_f64();
/// assert!((0.040..=0.0625).contains(&median));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Latency([u64; BUCKETS]);

impl Default for Latency {
    fn default() -> Latency {
        Latency([0; BUCKETS])
    }
}

impl Latency {
    /// Counts a call that took `took`.
    pub fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = self.0.get_mut(index(micros)) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// Returns the number of counted calls.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Returns the time that a share of the calls, from 0 to 1, did not exceed; `None` without calls. The result lies
    /// in the right bucket and assumes an even distribution within it.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        Some(self.at_rank(share.clamp(0.0, 1.0) * as_f64(count)))
    }

    /// Returns the time of the call at a rank, in the order of latencies.
    fn at_rank(&self, rank: f64) -> Duration {
        let mut before = 0.0;
        let mut last = 0;
        for (index, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = as_f64(*count);
            if before + count >= rank {
                let into = ((rank - before) / count).clamp(0.0, 1.0);
                let (from, to) = (as_f64(edge(index)), as_f64(edge(index + 1)));
                return Duration::from_secs_f64((from + (to - from) * into) / 1e6);
            }
            before += count;
            last = index;
        }
        Duration::from_micros(edge(last + 1))
    }

    /// Adds another histogram.
    pub fn add(&mut self, other: &Latency) {
        for (count, other) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(other);
        }
    }

    /// Returns the growth since an earlier histogram of the same counter.
    #[must_use]
    pub fn since(&self, earlier: &Latency) -> Latency {
        let mut later = self.clone();
        for (count, earlier) in later.0.iter_mut().zip(earlier.0) {
            *count = count.saturating_sub(earlier);
        }
        later
    }
}

/// Converts counts and microseconds to floats; the loss of precision above 2^53 does not matter here.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than 53 bits"
)]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// Returns the bucket of a time.
fn index(micros: u64) -> usize {
    let Some(power) = micros.checked_ilog2().map(|power| power as usize) else {
        return 0;
    };
    if power < FIRST {
        return 0;
    }
    let step = (micros >> (power - STEPS)) & ((1 << STEPS) - 1);
    let step = usize::try_from(step).unwrap_or_default();
    (1 + ((power - FIRST) << STEPS) + step).min(BUCKETS - 1)
}

/// Returns the lower edge of a bucket in microseconds. The last bucket also ends there.
fn edge(index: usize) -> u64 {
    let Some(above) = index.min(BUCKETS - 1).checked_sub(1) else {
        return 0;
    };
    let (power, step) = (FIRST + (above >> STEPS), above & ((1 << STEPS) - 1));
    ((1 << STEPS) + step as u64) << (power - STEPS)
}

impl fmt::Debug for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = self
            .filled()
            .map(|(index, count)| (Duration::from_micros(edge(usize::from(index))), count));
        f.debug_map().entries(times).finish()
    }
}

impl Latency {
    /// Returns the buckets that are not empty.
    fn filled(&self) -> impl Iterator<Item = (u8, u64)> {
        let numbered = (0..).zip(self.0);
        numbered.filter(|(_, count)| *count > 0)
    }
}

/// Serializes the non-empty buckets as pairs of bucket and count: `[[12,3],[13,1]]`.
impl Serialize for Latency {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.filled())
    }
}

impl<'de> Deserialize<'de> for Latency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Latency, D::Error> {
        let filled = Vec::<(u8, u64)>::deserialize(deserializer)?;
        let mut latency = Latency::default();
        for (index, count) in filled {
            let bucket = latency.0.get_mut(usize::from(index));
            *bucket.ok_or_else(|| D::Error::custom(format!("there is no bucket {index}")))? = count;
        }
        Ok(latency)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_buckets_follow_each_other_without_a_gap() {
        for bucket in 1..BUCKETS {
            assert_eq!(index(edge(bucket)), bucket);
            assert_eq!(index(edge(bucket) - 1), bucket - 1);
        }
        assert_eq!(edge(1), 512);
        assert_eq!(edge(BUCKETS - 1), 1 << 26);
        assert_eq!(index(u64::MAX), BUCKETS - 1);
        assert_eq!(index(0), 0);
    }

    #[test]
    fn nothing_counted_has_no_quantile() {
        assert_eq!(Latency::default().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn a_quantile_is_at_most_a_quarter_off(times in prop::collection::vec(512u64..60_000_000, 1..200), share in 0.01f64..=1.0) {
            let mut latency = Latency::default();
            times.iter().for_each(|micros| latency.record(Duration::from_micros(*micros)));
            let mut sorted = times.clone();
            sorted.sort_unstable();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank within the list")]
            let rank = ((share * as_f64(sorted.len() as u64)).ceil() as usize).clamp(1, sorted.len());
            let exact = as_f64(sorted[rank - 1]);
            let found = latency.quantile(share).unwrap().as_secs_f64() * 1e6;
            prop_assert!(found >= exact / 1.2501 && found <= exact * 1.2501, "{found} for {exact}");
        }

        #[test]
        fn a_histogram_survives_a_round_trip(times in prop::collection::vec(any::<u64>(), 0..50)) {
            let mut latency = Latency::default();
            times.iter().for_each(|micros| latency.record(Duration::from_micros(*micros)));
            let text = serde_json::to_string(&latency).unwrap();
            prop_assert_eq!(serde_json::from_str::<Latency>(&text).unwrap(), latency);
        }
    }
}
