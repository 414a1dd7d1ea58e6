//! Timestamps: parsing and formatting of calendar dates.
//!
//! This module does not read a clock. Laws: `parse` reads what `Display` writes; every day follows the one before.
//!
//! Used in most modules.

use std::fmt;

use serde::{Deserialize, Serialize};

const SECONDS_PER_DAY: i64 = 86_400;
/// 1970-01-01 was a Thursday.
const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

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
    /// use dualgauge::domain::time::Timestamp;
    /// let noon = Timestamp::parse("2023-06-30T23:59:59Z").unwrap();
    /// assert_eq!(noon.unix(), 1_688_169_599);
    /// assert_eq!(Timestamp::parse("2023-07-01T01:59:59+02:00"), Ok(noon));
    /// assert!(Timestamp::parse("2023-06-30T12:00:00").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Timestamp, TimestampError> {
        let text = text.trim();
        let (date, time) = match text.find(['T', 't', ' ']) {
            None => (text, None),
            Some(at) => (&text[..at], Some(&text[at + 1..])),
        };
        let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or(TimestampError::Form)?;
        let known = (1970..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day);
        if !known {
            return Err(TimestampError::NoSuchDay);
        }
        let of_day = time.map_or(Ok(0), seconds_of_day)?;
        Ok(Timestamp(
            days_from_civil(year, month, day) * SECONDS_PER_DAY + of_day,
        ))
    }

    /// Formats the timestamp as an HTTP date (RFC 9110 §5.6.7): `Mon, 31 Dec 2018 23:59:59 GMT`.
    #[must_use]
    pub fn http_date(self) -> String {
        let days = self.0.div_euclid(SECONDS_PER_DAY);
        let (year, month, day) = civil_from_days(days);
        let of_day = self.0.rem_euclid(SECONDS_PER_DAY);
        let name = |names: &[&'static str], at: i64| {
            usize::try_from(at)
                .ok()
                .and_then(|at| names.get(at).copied())
                .unwrap_or_default()
        };
        format!(
            "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
            name(&WEEKDAYS, days.rem_euclid(7)),
            name(&MONTHS, month - 1),
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60,
        )
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(SECONDS_PER_DAY));
        let of_day = self.0.rem_euclid(SECONDS_PER_DAY);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            of_day / 3600,
            of_day / 60 % 60,
            of_day % 60,
        )
    }
}

/// Parses `12:00`, `12:00:00` or `12:00:00.5` with an offset, into seconds since midnight UTC.
fn seconds_of_day(time: &str) -> Result<i64, TimestampError> {
    let (clock, offset) = match time.find(['Z', 'z', '+', '-']) {
        None => (time, None),
        Some(at) => (&time[..at], Some(&time[at..])),
    };
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(TimestampError::Form);
    }
    let [hour, minute, second] = numbers(whole, ':', [2, 2, 2])
        .or_else(|| numbers(whole, ':', [2, 2]).map(|[hour, minute]| [hour, minute, 0]))
        .ok_or(TimestampError::Form)?;
    if hour > 23 || minute > 59 || second > 59 {
        return Err(TimestampError::NoSuchDay);
    }
    let offset = match offset {
        None => return Err(TimestampError::NoOffset),
        Some("Z" | "z") => 0,
        Some(signed) => {
            let [hours, minutes] =
                numbers(&signed[1..], ':', [2, 2]).ok_or(TimestampError::Form)?;
            if hours > 23 || minutes > 59 {
                return Err(TimestampError::NoSuchDay);
            }
            let east = hours * 3600 + minutes * 60;
            if signed.starts_with('-') { -east } else { east }
        }
    };
    Ok(hour * 3600 + minute * 60 + second - offset)
}

/// Parses numbers of fixed widths between separators.
fn numbers<const N: usize>(text: &str, between: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut found = [0; N];
    let mut pieces = text.split(between);
    for (number, width) in found.iter_mut().zip(widths) {
        let piece = pieces.next()?;
        if piece.len() != width || !piece.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = piece.parse().ok()?;
    }
    pieces.next().is_none().then_some(found)
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the date of a number of days since 1970-01-01 in the proleptic Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last of its year. 400 of them are an era of 146,097 days,
/// which has the same layout in every era.
#[must_use]
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468; // from 0000-03-01
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

/// Returns the days since 1970 of a date; the inverse of [`civil_from_days`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts every day of eight centuries by the rule of leap years.
    #[test]
    fn every_day_follows_the_one_before() {
        let (mut year, mut month, mut day) = (1600, 1, 1);
        for days in -135_140..157_057 {
            assert_eq!(civil_from_days(days), (year, month, day));
            assert_eq!(days_from_civil(year, month, day), days);
            day += 1;
            if day > days_of(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month), (2400, 1));
    }

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
}
