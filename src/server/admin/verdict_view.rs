//! The verdict on one route with its witnesses, in its JSON form. Used by `admin::views`.

use serde::Serialize;

use dualgauge_model::check::{
    Direction, Finding, FindingKind, LossVerdict, Never, RefusedMessage, RouteReport,
};
use dualgauge_model::route::Route;

/// The verdict on one route.
#[derive(Debug, Serialize)]
pub(super) struct VerdictView {
    /// The verdicts on calls and replies, each from one side; empty if nothing is translated on the route.
    directions: Vec<DirectionView>,
    /// The number of examples that were run.
    examples: usize,
    /// The examples that do not hold.
    failed_examples: Vec<FailedExample>,
}

#[derive(Debug, Serialize)]
struct DirectionView {
    /// The side of the caller, or of the responding server.
    from: &'static str,
    /// `request`, `outcome`, or `builtin` for responses that the route does not define.
    kind: &'static str,
    /// The key of the row.
    row: Option<String>,
    verdict: &'static str,
    /// The reason why there are no messages.
    never: Option<String>,
    /// The number of generated messages that were translated there and back.
    tried: usize,
    /// Differences after which the message means the same.
    norms: Vec<WitnessView>,
    /// Differences that lose data.
    losses: Vec<WitnessView>,
    /// Messages that are refused.
    refusals: Vec<RefusalView>,
}

/// A difference, with a message that shows it.
#[derive(Debug, Serialize)]
struct WitnessView {
    says: String,
    sent: String,
    gets: String,
    back: Option<String>,
    refused: Option<String>,
}

#[derive(Debug, Serialize)]
struct RefusalView {
    says: String,
    sent: String,
    refused: String,
}

#[derive(Debug, Serialize)]
struct FailedExample {
    key: String,
    message: String,
}

impl VerdictView {
    pub(super) fn new(route: &Route, report: Option<&RouteReport>) -> VerdictView {
        let directions = report.into_iter().flat_map(|report| &report.directions);
        let failed = report
            .into_iter()
            .flat_map(|report| &report.examples.failed);
        VerdictView {
            directions: directions.map(|one| direction(route, one)).collect(),
            examples: report.map_or(0, |report| report.examples.run),
            failed_examples: failed
                .map(|fault| FailedExample {
                    key: fault.key.clone(),
                    message: fault.what.clone(),
                })
                .collect(),
        }
    }
}

fn direction(route: &Route, direction: &Direction) -> DirectionView {
    let rows = route.outcomes.rows();
    let key = |row: usize| rows.get(row).map(|row| row.key.clone());
    let (kind, row) = match direction.kind {
        FindingKind::Request => ("request", None),
        FindingKind::Outcome(row) => ("outcome", key(row)),
        FindingKind::BuiltIn => ("builtin", None),
    };
    let never = direction.never.map(|never| match never {
        Never::NotEntered => "the route is entered from the other side only".to_owned(),
        Never::Hidden(row) => format!("{} takes what it fits", key(row).unwrap_or_default()),
    });
    DirectionView {
        from: direction.from.as_str(),
        kind,
        row,
        verdict: match direction.verdict() {
            LossVerdict::NormalForm => "normal_form",
            verdict @ (LossVerdict::Lossless | LossVerdict::Lossy | LossVerdict::Never) => {
                verdict.as_str()
            }
        },
        never,
        tried: direction.tried,
        norms: direction.norms.iter().map(witness).collect(),
        losses: direction.losses.iter().map(witness).collect(),
        refusals: direction.refusals.iter().map(refusal).collect(),
    }
}

fn witness(finding: &Finding) -> WitnessView {
    let witness = &finding.witness;
    WitnessView {
        says: finding.rule.describe(&finding.at),
        sent: witness.sent.to_string(),
        gets: witness.there.to_string(),
        back: witness.back.as_ref().ok().map(ToString::to_string),
        refused: witness.back.as_ref().err().cloned(),
    }
}

fn refusal(refused: &RefusedMessage) -> RefusalView {
    RefusalView {
        says: refused.cause.describe(),
        sent: refused.sent.to_string(),
        refused: refused.why.clone(),
    }
}
