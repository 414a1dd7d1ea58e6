//! `[[route.example]]`: example calls and responses, without holes.
//!
//! JSON is escaped as in patterns: `{{` and `}}` are braces, `{_:null}` is null. Lines and headers are plain text.
//!
//! Used by `decode::route`.

use super::old;
use super::outcome::not_exactly_one;
use crate::config::key::{Key, Rule, SubTable, Tree, key, section, table, tree, tree_table};
use crate::config::kind::{STRING, TEXT, whole, words};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::ValueError;
use dualgauge_model::route::{Example, ExampleReply, ExampleWay, FRAME};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

const WAYS: &[(&str, ExampleWay)] = &[
    ("both", ExampleWay::Both),
    ("rest", ExampleWay::From(Side::Rest)),
    ("rpc", ExampleWay::From(Side::Rpc)),
];

section! {
    /// `rest` of an example.
    REST_CALL {
        /// Method and target of the HTTP call
        CALL: Key<String> = key("call", TEXT).required();
        /// Headers of the call
        CALL_HEADERS: Tree = tree_table("headers");
        /// JSON body of the call
        CALL_BODY: Tree = tree("body");
    }
}

section! {
    /// `old` of an example.
    OLD_CALL {
        /// Method and target of the HTTP call; those of the route if absent
        OLD_TARGET: Key<String> = key("call", TEXT);
        /// Headers of the call
        OLD_CALL_HEADERS: Tree = tree_table("headers");
        /// Message of the call
        OLD_CALL_BODY: Tree = tree("body");
        /// Message on a WebSocket, in place of an HTTP call
        CALL_MESSAGE: Tree = tree("message");
    }
    rules [
        Rule::Excludes("message", &["call", "headers", "body"]),
    ]
}

section! {
    /// `reply.old` of an example.
    OLD_REPLY {
        /// Status of the HTTP response
        OLD_STATUS: Key<u16> = key("status", whole(200, 599)).or("200");
        /// Headers of the response
        OLD_REPLY_HEADERS: Tree = tree_table("headers");
        /// Message of the response
        OLD_REPLY_BODY: Tree = tree("body");
        /// Text of the response
        OLD_REPLY_TEXT: Key<String> = key("text", STRING);
        /// Message on a WebSocket, in place of an HTTP response
        REPLY_MESSAGE: Tree = tree("message");
    }
    rules [
        Rule::Excludes("body", &["text"]),
        Rule::Excludes("message", &["status", "headers", "body", "text"]),
    ]
}

section! {
    /// `rpc` of an example.
    RPC_CALL {
        /// Method of the RPC call
        METHOD: Key<String> = key("method", TEXT).required();
        /// Params of the RPC call
        PARAMS: Tree = tree("params");
        /// Headers of the RPC call
        RPC_HEADERS: Tree = tree_table("headers");
    }
}

section! {
    /// `reply.rest` of an example.
    REST_REPLY {
        /// Status of the HTTP response
        STATUS: Key<u16> = key("status", whole(200, 599)).required();
        /// Headers of the response
        REPLY_HEADERS: Tree = tree_table("headers");
        /// JSON body of the response
        REPLY_BODY: Tree = tree("body");
        /// Text of the response
        REPLY_TEXT: Key<String> = key("text", STRING);
    }
    rules [
        Rule::Excludes("body", &["text"]),
    ]
}

section! {
    /// `reply.rpc.error` of an example.
    ERROR {
        /// Code of the error
        CODE: Key<i64> = key("code", whole(i64::MIN, i64::MAX)).required();
        /// Message of the error, a string
        MESSAGE: Tree = tree("message").required();
        /// Data of the error
        DATA: Tree = tree("data");
    }
}

section! {
    /// `reply.rpc` of an example: exactly one of these keys.
    RPC_REPLY {
        /// Result
        RESULT: Tree = tree("result");
        /// Error
        OF_ERROR: SubTable = table("error", &ERROR);
    }
    rules [
        Rule::ExactlyOne(&["result", "error"]),
    ]
}

