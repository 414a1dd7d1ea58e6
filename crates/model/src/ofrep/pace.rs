//! The time of the next poll of a source. Used by `ofrep`.

use std::time::Duration;

use crate::time::Timestamp;

/// The longest delay after failures, unless the interval is longer.
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// The longest delay that a source may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// Returns the delay of the next poll. It is the interval, and each failure doubles it.
///
/// After failures, a random part of up to a quarter is taken off, so that replicas that lost the same source return at
/// different times. Each process has a seed of its own. A source may ask for a longer delay.
#[must_use]
pub fn poll_delay(
    interval: Duration,
    failures: u32,
    retry_after: Option<Duration>,
    seed: u64,
) -> Duration {
    let Some(doubled) = failures.checked_sub(1) else {
        return interval;
    };
    let longest = MAX_BACKOFF.max(interval);
    let whole = interval.saturating_mul(1 << doubled.min(16)).min(longest);
    let share = mixed(seed ^ u64::from(failures)) % 256;
    let backoff = whole - whole.mul_f64(share as f64 / 1024.0);
    let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
    backoff.max(asked)
}

/// Returns a number in which each bit depends on all bits of `seed`: the finalizer of SplitMix64.
const fn mixed(seed: u64) -> u64 {
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

/// Reads `Retry-After`: seconds or an HTTP date (RFC 9110 §10.2.3), or an RFC 3339 time, as in the OpenAPI document of
/// OFREP.
#[must_use]
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number beyond `u64` is limited as well.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let at = Timestamp::parse_http_date(text).or_else(|| Timestamp::parse(text).ok())?;
    Some(Duration::from_secs(at.since(now)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_delay_grows_to_its_maximum(failures in any::<u32>(), seed in any::<u64>(), seconds in 1_u64..3600) {
            let interval = Duration::from_secs(seconds);
            prop_assert_eq!(poll_delay(interval, 0, None, seed), interval);
            let delay = poll_delay(interval, failures.max(1), None, seed);
            prop_assert!(delay <= MAX_BACKOFF.max(interval));
            prop_assert!(delay >= interval.mul_f64(0.75));
            prop_assert!(poll_delay(interval, failures.max(20), None, seed) >= MAX_BACKOFF.mul_f64(0.75));
        }

        #[test]
        fn a_source_may_ask_for_a_longer_delay(failures in 1_u32..40, seed in any::<u64>(), seconds in any::<u64>()) {
            let asked = Duration::from_secs(seconds);
            let delay = poll_delay(Duration::from_secs(1), failures, Some(asked), seed);
            prop_assert!(delay >= asked.min(MAX_RETRY_AFTER));
            prop_assert!(delay <= MAX_RETRY_AFTER);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = retry_after(&text, Timestamp::from_unix(0));
        }
    }

    #[test]
    fn processes_return_at_different_times() {
        let second = Duration::from_secs(1);
        for failures in 1..8 {
            // Neighbours, and seeds with the same high or low bits.
            let seeds = (0..64).map(|number| 1_u64 << number).chain(0..64);
            let delays = seeds.map(|seed| poll_delay(second, failures, None, seed));
            let delays: std::collections::BTreeSet<_> = delays.collect();
            assert!(delays.len() > 64, "{failures}: {}", delays.len());
        }
    }

    #[test]
    fn retry_after_has_three_forms() {
        let now = Timestamp::parse("2024-02-07T11:59:00Z").unwrap();
        let minute = Some(Duration::from_secs(60));
        assert_eq!(retry_after("60", now), minute);
        assert_eq!(retry_after("2024-02-07T12:00:00Z", now), minute);
        assert_eq!(retry_after("Wed, 07 Feb 2024 12:00:00 GMT", now), minute);
        assert_eq!(
            retry_after("Wed, 07 Feb 2024 11:00:00 GMT", now),
            Some(Duration::ZERO)
        );
        assert_eq!(
            retry_after("99999999999999999999999", now),
            Some(Duration::from_secs(u64::MAX))
        );
        for wrong in ["", "soon", "-1", "1.5", "Wed, 07 Feb 2024"] {
            assert_eq!(retry_after(wrong, now), None, "{wrong}");
        }
    }
}
