//! The report as text: one line for each route, followed by its deviations; then the outcome sets, each once.
//!
//! Lines fit 80 to 160 columns: longer cells are truncated with `…`.
//!
//! Used by `check`.

use std::io::{self, Write};

use super::sets::{ReportedSet, ReportedSets};
use super::statements::{Detail, statements};
use super::verdict::Checked;
use crate::cli::plural::count;
use crate::config::problem::Problems;
use crate::telemetry::metrics::{SeriesEstimate, estimate};
use dualgauge_model::check::{
    Direction, EventReport, Finding, FindingKind, LossVerdict, Replies, RouteReport,
};
use dualgauge_model::event::EventDefinition;
use dualgauge_model::route::Route;
use dualgauge_patterns::side::Side;

/// The maximum widths of the columns name, REST and RPC.
const WIDEST: [usize; 3] = [28, 44, 28];
/// The maximum length of a line below a route: an example message is shown whole, unless it is huge.
const LONGEST: usize = 8000;

pub(super) fn write(checked: &Checked<'_>, detail: Detail) -> io::Result<()> {
    let mut text = report(checked, detail);
    let notes = match detail {
        Detail::Full => checked.all_notes(),
        Detail::Brief => checked.notes.clone(),
    };
    for note in notes.iter().flatten() {
        text.push_str(&format!("note: {note}\n"));
    }
    text.extend(upgrade_summary(checked).filter(|_| detail == Detail::Brief));
    text.extend(series(checked));
    text.push_str(&summary(checked));
    io::stdout().lock().write_all(text.as_bytes())?;
    checked.problems.iter().try_for_each(write_problems)
}

pub(super) fn write_problems(problems: &Problems) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{problems}")
}

/// Returns one line for all upgrade notes on routes.
fn upgrade_summary(checked: &Checked<'_>) -> Option<String> {
    let affected = checked.affected_routes();
    let routes = count(affected, "route");
    (affected > 0).then(|| {
        format!(
            "note: if an earlier version ran this configuration, changed defaults affect {routes}; `-v` lists them, `--no-upgrade-notes` hides this line (CHANGELOG.md, Upgrading)\n"
        )
    })
}

/// Returns the number of metric series, if it may exceed the limit.
fn series(checked: &Checked<'_>) -> Option<String> {
    let SeriesEstimate { usual, most, limit } = estimate(&checked.configuration.plan);
    (most > limit).then(|| {
        format!("series of metrics: {usual} as soon as each client has called each route, {most} at most, limit {limit}\n")
    })
}

/// Returns the totals.
fn summary(checked: &Checked<'_>) -> String {
    let configuration = checked.configuration;
    let word = match &checked.problems {
        None => "ok".to_owned(),
        Some(problems) => count(problems.iter().count(), "problem"),
    };
    format!(
        "{word}: {}, {}, {}\n",
        count(checked.reports.len(), "route"),
        count(configuration.flags.len(), "flag"),
        count(configuration.raw.clients.len(), "client")
    )
}

fn columns(route: &Route) -> [String; 3] {
    let texts = [&route.name, &route.rest, &route.rpc];
    std::array::from_fn(|column| cut(texts[column], WIDEST[column]))
}

/// The lines of a report, and the number of normal forms left out.
struct CheckText {
    text: String,
    detail: Detail,
    hidden: usize,
}

impl CheckText {
    fn line(&mut self, indent: usize, words: &str) {
        let words = cut(words, LONGEST);
        self.text.push_str(&format!("{:indent$}{words}\n", ""));
    }

    /// Returns whether a normal form is printed; otherwise it is counted.
    fn shows_normal_form(&mut self) -> bool {
        let is_hidden = self.detail == Detail::Brief;
        self.hidden += usize::from(is_hidden);
        !is_hidden
    }

    fn witness(&mut self, loss: &Finding) {
        let witness = &loss.witness;
        self.line(4, &format!("sent  {}", witness.sent));
        self.line(4, &format!("gets  {}", witness.there));
        match &witness.back {
            Ok(back) => self.line(4, &format!("back  {back}")),
            Err(why) => self.line(4, &format!("back  refused: {why}")),
        }
    }
}

fn report(checked: &Checked<'_>, detail: Detail) -> String {
    let mut widths = [0; 3];
    for (route, _) in checked.routes() {
        for (width, text) in widths.iter_mut().zip(columns(route)) {
            *width = text.chars().count().max(*width);
        }
    }
    let [name, rest, rpc] = widths;
    let effects = checked
        .routes()
        .map(|(route, _)| route.effect.as_str().len());
    let widest = effects.max().unwrap_or(0);
    let mut lines = CheckText {
        text: String::new(),
        detail,
        hidden: 0,
    };
    let mut sets = ReportedSets::default();
    for (route, report) in checked.routes() {
        let [one, two, three] = columns(route);
        let effect = route.effect.as_str();
        let verdicts = verdicts(report);
        lines.text.push_str(&format!(
            "{one:name$}  {two:rest$}  {three:rpc$}  {effect:widest$}  {verdicts}\n"
        ));
        sets.note(route, report);
        for statement in statements(route, report) {
            if let Some(set) = statement.set {
                sets.add(set, &route.name, statement);
            } else if !statement.is_normal_form || lines.shows_normal_form() {
                lines.line(2, &statement.text);
                statement.loss.iter().for_each(|loss| lines.witness(loss));
            }
        }
    }
    for (name, set) in &sets.0 {
        write_set(name, set, &mut lines);
    }
    for (event, report) in checked.events() {
        write_event(event, report, &mut lines);
    }
    if lines.hidden > 0 {
        let hidden = count(lines.hidden, "normal form");
        lines.line(0, &format!("{hidden} not shown; `-v` shows what changes"));
    }
    lines.text
}

