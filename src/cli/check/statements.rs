//! Statements about the directions of a route. Each belongs to the route itself, or to an outcome set that routes
//! share.
//!
//! Used by `check`.

use dualgauge_model::check::{Direction, Finding, FindingKind, Never, RefusalCause, RouteReport};
use dualgauge_model::outcome::OutcomeRow;
use dualgauge_model::route::Route;

/// The detail of a printed report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Detail {
    /// Everything except normal forms, which are only counted.
    Brief,
    /// Everything.
    Full,
}

/// One statement about messages of one direction.
#[derive(Debug)]
pub(super) struct Statement<'r> {
    pub(super) text: String,
    pub(super) is_normal_form: bool,
    /// An example message that shows the loss.
    pub(super) loss: Option<&'r Finding>,
    /// The outcome set that the statement concerns: `outcomes.common`.
    pub(super) set: Option<&'r str>,
}

/// Returns the statements about a route and its rows, in the order of its directions.
pub(super) fn statements<'r>(route: &'r Route, report: &'r RouteReport) -> Vec<Statement<'r>> {
    let directions = report.directions.iter();
    let all = directions.flat_map(|direction| match direction.kind {
        FindingKind::BuiltIn => built_in(direction).into_iter().collect(),
        FindingKind::Request | FindingKind::Outcome(_) => own(route, direction),
    });
    all.collect()
}

/// Returns the set that a row belongs to, by the key of the row; `None` for a row of a route.
pub(super) fn set_of(key: &str) -> Option<&str> {
    let (set, _) = key.rsplit_once('[')?;
    set.starts_with("outcomes.").then_some(set)
}

/// Returns one statement about the losses of the built-in table: users cannot accept them row by row, so one is enough.
fn built_in(direction: &Direction) -> Option<Statement<'_>> {
    let loss = direction.losses.first()?;
    let from = direction.from;
    let says = loss.rule.describe(&loss.at);
    Some(Statement {
        text: format!("other answers (built-in table) from {from}: lossy: {says}"),
        is_normal_form: false,
        loss: Some(loss),
        set: set_of(&loss.at),
    })
}

fn own<'r>(route: &'r Route, direction: &'r Direction) -> Vec<Statement<'r>> {
    let row = row(route, direction.kind);
    let set = row.and_then(|row| set_of(&row.key));
    let what = match row {
        None => format!("calls from {}", direction.from),
        Some(row) => format!("{} from {}", row.key, direction.from),
    };
    let mut all = Vec::new();
    let mut say = |words: String, is_normal_form, loss| {
        all.push(Statement {
            text: format!("{what}: {words}"),
            is_normal_form,
            loss,
            set,
        });
    };
    if let Some(Never::Hidden(by)) = direction.never {
        let by = &route.outcomes.rows()[by].key;
        say(format!("never used, {by} takes what it fits"), false, None);
    }
    if !direction.norms.is_empty() {
        let norms = direction
            .norms
            .iter()
            .map(|norm| norm.rule.describe(&norm.at));
        let norms = norms.collect::<Vec<_>>().join("; ");
        say(format!("normal form: {norms}"), true, None);
    }
    for refusal in &direction.refusals {
        let (sent, why) = (&refusal.sent, &refusal.why);
        let words = match &refusal.cause {
            RefusalCause::RouteInFront(by) => {
                format!("`{sent}` refused, since `{by}` comes first: {why}")
            }
            RefusalCause::Value { rule, at } => {
                format!("refused: {}: {sent}", rule.describe(at))
            }
        };
        say(words, false, None);
    }
    let accepted = accepted(route, direction.kind).map(|why| format!(" (accepted: {why})"));
    let accepted = accepted.unwrap_or_default();
    for loss in &direction.losses {
        let says = loss.rule.describe(&loss.at);
        say(format!("lossy: {says}{accepted}"), false, Some(loss));
    }
    all
}

/// Returns the declared reason for a loss.
pub(super) fn accepted(route: &Route, kind: FindingKind) -> Option<&str> {
    let row = row(route, kind).and_then(|row| row.lossy.as_deref());
    row.or(route.lossy.as_deref())
}

/// Returns the row of the route that a finding concerns.
pub(super) fn row(route: &Route, kind: FindingKind) -> Option<&OutcomeRow> {
    match kind {
        FindingKind::Outcome(row) => route.outcomes.rows().get(row),
        FindingKind::Request | FindingKind::BuiltIn => None,
    }
}
