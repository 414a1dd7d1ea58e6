//! JSON-RPC over WebSockets: a server behind the proxy that speaks it, and clients that do.

mod clients;
pub(crate) mod ends;
mod login;
mod revisions;
mod several;
mod subscriptions;
pub(crate) mod told;

use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use crate::scene::{body_of, call, problem, rpc_failure};
use crate::support::{Proxy, Upstream, Wire, becomes};
use ends::{accept, accept_asked};

const ROUTE: &str = "\n[[route]]\nname = \"ask\"\nrest = \"POST /ask/{what}\"\nrpc = \"ask\"\n\
    params = { what = \"{what}\" }\n\
    [[route.outcome]]\nrest = { status = 200, body = { said = \"{said}\" } }\n\
    rpc = { result = { got = { what = \"{said}\" } } }\n";

const IN_FLIGHT: &str = r#"dualgauge_link_calls_in_flight{upstream="socket",state="written"}"#;

/// Two workers before one socket, with more keys of its upstream.
pub(crate) fn before(upstream: &Upstream, keys: &str) -> Proxy {
    let address = upstream.address();
    Proxy::start(&format!(
        "[listen]\nworkers = 2\n[upstream.socket]\nside = \"rpc\"\nurl = \"ws://{address}/live\"\n{keys}"
    ))
}

/// Posts a call, and does not wait for its answer.
fn post(proxy: &Proxy, body: &str) -> Wire {
    let mut wire = proxy.connect();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer mine\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    wire
}

fn metric(proxy: &Proxy, series: &str) -> f64 {
    proxy.metrics().value(series)
}

fn strays(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_link_strays_total{{upstream="socket",kind="{kind}"}}"#);
    metric(proxy, &series)
}

fn failure(wire: &mut Wire) -> (i64, String) {
    let answer = wire.read_answer().json();
    let (code, reason) = rpc_failure(&answer);
    (code, reason.to_owned())
}

pub(crate) fn result(id: &Value, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

#[test]
fn posted_calls_share_a_socket_and_keep_their_ids() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "headers = { Authorization = \"Bearer ours\" }\n");
    let (mut server, asked) = accept_asked(&upstream);
    assert_eq!(asked.uri().path(), "/live");
    assert_eq!(asked.headers()["authorization"], "Bearer ours");
    assert_eq!(
        asked.headers()["host"],
        upstream.address().to_string().as_str()
    );
    for id in ["7", "\"a\\u0062\"", "1.50", "null"] {
        let body = format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"do","params":{{"n":1.0}}}}"#);
        let mut client = post(&proxy, &body);
        let text = server.hear_text();
        let heard: Value = serde_json::from_str(&text).unwrap();
        assert!(heard["id"].is_u64() && text.contains("1.0"), "{text}");
        server.say(result(&heard["id"], "[1.50]"));
        let wanted = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":[1.50]}}"#);
        assert_eq!(body_of(&client.read_answer(), 200), wanted);
    }
    // A notification is one message, and nothing waits for an answer.
    let told = r#"{"jsonrpc":"2.0","method":"told"}"#;
    assert_eq!(proxy.rpc(told).status(), 204);
    assert_eq!(server.hear_text(), told);
    assert_eq!(metric(&proxy, IN_FLIGHT), 0.0);
    assert!(!proxy.log().contains("ours"), "{}", proxy.log());
}

#[test]
fn a_byte_order_mark_before_a_message_is_ignored() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "[rpc]\nwebsocket = true\n");
    let mut server = accept(&upstream);
    let mut client = ends::connect(&proxy);
    client.say("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"do\"}");
    let heard = server.hear();
    server.say(format!("\u{feff}{}", result(&heard["id"], "[1]")));
    assert_eq!(
        client.hear_text(),
        r#"{"jsonrpc":"2.0","id":5,"result":[1]}"#
    );
}

#[test]
fn rest_clients_are_translated_for_a_socket() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, ROUTE);
    let mut server = accept(&upstream);
    let mut client = proxy.connect();
    client.send("POST /ask/now%20then HTTP/1.1\r\nHost: a\r\n\r\n");
    let heard = server.hear();
    assert_eq!(heard["method"], "ask");
    server.echo(&heard);
    assert_eq!(
        body_of(&client.read_answer(), 200),
        r#"{"said":"now then"}"#
    );
}

