//! Execution of the route table's examples, in the directions that they name.
//!
//! Used by `check::report` and `check::verify`.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::message::Message;
use super::round_trip::select_rest;
use super::subject::CheckSubject;
use crate::jsonrpc::{ErrorObject, ResponseReply};
use crate::outcome::RestReply;
use crate::route::{EmptyBody, Example, ExampleReply, ExampleWay, RouteTable};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::Bindings;
use dualgauge_patterns::side::Side;

/// The results of the examples of a route.
#[derive(Debug, Default)]
pub struct ExampleReport {
    /// The number of examples.
    pub run: usize,
    /// All differences.
    pub failed: Vec<ExampleFault>,
}

/// A difference between an example and its execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExampleFault {
    /// The key of the example, below its route.
    pub key: String,
    /// The difference, with the expected and the found value.
    pub what: String,
}

/// Runs the examples of one route.
pub(super) fn run(table: &RouteTable, index: usize) -> ExampleReport {
    let mut report = ExampleReport::default();
    let route = table.route(index);
    if route.examples.is_empty() {
        return report;
    }
    let subject = CheckSubject::calls(table, index, Side::Rest);
    for example in &route.examples {
        report.run += 1;
        if let Err(what) = holds(&subject, example) {
            let key = example.key.clone();
            report.failed.push(ExampleFault { key, what });
        }
    }
    report
}

fn holds(subject: &CheckSubject<'_>, example: &Example) -> Result<(), String> {
    let (rest, rpc) = (rest_call(subject, example)?, rpc_call(example)?);
    let mut call = None;
    for from in Side::ALL {
        let applies = subject.route.enters_from(from) && covers(example.way, from);
        if !applies {
            continue;
        }
        let (sent, expected) = match from {
            Side::Rest => (&rest, &rpc),
            Side::Rpc => (&rpc, &rest),
        };
        let id = match (from, subject.route.id, &example.body) {
            (Side::Rpc, Some(hole), Some(message)) => {
                let bindings = subject.route.bindings_with_id_only(message);
                Some(bindings.get(hole).clone())
            }
            (Side::Rest | Side::Rpc, _, _) => None,
        };
        let found = selected(subject, sent)
            .and_then(|()| subject.translate_call(sent, id))
            .map_err(|what| format!("`{sent}` from {from}: {what}"))?;
        if !shows_empty_body(subject, expected, &found.0) {
            compare(from, sent, expected, &found.0)?;
        }
        call = call.or(Some(found.1));
    }
    match (&example.reply, call) {
        (Some(reply), Some(call)) => replies(subject, example.way, reply, &call),
        (Some(_) | None, _) => Ok(()),
    }
}

fn covers(way: ExampleWay, from: Side) -> bool {
    match way {
        ExampleWay::Both => true,
        ExampleWay::From(only) => only == from,
    }
}

/// Fails unless the table selects this route for the call.
fn selected(subject: &CheckSubject<'_>, sent: &Message) -> Result<(), String> {
    let (table, rest_protocol) = (subject.table, subject.route.rest_protocol);
    let found = match sent.method_call() {
        Some(call) => table.select_rpc_to(rest_protocol, call),
        None => select_rest(table, rest_protocol, sent),
    };
    match found {
        Some(index) if index == subject.index => Ok(()),
        Some(index) => {
            let name = &subject.table.route(index).name;
            Err(format!("the call matches the route `{name}`"))
        }
        None => Err("the call matches no route".to_owned()),
    }
}

fn compare(from: Side, sent: &Message, expected: &Message, found: &Message) -> Result<(), String> {
    if found.shows(expected) {
        return Ok(());
    }
    Err(format!(
        "`{sent}` from {from}: expected `{expected}`, found `{found}`"
    ))
}

/// Returns true when an example has no body where `{}` is sent. A short form sends `{}` for empty params and reads an
/// absent body as `{}`, so both are the same call.
fn shows_empty_body(subject: &CheckSubject<'_>, expected: &Message, found: &Message) -> bool {
    let Message::RestCall {
        method,
        target,
        headers,
        body: Some(body),
    } = found
    else {
        return false;
    };
    let sent_alike =
        subject.route.rest_call.empty == EmptyBody::Sent && body.same(&Json::literal("{}"));
    let without_body = || Message::RestCall {
        method: method.clone(),
        target: target.clone(),
        headers: headers.clone(),
        body: None,
    };
    sent_alike && without_body().shows(expected)
}

