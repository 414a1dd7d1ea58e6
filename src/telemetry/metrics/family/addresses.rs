//! Metrics of the addresses of upstreams.

use prometheus::proto::MetricType;

use super::definition::Family;

pub(in crate::telemetry::metrics) const UPSTREAM_CUT_CONNECTIONS: Family = Family {
    name: "dualgauge_upstream_cut_connections_total",
    kind: MetricType::COUNTER,
    labels: &["upstream"],
    help: "HTTP/2 connections to an upstream that the proxy aborted because the server sent too many frames without progress or broke the protocol.",
};
