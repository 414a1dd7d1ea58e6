//! Rules about replies as a whole: numbers, messages, bodies, texts and tools. Used by `check::rules`.

use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;

use super::holes::leaves_whole;
use super::rule::{CheckRule, Hypothesis, Rivals, Weight};
use crate::check::locations::LocationKind;
use crate::check::message::Message;
use crate::check::subject::{CheckSubject, headers_of};
use crate::jsonrpc::ResponseReply;
use crate::outcome::{BodyPattern, NumberPattern, OutcomeRow, RpcReplyPattern, ToolResult};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::Pattern;
use dualgauge_patterns::side::Side;

/// The most numbers of a list or a class that are tried.
const NUMBERS: usize = 4;

/// Returns a plain reply with a change.
fn changed(subject: &CheckSubject<'_>, change: impl FnOnce(&mut Message)) -> Vec<Message> {
    let mut message = subject.message(None, &[]);
    if let Some(message) = &mut message {
        change(message);
    }
    message.into_iter().collect()
}

fn one(rule: CheckRule, weight: Weight, at: &str, messages: Vec<Message>) -> Vec<Hypothesis> {
    vec![Hypothesis {
        rule,
        weight,
        at: at.to_owned(),
        messages,
    }]
}

/// Returns the row, if the subject is the replies of this side's servers.
fn row_of<'t>(subject: &CheckSubject<'t>, side: Side) -> Option<&'t OutcomeRow> {
    subject.pair().filter(|_| subject.from == side)
}

/// `body = "{_}"` matches any body and writes none. Complete: this is the whole meaning of `BodyPattern::Anything`.
pub(in crate::check) fn body_forgotten(
    subject: &CheckSubject<'_>,
    _: Rivals<'_>,
) -> Vec<Hypothesis> {
    let row = row_of(subject, Side::Rest);
    let Some(BodyPattern::Anything) = row.map(|row| &row.rest.body) else {
        return Vec::new();
    };
    let messages = changed(subject, |message| {
        if let Message::RestReply(reply) = message {
            reply.body = Bytes::from_static(b"{\"zz\":1}");
            let json = HeaderValue::from_static("application/json");
            reply.headers.entry(CONTENT_TYPE).or_insert(json);
        }
    });
    one(CheckRule::Forgotten, Weight::Loss, "body", messages)
}

/// Only the first number of a list of statuses or codes, or of a class, is written. Complete: every other number of the
/// list is read alike, and none is bound.
pub(in crate::check) fn number_list(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let Some(row) = subject.pair() else {
        return Vec::new();
    };
    let (numbers, at) = match (subject.from, &row.rpc) {
        (Side::Rest, _) => (&row.rest.status, "status"),
        (Side::Rpc, RpcReplyPattern::Error { code, .. }) => (code, "code"),
        (Side::Rpc, RpcReplyPattern::Result(_)) => return Vec::new(),
    };
    let NumberPattern::Among(first, choices) = numbers else {
        return Vec::new();
    };
    if choices.is_empty() {
        return Vec::new();
    }
    let others = numbers.numbers().filter(|number| number != first);
    let messages = others.take(NUMBERS).flat_map(|number| {
        changed(subject, |message| match message {
            Message::RestReply(reply) => {
                reply.status = u16::try_from(number).unwrap_or(reply.status)
            }
            Message::RpcReply(ResponseReply::Error(error)) => error.code = number,
            Message::RpcReply(ResponseReply::Result(_))
            | Message::RestCall { .. }
            | Message::RpcCall { .. } => {}
        })
    });
    one(CheckRule::NumberList, Weight::Loss, at, messages.collect())
}

/// Every error has a message. A row without one drops the server's message and writes its own title; a row with an
/// optional message reads the title as a value. Complete: these are the only two ways in which a title is written.
pub(in crate::check) fn message_replaced(
    subject: &CheckSubject<'_>,
    _: Rivals<'_>,
) -> Vec<Hypothesis> {
    let Some(RpcReplyPattern::Error { message, .. }) = subject.pair().map(|row| &row.rpc) else {
        return Vec::new();
    };
    let messages = match (subject.from, message) {
        (Side::Rpc, None) => changed(subject, |message| {
            if let Message::RpcReply(ResponseReply::Error(error)) = message {
                error.message = Json::literal("\"zz\"");
            }
        }),
        (Side::Rest, Some(pattern)) => match leaves_whole(pattern) {
            Some(chosen) => subject.message(None, &chosen).into_iter().collect(),
            None => Vec::new(),
        },
        (Side::Rpc, Some(_)) | (Side::Rest, None) => Vec::new(),
    };
    one(
        CheckRule::MessageReplaced,
        Weight::Loss,
        "message",
        messages,
    )
}

