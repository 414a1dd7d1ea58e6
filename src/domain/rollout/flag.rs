//! Flags: rules that give calls a stage.

use std::fmt;

use super::{Bucket, Glob, Stage};
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
    /// The stage that it gives.
    pub stage: Stage,
    /// To how many callers.
    pub percent: Percent,
    /// What callers without a key get.
    pub without_key: WithoutKey,
}

impl Flag {
    /// Whether the flag speaks of a client, a route and a side, whatever its percentage.
    #[must_use]
    pub fn covers(&self, client: &str, route: &str, side: Side) -> bool {
        self.side.is_none_or(|own| own == side)
            && self.client.fits(client)
            && self.route.fits(route)
    }
}

/// A share of callers, in steps of 0.001 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// Everyone.
    pub const ALL: Percent = Percent(Bucket::COUNT);

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
