//! The new language: JSON-RPC 2.0, nearly. What it does otherwise than the specification is kept, because
//! that is what a proxy in front of it has to cope with.
//!
//! Used by `sample` and `mcp`.

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::body::{self, Problem, Refusal};
use crate::database::Database;
use crate::exceptions::Raised;
use crate::json::Spacing;
use crate::reply::{self, Reply};
use crate::rest;
use crate::tools;
use crate::value::{Dict, Value};

/// The version of MCP that every client gets, whatever it asks for.
pub(super) const PROTOCOL_VERSION: &str = "2024-11-05";

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// A request that passed validation.
#[derive(Debug)]
pub(super) struct Call {
    /// Missing and `null` are the same.
    pub(super) id: Option<Value>,
    pub(super) method: String,
    params: Dict,
}

/// `POST /`, `/rpc`, `/jsonrpc`: answers a call without `id` too.
pub(super) fn post(database: &mut Database, request: &Request<Bytes>) -> Reply {
    match read(request) {
        Ok(call) => reply::json(StatusCode::OK, &answer(database, &call), Spacing::Compact),
        Err(refusal) => refusal.into_reply(),
    }
}

/// Reads one call. What is no call gets the 422 of the web framework, and no JSON-RPC answer.
pub(super) fn read(request: &Request<Bytes>) -> Result<Call, Refusal> {
    let members = body::read(request)?;
    let mut problems = Vec::new();
    problems.extend(check_version(members.get("jsonrpc")));
    let method = body::text(&members, "method").map_err(|problem| problems.push(problem));
    let params = match members.get("params") {
        None | Some(Value::None) => Ok(Dict::default()),
        Some(_) => body::object(&members, "params").map_err(|problem| problems.push(problem)),
    };
    let id = match members.get("id") {
        None | Some(Value::None) => Ok(None),
        Some(id) => read_id(id)
            .map(Some)
            .map_err(|found| problems.extend(found)),
    };
    if let (Ok(method), Ok(params), Ok(id), []) = (method, params, id, problems.as_slice()) {
        return Ok(Call { id, method, params });
    }
    Err(Refusal::Problems(problems))
}

fn check_version(version: Option<&Value>) -> Option<Problem> {
    let version = version.filter(|version| **version != Value::from("2.0"))?;
    Some(Problem::with_context(
        "literal_error",
        body::location(&["jsonrpc"]),
        "Input should be '2.0'",
        version.clone(),
        Value::dict([("expected", "'2.0'".into())]),
    ))
}

/// A text or a whole number. What can be read as a whole number becomes one: `2.0` is 2, `true` is 1.
fn read_id(id: &Value) -> Result<Value, [Problem; 2]> {
    let (kind, message) = match id {
        Value::Text(_) | Value::Int(_) | Value::Big(_) => return Ok(id.clone()),
        Value::Bool(truth) => return Ok(Value::Int(i64::from(*truth))),
        Value::Float(number) => match whole(*number) {
            Ok(number) => return Ok(Value::Int(number)),
            Err(refusal) => refusal,
        },
        Value::None | Value::Bytes(_) | Value::List(_) | Value::Dict(_) => {
            ("int_type", "Input should be a valid integer")
        }
    };
    let not_text = "Input should be a valid string";
    Err([
        Problem::new("string_type", &["id", "str"], not_text, id),
        Problem::new(kind, &["id", "int"], message, id),
    ])
}

fn whole(number: f64) -> Result<i64, (&'static str, &'static str)> {
    if number.fract() != 0.0 {
        return Err((
            "int_from_float",
            "Input should be a valid integer, got a number with a fractional part",
        ));
    }
    // Every whole float prints as its digits, and those beyond `i64` do not parse.
    format!("{number:.0}").parse().map_err(|_| {
        (
            "int_parsing_size",
            "Unable to parse input string as an integer, exceeded maximum size",
        )
    })
}

/// The answer to a call: without `id` if the call has none.
pub(super) fn answer(database: &mut Database, call: &Call) -> Value {
    let outcome = match perform(database, call) {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let version = ("jsonrpc", "2.0".into());
    match &call.id {
        Some(id) => Value::dict([version, ("id", id.clone()), outcome]),
        None => Value::dict([version, outcome]),
    }
}

fn perform(database: &mut Database, call: &Call) -> Result<Value, Value> {
    match call.method.as_str() {
        "initialize" => Ok(initialize()),
        "ping" => Ok(Value::dict([])),
        "tools/list" => Ok(tools::list()),
        "tools/call" => call_tool(database, &call.params).map_err(|raised| error(&raised)),
        unknown => Err(Value::dict([
            ("code", METHOD_NOT_FOUND.into()),
            ("message", format!("Method not found: {unknown}").into()),
        ])),
    }
}

fn initialize() -> Value {
    Value::dict([
        ("protocolVersion", PROTOCOL_VERSION.into()),
        (
            "capabilities",
            Value::dict([
                ("tools", Value::dict([("listChanged", false.into())])),
                ("logging", Value::dict([])),
            ]),
        ),
        (
            "serverInfo",
            Value::dict([
                ("name", "mcp-sqlite-server".into()),
                ("version", "1.0.0".into()),
            ]),
        ),
    ])
}

fn call_tool(database: &mut Database, params: &Dict) -> Result<Value, Raised> {
    let name = params.get("name").filter(|name| name.is_truthy());
    let Some(name) = name else {
        return Err(Raised::ValueError("Tool name is required".to_owned()));
    };
    let none = Value::dict([]);
    let arguments = params.get("arguments").unwrap_or(&none);
    let text = tools::call(database, name, arguments)?;
    Ok(Value::dict([("content", rest::content(text))]))
}

/// A `ValueError` tells itself in `message`; any other exception hides in `data.details`.
fn error(raised: &Raised) -> Value {
    match raised {
        Raised::ValueError(text) => Value::dict([
            ("code", INVALID_PARAMS.into()),
            ("message", text.as_str().into()),
        ]),
        Raised::Other(text) => Value::dict([
            ("code", INTERNAL_ERROR.into()),
            ("message", "Internal error".into()),
            ("data", Value::dict([("details", text.as_str().into())])),
        ]),
    }
}