/// Compares the replies, which come from the servers of the side to which the call goes.
fn replies(
    subject: &CheckSubject<'_>,
    way: ExampleWay,
    reply: &ExampleReply,
    call: &Bindings,
) -> Result<(), String> {
    let (rest, rpc) = (rest_reply(reply)?, rpc_reply(reply)?);
    for from in Side::ALL {
        if !covers(way, from.other()) || !subject.route.enters_from(from.other()) {
            continue;
        }
        let (sent, expected) = match from {
            Side::Rest => (&rest, &rpc),
            Side::Rpc => (&rpc, &rest),
        };
        let found = subject.translate_reply(sent, call);
        let found = found.map_err(|what| format!("`{sent}` from {from}: {what}"))?;
        compare(from, sent, expected, &found)?;
    }
    Ok(())
}

fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || format!("`{name}: {value}` is not a header");
        let named = HeaderName::try_from(name.to_ascii_lowercase()).map_err(|_| wrong())?;
        map.append(named, HeaderValue::try_from(value).map_err(|_| wrong())?);
    }
    Ok(map)
}

fn rest_call(subject: &CheckSubject<'_>, example: &Example) -> Result<Message, String> {
    let wrong = || format!("`{}` is not a call; write `GET /path?query`", example.call);
    let (method, target) = example.call.split_once(' ').ok_or_else(wrong)?;
    let method = http::Method::from_bytes(method.as_bytes()).map_err(|_| wrong())?;
    let mut headers = header_map(&example.headers)?;
    // The route cannot lose headers that it does not name.
    let named = |name: &HeaderName| subject.route.rest_call.names_header(name);
    let unnamed: Vec<HeaderName> = headers
        .keys()
        .filter(|name| !named(name))
        .cloned()
        .collect();
    for name in unnamed {
        headers.remove(name);
    }
    Ok(Message::RestCall {
        method,
        target: target.to_owned(),
        headers,
        body: example.body.clone(),
    })
}

fn rpc_call(example: &Example) -> Result<Message, String> {
    Ok(Message::RpcCall {
        method: example.method.clone(),
        params: Some(example.params.clone().unwrap_or(Json::literal("{}"))),
        headers: header_map(&example.rpc_headers)?,
    })
}

fn rest_reply(reply: &ExampleReply) -> Result<Message, String> {
    let mut headers = header_map(&reply.headers)?;
    let (kind, body) = match (&reply.body, &reply.text) {
        (Some(body), _) => ("application/json", body.clone().into_bytes()),
        (None, Some(text)) => (
            "text/plain; charset=utf-8",
            Bytes::copy_from_slice(text.as_bytes()),
        ),
        (None, None) => ("", Bytes::new()),
    };
    if !kind.is_empty() {
        let kind = HeaderValue::from_static(kind);
        headers.entry(CONTENT_TYPE).or_insert(kind);
    }
    Ok(Message::RestReply(RestReply {
        status: reply.status,
        headers,
        body,
    }))
}

fn rpc_reply(reply: &ExampleReply) -> Result<Message, String> {
    let error = match &reply.rpc {
        Ok(result) => return Ok(Message::RpcReply(ResponseReply::Result(result.clone()))),
        Err(error) => error,
    };
    let wrong = || "`rpc.error` needs a `code` and a `message`".to_owned();
    let code = error.member("code").ok_or_else(wrong)?;
    let code = std::str::from_utf8(code.as_bytes()).ok();
    let code = code.and_then(|code| code.parse().ok()).ok_or_else(wrong)?;
    let message = error
        .member("message")
        .filter(|message| message.kind() == JsonKind::String);
    Ok(Message::RpcReply(ResponseReply::Error(ErrorObject {
        code,
        message: message.ok_or_else(wrong)?,
        data: error.member("data"),
    })))
}
