//! The state of the whole migration and of the process, in their JSON form.

use serde::Serialize;

use super::view::{DefaultsView, UpstreamView};
use dualgauge_model::lifecycle::TimelineInterval;
use dualgauge_model::rollout::overrides::ChangeMeta;

/// The most items of [`OverviewView::attention`].
pub const MAX_ATTENTION: usize = 50;

/// The state of the whole migration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverviewView {
    /// The revision of the runtime state.
    pub revision: u64,
    /// The number of plans installed since the start.
    pub reloads: u64,
    /// The number of routes.
    pub routes: usize,
    /// The number of configured clients.
    pub clients: usize,
    /// The number of flags.
    pub flags: usize,
    /// The author of the kill switch; `null` if it is off.
    pub kill: Option<ChangeMeta>,
    /// All calls since counting began.
    pub calls: ServedCalls,
    /// The calls and clients over time.
    pub timeline: TimelineView,
    /// The items that need the attention of an operator, the most severe first.
    pub attention: Vec<AttentionView>,
    /// The number of further items.
    pub more: usize,
}

/// Calls by the side that served them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ServedCalls {
    /// Calls served by the upstream of the caller's side.
    pub old: u64,
    /// Calls translated for the upstream of the other side.
    pub new: u64,
    /// Calls refused: retired, or in a brownout.
    pub refused: u64,
}

/// The calls and clients over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TimelineView {
    /// The length of an interval, in seconds.
    pub seconds: u64,
    /// The intervals, the earliest first.
    pub intervals: Vec<TimelineInterval>,
}

/// The severity of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work, or has been switched off.
    Error,
    /// Something should be looked at.
    Warning,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// The kill switch is on.
    KillSwitch,
    /// A guard has tripped a flag.
    Tripped,
    /// The configuration files have problems.
    Configuration,
    /// The process cannot serve calls, or the store or an upstream is unavailable.
    Readiness,
    /// Candidates of a route have failed.
    FailedCandidates,
    /// Responses of a route differ.
    Mismatches,
}

/// An item that needs the attention of an operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AttentionView {
    /// Its severity.
    pub severity: Severity,
    /// Its kind.
    pub kind: AttentionKind,
    /// The flag or the route that it concerns.
    pub subject: Option<String>,
    /// A sentence for people.
    pub text: String,
    /// The time when it began or last happened, if known.
    pub at: Option<String>,
}

/// The state of the process and of its configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusView {
    /// The version of the program.
    pub version: &'static str,
    /// The name of this replica.
    pub replica: String,
    /// The revision of the runtime state.
    pub revision: u64,
    /// The time at which the files of the configuration in force were read.
    pub loaded_at: String,
    /// The number of reloads since the start.
    pub reloads: ReloadCounts,
    /// The files that are read again when they change.
    pub files: Vec<String>,
    /// The upstreams in force.
    pub upstreams: Vec<UpstreamView>,
    /// The stages of calls that no flag matches.
    pub defaults: DefaultsView,
    /// The problems of the last reload; empty if its configuration is in force.
    pub problems: Vec<ProblemView>,
    /// The reasons why calls cannot be served; empty if they can.
    pub obstacles: Vec<String>,
    /// Warnings that do not affect readiness.
    pub notes: Vec<String>,
}

/// The number of reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReloadCounts {
    /// Reloads that put a new configuration in force.
    pub succeeded: u64,
    /// Reloads that left the previous configuration in force.
    pub failed: u64,
}

/// One problem of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProblemView {
    /// The file, variable or argument, with the line.
    pub place: String,
    /// The file, if the problem is in one.
    pub file: Option<String>,
    /// The line in the file.
    pub line: Option<u32>,
    /// The key; empty for a whole file.
    pub key: String,
    /// The value found, and the allowed values.
    pub message: String,
    /// A suggestion.
    pub hint: Option<String>,
}