section! {
    /// `reply` of an example.
    REPLY {
        /// HTTP response
        OF_REST_REPLY: SubTable = table("rest", &REST_REPLY);
        /// Response of an old RPC dialect, in place of `rest`
        OF_OLD_REPLY: SubTable = table("old", &OLD_REPLY);
        /// Short for `old.message`; without any of them: silence
        REPLY_FRAME: Tree = tree("frame");
        /// JSON-RPC response
        OF_RPC_REPLY: SubTable = table("rpc", &RPC_REPLY).required();
    }
    rules [
        Rule::Excludes("rest", &["old", "frame"]),
        Rule::Excludes("old", &["frame"]),
    ]
}

section! {
    /// `[[route.example]]`
    pub(super) EXAMPLE {
        /// Callers that the example is for
        WAY: Key<ExampleWay> = key("way", words(WAYS)).or("both");
        /// HTTP call
        OF_REST: SubTable = table("rest", &REST_CALL);
        /// Message of an old RPC dialect, in place of `rest`
        OF_OLD: SubTable = table("old", &OLD_CALL);
        /// Short for `old.message`
        CALL_FRAME: Tree = tree("frame");
        /// RPC call
        OF_RPC: SubTable = table("rpc", &RPC_CALL).required();
        /// Response
        OF_REPLY: SubTable = table("reply", &REPLY);
    }
    rules [
        Rule::ExactlyOne(&["rest", "old", "frame"]),
    ]
}

/// `error` as a whole; its members are entries of [`ERROR`].
static WHOLE_ERROR: Tree = tree("error");

/// The REST half of a call.
struct RestHalf {
    call: String,
    headers: Vec<(String, String)>,
    body: Option<Json>,
}

impl RestHalf {
    /// Returns the half of a frame, which is content only.
    fn frame(frame: Json) -> RestHalf {
        RestHalf {
            call: FRAME.to_owned(),
            headers: Vec::new(),
            body: Some(frame),
        }
    }
}

/// The REST half of a response.
struct RestReplyHalf {
    status: u16,
    headers: Vec<(String, String)>,
    body: Option<Json>,
    text: Option<String>,
}

pub(super) fn example(table: &mut Table<'_>) -> Option<Example> {
    let here = table.here();
    let way = table.get(&WAY);
    let (form, rest) = left_half(table);
    let rpc = table.table(&OF_RPC, |rpc| {
        let method = rpc.get(&METHOD);
        let params = rpc.json(&PARAMS);
        let headers = headers(rpc, &RPC_HEADERS);
        Some((method?.value, params, headers?))
    });
    let reply = table.table(&OF_REPLY, |both| reply(both, form));
    let (rest, (method, params, rpc_headers)) = (rest?, rpc?);
    Some(Example {
        key: here.key,
        way: way?.value,
        call: rest.call,
        headers: rest.headers,
        body: rest.body,
        method,
        params,
        rpc_headers,
        reply,
    })
}

/// The left form of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Rest,
    Old,
    Frame,
}

/// Decodes the left half of an example.
fn left_half(table: &mut Table<'_>) -> (Form, Option<RestHalf>) {
    if table.shape(OF_OLD.name) != Shape::Absent {
        old::reject_beside(table, OF_REST.name, OF_OLD.name);
        old::reject_beside(table, CALL_FRAME.name, OF_OLD.name);
        let mut form = Form::Old;
        let half = table.table(&OF_OLD, |old| {
            if old.shape(CALL_MESSAGE.name) == Shape::Absent {
                // Without a target it has that of its route.
                let call = old.get(&OLD_TARGET).map(|call| call.value);
                return http_half(old, Some(call.unwrap_or_default()));
            }
            form = Form::Frame;
            old::reject_excluded(old, OLD_CALL.rules);
            old.json(&CALL_MESSAGE).map(RestHalf::frame)
        });
        return (form, half);
    }
    if table.shape(CALL_FRAME.name) == Shape::Absent {
        let half = table.require_table(&OF_REST, |rest| {
            let call = rest.get(&CALL).map(|call| call.value);
            http_half(rest, call)
        });
        return (Form::Rest, half);
    }
    if table.shape(OF_REST.name) != Shape::Absent {
        old::reject_beside(table, CALL_FRAME.name, OF_REST.name);
    }
    let half = table.json(&CALL_FRAME).map(RestHalf::frame);
    (Form::Frame, half)
}

