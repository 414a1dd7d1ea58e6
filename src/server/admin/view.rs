//! The values of the API in their JSON form.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use dualgauge_model::rollout::overrides::{ChangeMeta, Tripped};
use dualgauge_model::rollout::{MatcherSource, Percent, Proof, Stage, WithoutKey};
use dualgauge_model::route::Effect;
use dualgauge_patterns::side::Side;

/// All flags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagsView {
    /// A revision that grows with every change at run time, on any replica.
    pub revision: u64,
    /// The author of the kill switch; `null` if it is off.
    pub kill: Option<ChangeMeta>,
    /// The reason why an active kill switch is not stored yet; absent if it is stored or off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_unstored: Option<String>,
    /// The routes and streams, with their side, that stay translated despite the kill switch, because their side has no
    /// upstream; empty if it is off.
    pub still_translated: Vec<String>,
    /// The routes whose brownouts are cancelled.
    pub called_off: Vec<String>,
    /// Those of them that announce no brownouts; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without_brownouts: Vec<String>,
    /// The flags in order: the first one that matches a call decides.
    pub flags: Vec<FlagView>,
}

/// A flag in its current state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagView {
    /// The name.
    pub name: String,
    /// A glob of clients.
    pub client: String,
    /// A glob of routes.
    pub route: String,
    /// The side; `null` for both.
    #[serde(serialize_with = "maybe_side")]
    pub side: Option<Side>,
    /// The stage that the flag gives.
    #[serde(serialize_with = "stage")]
    pub stage: Stage,
    /// The percentage of callers that get it.
    #[serde(serialize_with = "percent")]
    pub percent: Percent,
    /// Globs for header values that a call must match; absent if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The percentage of callers that are always left out; absent if it is zero.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "maybe_percent"
    )]
    pub holdback: Option<Percent>,
    /// The result for callers without a key: `in` or `out`.
    #[serde(serialize_with = "without_key")]
    pub without_key: WithoutKey,
    /// The values in the flags file.
    pub file: FileView,
    /// The entity tag, for `If-Match`.
    pub tag: String,
    /// The author of an override; `null` if the file applies.
    pub flipped: Option<ChangeMeta>,
    /// The reason why the guard disabled the flag; `null` if it did not.
    pub tripped: Option<Tripped>,
    /// The last decision of the guard, with its subject; `null` without a guard or before its first check.
    pub guard: Option<String>,
    /// The progress of the ramp; `null` without a ramp or if the flag is overridden.
    pub ramp: Option<RampView>,
}

/// The progress of a ramp.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RampView {
    /// The current step, from 1.
    pub step: usize,
    /// The number of steps.
    pub steps: usize,
    /// The start of the current step, in milliseconds since 1970; `null` before the ramp starts.
    pub since: Option<u64>,
}

/// The values of a flag in the flags file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// The stage.
    #[serde(serialize_with = "stage")]
    pub stage: Stage,
    /// The percentage.
    #[serde(serialize_with = "percent")]
    pub percent: Percent,
}

/// The effect that new values of a flag would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreviewView {
    /// The entity tag of the flag, for `If-Match`.
    pub tag: String,
    /// `nothing`, `moves`, `returns`, `compares` or `refuses`.
    pub effect: &'static str,
    /// All of this in words.
    pub text: String,
    /// The number of routes that the flag covers.
    pub routes: usize,
    /// The number of configured clients that the flag covers.
    pub clients: usize,
    /// The calls counted so far that the flag covers.
    pub calls: u64,
    /// All calls counted so far.
    pub all_calls: u64,
    /// Earlier flags that decide some of the calls.
    pub earlier: Vec<String>,
    /// The reasons why the flag cannot have these values; empty if it can.
    pub faults: Vec<String>,
}

/// The parts of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanView {
    /// The routes, in order.
    pub routes: Vec<RouteView>,
    /// The clients, in configuration order. The first one that matches a call names it; authenticated ones come first.
    pub clients: Vec<ClientView>,
    /// The upstreams.
    pub upstreams: Vec<UpstreamView>,
    /// The stages of calls that no flag matches.
    pub defaults: DefaultsView,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteView {
    /// The name.
    pub name: String,
    /// The REST pattern.
    pub rest: String,
    /// The RPC pattern.
    pub rpc: String,
    /// The effect of a call on the upstream's state.
    #[serde(serialize_with = "effect")]
    pub effect: Effect,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientView {
    /// The name.
    pub name: String,
    /// The key of the client's `match` in the configuration.
    #[serde(serialize_with = "source")]
    pub source: MatcherSource,
    /// `authenticated` or `declared`.
    #[serde(serialize_with = "proof")]
    pub proof: Proof,
}

/// An upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamView {
    /// The name.
    pub name: String,
    /// The protocol side.
    #[serde(serialize_with = "side")]
    pub side: Side,
}

/// The stages of calls that no flag matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefaultsView {
    /// The stage of REST calls.
    #[serde(serialize_with = "stage")]
    pub rest: Stage,
    /// The stage of RPC calls.
    #[serde(serialize_with = "stage")]
    pub rpc: Stage,
}

fn stage<S: Serializer>(stage: &Stage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(stage.as_str())
}

fn side<S: Serializer>(side: &Side, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(side.as_str())
}

fn maybe_side<S: Serializer>(side: &Option<Side>, serializer: S) -> Result<S::Ok, S::Error> {
    side.map(Side::as_str).serialize(serializer)
}

/// Serialises whole percentages as integers. Others stay exact: below 2^53, a thousandth of an integer is the nearest
/// `f64` to that decimal, and it is printed as that decimal.
pub(super) fn percent<S: Serializer>(percent: &Percent, serializer: S) -> Result<S::Ok, S::Error> {
    let thousandths = percent.thousandths();
    if thousandths.is_multiple_of(1000) {
        serializer.serialize_u32(thousandths / 1000)
    } else {
        serializer.serialize_f64(f64::from(thousandths) / 1000.0)
    }
}

fn maybe_percent<S: Serializer>(share: &Option<Percent>, serializer: S) -> Result<S::Ok, S::Error> {
    match share {
        Some(share) => percent(share, serializer),
        None => serializer.serialize_none(),
    }
}

fn without_key<S: Serializer>(what: &WithoutKey, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match what {
        WithoutKey::Out => "out",
        WithoutKey::In => "in",
    })
}

fn source<S: Serializer>(source: &MatcherSource, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(source.as_str())
}

fn proof<S: Serializer>(proof: &Proof, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(proof.as_str())
}

fn effect<S: Serializer>(effect: &Effect, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(effect.as_str())
}
