//! The settings of a guard, and their units. Used throughout `guard`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits and windows of a guard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The window over which both ways are compared. The guard also looks back over ten and a hundred windows, for
    /// differences that are too small to show in one.
    pub window: Duration,
    /// The minimum number of calls of each way in a window; with fewer, the guard is inconclusive.
    pub min_calls: u64,
    /// The limits for the new way.
    pub limits: Limits,
    /// The condition for tripping before a window is complete; `None` disables that.
    pub fast: Option<Fast>,
    /// The effect of a trip.
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

/// The limits for the new way; `None` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum increase of the share of failed calls.
    pub failure_delta: Option<Share>,
    /// The maximum increase of the share of refused calls.
    pub refused_delta: Option<Share>,
    /// The maximum increase of the share of tool errors.
    pub tool_error_delta: Option<Share>,
    /// The maximum ratio of latencies, at the median and at the 95th percentile.
    pub latency_ratio: Option<Ratio>,
    /// The maximum share of compared responses that differ.
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

/// The condition for tripping on a few calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fast {
    /// The number of consecutive calls that failed, with none served,
    pub in_row: u64,
    /// or, among this number of calls,
    pub calls: u64,
    /// the share that failed.
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

/// The effect of a trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The flag is disabled.
    Act,
    /// The trip is only reported.
    DryRun,
}

/// A share, in millionths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Share(u32);

impl Share {
    /// The whole.
    pub const ALL: Share = Share(1_000_000);

    /// Creates a share from millionths; `None` above one million.
    #[must_use]
    pub fn from_millionths(millionths: u32) -> Option<Share> {
        (millionths <= Share::ALL.0).then_some(Share(millionths))
    }

    /// Returns the share in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// Returns the share as a number from 0 to 1.
    #[must_use]
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e6
    }

    /// Returns the nearest share.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to a million"
    )]
    pub(super) fn near(share: f64) -> Share {
        Share((share.clamp(0.0, 1.0) * 1e6).round() as u32)
    }
}

/// Formats the share in percent: with one decimal, or with two significant digits below one percent.
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

/// A ratio, in thousandths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Ratio(u32);

impl Ratio {
    /// Creates a ratio from thousandths; `None` unless it is more than one.
    #[must_use]
    pub fn from_thousandths(thousandths: u32) -> Option<Ratio> {
        (thousandths > 1_000).then_some(Ratio(thousandths))
    }

    /// Returns the ratio in thousandths.
    #[must_use]
    pub const fn thousandths(self) -> u32 {
        self.0
    }

    /// Returns the ratio as a number.
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
