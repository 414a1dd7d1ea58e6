//! What one client sees comes in the order in which its server said it, and nothing of it is lost at an end.

use std::net::TcpStream;

use serde_json::{Value, json};

use super::{ask, get_file, of_frames, start};
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{End, accept, connect};

fn before(upstream: &Upstream) -> Proxy {
    start(&of_frames(upstream, ""))
}

fn answer(server: &mut End, command: &Value) {
    let (id, payload) = (&command["request_id"], &command["payload"]);
    server.say(json!({"event": "file", "request_id": id, "payload": payload}).to_string());
}

fn log(line: u64) -> String {
    json!({"event": "log", "payload": {"line": line}}).to_string()
}

#[test]
fn answers_and_events_come_in_the_order_of_the_server_to_a_client_of_either_protocol() {
    let upstream = Upstream::start();
    let proxy = before(&upstream);
    for speaks_frames in [false, true] {
        let mut client = connect(&proxy);
        let mut server = accept(&upstream);
        for round in 0..40 {
            // One of the client's calls is asked in frames, the other over JSON-RPC.
            let frames_first = speaks_frames ^ (round % 2 == 1 && round > 2);
            match frames_first {
                true => get_file(&mut client, "own", "a"),
                false => ask(&mut client, round, ("file/get", json!({"path": "a"}))),
            }
            let asked = server.hear();
            server.say(log(1));
            server.say(log(2));
            answer(&mut server, &asked);
            server.say(log(3));
            let heard = [(); 4].map(|()| client.hear());
            let shown = heard.clone().map(|said| {
                let event = said.get("payload").or(said.get("params")).cloned();
                let line = event.and_then(|event| event["line"].as_u64());
                line.unwrap_or(0)
            });
            assert_eq!(shown, [1, 2, 0, 3], "{round}: {heard:?}");
        }
    }
}

#[test]
fn the_drain_waits_for_the_answer_to_a_command_that_passes() {
    let upstream = Upstream::start();
    let proxy = before(&upstream);
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    get_file(&mut client, "mine", "a");
    let asked = server.hear();
    let address = proxy.address();
    proxy.signal("TERM");
    proxy.log_line(&["draining"]);
    becomes(|| TcpStream::connect(address).is_err(), &true);
    server.say(log(1));
    answer(&mut server, &asked);
    assert_eq!(client.hear_text(), log(1));
    assert_eq!(client.hear()["request_id"], "mine");
    assert_eq!(client.end(), Some(1001));
    assert_eq!(server.end(), Some(1001));
    proxy.log_line(&["route=file", "stage=passthrough", "outcome=success"]);
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_client_that_reads_slowly_hears_all_and_is_let_go_at_the_end() {
    let upstream = Upstream::start();
    let proxy = before(&upstream);
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    get_file(&mut client, "mine", "a");
    let asked = server.hear();
    // More than sockets keep for one that does not read, and then as many as wait for the client.
    let load = "x".repeat(15 * 1024 * 1024);
    server.say(json!({"event": "log", "payload": {"load": load}}).to_string());
    for line in 0..63 {
        server.say(log(line));
    }
    answer(&mut server, &asked);
    drop(server);
    proxy.log_line(&["legacy socket lost"]);
    assert_eq!(client.hear()["event"], "log");
    for line in 0..63 {
        assert_eq!(client.hear_text(), log(line));
    }
    assert_eq!(client.hear()["request_id"], "mine");
    assert_eq!(client.end(), Some(1001));
}

#[test]
fn a_client_of_frames_that_goes_away_is_nobodys_fault_but_its_own() {
    let upstream = Upstream::start();
    let proxy = before(&upstream);
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    get_file(&mut client, "mine", "a");
    server.hear();
    drop(client);
    assert_eq!(server.end(), Some(1001));
    let line = proxy.log_line(&["route=file", "stage=passthrough", "outcome="]);
    assert!(line.contains("outcome=cancelled"), "{line}");
    assert!(line.contains("blame=client"), "{line}");
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}

#[test]
fn ids_that_the_proxy_gives_are_never_those_of_the_client() {
    let upstream = Upstream::start();
    let proxy = before(&upstream);
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    for own in ["1", "2", "3"] {
        get_file(&mut client, own, own);
        server.hear();
        ask(&mut client, 9, ("file/get", json!({"path": "b"})));
        let given = server.hear();
        assert!(given["request_id"].as_str().unwrap().len() > 9, "{given}");
        answer(&mut server, &given);
        let heard = client.hear();
        assert_eq!(
            (&heard["id"], &heard["result"]["path"]),
            (&json!(9), &json!("b"))
        );
    }
    // One that takes the id of a call under way is told that it cannot be sent now.
    ask(&mut client, 10, ("file/get", json!({"path": "c"})));
    let given = server.hear();
    let id = given["request_id"].as_str().unwrap();
    get_file(&mut client, id, "stolen");
    let refused = client.hear();
    assert_eq!(
        (&refused["event"], &refused["request_id"]),
        (&json!("error"), &given["request_id"])
    );
    proxy.log_line(&["route=file", "stage=passthrough", "upstream_busy"]);
    answer(&mut server, &given);
    assert_eq!(client.hear()["result"]["path"], "c");
}
