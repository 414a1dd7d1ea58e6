//! Rules about the reader of the way back: another row, another route, or the built-in table.
//!
//! Used by `check::rules` and `check::verify`.

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

use super::rule::{CheckRule, Hypothesis, Rivals, Weight};
use crate::check::message::Message;
use crate::check::report::{Direction, Finding, FindingKind, UnnamedMembers, Witness};
use crate::check::subject::CheckSubject;
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::outcome::RestReply;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;

/// A message that a row writes may match a row that is tried earlier, which then writes something else back. Complete
/// up to the values tried: later rows never see the message. An earlier row is tried with its own message, with a
/// message that both patterns match, and with one of its holes absent or odd.
pub(in crate::check) fn another_row(
    subject: &CheckSubject<'_>,
    rivals: Rivals<'_>,
) -> Vec<Hypothesis> {
    let Some(own) = subject.row else {
        return Vec::new();
    };
    let rows = subject.route.outcomes.rows();
    let name = |row: usize| Some(rows.get(row)?.key.clone());
    read_by_other(subject, rivals, own, &name)
        .map(|(at, message)| hypothesis(CheckRule::AnotherRow, Weight::Loss, at, message))
        .collect()
}

/// A call that a route writes may match another route. A REST call that matches another route is refused on writing,
/// except for aliases. An RPC call that matches another route is the same call, and comes back in that route's
/// spelling. Complete up to the values tried: every route that no literal of path or params distinguishes is tried.
pub(in crate::check) fn another_route(
    subject: &CheckSubject<'_>,
    rivals: Rivals<'_>,
) -> Vec<Hypothesis> {
    if subject.row.is_some() || !subject.route.enters_from(subject.from.other()) {
        return Vec::new();
    }
    let weight = match subject.from {
        Side::Rest => Weight::Norm,
        Side::Rpc => Weight::Loss,
    };
    let name = |route: usize| Some(subject.table.route(route).name.clone());
    read_by_other(subject, rivals, subject.index, &name)
        .map(|(at, message)| hypothesis(CheckRule::AnotherRoute, weight, at, message))
        .collect()
}

/// Returns the messages whose way back another route or row reads, with its name.
fn read_by_other<'s>(
    subject: &'s CheckSubject<'_>,
    rivals: Rivals<'s>,
    own: usize,
    name: &'s dyn Fn(usize) -> Option<String>,
) -> impl Iterator<Item = (String, Message)> + 's {
    let sources = rivals.iter().filter_map(|there| subject.source_of(there));
    let messages = sources.chain(subject.generated());
    messages.filter_map(move |message| {
        let by = subject.round_trip(&message)?.by.filter(|by| *by != own)?;
        Some((name(by)?, message))
    })
}

fn hypothesis(rule: CheckRule, weight: Weight, at: String, message: Message) -> Hypothesis {
    Hypothesis {
        rule,
        weight,
        at,
        messages: vec![message],
    }
}

/// Checks the built-in table, which is the same for every route, together with the rows of this route.
pub(in crate::check) fn built_in(calls: &CheckSubject<'_>, from: Side) -> Direction {
    let mut direction = Direction {
        from,
        kind: FindingKind::BuiltIn,
        never: None,
        norms: Vec::new(),
        losses: Vec::new(),
        refusals: Vec::new(),
        unnamed: UnnamedMembers::Carried,
        tried: 0,
    };
    let messages = match from {
        Side::Rest => rest_answers(),
        Side::Rpc => rpc_answers(),
    };
    for sent in messages {
        let Some((trip, row_key)) = calls.built_in_round_trip(&sent) else {
            continue;
        };
        direction.tried += 1;
        let Ok(back) = &trip.back else { continue };
        if back.same(&sent) {
            continue;
        }
        let (rule, at, findings) = match row_key {
            Some(row) => (CheckRule::AnotherRow, row, &mut direction.losses),
            None => (
                CheckRule::SuccessStatus,
                String::new(),
                &mut direction.norms,
            ),
        };
        if !findings
            .iter()
            .any(|known| known.rule == rule && known.at == at)
        {
            let witness = Witness {
                sent,
                there: trip.there,
                back: trip.back,
            };
            findings.push(Finding { rule, at, witness });
        }
    }
    direction
}

fn rest_answers() -> Vec<Message> {
    let answer = |status: u16, kind: &'static str, body: &'static str| {
        let mut reply = RestReply {
            status,
            body: Bytes::from_static(body.as_bytes()),
            ..RestReply::default()
        };
        if !kind.is_empty() {
            reply
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        Message::RestReply(reply)
    };
    let (json, text) = ("application/json", "text/plain; charset=utf-8");
    let mut answers = vec![
        answer(200, json, "{\"zz\":1}"),
        answer(200, json, "{}"),
        answer(200, json, "[7]"),
        answer(201, json, "{\"zz\":1}"),
        answer(202, "", ""),
        answer(204, "", ""),
    ];
    for status in [400, 401, 403, 404, 405, 409, 422, 429, 500, 502, 503] {
        answers.push(answer(status, json, "{\"zz\":1}"));
        answers.push(answer(status, text, "zz"));
        answers.push(answer(status, "", ""));
    }
    answers
}

fn rpc_answers() -> Vec<Message> {
    let results = ["{\"zz\":1}", "{}", "[7]", "null", "\"zz\""].map(Json::literal);
    let mut answers: Vec<Message> = results
        .map(|result| Message::RpcReply(ResponseReply::Result(result)))
        .into();
    for code in [-32700, -32600, -32601, -32602, -32603, -32000, -32050, 7] {
        for data in [None, Some(Json::literal("{\"zz\":1}"))] {
            answers.push(Message::RpcReply(ResponseReply::Error(ErrorObject {
                code,
                message: Json::literal("\"zz\""),
                data,
            })));
        }
    }
    answers
}
