//! The report as one JSON document; its members are an interface for other programs. Used by `check`.

use std::io::{self, Write};

use serde::Serialize;

use super::statements::{accepted, row};
use super::verdict::Checked;
use crate::config::problem::{Problem, Problems, SourceLocation};
use crate::telemetry::metrics::{SeriesEstimate, estimate};
use dualgauge_model::check::{
    Direction, EventFinding, EventReport, Finding, FindingKind, LossVerdict, Never, RefusalCause,
    RefusedMessage, RouteReport,
};
use dualgauge_model::event::EventDefinition;
use dualgauge_model::route::Route;

#[derive(Debug, Serialize)]
struct ValidConfig<'d> {
    ok: bool,
    problems: Vec<ProblemRow<'d>>,
    notes: Vec<ProblemRow<'d>>,
    routes: Vec<RouteRow<'d>>,
    /// Each event, once for each of its forms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    events: Vec<EventRow<'d>>,
    flags: usize,
    clients: usize,
    series: SeriesRow,
}

/// The number of metric series with configured names.
#[derive(Debug, Serialize)]
struct SeriesRow {
    /// When each client has called each route, with one outcome.
    usual: u64,
    /// With every stage, outcome and reason.
    most: u64,
    limit: u64,
}

#[derive(Debug, Serialize)]
struct InvalidConfig<'d> {
    ok: bool,
    problems: Vec<ProblemRow<'d>>,
}

/// A route as in the files, with its verdicts.
#[derive(Debug, Serialize)]
struct RouteRow<'d> {
    name: &'d str,
    rest: &'d str,
    rpc: &'d str,
    effect: &'static str,
    extra: &'static str,
    /// The declared reason why the route may lose content.
    lossy: Option<&'d str>,
    directions: Vec<DirectionRow<'d>>,
    /// The replies that the rows of the route map: `mapped`, `failures_only`, `not_mapped`, or `none` without rows.
    replies: &'static str,
    examples: Examples<'d>,
    problems: Vec<&'d str>,
}

#[derive(Debug, Serialize)]
struct DirectionRow<'d> {
    /// The side of the caller, or of the responding server.
    from: &'static str,
    /// `request`, `outcome`, or `builtin` for responses that the route does not define.
    kind: &'static str,
    /// The key of the row.
    row: Option<&'d str>,
    verdict: &'static str,
    /// The reason why there are no messages.
    never: Option<String>,
    /// The declared reason for the loss.
    accepted: Option<&'d str>,
    /// The treatment of members that no pattern names.
    unknown: &'static str,
    /// The number of generated messages that were translated there and back.
    tried: usize,
    norms: Vec<FindingRow<'d>>,
    witnesses: Vec<FindingRow<'d>>,
    /// Messages that are refused, because they would not come back or another route would take them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refusals: Vec<RefusalRow<'d>>,
}

/// A message that is refused, with the reason.
#[derive(Debug, Serialize)]
struct RefusalRow<'d> {
    /// The route in front.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<&'d str>,
    says: String,
    sent: String,
    refused: &'d str,
}

/// A reason, with an example message.
#[derive(Debug, Serialize)]
struct FindingRow<'d> {
    rule: &'static str,
    at: &'d str,
    says: String,
    sent: String,
    gets: String,
    back: Option<String>,
    refused: Option<&'d str>,
}

/// An event, with the verdict for one of its forms.
#[derive(Debug, Serialize)]
struct EventRow<'d> {
    key: &'d str,
    from: &'static str,
    verdict: &'static str,
    /// The declared reason for the loss.
    accepted: Option<&'d str>,
    norms: Vec<EventFindingRow<'d>>,
    witnesses: Vec<EventFindingRow<'d>>,
}

#[derive(Debug, Serialize)]
struct EventFindingRow<'d> {
    rule: &'static str,
    says: &'d str,
    sent: &'d str,
    gets: &'d str,
    back: Option<&'d str>,
    refused: Option<&'d str>,
}

#[derive(Debug, Serialize)]
struct Examples<'d> {
    run: usize,
    failed: Vec<ExampleRow<'d>>,
}

#[derive(Debug, Serialize)]
struct ExampleRow<'d> {
    key: &'d str,
    message: &'d str,
}

#[derive(Debug, Serialize)]
struct ProblemRow<'d> {
    /// A file, a variable or an argument.
    place: String,
    line: Option<u32>,
    key: &'d str,
    message: &'d str,
    hint: Option<&'d str>,
}

pub(super) fn write(checked: &Checked<'_>) -> io::Result<()> {
    let rows = |problems: &'_ Option<Problems>| -> Vec<Problem> {
        problems.iter().flatten().cloned().collect()
    };
    let all_notes = checked.all_notes();
    let (problems, notes) = (rows(&checked.problems), rows(&all_notes));
    let keys = checked.configuration.raw.routes.iter();
    let routes = checked.routes().zip(keys);
    let routes = routes.map(|((route, report), raw)| route_row(route, &raw.key, report, &problems));
    let events = checked.events();
    let events = events.map(|(event, report)| event_row(event, report));
    write_line(&ValidConfig {
        ok: checked.problems.is_none(),
        problems: problems.iter().map(problem_row).collect(),
        notes: notes.iter().map(problem_row).collect(),
        routes: routes.collect(),
        events: events.collect(),
        flags: checked.configuration.flags.len(),
        clients: checked.configuration.raw.clients.len(),
        series: series_row(checked),
    })
}

