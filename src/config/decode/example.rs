//! `[[route.example]]`: example calls and responses, without holes.
//!
//! JSON is escaped as in patterns: `{{` and `}}` are braces, `{_:null}` is null. Lines and headers are plain text.
//!
//! Used by `decode::route`.

use super::frame;
use super::outcome::not_exactly_one;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{ValueError, string, text, whole, word};
use dualgauge_model::route::{Example, ExampleReply, ExampleWay, FRAME};
use dualgauge_patterns::json::{Json, JsonKind};
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;

const WAYS: &[(&str, ExampleWay)] = &[
    ("both", ExampleWay::Both),
    ("rest", ExampleWay::From(Side::Rest)),
    ("rpc", ExampleWay::From(Side::Rpc)),
];

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
    let way = table.get_or("way", word(WAYS, &[]), ExampleWay::Both);
    let rest = if table.shape("frame") == Shape::Absent {
        table.require_table("rest", rest_half)
    } else {
        frame::reject_both(table, &["frame"]);
        table.json("frame").map(RestHalf::frame)
    };
    let rpc = table.require_table("rpc", |rpc| {
        let method = rpc.require("method", text);
        let params = rpc.json("params");
        Some((method?.value, params))
    });
    let frames = table.shape("frame") != Shape::Absent;
    let reply = table.table("reply", |both| {
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
    let call = table.require("call", text);
    let headers = headers(table);
    let body = table.json("body");
    Some(RestHalf {
        call: call?.value,
        headers: headers?,
        body,
    })
}

fn headers(table: &mut Table<'_>) -> Option<Vec<(String, String)>> {
    let trees = table.trees("headers")?;
    let mut headers = Vec::with_capacity(trees.len());
    for (name, tree) in trees {
        match tree {
            SourceTree::Text(value) => headers.push((name, value)),
            SourceTree::Literal(_) | SourceTree::Table(_) | SourceTree::List(_) => {
                let message = format!("the header `{name}` of an example is not a string");
                table.report("headers", ValueError::new(message));
                return None;
            }
        }
    }
    Some(headers)
}

/// Decodes the reply to a frame: another frame, or silence.
fn frame_reply(table: &mut Table<'_>) -> Option<ExampleReply> {
    frame::reject_both(table, &["rest"]);
    let frame = table.json("frame");
    let rpc = table.require_table("rpc", rpc_reply);
    Some(ExampleReply {
        status: if frame.is_some() { 200 } else { 204 },
        headers: Vec::new(),
        body: frame,
        text: None,
        rpc: rpc?,
    })
}

fn reply(table: &mut Table<'_>) -> Option<ExampleReply> {
    let rest = table.require_table("rest", |rest| {
        let status = rest.require("status", whole(200..=599));
        let headers = headers(rest);
        let body = rest.json("body");
        let text = rest.get("text", string);
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
    let rpc = table.require_table("rpc", rpc_reply);
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
    let result = table.json("result");
    let error = table.json("error");
    // Decodes the error object again, for its members (JSON-RPC 2.0 §5.1).
    table.table("error", |error| {
        error.require("code", whole(i64::MIN..=i64::MAX));
        let message = error.require_json("message");
        if message.is_some_and(|message| message.kind() != JsonKind::String) {
            error.report(
                "message",
                ValueError::new("the message of an error must be a string"),
            );
        }
        error.tree("data");
        Some(())
    });
    if let Some(problem) = not_exactly_one(table) {
        table.add(problem);
        return None;
    }
    result.map(Ok).or(error.map(Err))
}
