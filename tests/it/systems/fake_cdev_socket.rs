//! The sockets of cdev as they answer: the legacy one in frames, the dual one over JSON-RPC. What fails is in what is
//! asked for: `nope` is not there, `busy` is taken, an empty prompt is none.

use serde_json::{Value, json};

/// Every event with a payload, but for the heartbeat and what belongs to one protocol.
pub(super) const EVENTS: [(&str, &str); 12] = [
    (
        "claude_log",
        r#"{"line":"{}","stream":"stdout","parsed":{"type":"assistant","content":[{"type":"tool_use","tool_input":"{}"}]}}"#,
    ),
    (
        "claude_message",
        r#"{"session_id":"X","type":"assistant","role":"assistant","content":[{"type":"tool_use","tool_input":{"a":1}}]}"#,
    ),
    (
        "claude_status",
        r#"{"state":"running","prompt":"Fix","pid":62771}"#,
    ),
    (
        "claude_waiting",
        r#"{"tool_use_id":"toolu","tool_name":"Bash","input":"ls"}"#,
    ),
    (
        "claude_permission",
        r#"{"tool_use_id":"toolu","tool_name":"Bash","input":"ls","description":"list"}"#,
    ),
    (
        "claude_session_info",
        r#"{"session_id":"X","model":"m","version":"1"}"#,
    ),
    (
        "file_changed",
        r#"{"path":"a","change":"modified","size":1}"#,
    ),
    (
        "git_diff",
        r#"{"file":"a","diff":"-a\n+b","additions":1,"deletions":1,"is_staged":false,"is_new_file":false}"#,
    ),
    (
        "git_status_changed",
        r#"{"branch":"main","ahead":0,"behind":0,"staged_count":0,"changed_files":[]}"#,
    ),
    (
        "git_operation_completed",
        r#"{"operation":"commit","success":true,"sha":"abc1234"}"#,
    ),
    (
        "session_start",
        r#"{"session_id":"X","repo_path":"/x","repo_name":"x","agent_version":"1"}"#,
    ),
    ("session_end", r#"{"session_id":"X","reason":"shutdown"}"#),
];

const TIME: &str = "2025-12-20T15:30:00.123456789Z";

const STATUS: &str = r#"{"claude_state":"idle","connected_clients":1,"repo_path":"/Users/dev/myproject","repo_name":"myproject","uptime_seconds":120,"agent_version":"1.0.0","watcher_enabled":true,"git_enabled":true}"#;
const FILE: &str =
    r#"{"path":"a.go","content":"if a < b","encoding":"utf-8","truncated":false,"size":8}"#;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The legacy server: a command, and the frames that it says to it.
pub(super) fn legacy(command: &Value) -> Vec<Value> {
    let (payload, id) = (&command["payload"], &command["request_id"]);
    let event =
        |name: &str, payload: Value| json!({"event": name, "timestamp": TIME, "payload": payload});
    let answer = |name: &str, payload: Value| {
        let mut frame = event(name, payload);
        frame["request_id"] = id.clone();
        vec![frame]
    };
    let error = |code: &str, message: &str| {
        answer(
            "error",
            json!({"code": code, "message": message, "request_id": id}),
        )
    };
    match command["command"].as_str().unwrap() {
        "run_claude" if payload["prompt"] == "busy" => {
            error("CLAUDE_ERROR", "claude is already running")
        }
        "respond_to_claude" if payload["tool_use_id"] == "nope" => {
            error("CLAUDE_ERROR", "claude is not waiting for input")
        }
        "run_claude" | "stop_claude" | "respond_to_claude" => Vec::new(),
        "get_status" => answer("status_response", parsed(STATUS)),
        "get_file" if payload["path"] == "nope" => answer(
            "file_content",
            json!({"path": "nope", "encoding": "", "truncated": false, "size": 0, "error": "open nope: no such file"}),
        ),
        "get_file" => answer("file_content", parsed(FILE)),
        "watch_session" if payload["session_id"] == "nope" => {
            error("WATCH_FAILED", "session not found")
        }
        "watch_session" => {
            let payload = json!({"session_id": payload["session_id"], "watching": true});
            vec![event("session_watch_started", payload)]
        }
        "unwatch_session" => {
            let payload = json!({"session_id": "X", "watching": false, "reason": "client_request"});
            vec![event("session_watch_stopped", payload)]
        }
        other => error("UNKNOWN_COMMAND", &format!("Unknown command: {other}")),
    }
}

/// A method of the socket's own commands: the result or the error, as a member of its answer.
pub(super) fn of_commands(method: &str, params: &Value) -> String {
    let result = |result: Value| format!(r#""result":{result}"#);
    let error = |code: i64, message: &str| {
        let error = json!({"code": code, "message": message});
        format!(r#""error":{error}"#)
    };
    let error_with = |code: i64, message: &str, data: Value| {
        let error = json!({"code": code, "message": message, "data": data});
        format!(r#""error":{error}"#)
    };
    match method {
        "agent/run" if params["prompt"] == "busy" => error(-32001, "claude is already running"),
        "agent/run" if params["prompt"] == "" => error(-32602, "prompt is required"),
        "agent/run" => result(
            json!({"status": "started", "pid": 62771, "mode": "new", "agent_type": "claude"}),
        ),
        "agent/stop" => result(json!({"status": "stopped"})),
        "agent/respond" if params["tool_use_id"] == "nope" => {
            error(-32003, "claude is not waiting for input")
        }
        "agent/respond" => result(json!({"status": "sent", "tool_use_id": params["tool_use_id"]})),
        "status/get" => result(parsed(STATUS)),
        "file/get" if params["path"] == "nope" => {
            error_with(-32020, "File not found", json!({"path": "nope"}))
        }
        "file/get" => result(parsed(FILE)),
        "session/watch" if params["session_id"] == "nope" => {
            error_with(-32010, "Session not found", json!({"session_id": "nope"}))
        }
        "session/watch" => result(json!({"status": "watching", "watching": true})),
        "session/unwatch" => result(json!({"status": "unwatched"})),
        other => error(-32601, &format!("Method not found: {other}")),
    }
}