#[test]
fn answers_come_in_any_order_shape_and_company() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let mut first = post(&proxy, &call("do", "[1]"));
    let one = server.hear();
    let mut second = post(&proxy, &call("do", "[2]"));
    let two = server.hear();
    assert_eq!(
        (&one["params"][0], &two["params"][0]),
        (&1.into(), &2.into())
    );
    // What nobody has asked for goes to nobody.
    server.say(r#"{"jsonrpc":"2.0","method":"event/x","params":{}}"#);
    server.say("no JSON");
    server.say(result(&9_999.into(), "\"foreign\""));
    server.say(r#"{"jsonrpc":"2.0","id":"s","method":"roots/list"}"#);
    assert_eq!(server.hear()["error"]["code"], -32601);
    server.say_in_pieces(&result(&two["id"], "\"in pieces\""), 7);
    assert_eq!(second.read_answer().json()["result"], "in pieces");
    server.send(Message::binary(
        result(&one["id"], "\"binary\"").into_bytes(),
    ));
    assert_eq!(first.read_answer().json()["result"], "binary");
    server.say(result(&one["id"], "\"again\""));
    for (kind, count) in [
        ("foreign", 2.0),
        ("declined", 1.0),
        ("notified", 1.0),
        ("skipped", 1.0),
    ] {
        becomes(|| strays(&proxy, kind), &count);
    }
}

#[test]
fn a_late_answer_reaches_nobody() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "timeout = \"300ms\"\n");
    let mut server = accept(&upstream);
    let mut first = post(&proxy, &call("do", "[1]"));
    let one = server.hear();
    assert_eq!(failure(&mut first), (-31022, "upstream_timeout".to_owned()));
    let mut second = post(&proxy, &call("do", "[2]"));
    let two = server.hear();
    server.echo(&one);
    server.echo(&two);
    assert_eq!(second.read_answer().json()["result"]["got"][0], 2);
    becomes(|| strays(&proxy, "late"), &1.0);
    assert_eq!(metric(&proxy, IN_FLIGHT), 0.0);
}

#[test]
fn a_socket_that_drops_fails_its_calls_at_once_and_is_opened_again() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "handshake = \"mcp\"\n");
    let mut server = accept(&upstream);
    server.greet();
    let mut clients: Vec<Wire> = (0..3).map(|_| post(&proxy, &call("do", "{}"))).collect();
    for _ in &clients {
        server.hear();
    }
    drop(server);
    for client in &mut clients {
        assert_eq!(failure(client), (-31023, "upstream_cut".to_owned()));
    }
    let mut server = accept(&upstream);
    // It waits until the server has greeted.
    let mut client = post(&proxy, &call("do", "[7]"));
    server.greet();
    let heard = server.hear();
    server.echo(&heard);
    assert_eq!(client.read_answer().json()["result"]["got"][0], 7);
    proxy.log_line(&["the link is lost", "upstream=socket"]);
    let starts = r#"dualgauge_link_starts_total{upstream="socket"}"#;
    assert_eq!(metric(&proxy, starts), 2.0);
}

#[test]
fn a_server_that_is_away_is_told_of() {
    let upstream = Upstream::nowhere();
    let proxy = before(&upstream, &format!("connect_timeout = \"200ms\"\n{ROUTE}"));
    let answer = proxy.rpc(call("do", "{}")).json();
    assert_eq!(rpc_failure(&answer), (-31021, "upstream_unreachable"));
    let answer = proxy.rest("POST", "/ask/x", &[], "");
    assert_eq!(problem(&answer).0, "upstream_unreachable");
    proxy.log_line(&["the link is lost", "cannot be reached"]);
}

#[test]
fn a_server_that_gives_no_websocket_is_none() {
    let upstream = Upstream::answering("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
    let proxy = before(&upstream, "connect_timeout = \"200ms\"\n");
    let answer = proxy.rpc(call("do", "{}")).json();
    assert_eq!(rpc_failure(&answer), (-31021, "upstream_unreachable"));
    proxy.log_line(&["the link is lost", "401"]);
}

#[test]
fn pings_of_the_server_are_answered_and_a_silent_one_is_given_up() {
    let upstream = Upstream::start();
    let keys = "heartbeat = \"100ms\"\nheartbeat_timeout = \"200ms\"\n";
    let proxy = before(&upstream, keys);
    let mut server = accept(&upstream);
    server.send(Message::Ping("x".into()));
    let answered = loop {
        let message = server.next();
        if let Message::Pong(text) = message {
            break text;
        }
        // One of the proxy's own, which the library answers.
        assert!(matches!(message, Message::Ping(_)), "{message:?}");
    };
    assert_eq!(answered, "x");
    // This end reads no more, and so answers no ping.
    let next = accept(&upstream);
    proxy.log_line(&["the link is lost", "did not answer a ping in time"]);
    drop((server, next));
}

#[test]
fn a_message_that_is_too_long_or_no_text_ends_the_socket() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "message_limit = \"1KiB\"\n");
    let mut server = accept(&upstream);
    let mut client = post(&proxy, &call("do", "{}"));
    let heard = server.hear();
    let long = format!("\"{}\"", "x".repeat(2000));
    server.say(result(&heard["id"], &long));
    assert_eq!(
        failure(&mut client),
        (-31030, "upstream_too_large".to_owned())
    );
    assert_eq!(server.end(), Some(1009));
    let mut server = accept(&upstream);
    let mut client = post(&proxy, &call("do", "{}"));
    server.hear();
    server.say_raw(b"\x81\x02\xff\xfe");
    assert_eq!(failure(&mut client), (-31023, "upstream_cut".to_owned()));
    assert_eq!(server.end(), Some(1007));
    let mut server = accept(&upstream);
    server.say_raw(b"\xf1\x00");
    assert_eq!(server.end(), Some(1002));
}

#[test]
fn a_client_that_goes_away_leaves_nothing_in_flight() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut server = accept(&upstream);
    let client = post(&proxy, &call("do", "{}"));
    let heard = server.hear();
    becomes(|| metric(&proxy, IN_FLIGHT), &1.0);
    drop(client);
    becomes(|| metric(&proxy, IN_FLIGHT), &0.0);
    server.echo(&heard);
    becomes(|| strays(&proxy, "late"), &1.0);
}
