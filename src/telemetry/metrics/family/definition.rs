//! The type of a metric family. Used by `metrics`.

use prometheus::proto::MetricType;

/// One metric family.
#[derive(Debug)]
pub(in crate::telemetry::metrics) struct Family {
    pub(in crate::telemetry::metrics) name: &'static str,
    pub(in crate::telemetry::metrics) kind: MetricType,
    pub(in crate::telemetry::metrics) labels: &'static [&'static str],
    pub(in crate::telemetry::metrics) help: &'static str,
}
