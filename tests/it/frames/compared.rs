//! Frames with a candidate.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::thread;

use serde_json::json as value;

use super::{FILE, MORE, ask, get_file};
use crate::scene::{Called, json};
use crate::support::{Proxy, Upstream, becomes, eventually, rpc_only};
use crate::websocket::ends::{connect, opened};

/// Starts a server of frames that answers each call after an event; returns its address.
fn old_server(path: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut server = opened(stream.unwrap()).unwrap();
            thread::spawn(move || {
                while let Some(call) = server.heard() {
                    let call: serde_json::Value = serde_json::from_str(&call).unwrap();
                    server.say(r#"{"event":"log","payload":{}}"#);
                    let file = value!({"event": "file", "request_id": call["request_id"], "payload": {"path": path}});
                    server.say(file.to_string());
                }
            });
        }
    });
    address
}

fn new_server() -> Upstream {
    Upstream::serving(|request| {
        let called = Called::of(request);
        let (id, params) = (called.id(), called.params());
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#
        ))
    })
}

fn start(stage: &str, old: SocketAddr, new: &Upstream) -> Proxy {
    start_guarded(stage, old, new, "")
}

/// The same with a guard of the flag.
fn start_guarded(stage: &str, old: SocketAddr, new: &Upstream, guard: &str) -> Proxy {
    let old = format!("[upstream.frames]\nside = \"rest\"\nurl = \"ws://{old}/\"\n");
    let config = format!(
        "{}{old}{FILE}{MORE}\n[rollout.candidates]\nnoise = 0\n",
        rpc_only(new)
    );
    let flags = format!("[[flag]]\nname = \"compare\"\nstage = \"{stage}\"\n{guard}");
    Proxy::start_with_flags(&config, &flags)
}

fn verdicts(proxy: &Proxy) -> BTreeMap<String, f64> {
    let labels = ["route", "client", "side", "stage", "verdict"];
    proxy.metrics().table("dualgauge_verdicts_total", &labels)
}

fn counted(row: &str, times: f64) -> BTreeMap<String, f64> {
    BTreeMap::from([(row.to_owned(), times)])
}

#[test]
fn a_frame_in_shadow_is_compared_with_the_frame_of_the_new_server() {
    for (path, verdict) in [("a", "match"), ("b", "mismatch")] {
        let new = new_server();
        let proxy = start("shadow", old_server(path), &new);
        let mut client = connect(&proxy);
        for times in 1..=2 {
            get_file(&mut client, "mine", "a");
            assert_eq!(client.hear()["event"], "log");
            let heard = client.hear();
            assert_eq!(heard["request_id"], "mine");
            assert_eq!(heard["payload"], value!({ "path": path }));
            let row = format!("file other rest shadow {verdict}");
            becomes(|| verdicts(&proxy), &counted(&row, f64::from(times)));
        }
        let sent = new.requests();
        let methods = sent.iter().map(|sent| Called::of(sent).method().to_owned());
        let methods: Vec<_> = methods.collect();
        assert_eq!(methods, ["file/get"; 2]);
    }
}

#[test]
fn a_frame_in_verify_is_compared_over_a_connection_that_the_client_does_not_hear() {
    let new = new_server();
    let proxy = start("verify", old_server("b"), &new);
    let mut client = connect(&proxy);
    for times in 1..=2 {
        get_file(&mut client, "mine", "a");
        let heard = client.hear();
        assert_eq!(heard["request_id"], "mine");
        assert_eq!(heard["payload"], value!({"path": "a"}));
        let row = "file other rest verify mismatch";
        becomes(|| verdicts(&proxy), &counted(row, f64::from(times)));
    }
    let line = proxy.log_line(&["dualgauge::mismatch", "file"]);
    assert!(line.contains("/body/payload/path"), "{line}");
}

#[test]
fn a_call_in_shadow_is_compared_with_the_answer_of_a_server_of_frames() {
    let new = new_server();
    let proxy = start("shadow", old_server("a"), &new);
    let mut client = connect(&proxy);
    for times in 1..=2 {
        ask(&mut client, 7, ("file/get", value!({"path": "a"})));
        let expected = value!({"jsonrpc": "2.0", "id": 7, "result": {"path": "a"}});
        assert_eq!(client.hear(), expected);
        let row = "file other rpc shadow match";
        becomes(|| verdicts(&proxy), &counted(row, f64::from(times)));
    }
}

#[test]
fn a_frame_of_an_unsafe_route_has_no_candidate() {
    let new = new_server();
    let proxy = start("shadow", old_server("a"), &new);
    let mut client = connect(&proxy);
    client.say(r#"{"command":"watch","request_id":"1","payload":{"session":"s"}}"#);
    client.hear();
    let skipped = r#"dualgauge_candidates_skipped_total{route="watch",reason="unsafe"}"#;
    becomes(|| proxy.metrics().value(skipped), &1.0);
}

#[test]
fn a_guard_trips_on_the_verdicts_of_frames() {
    let guard = "guard = { window = \"10s\", min_calls = 10, mismatch = 0.01 }\n";
    // A comparison that matches trips no guard.
    for (path, verdict) in [("a", "match"), ("b", "mismatch")] {
        let new = new_server();
        let proxy = start_guarded("shadow", old_server(path), &new, guard);
        let tripped = || {
            let flag = proxy.ask("GET", "/api/v1/flags/compare", "").json();
            flag["tripped"]["reason"].as_str().map(str::to_owned)
        };
        let mut client = connect(&proxy);
        let row = format!("file other rest shadow {verdict}");
        let mut calls = 0.0;
        // The calls go on until the guard decides: it decides on the calls of its last ten seconds. Each waits for its
        // verdict, except after the trip, when calls are compared no more.
        let mut call = || {
            get_file(&mut client, "mine", "a");
            client.hear();
            assert_eq!(client.hear()["payload"], value!({ "path": path }));
            calls += 1.0;
            eventually("a verdict", || {
                let is_over = verdicts(&proxy) == counted(&row, calls) || tripped().is_some();
                is_over.then_some(())
            });
        };
        if verdict == "match" {
            eventually("the guard is content", || {
                call();
                let labels = ["flag", "ruling"];
                let rulings = proxy.metrics().table("dualgauge_guard_ruling", &labels);
                let content = rulings.get("compare content");
                content.is_some_and(|value| *value >= 1.0).then_some(())
            });
            assert_eq!(tripped(), None);
        } else {
            let reason = eventually("the guard takes the flag back", || {
                call();
                tripped()
            });
            assert!(reason.contains("mismatches"), "{reason}");
        }
        let verdicts = verdicts(&proxy);
        let compared = verdicts.get(&row).copied().unwrap_or_default();
        assert!(compared >= 10.0 && verdicts.len() == 1, "{verdicts:?}");
    }
}
