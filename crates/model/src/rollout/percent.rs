//! Shares of callers, exact to 0.001 %. Used in most modules.

use std::fmt;

use super::bucket::Bucket;

/// A share of callers, in steps of 0.001 %.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Percent(u32);

impl Percent {
    /// All callers.
    pub const ALL: Percent = Percent(Bucket::COUNT);
    /// No callers.
    pub const NONE: Percent = Percent(0);

    /// Creates a share from thousandths of a percent; `None` above 100,000.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Percent> {
        (thousandths <= Bucket::COUNT).then_some(Percent(thousandths))
    }

    /// Parses a decimal from 0 to 100 exactly, without the rounding of `f64`.
    ///
    /// ```
    /// use dualgauge_model::rollout::Percent;
    /// assert_eq!(Percent::parse("33.3330").map(Percent::thousandths), Some(33_333));
    /// assert_eq!(Percent::parse("0.0001"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Percent> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        if fraction.len() > 3 {
            return None;
        }
        let thousandths: u32 = format!("{fraction:0<3}").parse().ok()?;
        let whole: u32 = whole.parse().ok()?;
        Percent::from_thousandths(whole.checked_mul(1000)?.checked_add(thousandths)?)
    }

    /// Parses a JSON number from 0 to 100 exactly.
    ///
    /// ```
    /// use dualgauge_model::rollout::Percent;
    /// assert_eq!(Percent::parse_number("2.5e1"), Percent::parse("25"));
    /// ```
    #[must_use]
    pub fn parse_number(text: &str) -> Option<Percent> {
        // Only a number with an exponent is converted through `f64`, which prints it without one.
        match text.parse::<f64>() {
            Ok(number) if text.contains(['e', 'E']) => Percent::parse(&number.to_string()),
            Ok(_) | Err(_) => Percent::parse(text),
        }
    }

    /// Returns the complement of this share.
    #[must_use]
    pub const fn rest(self) -> Percent {
        Percent(Bucket::COUNT - self.0)
    }

    /// Returns the share in thousandths of a percent.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// Returns true if a bucket lies within the share.
    #[must_use]
    pub fn takes(self, bucket: Bucket) -> bool {
        bucket.get() < self.0
    }
}

/// The error for a text that is not a share of callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a percentage from 0 to 100 in steps of 0.001")]
pub struct NoPercent(String);

/// The stored form is a string: a JSON number would be parsed as `f64`.
impl TryFrom<String> for Percent {
    type Error = NoPercent;

    fn try_from(text: String) -> Result<Percent, NoPercent> {
        Percent::parse(&text).ok_or(NoPercent(text))
    }
}

impl From<Percent> for String {
    fn from(percent: Percent) -> String {
        percent.to_string()
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, thousandths) = (self.0 / 1000, self.0 % 1000);
        if thousandths == 0 {
            return write!(f, "{whole}");
        }
        write!(
            f,
            "{whole}.{}",
            format!("{thousandths:03}").trim_end_matches('0')
        )
    }
}
