//! The memory server of `config/kuzu.toml`. It speaks JSON-RPC on stdio; the fake says the same messages over HTTP,
//! where silence is an answer without content. The REST face is the one that its table describes.

use serde_json::{Value, json};

use super::servers::asked;
use crate::scene::{answer, json as rpc_answer, json_with};
use crate::support::Upstream;

const STATS: &str = "Total Memories: 1\nMemory Types: {'episodic': 1}\nLocal LLM: not detected";

fn enhanced(prompt: &Value) -> String {
    let prompt = prompt.as_str().unwrap_or_default();
    format!("## Relevant Context:\n- We use PostgreSQL\n\n{prompt}")
}

pub(super) const MEMORY: &str = "0b564fee-8e2c-4a0e-9d53-1f0f6f2f4d11";

/// What each tool takes; what is required comes first.
const TOOLS: [(&str, &str, &[&str]); 5] = [
    ("kuzu_enhance", "prompt", &["prompt", "format", "limit"]),
    ("kuzu_learn", "content", &["content", "source", "quiet"]),
    ("kuzu_recall", "query", &["query", "limit", "format"]),
    (
        "kuzu_remember",
        "content",
        &["content", "source", "session_id"],
    ),
    ("kuzu_stats", "", &["detailed", "format"]),
];

/// The JSON-RPC server.
pub(super) fn server() -> Upstream {
    Upstream::serving(
        |request| match serde_json::from_slice::<Value>(&request.body) {
            Ok(message) => match message.get("id") {
                None | Some(Value::Null) => answer("202 Accepted", &[], ""),
                Some(id) => {
                    let said = perform(&message);
                    rpc_answer(format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#))
                }
            },
            Err(fault) => rpc_answer(format!(
                r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"Parse error: {fault}"}}}}"#
            )),
        },
    )
}

fn error(code: i64, message: &str) -> String {
    json!({"code": code, "message": message}).to_string()
}

/// The result or the error of a call, as a member of its answer.
pub(super) fn perform(message: &Value) -> String {
    let params = &message["params"];
    match message["method"].as_str() {
        Some("ping") if params["detailed"] == true => {
            r#""result":{"pong":true,"health":{"status":"healthy","checks":3},"duration_ms":1536.70}"#.to_owned()
        }
        Some("ping") => r#""result":{"pong":true}"#.to_owned(),
        Some("tools/call") => match call(params) {
            Ok(text) => {
                let text = Value::String(text);
                format!(r#""result":{{"content":[{{"type":"text","text":{text}}}]}}"#)
            }
            Err(error) => format!(r#""error":{error}"#),
        },
        Some(method) => {
            let error = error(-32601, &format!("Method not found: {method}"));
            format!(r#""error":{error}"#)
        }
        None => format!(r#""error":{}"#, error(-32600, "Invalid Request")),
    }
}

/// A failed tool is a text like any other.
pub(super) fn call(params: &Value) -> Result<String, String> {
    let Some(name) = params["name"].as_str() else {
        return Err(error(-32602, "Missing 'name' in tool call parameters"));
    };
    let known = TOOLS.iter().find(|(tool, _, _)| *tool == name);
    let Some((_, required, known)) = known else {
        return Err(error(-32601, &format!("Tool not found: {name}")));
    };
    let no_arguments = serde_json::Map::new();
    let arguments = params["arguments"].as_object().unwrap_or(&no_arguments);
    let wrong = |what: &str| {
        let text = format!("Invalid parameters for tool '{name}': KuzuTools.{name}() {what}");
        Err(error(-32602, &text))
    };
    if let Some(other) = arguments.keys().find(|key| !known.contains(&key.as_str())) {
        return wrong(&format!("got an unexpected keyword argument '{other}'"));
    }
    if !required.is_empty() && !arguments.contains_key(*required) {
        return wrong(&format!(
            "missing 1 required positional argument: '{required}'"
        ));
    }
    // The early version runs a command for each tool.
    if arguments.get("format") == Some(&json!("cli")) {
        let text = format!("Error executing tool '{name}': database is locked");
        return Err(error(-32001, &text));
    }
    Ok(run(name, arguments))
}

fn run(name: &str, arguments: &serde_json::Map<String, Value>) -> String {
    let is_empty = |name: &str| arguments.get(name) == Some(&json!(""));
    match name {
        "kuzu_remember" | "kuzu_learn" if is_empty("content") => {
            "Error: No content provided".to_owned()
        }
        "kuzu_remember" => format!("Stored memory with ID: {MEMORY}"),
        "kuzu_learn" => "Learning stored asynchronously (task ff193e47)".to_owned(),
        "kuzu_recall" => "- We use PostgreSQL".to_owned(),
        "kuzu_enhance" => enhanced(&arguments["prompt"]),
        _ => STATS.to_owned(),
    }
}

/// The REST face, as a server of its own.
pub(super) fn face() -> Upstream {
    Upstream::serving(|request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        match asked(request) {
            ("GET", "/health") => json_with("200 OK", r#"{"status":"ok"}"#),
            ("GET", "/health?detailed=true") => json_with(
                "200 OK",
                r#"{"status":"ok","health":{"status":"healthy","checks":3},"duration_ms":1536.70}"#,
            ),
            ("POST", "/api/enhance") => said("200 OK", "enhanced", &enhanced(&body["prompt"])),
            ("GET", target) if target.starts_with("/api/recall?query=broken") => {
                said("502 Bad Gateway", "error", "corrupt database")
            }
            ("GET", target) if target.starts_with("/api/recall?query=locked") => json_with(
                "502 Bad Gateway",
                r#"{"error":"database is locked","code":-32001}"#,
            ),
            ("GET", target) if target.starts_with("/api/recall?query=") => {
                said("200 OK", "memories", "- We use PostgreSQL")
            }
            ("GET", target) if target.starts_with("/api/stats") => said("200 OK", "stats", STATS),
            ("POST", "/api/memories" | "/api/learn") if body["content"] == "" => {
                said("502 Bad Gateway", "error", "No content provided")
            }
            ("POST", "/api/memories") => answer(
                "201 Created",
                &[
                    ("Content-Type", "application/json"),
                    ("Location", &format!("/api/memories/{MEMORY}")),
                ],
                format!(r#"{{"id":"{MEMORY}"}}"#),
            ),
            ("POST", "/api/learn") => said("202 Accepted", "task", "ff193e47"),
            (_, target) => said("404 Not Found", "error", &format!("no such path: {target}")),
        }
    })
}

fn said(status: &str, member: &str, text: &str) -> Vec<u8> {
    json_with(status, json!({ member: text }).to_string())
}
