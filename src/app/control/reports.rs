//! The counts of this process, stored for restarts and other replicas, and the counts of all replicas.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::guarded_flag::GuardedFlag;
use super::report_age::GONE_AFTER_MS;
use super::report_counts::ReportCounts;
use super::state::Control;
use crate::store::{CommitError, Health, ReplicaReport, Reports, Versioned};
use crate::telemetry::clock::{millis, timestamp};
use dualgauge_model::lifecycle::{Timeline, Usage, UsageTotals};
use dualgauge_model::rollout::{Glob, Tallies};

/// The interval of reports to a folder. A server gets a report at each evaluation, because the guards of all replicas
/// decide on the counts of all.
const WRITE_EVERY_MS: u64 = 10_000;

/// The stored counts of one process. The archive contains the usage only.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct CountedUsage {
    tallies: Tallies,
    guards: BTreeMap<String, GuardedFlag>,
    usage: Value,
    /// Absent in a shared store, where each report is written every second.
    #[serde(skip_serializing_if = "Option::is_none")]
    timeline: Option<Timeline>,
}

impl CountedUsage {
    fn new(usage: &Usage) -> CountedUsage {
        CountedUsage {
            // A usage always serializes to valid JSON.
            usage: serde_json::from_str(&usage.to_json()).unwrap_or_default(),
            ..CountedUsage::default()
        }
    }

    /// Returns the usage; empty if another version wrote it in an unknown form.
    fn usage(&self) -> Usage {
        Usage::from_json(&self.usage.to_string()).unwrap_or_default()
    }
}

impl Control {
    /// Takes the counts of this process, stores them when due, and reads the reports of others.
    pub async fn report(&mut self, counts: ReportCounts, at: SystemTime) {
        let own = self.reporting.own.source().clone();
        self.guards.summed.update(own, counts.tallies.clone());
        self.reporting.counts = counts;
        self.tend().await;
        let now = millis(at);
        let left = self.reporting.left;
        // A clock that was set back makes a report due, too.
        let age = left.and_then(|left| now.checked_sub(left));
        let is_due = age.is_none_or(|age| age >= WRITE_EVERY_MS);
        if is_due || self.is_shared() || self.store.health() != Health::Fine {
            self.leave_counts(now).await;
        }
        let at = timestamp(at);
        if self.timeline.is_due(at) {
            let totals = self.totals(Usage::add_by_client);
            self.timeline.note(totals, at);
        }
    }

    /// Stores the report at once, before the process ends.
    pub async fn leave(&mut self, now: u64) {
        self.store_kill_last().await;
        self.leave_counts(now).await;
    }

    async fn leave_counts(&mut self, now: u64) {
        self.copy_now().await;
        let turn = self.reporting.own.turn(now);
        let counts = turn.since(&self.reporting.counts);
        let counted = CountedUsage {
            tallies: counts.tallies,
            guards: self.guards.watched.clone(),
            timeline: (!self.is_shared()).then(|| self.timeline.clone()),
            ..CountedUsage::new(&counts.usage)
        };
        let Ok(text) = serde_json::to_string(&counted) else {
            return;
        };
        let report = ReplicaReport {
            replica: self.replica().to_owned(),
            boot: turn.boot().to_owned(),
            at: now,
            text: text.into(),
        };
        // If the store is unavailable, readiness shows it; the counts are part of the next report.
        if let Ok(reports) = self.store.exchange(&report).await {
            let counts = self.reporting.counts.clone();
            self.reporting.own.left(turn, now, counts, &reports.reports);
            self.take_reports(reports, now).await;
        }
    }

    pub(super) async fn take_reports(&mut self, reports: Reports, now: u64) {
        let Reports { archive, reports } = reports;
        let archive = self.archive(archive).await;
        let first = self.reporting.left.is_none();
        self.reporting.left = Some(now);
        let archived = read(&archive.text).usage();
        let read: Vec<(ReplicaReport, CountedUsage)> = reports
            .into_iter()
            .map(|report| (read(&report.text), report))
            .map(|(counted, report)| (report, counted))
            .collect();
        if first {
            self.remember_guards(&read);
            self.remember_timeline(&read);
        }
        // The counts of this process are known already, under whatever id they were stored.
        let others = read.iter();
        let others = others.filter(|(report, _)| !self.reporting.own.has_left(report));
        let sources = others.map(|(report, counted)| {
            let source = (report.replica.clone(), report.boot.clone());
            (source, counted.tallies.clone())
        });
        if first {
            self.guards.summed.begin(sources.clone());
        }
        self.guards.summed.take(sources);
        let others = read.iter().filter(|(report, _)| !self.is_own(report));
        let mut usage = archived.clone();
        for (_, counted) in others {
            usage.merge(&counted.usage());
        }
        self.reporting.others = usage;
        self.fold(archive.revision, archived, read, now).await;
    }

