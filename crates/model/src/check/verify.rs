//! Execution of the rules: each hypothesis is tried, and only differences that were observed are reported.
//!
//! Used by `check::events`.

use super::examples;
use super::mapped::Replies;
use super::message::Message;
use super::overlap;
use super::report::{
    Direction, Finding, FindingKind, Never, RefusalCause, RefusedMessage, RouteReport,
    UnnamedMembers, Witness,
};
use super::rivals::RivalCalls;
use super::round_trip::RoundTrip;
use super::rules::{CheckRule, Hypothesis, RULES, RuleFn, Weight, built_in};
use super::subject::CheckSubject;
use crate::outcome::{BodyPattern, OutcomeRow, RpcReplyPattern};
use crate::route::{Extra, Route, RouteTable};
use dualgauge_patterns::pattern::Pattern;
use dualgauge_patterns::side::Side;

/// Checks every route of a table.
#[must_use]
pub fn check(table: &RouteTable) -> Vec<RouteReport> {
    check_by(table, RULES)
}

/// Checks one route of a table; `None` if nothing is translated on it.
#[must_use]
pub fn check_route(table: &RouteTable, index: usize) -> Option<RouteReport> {
    // Nothing is translated between two MCP servers.
    let is_translated = !table.routes().get(index)?.is_paired;
    is_translated.then(|| report(table, index, &RivalCalls::new(table), RULES))
}

/// Checks with fewer rules, for tests that show the need for each rule.
pub(super) fn check_by(table: &RouteTable, rules: &[RuleFn]) -> Vec<RouteReport> {
    let rivals = RivalCalls::new(table);
    let indexes = 0..table.routes().len();
    indexes
        // Nothing is translated between two MCP servers.
        .filter(|index| !table.route(*index).is_paired)
        .map(|index| report(table, index, &rivals, rules))
        .collect()
}

fn report(table: &RouteTable, index: usize, rivals: &RivalCalls, rules: &[RuleFn]) -> RouteReport {
    RouteReport {
        route: index,
        directions: directions(table, index, rivals, rules),
        replies: Replies::new(table.route(index)),
        examples: examples::run(table, index),
    }
}

/// Checks the only route of a table.
pub(super) fn only(table: &RouteTable) -> Vec<Direction> {
    directions(table, 0, &RivalCalls::new(table), RULES)
}

fn directions(
    table: &RouteTable,
    index: usize,
    rivals: &RivalCalls,
    rules: &[RuleFn],
) -> Vec<Direction> {
    let route = table.route(index);
    let calls = Side::ALL.map(|from| CheckSubject::calls(table, index, from));
    let mut found = Vec::new();
    for (subject, from) in calls.iter().zip(Side::ALL) {
        found.push(if route.enters_from(from) {
            let calls = rivals.for_route(table, index, from.other());
            let mut direction = prove(subject, &calls, rules);
            direction
                .refusals
                .extend(refused_by_routes(subject, rivals));
            direction
        } else {
            never(subject, Never::NotEntered)
        });
    }
    if !route.expects_reply {
        return found;
    }
    let rows = route.outcomes.rows().len();
    let replies = |from: Side| {
        let rows = 0..rows;
        rows.map(|row| CheckSubject::replies(&calls[0], row, from))
            .collect::<Vec<_>>()
    };
    let sides = Side::ALL.map(replies);
    let written = sides.each_ref().map(|subjects| {
        let plain = subjects.iter().map(|subject| subject.message(None, &[]));
        plain.collect::<Vec<_>>()
    });
    for row in 0..rows {
        for (from, subjects) in Side::ALL.into_iter().zip(&sides) {
            let entered = route.enters_from(from.other());
            let hidden = route.outcomes.hides(row, from);
            let never_so = hidden.map(Never::Hidden);
            let never_so = never_so.or((!entered).then_some(Never::NotEntered));
            found.push(match never_so {
                Some(why) => never(&subjects[row], why),
                None => {
                    let there = usize::from(from == Side::Rest);
                    let rivals = earlier(route, row, from.other(), &written[there]);
                    prove(&subjects[row], &rivals, rules)
                }
            });
        }
    }
    // A success of an old dialect that matches no row is refused, and a socket message is no answer. Errors over HTTP
    // without a row become problem documents, and are not part of the verdict.
    if !route.is_old() {
        found.extend(Side::ALL.map(|from| built_in(&calls[0], from)));
    }
    found
}

