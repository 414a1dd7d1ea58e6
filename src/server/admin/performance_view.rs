//! Errors, latency and verdicts of calls, in their JSON form.

use std::collections::BTreeMap;

use serde::Serialize;

use super::client_view::ServedByStage;
use super::page::Page;
use super::route_view::LatencyView;
use crate::telemetry::metrics::Performance;
use dualgauge_model::compare::Verdict;

/// Errors, latency and verdicts of the calls of this process.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerformanceView {
    /// The name of this replica.
    pub replica: String,
    /// The start of the process.
    pub since: String,
    /// Those of all calls.
    pub all: PerformanceRow,
    /// Those of the routes of a page.
    #[serde(flatten)]
    pub routes: Page<RoutePerformance>,
}

/// Errors, latency and verdicts of the calls of a route.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoutePerformance {
    /// The route.
    pub route: String,
    /// Those of its calls.
    #[serde(flatten)]
    pub performance: PerformanceRow,
}

/// Errors, latency and verdicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PerformanceRow {
    /// The calls by stage, with errors.
    #[serde(flatten)]
    pub served: ServedByStage,
    /// The durations of calls.
    pub latency: LatencyView,
    /// The calls in shadow or verify, by verdict.
    pub verdicts: BTreeMap<&'static str, u64>,
}

impl From<&Performance> for PerformanceRow {
    fn from(found: &Performance) -> PerformanceRow {
        PerformanceRow {
            served: found.served.into(),
            latency: LatencyView {
                old: found.old.into(),
                new: found.new.into(),
                candidates: found.candidates.into(),
            },
            verdicts: Verdict::WORDS.into_iter().zip(found.verdicts).collect(),
        }
    }
}
