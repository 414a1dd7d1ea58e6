//! Responses of JSON lines, where a route says so.

use super::{Streamed, before_rest, before_rpc, chunk, expect, get, rpc_call};
use crate::scene::call;
use crate::support::Upstream;

const ROUTES: &str = r#"
[[route]]
name = "rows"
rest = "GET /rows"
rpc = "rows"
stream = "ndjson"

[[route]]
name = "plain"
rest = "GET /plain"
rpc = "plain"
"#;

const LINES: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";

#[test]
fn lines_become_events_for_an_rpc_client() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, ROUTES);
    let mut call = Streamed::open(&proxy, &upstream, &rpc_call("rows", "{}", "7"));
    let accept = call.request.head.one("accept");
    assert_eq!(accept, Some("application/json, application/x-ndjson"));
    call.server.send(LINES);
    let head = call.client.read_head();
    assert_eq!(head.one("content-type"), Some("text/event-stream"));
    call.tell("{\"a\":1.10}\n{\"a\"");
    expect(
        &mut call.client,
        "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":1.10}}\n\n",
    );
    call.tell(":2}\n");
    expect(
        &mut call.client,
        "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":2}}\n\n",
    );
    call.server.send("0\r\n\r\n");
    assert_eq!(call.client.read_chunk(), None);
}

#[test]
fn events_become_lines_for_a_rest_client() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let mut call = Streamed::open(&proxy, &upstream, &get("/rows", ""));
    call.server.send(super::HEAD);
    let head = call.client.read_head();
    assert_eq!(head.one("content-type"), Some("application/x-ndjson"));
    call.tell_result("{\"a\": 1.10}");
    expect(&mut call.client, "{\"a\": 1.10}\n");
    call.tell(": ping\n\n");
    let id = call.id();
    call.tell(&format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32602,\"message\":\"no\"}}}}\n\n"
    ));
    let last = String::from_utf8(call.client.read_chunk().unwrap()).unwrap();
    assert!(
        last.starts_with("{\"type\":\"about:blank\"") && last.ends_with("}\n"),
        "{last}"
    );
    assert_eq!(call.client.read_chunk(), None);
}

#[test]
fn lines_are_no_stream_on_any_other_route() {
    let upstream = Upstream::answering(format!("{LINES}{}0\r\n\r\n", chunk("1\n2\n")));
    let proxy = before_rest(&upstream, ROUTES);
    let answer = proxy.rpc(call("plain", "{}"));
    assert!(answer.text().contains("upstream_not_json"), "{answer:?}");
}
