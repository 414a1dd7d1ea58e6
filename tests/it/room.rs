//! What bodies may take together, and how many calls may wait for a place at a server: beyond it callers are told to come
//! back, and nothing of it is kept.

use crate::scene::{before_rest, before_rpc, body_of, call, json, saying};
use crate::support::{Proxy, Track, Upstream, Wire, becomes, rest_only, rpc_only};
use crate::websocket::ends::accept;

const ROUTES: &str = r#"
[[route]]
name = "things.do"
rest = "POST /do"
rpc = "things/do"
"#;
const TO_RPC: &str = "[rollout.default]\nrest = \"translate\"\n";
const TO_REST: &str = "[rollout.default]\nrpc = \"translate\"\n";
const HELD: &str = "dualgauge_buffered_bytes";

fn held(proxy: &Proxy) -> f64 {
    proxy.metrics().value(HELD)
}

/// A body of JSON that is `length` bytes long.
fn long(length: usize) -> String {
    format!("{{\"a\":\"{}\"}}", "x".repeat(length - 8))
}

fn is_refused(status: u16, retry: Option<&str>) {
    assert_eq!((status, retry), (503, Some("1")));
}

fn counted(proxy: &Proxy) -> f64 {
    let failures = proxy
        .metrics()
        .table("dualgauge_failures_total", &["reason", "blame", "side"]);
    let full = failures
        .iter()
        .filter(|(row, _)| row.contains("memory_full"));
    full.map(|(_, count)| count).sum()
}

#[test]
fn requests_that_have_no_room_together_are_told_to_come_back() {
    let upstream = Upstream::start();
    let proxy = before_rpc(
        &upstream,
        &format!("{ROUTES}{TO_RPC}[limits]\nmemory = \"10KiB\"\n"),
    );
    let json_type = [("Content-Type", "application/json")];
    // One that is served takes its room until it is answered.
    let body = long(8000);
    let mut first = proxy.connect();
    first.send(format!(
        "POST /do HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let mut server = upstream.accept();
    let asked = server.read_request();
    assert_eq!(held(&proxy), 8000.0);
    assert_eq!(
        proxy.metrics().value("dualgauge_buffered_bytes_limit"),
        10_240.0
    );
    let answer = proxy.rest("POST", "/do", &json_type, long(4000));
    is_refused(answer.status(), answer.head.one("retry-after"));
    assert_eq!(answer.json()["reason"], "memory_full");
    // A message of the other face, too.
    let answer = proxy.rpc(call("other", &long(4000)));
    is_refused(answer.status(), answer.head.one("retry-after"));
    assert!(answer.text().contains("memory_full"), "{answer:?}");
    assert_eq!(counted(&proxy), 2.0);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(proxy.ask("GET", path, "").status(), 200, "{path}");
    }
    let id = asked.json()["id"].clone();
    server.send(json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#)));
    assert_eq!(first.read_answer().status(), 200);
    becomes(|| held(&proxy), &0.0);
}

#[test]
fn an_answer_that_has_no_room_is_none() {
    let long = format!(r#""result":"{}""#, "x".repeat(9000));
    let upstream = saying(long.leak());
    let proxy = before_rpc(
        &upstream,
        &format!("{ROUTES}{TO_RPC}[limits]\nmemory = \"4KiB\"\n"),
    );
    let answer = proxy.rest("POST", "/do", &[], "");
    is_refused(answer.status(), answer.head.one("retry-after"));
    becomes(|| held(&proxy), &0.0);
    proxy.log_line(&["reason=memory_full", "blame=proxy"]);
}

#[test]
fn a_body_that_breaks_off_gives_its_room_back() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, &format!("{ROUTES}{TO_RPC}"));
    let mut wire = proxy.connect();
    wire.send(
        "POST /do HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n{\"a\":\"",
    );
    wire.send("x".repeat(50_000));
    becomes(|| held(&proxy) >= 50_000.0, &true);
    drop(wire);
    becomes(|| held(&proxy), &0.0);
}

#[test]
fn an_answer_takes_its_room_until_a_slow_client_has_it() {
    let upstream = Upstream::answering(json(format!("\"{}\"", "x".repeat(12_000_000))));
    let proxy = before_rest(&upstream, &format!("{ROUTES}{TO_REST}"));
    let mut slow = proxy.connect();
    let body = call("things/do", "{}");
    slow.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    slow.read_until("\r\n\r\n");
    assert!(held(&proxy) > 1_000_000.0);
    slow.reset();
    becomes(|| held(&proxy), &0.0);
}

#[test]
fn what_a_slow_client_has_not_taken_of_a_streamed_answer_takes_room() {
    let upstream = Upstream::answering(json("x".repeat(40_000_000)));
    let proxy = Proxy::start(&rest_only(&upstream));
    let mut slow = proxy.connect();
    slow.send("GET /x HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.read_until("\r\n\r\n");
    becomes(|| held(&proxy) >= 16_384.0, &true);
    slow.reset();
    becomes(|| held(&proxy), &0.0);
}

#[test]
fn messages_of_a_websocket_take_room_too() {
    let upstream = saying(r#""result":1"#);
    let config = rpc_only(&upstream);
    let proxy = Proxy::start(&format!(
        "{config}[rpc]\nwebsocket = true\n[limits]\nmemory = \"2KiB\"\n"
    ));
    let mut wire = proxy.connect();
    wire.send(
        "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    assert_eq!(wire.read_head().status(), 101);
    text_frame(&mut wire, &call("other", &long(4000)));
    let said = wire.read_until("memory_full");
    assert!(!said.is_empty());
    becomes(|| held(&proxy), &0.0);
}

/// A text frame of a client, whose mask is zero (RFC 6455 §5.2).
fn text_frame(wire: &mut Wire, text: &str) {
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    wire.send([&[0x81, 0xfe], &length[..], &[0; 4], text.as_bytes()].concat());
}

#[test]
fn an_answer_over_a_link_that_has_no_room_is_none() {
    let server = Upstream::start();
    let proxy = Proxy::start(&format!(
        "[upstream.live]\nside = \"rpc\"\nurl = \"ws://{}/x\"\n[limits]\nmemory = \"4KiB\"\n",
        server.address()
    ));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut end = accept(&server);
            let heard = end.hear();
            let long = "x".repeat(9000);
            end.say(
                serde_json::json!({"jsonrpc": "2.0", "id": heard["id"], "result": long})
                    .to_string(),
            );
            let heard = end.hear();
            end.echo(&heard);
        });
        let answer = proxy.rpc(call("other", "{}"));
        is_refused(answer.status(), answer.head.one("retry-after"));
        becomes(|| held(&proxy), &0.0);
        assert_eq!(proxy.rpc(call("other", "{}")).status(), 200);
        becomes(|| held(&proxy), &0.0);
    });
}

