//! How long the reports of others have not changed, by the clock of this process: that of another replica may stand
//! minutes apart, and whoever still reports has not ended.

use std::collections::BTreeMap;

use crate::domain::rollout::Reporter;
use crate::store::ReplicaReport;

/// Since when each report says what it says.
#[derive(Debug, Default)]
pub(super) struct ReportAges(BTreeMap<Reporter, FirstSeen>);

#[derive(Debug, Clone, Copy)]
struct FirstSeen {
    /// When the report was left, by the clock of who left it.
    said: u64,
    /// When this process saw that first, by its own.
    seen: u64,
}

impl ReportAges {
    /// Looks at all reports that there are now; one that is no longer there is forgotten.
    pub(super) fn look<'r>(&mut self, reports: impl Iterator<Item = &'r ReplicaReport>, now: u64) {
        let known = reports.map(|report| {
            let reporter = (report.replica.clone(), report.boot.clone());
            let before = self.0.get(&reporter);
            let since = before.filter(|since| since.said == report.at).copied();
            let anew = FirstSeen {
                said: report.at,
                seen: now,
            };
            (reporter, since.unwrap_or(anew))
        });
        self.0 = known.collect();
    }

    /// For how many milliseconds a report that was looked at has not changed.
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
            text: String::new(),
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
