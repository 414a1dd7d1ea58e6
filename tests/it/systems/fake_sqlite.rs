//! The database server of `config/sqlite.toml`, before (REST) and after (JSON-RPC) its migration: FastAPI and
//! uvicorn, with their bodies of 422 and the ids that they change.

use serde_json::{Value, json};

use super::servers::{asked, python_json, spaced};
use crate::scene::{Called, answer};
use crate::support::{Message, Upstream, chunked};

/// What `query_records` prints: Python's text, with both of its quotes.
pub(super) const USERS: &str =
    "[{'id': 1, 'name': \"O'Brien\", 'age': 30}, {'id': 2, 'name': None, 'age': None}]";

pub(super) const TOOLS: &str = r#"{"tools":[{"name":"list_tables","description":"List all tables in the database","inputSchema":{"type":"object","properties":{},"required":[]}},{"name":"query_records","description":"Query records","inputSchema":{"type":"object","properties":{"table_name":{"type":"string"},"limit":{"type":"integer"}},"required":["table_name"]}}]}"#;

const READ_ONLY: &str = "Only SELECT queries allowed in read-only mode. To execute write operations, set read_only=False in the arguments.";

const MISSING_ARGUMENT: &str =
    "CRUDOperations.query_records() missing 1 required positional argument: 'table_name'";

/// The only event of the old stream.
pub(super) const EVENT: &str = "event: message\r\ndata: {\"type\": \"notification\", \"message\": \"Connected to MCP server\"}\r\n\r\n";

/// The only event of the stream that took its place.
pub(super) const MOVED_EVENT: &str = "event: message\r\ndata: {\"type\": \"notification\", \"message\": \"Legacy SSE endpoint. Use GET /mcp instead.\"}\r\n\r\n";

/// What a session is told: the opening, whose id is fresh each time, and what comes behind it.
pub(super) const OPENING: &str = "event: message\r\ndata: {\"type\": \"connection\", \"message\": \"SSE stream established\"}\r\n\r\n";
pub(super) const TOLD: &str = ": keepalive\r\n\r\nid: 2\r\nevent: message\r\ndata: {\"jsonrpc\": \"2.0\", \"method\": \"notifications/message\", \"params\": {}}\r\n\r\n: ping - 2025-10-31 10:00:00.000000+00:00\r\n\r\n";

pub(super) const SESSION: &str = "5f0c7e1e-3f53-4f4e-8b7e-0d6f0a3c9b11";

/// What a tool raised.
enum Raised {
    UnknownTool(String),
    Other(String),
}

impl Raised {
    fn other<T>(text: &str) -> Result<T, Raised> {
        Err(Raised::Other(text.to_owned()))
    }
}

/// Both servers run the same tools.
fn run(name: &Value, arguments: &Value) -> Result<String, Raised> {
    if arguments.is_null() {
        return Raised::other(
            "app.tools.Tools.call() argument after ** must be a mapping, not NoneType",
        );
    }
    let table = arguments["table_name"].as_str();
    match (name.as_str(), table) {
        (Some("list_tables"), _) => Ok("['users']".to_owned()),
        (Some("query_records"), Some("users")) => Ok(USERS.to_owned()),
        (Some("query_records"), Some("empty")) => Ok("[]".to_owned()),
        (Some("query_records"), Some("blobs")) => Ok(r"[{'b': b'\x00\xff', 'f': inf}]".to_owned()),
        (Some("query_records"), Some(name)) if name.contains(' ') => {
            Raised::other(&format!("Invalid table name: {name}"))
        }
        (Some("query_records"), Some(name)) => Raised::other(&format!("no such table: {name}")),
        (Some("query_records"), None) => Raised::other(MISSING_ARGUMENT),
        (Some("execute_raw_query"), _) => Raised::other(READ_ONLY),
        (Some(name), _) => Err(Raised::UnknownTool(format!("Tool not found: {name}"))),
        (None, _) => Err(Raised::UnknownTool(format!("Tool not found: {name}"))),
    }
}

fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    python_json("200 OK", "uvicorn", body)
}

fn detail(status: &str, detail: &Value) -> Vec<u8> {
    python_json(status, "uvicorn", json!({ "detail": detail }).to_string())
}

