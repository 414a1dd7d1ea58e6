//! Rollout: identifies the client of a call and chooses the stage of the call.
//!
//! `decide` is a pure function of the rollout, the caller and the route; its decision names the rule that made it.
//! Laws: flags are tried in order and the first match wins; a bucket depends only on the name of the flag and the key
//! of the caller; raising a percentage never removes a caller from the share.
//!
//! Used in most modules.

mod aggregate;
mod api_key;
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
mod percent;
mod ramp;
mod sourced;
mod stage;
mod subject;
mod tally;
mod unix_ms;

pub use aggregate::{Aggregate, Reporter, Tallies};
pub use api_key::{ApiKeyForms, ApiKeys};
pub use bucket::{Bucket, bucket};
pub use client::{
    Caller, Client, Digest, KeySource, Matcher, MatcherSource, McpClientGlobs, OTHER, Proof,
};
pub use decide::{
    CallFacts, DecidedBy, Decision, DecisionReason, Defaults, Kill, Requester, Rollout,
};
pub use fault::{FlagFault, RouteEntry, StageFault};
pub use flag::{Arming, Flag, WithoutKey};
pub use flag_history::{
    FlagHistory, Generation, Membership, PlanStart, PreviousFlag, ProcessTime, SessionStart,
};
pub use flags::Flags;
pub use glob::Glob;
pub use guard::{
    Baseline, Breach, Fast, Guard, GuardDecision, GuardState, Inconclusive, Limit, Limits, Mode,
    Quantile, Ratio, Share, Trigger, Trip,
};
pub use identify::{Authentication, ClientEvidence, Clients, CredentialFault, Identity};
pub use percent::Percent;
pub use ramp::{Ramp, RampFault, RampState, RampStep};
pub use sourced::{ReceivedValues, SourcedFlag, SourcedFlags, SourcedValue, follow};
pub use stage::{Stage, Way};
pub use subject::{
    AlternativeName, DnsPattern, EmailPattern, NameAttribute, NameFault, NamePattern, Subject,
    SubjectPattern, UriPattern,
};
pub use tally::{CallEnd, Latency, Tally, WayTally};
pub use unix_ms::UnixMillis;

#[cfg(test)]
pub(crate) mod tests;
