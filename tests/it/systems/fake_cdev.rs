//! cdev as it answers: Go's JSON (`<`, `>` and `&` escaped, a line end behind it, maps by the alphabet), CORS headers
//! on everything, plain text for what its router turns away. What fails is in what is asked for: `nope` is not there,
//! `busy` is taken, `slow` takes too long.

use serde_json::{Value, json};

use super::asked::Asked;
use crate::scene::{Called, answer};
use crate::support::Message;

const CORS: [(&str, &str); 3] = [
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Methods", "GET, POST, OPTIONS"),
    ("Access-Control-Allow-Headers", "Content-Type"),
];

/// Which of the two tables of codes the JSON-RPC face follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generation {
    Running,
    Plan,
}

/// What is true of a difference: Go escapes all of it.
const DIFF: &str =
    r#"{"diff":"-a <b>\n+a & c\n","is_new":false,"is_staged":false,"path":"src/a.ts"}"#;
const FILE: &str = r#"{"content":"if a < b && c > d","encoding":"utf-8","path":"src/main.go","size":17,"truncated":false}"#;
const MESSAGES: &str = r#""has_more":true,"limit":20,"messages":[{"id":344,"session_id":"X","type":"assistant","uuid":"u","timestamp":"2025-12-20T14:13:29.603Z","git_branch":"main","message":{"role":"assistant","content":"<done>","model":"m"}}],"offset":0,"query_time_ms":1.20,"session_id":"X","total":344}"#;
const GIT: &str = r#"{"branch":"main","upstream":"origin/main","ahead":2,"behind":0,"staged":[{"path":"src/a.ts","status":"M"}],"unstaged":[],"untracked":[{"path":"n.txt","status":"?"}],"conflicted":[],"repo_name":"p","repo_root":"/x/p"}"#;
const FOUND: &str = r#"{"query":"main","mode":"fuzzy","results":[{"path":"main.go","name":"main.go","directory":"","extension":"go","size_bytes":12,"match_score":0.90}],"total":1,"elapsed_ms":1}"#;
const LISTED: &str = r#"{"path":"src","entries":[{"name":"utils","type":"directory","children_count":5},{"name":"main.go","type":"file","size":1234,"modified":"2025-01-15T10:30:00Z"}],"total_count":2}"#;
const ELEMENT: &str = r#"{"id":"elem_001","type":"assistant_text","timestamp":"2025-12-20T14:13:29Z","content":{"text":"a"}}"#;

/// JSON as Go writes it.
pub(super) fn go(body: &str) -> String {
    let escaped = body.replace('&', r"\u0026").replace('<', r"\u003c");
    escaped.replace('>', r"\u003e")
}

fn said(status: &str, body: impl ToString) -> Vec<u8> {
    let headers = [&[("Content-Type", "application/json")], CORS.as_slice()].concat();
    answer(status, &headers, format!("{}\n", go(&body.to_string())))
}

fn ok(body: impl ToString) -> Vec<u8> {
    said("200 OK", body)
}

fn wrong(status: &str, error: &str) -> Vec<u8> {
    said(status, json!({ "error": error }))
}

fn plain(status: &str, text: &str) -> Vec<u8> {
    let kind = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("X-Content-Type-Options", "nosniff"),
    ];
    let headers = [kind.as_slice(), CORS.as_slice()].concat();
    answer(status, &headers, format!("{text}\n"))
}

