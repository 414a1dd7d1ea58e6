//! `config/cdev.toml` before the socket that speaks both protocols, and REST clients before it: what it says to each of
//! them, what it says to nobody, and how a client is moved from one protocol to the other.

use std::fs;
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use super::calls::{ask, play};
use super::cdev_socket::{agent_calls, before_legacy, other_calls, parsed, proxy, timeless};
use super::fake_cdev::{Generation, go, said_by};
use super::fake_cdev_dual::{Dual, HEARTBEAT};
use super::fake_cdev_socket::{EVENTS, legacy, of_commands};
use super::servers::config;
use crate::scene::{Called, body_of, call, rpc_failure};
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{End, accept, connect, connect_at};

/// The server's end of a socket.
struct Server {
    end: End,
    socket: Dual,
}

impl Server {
    fn of(upstream: &Upstream) -> Server {
        Server {
            end: accept(upstream),
            socket: Dual::new(of_commands),
        }
    }

    /// Takes one message, and answers it.
    fn takes(&mut self) -> String {
        let heard = self.end.hear_text();
        for said in self.socket.hears(&heard) {
            self.end.say(said);
        }
        heard
    }

    fn tells(&mut self, name: &str, payload: &str) -> String {
        let told = self.socket.tells(name, &parsed(payload));
        self.end.say(told.clone());
        told
    }
}

fn before_dual(server: &Upstream, keys: &str) -> Proxy {
    let address = server.address();
    proxy(&format!(
        "[upstream.dual]\nside = \"rpc\"\nurl = \"ws://{address}/ws\"\n{keys}\n"
    ))
}

/// The socket where a legacy client asks for it.
fn before_frames(server: &Upstream) -> Proxy {
    let address = server.address();
    proxy(&format!(
        "[upstream.dual]\nside = \"rest\"\nurl = \"ws://{address}/ws\"\n"
    ))
}

