//! Clients that speak JSON-RPC, before a server that speaks in frames.

use serde_json::{Value, json};

use super::{ask, get_file, of_frames, start, strays};
use crate::scene::{call, rpc_failure};
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{End, accept, accept_asked, connect};

const SOCKETS: &str = r#"dualgauge_upstream_connections{side="rest"}"#;

/// What a metric of links says of the server.
fn link(proxy: &Proxy, series: &str) -> f64 {
    let (name, labels) = series.split_once(' ').unwrap_or((series, ""));
    proxy.metrics().value(&format!(
        r#"dualgauge_link_{name}{{upstream="frames"{labels}}}"#
    ))
}

fn before(upstream: &Upstream, keys: &str) -> Proxy {
    start(&of_frames(upstream, keys))
}

fn answer_file(server: &mut End, command: &Value) {
    let (id, payload) = (&command["request_id"], &command["payload"]);
    server.say(json!({"event": "file", "request_id": id, "payload": payload}).to_string());
}

#[test]
fn a_call_is_a_command_whose_answer_is_found_by_its_id() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "headers = { Authorization = \"Bearer ours\" }\n");
    let mut client = connect(&proxy);
    let (mut server, asked) = accept_asked(&upstream);
    assert_eq!(asked.uri().path(), "/legacy");
    assert_eq!(asked.headers()["authorization"], "Bearer ours");
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    ask(&mut client, 2, ("file/get", json!({"path": "b"})));
    let (one, two) = (server.hear(), server.hear());
    assert_eq!(one["command"], "get_file");
    assert_ne!(one["request_id"], two["request_id"]);
    answer_file(&mut server, &two);
    let failed =
        json!({"event": "error", "payload": {"message": "gone"}, "request_id": one["request_id"]});
    server.say(failed.to_string());
    let heard = [client.hear(), client.hear()];
    assert_eq!(
        (&heard[0]["id"], &heard[0]["result"]),
        (&json!(2), &json!({"path": "b"}))
    );
    assert_eq!(heard[1]["id"], 1);
    assert_eq!(
        heard[1]["error"],
        json!({"code": -32603, "message": "gone"})
    );
    proxy.log_line(&["route=file", "side=rpc", "outcome=success"]);
    assert_eq!(proxy.metrics().value(SOCKETS), 1.0);
}

#[test]
fn what_bears_no_id_is_found_by_its_type_its_session_and_its_silence() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 1, ("agent/run", json!({})));
    ask(&mut client, 2, ("session/watch", json!({"session": "one"})));
    ask(&mut client, 3, ("session/watch", json!({"session": "two"})));
    for _ in 0..3 {
        server.hear();
    }
    server.say(r#"{"event":"watched","payload":{"session":"two"}}"#);
    server.say(r#"{"event":"watched","payload":{"session":"one"}}"#);
    let heard = [client.hear(), client.hear(), client.hear()];
    let ids: Vec<_> = heard.iter().map(|answer| answer["id"].as_u64()).collect();
    assert_eq!(ids, [Some(3), Some(2), Some(1)]);
    assert_eq!(heard[2]["result"], json!({"status": "started"}));
    // A failure comes within the silence.
    ask(&mut client, 4, ("agent/run", json!({})));
    let id = server.hear()["request_id"].clone();
    server.say(
        json!({"event": "error", "payload": {"message": "busy"}, "request_id": id}).to_string(),
    );
    assert_eq!(client.hear()["error"]["message"], "busy");
}

#[test]
fn events_of_the_server_are_notifications() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    let heard = server.hear();
    server.say(r#"{"event":"warning","payload":{}}"#);
    server.say(r#"{"event":"log","payload":{"line":1.50}}"#);
    server.say("noise");
    answer_file(&mut server, &heard);
    server.say(r#"{"event":"heartbeat"}"#);
    let heard = [client.hear_text(), client.hear_text(), client.hear_text()];
    assert_eq!(
        heard,
        [
            r#"{"jsonrpc":"2.0","method":"event/log","params":{"line":1.50}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"path":"a"}}"#,
            r#"{"event":"heartbeat"}"#,
        ]
    );
    assert_eq!(strays(&proxy, "noise"), 1.0);
}

#[test]
fn a_server_that_never_answers_is_late_and_so_is_its_answer() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "timeout = \"300ms\"\n");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    let one = server.hear();
    assert_eq!(rpc_failure(&client.hear()), (-31022, "upstream_timeout"));
    ask(&mut client, 2, ("file/get", json!({"path": "b"})));
    let two = server.hear();
    answer_file(&mut server, &one);
    answer_file(&mut server, &two);
    assert_eq!(client.hear()["result"]["path"], "b");
    becomes(|| strays(&proxy, "late"), &1.0);
}

#[test]
fn a_socket_that_drops_fails_its_calls_lets_the_client_go_and_the_next_one_opens_another() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    for id in 1..=2 {
        ask(&mut client, id, ("file/get", json!({"path": "a"})));
        server.hear();
    }
    drop(server);
    for _ in 1..=2 {
        assert_eq!(rpc_failure(&client.hear()), (-31023, "upstream_cut"));
    }
    // What the server knew of the client is gone, and nothing but this says so.
    let gone = (1001, "the server is gone".to_owned());
    assert_eq!(client.farewell(), Some(gone));
    let mut client = connect(&proxy);
    ask(&mut client, 3, ("file/get", json!({"path": "c"})));
    let mut server = accept(&upstream);
    let heard = server.hear();
    answer_file(&mut server, &heard);
    assert_eq!(client.hear()["result"]["path"], "c");
    proxy.log_line(&["legacy socket lost", "upstream=frames"]);
}