#[test]
fn no_more_calls_wait_for_a_place_at_a_server_than_may() {
    let upstream = Upstream::start();
    let keys = "connections = 1\nqueue = 1\n";
    let proxy = Proxy::start(&format!("{}{keys}", rest_only(&upstream)));
    let track = Track { proxy, upstream };
    let get = "GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let mut open = track.open(get);
    let mut waits = track.proxy.connect();
    waits.send(get);
    let calls = |state: &str| {
        let series =
            format!("dualgauge_upstream_calls_in_flight{{upstream=\"old\",state=\"{state}\"}}");
        track.proxy.metrics().value(&series)
    };
    becomes(|| (calls("sent"), calls("waiting")), &(1.0, 1.0));
    let limit = "dualgauge_upstream_calls_in_flight_limit{upstream=\"old\"}";
    assert_eq!(track.proxy.metrics().value(limit), 1.0);
    let answer = track.proxy.rest("GET", "/y", &[], "");
    assert_eq!(answer.head.one("retry-after"), Some("1"));
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.json()["reason"], "upstream_busy");
    // The one that waits is served when its turn comes.
    open.server.send(json("1"));
    assert_eq!(open.client.read_answer().status(), 200);
    open.server.read_request();
    open.server.send(json("2"));
    assert_eq!(body_of(&waits.read_answer(), 200), "2");
    becomes(|| (calls("sent"), calls("waiting")), &(0.0, 0.0));
    // One that goes away waits no longer.
    open.client.send(get);
    open.server.read_request();
    let mut waits = track.proxy.connect();
    waits.send(get);
    becomes(|| calls("waiting"), &1.0);
    drop(waits);
    becomes(|| calls("waiting"), &0.0);
    open.server.send(json("3"));
    assert_eq!(open.client.read_answer().status(), 200);
}

#[test]
fn a_call_waits_for_a_place_as_long_as_queue_timeout_says() {
    let upstream = Upstream::start();
    // Any other time would hold the second call for longer than the client of this test waits.
    let keys =
        "connections = 1\ntimeout = \"1h\"\nconnect_timeout = \"1h\"\nqueue_timeout = \"50ms\"\n";
    let proxy = Proxy::start(&format!("{}{keys}", rest_only(&upstream)));
    let track = Track { proxy, upstream };
    let mut open = track.open("GET /x HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let refused = track.proxy.rest("GET", "/y", &[], "");
    is_refused(refused.status(), refused.head.one("retry-after"));
    assert_eq!(refused.json()["reason"], "upstream_busy");
    open.server.send(json("1"));
    assert_eq!(open.client.read_answer().status(), 200);
}

#[test]
fn the_limits_of_all_workers_are_the_limit_of_the_process() {
    let upstream = Upstream::answering(json("1"));
    for (workers, said, whole) in [(3, 10, 10.0), (4, 2, 4.0), (1, 7, 7.0)] {
        let config = rest_only(&upstream).replace("workers = 1", &format!("workers = {workers}"));
        let limits = format!("[limits]\nin_flight = {said}\nconnections = {said}\n");
        let metrics = Proxy::start(&format!("{config}{limits}")).metrics();
        for name in ["calls_in_flight_limit", "client_connections_limit"] {
            assert_eq!(metrics.value(&format!("dualgauge_{name}")), whole, "{name}");
        }
    }
}
