//! What waits is ended in time, on the side that is waited for. The limits are real and short: nothing here sleeps.

use crate::support::{Proxy, Track, Upstream, rest_only, rpc_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// A proxy with more lines in the table of its REST upstream, or behind it.
fn track(more: &str) -> Track {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{more}\n", rest_only(&upstream)));
    Track { proxy, upstream }
}

#[test]
fn an_upstream_that_does_not_answer_in_time_is_a_gateway_timeout() {
    let track = track("timeout = \"100ms\"");
    let mut open = track.open(GET);
    let answer = open.client.read_answer();
    assert_eq!(answer.status(), 504);
    assert_eq!(
        answer.head.one("content-type"),
        Some("application/problem+json")
    );
    open.server.expect_gone();
    track
        .proxy
        .log_line(&["status=504", "blame=upstream", "reason=upstream_timeout"]);
}

#[test]
fn an_rpc_upstream_that_does_not_answer_in_time_is_an_error_with_the_id_of_the_client() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}timeout = \"100ms\"\n", rpc_only(&upstream)));
    let answer = proxy.rpc(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#);
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.json()["id"], "a");
    assert_eq!(answer.json()["error"]["code"], -31022);
    let mut server = upstream.accept();
    server.read_request();
    server.expect_gone();
}

#[test]
fn the_timeout_bounds_the_head_of_an_answer_and_not_its_body() {
    let track = track("timeout = \"300ms\"\nidle_timeout = \"10s\"");
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    open.client.read_head();
    // Another call, which waits for its whole timeout, is the clock.
    assert_eq!(track.proxy.rest("GET", "/slow", &[], "").status(), 504);
    open.server.send("hi");
    open.client.expect("hi");
}

#[test]
fn a_stream_that_is_silent_for_too_long_is_cut() {
    let track = track("idle_timeout = \"100ms\"");
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
    open.client.read_head();
    assert_eq!(open.client.read_chunk().unwrap(), b"hi");
    open.client.expect_gone();
    open.server.expect_gone();
    track.proxy.log_line(&["outcome=cut", "sent nothing"]);
}

#[test]
fn an_upload_that_does_not_move_is_a_request_timeout() {
    let track = track("timeout = \"100ms\"");
    let mut client = track.proxy.connect();
    client.send("POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhalf");
    let mut server = track.upstream.accept();
    server.read_head();
    server.expect("half");
    assert_eq!(client.read_answer().status(), 408);
    client.expect_gone();
    server.expect_gone();
    track
        .proxy
        .log_line(&["status=408", "blame=client", "reason=request_timeout"]);
}

#[test]
fn a_message_that_does_not_arrive_in_time_is_a_request_timeout() {
    let upstream = Upstream::start();
    let limits = "[limits]\nbody_timeout = \"100ms\"\n";
    let proxy = Proxy::start(&format!("{}{limits}", rpc_only(&upstream)));
    let mut client = proxy.connect();
    client.send("POST /rpc HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\n{");
    let answer = client.read_answer();
    assert_eq!(answer.status(), 408);
    assert_eq!(answer.json()["error"]["code"], -31006);
    assert!(answer.json()["id"].is_null());
    client.expect_gone();
    upstream.expect_no_connection();
}

#[test]
fn a_head_that_does_not_arrive_in_time_ends_its_connection() {
    let track = track("[limits]\nheader_timeout = \"100ms\"");
    let mut client = track.proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: a.exa");
    let answer = client.read_answer();
    assert_eq!(answer.status(), 408, "{answer:?}");
    client.expect_gone();
    track.upstream.expect_no_connection();
    // Nobody is told anything who has not begun to ask.
    track.proxy.connect().expect_gone();
}

#[test]
fn a_connection_that_nobody_uses_is_not_kept_for_longer_than_said() {
    let track = track("keep_alive = \"100ms\"");
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(open.client.read_answer().text(), "hi");
    open.server.expect_closed();
}

#[test]
fn the_end_of_the_program_does_not_wait_longer_than_its_limit() {
    let track = track("[limits]\ndrain = \"100ms\"");
    let mut open = track.open(GET);
    let stopped = track.proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(
        stopped.log.contains("calls were still in progress"),
        "{stopped:?}"
    );
    assert!(
        stopped.log.contains("outcome=cut blame=proxy"),
        "{stopped:?}"
    );
    open.client.expect_gone();
    open.server.expect_gone();
}

#[test]
fn an_idle_connection_does_not_hold_the_end_of_the_program() {
    let track = track("");
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi");
    open.client.read_answer();
    let stopped = track.proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    open.client.expect_closed();
    open.server.expect_closed();
}
