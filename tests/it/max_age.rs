//! Connections that live long end at their age: tunnels and streams where they stand, sockets when their calls are
//! answered, kept connections before their next call.

use serde_json::{Value, json};

use crate::support::{End, Proxy, Track, Upstream, becomes, rest_only};
use crate::websocket::ends::{self, accept, connect};
use crate::websocket::{before, result};

const GET: &str = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

fn track(keys: &str) -> Track {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}{keys}\n", rest_only(&upstream)));
    Track { proxy, upstream }
}

/// More than any age here: a call that is not answered in its time is the clock.
fn a_while() {
    let clock = Upstream::start();
    let waits = Proxy::start(&format!("{}timeout = \"600ms\"\n", rest_only(&clock)));
    assert_eq!(waits.rest("GET", "/", &[], "").status(), 504);
}

#[test]
fn a_tunnel_ends_at_its_age_however_busy_it_is_and_that_is_no_fault() {
    let track = track("max_age = \"300ms\"");
    let mut open =
        track.open("GET /u HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    open.server
        .send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    open.client.read_head();
    while open.server.try_send("beat").is_ok() {
        std::thread::yield_now();
    }
    assert_eq!(open.client.read_rest().1, End::Closed);
    let line = track.proxy.log_line(&["path=/u ", "status=101"]);
    assert!(line.contains("outcome=success"), "{line}");
}

#[test]
fn a_stream_of_no_route_ends_behind_an_event() {
    let track = track("max_age = \"300ms\"");
    let mut open = track.open(GET);
    open.server
        .send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: half");
    open.client.read_head();
    assert_eq!(open.client.read_chunk().unwrap(), b"data: half");
    a_while();
    open.server.send("\n\ndata: nex");
    assert_eq!(open.client.read_chunk().unwrap(), b"\n\n");
    assert_eq!(open.client.read_chunk(), None);
    open.server.expect_gone();
}

#[test]
fn a_kept_connection_gets_no_call_at_its_age() {
    let track = track("max_age = \"200ms\"");
    let mut open = track.open(GET);
    open.server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
    a_while();
    open.client.send(GET);
    let mut server = track.upstream.accept();
    server.read_request();
    server.send(OK);
    assert_eq!(open.client.read_answer().text(), "hi");
    open.server.expect_gone();
}

/// A client whose call is open on a socket that all share, and the socket that is there before that one ends.
fn succeeded(upstream: &Upstream) -> (Proxy, ends::End, (ends::End, Value), ends::End) {
    // The new socket has the same maximum age, and must outlive the test on a busy machine.
    let proxy = before(upstream, "max_age = \"5s\"\n[rpc]\nwebsocket = true\n");
    let mut old = accept(upstream);
    let mut client = connect(&proxy);
    client.say(r#"{"jsonrpc":"2.0","id":"a","method":"do"}"#);
    let asked = old.hear();
    let new = accept(upstream);
    becomes(
        || proxy.log().matches("the link is ready").count() >= 2,
        &true,
    );
    (proxy, client, (old, asked), new)
}

#[test]
fn a_socket_that_all_share_is_replaced_before_it_ends() {
    let upstream = Upstream::start();
    let (_proxy, mut client, (mut old, asked), mut new) = succeeded(&upstream);
    // What is asked from then on is asked there.
    client.say(r#"{"jsonrpc":"2.0","id":"b","method":"do"}"#);
    let next = new.hear();
    new.say(result(&next["id"], "2"));
    assert_eq!(client.hear(), json!({"jsonrpc":"2.0","id":"b","result":2}));
    old.say(result(&asked["id"], "1"));
    assert_eq!(client.hear(), json!({"jsonrpc":"2.0","id":"a","result":1}));
    assert_eq!(old.heard(), None);
}

#[test]
fn what_a_server_tells_on_a_socket_and_on_the_one_after_it_is_told_once() {
    let upstream = Upstream::start();
    let (proxy, mut client, (mut old, asked), mut new) = succeeded(&upstream);
    let heard = |of: &str| {
        let series = format!(r#"dualgauge_link_{of}"#);
        proxy.metrics().value(&series)
    };
    let notified = || heard(r#"strays_total{upstream="socket",kind="notified"}"#);
    let told = || heard(r#"notifications_total{upstream="socket",fate="told"}"#);
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    for times in [1.0, 2.0] {
        old.say(changed);
        new.say(changed);
        becomes(notified, &(2.0 * times));
        assert_eq!(client.hear_text(), changed);
        becomes(told, &times);
    }
    // When the old one has ended the new one is heard.
    old.say(result(&asked["id"], "1"));
    assert_eq!(client.hear(), json!({"jsonrpc":"2.0","id":"a","result":1}));
    assert_eq!(old.heard(), None);
    new.say(changed);
    assert_eq!(client.hear_text(), changed);
    becomes(told, &3.0);
}

#[test]
fn a_socket_of_one_client_answers_what_it_was_asked_and_the_next_call_opens_another() {
    let upstream = Upstream::start();
    let keys =
        "sharing = \"client\"\nmax_age = \"200ms\"\ntimeout = \"10s\"\n[rpc]\nwebsocket = true\n";
    let proxy = before(&upstream, keys);
    let mut client = connect(&proxy);
    client.say(r#"{"jsonrpc":"2.0","id":"a","method":"do"}"#);
    let mut old = accept(&upstream);
    let asked = old.hear();
    a_while();
    client.say(r#"{"jsonrpc":"2.0","id":"b","method":"do"}"#);
    let mut new = accept(&upstream);
    let next = new.hear();
    new.say(result(&next["id"], "2"));
    assert_eq!(client.hear(), json!({"jsonrpc":"2.0","id":"b","result":2}));
    old.say(result(&asked["id"], "1"));
    assert_eq!(client.hear(), json!({"jsonrpc":"2.0","id":"a","result":1}));
    assert_eq!(old.heard(), None);
}
