//! The data of a report, as the admin API answers. Members that a report does not show are not read, so a newer proxy
//! may answer more. Used throughout `report`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::admin::{AdminClient, AdminFault};
use dualgauge_model::lifecycle::{TimelineInterval, UsageReport, parse_idle};
use dualgauge_model::time::Timestamp;

/// The start of the period, as the user wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// This many seconds before now.
    Ago(u64),
    /// A time.
    At(Timestamp),
}

impl Since {
    /// Parses a duration or a time.
    pub(super) fn parse(text: &str) -> Result<Since, &'static str> {
        if let Some(seconds) = parse_idle(text) {
            return Ok(Since::Ago(seconds));
        }
        Timestamp::parse(text).map(Since::At).map_err(|_| {
            "write a duration before now such as `7d` or `12h`, or a time such as `2026-06-30T12:00:00Z`"
        })
    }

    /// Returns the time, on the clock of the proxy.
    pub(super) const fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Since::Ago(seconds) => now.before(seconds),
            Since::At(time) => time,
        }
    }
}

/// Everything that a report shows.
#[derive(Debug, Deserialize)]
pub(super) struct Collected {
    pub(super) usage: UsageReport,
    pub(super) overview: Overview,
    pub(super) performance: Performance,
    pub(super) mismatches: Mismatches,
    pub(super) history: Vec<Change>,
    pub(super) plan: Plan,
    pub(super) status: Status,
}

#[derive(Debug, Deserialize)]
pub(super) struct Overview {
    pub(super) timeline: Timeline,
    pub(super) attention: Vec<Attention>,
    pub(super) more: usize,
}

#[derive(Debug, Deserialize)]
pub(super) struct Timeline {
    pub(super) seconds: u64,
    pub(super) intervals: Vec<TimelineInterval>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attention {
    pub(super) subject: Option<String>,
    pub(super) text: String,
    pub(super) at: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Performance {
    pub(super) replica: String,
    pub(super) since: String,
    pub(super) all: PerformanceRow,
    pub(super) total: usize,
    pub(super) items: Vec<RoutePerformance>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RoutePerformance {
    pub(super) route: String,
    #[serde(flatten)]
    pub(super) row: PerformanceRow,
}

#[derive(Debug, Deserialize)]
pub(super) struct PerformanceRow {
    pub(super) old: Errors,
    pub(super) new: Errors,
    pub(super) latency: Latency,
    pub(super) verdicts: BTreeMap<String, u64>,
}

impl PerformanceRow {
    /// Returns the number of calls with a verdict.
    pub(super) fn verdict(&self, verdict: &str) -> u64 {
        self.verdicts.get(verdict).copied().unwrap_or_default()
    }

    /// Returns the number of calls whose two responses were compared, or of which one failed.
    pub(super) fn compared(&self) -> u64 {
        let all: u64 = self.verdicts.values().sum();
        all - self.verdict("skipped")
    }
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Errors {
    pub(super) calls: u64,
    pub(super) errors: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Latency {
    pub(super) old: Durations,
    pub(super) new: Durations,
    pub(super) candidates: Durations,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Durations {
    pub(super) count: u64,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
    pub(super) p99_ms: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Mismatches {
    pub(super) routes: Vec<RouteMismatches>,
    pub(super) more: u64,
    pub(super) forgotten: Vec<Forgotten>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RouteMismatches {
    pub(super) route: String,
    pub(super) failed: Failed,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Failed {
    pub(super) count: u64,
    pub(super) last: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Field {
    pub(super) field: String,
    pub(super) count: u64,
    pub(super) last: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Forgotten {
    pub(super) route: String,
    pub(super) field: Option<String>,
    pub(super) count: u64,
    pub(super) last: String,
    pub(super) forgotten: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Change {
    pub(super) what: String,
    pub(super) by: Author,
    pub(super) after: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Author {
    pub(super) who: String,
    pub(super) at: String,
    #[serde(default)]
    pub(super) why: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) clients: Vec<Named>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Status {
    pub(super) version: String,
}

/// Asks the API for everything.
pub(super) fn collect(admin: &AdminClient, idle: &str) -> Result<Collected, AdminFault> {
    Ok(Collected {
        usage: get(admin, &format!("/api/v1/usage?idle={idle}"))?,
        overview: get(admin, "/api/v1/overview")?,
        performance: get(admin, "/api/v1/performance?sort=calls&limit=100")?,
        mismatches: get(admin, "/api/v1/mismatches")?,
        history: get(admin, "/api/v1/history")?,
        plan: get(admin, "/api/v1/plan")?,
        status: get(admin, "/api/v1/status")?,
    })
}

fn get<T: DeserializeOwned>(admin: &AdminClient, path: &str) -> Result<T, AdminFault> {
    serde_json::from_value(admin.get(path)?).map_err(|_| AdminFault::NoJson)
}

/// Parses a time of the API; a text in an unknown form is the earliest time.
pub(super) fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_default()
}
