//! Messages on RPC paths that are not valid JSON-RPC 2.0.

use prometheus::proto::MetricType;

use super::definition::Family;

pub(in crate::telemetry::metrics) const INVALID_MESSAGES: Family = Family {
    name: "dualgauge_invalid_messages_total",
    kind: MetricType::COUNTER,
    labels: &["reason", "action"],
    help: "Messages posted to RPC paths that are not valid JSON-RPC 2.0: invalid_request (one method is readable), unreadable (none) or ambiguous (several).",
};
