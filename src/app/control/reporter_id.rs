//! The id under which a process reports its counts.
//!
//! A process that cannot reach its store for a while is taken for ended, and other replicas fold its report into the
//! archive. When it returns, it starts a new boot, whose counts continue after those reported under the last one. So
//! each call is counted once, whether or not the old report was folded.
//!
//! Used by `control::reports`.

use std::borrow::Cow;

use super::report_age::GONE_AFTER_MS;
use super::report_counts::ReportCounts;
use crate::store::{ReplicaReport, boot};
use dualgauge_model::lifecycle::Usage;
use dualgauge_model::rollout::{Reporter, Tallies};

/// The time without the store after which a process starts a new boot: before other replicas take it for ended, whose
/// clocks may be ahead.
const ANEW_AFTER_MS: u64 = GONE_AFTER_MS / 2;
/// The number of earlier boots to remember. Their reports are folded within minutes.
const FORMER: usize = 16;

/// The ids under which this process has reported.
#[derive(Debug)]
pub(super) struct ReporterId {
    /// The name of the replica and the first boot, under which this process keeps its own counts.
    source: Reporter,
    turn: BootEpoch,
    /// The time of the last report, and the counts until then.
    last: Option<(u64, ReportCounts)>,
    /// Earlier boots whose reports may still be in the store, the oldest first.
    former: Vec<String>,
}

/// A boot, and the counts reported under earlier boots.
#[derive(Debug, Clone)]
pub(super) struct BootEpoch {
    boot: String,
    before: Option<ReportCounts>,
}

impl BootEpoch {
    pub(super) fn boot(&self) -> &str {
        &self.boot
    }

    /// Returns the counts without those reported under earlier boots.
    pub(super) fn since(&self, counts: &ReportCounts) -> ReportCounts {
        let Some(before) = &self.before else {
            return counts.clone();
        };
        let tallies = counts.tallies.iter().map(|(flag, tally)| {
            let earlier = before.tallies.get(flag);
            let news = earlier.map_or_else(|| tally.clone(), |earlier| tally.since(earlier));
            (flag.clone(), news)
        });
        ReportCounts {
            tallies: tallies.collect::<Tallies>(),
            usage: counts.usage.since(&before.usage),
        }
    }
}

impl ReporterId {
    pub(super) fn new(replica: String) -> ReporterId {
        let boot = boot();
        ReporterId {
            source: (replica, boot.clone()),
            turn: BootEpoch { boot, before: None },
            last: None,
            former: Vec::new(),
        }
    }

    /// Returns the id under which this process keeps its own counts, whatever the boot.
    pub(super) const fn source(&self) -> &Reporter {
        &self.source
    }

    /// Returns the boot for a report now.
    pub(super) fn turn(&self, now: u64) -> BootEpoch {
        match &self.last {
            Some((at, counts)) if now.saturating_sub(*at) >= ANEW_AFTER_MS => BootEpoch {
                boot: boot(),
                before: Some(counts.clone()),
            },
            Some(_) | None => self.turn.clone(),
        }
    }

    /// Records that a report of these counts was stored; `there` are the reports in the store.
    pub(super) fn left(
        &mut self,
        turn: BootEpoch,
        at: u64,
        counts: ReportCounts,
        there: &[ReplicaReport],
    ) {
        if turn.boot != self.turn.boot {
            tracing::info!(
                "the store was unavailable for long; counting continues under a new boot"
            );
            self.former.push(self.turn.boot.clone());
        }
        self.turn = turn;
        self.last = Some((at, counts));
        let replica = &self.source.0;
        self.former.retain(|boot| {
            let mut there = there.iter();
            there.any(|report| (&report.replica, &report.boot) == (replica, boot))
        });
        let more = self.former.len().saturating_sub(FORMER);
        self.former.drain(..more);
    }

