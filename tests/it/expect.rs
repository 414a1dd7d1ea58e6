//! `Expect: 100-continue`: a client is asked for its body when somebody reads it, and never when the call is
//! refused without it.

use crate::support::{Proxy, Track, Upstream, Wire, both, rest_only, rpc_only};

const ROUTE: &str =
    "\n[[route]]\nname = \"items.add\"\nrest = \"POST /items\"\nrpc = \"items/add\"\n";
const TRANSLATE: &str = "\n[rollout]\ndefault = { rest = \"translate\" }\n";

/// Sends a head that expects to be asked for its body.
fn expecting(proxy: &Proxy, target: &str, fields: &str) -> Wire {
    let mut client = proxy.connect();
    client.send(format!(
        "POST {target} HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\n{fields}\r\n"
    ));
    client
}

/// The first thing that comes is a final answer of this status; then the connection ends, for nobody knows
/// whether the body follows.
fn expect_refusal(mut client: Wire, status: u16) {
    assert_eq!(client.read_answer().status(), status);
    client.expect_gone();
}

#[test]
fn a_body_that_passes_through_is_asked_for_when_it_is_read() {
    for (framing, body) in [
        ("Content-Length: 2\r\n", "hi"),
        ("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"),
    ] {
        let track = Track::rest();
        let mut client = expecting(&track.proxy, "/x", framing);
        let mut server = track.upstream.accept();
        assert_eq!(server.read_head().one("expect"), Some("100-continue"));
        client.expect("HTTP/1.1 100 Continue\r\n\r\n");
        client.send(body);
        server.expect(body);
        server
            .send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(client.read_answer().status(), 201);
    }
}

#[test]
fn a_body_that_is_translated_is_asked_for() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let proxy = Proxy::start(&format!("{}{ROUTE}{TRANSLATE}", both(&old, &new)));
    let fields = "Content-Type: application/json\r\nContent-Length: 2\r\n";
    let mut client = expecting(&proxy, "/items", fields);
    client.expect("HTTP/1.1 100 Continue\r\n\r\n");
    client.send("{}");
    let mut server = new.accept();
    let call = server.read_request();
    assert_eq!(call.head.one("expect"), None);
    let id = &call.json()["id"];
    let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
    server.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}",
        answer.len()
    ));
    assert_eq!(client.read_answer().status(), 200);
}

#[test]
fn a_call_that_no_route_takes_is_refused_without_its_body() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("unrouted = \"reject\"\n{}", rest_only(&upstream)));
    expect_refusal(expecting(&proxy, "/x", "Content-Length: 2\r\n"), 404);
    expect_refusal(
        expecting(&proxy, "/x", "Transfer-Encoding: chunked\r\n"),
        404,
    );
    upstream.expect_no_connection();
}

#[test]
fn a_body_that_is_announced_too_long_is_refused_without_it() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let limits = "\n[limits]\nbody = 100\n";
    let proxy = Proxy::start(&format!("{}{ROUTE}{TRANSLATE}{limits}", both(&old, &new)));
    let fields = "Content-Type: application/json\r\nContent-Length: 101\r\n";
    expect_refusal(expecting(&proxy, "/items", fields), 413);
    expect_refusal(expecting(&proxy, "/rpc", fields), 413);
    new.expect_no_connection();
}

#[test]
fn a_body_of_another_type_is_refused_without_it() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let proxy = Proxy::start(&format!("{}{ROUTE}{TRANSLATE}", both(&old, &new)));
    let fields = "Content-Type: text/html\r\nContent-Length: 2\r\n";
    expect_refusal(expecting(&proxy, "/items", fields), 415);
    new.expect_no_connection();
}

#[test]
fn a_retired_route_refuses_without_the_body() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let retired = "\n[rollout]\ndefault = { rest = \"retired\" }\n";
    let proxy = Proxy::start(&format!("{}{ROUTE}{retired}", both(&old, &new)));
    expect_refusal(expecting(&proxy, "/items", "Content-Length: 2\r\n"), 410);
}

#[test]
fn an_rpc_message_is_asked_for_and_goes_on_without_the_expectation() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rpc_only(&upstream));
    let message = r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#;
    let mut client = expecting(
        &proxy,
        "/rpc",
        &format!("Content-Length: {}\r\n", message.len()),
    );
    client.expect("HTTP/1.1 100 Continue\r\n\r\n");
    client.send(message);
    let mut server = upstream.accept();
    let request = server.read_request();
    assert_eq!(
        (request.text(), request.head.one("expect")),
        (message, None)
    );
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.read_answer().status(), 200);
}

#[test]
fn a_client_that_does_not_wait_is_served_all_the_same() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(
        "POST /x HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
    );
    let mut server = track.upstream.accept();
    assert_eq!(server.read_request().text(), "hi");
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let mut answer = client.read_answer();
    if answer.status() == 100 {
        answer = client.read_answer();
    }
    assert_eq!(answer.status(), 200);
}
