//! The time since the reports of other replicas changed, by this process's clock. The clock of another replica may
//! differ by minutes, and a replica that still reports has not ended.
//!
//! Used by `control::reporter_id` and `control::reports`.

use std::collections::BTreeMap;

use crate::store::ReplicaReport;
use dualgauge_model::rollout::Reporter;

/// The time without change after which a process counts as ended, and its report is folded into the archive.
pub(super) const GONE_AFTER_MS: u64 = 300_000;

/// The first time at which each current report was seen.
#[derive(Debug, Default)]
pub(super) struct ReportAges(BTreeMap<Reporter, FirstSeen>);

#[derive(Debug, Clone, Copy)]
struct FirstSeen {
    /// The time of the report, by the clock of its author.
    reported_at: u64,
    /// The time at which this process first saw it, by its own clock.
    seen: u64,
}

impl ReportAges {
    /// Records all current reports, and forgets those that are gone.
    pub(super) fn look<'r>(&mut self, reports: impl Iterator<Item = &'r ReplicaReport>, now: u64) {
        let known = reports.map(|report| {
            let reporter = (report.replica.clone(), report.boot.clone());
            let before = self.0.get(&reporter);
            let since = before
                .filter(|since| since.reported_at == report.at)
                .copied();
            let anew = FirstSeen {
                reported_at: report.at,
                seen: now,
            };
            (reporter, since.unwrap_or(anew))
        });
        self.0 = known.collect();
    }

    /// Returns for how many milliseconds a recorded report has not changed.
    pub(super) fn of(&self, report: &ReplicaReport, now: u64) -> u64 {
        let reporter = (report.replica.clone(), report.boot.clone());
        let since = self.0.get(&reporter);
        since.map_or(0, |since| now.saturating_sub(since.seen))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(boot: &str, at: u64) -> ReplicaReport {
        ReplicaReport {
            replica: "a".to_owned(),
            boot: boot.to_owned(),
            at,
            text: "".into(),
        }
    }

    #[test]
    fn whoever_reports_is_not_silent_whatever_his_clock_says() {
        let mut silence = ReportAges::default();
        // An hour behind, and an hour ahead.
        for (second, (behind, ahead)) in (1_000_000..1_000_600).zip((0..).zip(3_600_000..)) {
            let reports = [report("behind", behind), report("ahead", ahead)];
            silence.look(reports.iter(), second);
            assert!(reports.iter().all(|report| silence.of(report, second) == 0));
        }
    }

    #[test]
    fn a_report_that_does_not_change_is_silent_since_it_was_first_seen() {
        let mut silence = ReportAges::default();
        let gone = report("gone", 5);
        for now in [1_000, 2_000, 301_000] {
            silence.look([&gone].into_iter(), now);
            assert_eq!(silence.of(&gone, now), now - 1_000);
        }
        silence.look([].into_iter(), 302_000);
        assert!(silence.0.is_empty());
        assert_eq!(silence.of(&gone, 302_000), 0);
    }
}
