//! The decisions of a guard, as types and as text. Used by `rollout::guard::comparison` and `rollout::guard::state`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::settings::{Mode, Ratio, Share};
use crate::rollout::UnixMillis;

/// The decision of a guard at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardDecision {
    /// There were enough calls, and the new way is within its limits.
    Content,
    /// The guard is inconclusive: the ramp neither advances nor rolls back.
    Inconclusive(Inconclusive),
    /// The new way exceeds a limit. The decision stays until a person re-arms the flag.
    Trip(Trip),
}

impl GuardDecision {
    /// Returns the name used in metrics and logs.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            GuardDecision::Content => "content",
            GuardDecision::Inconclusive(_) => "inconclusive",
            GuardDecision::Trip(_) => "trip",
        }
    }
}

impl fmt::Display for GuardDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuardDecision::Content => f.write_str("content"),
            GuardDecision::Inconclusive(why) => write!(f, "inconclusive: {why}"),
            GuardDecision::Trip(trip) => trip.fmt(f),
        }
    }
}

/// The reason why a guard is inconclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// The guard has observed for less than a window.
    #[error("no whole window has passed")]
    Young,
    /// The new way had too few calls.
    #[error("{calls} of {of} calls of the new way in a window")]
    FewNew {
        /// The calls it had.
        calls: u64,
        /// The calls it needs.
        of: u64,
    },
    /// The old way had too few calls.
    #[error("{calls} of {of} calls of the old way in a window")]
    FewOld {
        /// The calls it had.
        calls: u64,
        /// The calls it needs.
        of: u64,
    },
    /// Tools fail on the new way, and the old way has too few calls with a known tool result.
    #[error(
        "tools fail on the new way, and only {calls} of the {of} calls of the old way that are needed tell whether they \
         do there (see `tool_error_delta`)"
    )]
    FewKnown {
        /// The calls of the old way with a known tool result.
        calls: u64,
        /// The calls it needs.
        of: u64,
    },
    /// The old way is no longer called, and no earlier window had enough calls.
    #[error(
        "nothing to compare with: no calls of the old way, and no earlier window with enough calls"
    )]
    NoOld,
    /// Both ways fail: a rollback would not help.
    #[error("both ways fail, so the cause is common to both")]
    BothFail,
    /// A limit seems to be exceeded; further slices will confirm it or not.
    #[error("the limit of {0} seems to be exceeded, but this is not yet certain")]
    Suspect(Limit),
}

/// The quantities that a guard limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The share of failed calls.
    Failures,
    /// The share of refused calls.
    Refusals,
    /// The latency of calls.
    Latency,
    /// The share of responses that differ.
    Mismatches,
    /// The share of tool errors.
    ToolErrors,
}

impl Limit {
    /// All limits.
    pub const ALL: [Limit; 5] = [
        Limit::Failures,
        Limit::Refusals,
        Limit::Latency,
        Limit::Mismatches,
        Limit::ToolErrors,
    ];

    /// Returns the name used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Limit::Failures => "failures",
            Limit::Refusals => "refusals",
            Limit::Latency => "latency",
            Limit::Mismatches => "mismatches",
            Limit::ToolErrors => "tool_errors",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A quantile of the latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantile {
    /// The median.
    Median,
    /// The 95th percentile.
    P95,
}

impl Quantile {
    /// Returns the share of calls that do not exceed it.
    #[must_use]
    pub const fn share(self) -> f64 {
        match self {
            Quantile::Median => 0.5,
            Quantile::P95 => 0.95,
        }
    }
}

/// An observed value beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breach {
    /// Too many failures.
    Failures {
        /// The share on the new way.
        new: Share,
        /// The share on the old way.
        old: Share,
        /// The maximum increase.
        limit: Share,
    },
    /// Too many refusals.
    Refusals {
        /// The share on the new way.
        new: Share,
        /// The share on the old way.
        old: Share,
        /// The maximum increase.
        limit: Share,
    },
    /// Too many tool errors.
    ToolErrors {
        /// The share on the new way.
        new: Share,
        /// The share on the old way.
        old: Share,
        /// The maximum increase.
        limit: Share,
    },
    /// Too high a latency.
    Latency {
        /// The quantile.
        quantile: Quantile,
        /// The latency on the new way.
        new: Duration,
        /// The latency on the old way.
        old: Duration,
        /// The maximum ratio.
        limit: Ratio,
    },
    /// Too many responses that differ.
    Mismatches {
        /// The observed share.
        share: Share,
        /// The maximum share.
        limit: Share,
    },
}

impl Breach {
    /// Returns the limit that is exceeded.
    #[must_use]
    pub const fn limit(&self) -> Limit {
        match self {
            Breach::Failures { .. } => Limit::Failures,
            Breach::Refusals { .. } => Limit::Refusals,
            Breach::ToolErrors { .. } => Limit::ToolErrors,
            Breach::Latency { .. } => Limit::Latency,
            Breach::Mismatches { .. } => Limit::Mismatches,
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Breach::Failures { new, old, limit } => {
                write!(
                    f,
                    "failure rate {new} % against {old} % (limit +{limit} points)"
                )
            }
            Breach::Refusals { new, old, limit } => {
                write!(
                    f,
                    "refused rate {new} % against {old} % (limit +{limit} points)"
                )
            }
            Breach::ToolErrors { new, old, limit } => {
                write!(
                    f,
                    "tool error rate {new} % against {old} % (limit +{limit} points)"
                )
            }
            Breach::Latency {
                quantile,
                new,
                old,
                limit,
            } => {
                let name = match quantile {
                    Quantile::Median => "median",
                    Quantile::P95 => "95th percentile",
                };
                let (new, old) = (new.as_millis(), old.as_millis());
                write!(
                    f,
                    "{name} of the latency {new} ms against {old} ms (limit {limit} times)"
                )
            }
            Breach::Mismatches { share, limit } => {
                write!(f, "mismatches {share} % (limit {limit} %)")
            }
        }
    }
}

/// The rule that caused a trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The last few calls.
    Fast,
    /// The windows.
    Slow,
}

/// The finding that the new way exceeds a limit, with the figures for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// The time of the finding.
    pub at: UnixMillis,
    /// The observed breach.
    pub breach: Breach,
    /// The rule that caused the trip.
    pub pace: Trigger,
    /// The number of calls of the new way, or of compared responses.
    pub new_calls: u64,
    /// The number of calls of the old way.
    pub old_calls: u64,
    /// The time span of the calls.
    pub span: Duration,
    /// The calls of the old way that served as the baseline.
    pub against: Baseline,
    /// The effect of the trip.
    pub mode: Mode,
}

/// The calls of the old way that serve as the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Calls of the same time span.
    SameTime,
    /// Calls of the last windows that had enough.
    Earlier,
}

impl fmt::Display for Trip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.mode, self.pace) {
            (Mode::Act, Trigger::Slow) => "",
            (Mode::Act, Trigger::Fast) => "fast trip: ",
            (Mode::DryRun, Trigger::Slow) => "would trip: ",
            (Mode::DryRun, Trigger::Fast) => "would trip fast: ",
        })?;
        self.breach.fmt(f)?;
        let (new, old, span) = (self.new_calls, self.old_calls, self.span.as_secs());
        match (self.breach.limit(), self.against) {
            (Limit::Mismatches, _) => write!(f, " over {new} answers in {span} s"),
            (_, Baseline::SameTime) => write!(f, " over {new} and {old} calls in {span} s"),
            (_, Baseline::Earlier) => {
                write!(f, " over {new} calls in {span} s and {old} calls before")
            }
        }
    }
}
