//! The results of a replay for people. Used by `replay`.

use super::latencies::Latencies;
use super::summary::{CallPlace, Conclusion, FailedSample, FieldSummary, RouteSummary, Summary};
use super::way::ReplayWay;
use crate::cli::plain::plain;
use crate::cli::plural::{count, differ};
use dualgauge_model::compare::Verdict;

/// The most groups of skipped calls that are listed.
const MOST_SKIPPED: usize = 20;

/// Renders the results.
pub(super) fn render(summary: &Summary) -> String {
    let mut text = String::new();
    for (name, route) in &summary.routes {
        text.push_str(&route_line(name, route));
        text.push_str(&times(summary.way, route));
        for (name, field) in &route.fields {
            text.push_str(&field_lines(name, field));
        }
        if route.more > 0 {
            let more = count(route.more, "more differing place");
            text.push_str(&format!("  and {more}\n"));
        }
        for failed in &route.failed {
            text.push_str(&failed_line(failed));
        }
    }
    text.push_str(&skipped(summary));
    for note in &summary.notes {
        text.push_str(&format!("note: {}\n", plain(note)));
    }
    text.push_str(&conclusion(summary));
    text
}

fn route_line(name: &str, route: &RouteSummary) -> String {
    format!("{name}: {}\n", verdicts(route))
}

/// Returns the numbers of calls by verdict.
pub(super) fn verdicts(route: &RouteSummary) -> String {
    let mut parts = vec![count(route.calls(), "call")];
    for (verdict, word) in [
        (Verdict::Match, "equal"),
        (Verdict::Mismatch, differ(route.of(Verdict::Mismatch))),
        (Verdict::CandidateFailed, "candidate failed"),
        (Verdict::ControlFailed, "control failed"),
        (Verdict::BothFailed, "both failed"),
    ] {
        let redacted = redacted_share(route.redacted_of(verdict));
        parts.extend(
            Some(route.of(verdict))
                .filter(|number| *number > 0)
                .map(|number| format!("{number} {word}{redacted}")),
        );
    }
    for (number, word) in [
        (
            route.uncertain,
            "uncertain, because of placeholders in the request",
        ),
        (route.by_status, "compared by status only"),
    ] {
        parts.extend(
            Some(number)
                .filter(|number| *number > 0)
                .map(|number| format!("{number} {word}")),
        );
    }
    if route.noisy > 0 {
        parts.push(format!(
            "{} left out as noise",
            count(route.noisy, "difference")
        ));
    }
    parts.join(", ")
}

/// Returns the part of a number of calls that has placeholders; empty if none has.
pub(super) fn redacted_share(redacted: u64) -> String {
    match redacted {
        0 => String::new(),
        _ => format!(" ({redacted} redacted)"),
    }
}

/// Returns the mark of a call that has placeholders.
pub(super) const fn redacted_mark(is_redacted: bool) -> &'static str {
    match is_redacted {
        true => " (redacted)",
        false => "",
    }
}

fn times(way: ReplayWay, route: &RouteSummary) -> String {
    let (control, candidate) = names(way);
    let line = |name: &str, times: &Latencies| {
        let [Some(p50), Some(p90), Some(p99), Some(longest)] = [
            times.percentile(50),
            times.percentile(90),
            times.percentile(99),
            times.longest(),
        ]
        .map(|us| us.map(milliseconds)) else {
            return String::new();
        };
        format!("  time {name}: p50 {p50}, p90 {p90}, p99 {p99}, longest {longest} ms\n")
    };
    line(control, &route.control_times) + &line(candidate, &route.candidate_times)
}

/// Returns the names of control and candidate.
pub(super) const fn names(way: ReplayWay) -> (&'static str, &'static str) {
    match way {
        ReplayWay::New => ("recorded", "new"),
        ReplayWay::Old => ("recorded", "old"),
        ReplayWay::Both => ("old", "new"),
    }
}

/// Formats microseconds as milliseconds.
pub(super) fn milliseconds(us: u64) -> String {
    format!("{}.{}", us / 1000, us % 1000 / 100)
}

fn field_lines(name: &str, field: &FieldSummary) -> String {
    let kinds: Vec<&str> = field.kinds.keys().copied().collect();
    let mut text = format!(
        "  {}  {}{} ({})\n",
        plain(name),
        count(field.calls, "call"),
        redacted_share(field.redacted),
        kinds.join(", ")
    );
    for sample in &field.samples {
        let found = &sample.difference;
        text.push_str(&format!(
            "    {}{}: {} {}: candidate {}, control {}\n",
            place(&sample.place),
            redacted_mark(sample.is_redacted),
            found.kind.as_str(),
            plain(&found.pointer),
            found.candidate,
            found.control
        ));
    }
    text
}

fn failed_line(failed: &FailedSample) -> String {
    let endings = failed.endings.as_ref();
    let endings = endings.map_or("not read".to_owned(), |(control, candidate)| {
        format!("candidate {candidate}, control {control}")
    });
    let cause = failed.cause.as_ref();
    let cause = cause.map_or(String::new(), |cause| format!(" ({})", plain(cause)));
    format!(
        "  candidate failed: {}{}: {endings}{cause}\n",
        place(&failed.place),
        redacted_mark(failed.is_redacted)
    )
}

fn place(place: &CallPlace) -> String {
    let path = plain(&place.path);
    format!("call {} {} {path}", place.number, plain(&place.method))
}

fn skipped(summary: &Summary) -> String {
    let mut text = String::new();
    for ((reason, of), group) in summary.skipped.iter().take(MOST_SKIPPED) {
        let numbers: Vec<String> = group.numbers.iter().map(u64::to_string).collect();
        let rest = match group.calls > numbers.len() as u64 {
            true => ", …",
            false => "",
        };
        let of = match of.is_empty() {
            true => String::new(),
            false => format!(" {}", plain(of)),
        };
        let why = group.why.as_ref();
        let why = why.map_or(String::new(), |why| format!(" ({})", plain(why)));
        text.push_str(&format!(
            "skipped: {reason}{of}: {}: {}{rest}{why}\n",
            count(group.calls, "call"),
            numbers.join(", ")
        ));
    }
    let listed = summary
        .skipped
        .values()
        .take(MOST_SKIPPED)
        .map(|group| group.calls);
    let more = summary.skipped_calls() - listed.sum::<u64>();
    if more > 0 {
        text.push_str(&format!("skipped: {} more\n", count(more, "call")));
    }
    text
}

fn conclusion(summary: &Summary) -> String {
    let (control, candidate) = names(summary.way);
    let compared = count(summary.compared(), "call");
    let result = match summary.conclusion() {
        Conclusion::Equal => match summary.unproven() {
            0 => "all equal".to_owned(),
            failed => format!("all equal, except {failed} whose control failed"),
        },
        Conclusion::Different => {
            let different = summary.different();
            format!("{different} {}", differ(different))
        }
        Conclusion::Unproven => "nothing proven".to_owned(),
    };
    let mut text = format!("{compared} compared ({candidate} with {control}): {result}");
    if summary.skipped_calls() > 0 {
        text.push_str(&format!("; {} skipped", summary.skipped_calls()));
    }
    if summary.not_selected > 0 {
        text.push_str(&format!(
            "; {} not selected by `--only`",
            summary.not_selected
        ));
    }
    text + "\n"
}
