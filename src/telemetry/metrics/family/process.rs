//! What every program tells of itself, by the names that Prometheus gives it.

use prometheus::proto::MetricType;

use super::Family;

pub(in crate::telemetry::metrics) const PROCESS_CPU: Family = Family {
    name: "process_cpu_seconds_total",
    kind: MetricType::COUNTER,
    labels: &[],
    help: "Time of CPUs that the process has spent, in user and in system mode.",
};

pub(in crate::telemetry::metrics) const PROCESS_RESIDENT: Family = Family {
    name: "process_resident_memory_bytes",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Memory that the process has in RAM.",
};

pub(in crate::telemetry::metrics) const PROCESS_FDS: Family = Family {
    name: "process_open_fds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "Open file descriptors of the process: connections, files, pipes.",
};

pub(in crate::telemetry::metrics) const PROCESS_FDS_LIMIT: Family = Family {
    name: "process_max_fds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "How many file descriptors the process may have open; there is no series where there is no limit.",
};

pub(in crate::telemetry::metrics) const PROCESS_START: Family = Family {
    name: "process_start_time_seconds",
    kind: MetricType::GAUGE,
    labels: &[],
    help: "When the process began, in seconds since 1970.",
};
