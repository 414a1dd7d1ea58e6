//! The results of a replay: verdicts by route and field, times, and the calls that were skipped. All parts are bounded.
//!
//! Used by `driver`, `progress`, `replay` and its output.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::latencies::Latencies;
use super::prepare::{Redacted, Unsendable};
use super::way::ReplayWay;
use crate::cli::plural::count;
use crate::gateway::{NotRun, ReplayReport, ReplayedCall};
use dualgauge_model::compare::{Difference, ReplyPairs, Verdict};
use dualgauge_patterns::side::Side;

/// The most samples of a field, and of failed candidates of a route.
const SAMPLES: usize = 5;
/// The most fields of a route.
const FIELDS: usize = 256;
/// The most groups of skipped calls; beyond them, one more for each reason.
const GROUPS: usize = 1_000;
/// The most numbers of a group.
const NUMBERS: usize = 10;

/// The place of a call in the file.
#[derive(Debug, Clone)]
pub(super) struct CallPlace {
    /// The number of its line or entry.
    pub(super) number: u64,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) side: Side,
}

/// The conclusion of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conclusion {
    /// At least one call was compared with a valid control, and all such calls are equal.
    Equal,
    /// A call differs, or its candidate failed.
    Different,
    /// No call had a valid control, or the replay was stopped before a call differed.
    Unproven,
}

impl Conclusion {
    /// All conclusions.
    pub(super) const ALL: [Conclusion; 3] = [
        Conclusion::Equal,
        Conclusion::Different,
        Conclusion::Unproven,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Conclusion::Equal => "equal",
            Conclusion::Different => "different",
            Conclusion::Unproven => "unproven",
        }
    }
}

/// A difference of one call.
#[derive(Debug)]
pub(super) struct FieldSample {
    pub(super) place: CallPlace,
    /// True if the call has placeholders.
    pub(super) is_redacted: bool,
    pub(super) difference: Difference,
}

/// The differences of one field.
#[derive(Debug, Default)]
pub(super) struct FieldSummary {
    pub(super) calls: u64,
    /// Those of them that have placeholders.
    pub(super) redacted: u64,
    pub(super) kinds: BTreeMap<&'static str, u64>,
    pub(super) samples: Vec<FieldSample>,
}

/// A candidate that failed.
#[derive(Debug)]
pub(super) struct FailedSample {
    pub(super) place: CallPlace,
    /// True if the call has placeholders.
    pub(super) is_redacted: bool,
    /// The responses of control and candidate.
    pub(super) endings: Option<(String, String)>,
    pub(super) cause: Option<String>,
}

/// The results of one route.
#[derive(Debug, Default)]
pub(super) struct RouteSummary {
    /// The number of calls by verdict.
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    /// The number of calls by verdict whose request or response has placeholders.
    pub(super) redacted: BTreeMap<&'static str, u64>,
    /// Mismatches and failures that may come from placeholders in the request.
    pub(super) uncertain: u64,
    /// Calls of which only the status was compared.
    pub(super) by_status: u64,
    /// Differences that are noise.
    pub(super) noisy: u64,
    pub(super) fields: BTreeMap<String, FieldSummary>,
    /// Differences in fields beyond the limit, and places that were not stored.
    pub(super) more: u64,
    pub(super) failed: Vec<FailedSample>,
    /// Responses that differ, by their endings.
    pub(super) replies: ReplyPairs,
    pub(super) control_times: Latencies,
    pub(super) candidate_times: Latencies,
}

/// Calls that were skipped for one reason.
#[derive(Debug, Default)]
pub(super) struct SkippedGroup {
    pub(super) calls: u64,
    pub(super) numbers: Vec<u64>,
    /// More about the reason, from the first of them.
    pub(super) why: Option<String>,
}

/// The results of a replay.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) way: ReplayWay,
    pub(super) routes: BTreeMap<Arc<str>, RouteSummary>,
    /// By reason, and by route or request line; empty for calls beyond [`GROUPS`].
    pub(super) skipped: BTreeMap<(&'static str, String), SkippedGroup>,
    /// Calls of routes that `--only` does not select.
    pub(super) not_selected: u64,
    /// Facts that limit the results.
    pub(super) notes: Vec<String>,
    is_interrupted: bool,
}

impl RouteSummary {
    pub(super) fn calls(&self) -> u64 {
        self.verdicts.values().sum()
    }

