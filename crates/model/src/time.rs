//! Timestamps: parsing and formatting of calendar dates.
//!
//! This module does not read a clock. Law: `parse` reads what `Display` writes.
//!
//! Used in most modules.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::format_description::StaticFormatDescription;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, SignedDuration, UtcDateTime};

/// RFC 3339 in UTC with whole seconds.
const RFC_3339: StaticFormatDescription =
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]Z");
/// An HTTP date (RFC 9110 §5.6.7).
const HTTP_DATE: StaticFormatDescription = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// A timestamp in whole seconds since 1970, UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// The reason why a text is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimestampError {
    /// The text has another form.
    #[error("write a date such as `2026-06-30`, or a time such as `2026-06-30T12:00:00Z`")]
    Form,
    /// There is no such day or time of day.
    #[error("there is no such day or time in the years 1970 to 9999")]
    NoSuchDay,
    /// A time of day without an offset from UTC.
    #[error("the offset from UTC is missing; write it after the time, such as `Z` or `+02:00`")]
    NoOffset,
}

impl Timestamp {
    /// Returns the timestamp this many seconds after 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_unix(seconds: i64) -> Timestamp {
        Timestamp(seconds)
    }

    /// Returns the seconds since 1970.
    #[must_use]
    pub const fn unix(self) -> i64 {
        self.0
    }

    /// Returns the seconds since an earlier timestamp; zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Timestamp) -> u64 {
        let seconds = self.0.saturating_sub(earlier.0);
        if seconds < 0 {
            0
        } else {
            seconds.unsigned_abs()
        }
    }

    /// Returns the timestamp this many seconds earlier.
    #[must_use]
    pub const fn before(self, seconds: u64) -> Timestamp {
        Timestamp(self.0.saturating_sub_unsigned(seconds))
    }

    /// Parses an RFC 3339 time, or a date, which stands for its first second in UTC. Fractions of a second are dropped.
    ///
    /// # Errors
    /// [`TimestampError`].
    ///
    /// ```
    /// use dualgauge_model::time::Timestamp;
    /// let noon = Timestamp::parse("2023-06-30T23:59:59Z").unwrap();
    /// assert_eq!(noon.unix(), 1_688_169_599);
    /// assert_eq!(Timestamp::parse("2023-07-01T01:59:59+02:00"), Ok(noon));
    /// assert!(Timestamp::parse("2023-06-30T12:00:00").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
        let text = text.trim();
        let (date, time) = text.split_once(['T', 't', ' ']).unwrap_or((text, "00:00Z"));
        let (time, offset) = time.split_at(time.find(['Z', 'z', '+', '-']).unwrap_or(time.len()));
        let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
        let seconds = if has_form(time, "00:00") { ":00" } else { "" };
        let is_time = !seconds.is_empty() || has_form(time, "00:00:00");
        let is_fraction =
            !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
        let is_offset = ["", "Z", "z", "+00:00", "-00:00"]
            .iter()
            .any(|form| has_form(offset, form));
        if !(has_form(date, "0000-00-00") && is_time && is_fraction && is_offset) {
            return Err(TimestampError::Form);
        }
        // A wrong day is reported before a missing offset.
        let known =
            |offset| OffsetDateTime::parse(&format!("{date}T{time}{seconds}{offset}"), &Rfc3339);
        let found = known(if offset.is_empty() { "Z" } else { offset });
        // The fraction is never passed on: a nonzero one stands for a leap second, which UTC timestamps cannot express.
        let found = found.ok();
        let found = found.filter(|found| found.year() >= 1970 && found.nanosecond() == 0);
        let found = found.ok_or(TimestampError::NoSuchDay)?;
        if offset.is_empty() {
            return Err(TimestampError::NoOffset);
        }
        Ok(Timestamp(found.unix_timestamp()))
    }

    /// Parses an HTTP date in its preferred form (RFC 9110 §5.6.7).
    #[must_use]
    pub fn parse_http_date(text: &str) -> Option<Timestamp> {
        let time = UtcDateTime::parse(text, HTTP_DATE).ok()?;
        Some(Timestamp(time.unix_timestamp()))
    }

    /// Formats the timestamp as an HTTP date (RFC 9110 §5.6.7): `Mon, 31 Dec 2018 23:59:59 GMT`.
    #[must_use]
    pub fn http_date(self) -> String {
        self.format(HTTP_DATE)
    }

    fn format(self, form: StaticFormatDescription) -> String {
        // Years before -9999 and after 9999 are written as these.
        let time = UtcDateTime::UNIX_EPOCH.saturating_add(SignedDuration::seconds(self.0));
        // Formatting fails only if a part is missing.
        time.format(form).unwrap_or_default()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format(RFC_3339))
    }
}