/// Decodes an HTTP call. `old` has the same keys as `rest`.
fn http_half(table: &mut Table<'_>, call: Option<String>) -> Option<RestHalf> {
    let headers = headers(table, &CALL_HEADERS);
    let body = table.json(&CALL_BODY);
    Some(RestHalf {
        call: call?,
        headers: headers?,
        body,
    })
}

fn headers(table: &mut Table<'_>, key: &Tree) -> Option<Vec<(String, String)>> {
    let trees = table.trees(key)?;
    let mut headers = Vec::with_capacity(trees.len());
    for (name, tree) in trees {
        match tree {
            SourceTree::Text(value) => headers.push((name, value)),
            SourceTree::Literal(_) | SourceTree::Table(_) | SourceTree::List(_) => {
                let message = format!("the header `{name}` of an example is not a string");
                table.report(key.name, ValueError::new(message));
                return None;
            }
        }
    }
    Some(headers)
}

fn reply(table: &mut Table<'_>, form: Form) -> Option<ExampleReply> {
    let rest = match form {
        Form::Rest => table.require_table(&OF_REST_REPLY, |rest| http_reply(rest, &STATUS)),
        Form::Old => table.require_table(&OF_OLD_REPLY, old_reply),
        Form::Frame => Some(frame_reply(table)),
    };
    let rpc = table.table(&OF_RPC_REPLY, rpc_reply);
    let (rest, rpc) = (rest?, rpc?);
    Some(ExampleReply {
        status: rest.status,
        headers: rest.headers,
        body: rest.body,
        text: rest.text,
        rpc,
    })
}

/// Decodes the reply to a frame: another frame, or silence.
fn frame_reply(table: &mut Table<'_>) -> RestReplyHalf {
    old::reject_beside(table, OF_REST_REPLY.name, REPLY_FRAME.name);
    let frame = match table.shape(OF_OLD_REPLY.name) {
        Shape::Absent => table.json(&REPLY_FRAME),
        Shape::Table | Shape::Value => {
            old::reject_beside(table, REPLY_FRAME.name, OF_OLD_REPLY.name);
            table.table(&OF_OLD_REPLY, |old| old.json(&REPLY_MESSAGE))
        }
    };
    RestReplyHalf {
        status: if frame.is_some() { 200 } else { 204 },
        headers: Vec::new(),
        body: frame,
        text: None,
    }
}

/// Decodes the reply to an old call over HTTP.
fn old_reply(table: &mut Table<'_>) -> Option<RestReplyHalf> {
    if table.shape(REPLY_MESSAGE.name) != Shape::Absent {
        let message = "the call is no `message`, so its response is none; write `body`";
        table.report(REPLY_MESSAGE.name, ValueError::new(message));
    }
    http_reply(table, &OLD_STATUS)
}

/// Decodes an HTTP response. `old` has the same keys as `rest`.
fn http_reply(table: &mut Table<'_>, status: &Key<u16>) -> Option<RestReplyHalf> {
    let status = table.get(status);
    let headers = headers(table, &REPLY_HEADERS);
    let body = table.json(&REPLY_BODY);
    let text = table.get(&REPLY_TEXT);
    if body.is_some() && text.is_some() {
        let here = table.here();
        table.add(here.problem("`body` is JSON, `text` is not; write one of them"));
    }
    Some(RestReplyHalf {
        status: status?.value,
        headers: headers?,
        body,
        text: text.map(|text| text.value),
    })
}

fn rpc_reply(table: &mut Table<'_>) -> Option<Result<Json, Json>> {
    let result = table.json(&RESULT);
    let error = table.json(&WHOLE_ERROR);
    // Decodes the error object again, for its members (JSON-RPC 2.0 §5.1).
    table.table(&OF_ERROR, |error| {
        error.get(&CODE);
        let message = error.json(&MESSAGE);
        if message.is_some_and(|message| message.kind() != JsonKind::String) {
            error.report(
                MESSAGE.name,
                ValueError::new("the message of an error must be a string"),
            );
        }
        error.tree(&DATA);
        Some(())
    });
    if let Some(problem) = not_exactly_one(table) {
        table.add(problem);
        return None;
    }
    result.map(Ok).or(error.map(Err))
}
