//! The time of a recorded call.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::StaticFormatDescription;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcDateTime};

/// RFC 3339 in UTC with milliseconds.
const MILLISECONDS: StaticFormatDescription =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3]Z");

/// The last millisecond of the year 9999, which is the last that RFC 3339 can write.
const LAST: i64 = 253_402_300_799_999;

/// A time in milliseconds since 1970, UTC, up to the year 9999. Written as RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RecordedTime(i64);

impl RecordedTime {
    /// Returns the time this many milliseconds after 1970-01-01T00:00:00Z; a time outside of the years 1970 to 9999
    /// becomes the nearest one inside.
    #[must_use]
    pub fn from_unix_ms(milliseconds: i64) -> RecordedTime {
        RecordedTime(milliseconds.clamp(0, LAST))
    }

    /// Returns the milliseconds since 1970.
    #[must_use]
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// Parses an RFC 3339 time; digits after the milliseconds are dropped. Returns `None` for other texts, and for times
    /// outside of the years 1970 to 9999.
    #[must_use]
    pub fn parse(text: &str) -> Option<RecordedTime> {
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        let milliseconds = i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).ok()?;
        (0..=LAST)
            .contains(&milliseconds)
            .then_some(RecordedTime(milliseconds))
    }
}

impl fmt::Display for RecordedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = UtcDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000);
        let text = time.map_err(|_| fmt::Error)?.format(MILLISECONDS);
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl Serialize for RecordedTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordedTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RecordedTime, D::Error> {
        let text = String::deserialize(deserializer)?;
        RecordedTime::parse(&text).ok_or_else(|| {
            D::Error::custom("a time such as `2026-06-30T12:00:00.000Z` was expected")
        })
    }
}
