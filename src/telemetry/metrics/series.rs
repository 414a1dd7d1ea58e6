//! The limit on the number of series that are labelled with configured names.
//!
//! Laws: a series that was shown stays, until the rules change; the sum of a counter over all its series is the same
//! with and without the limit; no counter falls because another series appears.
//!
//! Used by `metrics::named` and `metrics::render`.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use prometheus::proto::{self, MetricType};

use super::family::{self, Family};
use super::histogram::Histogram;
use super::labels::Outcome;
use super::protobuf::{gauge, metric_family};
use dualgauge_model::compare::{Skip, Verdict};
use dualgauge_model::dialect::OldTransport;
use dualgauge_model::failure::Reason;
use dualgauge_model::local_reply::HANDSHAKES;
use dualgauge_model::mcp::Era;
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::Stage;
use dualgauge_model::series::SeriesRules;
use dualgauge_model::stream;
use dualgauge_model::time::Timestamp;
use dualgauge_patterns::side::Side;

/// The label value under which series beyond the limit are summed.
pub(super) const OVERFLOW: &str = "overflow";

/// The labels that contain configured names.
const NAMED: [&str; 4] = ["route", "client", "flag", "prefix"];

/// The families that have a series for each such name. Gauges of flags are exempt: they have one series per flag.
const BOUNDED: [&Family; 18] = [
    &family::CALLS,
    &family::DECISIONS,
    &family::KEYLESS_CALLS,
    &family::CALL_DURATION,
    &family::UPSTREAM_DURATION,
    &family::DROPPED_MEMBERS,
    &family::EVENTS,
    &family::OLD_MESSAGES,
    &family::VERDICTS,
    &family::CANDIDATES_SKIPPED,
    &family::CANDIDATES_FAILED,
    &family::CANDIDATE_DURATION,
    &family::MISMATCHING_FIELDS,
    &family::LAST_SEEN,
    &family::MCP_CALLS,
    &family::MCP_LAST_SEEN,
    &family::SUNSET,
    &family::UNROUTED_CALLS,
];

/// The lines of a histogram on the page: 15 buckets, the infinite one, the sum and the count.
const LINES: u64 = 18;

/// A value that can be combined with those of other series of its family.
pub(super) trait Merge {
    /// Combines this value with that of another series.
    fn merge(&mut self, other: Self);
}

impl Merge for u64 {
    fn merge(&mut self, other: u64) {
        *self += other;
    }
}

impl Merge for Histogram {
    fn merge(&mut self, other: Histogram) {
        self.add(&other);
    }
}

/// The latest of several times.
pub(super) struct Latest(pub(super) Timestamp);

impl Merge for Latest {
    fn merge(&mut self, other: Latest) {
        self.0 = self.0.max(other.0);
    }
}

/// The earliest of several times.
pub(super) struct Earliest(pub(super) Timestamp);

impl Merge for Earliest {
    fn merge(&mut self, other: Earliest) {
        self.0 = self.0.min(other.0);
    }
}

/// The series shown so far.
#[derive(Debug, Default)]
pub struct ShownSeries {
    rules: SeriesRules,
    /// The hashes of families with their labels.
    known: HashSet<u64>,
    lines: u64,
    /// The part of `lines` that belongs to histograms.
    histogram_lines: u64,
    /// The number of series of this scrape that are beyond the limit.
    over: u64,
}

impl ShownSeries {
    /// Returns the number of series of the last scrape that were summed under `overflow`.
    #[must_use]
    pub const fn over(&self) -> u64 {
        self.over
    }

    /// Starts a scrape. Changed rules produce other series, so the set is cleared.
    pub(super) fn begin(&mut self, rules: &SeriesRules) {
        if self.rules != *rules {
            *self = ShownSeries {
                rules: rules.clone(),
                ..ShownSeries::default()
            };
        }
        self.over = 0;
    }

