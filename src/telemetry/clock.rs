//! The clock: the only code that reads the time of day and the CPU time, and the formatting of times.
//!
//! [`now`] reads the monotonic time. All other code takes the time as an argument, so that tests can choose it.
//!
//! Used in most modules.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::format_description::StaticFormatDescription;
use time::macros::{format_description, utc_datetime};
use time::{SignedDuration, UtcDateTime};

use dualgauge_model::time::Timestamp;

pub use dualgauge_net::clock::now;

const RFC_3339: StaticFormatDescription =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");
/// The last second that can be written.
const LAST: i64 = utc_datetime!(9999-12-31 23:59:59).unix_timestamp();

/// Returns the CPU time used by this process.
#[must_use]
pub fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(whole, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the time of day, for log lines and for display; never for measuring.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the only reader of the time of day"
)]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// A time formatted as RFC 3339, in UTC with milliseconds: `2026-02-03T04:05:06.789Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rfc3339(pub SystemTime);

impl Rfc3339 {
    /// Appends the formatted time to `text`.
    pub fn push_to(self, text: &mut String) {
        let milliseconds = SignedDuration::milliseconds(unix_milliseconds(self.0));
        let time = UtcDateTime::UNIX_EPOCH.saturating_add(milliseconds);
        // Formatting fails only if a part is missing.
        text.push_str(&time.format(RFC_3339).unwrap_or_default());
    }
}

/// A formatter of times as [`Rfc3339`]. Within one second it only rewrites the milliseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimestampCache(Option<CachedSecond>);

#[derive(Debug, Clone, Copy)]
struct CachedSecond {
    second: i64,
    text: [u8; 24],
}

impl TimestampCache {
    /// Appends the formatted time to `text`.
    pub fn push(&mut self, time: SystemTime, text: &mut String) {
        let milliseconds = unix_milliseconds(time);
        let second = milliseconds.div_euclid(1000);
        if let Some(last) = &mut self.0
            && last.second == second
        {
            put(&mut last.text[20..23], milliseconds.rem_euclid(1000));
            return text.push_str(std::str::from_utf8(&last.text).unwrap_or_default());
        }
        let start = text.len();
        Rfc3339(time).push_to(text);
        // A year before 0 is longer, and is not cached.
        let whole = text.as_bytes()[start..].try_into();
        self.0 = whole.ok().map(|text| CachedSecond { second, text });
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.push_to(&mut text);
        f.write_str(&text)
    }
}

/// Writes a number with as many digits as the slice has.
fn put(digits: &mut [u8], mut value: i64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value.rem_euclid(10)).unwrap_or_default();
        value /= 10;
    }
}

/// Returns the time of day as RFC 3339.
#[must_use]
pub fn rfc3339() -> String {
    Rfc3339(wall()).to_string()
}

/// Returns a time in milliseconds since 1970 as RFC 3339.
#[must_use]
pub fn rfc3339_ms(ms: u64) -> String {
    Rfc3339(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// Returns whole seconds since 1970, as in tokens; zero before 1970.
#[must_use]
pub fn whole_unix_seconds() -> u64 {
    wall()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Returns the current time in milliseconds since 1970; 0 before 1970.
#[must_use]
pub fn unix_ms() -> u64 {
    millis(wall())
}

/// Returns seconds since 1970, as in metrics; negative before 1970.
#[must_use]
pub fn unix_seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH).map_or_else(
        |before| -before.duration().as_secs_f64(),
        |since| since.as_secs_f64(),
    )
}

/// Returns whole milliseconds since 1970; 0 before 1970.
#[must_use]
pub fn millis(at: SystemTime) -> u64 {
    u64::try_from(unix_milliseconds(at)).unwrap_or(0)
}

/// Returns the whole second that contains a time.
#[must_use]
pub fn timestamp(at: SystemTime) -> Timestamp {
    Timestamp::from_unix(unix_milliseconds(at).div_euclid(1000))
}

/// Returns whole milliseconds since 1970, rounded down; at most those of the year 9999.
fn unix_milliseconds(at: SystemTime) -> i64 {
    const MOST: i64 = LAST * 1000 + 999;
    let whole =
        |time: Duration| i64::try_from(time.as_millis()).map_or(MOST, |time| time.min(MOST));
    match at.duration_since(UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(before) => -whole(before.duration() + Duration::from_nanos(999_999)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: i64) -> String {
        let distance = Duration::from_millis(milliseconds.unsigned_abs());
        let time = if milliseconds < 0 {
            UNIX_EPOCH - distance
        } else {
            UNIX_EPOCH + distance
        };
        Rfc3339(time).to_string()
    }

    #[test]
    fn times_are_written_in_utc_with_milliseconds() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_001, "2000-03-01T00:00:00.001Z"),
            (1_709_210_096_007, "2024-02-29T12:34:56.007Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (-86_400_000, "1969-12-31T00:00:00.000Z"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(at(milliseconds), text);
        }
    }

    #[test]
    fn part_of_a_millisecond_before_1970_belongs_to_the_one_before() {
        let time = UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(Rfc3339(time).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn cached_timestamps_equal_formatted_ones() {
        let mut cache = TimestampCache::default();
        for milliseconds in [
            7,
            999,
            1000,
            1001,
            999,
            253_402_300_800_000,
            253_402_300_800_001,
            -1,
            -2,
        ] {
            let distance = Duration::from_millis(i64::unsigned_abs(milliseconds));
            let time = match milliseconds {
                ..0 => UNIX_EPOCH - distance,
                _ => UNIX_EPOCH + distance,
            };
            let mut text = "at ".to_owned();
            cache.push(time, &mut text);
            assert_eq!(text, format!("at {}", Rfc3339(time)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_monotonic_clock_can_be_paused() {
        let before = now();
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(now() - before, Duration::from_secs(7));
    }

    #[test]
    fn seconds_for_metrics_have_a_sign() {
        assert_eq!(unix_seconds(UNIX_EPOCH + Duration::from_millis(1500)), 1.5);
        assert_eq!(unix_seconds(UNIX_EPOCH - Duration::from_millis(1500)), -1.5);
        assert!(unix_seconds(wall()) > 0.0);
    }
}
