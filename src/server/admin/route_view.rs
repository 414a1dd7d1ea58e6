//! The routes with their calls, in their JSON form.

use serde::Serialize;

use super::client_view::ServedByStage;
use super::overview::ServedCalls;
use crate::telemetry::metrics::Durations;
use dualgauge_model::lifecycle::RouteReport;

/// A route with its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteRow {
    /// The name.
    pub name: String,
    /// The REST pattern.
    pub rest: String,
    /// The RPC pattern.
    pub rpc: String,
    /// The effect of a call on the upstream's state.
    pub effect: &'static str,
    /// The calls since counting began, on all replicas.
    pub calls: ServedCalls,
    /// The time when the last call began.
    pub last: Option<String>,
    /// The calls of this process by stage, since its start.
    #[serde(flatten)]
    pub served: ServedByStage,
    /// The side that is announced as deprecated.
    pub deprecated: Option<String>,
}

/// One route in detail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteDetail {
    /// The name.
    pub name: String,
    /// The REST pattern.
    pub rest: String,
    /// The RPC pattern.
    pub rpc: String,
    /// The effect of a call on the upstream's state.
    pub effect: &'static str,
    /// The only side that may call the route; `null` for both.
    pub from: Option<&'static str>,
    /// The declared reason why the route may lose content.
    pub lossy: Option<String>,
    /// The title, summary or description.
    pub about: Option<String>,
    /// The patterns of both sides.
    pub patterns: RoutePatterns,
    /// The examples in the configuration.
    pub examples: Vec<ExampleView>,
    /// The calls of this process by client and side, since its start; at most 100 callers, first those of `usage`.
    pub callers: Vec<CallerRow>,
    /// The number of callers that `usage` leaves out: it lists the 100 busiest.
    pub more_callers: usize,
    /// The durations of calls.
    pub latency: LatencyView,
    /// The calls on all replicas, the busiest callers first, and whether the route may be deleted.
    pub usage: Option<RouteReport>,
}

/// The patterns of a route. Those that a short form implies are written out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoutePatterns {
    /// Each hole with its type: `limit:integer=50`.
    pub holes: Vec<String>,
    /// The REST side.
    pub rest: Vec<PatternPart>,
    /// The RPC side.
    pub rpc: Vec<PatternPart>,
    /// The outcome rows in the order of the route table: those of the route, then those of its sets.
    pub outcomes: Vec<OutcomePatterns>,
}

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PatternPart {
    /// The key of the part in the configuration: `query.limit`.
    pub name: String,
    /// The pattern; JSON for params, results and most bodies.
    pub pattern: String,
}

/// An outcome row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutcomePatterns {
    /// The key of the row in the configuration.
    pub key: String,
    /// The name.
    pub name: Option<String>,
    /// The names of the rows that come before it.
    pub after: Vec<String>,
    /// Each hole with its type.
    pub holes: Vec<String>,
    /// The REST side.
    pub rest: Vec<PatternPart>,
    /// The RPC side.
    pub rpc: Vec<PatternPart>,
    /// The declared reason why the row may lose content.
    pub lossy: Option<String>,
}

/// An example of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExampleView {
    /// The REST call.
    pub rest: String,
    /// The body of the REST call.
    pub body: Option<String>,
    /// The RPC call.
    pub rpc: String,
    /// The responses, if the example has them.
    pub reply: Option<ExampleReplyView>,
}

/// The responses of an example.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExampleReplyView {
    /// The REST status and body.
    pub rest: String,
    /// The RPC result or error.
    pub rpc: String,
}

/// The calls of a client on one side of a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallerRow {
    /// The client.
    pub client: String,
    /// The side that it called.
    pub side: &'static str,
    /// Its calls by stage.
    #[serde(flatten)]
    pub served: ServedByStage,
}

/// The durations of calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencyView {
    /// Those that the old side served.
    pub old: DurationsView,
    /// Those that the new side served.
    pub new: DurationsView,
    /// Candidates, which no client waits for.
    pub candidates: DurationsView,
}

/// The distribution of durations, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DurationsView {
    /// The number of calls.
    pub count: u64,
    /// The estimated median.
    pub p50_ms: f64,
    /// The estimated 95th percentile.
    pub p95_ms: f64,
    /// The estimated 99th percentile.
    pub p99_ms: f64,
}

impl From<Durations> for DurationsView {
    fn from(durations: Durations) -> DurationsView {
        let ms = |seconds: f64| (seconds * 100_000.0).round() / 100.0;
        DurationsView {
            count: durations.count,
            p50_ms: ms(durations.p50),
            p95_ms: ms(durations.p95),
            p99_ms: ms(durations.p99),
        }
    }
}