    pub(super) fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts.get(verdict.as_str()).copied().unwrap_or(0)
    }

    /// Returns the number of calls with a verdict whose request or response has placeholders.
    pub(super) fn redacted_of(&self, verdict: Verdict) -> u64 {
        self.redacted.get(verdict.as_str()).copied().unwrap_or(0)
    }

    /// Returns the number of calls that differ, or whose candidate failed, and not because of a placeholder.
    pub(super) fn different(&self) -> u64 {
        let found = self.of(Verdict::Mismatch) + self.of(Verdict::CandidateFailed);
        found - self.uncertain.min(found)
    }

    /// Returns the number of calls whose control failed, so they prove nothing.
    pub(super) fn unproven(&self) -> u64 {
        self.of(Verdict::ControlFailed) + self.of(Verdict::BothFailed)
    }

    /// Returns true if at least one call had a valid control.
    pub(super) fn is_proven(&self) -> bool {
        self.calls() > self.unproven()
    }

    fn add(
        &mut self,
        place: &CallPlace,
        redacted: IsRedacted,
        report: ReplayReport,
        way: ReplayWay,
    ) {
        *self.verdicts.entry(report.verdict.as_str()).or_default() += 1;
        let is_difference = matches!(report.verdict, Verdict::Mismatch | Verdict::CandidateFailed);
        let is_redacted = redacted != IsRedacted::No;
        if is_redacted {
            *self.redacted.entry(report.verdict.as_str()).or_default() += 1;
        }
        self.uncertain += u64::from(redacted == IsRedacted::Uncertain && is_difference);
        self.by_status += u64::from(report.is_by_status);
        self.noisy += report.noisy as u64;
        if let Some(time) = report.control_time {
            self.control_times.add(time);
        }
        self.candidate_times.add(report.candidate_time);
        if let Some(pair) = report.replies
            && redacted != IsRedacted::Uncertain
            && let Some(translated) = way.translated()
        {
            self.replies
                .add(*pair, (place.side, translated), 0, usize::MAX);
        }
        if report.verdict == Verdict::CandidateFailed {
            let endings = report.endings;
            self.failed.push(FailedSample {
                place: place.clone(),
                is_redacted,
                endings: endings.map(|(one, two)| (one.to_string(), two.to_string())),
                cause: report.cause,
            });
            keep_first(&mut self.failed, |sample| sample.place.number);
        }
        if report.verdict == Verdict::Mismatch {
            self.more += report.more as u64;
            self.add_differences(place, is_redacted, report.differences);
        }
    }

    fn add_differences(
        &mut self,
        place: &CallPlace,
        is_redacted: bool,
        differences: Vec<Difference>,
    ) {
        let mut counted: Vec<String> = Vec::new();
        for difference in differences {
            let has_capacity = self.fields.len() < FIELDS;
            if !has_capacity && !self.fields.contains_key(&difference.field) {
                self.more += 1;
                continue;
            }
            let field = self.fields.entry(difference.field.clone()).or_default();
            if !counted.contains(&difference.field) {
                field.calls += 1;
                field.redacted += u64::from(is_redacted);
                counted.push(difference.field.clone());
            }
            *field.kinds.entry(difference.kind.as_str()).or_default() += 1;
            field.samples.push(FieldSample {
                place: place.clone(),
                is_redacted,
                difference,
            });
            keep_first(&mut field.samples, |sample| sample.place.number);
        }
    }
}

/// Keeps the samples with the smallest numbers, in order: calls end in any order.
fn keep_first<S>(samples: &mut Vec<S>, number: impl Fn(&S) -> u64) {
    samples.sort_by_key(number);
    samples.truncate(SAMPLES);
}

/// The effect of placeholders on a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IsRedacted {
    No,
    /// The hidden values were left out, or both sides got the same request.
    Yes,
    /// A difference may come from a placeholder in the request.
    Uncertain,
}

impl Summary {
    pub(super) fn new(way: ReplayWay) -> Summary {
        Summary {
            way,
            routes: BTreeMap::new(),
            skipped: BTreeMap::new(),
            not_selected: 0,
            notes: Vec::new(),
            is_interrupted: false,
        }
    }

    /// Adds the result of a call.
    pub(super) fn add(&mut self, place: &CallPlace, redacted: Redacted, replayed: ReplayedCall) {
        let redacted = match (redacted, self.way) {
            (Redacted::None, _) => IsRedacted::No,
            (Redacted::Request, ReplayWay::New | ReplayWay::Old) => IsRedacted::Uncertain,
            (Redacted::Request, ReplayWay::Both) | (Redacted::Response, _) => IsRedacted::Yes,
        };
        let ReplayedCall { route, result, .. } = replayed;
        match (route, result) {
            (_, Err(NotRun::NotSelected)) => self.not_selected += 1,
            (Some(route), Ok(report)) => {
                let summary = self.routes.entry(route).or_default();
                summary.add(place, redacted, report, self.way);
            }
            (route, Err(why)) => {
                let of = route.map_or_else(|| request_line(place), |route| route.to_string());
                let more = match &why {
                    NotRun::Refused(failure) => Some(failure.to_string()),
                    NotRun::Skipped(_)
                    | NotRun::Unrouted
                    | NotRun::NotSelected
                    | NotRun::Local
                    | NotRun::NoCall => None,
                };
                self.skip(why.as_str(), of, place.number, more);
            }
            // A call that ran has a route.
            (None, Ok(_)) => {}
        }
    }

