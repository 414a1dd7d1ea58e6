//! The proof of events on their way to the other side and back.
//!
//! An event is a pair of patterns like a row of outcomes, so it is proven as one: as the answer of a route that exists
//! only for the proof. The laws are those of rows. Events with one side are not translated and not checked.
//!
//! Used by `cli::check::json`, `cli::check::text` and `cli::check::verdict`.

use http::Method;

use super::message::Message;
use super::report::{Direction, Finding, FindingKind, LossVerdict};
use super::verify;
use crate::event::{EventDefinition, EventForm, Events};
use crate::jsonrpc::ResponseReply;
use crate::outcome::{
    BodyPattern, NumberPattern, OutcomeRow, Outcomes, RestReplyPattern, RowOrder, RpcReplyPattern,
    ToolResult,
};
use crate::route::{RouteSource, RouteTable, parse_route};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Pattern;
use dualgauge_patterns::side::Side;

/// The findings for events in one form.
#[derive(Debug)]
pub struct EventReport {
    /// The index of the event.
    pub event: usize,
    /// The form in which the events arrive.
    pub from: EventForm,
    /// The verdict on the events.
    pub verdict: LossVerdict,
    /// Differences after which the event still means the same.
    pub norms: Vec<EventFinding>,
    /// Differences that lose data.
    pub losses: Vec<EventFinding>,
}

/// One reason why an event does not come back unchanged.
#[derive(Debug)]
pub struct EventFinding {
    /// The name of the rule.
    pub rule: &'static str,
    /// The text of the rule with its location.
    pub text: String,
    /// An event that shows it.
    pub sent: String,
    /// The event that the other side gets.
    pub there: String,
    /// The event that comes back, or the reason why none does.
    pub back: Result<String, String>,
}

/// Checks every event that has two sides.
#[must_use]
pub fn check_events(events: &Events) -> Vec<EventReport> {
    let mut reports = Vec::new();
    for form in [EventForm::Frame, EventForm::Sse] {
        let (indexes, rows): (Vec<_>, Vec<_>) = rows(events, form).into_iter().unzip();
        let Some(table) = table(rows) else { continue };
        for direction in verify::only(&table) {
            let FindingKind::Outcome(row) = direction.kind else {
                continue;
            };
            reports.push(report(indexes[row], form, direction));
        }
    }
    reports.sort_by_key(|report| report.event);
    reports
}

/// Returns the events between one form and notifications, as rows.
fn rows(events: &Events, form: EventForm) -> Vec<(usize, OutcomeRow)> {
    let all = events.all().iter().enumerate();
    let rows = all.filter_map(|(index, event)| {
        let (rpc, shown) = (event.pattern_for(EventForm::Rpc)?, event.pattern_for(form)?);
        Some((index, row(event, rpc, shown)))
    });
    rows.collect()
}

fn row(event: &EventDefinition, rpc: &Pattern, shown: &Pattern) -> OutcomeRow {
    OutcomeRow {
        key: event.key.clone(),
        origin: 0,
        order: RowOrder::default(),
        facts: event.facts.clone(),
        rest: RestReplyPattern {
            status: NumberPattern::Among(200, Vec::new()),
            headers: Vec::new(),
            body: BodyPattern::Json(shown.clone()),
        },
        rpc: RpcReplyPattern::Result(rpc.clone()),
        tool: ToolResult::Any,
        lossy: event.lossy.clone(),
    }
}

/// Builds a table with one route whose answers are the events.
fn table(rows: Vec<OutcomeRow>) -> Option<RouteTable> {
    let source = RouteSource {
        name: "events".to_owned(),
        rest: format!("{} /events", Method::POST),
        rpc: "events".to_owned(),
        ..RouteSource::default()
    };
    let mut route = parse_route(source).ok()?;
    route.outcomes = Outcomes::new(rows);
    RouteTable::build(vec![route]).ok()
}

fn report(event: usize, form: EventForm, direction: Direction) -> EventReport {
    let from = match direction.from {
        Side::Rest => form,
        Side::Rpc => EventForm::Rpc,
    };
    let verdict = direction.verdict();
    let findings = |findings: Vec<Finding>| {
        let findings = findings.into_iter();
        findings.map(|one| finding(form, one)).collect()
    };
    EventReport {
        event,
        from,
        verdict,
        norms: findings(direction.norms),
        losses: findings(direction.losses),
    }
}

fn finding(form: EventForm, finding: Finding) -> EventFinding {
    let witness = finding.witness;
    EventFinding {
        rule: finding.rule.as_str(),
        text: finding.rule.describe(&location(form, &finding.at)),
        sent: shown(&witness.sent),
        there: shown(&witness.there),
        back: witness.back.map(|back| shown(&back)),
    }
}

/// Renders a location in the terms of the event table: `body/data/0/x` is `sse/data/x`.
fn location(form: EventForm, at: &str) -> String {
    match (at.strip_prefix("body"), at.strip_prefix("result")) {
        (Some(rest), _) => {
            let rest = match (form, rest.strip_prefix("/data/0")) {
                (EventForm::Sse, Some(inside)) => format!("/data{inside}"),
                (EventForm::Rpc | EventForm::Frame | EventForm::Sse, _) => rest.to_owned(),
            };
            format!("{}{rest}", form.as_str())
        }
        (None, Some(rest)) => format!("rpc{rest}"),
        (None, None) => at.to_owned(),
    }
}

fn shown(message: &Message) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match message {
        Message::RestReply(reply) => text(&reply.body),
        Message::RpcReply(ResponseReply::Result(result)) => text(Json::as_bytes(result)),
        Message::RpcReply(ResponseReply::Error(_))
        | Message::RestCall { .. }
        | Message::RpcCall { .. } => message.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventSource, OtherSide, RpcEventSource, SseSource};
    use crate::route::test_syntax::tree;

    fn verdicts(params: &str, data: &str) -> Vec<(&'static str, &'static str, Vec<String>)> {
        let events = Events::build(vec![EventSource {
            key: "event[0]".into(),
            rpc: Some(RpcEventSource {
                method: "a".into(),
                params: Some(tree(params)),
            }),
            shown: Some(OtherSide::Sse(SseSource {
                data: Some(tree(data)),
                ..SseSource::default()
            })),
            lossy: None,
        }]);
        let reports = check_events(&events.unwrap()).into_iter();
        let texts = |report: &EventReport| {
            let all = report.losses.iter().chain(&report.norms);
            all.map(|finding| finding.text.clone()).collect()
        };
        reports
            .map(|report| {
                let texts = texts(&report);
                (report.from.as_str(), report.verdict.as_str(), texts)
            })
            .collect()
    }

    #[test]
    fn a_pair_that_names_the_same_on_both_sides_is_lossless() {
        let found = verdicts(r#"{"x": "{x}"}"#, r#"{"y": ["{x}"]}"#);
        let none = Vec::new;
        assert_eq!(
            found,
            [("sse", "lossless", none()), ("rpc", "lossless", none())]
        );
    }

    #[test]
    fn forgotten_and_normalised_values_are_reported_with_their_location() {
        let found = verdicts(r#"{"x": "{x=5}"}"#, r#"{"x": "{x}", "t": "{_}"}"#);
        let forgotten = "sse/data/t: read and forgotten".to_owned();
        assert_eq!((found[0].0, found[0].1), ("sse", "lossy"));
        assert!(found[0].2.contains(&forgotten), "{found:?}");
        let default = "rpc/params/x: the default is written out".to_owned();
        assert_eq!((found[1].0, found[1].1), ("rpc", "normal form"));
        assert!(found[1].2.contains(&default), "{found:?}");
    }
}
