//! Metrics of the process, under the standard Prometheus names.

use prometheus::proto::MetricType;

use super::definition::Family;

pub(in crate::telemetry::metrics) const PROCESS_CPU: Family = Family {
    name: "process_cpu_seconds_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "CPU time of the process, user and system.",
};

pub(in crate::telemetry::metrics) const PROCESS_RESIDENT: Family = Family {
    name: "process_resident_memory_bytes",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Resident memory of the process.",
};

pub(in crate::telemetry::metrics) const PROCESS_FDS: Family = Family {
    name: "process_open_fds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Open file descriptors of the process.",
};

pub(in crate::telemetry::metrics) const PROCESS_FDS_LIMIT: Family = Family {
    name: "process_max_fds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Limit of open file descriptors; absent if unlimited.",
};

pub(in crate::telemetry::metrics) const PROCESS_START: Family = Family {
    name: "process_start_time_seconds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Start time of the process.",
};
