//! What holds for links of every kind: servers that come up late, and what `explain` says of them.

mod bursts;
mod drains;
mod lost;
mod order;
mod recalls;
mod renumbered;
mod storms;
pub(crate) mod telling;

use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::scripted::{result, with_sessions};
use crate::scene::{Called, answer, call, json as json_answer, rpc_failure};
use crate::support::{Proxy, Upstream, becomes, eventually};
use crate::websocket::ends::{accept, connect};

fn starts(proxy: &Proxy) -> f64 {
    proxy
        .metrics()
        .value(r#"dualgauge_link_starts_total{upstream="late"}"#)
}

fn before(server: &Upstream, scheme: &str, keys: &str) -> Proxy {
    let address = server.address();
    Proxy::start(&format!(
        "[upstream.late]\nside = \"rpc\"\nurl = \"{scheme}://{address}/x\"\n{keys}"
    ))
}

fn ask(proxy: &Proxy) -> Value {
    proxy.rpc(call("do", "{}")).json()
}

#[test]
fn a_websocket_server_that_comes_up_late_is_found_without_a_restart() {
    let server = Upstream::nowhere();
    let proxy = before(&server, "ws", "connect_timeout = \"50ms\"\n");
    assert_eq!(rpc_failure(&ask(&proxy)), (-31021, "upstream_unreachable"));
    becomes(|| starts(&proxy) >= 2.0, &true);
    let server = server.appears();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut end = accept(&server);
            let heard = end.hear();
            end.echo(&heard);
        });
        let answer = eventually("the server", || {
            Some(ask(&proxy)).filter(|answer| answer["result"].is_object())
        });
        assert_eq!(answer["id"], 1);
    });
}

#[test]
fn a_call_waits_for_a_server_that_comes_up_within_its_time() {
    let server = Upstream::nowhere();
    let proxy = before(&server, "ws", "connect_timeout = \"20s\"\n");
    becomes(|| starts(&proxy) >= 2.0, &true);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&proxy));
        let waiting = r#"dualgauge_link_calls_in_flight{upstream="late",state="waiting"}"#;
        becomes(|| proxy.metrics().value(waiting), &1.0);
        let mut end = accept(&server.appears());
        let heard = end.hear();
        end.echo(&heard);
        assert!(asking.join().unwrap()["result"].is_object());
    });
}

#[test]
fn a_call_waits_for_a_link_as_long_as_queue_timeout_says() {
    let server = Upstream::nowhere();
    // Any other time would hold the call for longer than the client of this test waits.
    let keys = "timeout = \"1h\"\nconnect_timeout = \"1h\"\nqueue_timeout = \"1ms\"\n";
    let proxy = before(&server, "ws", keys);
    becomes(|| starts(&proxy) >= 2.0, &true);
    assert_eq!(rpc_failure(&ask(&proxy)), (-31021, "upstream_unreachable"));
}

#[test]
fn an_mcp_server_that_comes_up_late_is_found_without_a_restart() {
    let server = Upstream::nowhere();
    let keys = "protocol = \"mcp\"\nconnect_timeout = \"50ms\"\n";
    let proxy = before(&server, "http", keys);
    assert_eq!(rpc_failure(&ask(&proxy)), (-31021, "upstream_unreachable"));
    becomes(|| starts(&proxy) >= 2.0, &true);
    let _server = server.appears_serving(|request| {
        let is_call =
            serde_json::from_slice::<Value>(&request.body).is_ok_and(|body| body["id"].is_u64());
        if !is_call {
            return answer("405 Method Not Allowed", &[], "");
        }
        let called = Called::of(request);
        let supported = r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
        match called.method() {
            "server/discover" => result(&called, supported),
            _ => json_answer(format!(
                r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"complete"}}}}"#,
                called.id()
            )),
        }
    });
    eventually("the server", || {
        Some(ask(&proxy)).filter(|answer| answer["result"].is_object())
    });
}

/// What `explain` says of a request.
pub(crate) fn explained(proxy: &Proxy, arguments: &[&str]) -> Value {
    let config = proxy.folder().join("dualgauge.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
    command.args(["explain", "--format", "json", "--config"]);
    let output = command.arg(config).args(arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all[0]["explanations"][0].take()
}

#[test]
fn a_request_for_a_websocket_is_explained_as_it_is_answered() {
    let server = Upstream::nowhere();
    let proxy = before(&server, "ws", "");
    let asked = [
        "-H",
        "Connection: Upgrade",
        "-H",
        "Upgrade: websocket",
        "-H",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "-H",
        "Sec-WebSocket-Protocol: x, mcp",
    ];
    let whole = [&asked[..], &["-H", "Sec-WebSocket-Version: 13", "/rpc"]].concat();
    let told = explained(&proxy, &whole);
    assert_eq!(told["answer"]["status"], 101, "{told}");
    let note = told["answer"]["note"].as_str().unwrap();
    assert!(note.contains("a WebSocket"), "{note}");
    assert_eq!(told["answer"]["headers"][0]["value"], "mcp", "{told}");
    drop(connect(&proxy));
    let told = explained(&proxy, &[&asked[..], &["/rpc"]].concat());
    assert_eq!(told["refused"]["status"], 400, "{told}");
    let told = explained(&proxy, &["-X", "GET", "/rpc"]);
    assert_eq!(told["refused"]["status"], 405, "{told}");
}

#[test]
fn what_the_link_answers_is_explained_as_its_answer() {
    let server = with_sessions(|_, called| result(called, "1"));
    let proxy = crate::mcp::before(&server, "");
    let body = call("initialize", r#"{"protocolVersion":"2025-06-18"}"#);
    let told = explained(&proxy, &["-d", &body, "/rpc"]);
    assert_eq!(told["sends"], json!(null), "{told}");
    let note = told["answer"]["note"].as_str().unwrap();
    assert!(note.contains("the handshake of the link"), "{note}");
    let body = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let told = explained(&proxy, &["-d", body, "/rpc"]);
    assert_eq!(told["sends"], json!(null), "{told}");
    assert_eq!(told["answer"]["status"], 202, "{told}");
    let told = explained(&proxy, &["-d", &call("echo", "{}"), "/rpc"]);
    assert_eq!(told["sends"]["upstream"], "m", "{told}");
}