fn series_row(checked: &Checked<'_>) -> SeriesRow {
    let SeriesEstimate { usual, most, limit } = estimate(&checked.configuration.plan);
    SeriesRow { usual, most, limit }
}

pub(super) fn write_problems(problems: &Problems) -> io::Result<()> {
    write_line(&InvalidConfig {
        ok: false,
        problems: problems.iter().map(problem_row).collect(),
    })
}

fn event_row<'d>(event: &'d EventDefinition, report: &'d EventReport) -> EventRow<'d> {
    let rows = |findings: &'d [EventFinding]| {
        let rows = findings.iter().map(|finding| EventFindingRow {
            rule: finding.rule,
            says: &finding.text,
            sent: &finding.sent,
            gets: &finding.there,
            back: finding.back.as_deref().ok(),
            refused: finding.back.as_ref().err().map(String::as_str),
        });
        rows.collect()
    };
    EventRow {
        key: &event.key,
        from: report.from.as_str(),
        verdict: report.verdict.as_str(),
        accepted: event.lossy.as_deref(),
        norms: rows(&report.norms),
        witnesses: rows(&report.losses),
    }
}

fn write_line(document: &impl Serialize) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    serde_json::to_writer(&mut stdout, document)?;
    stdout.write_all(b"\n")
}

fn route_row<'d>(
    route: &'d Route,
    key: &str,
    report: &'d RouteReport,
    problems: &'d [Problem],
) -> RouteRow<'d> {
    let rows = route.outcomes.rows();
    let own = |problem: &&Problem| {
        let below = |key: &str| {
            let behind = problem.key.strip_prefix(key);
            behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('.'))
        };
        below(key) || rows.iter().any(|row| below(&row.key))
    };
    let failed = report.examples.failed.iter().map(|failed| ExampleRow {
        key: &failed.key,
        message: &failed.what,
    });
    RouteRow {
        name: &route.name,
        rest: &route.rest,
        rpc: &route.rpc,
        effect: route.effect.as_str(),
        extra: route.extra.as_str(),
        lossy: route.lossy.as_deref(),
        directions: report
            .directions
            .iter()
            .map(|direction| direction_row(route, direction))
            .collect(),
        replies: report.replies.as_str(),
        examples: Examples {
            run: report.examples.run,
            failed: failed.collect(),
        },
        problems: problems
            .iter()
            .filter(own)
            .map(|problem| problem.message.as_str())
            .collect(),
    }
}

fn direction_row<'d>(route: &'d Route, direction: &'d Direction) -> DirectionRow<'d> {
    let never = direction.never.map(|never| match never {
        Never::NotEntered => "the route is entered from the other side only".to_owned(),
        Never::Hidden(row) => format!("{} takes what it fits", route.outcomes.rows()[row].key),
    });
    DirectionRow {
        from: direction.from.as_str(),
        kind: match direction.kind {
            FindingKind::Request => "request",
            FindingKind::Outcome(_) => "outcome",
            FindingKind::BuiltIn => "builtin",
        },
        row: row(route, direction.kind).map(|row| row.key.as_str()),
        verdict: match direction.verdict() {
            LossVerdict::NormalForm => "normal_form",
            verdict @ (LossVerdict::Lossless | LossVerdict::Lossy | LossVerdict::Never) => {
                verdict.as_str()
            }
        },
        never,
        accepted: accepted(route, direction.kind).filter(|_| !direction.losses.is_empty()),
        unknown: direction.unnamed.as_str(),
        tried: direction.tried,
        norms: direction.norms.iter().map(finding_row).collect(),
        witnesses: direction.losses.iter().map(finding_row).collect(),
        refusals: direction.refusals.iter().map(refusal_row).collect(),
    }
}

fn refusal_row(refusal: &RefusedMessage) -> RefusalRow<'_> {
    let (by, rule, at) = match &refusal.cause {
        RefusalCause::RouteInFront(by) => (Some(by.as_str()), None, None),
        RefusalCause::Value { rule, at } => (None, Some(rule.as_str()), Some(at.as_str())),
    };
    RefusalRow {
        by,
        rule,
        at,
        says: refusal.cause.describe(),
        sent: refusal.sent.to_string(),
        refused: &refusal.why,
    }
}

fn finding_row(finding: &Finding) -> FindingRow<'_> {
    let witness = &finding.witness;
    FindingRow {
        rule: finding.rule.as_str(),
        at: &finding.at,
        says: finding.rule.describe(&finding.at),
        sent: witness.sent.to_string(),
        gets: witness.there.to_string(),
        back: witness.back.as_ref().ok().map(ToString::to_string),
        refused: witness.back.as_ref().err().map(String::as_str),
    }
}

fn problem_row(problem: &Problem) -> ProblemRow<'_> {
    let (place, line) = match &problem.place {
        SourceLocation::File { path, position } => (
            path.display().to_string(),
            position.map(|position| position.line),
        ),
        place @ (SourceLocation::Default
        | SourceLocation::Variable(_)
        | SourceLocation::Argument(_)
        | SourceLocation::Flip(_)
        | SourceLocation::Source(_)) => (place.to_string(), None),
    };
    ProblemRow {
        place,
        line,
        key: &problem.key,
        message: &problem.message,
        hint: problem.hint.as_deref(),
    }
}
