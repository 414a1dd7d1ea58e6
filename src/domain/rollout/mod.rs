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
mod flags;
mod glob;
mod guard;
mod identify;
mod order;
mod past;
mod ramp;
pub mod standing;
mod subject;
mod summed;
mod tally;

use super::side::Side;

pub use at::At;
pub use bucket::{Bucket, bucket};
pub use client::{Caller, Client, Digest, KeySource, Matcher, OTHER, Proof, Source};
pub use decide::{Call, DecidedBy, Decision, Defaults, Kill, Rollout, Why};
pub use fault::{FlagFault, RouteEntry, StageFault};
pub use flag::{Arming, Flag, Percent, WithoutKey};
pub use flags::Flags;
pub use glob::Glob;
pub use guard::{
    Against, Breach, Fast, Guard, Limit, Limits, Mode, Pace, Quantile, Ratio, Ruling, Share, Trip,
    Unclear, Watch,
};
pub use identify::{Clients, Evidence, Identity};
pub use past::{Clock, Epoch, Past, Session, Taken, Was};
pub use ramp::{Ramp, RampFault, RampState, Step};
pub use subject::{
    Alternative, Attribute, DnsPattern, EmailPattern, NameFault, NamePattern, Subject,
    SubjectPattern, UriPattern,
};
pub use summed::{Reporter, Summed, Tallies};
pub use tally::{ArmTally, Fate, Latency, Tally};

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
    pub const fn control(self) -> Option<Way> {
        match self {
            Stage::Passthrough | Stage::Shadow => Some(Way::Old),
            Stage::Verify | Stage::Translate => Some(Way::New),
            Stage::Retired => None,
        }
    }

    /// The way that is gone only to compare.
    #[must_use]
    pub const fn candidate(self) -> Option<Way> {
        match self {
            Stage::Shadow => Some(Way::New),
            Stage::Verify => Some(Way::Old),
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
pub enum Way {
    /// As it came, by the upstream of its own side.
    Old,
    /// Translated, by the upstream of the other side.
    New,
}

impl Way {
    /// The side whose upstream serves a call of `side` that goes this way.
    #[must_use]
    pub const fn leads_to(self, side: Side) -> Side {
        match self {
            Way::Old => side,
            Way::New => side.other(),
        }
    }

    /// The word used in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Way::Old => "old",
            Way::New => "new",
        }
    }
}

#[cfg(test)]
mod tests;
