//! The values of the API, as they are written in JSON.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::domain::rollout::overrides::{ChangeMeta, Tripped};
use crate::domain::rollout::{MatcherSource, Percent, Proof, Stage, WithoutKey};
use crate::domain::route::Effect;
use crate::domain::side::Side;

/// All flags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagsView {
    /// Grows with every change at run time, on whatever replica.
    pub revision: u64,
    /// Who has thrown the kill switch; `null` where it is off.
    pub kill: Option<ChangeMeta>,
    /// Why the kill switch acts and is not stored yet; absent where it is stored, or off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kill_unstored: Option<String>,
    /// What the kill switch leaves translated, because its side has no upstream; empty where it is off.
    pub still_translated: Vec<String>,
    /// The routes whose brownouts are called off.
    pub called_off: Vec<String>,
    /// The flags in their order: the first that fits a call decides.
    pub flags: Vec<FlagView>,
}

/// A flag as it is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlagView {
    /// Its name.
    pub name: String,
    /// Which clients: a glob.
    pub client: String,
    /// Which routes: a glob.
    pub route: String,
    /// Which side; `null` for both.
    #[serde(serialize_with = "maybe_side")]
    pub side: Option<Side>,
    /// The stage that it gives.
    #[serde(serialize_with = "stage")]
    pub stage: Stage,
    /// To how many.
    #[serde(serialize_with = "percent")]
    pub percent: Percent,
    /// Only calls of which each of these headers has a value that fits its glob; absent where none is named.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The share of callers that is left out whatever the percentage; absent where it is nobody.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "maybe_percent"
    )]
    pub holdback: Option<Percent>,
    /// What callers without a key get: `in` or `out`.
    #[serde(serialize_with = "without_key")]
    pub without_key: WithoutKey,
    /// What the flags file says.
    pub file: FileView,
    /// Its tag, for `If-Match`.
    pub tag: String,
    /// Who has flipped it; `null` where the file holds.
    pub flipped: Option<ChangeMeta>,
    /// Why its guard has taken it back; `null` where it is in force.
    pub tripped: Option<Tripped>,
    /// What its guard said last, and of what: `null` where it has none, or it has not looked yet.
    pub guard: Option<String>,
    /// How far its ramp has come; `null` where it has none, or a person has flipped the flag.
    pub ramp: Option<RampView>,
}

/// How far a ramp has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RampView {
    /// The step, from 1.
    pub step: usize,
    /// How many steps there are.
    pub steps: usize,
    /// Since when, in milliseconds since 1970; `null` where it has not begun.
    pub since: Option<u64>,
}

/// What the flags file says of a flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// The stage.
    #[serde(serialize_with = "stage")]
    pub stage: Stage,
    /// The share.
    #[serde(serialize_with = "percent")]
    pub percent: Percent,
}

/// What the plan consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanView {
    /// The routes, in order.
    pub routes: Vec<RouteView>,
    /// The clients, in the order of the configuration. The first that fits a call names it, authenticated ones first.
    pub clients: Vec<ClientView>,
    /// The servers behind.
    pub upstreams: Vec<UpstreamView>,
    /// The stages of calls that no flag fits.
    pub defaults: DefaultsView,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteView {
    /// Its name.
    pub name: String,
    /// Its REST pattern.
    pub rest: String,
    /// Its RPC pattern.
    pub rpc: String,
    /// What a call does to the server behind.
    #[serde(serialize_with = "effect")]
    pub effect: Effect,
}

/// A client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientView {
    /// Its name.
    pub name: String,
    /// How its calls are recognised: the key of its `match`.
    #[serde(serialize_with = "source")]
    pub source: MatcherSource,
    /// Whether that is `authenticated` or `declared`.
    #[serde(serialize_with = "proof")]
    pub proof: Proof,
}

/// A server behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UpstreamView {
    /// Its name.
    pub name: String,
    /// The language that it speaks.
    #[serde(serialize_with = "side")]
    pub side: Side,
}

/// The stages of calls that no flag fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefaultsView {
    /// Of REST calls.
    #[serde(serialize_with = "stage")]
    pub rest: Stage,
    /// Of RPC calls.
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

/// Whole percentages as integers. A thousandth of a number below 2^53 is the nearest `f64` of that decimal, and the
/// nearest `f64` is written as that decimal again.
fn percent<S: Serializer>(percent: &Percent, serializer: S) -> Result<S::Ok, S::Error> {
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
