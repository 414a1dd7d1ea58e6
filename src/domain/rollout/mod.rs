//! Rollout: who calls, and which stage that call gets.
//!
//! `decide` is a pure function of the rollout, the caller and the route; its decision names the rule that
//! made it. Laws: flags are tried in order and the first match wins; a bucket depends on nothing but the
//! flag's name and the caller's key; raising a percentage never moves a caller out.

mod at;
mod bucket;
mod client;
mod decide;
mod fault;
mod flag;
mod glob;
mod guard;
mod ramp;
mod tally;

use super::side::Side;

pub use at::At;
pub use bucket::{Bucket, bucket};
pub use client::{Caller, Client, Clients, Digest, KeySource, Matcher, OTHER};
pub use decide::{Decision, Defaults, Rollout, Why};
pub use fault::{FlagFault, RouteEntry, StageFault};
pub use flag::{Flag, Percent, WithoutKey};
pub use glob::Glob;
pub use guard::{
    Against, Breach, Fast, Guard, Limit, Limits, Mode, Pace, Quantile, Ratio, Ruling, Share, Trip,
    Unclear, Watch,
};
pub use ramp::{Ramp, RampFault, RampState, Step};
pub use tally::{Arm, ArmTally, Fate, Latency, Tally};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// The call as it came, to the upstream of its own side.
    Passthrough,
    /// The call rewritten for the other side's upstream, the answer rewritten back.
    Translate,
    /// Nobody answers: 410 Gone, or an RPC error, both naming the successor.
    Retired,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 3] = [Stage::Passthrough, Stage::Translate, Stage::Retired];

    /// The word used in configuration, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Passthrough => "passthrough",
            Stage::Translate => "translate",
            Stage::Retired => "retired",
        }
    }

    /// The stage of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == word)
    }

    /// The side whose upstream a call of `side` needs in this stage, if it needs one.
    #[must_use]
    pub const fn needs(self, side: Side) -> Option<Side> {
        match self {
            Stage::Passthrough => Some(side),
            Stage::Translate => Some(side.other()),
            Stage::Retired => None,
        }
    }
}

#[cfg(test)]
mod tests;
