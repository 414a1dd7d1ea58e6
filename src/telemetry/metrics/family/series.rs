//! Metrics of the limit on the number of series.

use prometheus::proto::MetricType;

use super::definition::Family;

pub(in crate::telemetry::metrics) const SERIES: Family = Family {
    name: "dualgauge_metrics_series",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Series with names from the configuration as labels; each histogram bucket counts as one.",
};

pub(in crate::telemetry::metrics) const SERIES_LIMIT: Family = Family {
    name: "dualgauge_metrics_series_limit",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Limit of such series. Calls that need more count under the name overflow.",
};

pub(in crate::telemetry::metrics) const SERIES_OVERFLOW: Family = Family {
    name: "dualgauge_metrics_series_overflow",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Series beyond the limit, which count under the name overflow.",
};
