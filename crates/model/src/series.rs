//! Configured limits and labels of metric series. Used by `config`, `plan` and `telemetry`.

use std::collections::BTreeMap;

/// The families whose labels hold configured names (routes, clients, flags, prefixes), each with all of its labels.
pub const FAMILIES: [(&str, &[&str]); 18] = [
    (
        "dualgauge_calls_total",
        &["route", "client", "side", "stage", "outcome", "blame"],
    ),
    (
        "dualgauge_decisions_total",
        &["client", "side", "reason", "flag"],
    ),
    ("dualgauge_keyless_calls_total", &["flag"]),
    (
        "dualgauge_call_duration_seconds",
        &["route", "client", "side", "stage", "outcome"],
    ),
    (
        "dualgauge_upstream_duration_seconds",
        &["route", "client", "side", "stage", "outcome"],
    ),
    ("dualgauge_dropped_members_total", &["route"]),
    ("dualgauge_events_total", &["route", "side", "kind"]),
    ("dualgauge_old_messages_total", &["route", "transport"]),
    (
        "dualgauge_verdicts_total",
        &["route", "client", "side", "stage", "verdict"],
    ),
    ("dualgauge_candidates_skipped_total", &["route", "reason"]),
    ("dualgauge_candidates_failed_total", &["route", "reason"]),
    (
        "dualgauge_candidate_duration_seconds",
        &["route", "side", "stage"],
    ),
    ("dualgauge_mismatching_fields", &["route"]),
    (
        "dualgauge_last_seen_timestamp_seconds",
        &["route", "client", "side"],
    ),
    ("dualgauge_mcp_calls_total", &["client", "era", "revision"]),
    (
        "dualgauge_mcp_last_seen_timestamp_seconds",
        &["client", "era"],
    ),
    (
        "dualgauge_route_sunset_timestamp_seconds",
        &["route", "side"],
    ),
    ("dualgauge_unrouted_calls_total", &["prefix"]),
];

/// Returns the labels of such a family.
#[must_use]
pub fn labels_of(family: &str) -> Option<&'static [&'static str]> {
    let known = FAMILIES.into_iter().find(|(name, _)| *name == family)?;
    Some(known.1)
}

/// The rules for series whose labels hold configured names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesRules {
    /// The maximum number of series; each bucket of a histogram is one series.
    pub limit: u64,
    /// The labels that a family keeps, by its name; other families keep all of their labels.
    pub labels: BTreeMap<String, Vec<String>>,
}

impl SeriesRules {
    /// The default of `metrics.series`: a page of about 14 MB.
    pub const LIMIT: u64 = 100_000;

    /// Returns whether a family keeps a label.
    #[must_use]
    pub fn keeps(&self, family: &str, label: &str) -> bool {
        let allowed = self.labels.get(family);
        allowed.is_none_or(|allowed| allowed.iter().any(|one| one == label))
    }
}

impl Default for SeriesRules {
    fn default() -> Self {
        SeriesRules {
            limit: SeriesRules::LIMIT,
            labels: BTreeMap::new(),
        }
    }
}
