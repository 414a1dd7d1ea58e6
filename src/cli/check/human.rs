//! The outcome as lines for people: one for each route, under it what is not as it was.
//!
//! Lines are made for 80 to 160 columns: what is longer than its column is cut, and says so by `…`.

use std::io::{self, Write};

use super::verdict::Checked;
use crate::cli::words::count;
use crate::config::problem::Problems;
use crate::domain::check::{
    Direction, EventReport, Finding, Kind, Never, Replies, RouteReport, Verdict,
};
use crate::domain::event::Event;
use crate::domain::outcome::Row;
use crate::domain::route::Route;
use crate::domain::side::Side;

/// The widest that the columns of name, REST and RPC get.
const WIDEST: [usize; 3] = [28, 44, 28];
/// The longest line of what stands under a route: a witness is shown whole, unless it is a book.
const LONGEST: usize = 8000;

pub(super) fn write(checked: &Checked<'_>) -> io::Result<()> {
    let mut text = report(checked);
    for note in checked.notes.iter().flatten() {
        text.push_str(&format!("note: {note}\n"));
    }
    text.push_str(&summary(checked));
    io::stdout().lock().write_all(text.as_bytes())?;
    checked.problems.iter().try_for_each(write_problems)
}

pub(super) fn write_problems(problems: &Problems) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{problems}")
}

/// How much there is of everything.
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

fn report(checked: &Checked<'_>) -> String {
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
    let mut text = String::new();
    for (route, report) in checked.routes() {
        let [one, two, three] = columns(route);
        let effect = route.effect.as_str();
        let verdicts = verdicts(report);
        text.push_str(&format!(
            "{one:name$}  {two:rest$}  {three:rpc$}  {effect:widest$}  {verdicts}\n"
        ));
        below(route, report, &mut text);
    }
    for (event, report) in checked.events() {
        write_event(event, report, &mut text);
    }
    text
}

/// `event[0] from sse: lossless`, and under it what is not as it was.
fn write_event(event: &Event, report: &EventReport, text: &mut String) {
    let mut line = |indent: usize, words: &str| {
        let words = cut(words, LONGEST);
        text.push_str(&format!("{:indent$}{words}\n", ""));
    };
    let what = format!("{} from {}", event.key, report.from.as_str());
    line(0, &format!("{what}: {}", report.verdict.as_str()));
    for norm in &report.norms {
        line(2, &format!("normal form: {}", norm.says));
    }
    let accepted = event
        .lossy
        .as_ref()
        .map(|why| format!(" (accepted: {why})"));
    for loss in &report.losses {
        line(
            2,
            &format!("lossy: {}{}", loss.says, accepted.as_deref().unwrap_or("")),
        );
        line(4, &format!("sent  {}", loss.sent));
        line(4, &format!("gets  {}", loss.there));
        match &loss.back {
            Ok(back) => line(4, &format!("back  {back}")),
            Err(why) => line(4, &format!("back  refused: {why}")),
        }
    }
}

/// `calls lossless, replies: rest lossy, rpc lossless`
fn verdicts(report: &RouteReport) -> String {
    let worst = |is: &dyn Fn(Kind) -> bool| {
        Side::ALL.map(|side| {
            let own = report.directions.iter();
            let own = own.filter(|direction| direction.from == side && is(direction.kind));
            let verdicts = own
                .map(Direction::verdict)
                .filter(|verdict| *verdict != Verdict::Never);
            verdicts.max()
        })
    };
    let calls = said("calls", worst(&|kind| kind == Kind::Request));
    let replies = said("replies", worst(&|kind| matches!(kind, Kind::Outcome(_))));
    // What the built-in table makes of other answers matters where rows of the route read it on the way back.
    let own = report.directions.iter();
    let built_in = own.filter(|direction| direction.kind == Kind::BuiltIn);
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

fn said(what: &str, [rest, rpc]: [Option<Verdict>; 2]) -> Option<String> {
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

/// What stands under the line of a route.
fn below(route: &Route, report: &RouteReport, text: &mut String) {
    let mut line = |indent: usize, words: &str| {
        let words = cut(words, LONGEST);
        text.push_str(&format!("{:indent$}{words}\n", ""));
    };
    for direction in &report.directions {
        let what = what(route, direction);
        if direction.kind == Kind::BuiltIn {
            // It is nobody's pattern, so nobody has to accept it.
            if let Some(loss) = direction.losses.first() {
                line(2, &format!("{what}: lossy: {}", loss.rule.says(&loss.at)));
                witness(loss, &mut line);
            }
            continue;
        }
        if let Some(Never::Hidden(by)) = direction.never {
            let by = &route.outcomes.rows()[by].key;
            line(2, &format!("{what}: never used, {by} takes what it fits"));
        }
        if !direction.norms.is_empty() {
            let norms = direction.norms.iter().map(|norm| norm.rule.says(&norm.at));
            let norms = norms.collect::<Vec<_>>().join("; ");
            line(2, &format!("{what}: normal form: {norms}"));
        }
        for loss in &direction.losses {
            let accepted = match accepted(route, direction.kind) {
                Some(why) => format!(" (accepted: {why})"),
                None => String::new(),
            };
            line(
                2,
                &format!("{what}: lossy: {}{accepted}", loss.rule.says(&loss.at)),
            );
            witness(loss, &mut line);
        }
    }
}

fn witness(loss: &Finding, line: &mut impl FnMut(usize, &str)) {
    let witness = &loss.witness;
    line(4, &format!("sent  {}", witness.sent));
    line(4, &format!("gets  {}", witness.there));
    match &witness.back {
        Ok(back) => line(4, &format!("back  {back}")),
        Err(why) => line(4, &format!("back  refused: {why}")),
    }
}

/// Why a loss may be, in the words of the table.
pub(super) fn accepted(route: &Route, kind: Kind) -> Option<&str> {
    let row = row(route, kind).and_then(|row| row.lossy.as_deref());
    row.or(route.lossy.as_deref())
}

pub(super) fn row(route: &Route, kind: Kind) -> Option<&Row> {
    match kind {
        Kind::Outcome(row) => route.outcomes.rows().get(row),
        Kind::Request | Kind::BuiltIn => None,
    }
}

fn what(route: &Route, direction: &Direction) -> String {
    match row(route, direction.kind) {
        None if direction.kind == Kind::BuiltIn => {
            format!("other answers (built-in table) from {}", direction.from)
        }
        None => format!("calls from {}", direction.from),
        Some(row) => format!("{} from {}", row.key, direction.from),
    }
}

fn cut(text: &str, most: usize) -> String {
    // A name may have control characters, and a line of the report must stay one.
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