    /// Returns the archive, after restoring it in a store that has lost it.
    async fn archive(&mut self, found: Versioned) -> Versioned {
        if found.revision == 0 && self.reporting.archive.revision > 0 {
            let good = self.reporting.archive.clone();
            if let Err(error) = self.store.restore_archive(&good).await {
                tracing::warn!(%error, "the usage archive cannot be restored");
            }
            return good;
        }
        self.reporting.archive.clone_from(&found);
        found
    }

    fn is_own(&self, report: &ReplicaReport) -> bool {
        self.reporting.own.is(report)
    }

    /// Restores the state of the guards from the newest report of another process: the previous one, or another
    /// replica.
    fn remember_guards(&mut self, read: &[(ReplicaReport, CountedUsage)]) {
        let others = read.iter().filter(|(report, _)| !self.is_own(report));
        let newest = others.max_by_key(|(report, _)| report.at);
        if let Some((_, counted)) = newest {
            for (flag, watched) in &counted.guards {
                let known = self.guards.watched.entry(flag.clone());
                known.or_insert_with(|| watched.clone());
            }
        }
    }

    /// Continues the timeline of the process before this one, or that of this process. In either case, the next note is
    /// only the start of an interval: the earlier totals lack the counts of other processes, which are no new calls.
    fn remember_timeline(&mut self, read: &[(ReplicaReport, CountedUsage)]) {
        let others = read.iter().filter(|(report, _)| !self.is_own(report));
        let stored = others.filter_map(|(report, counted)| {
            let timeline = counted.timeline.clone()?;
            Some((report.at, timeline))
        });
        let newest = stored.max_by_key(|(at, _)| *at);
        let own = || std::mem::take(&mut self.timeline);
        let timeline = newest.map_or_else(own, |(_, timeline)| timeline);
        self.timeline = Timeline::restore(timeline);
    }

    /// Folds the reports of ended processes into the archive. The first replica to do so does it for all.
    async fn fold(
        &mut self,
        revision: u64,
        mut usage: Usage,
        read: Vec<(ReplicaReport, CountedUsage)>,
        now: u64,
    ) {
        // A folder belongs to one process, so the authors of all other reports in it have ended.
        let patience = if self.is_shared() { GONE_AFTER_MS } else { 0 };
        let silence = &mut self.reporting.silence;
        silence.look(read.iter().map(|(report, _)| report), now);
        let gone: Vec<(ReplicaReport, CountedUsage)> = read
            .into_iter()
            .filter(|(report, _)| {
                let silent = self.reporting.silence.of(report, now);
                !self.is_own(report) && silent >= patience
            })
            .collect();
        if gone.is_empty() {
            return;
        }
        for (_, counted) in &gone {
            usage.merge(&counted.usage());
        }
        let Ok(text) = serde_json::to_string(&CountedUsage::new(&usage)) else {
            return;
        };
        let reports: Vec<ReplicaReport> = gone.into_iter().map(|(report, _)| report).collect();
        match self.store.fold(revision, &text, &reports).await {
            // Another replica was first, so the reports are still to be read.
            Ok(()) | Err(CommitError::Conflict(_)) => {}
            Err(CommitError::Store(error)) => tracing::warn!(%error, "reports could not be folded"),
        }
    }

    /// Returns the name of this process among those that share the store.
    #[must_use]
    pub fn replica(&self) -> &str {
        &self.reporting.own.source().0
    }

    /// Returns the usage of other processes, and that of this one. Merged, they are [`Control::usage`].
    pub(super) fn usages(&self) -> [Cow<'_, Usage>; 2] {
        let own = self.reporting.own.news_of_usage(&self.reporting.counts);
        [Cow::Borrowed(&self.reporting.others), own]
    }

    /// Returns totals of the usage on all replicas, added up by `add`.
    pub(super) fn totals(
        &self,
        add: impl Fn(&Usage, &mut BTreeMap<String, UsageTotals>),
    ) -> BTreeMap<String, UsageTotals> {
        let mut totals = BTreeMap::new();
        for usage in self.usages() {
            add(&usage, &mut totals);
        }
        totals
    }

    /// Returns the usage on all replicas, since counting began.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let [others, own] = self.usages();
        let mut usage = own.into_owned();
        usage.merge(&others);
        usage
    }

    /// Returns the usage of some routes on all replicas, since counting began.
    pub(super) fn usage_of(&self, routes: &Glob) -> Usage {
        let mut usage = Usage::default();
        for part in self.usages() {
            usage.merge_routes(&part, |name| routes.fits(name));
        }
        usage
    }
}

/// Parses stored counts; an unknown form counts as nothing.
fn read(text: &str) -> CountedUsage {
    serde_json::from_str(text).unwrap_or_default()
}
