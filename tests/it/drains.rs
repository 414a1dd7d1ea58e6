//! The drain: calls in progress, idle connections, and the limit.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};

use crate::scene::{before_rest, before_rpc, call, problem, rpc_failure};
use crate::support::{Proxy, Upstream, WITHIN, Wire, becomes, both, eventually, rest_only};
use crate::two_servers::{MOVER, Servers};

const CALL: &str = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";

const ROUTE: &str = "[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\n";

/// A call that the upstream has read and not answered: the client's end, and the upstream's.
fn open_call(proxy: &Proxy, upstream: &Upstream) -> (Wire, Wire) {
    let mut client = proxy.connect();
    client.send(CALL);
    let mut server = upstream.accept();
    server.read_request();
    (client, server)
}

/// Waits until nobody listens at an address. A listener that accepts nothing lets connections wait, and refuses none.
pub(crate) fn refuses_connections(address: SocketAddr) {
    eventually("the listener to be closed", || {
        let error = TcpStream::connect_timeout(&address, WITHIN).err()?;
        (error.kind() == ErrorKind::ConnectionRefused).then_some(())
    });
}

fn with_drain(upstream: &Upstream, drain: &str) -> String {
    format!("{}[limits]\ndrain = \"{drain}\"\n", rest_only(upstream))
}

#[test]
fn a_call_in_progress_gets_its_answer_after_sigterm() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rest_only(&upstream));
    let (mut client, mut server) = open_call(&proxy, &upstream);
    proxy.signal("TERM");
    refuses_connections(proxy.address());
    let ready = proxy.ask("GET", "/readyz", "");
    assert_eq!(
        (ready.status(), ready.text()),
        (503, "not ready\ndraining\n")
    );
    assert_eq!(proxy.ask("GET", "/healthz", "").status(), 200);
    let page = proxy.metrics();
    let in_flight = "\ndualgauge_calls_in_flight 1\n";
    assert!(page.text().contains(in_flight), "{}", page.text());

    server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate");
    let answer = client.read_answer();
    assert_eq!((answer.status(), answer.text()), (200, "late"));
    client.expect_closed();
    let stopped = proxy.wait();
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
    assert!(stopped.log.contains("path=/slow"), "{stopped:?}");
    assert!(stopped.log.contains("outcome=success"), "{stopped:?}");
    assert!(stopped.log.contains("drained"), "{stopped:?}");
}

#[test]
fn a_streamed_answer_goes_to_its_end_after_sigterm() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&rest_only(&upstream));
    let (mut client, mut server) = open_call(&proxy, &upstream);
    server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n");
    client.read_head();
    assert_eq!(client.read_chunk().unwrap(), b"first");
    proxy.signal("TERM");
    refuses_connections(proxy.address());
    server.send("4\r\nlast\r\n0\r\n\r\n");
    assert_eq!(client.read_chunk().unwrap(), b"last");
    assert_eq!(client.read_chunk(), None);
    assert_eq!(proxy.wait().status.code(), Some(0));
}

#[test]
fn an_idle_connection_is_closed_by_the_drain() {
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let proxy = Proxy::start(&rest_only(&upstream));
    let mut client = proxy.connect();
    client.send(CALL);
    assert_eq!(client.read_answer().status(), 204);
    let mut silent = proxy.connect();
    // The silent connection is accepted before the drain begins.
    let open = || proxy.metrics().value("dualgauge_client_connections");
    becomes(open, &2.0);
    proxy.signal("INT");
    client.expect_closed();
    silent.expect_closed();
    assert_eq!(proxy.wait().status.code(), Some(0));
}

#[test]
fn a_call_on_an_idle_connection_is_answered_during_the_drain_and_ends_it() {
    let upstream = Upstream::answering("HTTP/1.1 204 No Content\r\n\r\n");
    let proxy = Proxy::start(&with_drain(&upstream, "10m"));
    let mut clients = [proxy.connect(), proxy.connect()];
    for client in &mut clients {
        client.send(CALL);
        assert_eq!(client.read_answer().status(), 204);
    }
    proxy.signal("TERM");
    refuses_connections(proxy.address());
    for client in &mut clients {
        client.send(CALL);
        let answer = client.read_answer();
        assert_eq!(answer.status(), 204);
        assert_eq!(answer.head.one("connection"), Some("close"));
        client.expect_closed();
    }
    assert_eq!(proxy.wait().status.code(), Some(0));
}

#[test]
fn a_call_that_ends_during_the_drain_is_part_of_usage() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTE);
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = upstream.accept();
    let id = server.read_request().json()["id"].clone();
    proxy.signal("TERM");
    refuses_connections(proxy.address());
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    server.send(crate::scene::json(&body));
    assert_eq!(client.read_answer().status(), 200);
    let proxy = proxy.run_again();
    let usage = proxy.ask("GET", "/api/v1/usage", "").json();
    let new = &usage["routes"][0]["callers"][0]["new"];
    assert_eq!(new["calls"], 1, "{usage}");
}

#[test]
fn a_call_that_the_end_of_the_drain_cuts_is_part_of_usage() {
    let upstream = Upstream::start();
    let more = format!("{ROUTE}[limits]\ndrain = \"100ms\"\n");
    let proxy = Proxy::start(&format!("{}{more}", both(&upstream, &Upstream::nowhere())));
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = upstream.accept();
    server.read_request();
    let proxy = proxy.restart();
    client.expect_gone();
    let usage = proxy.ask("GET", "/api/v1/usage", "").json();
    let old = &usage["routes"][0]["callers"][0]["old"];
    assert_eq!(old["calls"], 1, "{usage}");
}

