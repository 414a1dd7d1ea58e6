//! What the guard says, in types and in words.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Mode, Ratio, Share};
use crate::domain::rollout::UnixMillis;

/// What the guard says at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardDecision {
    /// There were enough calls, and nothing shows that the new way is worse than it may be.
    Content,
    /// It cannot tell: neither advance nor go back.
    Inconclusive(Inconclusive),
    /// The new way is worse than it may be. It says so until a person begins the watch anew.
    Trip(Trip),
}

impl GuardDecision {
    /// The word used in metrics and logs.
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

/// Unclear the guard cannot tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Inconclusive {
    /// It began not long ago.
    #[error("no whole window has passed")]
    Young,
    /// The new way was hardly called.
    #[error("{calls} of {of} calls of the new way in a window")]
    FewNew {
        /// Its calls.
        calls: u64,
        /// How many are needed.
        of: u64,
    },
    /// The old way was hardly called.
    #[error("{calls} of {of} calls of the old way in a window")]
    FewOld {
        /// Its calls.
        calls: u64,
        /// How many are needed.
        of: u64,
    },
    /// Tools fail on the new way, and of the old way it is hardly known.
    #[error(
        "tools fail on the new way, and only {calls} of the {of} calls of the old way that are needed tell whether they \
         do there (see `tool_error_delta`)"
    )]
    FewKnown {
        /// Calls of the old way of which it is known.
        calls: u64,
        /// How many are needed.
        of: u64,
    },
    /// The old way is no longer called, and never was while the guard watched.
    #[error(
        "nothing to compare with: no calls of the old way, and no earlier window that had enough"
    )]
    NoOld,
    /// Both ways fail: going back would not help.
    #[error("both ways fail, so the fault lies behind both")]
    BothFail,
    /// A limit seems to be exceeded; the next slices tell.
    #[error("the limit of {0} seems to be exceeded, and it is not yet sure")]
    Suspect(Limit),
}

/// What a guard has a limit of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The share of calls that failed.
    Failures,
    /// The share of calls that were refused.
    Refusals,
    /// How long calls take.
    Latency,
    /// The share of answers that differ.
    Mismatches,
    /// The share of tool errors.
    ToolErrors,
}

impl Limit {
    /// Every one.
    pub const ALL: [Limit; 5] = [
        Limit::Failures,
        Limit::Refusals,
        Limit::Latency,
        Limit::Mismatches,
        Limit::ToolErrors,
    ];

    /// The word used in metrics and logs.
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

/// Which call tells how long calls take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantile {
    /// The one in the middle.
    Median,
    /// The one that 95 of 100 do not exceed.
    P95,
}

impl Quantile {
    /// The share of calls that do not exceed it.
    #[must_use]
    pub const fn share(self) -> f64 {
        match self {
            Quantile::Median => 0.5,
            Quantile::P95 => 0.95,
        }
    }
}

/// What was observed beyond a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breach {
    /// More failures.
    Failures {
        /// On the new way.
        new: Share,
        /// On the old way.
        old: Share,
        /// How many more there may be.
        limit: Share,
    },
    /// More refusals.
    Refusals {
        /// On the new way.
        new: Share,
        /// On the old way.
        old: Share,
        /// How many more there may be.
        limit: Share,
    },
    /// More tool errors.
    ToolErrors {
        /// On the new way.
        new: Share,
        /// On the old way.
        old: Share,
        /// How many more there may be.
        limit: Share,
    },
    /// Slower calls.
    Latency {
        /// Which calls.
        quantile: Quantile,
        /// How long they take on the new way.
        new: Duration,
        /// How long on the old way.
        old: Duration,
        /// How many times as long they may take.
        limit: Ratio,
    },
    /// Answers that differ.
    Mismatches {
        /// Their share.
        share: Share,
        /// Which share may.
        limit: Share,
    },
}

impl Breach {
    /// Which limit.
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

/// How a trip came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// By the last few calls.
    Fast,
    /// By windows.
    Slow,
}

/// That the new way is worse than it may be, with all that a person wants to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trip {
    /// When it was found.
    pub at: UnixMillis,
    /// What was observed.
    pub breach: Breach,
    /// How it came about.
    pub pace: Trigger,
    /// Over how many calls of the new way, or compared answers.
    pub new_calls: u64,
    /// Against how many calls of the old way.
    pub old_calls: u64,
    /// Within what time.
    pub span: Duration,
    /// Against which calls of the old way.
    pub against: Baseline,
    /// Whether the flag goes back.
    pub mode: Mode,
}

/// Which calls of the old way the new one was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// Those of the same time.
    SameTime,
    /// Those of the last windows that had enough.
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
