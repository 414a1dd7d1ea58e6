//! Local replies: responses by the proxy itself. Used by `decode` and `decode::stream`.

use http::Method;

use super::outcome::not_exactly_one;
use crate::config::key::{
    Key, List, NamedValues, Rule, SubTable, Tree, key, named_values, one_or_many, section, table,
    tree, tree_table,
};
use crate::config::kind::{Kind, SOME_TEXT, STRING, TEXT, Words, other, whole};
use crate::config::problem::Spanned;
use crate::config::raw::{LocalWord, RawAnswer, RawLocal, RawLocalCall, RawReply, RawServerInfo};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{RawValue, ValueError, cut, path, string, text, word};
use dualgauge_model::jsonrpc::ErrorObject;
use dualgauge_model::rollout::Glob;
use dualgauge_patterns::json::JsonKind;

const WORDS: Words<LocalWord> = &[
    ("openapi", LocalWord::OpenApi),
    ("openrpc", LocalWord::OpenRpc),
    ("docs", LocalWord::Docs),
    ("none", LocalWord::Nothing),
    ("initialize", LocalWord::Initialize),
    ("discover", LocalWord::Discover),
    ("tools", LocalWord::Tools),
];

section! {
    /// `answer.error` of a local reply.
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
    /// `answer` of a local reply: to a REST call with a status, to RPC calls without, to a frame as a frame.
    ANSWER {
        /// Frame with the answer
        ANSWER_FRAME: Tree = tree("frame");
        /// Result of RPC calls
        RESULT: Tree = tree("result");
        /// Error of RPC calls
        OF_ERROR: SubTable = table("error", &ERROR);
        /// Status of the HTTP response
        STATUS: Key<u16> = key("status", whole(200, 599));
        /// JSON body of the response
        BODY: Tree = tree("body");
        /// Text of the response
        BODY_TEXT: Key<String> = key("text", STRING);
        /// Headers of the response
        ANSWER_HEADERS: NamedValues<String> = named_values("headers", STRING);
    }
    rules [
        Rule::ExactlyOne(&["frame", "result", "error", "status"]),
        Rule::Needs("body", &["status"]),
        Rule::Needs("text", &["status"]),
        Rule::Needs("headers", &["status"]),
        Rule::Excludes("body", &["text"]),
    ]
}

section! {
    /// `[[local]]`
    pub(super) LOCAL {
        /// Method and path without holes
        REST: Key<(Method, String)> = key(
            "rest",
            other(
                "call; write a method and a path without holes, such as `GET /openapi.json`",
                SOME_TEXT,
                call,
            ),
        );
        /// RPC method, or a glob of methods
        RPC: Key<Glob> = key("rpc", other("string", SOME_TEXT, |found| text(found).map(Glob::new)));
        /// Pattern of a frame of a client
        FRAME: Tree = tree("frame");
        /// Built-in answer
        ANSWER_WORD: Key<LocalWord> = key(
            "answer",
            Kind::Words(WORDS, answer_word),
        ).required();
        /// Answer in full
        OF_ANSWER: SubTable = table("answer", &ANSWER);
        /// Server information: `name`, `version`, `title` and other members
        SERVER: Tree = tree_table("server");
        /// Announced capabilities; those that routes and local answers offer by default
        CAPABILITIES: Tree = tree_table("capabilities");
        /// Instructions for the model
        INSTRUCTIONS: Key<String> = key("instructions", TEXT);
        /// Supported MCP revisions, oldest first
        VERSIONS: List<String> = one_or_many("versions", TEXT);
        /// Tools of one page; 500 by default
        PAGE: Key<usize> = key("page", whole(1, 10_000));
        /// Title of an API document
        DOCUMENT_TITLE: Key<String> = key("title", TEXT);
    }
    rules [
        Rule::ExactlyOne(&["rest", "rpc", "frame"]),
    ]
}

pub(super) fn local(table: &mut Table<'_>) -> Option<RawLocal> {
    let rest = table.get(&REST);
    let rpc = table.get(&RPC);
    let frame = table.tree(&FRAME);
    let present = ["rest", "rpc", "frame"].map(|key| table.shape(key) != Shape::Absent);
    let here = table.here();
    match present {
        [true, false, false] | [false, true, false] | [false, false, true] => {}
        [false, false, false] => table.add(here.problem("`rest`, `rpc` or `frame` is missing")),
        [true, true, false] => {
            table.add(here.problem("`rest` and `rpc` exclude each other; write two `[[local]]`"));
        }
        [_, _, true] => {
            let message = "`frame` excludes `rest` and `rpc`; write a `[[local]]` for each";
            table.add(here.problem(message));
        }
    }
    let answer = answer(table);
    let server_info = server_info(table)?;
    let page = table.get(&PAGE);
    let title = table.get(&DOCUMENT_TITLE);
    let frame = frame.map(|frame| table.at("frame").map(|()| frame));
    let call = match (rest, rpc, frame) {
        (Some(rest), None, None) => RawLocalCall::Rest(rest),
        (None, Some(rpc), None) => RawLocalCall::Rpc(rpc),
        (None, None, Some(frame)) => RawLocalCall::Frame(frame),
        (None, None, None) | (Some(_), Some(_), _) | (_, _, Some(_)) => return None,
    };
    Some(RawLocal {
        call,
        answer: answer?,
        server_info,
        page,
        title,
    })
}

