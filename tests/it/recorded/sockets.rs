//! Recordings of messages on sockets: JSON-RPC messages and frames, and what a replay makes of them.

use std::fs;

use dualgauge_patterns::side::Side;
use dualgauge_recording::recording::{RecordedBody, RecordedCall, Responder};
use serde_json::Value;

use super::{RECORD, TABLES, calls, files, replay, state};
use crate::frames::FILE;
use crate::scene::{Called, json as json_answer};
use crate::support::{Proxy, Upstream, becomes, both, rpc_only};
use crate::websocket::ends::{accept, connect};

const SAMPLE: &str = "sample = 100\nbodies = true\n";

/// Waits until this number of calls is written, stops the recording, and returns the calls.
fn recorded(proxy: &Proxy, number: usize) -> Vec<RecordedCall> {
    becomes(
        || state(proxy, "GET", "")["recording"]["calls"].clone(),
        &number.into(),
    );
    calls(&files(proxy)[0])
}

fn body(body: &RecordedBody) -> String {
    String::from_utf8(body.content().unwrap().to_vec()).unwrap()
}

/// Replays the recording of a proxy with its configuration.
fn replayed(proxy: &Proxy, more: &[&str]) -> (Value, Option<i32>) {
    let options = [&["--format", "json"], more].concat();
    let ended = replay(proxy, &files(proxy)[0], &options);
    let found = serde_json::from_str(&ended.output);
    let found = found.unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (found, ended.code)
}

#[test]
fn a_message_on_a_socket_is_recorded_and_replayed_as_a_post() {
    let rest = Upstream::serving(|_| super::answer(r#"{"seen":1}"#));
    let rpc = Upstream::serving(|request| {
        let id = request.json()["id"].clone();
        super::answer(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"seen":1}}}}"#
        ))
    });
    let rpc_table = "[rpc]\nwebsocket = true\n";
    let config = format!("{}{rpc_table}{TABLES}{RECORD}{SAMPLE}", both(&rest, &rpc));
    let proxy = Proxy::start(&config);
    let mut client = connect(&proxy);
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"notes/list","params":{"q":"a"}}"#);
    assert_eq!(client.hear()["result"]["seen"], 1);
    client.say(
        r#"[{"jsonrpc":"2.0","id":2,"method":"notes/list"},{"jsonrpc":"2.0","id":3,"method":"other","params":{"token":"PLANTED"}}]"#,
    );
    assert_eq!(client.hear()[1]["id"], 3);
    let found = recorded(&proxy, 3);
    let text = fs::read_to_string(&files(&proxy)[0]).unwrap();
    assert!(!text.contains("PLANTED"), "{text}");
    for call in &found {
        let request = &call.request;
        assert_eq!(
            (request.method.as_str(), request.target.as_str()),
            ("POST", "/rpc")
        );
        assert_eq!((call.side, call.complete), (Side::Rpc, true), "{call:?}");
    }
    let first = &found[0];
    assert_eq!(first.route.as_deref(), Some("notes.list"));
    assert_eq!(
        body(&first.request.body),
        r#"{"jsonrpc":"2.0","id":1,"method":"notes/list","params":{"q":"a"}}"#
    );
    let response = first.response.as_ref().unwrap();
    assert_eq!((response.status, response.from), (200, Responder::Old));
    assert_eq!(
        body(&response.body),
        r#"{"jsonrpc":"2.0","id":1,"result":{"seen":1}}"#
    );
    for way in ["new", "old"] {
        let (summary, code) = replayed(&proxy, &["--to", way]);
        assert_eq!(code, Some(0), "{summary}");
        assert_eq!(summary["routes"]["notes.list"]["calls"], 2, "{summary}");
        assert_eq!(summary["skipped"][0]["reason"], "unrouted", "{summary}");
    }
}