/// Returns true if the text is the form with any digits in place of its zeros.
fn has_form(text: &str, form: &str) -> bool {
    let is_same = |(byte, form): (u8, u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    };
    text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_same)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of RFC 9745 §2.1, RFC 8594 §3 and RFC 9110 §5.6.7.
    #[test]
    fn the_dates_of_the_standards_are_written_as_they_write_them() {
        let cases = [
            (
                "2023-06-30T23:59:59Z",
                1_688_169_599,
                "Fri, 30 Jun 2023 23:59:59 GMT",
            ),
            (
                "2018-12-31T23:59:59Z",
                1_546_300_799,
                "Mon, 31 Dec 2018 23:59:59 GMT",
            ),
            (
                "1994-11-06T08:49:37Z",
                784_111_777,
                "Sun, 06 Nov 1994 08:49:37 GMT",
            ),
            ("1970-01-01", 0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        ];
        for (text, unix, date) in cases {
            let moment = Timestamp::parse(text).unwrap();
            assert_eq!((moment.unix(), &*moment.http_date()), (unix, date));
            assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        let noon = Ok(Timestamp::from_unix(1_709_208_000));
        for text in [
            "2024-02-29T12:00:00Z",
            "2024-02-29t12:00:00z",
            "2024-02-29 12:00:00.999Z",
            "2024-02-29T12:00Z",
            "2024-02-29T14:30:00+02:30",
            "2024-02-28T23:00:00-13:00",
            " 2024-02-29T12:00:00Z ",
        ] {
            assert_eq!(Timestamp::parse(text), noon, "{text}");
        }
        for (text, error) in [
            ("2024-02-29T12:00:00", TimestampError::NoOffset),
            ("2023-02-29", TimestampError::NoSuchDay),
            ("2024-13-01", TimestampError::NoSuchDay),
            ("1969-12-31", TimestampError::NoSuchDay),
            ("2024-01-01T24:00:00Z", TimestampError::NoSuchDay),
            ("2016-12-31T23:59:60Z", TimestampError::NoSuchDay),
            ("2017-01-01T01:59:60+02:00", TimestampError::NoSuchDay),
            ("2024-01-01T00:00:00+24:00", TimestampError::NoSuchDay),
            ("2024-1-1", TimestampError::Form),
            ("2024-01-01T", TimestampError::Form),
            ("2024-01-01T12Z", TimestampError::Form),
            ("2024-01-01T12:00:00.Z", TimestampError::Form),
            ("2024-01-01T12:00:00Zz", TimestampError::Form),
            ("12:00:00", TimestampError::Form),
            ("", TimestampError::Form),
            ("@1688169599", TimestampError::Form),
            ("2024-01-01T12:00:00+ä2:0", TimestampError::Form),
        ] {
            assert_eq!(Timestamp::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn moments_before_others_never_wrap() {
        let early = Timestamp::from_unix(5);
        assert_eq!(early.since(Timestamp::from_unix(7)), 0);
        assert_eq!(Timestamp::from_unix(7).since(early), 2);
        assert_eq!(early.before(u64::MAX).unix(), i64::MIN);
    }

    proptest! {
        #[test]
        fn timestamps_are_read_as_they_are_written(seconds in 0..253_402_300_800_i64) {
            let moment = Timestamp::from_unix(seconds);
            prop_assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
        }
    }
}
