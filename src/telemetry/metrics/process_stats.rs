//! The resources that the process uses, under the standard Prometheus names.
//!
//! A value that the system does not provide has no series; Linux provides all of them.
//!
//! Used by `metrics::global` and `metrics::render`.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus::proto;
use rustix::process::{Resource, getrlimit};

use super::family::{self, Family};
use super::protobuf::{gauge, metric_family};
use crate::telemetry::clock;

/// The resource usage of the process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStats {
    /// The CPU time.
    pub cpu: Duration,
    /// The resident memory in bytes.
    pub resident: Option<u64>,
    /// The number of open file descriptors.
    pub open_fds: Option<u64>,
    /// The limit of open file descriptors.
    pub max_fds: Option<u64>,
    /// The start of the process.
    pub started: SystemTime,
}

impl ProcessStats {
    /// Reads the resource usage of this process, which started at `started`.
    #[must_use]
    pub fn read(started: SystemTime) -> ProcessStats {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        ProcessStats {
            cpu: clock::cpu(),
            resident: resident(&status),
            open_fds: open_fds(),
            max_fds: getrlimit(Resource::Nofile).current,
            started,
        }
    }
}

/// Parses the line `VmRSS`, in `kB`.
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Counts the open file descriptors, without the one that reads the folder.
fn open_fds() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(open.saturating_sub(1)).ok()
}

/// Returns the families of the process.
pub(super) fn families(own: &ProcessStats) -> Vec<proto::MetricFamily> {
    let known = |family: &Family, value: Option<u64>| {
        let series = value.map(|value| gauge(family, &[], value as f64));
        metric_family(family, series.into_iter().collect())
    };
    let mut cpu_seconds = proto::Counter::default();
    cpu_seconds.set_value(own.cpu.as_secs_f64());
    let mut cpu = proto::Metric::default();
    cpu.set_counter(cpu_seconds);
    let started = own.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    vec![
        metric_family(&family::PROCESS_CPU, vec![cpu]),
        known(&family::PROCESS_RESIDENT, own.resident),
        known(&family::PROCESS_FDS, own.open_fds),
        known(&family::PROCESS_FDS_LIMIT, own.max_fds),
        metric_family(
            &family::PROCESS_START,
            vec![gauge(&family::PROCESS_START, &[], started.as_secs_f64())],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_reports_this_process() {
        let own = ProcessStats::read(UNIX_EPOCH);
        assert!(own.resident.unwrap() > 1 << 20, "{own:?}");
        assert!(own.open_fds.unwrap() >= 3, "{own:?}");
        assert!(own.max_fds.unwrap() >= own.open_fds.unwrap(), "{own:?}");
        assert!(own.cpu > Duration::ZERO, "{own:?}");
    }

    #[test]
    fn an_unreadable_value_has_no_series() {
        assert_eq!(
            resident("Name:\tx\nVmRSS:\t   2048 kB\n"),
            Some(2048 * 1024)
        );
        assert_eq!(resident("Name:\tx\n"), None);
        assert_eq!(resident("VmRSS:\t many kB\n"), None);
        let own = ProcessStats {
            resident: None,
            ..ProcessStats::read(UNIX_EPOCH)
        };
        let empty = families(&own);
        let empty = empty.iter().filter(|family| family.get_metric().is_empty());
        assert_eq!(empty.count(), 1);
    }
}