#[test]
fn the_kill_switch_acts_on_calls_that_begin_during_the_drain() {
    let servers = Servers::start();
    let config = format!("{}[limits]\ndrain = \"10m\"\n", servers.config());
    let proxy = Proxy::start_with_flags(&config, MOVER);
    let request = "GET /things/7 HTTP/1.1\r\nHost: a\r\nx-client-id: mover\r\n\r\n";
    let mut client = proxy.connect();
    client.send(request);
    assert_eq!(client.read_answer().json()["by"], "rpc");
    proxy.signal("TERM");
    refuses_connections(proxy.address());
    assert_eq!(proxy.ask("PUT", "/api/v1/kill", "{}").status(), 200);
    client.send(request);
    assert_eq!(client.read_answer().json()["by"], "rest");
    client.expect_closed();
    assert_eq!(proxy.wait().status.code(), Some(0));
}

#[test]
fn the_drain_ends_at_its_limit() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&with_drain(&upstream, "300ms"));
    let (mut client, _server) = open_call(&proxy, &upstream);
    let stopped = proxy.stop();
    assert_eq!(stopped.status.code(), Some(0), "{stopped:?}");
    client.expect_gone();
    let said = "calls were still in progress at the end of the drain";
    assert!(stopped.log.contains(said), "{stopped:?}");
    assert!(stopped.log.contains("limit=300ms"), "{stopped:?}");
}

#[test]
fn a_call_that_the_end_of_the_drain_cuts_is_blamed_on_the_proxy() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&with_drain(&upstream, "100ms"));
    let (_client, _server) = open_call(&proxy, &upstream);
    let stopped = proxy.stop();
    let mut lines = stopped.log.lines();
    let line = lines.find(|line| line.contains("path=/slow"));
    let line = line.unwrap_or_else(|| panic!("no line of the call: {stopped:?}"));
    assert!(line.contains("outcome=cut blame=proxy"), "{line}");
}

#[test]
fn translated_calls_are_answered_at_the_end_of_the_drain() {
    let upstream = Upstream::start();
    let more = format!("{ROUTE}[limits]\ndrain = \"300ms\"\n");
    let proxy = before_rpc(&upstream, &more);
    let mut client = proxy.connect();
    client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = upstream.accept();
    server.read_request();
    proxy.signal("TERM");
    let answer = client.read_answer();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.head.one("retry-after"), Some("1"));
    assert_eq!(problem(&answer).0, "draining");
    client.expect_closed();
    server.expect_gone();
    let stopped = proxy.wait();
    assert!(stopped.log.contains("reason=draining"), "{stopped:?}");
    assert!(!stopped.log.contains("still in progress"), "{stopped:?}");
}

#[test]
fn each_translated_call_of_a_batch_is_answered_at_the_end_of_the_drain() {
    let upstream = Upstream::start();
    let more = format!("{ROUTE}[limits]\ndrain = \"300ms\"\n");
    let proxy = before_rest(&upstream, &more);
    let mut client = proxy.connect();
    let batch = format!("[{},{}]", call("a", "{}"), call("a", "{}"));
    let length = batch.len();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{batch}"
    ));
    let mut servers = [upstream.accept(), upstream.accept()];
    for server in &mut servers {
        server.read_request();
    }
    proxy.signal("TERM");
    let answers = client.read_answer().json();
    for answer in answers.as_array().unwrap() {
        assert_eq!(rpc_failure(answer), (-31044, "draining"));
    }
    assert_eq!(answers.as_array().unwrap().len(), 2);
    assert!(proxy.wait().status.success());
}

#[test]
fn calls_whose_bodies_are_not_complete_are_answered_at_the_end_of_the_drain() {
    let upstream = Upstream::nowhere();
    let route = "[[route]]\nname = \"b\"\nrest = \"POST /b\"\nrpc = \"b\"\n";
    let proxy = before_rpc(&upstream, &format!("{route}[limits]\ndrain = \"300ms\"\n"));
    let [mut rest, mut rpc] = ["/b", "/rpc"].map(|path| {
        let mut client = proxy.connect();
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json");
        client.send(format!("{head}\r\nContent-Length: 99\r\n\r\n{{\"id\":"));
        client
    });
    let in_flight = || proxy.metrics().value("dualgauge_calls_in_flight");
    becomes(in_flight, &2.0);
    proxy.signal("TERM");
    let answer = rest.read_answer();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.head.one("retry-after"), Some("1"));
    assert_eq!(problem(&answer).0, "draining");
    let answer = rpc.read_answer();
    assert_eq!(answer.status(), 503);
    assert_eq!(rpc_failure(&answer.json()), (-31044, "draining"));
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
    assert_eq!(
        stopped.log.matches("reason=draining").count(),
        2,
        "{stopped:?}"
    );
}

#[test]
fn a_second_signal_ends_the_program_at_once() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&with_drain(&upstream, "5m"));
    let (_client, _server) = open_call(&proxy, &upstream);
    proxy.signal("TERM");
    proxy.log_line(&["draining; a second signal ends the program at once"]);
    proxy.signal("TERM");
    let stopped = proxy.wait();
    let said = "ended before the drain was over";
    assert!(stopped.log.contains(said), "{stopped:?}");
}