    /// Adds a line or entry that is no call.
    pub(super) fn add_no_call(&mut self, number: u64, why: String) {
        self.skip("unreadable", String::new(), number, Some(why));
    }

    /// Adds a call that cannot be sent, with the route that the file names for it.
    pub(super) fn add_unsendable(
        &mut self,
        place: &CallPlace,
        route: Option<String>,
        why: Unsendable,
    ) {
        let of = route.unwrap_or_else(|| request_line(place));
        self.skip(why.as_str(), of, place.number, None);
    }

    fn skip(&mut self, reason: &'static str, of: String, number: u64, why: Option<String>) {
        let mut key = (reason, of);
        if self.skipped.len() >= GROUPS && !self.skipped.contains_key(&key) {
            key.1.clear();
        }
        let group = self.skipped.entry(key).or_default();
        group.calls += 1;
        if group.numbers.len() < NUMBERS {
            group.numbers.push(number);
        }
        if group.why.is_none() {
            group.why = why;
        }
    }

    /// Notes that the file cannot be read further.
    pub(super) fn end_early(&mut self, number: u64, why: &str) {
        self.notes.push(format!(
            "line {number}: {why}; later calls are not compared"
        ));
    }

    /// Notes how many calls are compared by status only, if any is.
    pub(super) fn note_statuses(&mut self) {
        let by_status: u64 = self.routes.values().map(|route| route.by_status).sum();
        if by_status > 0 {
            let calls = count(by_status, "call");
            self.notes.push(format!(
                "{calls} compared by status only, because the body of the response is missing, incomplete or redacted as a whole; `dualgauge record --bodies` records bodies of at most 4 MiB"
            ));
        }
    }

    /// Notes how many calls the new server had answered, if any.
    pub(super) fn note_answered_by_new(&mut self) {
        let reason = Unsendable::AnsweredByNew.as_str();
        let groups = self.skipped.iter();
        let groups = groups.filter(|((why, _), _)| *why == reason);
        let answered: u64 = groups.map(|(_, group)| group.calls).sum();
        if answered > 0 {
            let calls = count(answered, "call");
            self.notes.push(format!(
                "{calls} skipped, because the recorded response is from the new server; record clients in `passthrough` or `shadow`, or use `--to both`"
            ));
        }
    }

    /// Notes that a signal has ended the replay with this number of calls in progress.
    pub(super) fn interrupt(&mut self, running: usize) {
        self.is_interrupted = true;
        self.notes.push(format!(
            "stopped by a signal; {} in progress and all later ones are not compared",
            count(running, "call")
        ));
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    /// Returns the number of calls with a verdict.
    pub(super) fn compared(&self) -> u64 {
        self.routes.values().map(RouteSummary::calls).sum()
    }

    /// Returns the number of calls that differ, or whose candidate failed.
    pub(super) fn different(&self) -> u64 {
        self.routes.values().map(RouteSummary::different).sum()
    }

    /// Returns the number of calls whose control failed.
    pub(super) fn unproven(&self) -> u64 {
        self.routes.values().map(RouteSummary::unproven).sum()
    }

    pub(super) fn skipped_calls(&self) -> u64 {
        let groups = self.skipped.values().map(|group| group.calls);
        groups.sum()
    }

    pub(super) fn conclusion(&self) -> Conclusion {
        if self.different() > 0 {
            return Conclusion::Different;
        }
        match self.is_interrupted || self.compared() == self.unproven() {
            true => Conclusion::Unproven,
            false => Conclusion::Equal,
        }
    }
}

fn request_line(place: &CallPlace) -> String {
    format!("{} {}", place.method, place.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_beyond_the_limit_of_groups_are_counted_by_reason() {
        let mut summary = Summary::new(ReplayWay::New);
        for number in 0..GROUPS as u64 + 5 {
            let place = CallPlace {
                number,
                method: "GET".to_owned(),
                path: format!("/{number}"),
                side: Side::Rest,
            };
            summary.add_unsendable(&place, None, Unsendable::Invalid);
        }
        assert_eq!(summary.skipped.len(), GROUPS + 1);
        assert_eq!(summary.skipped[&("invalid", String::new())].calls, 5);
        assert_eq!(summary.skipped_calls(), GROUPS as u64 + 5);
    }
}
