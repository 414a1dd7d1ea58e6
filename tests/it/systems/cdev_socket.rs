//! `config/cdev.toml` on sockets: every command and every event, from clients that speak in frames before the server
//! that speaks JSON-RPC, and from clients that speak JSON-RPC before the legacy server.

use serde_json::{Value, json};

use super::fake_cdev_dual::Dual;
use super::fake_cdev_socket::{EVENTS, legacy, of_commands};
use crate::support::{Proxy, Upstream};
use crate::websocket::ends::{End, accept, connect};

const TABLE: &str = include_str!("../../../config/cdev.toml");

pub(super) fn proxy(upstream: &str) -> Proxy {
    let config = format!("include = [\"cdev.toml\"]\n[listen]\nworkers = 1\n{upstream}");
    Proxy::start_with(&config, &[("cdev.toml", TABLE)])
}

fn before_dual(server: &Upstream) -> Proxy {
    proxy(&format!(
        "[upstream.dual]\nside = \"rpc\"\nurl = \"ws://{}/ws\"\nsharing = \"client\"\n",
        server.address()
    ))
}

pub(super) fn before_legacy(server: &Upstream) -> Proxy {
    proxy(&format!(
        "[upstream.legacy]\nside = \"rest\"\nurl = \"ws://{}/\"\n",
        server.address()
    ))
}

/// A frame without its time, which is there.
pub(super) fn timeless(mut frame: Value) -> Value {
    let time = frame.as_object_mut().unwrap().remove("timestamp");
    assert!(
        time.is_some_and(|time| time.as_str().is_some_and(|time| time.ends_with('Z'))),
        "{frame}"
    );
    frame
}

pub(super) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Lets the legacy server take one call, and answer it.
fn take(server: &mut End, answer: impl Fn(&Value) -> Vec<Value>) -> Value {
    let heard = server.hear();
    for said in answer(&heard) {
        server.say(said.to_string());
    }
    heard
}

fn status() -> Value {
    json!({"claude_state": "idle", "connected_clients": 1, "repo_path": "/Users/dev/myproject", "repo_name": "myproject",
        "uptime_seconds": 120, "agent_version": "1.0.0", "watcher_enabled": true, "git_enabled": true})
}

fn file() -> Value {
    json!({"path": "a.go", "content": "if a < b", "encoding": "utf-8", "truncated": false, "size": 8})
}

fn error(code: &str, message: &str) -> Value {
    json!({"event": "error", "payload": {"code": code, "message": message, "request_id": "r"}, "request_id": "r"})
}

/// What a legacy client says, what the server hears of it, and what the client is told.
fn agent_commands() -> Vec<(Value, Value, Value)> {
    let run = |prompt: &str| json!({"command": "run_claude", "payload": {"prompt": prompt}});
    vec![
        (
            run("Fix"),
            json!(["agent/run", {"prompt": "Fix"}]),
            Value::Null,
        ),
        (
            json!({"command": "run_claude", "payload": {"prompt": "Go on", "mode": "continue", "session_id": "X"}}),
            json!(["agent/run", {"prompt": "Go on", "mode": "continue", "session_id": "X"}]),
            Value::Null,
        ),
        (
            run("busy"),
            json!(["agent/run", {"prompt": "busy"}]),
            error("CLAUDE_ERROR", "claude is already running"),
        ),
        (
            run(""),
            json!(["agent/run", {"prompt": ""}]),
            error("INVALID_PAYLOAD", "prompt is required"),
        ),
        (
            json!({"command": "stop_claude"}),
            json!(["agent/stop", {}]),
            Value::Null,
        ),
        (
            json!({"command": "respond_to_claude", "payload": {"tool_use_id": "toolu", "response": "yes"}}),
            json!(["agent/respond", {"tool_use_id": "toolu", "response": "yes"}]),
            Value::Null,
        ),
        (
            json!({"command": "respond_to_claude", "payload": {"tool_use_id": "nope", "response": "no", "is_error": true}}),
            json!(["agent/respond", {"tool_use_id": "nope", "response": "no", "is_error": true}]),
            error("CLAUDE_ERROR", "claude is not waiting for input"),
        ),
    ]
}

