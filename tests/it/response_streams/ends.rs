//! Ends of responses that stream: the client leaves, the upstream breaks off, falls silent or takes too long.

use super::{HEAD, ROUTES, Streamed, before_rest, before_rpc, events, expect, get, post, rpc_call};
use crate::support::{Proxy, Upstream, becomes};

/// An upstream that may be silent for a short time only.
fn impatient(upstream: &Upstream, side: &str) -> String {
    let path = if side == "rpc" { "/rpc" } else { "" };
    format!(
        "[upstream.one]\nside = \"{side}\"\nurl = \"http://{}{path}\"\nidle_timeout = \"150ms\"\n",
        upstream.address()
    )
}

/// Opens a stream by a JSON-RPC call with the id 7.
fn open_rpc(proxy: &Proxy, upstream: &Upstream) -> Streamed {
    Streamed::open(
        proxy,
        upstream,
        &rpc_call("SendStreamingMessage", "{}", "7"),
    )
}

#[test]
fn the_upstream_call_ends_when_the_client_leaves() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let mut call = Streamed::open(&proxy, &upstream, &post("/message:stream", "", "{}"));
    call.server.send(HEAD);
    call.tell_result("1");
    call.client.read_head();
    expect(&mut call.client, "data: 1\n\n");
    drop(call.client);
    call.server.expect_gone();
    proxy.log_line(&["route=send", "outcome=cancelled", "events=1"]);
}

#[test]
fn a_stream_that_breaks_off_ends_with_a_failure_and_no_half_event() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, ROUTES);
    let mut call = open_rpc(&proxy, &upstream);
    call.server.send(HEAD);
    call.tell("data: 1\n\ndata: {\"a\":");
    call.client.read_head();
    expect(
        &mut call.client,
        "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}\n\n",
    );
    drop(call.server);
    let last = String::from_utf8(call.client.read_chunk().unwrap()).unwrap();
    let start = "event: error\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-31023,";
    assert!(last.starts_with(start) && last.ends_with("}\n\n"), "{last}");
    assert_eq!(call.client.read_chunk(), None);
    proxy.log_line(&["outcome=cut", "blame=upstream", "reason=upstream_cut"]);
}

#[test]
fn an_unfinished_event_at_the_end_is_no_event() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, ROUTES);
    let mut call = open_rpc(&proxy, &upstream);
    call.server.send(HEAD);
    call.tell("data: 1\n\ndata: 2\n");
    call.server.send("0\r\n\r\n");
    let answer = call.client.read_answer();
    assert_eq!(
        answer.text(),
        "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}\n\n"
    );
    let events = events(&proxy);
    assert_eq!(events["send rpc unfinished"], 1.0, "{events:?}");
}

#[test]
fn a_silent_upstream_ends_the_stream_with_a_failure() {
    let upstream = Upstream::start();
    let config = format!("{}{}", impatient(&upstream, "rpc"), ROUTES);
    let proxy = Proxy::start(&config);
    let mut call = Streamed::open(&proxy, &upstream, &get("/tasks/7", ""));
    call.server.send(HEAD);
    call.client.read_head();
    call.tell_result("1");
    expect(&mut call.client, "data: 1\n\n");
    let last = String::from_utf8(call.client.read_chunk().unwrap()).unwrap();
    assert!(
        last.starts_with("event: error\ndata: {\"type\":\"about:blank\""),
        "{last}"
    );
    assert!(last.contains("\"reason\":\"upstream_timeout\""), "{last}");
    assert_eq!(call.client.read_chunk(), None);
    call.server.expect_gone();
    proxy.log_line(&["route=watch", "outcome=cut", "reason=upstream_timeout"]);
}

#[test]
fn a_stream_ends_at_the_time_limit_of_its_route_however_much_comes() {
    let upstream = Upstream::start();
    let limited = ROUTES.replace(
        "stream = \"sse\"\n",
        "stream = \"sse\"\nstream_timeout = \"150ms\"\n",
    );
    let proxy = before_rpc(&upstream, &limited);
    let mut call = Streamed::open(&proxy, &upstream, &post("/message:stream", "", "{}"));
    call.server.send(HEAD);
    call.client.read_head();
    call.tell_result("1");
    expect(&mut call.client, "data: 1\n\n");
    let last = String::from_utf8(call.client.read_chunk().unwrap()).unwrap();
    assert!(
        last.contains("\"reason\":\"upstream_timeout\"") && last.contains("150ms"),
        "{last}"
    );
    assert_eq!(call.client.read_chunk(), None);
    call.server.expect_gone();
}

#[test]
fn a_stream_whose_event_does_not_fit_into_memory_ends_with_a_failure() {
    let upstream = Upstream::start();
    let small = format!("{ROUTES}[limits]\nmemory = \"64KiB\"\n");
    let proxy = before_rpc(&upstream, &small);
    let mut call = Streamed::open(&proxy, &upstream, &get("/tasks/7", ""));
    call.server.send(HEAD);
    call.client.read_head();
    call.tell_result("1");
    expect(&mut call.client, "data: 1\n\n");
    call.tell(&format!("data: {}", "x".repeat(100_000)));
    let last = String::from_utf8(call.client.read_chunk().unwrap()).unwrap();
    assert!(
        last.starts_with("event: error\n") && last.contains("\"reason\":\"memory_full\""),
        "{last}"
    );
    assert_eq!(call.client.read_chunk(), None);
    call.server.expect_gone();
    proxy.log_line(&["route=watch", "outcome=cut", "reason=memory_full"]);
    becomes(|| proxy.metrics().value("dualgauge_buffered_bytes"), &0.0);
}

#[test]
fn an_incomplete_event_counts_as_buffered_until_it_is_complete() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let mut call = Streamed::open(&proxy, &upstream, &get("/tasks/7", ""));
    call.server.send(HEAD);
    call.client.read_head();
    let long = "x".repeat(100_000);
    let id = call.id();
    call.tell(&format!(
        "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"{long}\"}}\n"
    ));
    let buffered = || proxy.metrics().value("dualgauge_buffered_bytes");
    becomes(|| buffered() > 100_000.0, &true);
    call.tell("\n");
    expect(&mut call.client, &format!("data: \"{long}\"\n\n"));
    becomes(buffered, &0.0);
}

#[test]
fn a_message_of_another_call_ends_the_stream() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let mut call = Streamed::open(&proxy, &upstream, &post("/message:stream", "", "{}"));
    call.server.send(HEAD);
    call.tell("data: {\"jsonrpc\":\"2.0\",\"id\":\"other\",\"result\":1}\n\n");
    let answer = call.client.read_answer();
    assert!(answer.text().starts_with("event: error\n"), "{answer:?}");
    assert!(answer.text().contains("upstream_wrong_id"), "{answer:?}");
    call.server.expect_gone();
    proxy.log_line(&["outcome=cut", "reason=upstream_wrong_id"]);
}

#[test]
fn the_drain_ends_a_streamed_get_where_an_event_ends() {
    let upstream = Upstream::start();
    let config = format!("[limits]\ndrain = \"600ms\"\n{}", ROUTES);
    let proxy = before_rpc(&upstream, &config);
    let mut call = Streamed::open(&proxy, &upstream, &get("/tasks/7", ""));
    call.server.send(HEAD);
    call.client.read_head();
    proxy.signal("TERM");
    call.tell_result("1");
    expect(&mut call.client, "data: 1\n\n");
    assert_eq!(call.client.read_chunk(), None);
    call.server.expect_gone();
    let stopped = proxy.wait();
    assert!(stopped.log.contains("outcome=success"), "{stopped:?}");
}