/// Decodes the server information of the proxy as an MCP server.
fn server_info(table: &mut Table<'_>) -> Option<RawServerInfo> {
    let [server, capabilities] = [&SERVER, &CAPABILITIES].map(|key| {
        let (json, name) = (table.json(key)?, key.name);
        match serde_json::from_slice(json.as_bytes()) {
            Ok(object) => Some(table.at(name).map(|()| object)),
            Err(_) => {
                table.report(name, ValueError::new("it is not a table"));
                None
            }
        }
    });
    let instructions = table.get(&INSTRUCTIONS);
    let versions = table.list(&VERSIONS)?;
    Some(RawServerInfo {
        server,
        capabilities,
        instructions,
        versions,
    })
}

/// Decodes a method and a literal path: `GET /openapi.json`.
fn call(found: RawValue<'_>) -> Result<(Method, String), ValueError> {
    let example = "without holes, such as `GET /openapi.json`";
    let (method, path) = line(found, example)?;
    if path.contains(['{', '}']) {
        return Err(no_call(&string(found)?, example));
    }
    Ok((method, path))
}

fn no_call(line: &str, example: &str) -> ValueError {
    ValueError::new(format!(
        "`{}` is not a call; write a method and a path {example}",
        cut(line)
    ))
}

/// Decodes a method and a path.
pub(super) fn line(found: RawValue<'_>, example: &str) -> Result<(Method, String), ValueError> {
    let line = string(found)?;
    let wrong = || no_call(&line, example);
    let (method, target) = line.split_once(' ').ok_or_else(wrong)?;
    let parsed = Method::from_bytes(method.as_bytes()).map_err(|_| wrong())?;
    let named = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    let value = figment::value::Value::from(target);
    let target = path(RawValue {
        value: &value,
        ..found
    });
    let target = target.map_err(|_| wrong())?;
    if !named || parsed == Method::CONNECT {
        return Err(wrong());
    }
    Ok((parsed, target))
}

fn answer(table: &mut Table<'_>) -> Option<Spanned<RawAnswer>> {
    let here = table.at("answer");
    let answer = match table.shape("answer") {
        Shape::Absent | Shape::Value => {
            let word = table.get(&ANSWER_WORD);
            word.map(|word| RawAnswer::Word(word.value))
        }
        Shape::Table => table.table(&OF_ANSWER, written),
    };
    answer.map(|answer| here.map(|()| answer))
}

fn answer_word(words: Words<LocalWord>, found: RawValue<'_>) -> Result<LocalWord, ValueError> {
    word(words)(found).map_err(|wrong| ValueError {
        message: format!(
            "{}, or a table with `result`, `error` or `status`",
            wrong.message
        ),
        hint: wrong.hint,
    })
}

/// An answer in full: to a REST call with a status, to RPC calls without, to a frame as a frame.
fn written(table: &mut Table<'_>) -> Option<RawAnswer> {
    if table.shape("frame") != Shape::Absent {
        return table.tree(&ANSWER_FRAME).map(RawAnswer::Frame);
    }
    let rpc = ["result", "error"].map(|name| table.shape(name) != Shape::Absent);
    let rest = ["status", "body", "text", "headers"].map(|name| table.shape(name) != Shape::Absent);
    match (rpc.contains(&true), rest.contains(&true)) {
        (false, false) => {
            let here = table.here();
            table.add(here.problem("`result`, `error` or `status` is missing"));
            None
        }
        (true, true) => {
            // Read so that its keys are not reported as unknown as well.
            rpc_answer(table);
            reply(table);
            let here = table.here();
            table.add(here.problem(
                "`result` and `error` answer RPC calls, `status` answers a REST call; write one",
            ));
            None
        }
        (true, false) => rpc_answer(table),
        (false, true) => reply(table),
    }
}

fn rpc_answer(table: &mut Table<'_>) -> Option<RawAnswer> {
    let result = table.json(&RESULT);
    let error = table.table(&OF_ERROR, |error| {
        let code = error.get(&CODE);
        let message = error.json(&MESSAGE);
        let data = error.json(&DATA);
        let message = message?;
        if message.kind() != JsonKind::String {
            error.report(
                MESSAGE.name,
                ValueError::new("the message of an error must be a string"),
            );
            return None;
        }
        Some(ErrorObject {
            code: code?.value,
            message,
            data,
        })
    });
    if let Some(problem) = not_exactly_one(table) {
        table.add(problem);
        return None;
    }
    result
        .map(RawAnswer::Result)
        .or(error.map(RawAnswer::Error))
}

fn reply(table: &mut Table<'_>) -> Option<RawAnswer> {
    let status = table.require(&STATUS);
    let body = table.json(&BODY);
    let text = table.get(&BODY_TEXT);
    let headers = table.named_values(&ANSWER_HEADERS);
    if table.shape("headers") != Shape::Absent && headers.is_none() {
        return None;
    }
    if table.shape("body") != Shape::Absent && text.is_some() {
        let here = table.here();
        table.add(here.problem("`body` is JSON, `text` is not; write one of them"));
        return None;
    }
    Some(RawAnswer::Reply(RawReply {
        status: status?,
        body,
        text: text.map(|text| text.value),
        headers: headers.unwrap_or_default(),
    }))
}