/// The same of the commands that answer.
fn other_commands() -> Vec<(Value, Value, Value)> {
    vec![
        (
            json!({"command": "get_status"}),
            json!(["status/get", {}]),
            json!({"event": "status_response", "payload": status(), "request_id": "r"}),
        ),
        (
            json!({"command": "get_file", "payload": {"path": "a.go"}}),
            json!(["file/get", {"path": "a.go"}]),
            json!({"event": "file_content", "payload": file(), "request_id": "r"}),
        ),
        (
            json!({"command": "get_file", "payload": {"path": "nope"}}),
            json!(["file/get", {"path": "nope"}]),
            json!({"event": "file_content", "request_id": "r", "payload":
                {"path": "nope", "encoding": "", "truncated": false, "size": 0, "error": "file not found"}}),
        ),
        (
            json!({"command": "watch_session", "payload": {"session_id": "X"}}),
            json!(["session/watch", {"session_id": "X"}]),
            json!({"event": "session_watch_started", "payload": {"session_id": "X", "watching": true}}),
        ),
        (
            json!({"command": "watch_session", "payload": {"session_id": "nope"}}),
            json!(["session/watch", {"session_id": "nope"}]),
            error("WATCH_FAILED", "Session not found"),
        ),
        (
            json!({"command": "unwatch_session"}),
            json!(["session/unwatch", {}]),
            json!({"event": "session_watch_stopped", "payload": {"session_id": "", "watching": false, "reason": "client_request"}}),
        ),
    ]
}

