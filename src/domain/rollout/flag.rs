//! Flags: rules that give calls a stage.

use std::fmt;

use http::{HeaderMap, HeaderName};

use super::{Bucket, CallFacts, Caller, Glob, Guard, Ramp, Stage};
use crate::domain::side::Side;

/// A rule that gives (client, route, side) a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its name, which also spreads its buckets.
    pub name: String,
    /// Which clients.
    pub client: Glob,
    /// Which routes.
    pub route: Glob,
    /// Which side; both where absent.
    pub side: Option<Side>,
    /// Only calls of which each of these headers has a value that fits.
    pub headers: Vec<(HeaderName, Glob)>,
    /// The stage that it gives.
    pub stage: Stage,
    /// To how many callers.
    pub percent: Percent,
    /// What callers without a key get.
    pub without_key: WithoutKey,
    /// The share of callers that is left out whatever the percentage, for the guard to compare with.
    pub holdback: Percent,
    /// What takes it back where the new way is worse.
    pub guard: Option<Guard>,
    /// What raises its percentage.
    pub ramp: Option<Ramp>,
    /// Whether it is in force.
    pub arming: Arming,
}

/// Whether a flag is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arming {
    /// It is.
    Armed,
    /// Its guard has taken it back; the next flag that matches decides until a person re-arms it.
    Tripped,
}

impl Arming {
    /// The word used in metrics and the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Arming::Armed => "armed",
            Arming::Tripped => "tripped",
        }
    }
}

impl Flag {
    /// Whether the flag speaks of a call, whatever its percentage.
    #[must_use]
    pub fn covers(&self, call: &CallFacts<'_>) -> bool {
        self.side.is_none_or(|own| own == call.side)
            && self.client.fits(call.caller.name)
            && self.route.fits(call.route)
            && self.fits_headers(call.headers)
    }

    /// Whether the flag speaks of a caller with these headers, on some route and side.
    #[must_use]
    pub fn covers_client(&self, caller: Caller<'_>, headers: &HeaderMap) -> bool {
        self.client.fits(caller.name) && self.fits_headers(headers)
    }

    fn fits_headers(&self, headers: &HeaderMap) -> bool {
        self.headers.iter().all(|(name, glob)| {
            let mut values = headers.get_all(name).iter();
            values.any(|value| value.to_str().is_ok_and(|value| glob.fits(value)))
        })
    }

    /// The share of callers that the flag takes: its percentage without those that are held back.
    #[must_use]
    pub fn share(&self) -> Percent {
        self.percent.min(self.holdback.rest())
    }
}

/// A share of callers, in steps of 0.001 %.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(try_from = "String", into = "String")]
pub struct Percent(u32);

impl Percent {
    /// Everyone.
    pub const ALL: Percent = Percent(Bucket::COUNT);
    /// Nobody.
    pub const NONE: Percent = Percent(0);

    /// From thousandths of a percent, at most 100,000.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Percent> {
        (thousandths <= Bucket::COUNT).then_some(Percent(thousandths))
    }

    /// Reads a decimal from 0 to 100 exactly: what `f64` makes of 33.333 never matters.
    ///
    /// ```
    /// use dualgauge::domain::rollout::Percent;
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

    /// Everyone else.
    #[must_use]
    pub const fn rest(self) -> Percent {
        Percent(Bucket::COUNT - self.0)
    }

    /// In thousandths of a percent.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// Whether a bucket lies within the share.
    #[must_use]
    pub fn takes(self, bucket: Bucket) -> bool {
        bucket.get() < self.0
    }
}

/// A text is no share of callers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no percentage from 0 to 100 in steps of 0.001")]
pub struct NoPercent(String);

/// As it is stored: a JSON number would be read through `f64`.
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

/// What callers without a key get from a flag with a percentage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithoutKey {
    /// The flag does not match them.
    Out,
    /// The flag matches them.
    In,
}