/// The HTTP API.
pub(super) fn rest(request: &Message) -> Vec<u8> {
    let asked = Asked::of(request);
    if asked.method == "OPTIONS" {
        return answer("200 OK", &CORS, "");
    }
    let operation = asked.path.strip_prefix("/api/git/");
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/health") => ok(r#"{"status":"ok","time":"2025-12-21T10:00:00Z"}"#),
        ("GET", "/api/status") => ok(
            r#"{"agent_session_id":"01ce425c","claude_state":"idle","connected_clients":1,"git_enabled":true,"is_git_repo":true,"repo_name":"myproject","repo_path":"/Users/dev/myproject","session_id":"","uptime_seconds":120,"version":"1.0.0","watcher_enabled":true}"#,
        ),
        ("POST", "/api/claude/run") => run(&asked),
        ("POST", "/api/claude/stop") => ok(r#"{"status":"stopped"}"#),
        ("POST", "/api/claude/respond") => respond(&asked),
        ("GET" | "DELETE", "/api/claude/sessions") => sessions(&asked),
        ("GET", "/api/claude/sessions/messages" | "/api/claude/sessions/elements") => one(&asked),
        ("GET", "/api/file" | "/api/files/list") => file(&asked),
        ("GET", "/api/git/status") => ok(GIT),
        ("GET", "/api/git/diff") => diff(asked.query("path")),
        ("GET", "/api/git/branches") => ok(
            r#"{"current":"main","upstream":"origin/main","ahead":0,"behind":0,"branches":[{"name":"main","is_current":true,"is_remote":false,"upstream":"origin/main"}]}"#,
        ),
        ("POST", _) if operation.is_some() => git(operation.unwrap(), &asked),
        ("GET", "/api/repository/search") if asked.query("q").is_empty() => {
            wrong("400 Bad Request", "Query parameter 'q' is required")
        }
        ("GET", "/api/repository/search") => ok(FOUND),
        ("GET", "/api/repository/files/list") => ok(r#"{"files":[],"total":0}"#),
        ("GET", "/api/repository/files/tree") => ok(r#"{"tree":{"name":"src"}}"#),
        ("GET", "/api/repository/index/status") => wrong(
            "503 Service Unavailable",
            "Repository indexer not available",
        ),
        ("POST", "/api/repository/index/rebuild") => {
            ok(r#"{"message":"Repository index rebuild started","status":"started"}"#)
        }
        // Older servers have no statistics, others answer them to POST: whatever the router turns away is text.
        ("GET", "/api/repository/stats") => plain("405 Method Not Allowed", "Method not allowed"),
        _ => plain("404 Not Found", "404 page not found"),
    }
}

fn run(asked: &Asked) -> Vec<u8> {
    let Ok(body) = &asked.body else {
        return wrong("400 Bad Request", "Invalid JSON");
    };
    match (asked.text("prompt"), asked.text("mode")) {
        ("", _) => wrong("400 Bad Request", "Prompt is required"),
        ("busy", _) => wrong("409 Conflict", "claude is already running"),
        (_, "continue") if asked.text("session_id").is_empty() => wrong(
            "400 Bad Request",
            "session_id is required when mode is 'continue'",
        ),
        (_, "" | "new" | "continue") => ok(json!({
            "mode": "new", "pid": 62771, "prompt": body["prompt"], "session_id": asked.text("session_id"),
            "status": "started",
        })),
        _ => wrong(
            "400 Bad Request",
            "Invalid mode. Must be 'new' or 'continue'",
        ),
    }
}

fn respond(asked: &Asked) -> Vec<u8> {
    match asked.text("tool_use_id") {
        "" => wrong("400 Bad Request", "tool_use_id is required"),
        "busy" => wrong("409 Conflict", "claude is not waiting for input"),
        id => ok(json!({ "status": "sent", "tool_use_id": id })),
    }
}

fn no_session(id: &str) -> Vec<u8> {
    let error = format!("session not found: {id}");
    said("404 Not Found", json!({ "error": error, "session_id": id }))
}

fn sessions(asked: &Asked) -> Vec<u8> {
    match (asked.method.as_str(), asked.query("session_id")) {
        // As the real one: what is empty is everything.
        ("DELETE", "") => ok(r#"{"deleted":5,"message":"All sessions deleted"}"#),
        ("DELETE", "nope") => no_session("nope"),
        ("DELETE", id) => ok(json!({ "message": "Session deleted", "session_id": id })),
        _ if asked.query("limit") == "1" => {
            ok(r#"{"current":"","limit":1,"offset":0,"sessions":null,"total":0}"#)
        }
        _ => ok(
            r#"{"current":"bd2d","limit":20,"offset":0,"sessions":[{"session_id":"bd2d","summary":"Create","message_count":4,"last_updated":"2025-12-17T21:14:45Z","branch":"main"}],"total":45}"#,
        ),
    }
}

fn one(asked: &Asked) -> Vec<u8> {
    match (asked.path.ends_with("messages"), asked.query("session_id")) {
        (_, "") => wrong("400 Bad Request", "session_id query parameter is required"),
        (_, "nope") => no_session("nope"),
        (_, "slow") => wrong("504 Gateway Timeout", "Request timed out"),
        (true, _) => ok(format!(r#"{{"cache_hit":true,{MESSAGES}"#)),
        (false, _) => ok(format!(
            r#"{{"session_id":"X","elements":[{ELEMENT}],"pagination":{{"total":25,"returned":1,"has_more_before":false,"has_more_after":true}}}}"#
        )),
    }
}

fn file(asked: &Asked) -> Vec<u8> {
    let with_path = |status: &str, error: &str| {
        let path = asked.query("path");
        said(status, json!({ "error": error, "path": path }))
    };
    match (asked.path.ends_with("list"), asked.query("path")) {
        (false, "") => wrong("400 Bad Request", "path query parameter is required"),
        (false, "nope") => with_path("404 Not Found", "failed to read file: cat: nope"),
        (false, "off") => wrong("503 Service Unavailable", "Git tracker not available"),
        (false, _) => ok(FILE),
        (true, "nope") => with_path("404 Not Found", "Directory not found"),
        (true, "../x") => with_path("403 Forbidden", "Path outside repository"),
        (true, "main.go") => with_path("400 Bad Request", "Path is not a directory"),
        (true, _) => ok(LISTED),
    }
}

fn diff(path: &str) -> Vec<u8> {
    match path {
        "" => ok(r#"{"diffs":{"src/a.ts":"diff <a>","src/a.ts (staged)":"diff & b"}}"#),
        "nope" => ok(r#"{"diff":"","is_new":false,"is_staged":false,"path":"nope"}"#),
        "bare" => wrong("404 Not Found", "Not a git repository"),
        _ => ok(DIFF),
    }
}

fn git(operation: &str, asked: &Asked) -> Vec<u8> {
    let refused = |reason: &str| ok(json!({ "error": reason, "success": false }));
    let done = |listed: &str| {
        let paths = &asked.body.as_ref().unwrap()["paths"];
        match paths[0].as_str() {
            None => wrong("400 Bad Request", "paths is required"),
            Some("nope") => said(
                "500 Internal Server Error",
                json!({ "error": "no match", "success": false }),
            ),
            Some(_) => ok(json!({ listed: paths, "success": true })),
        }
    };
    match (operation, asked.text("message"), asked.text("branch")) {
        ("stage", ..) => done("staged"),
        ("unstage", ..) => done("unstaged"),
        ("discard", ..) => done("discarded"),
        ("commit", "", _) => wrong("400 Bad Request", "message is required"),
        ("commit", "nothing", _) => refused("Nothing to commit (no staged changes)"),
        ("commit", "busy", _) => refused("a hook refused"),
        ("commit", message, _) => ok(format!(
            r#"{{"success":true,"sha":"abc1234","message":"Committed: {message}","files_committed":3}}"#
        )),
        ("push", ..) => {
            ok(r#"{"success":true,"message":"Pushed 2 commits to origin/main","commits_pushed":2}"#)
        }
        ("pull", ..) => {
            ok(r#"{"success":false,"error":"conflicts","conflicted_files":["src/a.ts"]}"#)
        }
        ("checkout", _, "nope") => refused("no such branch"),
        ("checkout", _, branch) => ok(format!(
            r#"{{"success":true,"branch":"{branch}","message":"Switched to branch '{branch}'"}}"#
        )),
        _ => plain("404 Not Found", "404 page not found"),
    }
}

/// What the JSON-RPC face says to a call.
enum Reply {
    Result(String),
    Error(i32, String, Option<Value>),
}

fn result(text: impl ToString) -> Reply {
    Reply::Result(text.to_string())
}

fn error(code: i32, message: &str) -> Reply {
    Reply::Error(code, message.to_owned(), None)
}

fn error_with(code: i32, message: &str, data: Value) -> Reply {
    Reply::Error(code, message.to_owned(), Some(data))
}

/// The JSON-RPC face, over HTTP here. A notification gets silence.
pub(super) fn rpc(generation: Generation) -> impl Fn(&Message) -> Vec<u8> {
    move |request| {
        let called = Called::of(request);
        let Some(id) = called.id else {
            return answer("204 No Content", &[], "");
        };
        let params = called.params.map_or("{}", |params| params.get());
        let params: Value = serde_json::from_str(params).unwrap();
        let said = said_by(called.method(), &params, generation);
        ok(format!(r#"{{"jsonrpc":"2.0","id":{id},{said}}}"#))
    }
}

/// The result or the error of a call, as a member of its answer.
pub(super) fn said_by(method: &str, params: &Value, generation: Generation) -> String {
    match reply(method, params, generation) {
        Reply::Result(result) => format!(r#""result":{result}"#),
        Reply::Error(code, message, None) => {
            format!(r#""error":{{"code":{code},"message":"{message}"}}"#)
        }
        Reply::Error(code, message, Some(data)) => {
            format!(r#""error":{{"code":{code},"message":"{message}","data":{data}}}"#)
        }
    }
}

fn reply(method: &str, params: &Value, generation: Generation) -> Reply {
    let text = |name: &str| params[name].as_str().unwrap_or_default();
    match method.split_once('/').unwrap_or((method, "")) {
        ("status", "health") => result(r#"{"status":"ok","uptime_seconds":12}"#),
        ("status", "get") => result(
            r#"{"claude_state":"idle","connected_clients":1,"repo_path":"/Users/dev/myproject","repo_name":"myproject","uptime_seconds":120,"agent_version":"1.0.0","watcher_enabled":true,"git_enabled":true}"#,
        ),
        ("agent", "run") => rpc_run(text("prompt"), text("mode"), text("session_id")),
        ("agent", "stop") => error(-32603, "Agent manager not available"),
        ("agent", "respond") => match text("tool_use_id") {
            "" => error(-32602, "toolUseId is required"),
            "busy" => error(-32003, "claude is not waiting for input"),
            id => result(json!({ "status": "sent", "tool_use_id": id })),
        },
        ("session", operation) => rpc_session(operation, params, generation),
        ("file", operation) => rpc_file(operation, text("path"), generation),
        ("git", operation) => rpc_git(operation, params, generation),
        ("repository", "search") if text("query").is_empty() => error(-32602, "query is required"),
        ("repository", "search") => result(FOUND),
        ("repository", "files/list") => result(r#"{"files":[],"total":0}"#),
        ("repository", "index/status") => error(-32603, "Repository indexer not available"),
        _ => error(-32601, &format!("Method not found: {method}")),
    }
}

fn rpc_run(prompt: &str, mode: &str, session: &str) -> Reply {
    match (prompt, mode, session) {
        ("", ..) => error(-32602, "prompt is required"),
        ("busy", ..) => error(-32001, "claude is already running"),
        (_, "continue", "") => error(-32602, "sessionId is required when mode is 'continue'"),
        (_, "" | "new", _) => {
            result(r#"{"status":"started","pid":62771,"mode":"new","agent_type":"claude"}"#)
        }
        (_, "continue", id) => result(format!(
            r#"{{"status":"started","pid":62771,"mode":"continue","session_id":"{id}","agent_type":"claude"}}"#
        )),
        _ => error(-32602, "invalid mode: must be 'new' or 'continue'"),
    }
}

fn rpc_session(operation: &str, params: &Value, generation: Generation) -> Reply {
    let code = match generation {
        Generation::Running => -32010,
        Generation::Plan => -32012,
    };
    match (operation, params["session_id"].as_str().unwrap_or_default()) {
        ("list", _) if params["limit"] == 1 => result(r#"{"sessions":null,"total":0}"#),
        ("list", _) => result(
            r#"{"sessions":[{"session_id":"bd2d","agent_type":"claude","summary":"Create","message_count":4,"start_time":"2025-12-17T21:00:00Z","last_updated":"2025-12-17T21:14:45Z","branch":"main","project_path":"/x/p"}],"total":45}"#,
        ),
        ("delete", "") => result(r#"{"status":"deleted"}"#),
        ("messages", "") => error(-32602, "sessionId is required"),
        ("elements", "") => error(-32602, "session_id is required"),
        (_, "nope") => error_with(code, "Session not found", json!({ "session_id": "nope" })),
        ("delete", id) => result(format!(
            r#"{{"status":"deleted","session_id":"{id}","deleted":1}}"#
        )),
        ("messages", _) => result(format!("{{{MESSAGES}")),
        ("elements", "empty") => result(r#"{"session_id":"empty","elements":null}"#),
        _ => result(format!(
            r#"{{"session_id":"X","elements":[{ELEMENT}],"pagination":{{"total":25,"returned":1}}}}"#
        )),
    }
}

fn rpc_file(operation: &str, path: &str, generation: Generation) -> Reply {
    let code = match generation {
        Generation::Running => -32020,
        Generation::Plan => -32010,
    };
    match (operation, path) {
        ("get", "") => error(-32602, "path is required"),
        ("get", "off") => error(-32603, "File provider not available"),
        (_, "nope" | "../x") => error_with(code, "File not found", json!({ "path": path })),
        ("get", _) => result(FILE),
        _ => result(LISTED),
    }
}

fn rpc_git(operation: &str, params: &Value, generation: Generation) -> Reply {
    let failed = |reason: &str| match generation {
        Generation::Running => error_with(
            -32031,
            &format!("Git operation failed: {reason}"),
            json!({ "operation": operation }),
        ),
        Generation::Plan => error(-32011, reason),
    };
    let done = |status: &str| match params["paths"][0].as_str() {
        None => error(-32602, "paths is required"),
        Some("nope") => failed("no match"),
        Some("bare") => failed("not a git repository"),
        Some(_) => result(json!({ "status": status, "files_affected": 1 })),
    };
    match (operation, params["path"].as_str().unwrap_or_default()) {
        ("status", _) => match generation {
            Generation::Running => result(GIT),
            Generation::Plan => error(-32011, "Not a git repository"),
        },
        ("diff", "") => failed("path is a directory: "),
        ("diff", "nope") => failed("file not found: nope"),
        ("diff", "bare") => error(-32030, "Not a git repository"),
        ("diff", _) => result(DIFF),
        ("stage", _) => done("staged"),
        ("unstage", _) => done("unstaged"),
        ("discard", _) => done("discarded"),
        ("commit", _) if params["message"] == "" => error(-32602, "message is required"),
        ("commit", _) if params["message"] == "nothing" => {
            result(r#"{"status":"committed","sha":""}"#)
        }
        ("commit", _) if params["message"] == "busy" => failed("a hook refused"),
        ("commit", _) if params["message"] == "bare" => failed("not a git repository"),
        ("commit", _) => result(r#"{"status":"committed","sha":"abc1234"}"#),
        ("push", _) => result(r#"{"status":"pushed","files_affected":0}"#),
        ("pull", _) => result(r#"{"status":"pulled","files_affected":0}"#),
        ("branches", _) => {
            result(r#"{"branches":[{"name":"main","current":true}],"current":"main"}"#)
        }
        ("checkout", _) => result(json!({ "status": "checked_out", "branch": params["branch"] })),
        _ => error(-32601, &format!("Method not found: git/{operation}")),
    }
}