    /// Returns the usage that this process adds to that stored under earlier boots, without a copy if there is none.
    pub(super) fn news_of_usage<'c>(&self, counts: &'c ReportCounts) -> Cow<'c, Usage> {
        match &self.turn.before {
            None => Cow::Borrowed(&counts.usage),
            Some(before) => Cow::Owned(counts.usage.since(&before.usage)),
        }
    }

    /// Returns true if this process's next report replaces `report`.
    pub(super) fn is(&self, report: &ReplicaReport) -> bool {
        (&report.replica, &report.boot) == (&self.source.0, &self.turn.boot)
    }

    /// Returns true if this process has stored `report`, under any boot.
    pub(super) fn has_left(&self, report: &ReplicaReport) -> bool {
        self.is(report) || (report.replica == self.source.0 && self.former.contains(&report.boot))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use dualgauge_model::lifecycle::ClientUsage;
    use dualgauge_model::rollout::Way;
    use dualgauge_model::time::Timestamp;
    use dualgauge_patterns::side::Side;

    /// What lies in a store: reports by boots, and what was folded.
    #[derive(Default)]
    struct There {
        reports: BTreeMap<String, Usage>,
        archive: Usage,
    }

    impl There {
        fn leave(&mut self, own: &mut ReporterId, counts: &ReportCounts, now: u64) {
            let turn = own.turn(now);
            let usage = turn.since(counts).usage;
            self.reports.insert(turn.boot().to_owned(), usage);
            let there = self.reports.keys().map(|boot| ReplicaReport {
                replica: "one".to_owned(),
                boot: boot.clone(),
                at: now,
                text: "".into(),
            });
            own.left(turn, now, counts.clone(), &there.collect::<Vec<_>>());
        }

        fn fold(&mut self) {
            for (_, usage) in std::mem::take(&mut self.reports) {
                self.archive.merge(&usage);
            }
        }

        /// As another replica tells it.
        fn calls(&self) -> u64 {
            let mut all = self.archive.clone();
            self.reports.values().for_each(|usage| all.merge(usage));
            calls(&all)
        }

        /// As the process itself tells it.
        fn calls_with(&self, own: &ReporterId, counts: &ReportCounts) -> u64 {
            let mut all = self.archive.clone();
            let others = self
                .reports
                .iter()
                .filter(|(boot, _)| **boot != own.turn.boot);
            others.for_each(|(_, usage)| all.merge(usage));
            all.merge(&own.news_of_usage(counts));
            calls(&all)
        }
    }

    fn calls(usage: &Usage) -> u64 {
        let text: serde_json::Value = serde_json::from_str(&usage.to_json()).unwrap();
        let rows = text["calls"].as_array().unwrap().iter();
        rows.map(|row| row["old"]["calls"].as_u64().unwrap()).sum()
    }

    fn counted(count: u64) -> ReportCounts {
        let mut seen = ClientUsage::default();
        for second in 0..count {
            let at = i64::try_from(second).unwrap();
            seen.add(Some(Way::Old), Timestamp::from_unix(at));
        }
        let mut counts = ReportCounts::default();
        counts.usage.note("items", "app", Side::Rest, &seen);
        counts
    }

    #[test]
    fn who_was_taken_for_ended_and_is_back_is_counted_once() {
        let (mut there, mut own) = (There::default(), ReporterId::new("one".to_owned()));
        there.leave(&mut own, &counted(5), 0);
        there.leave(&mut own, &counted(7), 1_000);
        let first = own.turn.boot.clone();
        // Nobody reaches the store for six minutes; another replica is back first, and folds.
        there.fold();
        there.leave(&mut own, &counted(9), 361_000);
        assert_ne!(own.turn.boot, first);
        assert_eq!(there.calls(), 9);
        assert_eq!(there.calls_with(&own, &counted(10)), 10);
        there.leave(&mut own, &counted(12), 362_000);
        assert_eq!(there.calls(), 12);
        // And again.
        there.fold();
        there.leave(&mut own, &counted(13), 999_000);
        assert_eq!(there.calls(), 13);
        assert_eq!(there.calls_with(&own, &counted(13)), 13);
    }

    #[test]
    fn who_was_away_and_was_not_folded_is_counted_once_as_well() {
        let (mut there, mut own) = (There::default(), ReporterId::new("one".to_owned()));
        there.leave(&mut own, &counted(7), 0);
        let first = own.turn.boot.clone();
        there.leave(&mut own, &counted(9), 200_000);
        assert_eq!(own.former, [first]);
        assert_eq!(there.calls(), 9);
        assert_eq!(there.calls_with(&own, &counted(9)), 9);
        // The old boot is folded later, by whomever.
        there.fold();
        there.leave(&mut own, &counted(11), 201_000);
        assert!(own.former.is_empty());
    }

    #[test]
    fn a_short_absence_changes_nothing() {
        let (mut there, mut own) = (There::default(), ReporterId::new("one".to_owned()));
        there.leave(&mut own, &counted(7), 0);
        let first = own.turn.boot.clone();
        there.leave(&mut own, &counted(9), ANEW_AFTER_MS - 1);
        assert_eq!((own.turn.boot.as_str(), there.calls()), (first.as_str(), 9));
    }
}
