//! The period of a report, and the starts of data that do not cover it. Used throughout `report`.

use super::data::{Collected, time};
use super::document::Line;
use crate::cli::plural::count;
use dualgauge_model::lifecycle::TimelineInterval;
use dualgauge_model::time::Timestamp;

/// The number of entries that a history has at most.
const HISTORY: usize = 200;

/// A period of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Period {
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Period {
    /// Returns true if a time of the API lies in the period.
    pub(super) fn has(&self, text: &str) -> bool {
        let at = time(text);
        self.since <= at && at <= self.until
    }

    /// Returns true if the time of the last call lies in the period.
    pub(super) fn has_last(&self, last: Option<&str>) -> bool {
        last.is_some_and(|last| self.has(last))
    }

    /// Returns the intervals of the timeline that end in the period.
    pub(super) fn intervals<'c>(
        &self,
        collected: &'c Collected,
    ) -> impl Iterator<Item = &'c TimelineInterval> {
        let since = self.since;
        let intervals = collected.overview.timeline.intervals.iter();
        intervals.filter(move |interval| interval.until > since)
    }

    /// Returns the start of the timeline in the period, if there is one.
    pub(super) fn timeline_start(&self, collected: &Collected) -> Option<Timestamp> {
        let first = self.intervals(collected).next()?;
        let began = first.until.before(collected.overview.timeline.seconds);
        Some(began.max(self.since))
    }

    /// Returns a line for each kind of data that does not cover the whole period, or that covers one replica only.
    pub(super) fn gaps(&self, collected: &Collected) -> Vec<Line> {
        let mut gaps = vec![self.process(collected)];
        match self.timeline_start(collected) {
            None => gaps.push(Line::text("Calls over time: there are none in the period.")),
            Some(start) => {
                let last = self.intervals(collected).last();
                let end = last.map_or(self.until, |interval| interval.until);
                let text = format!("Calls over time are those from {start} to {end}.");
                gaps.push(Line::text(text));
            }
        }
        gaps.extend(self.usage(collected));
        let history = &collected.history;
        let earliest = history.last().map(|change| change.by.at.as_str());
        if let Some(earliest) = earliest.filter(|at| history.len() >= HISTORY && self.has(at)) {
            let text = format!(
                "Changes and guard trips begin at {earliest}: the history holds the last {HISTORY}."
            );
            gaps.push(Line::text(text));
        }
        gaps
    }

    fn process(&self, collected: &Collected) -> Line {
        let performance = &collected.performance;
        let start = time(&performance.since);
        let line = Line::text(format!(
            "Latency, errors, verdicts and differences have been counted since {start}, the start of the process of replica "
        ));
        let line = line.and_code(&performance.replica);
        let others = replicas(collected).saturating_sub(1);
        let line = match others {
            0 => line,
            1 => line.and(" (another replica is not included)"),
            _ => line.and(format!(" ({others} other replicas are not included)")),
        };
        match start > self.since {
            true => line.and(": later than the period begins."),
            false => line.and(", which includes the time before the period."),
        }
    }

    /// Returns lines on the usage by client and route.
    fn usage(&self, collected: &Collected) -> Vec<Line> {
        let routes = &collected.usage.routes;
        let starts = routes.iter().map(|route| {
            let since = route.evidence.watched_since.as_deref();
            since.map(time)
        });
        let late = starts
            .clone()
            .filter(|start| start.is_none_or(|start| start > self.since));
        let late = late.count();
        let mut lines = Vec::new();
        if late > 0 {
            let earliest = starts.flatten().min();
            let line = match earliest {
                Some(start) if late == routes.len() => {
                    format!(
                        "Calls by client and route have been counted without a gap since {start} at the earliest."
                    )
                }
                _ => format!(
                    "Routes whose calls have been counted without a gap for less than the period: {late} of {}.",
                    routes.len()
                ),
            };
            lines.push(Line::text(line));
        }
        let gaps = routes.iter().map(|route| route.evidence.gaps.len()).max();
        if let Some(gaps) = gaps.filter(|gaps| *gaps > 0) {
            let text = format!(
                "Replicas did not count all the time: {} within the time without calls that deletion requires.",
                count(gaps as u64, "gap")
            );
            lines.push(Line::text(text));
        }
        lines
    }
}

/// Returns the number of replicas that have counted.
fn replicas(collected: &Collected) -> usize {
    let routes = collected.usage.routes.iter();
    let replicas = routes.map(|route| route.evidence.replicas).max();
    replicas.unwrap_or(1)
}
