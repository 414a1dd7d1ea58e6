//! Connections are kept on both sides, and how long one end keeps them is no concern of the other.

use crate::support::{Proxy, Track, Upstream, becomes, rest_only};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[test]
fn calls_of_one_client_share_a_connection_on_both_sides() {
    let track = Track::rest();
    let mut open = track.open(GET);
    for _ in 0..5 {
        open.server.send(OK);
        assert_eq!(open.client.read_answer().text(), "hi");
        open.client.send(GET);
        open.server.read_request();
    }
    track.upstream.expect_no_connection();
}

#[test]
fn calls_of_several_clients_share_an_upstream_connection() {
    let track = Track::rest();
    let mut first = track.open(GET);
    first.server.send(OK);
    assert_eq!(first.client.read_answer().text(), "hi");

    let mut second = track.proxy.connect();
    second.send("POST /y HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(first.server.read_request().head.start, "POST /y HTTP/1.1");
    first
        .server
        .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n");
    assert_eq!(second.read_answer().text(), "hi");

    first.client.send(GET);
    first.server.read_request();
    first.server.send(OK);
    assert_eq!(first.client.read_answer().text(), "hi");
    track.upstream.expect_no_connection();
}

#[test]
fn calls_at_the_same_time_have_connections_of_their_own() {
    let track = Track::rest();
    let mut first = track.open("GET /first HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut second = track.open("GET /second HTTP/1.1\r\nHost: a.example\r\n\r\n");
    assert_eq!(second.request.head.start, "GET /second HTTP/1.1");
    second
        .server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond");
    assert_eq!(second.client.read_answer().text(), "second");
    first
        .server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst");
    assert_eq!(first.client.read_answer().text(), "first");
}

#[test]
fn an_upstream_that_says_close_gets_no_other_call() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi");
    let answer = open.client.read_answer();
    // How long the upstream keeps its connection is not told to the client.
    assert_eq!(answer.head.one("connection"), None);
    open.client.send(GET);
    let mut server = track.upstream.accept();
    server.read_request();
    server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
    open.server.expect_gone();
}

#[test]
fn a_client_that_says_close_is_closed_and_the_upstream_connection_kept() {
    let track = Track::rest();
    let mut open = track.open("GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    assert_eq!(open.request.head.one("connection"), None);
    open.server.send(OK);
    let answer = open.client.read_answer();
    assert_eq!(answer.head.one("connection"), Some("close"));
    open.client.expect_closed();

    let mut next = track.proxy.connect();
    next.send(GET);
    open.server.read_request();
    open.server.send(OK);
    assert_eq!(next.read_answer().text(), "hi");
}

#[test]
fn pipelined_calls_are_answered_in_order() {
    let upstream = Upstream::serving(|request| {
        let path = request.head.start.split(' ').nth(1).unwrap();
        let body = String::from_utf8_lossy(&request.body);
        let text = format!("{path}={body}");
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )
        .into_bytes()
    });
    let proxy = Proxy::start(&rest_only(&upstream));
    let mut client = proxy.connect();
    let mut calls = String::new();
    for number in 0..20 {
        calls.push_str(&format!(
            "GET /{number} HTTP/1.1\r\nHost: a.example\r\n\r\n"
        ));
        calls.push_str(&format!(
            "POST /{number} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc"
        ));
        calls.push_str(&format!(
            "POST /{number} HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nxyz\r\n0\r\n\r\n"
        ));
    }
    client.send(calls);
    for number in 0..20 {
        assert_eq!(client.read_answer().text(), format!("/{number}="));
        assert_eq!(client.read_answer().text(), format!("/{number}=abc"));
        assert_eq!(client.read_answer().text(), format!("/{number}=xyz"));
    }
}

#[test]
fn a_client_that_ends_its_side_after_the_request_gets_its_answer() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(GET);
    let mut server = track.upstream.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    client.read_head();
    server.send("hi");
    client.expect("hi");
    client.finish_sending();
    client.expect_closed();
}

