//! Rollout: who calls, and which stage that call gets.
//!
//! `decide` is a pure function of the rollout, the caller and the route; its decision names the rule that
//! made it. Laws: flags are tried in order and the first match wins; a bucket depends on nothing but the
//! flag's name and the caller's key; raising a percentage never moves a caller out.

mod aggregate;
mod bucket;
mod client;
mod client_index;
mod decide;
mod fault;
mod flag;
mod flag_history;
mod flags;
mod glob;
mod guard;
mod identify;
pub mod overrides;
mod ramp;
mod subject;
mod tally;
mod unix_ms;

use super::side::Side;

pub use aggregate::{Aggregate, Reporter, Tallies};
pub use bucket::{Bucket, bucket};
pub use client::{Caller, Client, Digest, KeySource, Matcher, MatcherSource, OTHER, Proof};
pub use decide::{CallFacts, DecidedBy, Decision, DecisionReason, Defaults, Kill, Rollout};
pub use fault::{FlagFault, RouteEntry, StageFault};
pub use flag::{Arming, Flag, Percent, WithoutKey};
pub use flag_history::{
    FlagHistory, Generation, Membership, PreviousFlag, ProcessTime, SessionStart,
};
pub use flags::Flags;
pub use glob::Glob;
pub use guard::{
    Baseline, Breach, Fast, Guard, GuardDecision, GuardState, Inconclusive, Limit, Limits, Mode,
    Quantile, Ratio, Share, Trigger, Trip,
};
pub use identify::{ClientEvidence, Clients, Identity};
pub use ramp::{Ramp, RampFault, RampState, RampStep};
pub use subject::{
    AlternativeName, DnsPattern, EmailPattern, NameAttribute, NameFault, NamePattern, Subject,
    SubjectPattern, UriPattern,
};
pub use tally::{ArmTally, CallEnd, Latency, Tally};
pub use unix_ms::UnixMillis;

/// What happens to a call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The call as it came, to the upstream of its own side.
    Passthrough,
    /// As `Passthrough`; the call is also translated, and its two answers are compared afterwards.
    Shadow,
    /// As `Translate`; the call is also passed through, and its two answers are compared afterwards.
    Verify,
    /// The call rewritten for the other side's upstream, the answer rewritten back.
    Translate,
    /// Nobody answers: 410 Gone, or an RPC error, both naming the successor.
    Retired,
}

impl Stage {
    /// Every stage.
    pub const ALL: [Stage; 5] = [
        Stage::Passthrough,
        Stage::Shadow,
        Stage::Verify,
        Stage::Translate,
        Stage::Retired,
    ];

    /// The word used in configuration, metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Passthrough => "passthrough",
            Stage::Shadow => "shadow",
            Stage::Verify => "verify",
            Stage::Translate => "translate",
            Stage::Retired => "retired",
        }
    }

    /// The stage of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == word)
    }

    /// The way whose answer the client gets, unless nobody answers.
    #[must_use]
    pub const fn control(self) -> Option<Path> {
        match self {
            Stage::Passthrough | Stage::Shadow => Some(Path::Old),
            Stage::Verify | Stage::Translate => Some(Path::New),
            Stage::Retired => None,
        }
    }

    /// The way that is gone only to compare.
    #[must_use]
    pub const fn candidate(self) -> Option<Path> {
        match self {
            Stage::Shadow => Some(Path::New),
            Stage::Verify => Some(Path::Old),
            Stage::Passthrough | Stage::Translate | Stage::Retired => None,
        }
    }

    /// The sides whose upstreams a call of `side` needs in this stage.
    pub fn needs(self, side: Side) -> impl Iterator<Item = Side> {
        let ways = self.control().into_iter().chain(self.candidate());
        ways.map(move |way| way.leads_to(side))
    }
}

/// How a call is served: the two ways that a migration leads from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Path {
    /// As it came, by the upstream of its own side.
    Old,
    /// Translated, by the upstream of the other side.
    New,
}

impl Path {
    /// The side whose upstream serves a call of `side` that goes this way.
    #[must_use]
    pub const fn leads_to(self, side: Side) -> Side {
        match self {
            Path::Old => side,
            Path::New => side.other(),
        }
    }

    /// The word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Path::Old => "old",
            Path::New => "new",
        }
    }
}

#[cfg(test)]
mod tests;