/// The framework's refusal: its members in this order.
fn unprocessable(problems: &[String]) -> Vec<u8> {
    let body = format!(r#"{{"detail":[{}]}}"#, problems.join(","));
    python_json("422 Unprocessable Entity", "uvicorn", body)
}

/// One problem: `"type"`, `"loc"`, `"msg"` and what was found.
fn faulty(kind: &str, place: &str, message: &str, input: &Value) -> String {
    format!(r#"{{"type":"{kind}","loc":["body"{place}],"msg":"{message}","input":{input}}}"#)
}

fn not_found() -> Vec<u8> {
    detail("404 Not Found", &json!("Not Found"))
}

fn not_allowed(allow: &str) -> Vec<u8> {
    let headers = [
        ("server", "uvicorn"),
        ("allow", allow),
        ("content-type", "application/json"),
    ];
    let body = r#"{"detail":"Method Not Allowed"}"#;
    answer("405 Method Not Allowed", &headers, body)
}

/// The body of a request, or the 422 that it gets.
fn body(request: &Message) -> Result<Value, Vec<u8>> {
    let is_json = request.head.one("content-type") == Some("application/json");
    let read = serde_json::from_slice::<Value>(&request.body);
    match read {
        Err(fault) if is_json => Err(unprocessable(&[format!(
            r#"{{"type":"json_invalid","loc":["body",{}],"msg":"JSON decode error","input":{{}},"ctx":{{"error":"Expecting value"}}}}"#,
            fault.column()
        )])),
        Ok(value) if is_json && value.is_object() => Ok(value),
        Ok(_) | Err(_) => {
            let message = "Input should be a valid dictionary or object to extract fields from";
            let input = String::from_utf8_lossy(&request.body).into_owned().into();
            Err(unprocessable(&[faulty(
                "model_attributes_type",
                "",
                message,
                &input,
            )]))
        }
    }
}

/// The problem of a member that is missing or of another type.
fn problem(body: &Value, member: &str, is_right: fn(&Value) -> bool) -> Option<String> {
    let (kind, message, input) = match body.get(member) {
        Some(value) if is_right(value) => return None,
        Some(value) if member == "name" => ("string_type", "Input should be a valid string", value),
        Some(value) => ("dict_type", "Input should be a valid dictionary", value),
        None => ("missing", "Field required", body),
    };
    Some(faulty(kind, &format!(r#","{member}""#), message, input))
}

/// The server before its migration.
pub(super) fn old() -> Upstream {
    Upstream::serving(|request| match asked(request) {
        ("GET", "/health") => ok(r#"{"status":"healthy","service":"mcp-sqlite-server"}"#),
        ("POST", "/mcp/v1/tools/list") => ok(TOOLS),
        ("POST", "/mcp/v1/tools/call") => old_call(request).unwrap_or_else(|refusal| refusal),
        ("GET", "/mcp/v1/sse") => events("", EVENT),
        (_, "/mcp/v1/tools/list" | "/mcp/v1/tools/call") => not_allowed("POST"),
        (_, "/health" | "/mcp/v1/sse") => not_allowed("GET"),
        (_, "/health/" | "/mcp/v1/tools/list/" | "/mcp/v1/tools/call/") => elsewhere(request),
        _ => not_found(),
    })
}

/// The same path without its last slash, at the host that the request names.
fn elsewhere(request: &Message) -> Vec<u8> {
    let host = request.head.one("host").unwrap();
    let path = asked(request).1.trim_end_matches('/');
    let location = format!("http://{host}{path}");
    let headers = [("server", "uvicorn"), ("location", location.as_str())];
    answer("307 Temporary Redirect", &headers, "")
}

/// A stream that says this and ends.
fn events(headers: &str, said: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nserver: uvicorn\r\n{headers}content-type: text/event-stream; charset=utf-8\r\ncache-control: no-store\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    [head.as_bytes(), &chunked(&[said.as_bytes()])].concat()
}

fn old_call(request: &Message) -> Result<Vec<u8>, Vec<u8>> {
    let body = body(request)?;
    let problems = [
        problem(&body, "name", Value::is_string),
        problem(&body, "arguments", Value::is_object),
    ];
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    if !problems.is_empty() {
        return Err(unprocessable(&problems));
    }
    let (text, is_error) = match run(&body["name"], &body["arguments"]) {
        Ok(text) => (text, false),
        Err(Raised::UnknownTool(text) | Raised::Other(text)) => (text, true),
    };
    let text = Value::String(text);
    Ok(ok(format!(
        r#"{{"content":[{{"type":"text","text":{text}}}],"isError":{is_error}}}"#
    )))
}

/// The server after its migration.
pub(super) fn new() -> Upstream {
    Upstream::serving(|request| match asked(request) {
        ("GET", "/health") => ok(
            r#"{"status":"healthy","service":"mcp-sqlite-server","version":"2.1.0","transport":"MCP Streamable HTTP","protocol_version":"2024-11-05"}"#,
        ),
        ("POST", path @ ("/" | "/rpc" | "/jsonrpc" | "/mcp")) => {
            rpc(request, path).unwrap_or_else(|refusal| refusal)
        }
        ("GET", "/sse") => events("", MOVED_EVENT),
        ("GET", "/mcp") => told(request),
        ("DELETE", "/mcp") => not_allowed("POST"),
        ("OPTIONS" | "GET", "/" | "/rpc" | "/jsonrpc") => not_allowed("POST"),
        _ => not_found(),
    })
}

fn rpc(request: &Message, path: &str) -> Result<Vec<u8>, Vec<u8>> {
    let body = body(request)?;
    let version = body.get("jsonrpc").unwrap_or(&json!("2.0")).clone();
    if version != "2.0" {
        let place = r#","jsonrpc""#;
        let message = "Input should be '2.0'";
        return Err(unprocessable(&[faulty(
            "literal_error",
            place,
            message,
            &version,
        )]));
    }
    let is_params: fn(&Value) -> bool = |value| value.is_object() || value.is_null();
    if body.get("params").is_some()
        && let Some(problem) = problem(&body, "params", is_params)
    {
        return Err(unprocessable(&[problem]));
    }
    let id = echoed(request, &body)?;
    let method = body["method"].as_str().unwrap_or_default();
    if path == "/mcp" && id.is_empty() {
        let status = "202 Accepted";
        return Ok(answer(status, &session("application/json")[..3], ""));
    }
    let said = perform(method, &body["params"]);
    let whole = format!(r#"{{"jsonrpc":"2.0",{id}{said}}}"#);
    Ok(if path == "/mcp" {
        answer("200 OK", &session("application/json"), spaced(&whole))
    } else {
        ok(whole)
    })
}

fn session(kind: &'static str) -> [(&'static str, &'static str); 4] {
    [
        ("server", "uvicorn"),
        ("mcp-session-id", SESSION),
        ("mcp-protocol-version", "2024-11-05"),
        ("content-type", kind),
    ]
}

/// The stream of a session.
fn told(request: &Message) -> Vec<u8> {
    let refused = |status: &str, error: &str| {
        python_json(status, "uvicorn", format!(r#"{{"error": "{error}"}}"#))
    };
    let opening = match (
        request.head.one("mcp-session-id"),
        request.head.one("last-event-id"),
    ) {
        (None, _) => {
            return refused(
                "400 Bad Request",
                "No session ID provided. Initialize first.",
            );
        }
        (Some(SESSION), None) => format!("id: 1\r\n{OPENING}"),
        // What came behind that id is told again.
        (Some(SESSION), Some(_)) => format!("id: 3\r\n{OPENING}"),
        (Some(_), _) => return refused("404 Not Found", "Invalid session ID"),
    };
    let headers = format!("mcp-session-id: {SESSION}\r\nmcp-protocol-version: 2024-11-05\r\n");
    events(&headers, &format!("{opening}{TOLD}"))
}

/// `"id":…,` as the server gives an id back; nothing for none. `2.0` comes back as 2, `true` as 1.
fn echoed(request: &Message, body: &Value) -> Result<String, Vec<u8>> {
    let id = match body.get("id") {
        None | Some(Value::Null) => return Ok(String::new()),
        Some(Value::Bool(truth)) => i64::from(*truth).to_string(),
        Some(Value::String(_)) => Called::of(request).id().to_owned(),
        Some(Value::Number(number)) => match (number.as_f64(), Called::of(request).id()) {
            (_, text) if !text.contains(['.', 'e', 'E']) => text.to_owned(),
            (Some(float), _) if float.fract() == 0.0 => format!("{float:.0}"),
            _ => return Err(wrong_id("int_from_float", &body["id"])),
        },
        Some(other) => return Err(wrong_id("int_type", other)),
    };
    Ok(format!(r#""id":{id},"#))
}

fn wrong_id(kind: &str, id: &Value) -> Vec<u8> {
    let message = "Input should be a valid integer";
    unprocessable(&[faulty(kind, r#","id","int""#, message, id)])
}

fn perform(method: &str, params: &Value) -> String {
    let error = |error: &str| format!(r#""error":{{{error}}}"#);
    match method {
        "ping" => r#""result":{}"#.to_owned(),
        "tools/list" => format!(r#""result":{TOOLS}"#),
        "tools/call" if params["name"].as_str().is_none_or(str::is_empty) => {
            error(r#""code":-32602,"message":"Tool name is required""#)
        }
        "tools/call" => {
            let empty = json!({});
            let arguments = params.get("arguments").unwrap_or(&empty);
            match run(&params["name"], arguments) {
                Ok(text) => {
                    let text = Value::String(text);
                    format!(r#""result":{{"content":[{{"type":"text","text":{text}}}]}}"#)
                }
                Err(Raised::UnknownTool(text)) => {
                    let text = Value::String(text);
                    error(&format!(r#""code":-32602,"message":{text}"#))
                }
                Err(Raised::Other(text)) => {
                    let text = Value::String(text);
                    error(&format!(
                        r#""code":-32603,"message":"Internal error","data":{{"details":{text}}}"#
                    ))
                }
            }
        }
        unknown => error(&format!(
            r#""code":-32601,"message":"Method not found: {unknown}""#
        )),
    }
}
