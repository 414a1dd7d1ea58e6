//! Metrics of candidates, the second runs of calls in the stages shadow and verify.

use prometheus::proto::MetricType;

use super::definition::Family;

pub(in crate::telemetry::metrics) const CANDIDATES_SKIPPED: Family = Family {
    name: "dualgauge_candidates_skipped_total",
    kind: MetricType::COUNTER,
    labels: &["route", "reason"],
    help: "Calls in shadow or verify without a candidate or comparison, by reason.",
};

pub(in crate::telemetry::metrics) const CANDIDATES_FAILED: Family = Family {
    name: "dualgauge_candidates_failed_total",
    kind: MetricType::COUNTER,
    labels: &["route", "reason"],
    help: "Candidates that ended with a failure of the proxy, by reason.",
};

pub(in crate::telemetry::metrics) const CANDIDATE_DURATION: Family = Family {
    name: "dualgauge_candidate_duration_seconds",
    kind: MetricType::HISTOGRAM,
    labels: &["route", "side", "stage"],
    help: "Time from the start of a candidate to the end of its response. No client waits for it.",
};

pub(in crate::telemetry::metrics) const CANDIDATES_IN_FLIGHT: Family = Family {
    name: "dualgauge_candidates_in_flight",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Candidates in flight.",
};
