//! The Flask application of `config/agent.toml`: REST endpoints, and JSON-RPC at `/api` and at `/mcp`, each with
//! methods of its own. Werkzeug closes every connection.

use serde_json::{Value, json};

use super::servers::{asked, spaced};
use crate::scene::answer;
use crate::support::{Message, Upstream};

/// As `jsonify` writes them: sorted, and compact.
pub(super) const TOOLS: &str = r#"[{"description":"Generates code","module":"tools.code","name":"code_generation","parameters":{"prompt":"Description of the code to generate"}},{"description":"Searches","module":"tools.search","name":"web_search","parameters":{"query":"What to search"}},{"description":"Writes","module":"tools.text","name":"text_generation","parameters":{"prompt":"What to write"}}]"#;

pub(super) const CHAT: &str = r#"{"response":"Hello **x**","status_updates":[{"timestamp":1795223925.2065947,"status":"\ud83d\udcad Thinking... analyzing your request"}],"metadata":{"tool_used":"text_generation","confidence":60,"tool_time":0.0,"total_time":0.0}}"#;

const SERVER: &str = "Werkzeug/3.1.5 Python/3.12.3";

/// The application.
pub(super) fn start() -> Upstream {
    Upstream::serving(serve)
}

fn serve(request: &Message) -> Vec<u8> {
    match asked(request) {
        ("GET", "/tools") => rest("200 OK", &format!(r#"{{"tools":{TOOLS}}}"#)),
        ("POST", "/tools/reload") => rest("200 OK", r#"{"status":"reloaded","tool_count":3}"#),
        ("GET", "/health") => rest(
            "200 OK",
            r#"{"agent":"intelligent","mcp":"ready","status":"ok","tools":3}"#,
        ),
        ("POST", path @ ("/api" | "/mcp")) => rpc(request, path),
        (_, "/api" | "/mcp" | "/tools/reload") => html("405 METHOD NOT ALLOWED", "OPTIONS, POST"),
        (_, "/tools" | "/health") => html("405 METHOD NOT ALLOWED", "GET, HEAD, OPTIONS"),
        _ => html("404 NOT FOUND", ""),
    }
}

/// An application whose registry of tools is broken.
pub(super) fn broken() -> Upstream {
    Upstream::serving(|request| match asked(request).0 {
        "GET" => rest(
            "500 INTERNAL SERVER ERROR",
            r#"{"error":"'int' object has no attribute 'get'"}"#,
        ),
        _ => html("404 NOT FOUND", ""),
    })
}

fn rest(status: &str, body: &str) -> Vec<u8> {
    reply(status, "application/json", &format!("{body}\n"))
}

fn html(status: &str, allow: &str) -> Vec<u8> {
    let title = status.split_once(' ').unwrap().1;
    let body = format!(
        "<!doctype html>\n<html lang=en>\n<title>{status}</title>\n<h1>{title}</h1>\n<p>The requested URL was not found on the server.</p>\n"
    );
    let mut headers = head("text/html; charset=utf-8");
    if !allow.is_empty() {
        headers.push(("Allow", allow));
    }
    answer(status, &headers, body)
}

fn reply(status: &str, kind: &'static str, body: &str) -> Vec<u8> {
    answer(status, &head(kind), body)
}

fn head(kind: &str) -> Vec<(&str, &str)> {
    vec![
        ("Server", SERVER),
        ("Content-Type", kind),
        ("Connection", "close"),
    ]
}

fn rpc(request: &Message, path: &str) -> Vec<u8> {
    // A form is read as a form, and nothing of it is left.
    let is_form = request.head.one("content-type") == Some("application/x-www-form-urlencoded");
    let body = if is_form { &[] } else { &request.body[..] };
    if std::str::from_utf8(body).is_err() {
        return rest(
            "500 INTERNAL SERVER ERROR",
            r#"{"error":"'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"}"#,
        );
    }
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        let text = "Parse error: Expecting value: line 1 column 1 (char 0)";
        return said(Some(error(-32700, text, &Value::Null)));
    };
    match &message {
        Value::Object(_) => said(single(&message, path)),
        Value::Array(batch) if batch.iter().all(Value::is_object) => {
            let answers: Vec<String> = batch
                .iter()
                .filter_map(|message| single(message, path))
                .collect();
            said((!answers.is_empty()).then(|| format!("[{}]", answers.join(","))))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            rest(
                "500 INTERNAL SERVER ERROR",
                r#"{"error":"'int' object has no attribute 'get'"}"#,
            )
        }
    }
}

/// 204 for nothing to say, with the type that Flask gives to whatever has none.
fn said(answer: Option<String>) -> Vec<u8> {
    match answer {
        Some(compact) => reply("200 OK", "application/json", &spaced(&compact)),
        None => reply("204 NO CONTENT", "text/html; charset=utf-8", ""),
    }
}

fn error(code: i64, text: &str, id: &Value) -> String {
    let text = Value::from(text);
    format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":{text}}},"id":{id}}}"#)
}

fn single(message: &Value, path: &str) -> Option<String> {
    let id = message.get("id").unwrap_or(&Value::Null);
    if let Some(fault) = fault(message) {
        return Some(error(-32600, &format!("Invalid Request: {fault}"), id));
    }
    let method = message["method"].as_str().unwrap_or_default();
    let no_params = json!({});
    let params = message.get("params").unwrap_or(&no_params);
    let done = if path == "/api" {
        agent(method, params)
    } else {
        tools(method, params)
    };
    match done {
        // A notification: silence, if it went well.
        Ok(_) if id.is_null() => None,
        Ok(result) => Some(format!(
            r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#
        )),
        Err((code, text)) => Some(error(code, &text, id)),
    }
}

fn fault(message: &Value) -> Option<&'static str> {
    match (
        message.get("jsonrpc"),
        message.get("method"),
        message.get("params"),
    ) {
        (None, _, _) => Some("Missing 'jsonrpc' field"),
        (Some(version), _, _) if version != "2.0" => {
            Some("Invalid 'jsonrpc' version, must be '2.0'")
        }
        (_, None, _) => Some("Missing 'method' field"),
        (_, Some(method), _) if !method.is_string() => Some("'method' must be a string"),
        (_, _, Some(params)) if !params.is_object() && !params.is_array() => {
            Some("'params' must be an object or array")
        }
        _ => None,
    }
}

type Done = Result<String, (i64, String)>;

fn unknown(method: &str) -> Done {
    Err((-32601, format!("Method not found: {method}")))
}

fn agent(method: &str, params: &Value) -> Done {
    if params.is_array() {
        let text = "Invalid params: list indices must be integers or slices, not str";
        return Err((-32602, text.to_owned()));
    }
    match method {
        "agent.list_capabilities" | "agent.refresh_capabilities" => {
            Ok(format!(r#"{{"capabilities":{TOOLS}}}"#))
        }
        "agent.chat" if params["message"].is_null() => {
            Err((-32603, "Internal error: 'message'".to_owned()))
        }
        "agent.chat" if params["message"] == "fail" => {
            Err((-32603, "Internal error: Grok API error: 429".to_owned()))
        }
        "agent.chat" => Ok(CHAT.to_owned()),
        // What the tool answers lies in the result, its error as well.
        "agent.execute_tool" => {
            let tool = params["tool_name"].as_str().unwrap_or_default();
            Ok(match tools(tool, &params["tool_params"]) {
                Ok(result) => format!(r#"{{"result":{result}}}"#),
                Err((code, text)) => {
                    let text = Value::from(text);
                    format!(r#"{{"error":{{"code":{code},"message":{text}}}}}"#)
                }
            })
        }
        method => unknown(method),
    }
}

fn tools(method: &str, params: &Value) -> Done {
    let needed = match method {
        "mcp.list_tools" => return Ok(format!(r#"{{"tools":{TOOLS}}}"#)),
        "mcp.reload_tools" => return Ok(r#"{"status":"reloaded","tool_count":3}"#.to_owned()),
        "text_generation" | "code_generation" => "prompt",
        "web_search" => "query",
        method => return unknown(method),
    };
    match params[needed].as_str() {
        None => Err((
            -32603,
            format!("Internal error: '{needed}' parameter is required"),
        )),
        Some("fail") => Err((-32603, "Internal error: Grok API error: 429".to_owned())),
        // JSON within the text, as later versions answer.
        Some("json") => Ok(r#""{\"html\": \"<p>1.10</p>\"}""#.to_owned()),
        Some(_) => Ok(r#""Hello **x**""#.to_owned()),
    }
}