#[test]
fn every_command_of_a_legacy_client_is_a_call_of_the_rpc_server() {
    let upstream = Upstream::start();
    let proxy = before_dual(&upstream);
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    let mut socket = Dual::new(of_commands);
    let mut take_call = |server: &mut End| {
        let heard = server.hear_text();
        for said in socket.hears(&heard) {
            server.say(said);
        }
        parsed(&heard)
    };
    for (mut command, wanted, told) in agent_commands().into_iter().chain(other_commands()) {
        command["request_id"] = json!("r");
        client.say(command.to_string());
        let heard = take_call(&mut server);
        assert_eq!(
            json!([heard["method"], heard["params"]]),
            wanted,
            "{command}"
        );
        if !told.is_null() {
            assert_eq!(timeless(client.hear()), told, "{command}");
            continue;
        }
        // What is said next shows that nothing was said.
        client.say(r#"{"command":"get_status","request_id":"next"}"#);
        take_call(&mut server);
        assert_eq!(client.hear()["request_id"], "next", "{command}");
    }
}

/// A method, its params, what the legacy server hears, and what the client gets.
pub(super) type Row = (&'static str, Value, Value, Value);

/// What an RPC client calls of the agent.
pub(super) fn agent_calls() -> Vec<Row> {
    vec![
        (
            "agent/run",
            json!({"prompt": "Fix"}),
            json!({"command": "run_claude", "payload": {"prompt": "Fix"}}),
            json!({"result": {"status": "started", "mode": "new", "agent_type": "claude"}}),
        ),
        (
            "agent/run",
            json!({"prompt": "busy"}),
            json!({"command": "run_claude", "payload": {"prompt": "busy"}}),
            json!({"error": {"code": -32001, "message": "claude is already running"}}),
        ),
        (
            "agent/stop",
            json!({}),
            json!({"command": "stop_claude"}),
            json!({"result": {"status": "stopped"}}),
        ),
        (
            "agent/respond",
            json!({"tool_use_id": "toolu", "response": "yes"}),
            json!({"command": "respond_to_claude", "payload": {"tool_use_id": "toolu", "response": "yes"}}),
            json!({"result": {"status": "sent", "tool_use_id": "toolu"}}),
        ),
        (
            "agent/respond",
            json!({"tool_use_id": "nope", "response": "yes"}),
            json!({"command": "respond_to_claude", "payload": {"tool_use_id": "nope", "response": "yes"}}),
            json!({"error": {"code": -32003, "message": "claude is not waiting for input"}}),
        ),
    ]
}

/// The same of what answers.
pub(super) fn other_calls() -> Vec<Row> {
    vec![
        (
            "status/get",
            json!({}),
            json!({"command": "get_status"}),
            json!({"result": status()}),
        ),
        (
            "file/get",
            json!({"path": "a.go"}),
            json!({"command": "get_file", "payload": {"path": "a.go"}}),
            json!({"result": file()}),
        ),
        (
            "file/get",
            json!({"path": "nope"}),
            json!({"command": "get_file", "payload": {"path": "nope"}}),
            json!({"error": {"code": -32020, "message": "File not found", "data": {"path": "nope"}}}),
        ),
        (
            "session/watch",
            json!({"session_id": "X"}),
            json!({"command": "watch_session", "payload": {"session_id": "X"}}),
            json!({"result": {"status": "watching", "watching": true}}),
        ),
        (
            "session/watch",
            json!({"session_id": "nope"}),
            json!({"command": "watch_session", "payload": {"session_id": "nope"}}),
            json!({"error": {"code": -32010, "message": "session not found"}}),
        ),
        (
            "session/unwatch",
            json!({}),
            json!({"command": "unwatch_session"}),
            json!({"result": {"status": "unwatched", "watching": false}}),
        ),
    ]
}

#[test]
fn every_call_of_an_rpc_client_is_a_command_of_the_legacy_server() {
    let upstream = Upstream::start();
    let proxy = before_legacy(&upstream);
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    for (method, params, wanted, told) in agent_calls().into_iter().chain(other_calls()) {
        // As its client for iOS writes ids.
        let id = "9B2D7B0C-0E5F-4C6A-8F0A-5C1B7E4D2A11";
        client.say(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        let mut heard = take(&mut server, legacy);
        assert!(
            heard
                .as_object_mut()
                .unwrap()
                .remove("request_id")
                .is_some(),
            "{heard}"
        );
        assert_eq!(heard, wanted, "{method} {params}");
        let mut answer = client.hear();
        let members = answer.as_object_mut().unwrap();
        assert_eq!(members.remove("id"), Some(json!(id)));
        assert_eq!(members.remove("jsonrpc"), Some(json!("2.0")));
        assert_eq!(answer, told, "{method} {params}");
    }
}

#[test]
fn every_event_comes_in_the_form_of_the_client() {
    let (dual_server, legacy_server) = (Upstream::start(), Upstream::start());
    let (before_dual, before_legacy) = (before_dual(&dual_server), before_legacy(&legacy_server));
    let mut old = connect(&before_dual);
    let mut new_server = accept(&dual_server);
    let mut new = connect(&before_legacy);
    let mut old_server = accept(&legacy_server);
    new.say(r#"{"jsonrpc":"2.0","id":1,"method":"status/get"}"#);
    take(&mut old_server, legacy);
    assert_eq!(new.hear()["id"], 1);
    for (name, payload) in EVENTS {
        let payload = parsed(payload);
        let said = json!({"jsonrpc": "2.0", "method": format!("event/{name}"), "params": payload});
        new_server.say(said.to_string());
        let frame = json!({"event": name, "payload": payload});
        assert_eq!(timeless(old.hear()), frame);
        let mut told = frame.clone();
        told["timestamp"] = json!("2025-12-20T15:30:00.123456789Z");
        old_server.say(told.to_string());
        assert_eq!(new.hear(), said);
    }
    // The other two names of an agent's events are read as well.
    for method in ["claude_log", "event/agent_log"] {
        new_server
            .say(json!({"jsonrpc": "2.0", "method": method, "params": {"line": "x"}}).to_string());
        assert_eq!(
            timeless(old.hear()),
            json!({"event": "claude_log", "payload": {"line": "x"}})
        );
    }
    // A heartbeat is what it was, for everybody; the warning of one protocol is nothing to the other.
    let heartbeat = r#"{"event":"heartbeat","timestamp":"2025-12-20T15:30:00Z","payload":{"server_time":"t","sequence":1,"claude_status":"idle","uptime_seconds":1}}"#;
    old_server
        .say(r#"{"event":"deprecation_warning","timestamp":"2025-12-20T15:30:00Z","payload":{}}"#);
    for (server, client) in [(&mut new_server, &mut old), (&mut old_server, &mut new)] {
        server.say(heartbeat);
        assert_eq!(client.hear_text(), heartbeat);
    }
}
