//! Servers with sessions that agree on an older revision than they were asked for, and what differs with each.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::scripted::{last, response, stream};
use super::{before, strays};
use crate::scene::{Called, answer, body_of, call, json};
use crate::support::{Upstream, becomes};

const TOLD: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#;

/// A server of one revision, whose tools say only texts.
fn of(version: &'static str) -> Upstream {
    let turns = AtomicUsize::new(0);
    Upstream::serving(move |request| {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if !body["method"].is_string() || body["id"].is_null() {
            let refused = request.head.start.starts_with("POST");
            let status = if refused {
                "202 Accepted"
            } else {
                "405 Method Not Allowed"
            };
            return answer(status, &[], "");
        }
        let called = Called::of(request);
        match called.method() {
            "server/discover" => answer("404 Not Found", &[], ""),
            "initialize" => json(response(
                &called,
                &format!(
                    r#"{{"protocolVersion":"{version}","capabilities":{{}},"serverInfo":{{"name":"old","version":"1"}}}}"#
                ),
            )),
            _ => {
                let said = response(&called, r#"{"content":[{"type":"text","text":"x"}]}"#);
                match (version, turns.fetch_add(1, Ordering::SeqCst) % 2) {
                    // Such a server may put messages into an array, in a stream or alone.
                    ("2025-03-26", 0) => stream(&format!("data: [{TOLD},\ndata: {said}]\n\n")),
                    ("2025-03-26", _) => json(format!("[{said}, {TOLD}]")),
                    _ => json(said),
                }
            }
        }
    })
}

#[test]
fn a_server_may_agree_on_an_older_revision() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let server = of(version);
        let proxy = before(&server, "");
        let body = call("initialize", r#"{"protocolVersion":"2025-11-25"}"#);
        let greeting = proxy.rpc(body).json();
        assert_eq!(greeting["result"]["protocolVersion"], version);
        let wanted =
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}"#;
        for _ in 0..2 {
            // Neither structured content nor a type of the result is made up.
            let called = proxy.rpc(call("tools/call", r#"{"name":"t","arguments":{}}"#));
            assert_eq!(body_of(&called, 200), wanted, "{version}");
        }
        let asked = last(&server, "initialize").json();
        assert_eq!(asked["params"]["protocolVersion"], "2025-11-25");
        let sent = last(&server, "tools/call");
        let head = &sent.head;
        assert_eq!(head.one("mcp-protocol-version"), Some(version));
        // What later revisions want in headers and in `_meta` is not said.
        for none in ["mcp-method", "mcp-name", "mcp-session-id"] {
            assert_eq!(head.one(none), None, "{version}");
        }
        assert_eq!(sent.json()["params"].as_object().unwrap().len(), 2);
        let told = if version == "2025-03-26" { 2.0 } else { 0.0 };
        becomes(|| strays(&proxy, "notified"), &told);
        // Servers take arrays in one revision alone, so that none is sent.
        let batch = format!(
            "[{},{}]",
            call("tools/call", "{}"),
            call("tools/list", "{}")
        );
        assert_eq!(proxy.rpc(batch).json().as_array().unwrap().len(), 2);
        let all = server.requests().into_iter();
        assert!(
            all.filter(|sent| !sent.body.is_empty())
                .all(|sent| sent.json().is_object())
        );
    }
}
