//! `[[route.example]]`: example calls and responses, without holes.
//!
//! JSON is escaped as in patterns: `{{` and `}}` are braces, `{_:null}` is null. Lines and headers are plain text.
//!
//! Used by `decode::route`.

use super::frame;
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
    /// `rpc` of an example.
    RPC_CALL {
        /// Method of the RPC call
        METHOD: Key<String> = key("method", TEXT).required();
        /// Params of the RPC call
        PARAMS: Tree = tree("params");
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
        /// Frame, in place of `rest`; absent: silence
        REPLY_FRAME: Tree = tree("frame");
        /// JSON-RPC response
        OF_RPC_REPLY: SubTable = table("rpc", &RPC_REPLY).required();
    }
    rules [
        Rule::Excludes("rest", &["frame"]),
    ]
}

section! {
    /// `[[route.example]]`
    pub(super) EXAMPLE {
        /// Callers that the example is for
        WAY: Key<ExampleWay> = key("way", words(WAYS)).or("both");
        /// HTTP call
        OF_REST: SubTable = table("rest", &REST_CALL);
        /// Frame, in place of `rest`
        CALL_FRAME: Tree = tree("frame");
        /// RPC call
        OF_RPC: SubTable = table("rpc", &RPC_CALL).required();
        /// Response
        OF_REPLY: SubTable = table("reply", &REPLY);
    }
    rules [
        Rule::ExactlyOne(&["rest", "frame"]),
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
    let rest = if table.shape("frame") == Shape::Absent {
        table.require_table(&OF_REST, rest_half)
    } else {
        frame::reject_both(table, &["frame"]);
        table.json(&CALL_FRAME).map(RestHalf::frame)
    };
    let rpc = table.table(&OF_RPC, |rpc| {
        let method = rpc.get(&METHOD);
        let params = rpc.json(&PARAMS);
        Some((method?.value, params))
    });
    let frames = table.shape("frame") != Shape::Absent;
    let reply = table.table(&OF_REPLY, |both| {
        if frames {
            frame_reply(both)
        } else {
            reply(both)
        }
    });
    let (rest, (method, params)) = (rest?, rpc?);
    Some(Example {
        key: here.key,
        way: way?.value,
        call: rest.call,
        headers: rest.headers,
        body: rest.body,
        method,
        params,
        reply,
    })
}

fn rest_half(table: &mut Table<'_>) -> Option<RestHalf> {
    let call = table.get(&CALL);
    let headers = headers(table, &CALL_HEADERS);
    let body = table.json(&CALL_BODY);
    Some(RestHalf {
        call: call?.value,
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

/// Decodes the reply to a frame: another frame, or silence.
fn frame_reply(table: &mut Table<'_>) -> Option<ExampleReply> {
    frame::reject_both(table, &["rest"]);
    let frame = table.json(&REPLY_FRAME);
    let rpc = table.table(&OF_RPC_REPLY, rpc_reply);
    Some(ExampleReply {
        status: if frame.is_some() { 200 } else { 204 },
        headers: Vec::new(),
        body: frame,
        text: None,
        rpc: rpc?,
    })
}

fn reply(table: &mut Table<'_>) -> Option<ExampleReply> {
    let rest = table.require_table(&OF_REST_REPLY, |rest| {
        let status = rest.get(&STATUS);
        let headers = headers(rest, &REPLY_HEADERS);
        let body = rest.json(&REPLY_BODY);
        let text = rest.get(&REPLY_TEXT);
        if body.is_some() && text.is_some() {
            let here = rest.here();
            rest.add(here.problem("`body` is JSON, `text` is not; write one of them"));
        }
        Some(RestReplyHalf {
            status: status?.value,
            headers: headers?,
            body,
            text: text.map(|text| text.value),
        })
    });
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