/// If a whole body or result is one optional hole, no content or `null` is written for it, which is read as something
/// else. Complete: objects are always written, and other patterns are always present.
pub(in crate::check) fn whole_left_out(
    subject: &CheckSubject<'_>,
    _: Rivals<'_>,
) -> Vec<Hypothesis> {
    let Some(row) = subject.pair() else {
        return Vec::new();
    };
    let whole: [(Option<&Pattern>, &str); 2] = [
        match &row.rest.body {
            BodyPattern::Json(pattern) => (Some(pattern), "body"),
            BodyPattern::Nothing | BodyPattern::Anything | BodyPattern::Text(_) => (None, "body"),
        },
        match &row.rpc {
            RpcReplyPattern::Result(pattern) => (Some(pattern), "result"),
            RpcReplyPattern::Error { .. } => (None, "result"),
        },
    ];
    let found = whole.into_iter().filter_map(|(pattern, at)| {
        let chosen = leaves_whole(pattern?)?;
        let messages = subject.message(None, &chosen).into_iter().collect();
        Some(Hypothesis {
            rule: CheckRule::WholeLeftOut,
            weight: Weight::Loss,
            at: at.to_owned(),
            messages,
        })
    });
    found.collect()
}

/// A text is written with the content type `text/plain`, unless the row names the header; any type of text is read.
/// Complete: the content type of JSON adds nothing and is not compared.
pub(in crate::check) fn text_type(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let row = row_of(subject, Side::Rest);
    let Some(BodyPattern::Text(_)) = row.map(|row| &row.rest.body) else {
        return Vec::new();
    };
    let names_it = |row: &OutcomeRow| {
        row.rest
            .headers
            .iter()
            .any(|item| item.name == CONTENT_TYPE)
    };
    if row.is_some_and(names_it) {
        return Vec::new();
    }
    let messages = changed(subject, |message| {
        if let Some(headers) = headers_of(message) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/csv"));
        }
    });
    one(CheckRule::TextType, Weight::Norm, "text", messages)
}

/// A blank body is read as none, so a row for the empty text takes it and writes the empty text. Complete: blanks are
/// tested before a text is read, and only there.
pub(in crate::check) fn blank_text(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    // Frames are JSON, and a silence has no blanks.
    let row = row_of(subject, Side::Rest).filter(|_| !subject.route.is_frame());
    let Some(BodyPattern::Text(_) | BodyPattern::Nothing) = row.map(|row| &row.rest.body) else {
        return Vec::new();
    };
    let messages = changed(subject, |message| {
        if let Message::RestReply(reply) = message {
            reply.body = Bytes::from_static(b" \n");
        }
    });
    one(CheckRule::BlankText, Weight::Norm, "text", messages)
}

/// A row of a tool that does not name `isError` writes a result with it if a hole holds one, and does not read it back.
/// Complete: only a hole for the whole result, or for its unnamed members, can hold the member.
pub(in crate::check) fn tool_failure(subject: &CheckSubject<'_>, _: Rivals<'_>) -> Vec<Hypothesis> {
    let row = row_of(subject, Side::Rest);
    if row.is_none_or(|row| row.tool != ToolResult::Succeeded) {
        return Vec::new();
    }
    let located = subject.there.holes.iter();
    let whole = located.filter(|located| {
        located.at == "result" || (located.at == "result/..." && located.kind == LocationKind::Rest)
    });
    let found = whole.filter_map(|located| {
        let failed = Json::literal("{\"isError\":true}");
        let chosen = [(located.slot.binds()?, Some(failed))];
        let messages = subject.message(None, &chosen).into_iter().collect();
        Some(Hypothesis {
            rule: CheckRule::ToolFailure,
            weight: Weight::Loss,
            at: located.at.clone(),
            messages,
        })
    });
    found.collect()
}
