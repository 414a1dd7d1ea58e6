//! Upgrades: a connection that changes its protocol becomes a tunnel, one that does not stays HTTP.

use crate::support::{End, Head, Open, Proxy, Track, Upstream, rest_only};

const UPGRADE: &str = "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHING: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// A tunnel, just opened.
fn tunnel(track: &Track) -> Open {
    let mut open = track.open(UPGRADE);
    open.server.send(SWITCHING);
    let head = open.client.read_head();
    assert_eq!(head.start, "HTTP/1.1 101 Switching Protocols");
    open
}

/// Whether a head names an upgrade as RFC 9110 §7.8 wants it: in `Upgrade`, and for this connection.
fn expect_websocket(head: &Head) {
    assert_eq!(head.one("upgrade"), Some("websocket"), "{head}");
    let connection = head.one("connection").unwrap_or_default();
    assert!(connection.eq_ignore_ascii_case("upgrade"), "{head}");
}

#[test]
fn a_request_for_an_upgrade_goes_on_whole() {
    let track = Track::rest();
    let open = track.open(UPGRADE);
    let head = &open.request.head;
    expect_websocket(head);
    assert_eq!(
        head.one("sec-websocket-key"),
        Some("dGhlIHNhbXBsZSBub25jZQ==")
    );
    assert_eq!(head.one("sec-websocket-version"), Some("13"));
    assert_eq!(head.fields.len(), 5 + 2, "{head}");
}

#[test]
fn the_agreement_comes_back_whole() {
    let track = Track::rest();
    let mut open = track.open(UPGRADE);
    open.server.send(SWITCHING);
    let head = open.client.read_head();
    assert_eq!(head.start, "HTTP/1.1 101 Switching Protocols");
    expect_websocket(&head);
    assert_eq!(
        head.one("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
}

#[test]
fn a_tunnel_carries_any_bytes_both_ways() {
    let track = Track::rest();
    let mut open = tunnel(&track);
    let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for _ in 0..3 {
        open.client.send(b"\x81\x02hi");
        open.server.expect(b"\x81\x02hi");
        open.server.send(b"\x00\xff\r\n\r\n");
        open.client.expect(b"\x00\xff\r\n\r\n");
        open.client.send(&all);
        assert!(open.server.read_exactly(all.len()) == all);
        open.server.send(&all);
        assert!(open.client.read_exactly(all.len()) == all);
    }
    // What looks like HTTP is no HTTP in a tunnel.
    open.client
        .send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    open.server
        .expect("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
}

#[test]
fn bytes_right_behind_the_heads_are_of_the_tunnel() {
    let track = Track::rest();
    let mut open = track.open(format!("{UPGRADE}\x01early\r\n"));
    open.server.send(format!("{SWITCHING}\x02prompt\r\n"));
    open.client.read_head();
    open.client.expect("\x02prompt\r\n");
    open.server.expect("\x01early\r\n");
    open.client.send("more");
    open.server.expect("more");
}

#[test]
fn bytes_before_the_agreement_wait_for_it() {
    let track = Track::rest();
    let mut open = track.open(UPGRADE);
    open.client.send("one ");
    open.client.send("two ");
    open.server.send(SWITCHING);
    open.client.read_head();
    open.client.send("three");
    open.server.expect("one two three");
}

#[test]
fn an_end_of_one_side_leaves_the_other_side_open() {
    let track = Track::rest();
    let mut open = tunnel(&track);
    open.client.send("last words");
    open.client.finish_sending();
    assert_eq!(
        open.server.read_rest(),
        (b"last words".to_vec(), End::Closed)
    );
    open.server.send("an answer to them");
    open.client.expect("an answer to them");
    drop(open.server);
    open.client.expect_closed();
    track.proxy.log_line(&["status=101", "outcome=success"]);
}

#[test]
fn an_upstream_that_leaves_closes_the_tunnel() {
    let track = Track::rest();
    let mut open = tunnel(&track);
    open.server.send("bye");
    drop(open.server);
    open.client.expect("bye");
    open.client.expect_closed();
}

#[test]
fn a_client_that_resets_closes_the_tunnel() {
    let track = Track::rest();
    let mut open = tunnel(&track);
    open.client.reset();
    open.server.expect_gone();
    track.proxy.log_line(&["status=101"]);
}

#[test]
fn a_refused_upgrade_leaves_http() {
    let track = Track::rest();
    let mut open = track.open(UPGRADE);
    open.server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
    for _ in 0..2 {
        open.client
            .send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(open.server.read_request().head.start, "GET /x HTTP/1.1");
        open.server.send(OK);
        assert_eq!(open.client.read_answer().text(), "hi");
    }
}

#[test]
fn a_call_behind_a_refused_upgrade_is_still_a_call() {
    let track = Track::rest();
    let mut open = track.open(format!(
        "{UPGRADE}GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n"
    ));
    open.server
        .send("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(open.client.read_answer().status(), 426);
    assert_eq!(open.server.read_request().head.start, "GET /next HTTP/1.1");
    open.server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
}

#[test]
fn smuggling_behind_a_refused_upgrade_is_refused() {
    let track = Track::rest();
    let mut open = track.open(format!(
        "{UPGRADE}POST /next HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    open.server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
    assert_eq!(open.client.read_answer().status(), 400);
    open.client.expect_gone();
}

#[test]
fn upgrade_without_connection_is_no_wish() {
    let track = Track::rest();
    let carried = track.carry(
        "GET /x HTTP/1.1\r\nHost: a.example\r\nUpgrade: websocket\r\n\r\n",
        OK,
    );
    assert_eq!(carried.request.head.one("upgrade"), None);
    assert_eq!(carried.request.head.one("connection"), None);
    assert_eq!(carried.answer.text(), "hi");
}

#[test]
fn an_upgrade_that_nobody_asked_for_is_a_bad_gateway() {
    let track = Track::rest();
    let mut open = track.open("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    open.server.send(SWITCHING);
    assert_eq!(open.client.read_answer().status(), 502);
    open.server.expect_gone();
    track.proxy.log_line(&["status=502", "blame=upstream"]);
}

#[test]
fn a_tunnel_ends_with_its_silence_limit() {
    let upstream = Upstream::start();
    let config = format!("{}idle_timeout = \"200ms\"\n", rest_only(&upstream));
    let track = Track {
        proxy: Proxy::start(&config),
        upstream,
    };
    let mut open = tunnel(&track);
    open.client.expect_gone();
    open.server.expect_gone();
    track.proxy.log_line(&["status=101", "outcome=cut"]);
}

#[test]
fn a_tunnel_is_one_of_the_connections_that_a_worker_may_open() {
    let upstream = Upstream::start();
    let config = format!(
        "{}connections = 1\ntimeout = \"200ms\"\n",
        rest_only(&upstream)
    );
    let track = Track {
        proxy: Proxy::start(&config),
        upstream,
    };
    let mut open = tunnel(&track);
    // No place is free within the timeout: nothing was asked of the upstream, so it is not to blame.
    let refused = track.proxy.rest("GET", "/x", &[], "");
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.json()["reason"], "upstream_busy");
    assert_eq!(refused.json()["blame"], "proxy");
    track.upstream.expect_no_connection();
    open.client.send("still here");
    open.server.expect("still here");
    drop(open.client);
    open.server.expect_gone();
    drop(open.server);
    let mut client = track.proxy.connect();
    client.send("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut server = track.upstream.accept();
    server.read_request();
    server.send(OK);
    assert_eq!(client.read_answer().text(), "hi");
}