    /// Returns the rows of a family without disabled labels; rows beyond the limit are summed under `overflow`.
    pub(super) fn table<'t, V: Merge, const N: usize>(
        &mut self,
        family: &Family,
        rows: impl Iterator<Item = ([&'t str; N], V)>,
    ) -> BTreeMap<[&'t str; N], V> {
        let is_enabled = |label: &&&str| self.rules.keeps(family.name, label);
        let enabled: Vec<bool> = family
            .labels
            .iter()
            .map(|label| is_enabled(&label))
            .collect();
        let mut merged = BTreeMap::new();
        for (mut labels, value) in rows {
            for (label, is_enabled) in labels.iter_mut().zip(&enabled) {
                if !is_enabled {
                    *label = "";
                }
            }
            merge(&mut merged, labels, value);
        }
        let mut table = BTreeMap::new();
        for (mut labels, value) in merged {
            if !self.admit(family, &labels) {
                self.over += lines(family);
                for (label, name) in labels.iter_mut().zip(family.labels) {
                    if NAMED.contains(name) && !label.is_empty() {
                        *label = OVERFLOW;
                    }
                }
            }
            merge(&mut table, labels, value);
        }
        table
    }

    /// Records a series if it is within the limit, and returns true if it is. Histograms and other families may each
    /// use three quarters of the limit, so that neither starves the other.
    fn admit(&mut self, family: &Family, labels: &[&str]) -> bool {
        let mut pairs = family.labels.iter().zip(labels);
        if !pairs.any(|(name, label)| NAMED.contains(name) && !label.is_empty()) {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        (family.name, labels).hash(&mut hasher);
        let hash = hasher.finish();
        if self.known.contains(&hash) {
            return true;
        }
        let (lines, limit) = (lines(family), self.rules.limit);
        let is_histogram = family.kind == MetricType::HISTOGRAM;
        let lines_of_kind = match is_histogram {
            true => self.histogram_lines,
            false => self.lines - self.histogram_lines,
        };
        if lines_of_kind + lines > limit / 4 * 3 || self.lines + lines > limit {
            return false;
        }
        self.known.insert(hash);
        self.lines += lines;
        if is_histogram {
            self.histogram_lines += lines;
        }
        true
    }

    /// Returns the families that describe the limit.
    pub(super) fn families(&self) -> Vec<proto::MetricFamily> {
        let unlabelled =
            |family, value: u64| metric_family(family, vec![gauge(family, &[], value as f64)]);
        vec![
            unlabelled(&family::SERIES, self.lines),
            unlabelled(&family::SERIES_LIMIT, self.rules.limit),
            unlabelled(&family::SERIES_OVERFLOW, self.over),
        ]
    }
}

fn merge<'t, V: Merge, const N: usize>(
    table: &mut BTreeMap<[&'t str; N], V>,
    labels: [&'t str; N],
    value: V,
) {
    use std::collections::btree_map::Entry;
    match table.entry(labels) {
        Entry::Occupied(mut known) => known.get_mut().merge(value),
        Entry::Vacant(entry) => {
            entry.insert(value);
        }
    }
}

fn lines(family: &Family) -> u64 {
    match family.kind {
        MetricType::HISTOGRAM => LINES,
        MetricType::COUNTER | MetricType::GAUGE | MetricType::SUMMARY | MetricType::UNTYPED => 1,
    }
}

/// The number of series that a plan can produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeriesEstimate {
    /// The number if each client has called each route on both sides, each with one outcome at one stage.
    pub usual: u64,
    /// The number with every stage, outcome and reason for each of them.
    pub most: u64,
    /// The limit.
    pub limit: u64,
}

/// Returns the number of series labelled with configured names that a plan can produce.
#[must_use]
pub fn estimate(plan: &Plan) -> SeriesEstimate {
    let (mut usual, mut most) = (0_u64, 0_u64);
    for family in BOUNDED {
        let (mut one, mut all) = (lines(family), lines(family));
        let labels = family.labels.iter();
        for label in labels.filter(|label| plan.series.keeps(family.name, label)) {
            let (few, many) = values(plan, family, label);
            one = one.saturating_mul(few as u64);
            all = all.saturating_mul(many as u64);
        }
        usual = usual.saturating_add(one);
        most = most.saturating_add(all);
    }
    SeriesEstimate {
        usual,
        most,
        limit: plan.series.limit,
    }
}

/// Returns the number of values of a label: in ordinary use, and at most.
fn values(plan: &Plan, family: &Family, label: &str) -> (usize, usize) {
    let both = |count: usize| (count, count);
    let is = |other: &Family| family.name == other.name;
    match label {
        "route" if is(&family::SUNSET) => {
            let announced = plan.lifecycle.routes.iter().flatten();
            both(announced.count())
        }
        "route" if is(&family::OLD_MESSAGES) => {
            let old = plan.routes.routes().iter().filter(|route| route.is_old());
            let old = old.count();
            // Includes `unrouted`, if there are old messages.
            both(old + usize::from(old > 0))
        }
        "transport" => (1, OldTransport::ALL.len()),
        // Includes `unrouted`, and `none` for calls that are refused before routing.
        "route" => {
            let routes = plan.routes.routes().len() + plan.streams.all().len();
            (routes + 1, routes + 2)
        }
        "client" => {
            let clients = plan.rollout.clients.all().len();
            (clients + 1, clients + 2)
        }
        "flag" if is(&family::KEYLESS_CALLS) => both(plan.rollout.flags.len()),
        "flag" => (1, plan.rollout.flags.len() + 1),
        "prefix" => both(plan.lifecycle.prefixes.all().len()),
        "side" => both(Side::ALL.len()),
        "stage" => (1, Stage::ALL.len() + 1),
        "outcome" => (1, Outcome::ALL.len()),
        // Client, upstream, proxy and none.
        "blame" => (1, 4),
        "era" => (1, Era::ALL.len()),
        // The known ones of the era with a handshake, unnamed and other.
        "revision" => (1, HANDSHAKES.len() + 2),
        "verdict" => (1, Verdict::WORDS.len()),
        "kind" => (1, stream::EventResultKind::ALL.len()),
        "reason" if is(&family::CANDIDATES_SKIPPED) => (1, Skip::ALL.len()),
        "reason" if is(&family::CANDIDATES_FAILED) => (1, Reason::ALL.len()),
        // The rules that can choose a stage.
        _ => (1, 10),
    }
}

#[cfg(test)]
mod tests;