fn strays(proxy: &Proxy, kind: &str) -> f64 {
    let series = format!(r#"dualgauge_socket_strays_total{{kind="{kind}"}}"#);
    proxy.metrics().value(&series)
}

/// What is of neither protocol.
const NOISE: [&str; 4] = ["{", "7", "[]", "\"get_status\""];

#[test]
fn a_legacy_client_passes_to_the_dual_socket_and_is_warned_there() {
    let upstream = Upstream::start();
    let proxy = before_frames(&upstream);
    let mut client = connect(&proxy);
    let mut server = Server::of(&upstream);
    // Who only listens hears events in the legacy form, and so does who begins with commands.
    let event = server.tells("claude_status", r#"{"state":"idle"}"#);
    assert_eq!(client.hear_text(), event);
    for noise in NOISE {
        client.say(noise);
    }
    let commands = [
        (
            r#"{"command":"get_status","request_id":"1"}"#,
            "status_response",
        ),
        (
            r#"{"command":"watch_session","payload":{"session_id":"X"}}"#,
            "session_watch_started",
        ),
        (
            r#"{"command":"run_claude","request_id":"3","payload":{"prompt":"busy"}}"#,
            "error",
        ),
        (r#"{"command":"nope","request_id":"4"}"#, "error"),
    ];
    for (command, answer) in commands {
        client.say(command);
        assert_eq!(server.takes(), command);
        let warning = client.hear();
        assert_eq!(warning["event"], "deprecation_warning");
        assert_eq!(warning["payload"]["command"], parsed(command)["command"]);
        assert_eq!(client.hear()["event"], answer, "{command}");
    }
    // To a success the old protocol says nothing, and a warning is no answer.
    client.say(r#"{"command":"stop_claude","request_id":"5"}"#);
    server.takes();
    assert_eq!(client.hear()["event"], "deprecation_warning");
    server.end.say(HEARTBEAT);
    assert_eq!(client.hear_text(), HEARTBEAT);
    for route in ["frame.status", "frame.watch", "frame.stop"] {
        let route = format!("route={route} ");
        proxy.log_line(&[&route, "stage=passthrough", "outcome=success"]);
    }
    proxy.log_line(&["route=frame.run ", "stage=passthrough", "outcome=error"]);
    becomes(|| strays(&proxy, "noise"), &4.0);
}

#[test]
fn a_client_of_json_rpc_hears_no_warning_of_the_other_protocol() {
    let upstream = Upstream::start();
    let proxy = before_frames(&upstream);
    let mut client = connect(&proxy);
    let mut server = Server::of(&upstream);
    for (method, params, wanted, told) in agent_calls().into_iter().chain(other_calls()) {
        let id = "9B2D7B0C-0E5F-4C6A-8F0A-5C1B7E4D2A11";
        client.say(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        let heard = parsed(&server.takes());
        assert_eq!(heard["command"], wanted["command"]);
        let mut answer = client.hear();
        let members = answer.as_object_mut().unwrap();
        assert_eq!(members.remove("id"), Some(json!(id)));
        assert_eq!(members.remove("jsonrpc"), Some(json!("2.0")));
        assert_eq!(answer, told, "{method} {params}");
    }
    server.tells("file_changed", r#"{"path":"a"}"#);
    let event = r#"{"jsonrpc":"2.0","method":"event/file_changed","params":{"path":"a"}}"#;
    assert_eq!(client.hear_text(), event);
}

/// An example as it is shipped, before servers of the test.
fn shipped(name: &str, places: &[(&str, String)]) -> Proxy {
    let read = |file: &str| fs::read_to_string(config().join(file)).unwrap();
    let example = read(&format!("examples/{name}")).replace("../cdev.toml", "cdev.toml");
    let example = places.iter().fold(example, |example, (from, to)| {
        assert!(example.contains(from), "no {from} in {example}");
        example.replace(from, to)
    });
    let example = example.replace("flags/cdev.toml", "flags.toml");
    let (table, flags) = (read("cdev.toml"), read("examples/flags/cdev.toml"));
    Proxy::start_with(&example, &[("cdev.toml", &table), ("flags.toml", &flags)])
}

#[test]
fn a_flag_moves_the_frames_of_one_app_to_the_new_server() {
    let api = Upstream::serving(super::fake_cdev::rest);
    let (frames, dual) = (Upstream::start(), Upstream::start());
    let places = [
        ("http://127.0.0.1:8766", format!("http://{}", api.address())),
        (
            "ws://127.0.0.1:8765/",
            format!("ws://{}/", frames.address()),
        ),
        (
            "ws://127.0.0.1:8776/ws",
            format!("ws://{}/ws", dual.address()),
        ),
    ];
    let proxy = shipped("cdev.toml", &places);
    let agent = [("user-agent", "cdev/7 CFNetwork/1494 Darwin/23.4.0")];
    let (mut moved, _) = connect_at(&proxy, "/", &agent);
    let (mut other, _) = connect_at(&proxy, "/", &[]);
    let command = r#"{"command":"get_status","request_id":"r"}"#;
    other.say(command);
    let mut old = accept(&frames);
    assert_eq!(old.hear_text(), command);
    for said in legacy(&parsed(command)) {
        old.say(said.to_string());
    }
    assert_eq!(other.hear()["event"], "status_response");

    moved.say(command);
    let mut new = Server::of(&dual);
    assert_eq!(parsed(&new.takes())["method"], "status/get");
    assert_eq!(timeless(moved.hear())["request_id"], "r");
    moved.say(r#"{"command":"get_file","request_id":"f","payload":{"path":"nope"}}"#);
    new.takes();
    let failed = moved.hear();
    assert_eq!(
        (&failed["event"], &failed["request_id"]),
        (&json!("file_content"), &json!("f"))
    );
    assert_eq!(failed["payload"]["error"], "file not found");
    // No success is said aloud, and no warning comes.
    moved.say(r#"{"command":"run_claude","request_id":"q","payload":{"prompt":"Fix"}}"#);
    assert_eq!(parsed(&new.takes())["params"], json!({"prompt": "Fix"}));
    // Events come as notifications there, but for the heartbeat.
    for (name, payload) in EVENTS {
        let told = parsed(&new.tells(name, payload));
        assert_eq!(told["method"], format!("event/{name}"));
        let frame = json!({"event": name, "payload": parsed(payload)});
        assert_eq!(timeless(moved.hear()), frame);
    }
    new.end.say(HEARTBEAT);
    assert_eq!(moved.hear_text(), HEARTBEAT);
    proxy.log_line(&[
        "route=frame.status ",
        "client=ios",
        "stage=translate",
        "outcome=success",
    ]);
    // The same app on the API, which the flag does not name, and one that is done with frames.
    let status = proxy.rest("GET", "/api/status", &agent, "");
    assert_eq!(status.json()["version"], "1.0.0");
    let (mut ready, _) = connect_at(&proxy, "/ws", &agent);
    ready.say(call("status/get", "{}"));
    let mut second = Server::of(&dual);
    second.takes();
    assert_eq!(ready.hear()["result"]["agent_version"], "1.0.0");
}

#[test]
fn a_client_of_json_rpc_has_a_socket_of_its_own_at_the_dual_server() {
    let upstream = Upstream::start();
    let proxy = before_dual(&upstream, "sharing = \"client\"");
    let mut client = connect(&proxy);
    let mut server = Server::of(&upstream);
    // As its client for iOS greets; the server reads none of it.
    client.say(
        r#"{"jsonrpc":"2.0","id":"9B2D7B0C-0E5F-4C6A-8F0A-5C1B7E4D2A11","method":"initialize","params":{"client_info":{"name":"cdev-ios"}}}"#,
    );
    server.takes();
    let greeting = client.hear();
    assert_eq!(greeting["id"], "9B2D7B0C-0E5F-4C6A-8F0A-5C1B7E4D2A11");
    assert_eq!(greeting["result"]["protocolVersion"], "1.0");
    client.say(r#"{"jsonrpc":"2.0","method":"initialized"}"#);
    assert_eq!(parsed(&server.takes())["method"], "initialized");
    // Ids that the server would change, and a message before which there is a blank.
    for id in ["1.7", "0", "123456789012345678901234567890"] {
        client.say(format!(
            " \n{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"status/get\"}}"
        ));
        assert!(server.takes().starts_with('{'));
        let answer = client.hear_text();
        assert!(answer.contains(&format!(r#""id":{id},"#)), "{answer}");
    }
    // A batch, which it would drop without a word, has an answer to each call.
    client.say(format!(
        "[{},{}]",
        call("status/get", "{}"),
        call("agent/run", "[1]")
    ));
    server.takes();
    server.takes();
    let answers = client.hear();
    assert!(answers[0]["result"].is_object(), "{answers}");
    assert_eq!(answers[1]["error"]["code"], -32602, "{answers}");
    // And what it drops otherwise does not get there.
    client.say(r#"{"jsonrpc":"1.0","id":1,"method":"status/get"}"#);
    assert_eq!(client.hear()["error"]["code"], -32600);
    for (name, payload) in EVENTS {
        let told = server.tells(name, payload);
        assert_eq!(client.hear_text(), told);
    }
    server.end.say(HEARTBEAT);
    assert_eq!(client.hear_text(), HEARTBEAT);
    // Another client hears nothing of it, but what its own socket says, in the form of before its first message.
    let mut other = connect(&proxy);
    let mut second = Server::of(&upstream);
    let told = second.tells("claude_status", r#"{"state":"idle"}"#);
    assert!(told.contains("\"event\""), "{told}");
    assert_eq!(other.hear_text(), told);
}

#[test]
fn requests_of_one_socket_are_answered_one_after_another() {
    let upstream = Upstream::start();
    let proxy = before_dual(&upstream, "sharing = \"client\"");
    let mut client = connect(&proxy);
    let mut server = Server::of(&upstream);
    for id in 0..20 {
        let path = if id % 2 == 0 { "a.go" } else { "nope" };
        client.say(
            json!({"jsonrpc": "2.0", "id": id, "method": "file/get", "params": {"path": path}})
                .to_string(),
        );
    }
    for _ in 0..20 {
        server.tells("claude_log", r#"{"line":"x"}"#);
        server.takes();
    }
    let heard: Vec<Value> = (0..40).map(|_| client.hear()).collect();
    let (events, answers): (Vec<&Value>, Vec<&Value>) =
        heard.iter().partition(|said| said.get("id").is_none());
    assert_eq!(events.len(), 20);
    // Each event came before one answer, and behind the one before.
    let ids: Vec<Option<u64>> = heard.iter().map(|said| said["id"].as_u64()).collect();
    let wanted: Vec<Option<u64>> = (0..20).flat_map(|id| [None, Some(id)]).collect();
    assert_eq!(ids, wanted);
    for answer in answers {
        let is_there = answer["id"].as_u64().unwrap() % 2 == 0;
        assert_eq!(answer.get("result").is_some(), is_there, "{answer}");
    }
}

#[test]
fn an_answer_with_neither_result_nor_error_is_told_at_once() {
    let upstream = Upstream::start();
    let proxy = before_dual(&upstream, "sharing = \"client\"");
    let mut client = connect(&proxy);
    let mut server = Server::of(&upstream);
    client.say(r#"{"jsonrpc":"2.0","id":7,"method":"initialized"}"#);
    server.takes();
    let answer = client.hear();
    assert_eq!(answer["id"], 7);
    assert_eq!(rpc_failure(&answer), (-31026, "upstream_not_protocol"));
}

#[test]
fn an_answer_that_the_server_drops_is_waited_for_no_longer_than_the_call_may_take() {
    let upstream = Upstream::start();
    let proxy = before_dual(&upstream, "sharing = \"client\"\ntimeout = \"200ms\"");
    let mut client = connect(&proxy);
    let mut server = Server::of(&upstream);
    client.say(call("status/get", "{}"));
    // Its buffer was full: it has done what it was asked for, and says nothing.
    let lost = server.end.hear();
    assert_eq!(rpc_failure(&client.hear()), (-31022, "upstream_timeout"));
    server
        .end
        .say(json!({"jsonrpc": "2.0", "id": lost["id"], "result": {}}).to_string());
    client.say(call("status/get", "{}"));
    server.takes();
    assert_eq!(client.hear()["result"]["agent_version"], "1.0.0");
}

#[test]
fn a_long_history_reaches_clients_of_every_protocol() {
    let upstream = Upstream::start();
    let keys = "sharing = \"client\"";
    let proxy = before_dual(&upstream, keys);
    let line = "if a < b && c > d\n".repeat(55_000);
    let content = json!(line).to_string();
    let file = format!(
        r#"{{"path":"a.go","content":{content},"encoding":"utf-8","truncated":false,"size":1}}"#
    );
    let answer =
        |call: &Value| format!(r#"{{"jsonrpc":"2.0","id":{},"result":{file}}}"#, call["id"]);
    let mut old = connect(&proxy);
    let mut server = accept(&upstream);
    old.say(r#"{"command":"get_file","request_id":"r","payload":{"path":"a.go"}}"#);
    let heard = server.hear();
    server.say(go(&answer(&heard)));
    assert_eq!(old.hear()["payload"]["content"], line);
    let mut new = connect(&proxy);
    let mut server = accept(&upstream);
    new.say(call("file/get", r#"{"path":"a.go"}"#));
    let heard = server.hear();
    server.say(go(&answer(&heard)));
    assert_eq!(new.hear()["result"]["content"], line);
    let read = thread::scope(|scope| {
        scope.spawn(|| {
            let mut server = accept(&upstream);
            let heard = server.hear();
            server.say(go(&answer(&heard)));
            server.end();
        });
        ask(&proxy, &[], "GET /api/file?path=a.go")
    });
    assert_eq!(read.json()["content"], line);
}

#[test]
fn rest_clients_are_served_over_the_socket() {
    let upstream = Upstream::start();
    let proxy = before_dual(&upstream, "");
    let mut end = accept(&upstream);
    let sent = Mutex::new(String::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let methods =
                |method: &str, params: &Value| said_by(method, params, Generation::Running);
            let mut socket = Dual::new(methods);
            while let Some(heard) = end.heard() {
                let called: Called<'_> = serde_json::from_str(&heard).unwrap();
                *sent.lock().unwrap() = format!("{} {}", called.method(), called.params());
                for said in socket.hears(&heard) {
                    end.say(said);
                }
            }
        });
        play(include_str!("calls/cdev_from_rest.txt"), |call| {
            let answer = ask(&proxy, &[], call.said);
            let answer = format!("{} {}", answer.status(), answer.text());
            (sent.lock().unwrap().clone(), answer)
        });
        drop(proxy);
    });
}

#[test]
fn who_posts_json_rpc_is_served_by_the_legacy_socket() {
    let upstream = Upstream::start();
    let proxy = before_legacy(&upstream);
    let calls = agent_calls().into_iter().chain(other_calls());
    for (method, params, wanted, told) in calls {
        let answer = thread::scope(|scope| {
            scope.spawn(|| {
                let mut server = accept(&upstream);
                let heard = server.hear();
                for said in legacy(&heard) {
                    server.say(said.to_string());
                }
                assert_eq!(heard["command"], wanted["command"]);
                // It ends with the connection of who posted.
                server.end();
            });
            proxy.rpc(call(method, &params.to_string()))
        });
        body_of(&answer, 200);
        let answer = answer.json();
        assert_eq!(
            answer.get("result"),
            told.get("result"),
            "{method} {params}"
        );
        assert_eq!(answer.get("error"), told.get("error"), "{method} {params}");
    }
}

#[test]
fn a_new_app_is_served_by_the_old_daemon_over_its_api_and_its_socket() {
    let (api, frames) = (Upstream::serving(super::fake_cdev::rest), Upstream::start());
    let places = [
        ("http://127.0.0.1:8766", format!("http://{}", api.address())),
        (
            "ws://127.0.0.1:8765/",
            format!("ws://{}/", frames.address()),
        ),
    ];
    let proxy = shipped("cdev-old-daemon.toml", &places);
    let (mut client, _) = connect_at(&proxy, "/ws", &[]);
    let mut server = accept(&frames);
    let id = "9B2D7B0C-0E5F-4C6A-8F0A-5C1B7E4D2A11";
    let ask = |client: &mut End, method: &str, params: Value| {
        client.say(
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
    };
    let greeting = json!({"client_info": {"name": "cdev-ios"}});
    ask(&mut client, "initialize", greeting);
    let greeted = client.hear();
    assert_eq!(greeted["id"], id);
    assert_eq!(greeted["result"]["protocolVersion"], "1.0");
    client.say(r#"{"jsonrpc":"2.0","method":"initialized"}"#);
    // The API has it, though the socket has it as well.
    ask(&mut client, "status/get", json!({}));
    assert_eq!(client.hear()["result"]["agent_version"], "1.0.0");
    ask(&mut client, "git/status", json!({}));
    assert_eq!(client.hear()["result"]["branch"], "main");
    ask(&mut client, "file/get", json!({"path": "nope"}));
    assert_eq!(client.hear()["error"]["code"], -32020);
    // The socket alone has this one.
    ask(&mut client, "session/watch", json!({"session_id": "X"}));
    let heard = server.hear();
    assert_eq!(heard["command"], "watch_session");
    for said in legacy(&heard) {
        server.say(said.to_string());
    }
    assert_eq!(client.hear()["result"]["watching"], true);
    let told =
        r#"{"event":"claude_log","timestamp":"2025-12-20T15:30:00Z","payload":{"line":"x"}}"#;
    server.say(told);
    let event = r#"{"jsonrpc":"2.0","method":"event/claude_log","params":{"line":"x"}}"#;
    assert_eq!(client.hear_text(), event);
}