#[test]
fn a_frame_is_recorded_with_its_reply_and_skipped_by_a_replay() {
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        json_answer(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"x"}}}}"#
        ))
    });
    let config = format!("{}{FILE}{RECORD}{SAMPLE}", rpc_only(&rpc));
    let proxy = Proxy::start(&config);
    let mut client = connect(&proxy);
    client
        .say(r#"{"command":"get_file","request_id":"r","payload":{"path":"a"},"token":"PLANTED"}"#);
    assert_eq!(client.hear()["payload"]["content"], "x");
    // A message of the other form on the same socket.
    client.say(r#"{"jsonrpc":"2.0","id":1,"method":"other"}"#);
    client.hear();
    let found = recorded(&proxy, 2);
    let frame = &found[0];
    assert_eq!(
        (frame.side, frame.route.as_deref()),
        (Side::Rest, Some("file"))
    );
    assert_eq!(frame.request.method, "POST");
    assert_eq!(
        body(&frame.request.body),
        r#"{"command":"get_file","request_id":"r","payload":{"path":"a"},"token":"***"}"#
    );
    let response = frame.response.as_ref().unwrap();
    assert_eq!((response.status, response.from), (200, Responder::New));
    assert_eq!(
        body(&response.body),
        r#"{"event":"file","payload":{"content":"x"},"request_id":"r"}"#
    );
    assert_eq!(found[1].side, Side::Rpc);
    let (summary, code) = replayed(&proxy, &[]);
    assert_eq!(code, Some(2), "{summary}");
    let reason = &summary["skipped"][0]["reason"];
    assert_eq!(reason, "answered_by_new", "{summary}");
    let (summary, _) = replayed(&proxy, &["--to", "both"]);
    assert_eq!(summary["skipped"][0]["reason"], "stream", "{summary}");
}

#[test]
fn a_frame_that_passes_is_recorded_with_its_reply() {
    let upstream = Upstream::start();
    let address = upstream.address();
    let frames = format!("[upstream.frames]\nside = \"rest\"\nurl = \"ws://{address}/legacy\"\n");
    let proxy = Proxy::start(&format!("{frames}{FILE}{RECORD}{SAMPLE}"));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    let sent = r#"{"command":"get_file","request_id":"r","payload":{"path":"a"}}"#;
    client.say(sent);
    assert_eq!(server.hear_text(), sent);
    let reply = r#"{"event":"file","payload":{"size":1.50},"request_id":"r"}"#;
    server.say(reply);
    client.hear_text();
    let found = recorded(&proxy, 1);
    let response = found[0].response.as_ref().unwrap();
    assert_eq!(body(&found[0].request.body), sent);
    assert_eq!((response.status, response.from), (200, Responder::Old));
    assert_eq!(body(&response.body), reply);
}

#[test]
fn a_frame_with_a_sensitive_command_is_recorded_without_its_values() {
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        json_answer(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":["PLANTED-3"]}}"#
        ))
    });
    let secret = r#"
[[route]]
name = "secret"
frame = { cmd = "set_password", args = "{args}" }
rpc = "users/set"
params = { args = "{args}" }
[[route.outcome]]
frame = { done = "{done}" }
rpc = { result = "{done}" }
"#;
    let config = format!("{}{FILE}{secret}{RECORD}{SAMPLE}", rpc_only(&rpc));
    let proxy = Proxy::start(&config);
    let mut client = connect(&proxy);
    client.say(r#"{"cmd":"set_password","args":["PLANTED-1","PLANTED-2"]}"#);
    assert_eq!(client.hear()["done"][0], "PLANTED-3");
    let found = recorded(&proxy, 1);
    assert_eq!(found[0].route.as_deref(), Some("secret"));
    let text = fs::read_to_string(&files(&proxy)[0]).unwrap();
    assert!(!text.contains("PLANTED"), "{text}");
}

#[test]
fn the_message_in_a_query_is_not_recorded() {
    let rest = Upstream::serving(|_| super::answer(r#"{"jsonrpc":"2.0","id":1,"result":"ok"}"#));
    let route = r#"
[[route]]
name = "kodi"
effect = "safe"
old = { method = "GET", path = "/jsonrpc", parameter = "request", body = { jsonrpc = "2.0", method = "{method}", params = "{params:object={}}", id = "{id?}" } }
rpc = "{method}"
params = { "..." = "{params}" }
[[route.outcome]]
old = { body = { id = "{>id}", jsonrpc = "2.0", result = "{result}" } }
rpc = { result = "{result}" }
"#;
    for bodies in ["true", "false"] {
        let config = format!(
            "{}{route}{RECORD}sample = 100\nbodies = {bodies}\n",
            both(&rest, &Upstream::nowhere())
        );
        let proxy = Proxy::start(&config);
        let query = "a=1&request=%7B%22jsonrpc%22:%222.0%22,%22id%22:1,%22method%22:%22A.B%22,%22params%22:%7B%22x%22:%22PLANTED%22%7D%7D";
        let answer = proxy.rest("GET", &format!("/jsonrpc?{query}"), &[], "");
        assert_eq!(answer.status(), 200, "{answer:?}");
        let found = recorded(&proxy, 1);
        let target = &found[0].request.target;
        assert!(!target.contains("PLANTED"), "{target}");
        assert!(target.starts_with("/jsonrpc?a=1&request="), "{target}");
    }
}