#[test]
fn an_answer_that_leaves_a_long_body_unread_says_that_its_connection_ends() {
    let upstream = Upstream::answering(OK);
    let config = format!("unrouted = \"reject\"\n{}", rest_only(&upstream));
    let proxy = Proxy::start(&config);
    for framing in ["Content-Length: 100000", "Transfer-Encoding: chunked"] {
        let mut client = proxy.connect();
        client.send(format!("POST /x HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
        let answer = client.read_answer();
        let found = (answer.status(), answer.head.one("connection"));
        assert_eq!(found, (404, Some("close")), "{framing}");
        client.expect_closed();
    }
    // A short one is read for nobody.
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        let answer = client.read_answer();
        assert_eq!(
            (answer.status(), answer.head.one("connection")),
            (404, None)
        );
    }
}

#[test]
fn http_1_0_is_answered_and_closed() {
    let track = Track::rest();
    let mut open = track.open("GET /x HTTP/1.0\r\nHost: a.example\r\n\r\n");
    assert_eq!(open.request.head.start, "GET /x HTTP/1.1");
    assert_eq!(open.request.head.one("via"), Some("1.0 dualgauge"));
    open.server.send(OK);
    let answer = open.client.read_answer();
    assert_eq!(answer.text(), "hi");
    open.client.expect_closed();
}

#[test]
fn an_answer_with_trailers_is_a_success_and_its_connection_goes_on() {
    const TRAILERS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n";
    const CALL: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\nTE: trailers\r\n\r\n";
    let track = Track::rest();
    let mut open = track.open(CALL);
    open.server.send(TRAILERS);
    assert_eq!(open.client.read_answer().trailers.len(), 1);
    open.client.send(CALL);
    open.server.read_request();
    open.server.send(TRAILERS);
    assert_eq!(open.client.read_answer().text(), "hi");
    let success = || track.proxy.log().matches(" outcome=success ").count();
    becomes(success, &2);
}

#[test]
fn http_1_0_gets_no_chunks() {
    let track = Track::rest();
    let mut open = track.open("GET /x HTTP/1.0\r\nHost: a.example\r\n\r\n");
    open.server.send(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n2\r\nhi\r\n4\r\n you\r\n0\r\nX-Sum: 1\r\n\r\n",
    );
    let answer = open.client.read_answer();
    assert_eq!(answer.head.one("transfer-encoding"), None);
    assert_eq!(answer.text(), "hi you");
}

#[test]
fn http_1_0_may_keep_its_connection() {
    let track = Track::rest();
    let call = "GET /x HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n";
    let mut open = track.open(call);
    open.server.send(OK);
    let answer = open.client.read_answer();
    let connection = answer.head.one("connection").unwrap();
    assert!(connection.eq_ignore_ascii_case("keep-alive"), "{answer:?}");
    open.client.send(call);
    open.server.read_request();
    open.server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
}

#[test]
fn http_1_0_without_a_host_goes_on_with_the_host_of_the_upstream() {
    let track = Track::rest();
    let carried = track.carry("GET /x HTTP/1.0\r\n\r\n", OK);
    let host = track.upstream.address().to_string();
    assert_eq!(carried.request.head.all("host"), [host.as_str()]);
    let forwarded = carried.request.head.one("forwarded");
    assert_eq!(forwarded, Some("for=127.0.0.1;proto=http"));
}

#[test]
fn a_connection_that_the_upstream_closed_between_calls_costs_no_call() {
    for request in [
        GET,
        "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi",
        "POST /x HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    ] {
        let track = Track::rest();
        let mut client = track.proxy.connect();
        for _ in 0..10 {
            client.send(request);
            let mut server = track.upstream.accept();
            let came = server.read_request();
            assert!(came.body.is_empty() || came.body == b"hi", "{came:?}");
            server.send(OK);
            assert_eq!(client.read_answer().text(), "hi");
            // The proxy closes its side as well: it has seen the end.
            server.finish_sending();
            server.expect_gone();
        }
    }
}

#[test]
fn a_connection_that_closes_right_behind_its_answer_costs_no_call_that_may_be_repeated() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    for _ in 0..50 {
        // Whether the proxy sees the end before it sends the call is a race; for a GET, either is well.
        client.send(GET);
        let mut server = track.upstream.accept();
        server.read_request();
        server.send(OK);
        drop(server);
        assert_eq!(client.read_answer().text(), "hi");
    }
}

#[test]
fn a_call_without_effect_is_sent_again_when_a_kept_connection_breaks() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(OK);
    open.client.read_answer();

    open.client
        .send("GET /again?x=%7E HTTP/1.1\r\nHost: a.example\r\nX-MiXeD: 1\r\n\r\n");
    let first = open.server.read_request();
    drop(open.server);
    let mut server = track.upstream.accept();
    assert_eq!(server.read_request(), first);
    server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
}

#[test]
fn a_call_with_an_effect_is_never_sent_twice() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server.send(OK);
    open.client.read_answer();

    open.client
        .send("POST /once HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n");
    open.server.read_request();
    drop(open.server);
    assert_eq!(open.client.read_answer().status(), 502);
    track.upstream.expect_no_connection();
}

#[test]
fn a_fresh_connection_that_breaks_is_not_tried_again() {
    let track = Track::rest();
    let mut open = track.open(GET);
    drop(open.server);
    assert_eq!(open.client.read_answer().status(), 502);
    track.upstream.expect_no_connection();
}

#[test]
fn an_upstream_that_is_not_there_is_a_bad_gateway() {
    let nowhere = Upstream::nowhere();
    let proxy = Proxy::start(&rest_only(&nowhere));
    let answer = proxy.rest("GET", "/x", &[], "");
    assert_eq!(answer.status(), 502);
    assert_eq!(
        answer.head.one("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.head.one("cache-control"), Some("no-store"));
    assert!(
        !answer
            .text()
            .contains(&nowhere.address().port().to_string())
    );
    proxy.log_line(&["status=502", "reason=upstream_unreachable"]);
}

#[test]
fn connections_beyond_the_limit_wait_for_one_that_is_free() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}connections = 1\n", rest_only(&upstream)));
    let mut first = proxy.connect();
    first.send("GET /first HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let mut server = upstream.accept();
    server.read_request();
    let mut second = proxy.connect();
    second.send("GET /second HTTP/1.1\r\nHost: a.example\r\n\r\n");
    server.send(OK);
    assert_eq!(first.read_answer().text(), "hi");
    assert_eq!(server.read_request().head.start, "GET /second HTTP/1.1");
    server.send(OK);
    assert_eq!(second.read_answer().text(), "hi");
    upstream.expect_no_connection();
}

#[test]
fn a_call_in_progress_ends_before_the_program_does() {
    let track = Track::rest();
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    open.client.read_head();
    track.proxy.signal("TERM");
    open.server.send("body");
    open.client.expect("body");
    open.client.expect_closed();
    open.server.expect_gone();
    let stopped = track.proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(stopped.log.contains("outcome=success"), "{stopped:?}");
}