/// Writes `outcomes.common: 2 rows, 3 routes, replies lossless`, followed by the deviations.
fn write_set(name: &str, set: &ReportedSet<'_>, lines: &mut CheckText) {
    let sizes = [count(set.rows.len(), "row"), count(set.routes, "route")];
    let verdict = label_verdicts("replies", worst(set.directions.iter().copied()));
    let words: Vec<String> = sizes.into_iter().chain(verdict).collect();
    lines.line(0, &format!("{name}: {}", words.join(", ")));
    for note in &set.notes {
        if !note.statement.is_normal_form || lines.shows_normal_form() {
            lines.line(2, &note.text(set.routes));
            let loss = note.statement.loss.iter();
            loss.for_each(|loss| lines.witness(loss));
        }
    }
}

/// Writes `event[0] from sse: lossless`, followed by the deviations.
fn write_event(event: &EventDefinition, report: &EventReport, lines: &mut CheckText) {
    let what = format!("{} from {}", event.key, report.from.as_str());
    lines.line(0, &format!("{what}: {}", report.verdict.as_str()));
    for norm in &report.norms {
        if lines.shows_normal_form() {
            lines.line(2, &format!("normal form: {}", norm.text));
        }
    }
    let accepted = event
        .lossy
        .as_ref()
        .map(|why| format!(" (accepted: {why})"));
    for loss in &report.losses {
        let accepted = accepted.as_deref().unwrap_or("");
        lines.line(2, &format!("lossy: {}{accepted}", loss.text));
        lines.line(4, &format!("sent  {}", loss.sent));
        lines.line(4, &format!("gets  {}", loss.there));
        match &loss.back {
            Ok(back) => lines.line(4, &format!("back  {back}")),
            Err(why) => lines.line(4, &format!("back  refused: {why}")),
        }
    }
}

/// Returns `calls lossless, replies: rest lossy, rpc lossless`.
fn verdicts(report: &RouteReport) -> String {
    let of = |is: fn(FindingKind) -> bool| {
        let own = report.directions.iter();
        worst(own.filter(move |direction| is(direction.kind)))
    };
    let calls = label_verdicts("calls", of(|kind| kind == FindingKind::Request));
    let replies = label_verdicts(
        "replies",
        of(|kind| matches!(kind, FindingKind::Outcome(_))),
    );
    // The built-in table matters if rows of the route read its output on the way back.
    let own = report.directions.iter();
    let built_in = own.filter(|direction| direction.kind == FindingKind::BuiltIn);
    let lossy = built_in.filter(|direction| !direction.losses.is_empty());
    let built_in = lossy.map(|direction| format!("other answers lossy from {}", direction.from));
    let unmapped = match report.replies {
        Replies::NotMapped => Some("replies not mapped".to_owned()),
        Replies::FailuresOnly => Some("results not mapped".to_owned()),
        Replies::Mapped | Replies::None => None,
    };
    let parts = [calls, replies, unmapped];
    let parts = parts.into_iter().flatten().chain(built_in);
    let parts: Vec<String> = parts.collect();
    parts.join(", ")
}

/// Returns the worst verdict on messages from REST and from RPC, where there are any.
fn worst<'r>(directions: impl Iterator<Item = &'r Direction> + Clone) -> [Option<LossVerdict>; 2] {
    Side::ALL.map(|side| {
        let own = directions.clone().filter(|own| own.from == side);
        let verdicts = own.map(Direction::verdict);
        verdicts
            .filter(|verdict| *verdict != LossVerdict::Never)
            .max()
    })
}

/// Labels the verdicts on messages from REST and from RPC.
fn label_verdicts(what: &str, verdicts: [Option<LossVerdict>; 2]) -> Option<String> {
    let [rest, rpc] = verdicts;
    match (rest, rpc) {
        (Some(rest), Some(rpc)) if rest == rpc => Some(format!("{what} {}", rest.as_str())),
        (Some(rest), Some(rpc)) => {
            let (rest, rpc) = (rest.as_str(), rpc.as_str());
            Some(format!("{what} {rest} from rest, {rpc} from rpc"))
        }
        (Some(rest), None) => Some(format!("{what} {} from rest only", rest.as_str())),
        (None, Some(rpc)) => Some(format!("{what} {} from rpc only", rpc.as_str())),
        (None, None) => None,
    }
}

fn cut(text: &str, most: usize) -> String {
    // A name may contain control characters, and a line of the report must stay one line.
    let shown = text.chars().flat_map(|letter| {
        let escaped = letter.is_control().then(|| letter.escape_default());
        let plain = (!letter.is_control()).then_some(letter);
        escaped.into_iter().flatten().chain(plain)
    });
    let shown: String = shown.collect();
    if shown.chars().count() <= most {
        return shown;
    }
    let kept: String = shown.chars().take(most - 1).collect();
    format!("{kept}…")
}
