//! Old messages on WebSockets whose shape is that of JSON-RPC: renamed methods, and JSON-RPC 1.0.

use std::net::{SocketAddr, TcpListener};
use std::thread;

use serde_json::json as value;

use super::compared::{APP, DEVICES, FLAG};

use crate::scene::{Called, json, json_with};
use crate::support::{Proxy, Upstream, becomes, eventually, rpc_only};
use crate::websocket::ends::{End, accept, connect, connect_with, opened};

/// Methods that were renamed, and params that were a list, in messages with the version of JSON-RPC 2.0.
const RENAMED: &str = r#"
[[outcomes.old]]
lossy = "a response without a result is null"
old = { message = { jsonrpc = "2.0", id = "{>id}", result = "{result?}" } }
rpc = { result = "{result}" }
[[outcomes.old]]
old = { message = { jsonrpc = "2.0", id = "{>id}", error = { code = "{code:integer}", message = "{message}" } } }
rpc = { error = { code = "{code}", message = "{message}" } }

[[route]]
name   = "file"
old    = { message = { jsonrpc = "2.0", id = "{id:integer}", method = "getFile", params = ["{path}"] } }
rpc    = "file/get"
params = { path = "{path}" }
outcomes = "old"

[[event]]
rpc = { method = "file/changed", params = { path = "{path}" } }
frame = { jsonrpc = "2.0", method = "fileChanged", params = ["{path}"] }
"#;

const OLD_CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"getFile","params":["a"]}"#;
const NEW_CALL: &str = r#"{"jsonrpc":"2.0","id":8,"method":"file/get","params":{"path":"a"}}"#;

fn new_server() -> Upstream {
    Upstream::serving(|request| {
        let called = Called::of(request);
        let (id, params) = (called.id(), called.params());
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{params}}}"#
        ))
    })
}

fn old_upstream(server: &Upstream) -> String {
    let address = server.address();
    format!("[upstream.old]\nside = \"rest\"\nurl = \"ws://{address}/\"\n")
}

#[test]
fn old_and_new_calls_of_one_socket_are_told_apart_by_their_shape() {
    let new = new_server();
    let proxy = Proxy::start(&format!("{}{RENAMED}", rpc_only(&new)));
    let mut client = connect(&proxy);
    client.say(OLD_CALL);
    assert_eq!(
        client.hear_text(),
        r#"{"jsonrpc":"2.0","id":7,"result":{"path":"a"}}"#
    );
    let sent = new.request();
    assert_eq!(Called::of(&sent).method(), "file/get");
    proxy.log_line(&["side=rest", "route=file", "old=websocket"]);
    client.say(NEW_CALL);
    assert_eq!(
        client.hear_text(),
        r#"{"jsonrpc":"2.0","id":8,"result":{"path":"a"}}"#
    );
    proxy.log_line(&["side=rpc", "rpc_method=file/get"]);
    // A call that no old message has is a new one, whatever it lacks.
    client.say(r#"{"jsonrpc":"2.0","id":9,"method":"getFile","params":{"path":"a"}}"#);
    assert_eq!(client.hear()["id"], 9);
    let metric = r#"dualgauge_old_messages_total{route="file",transport="websocket"}"#;
    becomes(|| proxy.metrics().value(metric), &1.0);
}

#[test]
fn a_new_client_reaches_an_old_server_and_gets_its_events() {
    let old = Upstream::start();
    let proxy = Proxy::start(&format!(
        "[listen]\nworkers = 1\n{}{RENAMED}",
        old_upstream(&old)
    ));
    let mut client = connect(&proxy);
    let mut server = accept(&old);
    client.say(NEW_CALL);
    let asked = server.hear();
    assert_eq!(
        (&asked["method"], &asked["params"]),
        (&value!("getFile"), &value!(["a"]))
    );
    server.say(r#"{"jsonrpc":"2.0","method":"fileChanged","params":["b"]}"#);
    server.say(value!({"jsonrpc": "2.0", "id": asked["id"], "result": 1}).to_string());
    assert_eq!(
        client.hear(),
        value!({"jsonrpc": "2.0", "method": "file/changed", "params": {"path": "b"}})
    );
    assert_eq!(
        client.hear(),
        value!({"jsonrpc": "2.0", "id": 8, "result": 1})
    );
}

/// Starts an old server that answers each call; returns its address.
fn old_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut server = opened(stream.unwrap()).unwrap();
            thread::spawn(move || {
                while let Some(call) = server.heard() {
                    assert_eq!(call, OLD_CALL);
                    server.say(REPLY);
                }
            });
        }
    });
    address
}

const REPLY: &str = r#"{"jsonrpc":"2.0","id":7,"result":"old"}"#;

#[test]
fn flags_and_their_guards_apply_to_old_calls_on_sockets() {
    let new = Upstream::answering(json_with("502 Bad Gateway", "{}"));
    let upstream = format!(
        "[upstream.old]\nside = \"rest\"\nurl = \"ws://{}/\"\n",
        old_server()
    );
    let config = format!("{}{upstream}{RENAMED}{APP}", rpc_only(&new));
    let proxy = Proxy::start_with_flags(&config, FLAG);
    let open = || -> Vec<End> {
        let devices = (0..DEVICES).map(|device| -> &'static str { device.to_string().leak() });
        let open = |device| connect_with(&proxy, &[("x-app", "1"), ("x-device", device)]).0;
        devices.map(open).collect()
    };
    let served_by_old = |sockets: &mut [End]| {
        let sockets = sockets.iter_mut();
        let is_old = |socket: &mut End| {
            socket.say(OLD_CALL);
            let reply = socket.hear();
            assert_eq!(reply["id"], 7);
            reply["result"] == "old"
        };
        sockets.map(is_old).filter(|is_old| *is_old).count()
    };
    let mut sockets = open();
    eventually("the guard takes the flag back", || {
        let old = served_by_old(&mut sockets);
        // An open socket keeps its decision.
        assert!((1..DEVICES).contains(&old), "{old}");
        let flag = proxy.ask("GET", "/api/v1/flags/mover", "").json();
        flag["tripped"]["reason"].as_str().map(drop)
    });
    assert_eq!(served_by_old(&mut open()), DEVICES);
    proxy.log_line(&[
        "side=rest",
        "route=file",
        "stage=passthrough",
        "outcome=success",
    ]);
}