#[test]
fn each_client_has_a_socket_for_itself_and_there_are_not_too_many() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "connections = 2\n");
    let mut clients = [connect(&proxy), connect(&proxy)];
    let mut servers = Vec::new();
    for (place, client) in clients.iter_mut().enumerate() {
        let mut server = accept(&upstream);
        ask(client, 1, ("file/get", json!({"path": place.to_string()})));
        let heard = server.hear();
        answer_file(&mut server, &heard);
        assert_eq!(client.hear()["result"]["path"], place.to_string());
        servers.push(server);
    }
    let answer = proxy.rpc(call("file/get", r#"{"path":"a"}"#)).json();
    assert_eq!(rpc_failure(&answer), (-31041, "upstream_busy"));
    let [first, _second] = clients;
    drop(first);
    assert_eq!(servers.remove(0).end(), Some(1001));
    becomes(|| proxy.metrics().value(SOCKETS), &1.0);
}

#[test]
fn a_call_that_is_posted_has_a_socket_for_as_long_as_its_connection() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut wire = proxy.connect();
    let post = |path: &str| {
        let body = call("file/get", &format!(r#"{{"path":"{path}"}}"#));
        format!(
            "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    wire.send(post("a"));
    let mut server = accept(&upstream);
    for path in ["a", "b"] {
        let heard = server.hear();
        assert_eq!(heard["payload"]["path"], path);
        answer_file(&mut server, &heard);
        assert_eq!(wire.read_answer().json()["result"]["path"], path);
        if path == "a" {
            wire.send(post("b"));
        }
    }
    drop(wire);
    assert_eq!(server.end(), Some(1001));
}

#[test]
fn a_client_that_goes_away_ends_its_socket_and_leaves_nothing() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    server.hear();
    drop(client);
    assert_eq!(server.end(), Some(1001));
    becomes(|| proxy.metrics().value(SOCKETS), &0.0);
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn the_drain_waits_for_the_last_answer() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    let heard = server.hear();
    proxy.signal("TERM");
    answer_file(&mut server, &heard);
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(client.end(), Some(1001));
    assert_eq!(server.end(), Some(1001));
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_server_that_is_away_is_told_of_and_lets_a_client_of_frames_go() {
    let upstream = Upstream::nowhere();
    let proxy = before(&upstream, "");
    let answer = proxy.rpc(call("file/get", r#"{"path":"a"}"#)).json();
    assert_eq!(rpc_failure(&answer), (-31021, "upstream_unreachable"));
    let mut client = connect(&proxy);
    get_file(&mut client, "1", "a");
    assert_eq!(client.end(), Some(1001));
}

#[test]
fn a_silent_server_is_given_up() {
    let upstream = Upstream::start();
    let proxy = before(
        &upstream,
        "heartbeat = \"100ms\"\nheartbeat_timeout = \"200ms\"\n",
    );
    let mut client = connect(&proxy);
    let server = accept(&upstream);
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    // This end reads nothing, and so answers no ping.
    assert_eq!(rpc_failure(&client.hear()), (-31023, "upstream_cut"));
    proxy.log_line(&["legacy socket lost", "did not answer a ping in time"]);
    drop(server);
}

#[test]
fn sockets_of_frames_are_among_the_links() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "timeout = \"20s\"\n");
    // Nobody has asked for one yet, which is no fault of the server.
    assert_eq!(link(&proxy, "up"), 1.0);
    assert_eq!(link(&proxy, "starts_total"), 0.0);
    let mut clients = [connect(&proxy), connect(&proxy)];
    let mut servers = [accept(&upstream), accept(&upstream)];
    // The second is no restart: it is another client's.
    becomes(|| link(&proxy, "starts_total"), &1.0);
    let mut heard = Vec::new();
    for (client, place) in clients.iter_mut().zip(0..) {
        ask(client, place, ("file/get", json!({"path": "a"})));
    }
    for server in &mut servers {
        heard.push(server.hear());
    }
    let written = || link(&proxy, r#"calls_in_flight ,state="written""#);
    becomes(written, &2.0);
    for (server, heard) in servers.iter_mut().zip(&heard) {
        server.say(r#"{"event":"log","payload":{}}"#);
        answer_file(server, heard);
        answer_file(server, heard);
        server.say("noise");
    }
    becomes(written, &0.0);
    let strays = |kind: &str| link(&proxy, &format!(r#"strays_total ,kind="{kind}""#));
    becomes(|| strays("late"), &2.0);
    becomes(|| strays("skipped"), &2.0);
    becomes(|| strays("notified"), &2.0);
    let told = || link(&proxy, r#"notifications_total ,fate="told""#);
    becomes(told, &2.0);
    let [first, _second] = servers;
    drop(first);
    let [client, _other] = clients;
    assert_eq!(client.end(), Some(1001));
    let _client = connect(&proxy);
    let _server = accept(&upstream);
    becomes(|| link(&proxy, "starts_total"), &2.0);
    assert_eq!(link(&proxy, "up"), 1.0);
}

#[test]
fn a_server_of_frames_that_is_away_is_a_link_that_is_down() {
    let upstream = Upstream::nowhere();
    let proxy = before(&upstream, "");
    for failures in 1..=2 {
        proxy.rpc(call("file/get", r#"{"path":"a"}"#));
        assert_eq!(link(&proxy, "up"), 0.0);
        assert_eq!(link(&proxy, "starts_total"), f64::from(failures));
    }
    let upstream = upstream.appears();
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    let heard = server.hear();
    answer_file(&mut server, &heard);
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(link(&proxy, "up"), 1.0);
}

#[test]
fn the_end_of_the_drain_ends_each_call_that_is_open_in_frames() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "[limits]\ndrain = \"300ms\"\n");
    let mut calls = connect(&proxy);
    let mut server_of_calls = accept(&upstream);
    ask(&mut calls, 1, ("file/get", json!({"path": "a"})));
    server_of_calls.hear();
    let mut frames = connect(&proxy);
    let mut server_of_frames = accept(&upstream);
    get_file(&mut frames, "own", "a");
    server_of_frames.hear();
    proxy.signal("TERM");
    // A call that is translated is answered, and its connection closed.
    assert_eq!(calls.hear()["error"]["code"], -31044);
    assert_eq!(calls.farewell(), Some((1001, "the program ends".into())));
    server_of_calls.farewell();
    // Nobody is left who could say why: what passes ends as it is.
    for end in [frames, server_of_frames] {
        assert_eq!(end.farewell(), None);
    }
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
    let lines = stopped.log.lines();
    let cut = lines.filter(|line| line.contains("outcome=cut blame=proxy"));
    let cut: Vec<&str> = cut.collect();
    assert_eq!(cut.len(), 1, "{cut:?}");
    assert!(cut[0].contains("side=rest"), "{cut:?}");
    assert!(stopped.log.contains("reason=draining"), "{stopped:?}");
}

#[test]
fn a_silence_is_a_success_of_its_own_content_in_its_own_time() {
    let upstream = Upstream::start();
    let proxy = before(&upstream, "");
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    ask(&mut client, 9, ("agent/run", json!({})));
    let command = server.hear();
    assert_eq!(command["command"], "run");
    // Neither an event of others nor somebody else's answer is a word to this.
    server.say(r#"{"event":"log","payload":{"line":1}}"#);
    assert_eq!(client.hear()["method"], "event/log");
    assert_eq!(
        client.hear_text(),
        r#"{"jsonrpc":"2.0","id":9,"result":{"status":"started"}}"#
    );
    let line = proxy.log_line(&["route=run", "side=rpc", "outcome=success"]);
    let took = line.split_once("duration_ms=").unwrap().1;
    let took: f64 = took.split(' ').next().unwrap().parse().unwrap();
    // So long is a silence; without it the call would have waited for its 30 s.
    assert!((200.0..10_000.0).contains(&took), "{line}");
    // What comes now is late, and answers nothing.
    let id = &command["request_id"];
    server
        .say(json!({"event": "error", "payload": {"message": "no"}, "request_id": id}).to_string());
    becomes(|| strays(&proxy, "late"), &1.0);
}