/// Returns the messages written by the rows that are tried before this one.
fn earlier(route: &Route, row: usize, side: Side, written: &[Option<Message>]) -> Vec<Message> {
    let order = route.outcomes.order(side).iter();
    let earlier = order.take_while(|index| **index != row);
    let rows = route.outcomes.rows();
    let own = written.get(row).and_then(Option::as_ref);
    let messages = earlier.flat_map(|index| {
        let common = own.and_then(|own| overlap::reply(own, &rows[row], &rows[*index]));
        let written = written.get(*index).cloned().flatten();
        written.into_iter().chain(common)
    });
    messages.collect()
}

fn never(subject: &CheckSubject<'_>, why: Never) -> Direction {
    Direction {
        never: Some(why),
        ..blank(subject)
    }
}

fn blank(subject: &CheckSubject<'_>) -> Direction {
    Direction {
        from: subject.from,
        kind: subject
            .row
            .map_or(FindingKind::Request, FindingKind::Outcome),
        never: None,
        norms: Vec::new(),
        losses: Vec::new(),
        refusals: Vec::new(),
        unnamed: unnamed(subject),
        tried: 0,
    }
}

/// Returns the treatment of members that no pattern names.
fn unnamed(subject: &CheckSubject<'_>) -> UnnamedMembers {
    match subject.pair() {
        None => match subject.route.extra {
            Extra::Drop => UnnamedMembers::Dropped,
            Extra::Reject => UnnamedMembers::Refused,
            Extra::Carry => UnnamedMembers::Carried,
        },
        Some(row) if carries(row, subject.from) => UnnamedMembers::Carried,
        Some(_) => UnnamedMembers::Dropped,
    }
}

