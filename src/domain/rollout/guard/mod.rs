//! The guard of a flag: whether the new way is worse than the old one, by more than chance.
//!
//! [`GuardState::observe`] is fed about each second with what a flag counted so far, and rules. It compares both ways over
//! the same slices of time and the same clients, so that what befalls both is no fault of the new one; it trips only
//! where a confidence bound, and not merely the observed figure, lies beyond a limit. Too few calls are
//! [`GuardDecision::Inconclusive`], which neither advances nor goes back. Laws: a ruling depends on sums only, never on
//! which worker counted; failures of the old way never cause a trip; no input makes it panic.

mod bounds;
mod burst;
mod comparison;
mod decision;
mod state;
mod windows;

#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use decision::{Baseline, Breach, GuardDecision, Inconclusive, Limit, Quantile, Trigger, Trip};
pub use state::GuardState;

/// What a flag promises its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Over how long both ways are compared. The guard also looks back over ten and a hundred windows, for what is
    /// too small to be seen in one.
    pub window: Duration,
    /// The least calls of each way in a window; with fewer it does not rule.
    pub min_calls: u64,
    /// How much worse the new way may be.
    pub limits: Limits,
    /// When it does not wait for a window; never where absent.
    pub fast: Option<Fast>,
    /// Whether a trip acts.
    pub mode: Mode,
}

impl Default for Guard {
    fn default() -> Guard {
        Guard {
            window: Duration::from_secs(60),
            min_calls: 100,
            limits: Limits::default(),
            fast: Some(Fast::default()),
            mode: Mode::Act,
        }
    }
}

/// How much worse the new way may be; what is absent has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// By how much the share of failed calls may be higher.
    pub failure_delta: Option<Share>,
    /// By how much the share of refused calls may be higher.
    pub refused_delta: Option<Share>,
    /// By how much the share of tool errors may be higher.
    pub tool_error_delta: Option<Share>,
    /// How many times as long calls may take, at the median and at the 95th percentile.
    pub latency_ratio: Option<Ratio>,
    /// The share of compared answers that may differ.
    pub mismatch: Option<Share>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            failure_delta: Some(Share(20_000)),
            refused_delta: Some(Share(50_000)),
            tool_error_delta: Some(Share(50_000)),
            latency_ratio: Some(Ratio(2_000)),
            mismatch: None,
        }
    }
}

/// When a way is so broken that a few calls show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fast {
    /// So many calls failed and none was served since.
    pub in_row: u64,
    /// Or, of so many calls,
    pub calls: u64,
    /// this share failed.
    pub share: Share,
}

impl Default for Fast {
    fn default() -> Fast {
        Fast {
            in_row: 10,
            calls: 20,
            share: Share(500_000),
        }
    }
}

/// Whether a trip takes the flag back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// It does.
    Act,
    /// It is only told.
    DryRun,
}

/// A share, in millionths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Share(u32);

impl Share {
    /// All.
    pub const ALL: Share = Share(1_000_000);

    /// From millionths, at most a million.
    #[must_use]
    pub fn from_millionths(millionths: u32) -> Option<Share> {
        (millionths <= Share::ALL.0).then_some(Share(millionths))
    }

    /// In millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// As a number from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// The nearest one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to a million"
    )]
    fn near(share: f64) -> Share {
        Share((share.clamp(0.0, 1.0) * 1e6).round() as u32)
    }
}

/// In percent: to a tenth, below one percent to two digits that tell.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = f64::from(self.0) / 1e4;
        let text = match percent {
            _ if percent >= 0.95 || self.0 == 0 => format!("{percent:.1}"),
            _ if percent >= 0.095 => format!("{percent:.2}"),
            _ if percent >= 0.0095 => format!("{percent:.3}"),
            _ => format!("{percent:.4}"),
        };
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// How many times as much, in thousandths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ratio(u32);

impl Ratio {
    /// From thousandths; a ratio is more than one.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Ratio> {
        (thousandths > 1_000).then_some(Ratio(thousandths))
    }

    /// In thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// As a number.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e3
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.get())
    }
}
