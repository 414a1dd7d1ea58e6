//! The old language: one path an operation, and a failed tool is a success whose `isError` is true.
//!
//! Used by `sample` and `rpc`.

use bytes::Bytes;
use http::{Request, StatusCode};

use crate::body::{self, Refusal};
use crate::database::Database;
use crate::json::Spacing;
use crate::reply::{self, Content, Reply};
use crate::tools;
use crate::value::{Dict, Value};

/// `GET /health`.
pub(super) fn health() -> Reply {
    ok(&Value::dict([
        ("status", "healthy".into()),
        ("service", "mcp-sqlite-server".into()),
        ("version", "2.1.0".into()),
        ("transport", "MCP Streamable HTTP".into()),
        ("protocol_version", "2024-11-05".into()),
    ]))
}

/// `POST /mcp/v1/tools/list`; a body is not looked at.
pub(super) fn list_tools() -> Reply {
    ok(&tools::list())
}

/// `POST /mcp/v1/tools/call`.
pub(super) fn call_tool(database: &mut Database, request: &Request<Bytes>) -> Reply {
    let (name, arguments) = match read(request) {
        Ok(call) => call,
        Err(refusal) => return refusal.into_reply(),
    };
    let result = tools::call(database, &name.into(), &Value::Dict(arguments));
    let is_error = result.is_err();
    let text = result.unwrap_or_else(|raised| raised.text().to_owned());
    ok(&Value::dict([
        ("content", content(text)),
        ("isError", is_error.into()),
    ]))
}

fn read(request: &Request<Bytes>) -> Result<(String, Dict), Refusal> {
    let members = body::read(request)?;
    let name = body::text(&members, "name");
    match (name, body::object(&members, "arguments")) {
        (Ok(name), Ok(arguments)) => Ok((name, arguments)),
        (name, arguments) => {
            let problems = name.err().into_iter().chain(arguments.err());
            Err(Refusal::Problems(problems.collect()))
        }
    }
}

/// The `content` of a tool result, in both languages.
pub(super) fn content(text: String) -> Value {
    Value::List(vec![Value::dict([
        ("type", "text".into()),
        ("text", text.into()),
    ])])
}

/// `GET /mcp/v1/sse`: one event, and the stream ends.
pub(super) fn old_events() -> Reply {
    one_event(r#"{"type": "notification", "message": "Connected to MCP server"}"#)
}

/// `GET /sse`, to which the stream has moved: one event, and the stream ends.
pub(super) fn new_events() -> Reply {
    one_event(
        r#"{"type": "notification", "message": "Legacy SSE endpoint. Use GET /mcp instead."}"#,
    )
}

fn one_event(data: &str) -> Reply {
    let event = format!("event: message\r\ndata: {data}\r\n\r\n");
    reply::event_stream(Content::Ended(event.into()))
}

fn ok(body: &Value) -> Reply {
    reply::json(StatusCode::OK, body, Spacing::Compact)
}