/// Returns true when a row has a place for every member of an answer's content.
fn carries(row: &OutcomeRow, from: Side) -> bool {
    let whole = |pattern: &Pattern| match pattern {
        Pattern::Object(object) => object.rest.is_some() || object.is_empty(),
        Pattern::Hole(_) | Pattern::Literal(_) => true,
        Pattern::Text(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => false,
    };
    match (from, &row.rest.body, &row.rpc) {
        (Side::Rest, BodyPattern::Json(pattern), _) => whole(pattern),
        (Side::Rest, BodyPattern::Nothing | BodyPattern::Anything | BodyPattern::Text(_), _) => {
            true
        }
        (Side::Rpc, _, RpcReplyPattern::Result(pattern)) => whole(pattern),
        (Side::Rpc, _, RpcReplyPattern::Error { data, .. }) => data.as_ref().is_some_and(whole),
    }
}

/// Returns a call for each route in front of this one that takes what this one writes.
fn refused_by_routes(subject: &CheckSubject<'_>, rivals: &RivalCalls) -> Vec<RefusedMessage> {
    let fronts = subject.table.fronts(subject.index).iter();
    let refused = fronts.filter_map(|front| {
        let there = rivals.call(subject.table, *front, subject.from.other())?;
        let sent = subject.source_of(there)?;
        let why = subject.refused_call(&sent)?;
        let cause = RefusalCause::RouteInFront(subject.table.route(*front).name.clone());
        Some(RefusedMessage { cause, sent, why })
    });
    refused.collect()
}

/// Applies the rules to a subject, then cross-checks that everything they do not name survives.
fn prove(subject: &CheckSubject<'_>, rivals: &[Message], rules: &[RuleFn]) -> Direction {
    let mut direction = blank(subject);
    for rule in rules {
        for hypothesis in rule(subject, rivals) {
            if hypothesis.weight == Weight::Refused {
                direction.refusals.extend(refusal(subject, hypothesis));
            } else if let Some((weight, finding)) = execute(subject, hypothesis) {
                let findings = match weight {
                    Weight::Norm => &mut direction.norms,
                    Weight::Loss | Weight::Refused => &mut direction.losses,
                };
                let known = |known: &Finding| known.rule == finding.rule && known.at == finding.at;
                if !findings.iter().any(known) {
                    findings.push(finding);
                }
            }
        }
    }
    cross_check(subject, &mut direction);
    direction
}

/// Sends the messages of a hypothesis. The first one that is refused is the witness.
fn refusal(subject: &CheckSubject<'_>, hypothesis: Hypothesis) -> Option<RefusedMessage> {
    let mut messages = hypothesis.messages.into_iter();
    messages.find_map(|sent| {
        Some(RefusedMessage {
            cause: RefusalCause::Value {
                rule: hypothesis.rule,
                at: spelled_location(subject, hypothesis.at.clone()),
            },
            why: subject.refusal(&sent)?,
            sent,
        })
    })
}

/// Sends the messages of a hypothesis there and back. The first one that differs is the witness.
fn execute(subject: &CheckSubject<'_>, hypothesis: Hypothesis) -> Option<(Weight, Finding)> {
    for sent in hypothesis.messages {
        let Some(trip) = subject.round_trip(&sent) else {
            continue;
        };
        if !differs(&sent, &trip) {
            continue;
        }
        let equivalence = Equivalence::new(hypothesis.rule);
        let is_norm = hypothesis.weight == Weight::Norm && is_stable(subject, &trip, equivalence);
        let weight = if is_norm { Weight::Norm } else { Weight::Loss };
        let finding = Finding {
            rule: hypothesis.rule,
            at: spelled_location(subject, hypothesis.at),
            witness: witness(sent, trip),
        };
        return Some((weight, finding));
    }
    None
}

/// Renders a location in the terms of the route table: a frame has no body, it is one.
fn spelled_location(subject: &CheckSubject<'_>, at: String) -> String {
    match at.strip_prefix("body") {
        Some(inside) if subject.route.is_frame() => format!("frame{inside}"),
        Some(_) | None => at,
    }
}

fn witness(sent: Message, trip: RoundTrip) -> Witness {
    Witness {
        sent,
        there: trip.there,
        back: trip.back,
    }
}

fn differs(sent: &Message, trip: &RoundTrip) -> bool {
    !trip.back.as_ref().is_ok_and(|back| back.same(sent))
}

/// The required agreement between the translations of a message and its normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Equivalence {
    Same,
    /// An empty list and an absent one count as the same where only one of them can be written.
    Alike,
}

impl Equivalence {
    fn new(rule: CheckRule) -> Equivalence {
        if rule == CheckRule::EmptyList {
            Equivalence::Alike
        } else {
            Equivalence::Same
        }
    }
}

/// Returns true when a normal form comes back unchanged. One that another route reads must go where the original
/// message went.
fn is_stable(subject: &CheckSubject<'_>, trip: &RoundTrip, equivalence: Equivalence) -> bool {
    let Ok(back) = &trip.back else { return false };
    if trip.by.is_some_and(|by| by != subject.own()) {
        return subject
            .there(back)
            .is_some_and(|there| there.same(&trip.there));
    }
    let again = subject.round_trip(back);
    again.is_some_and(|again| {
        !differs(back, &again)
            && (equivalence == Equivalence::Alike || again.there.same(&trip.there))
    })
}

/// Sends generated messages there and back, and reports a difference that no rule explains.
fn cross_check(subject: &CheckSubject<'_>, direction: &mut Direction) {
    for sent in subject.generated() {
        let Some(trip) = subject.round_trip(&sent) else {
            continue;
        };
        direction.tried += 1;
        let explained = !differs(&sent, &trip)
            || !direction.losses.is_empty()
            || (!direction.norms.is_empty() && is_stable(subject, &trip, Equivalence::Same));
        if !explained {
            direction.losses.push(Finding {
                rule: CheckRule::Unexplained,
                at: String::new(),
                witness: witness(sent, trip),
            });
        }
    }
}
