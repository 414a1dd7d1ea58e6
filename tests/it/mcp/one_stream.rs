//! Clients with sessions that post calls to servers whose messages all come on one stream: children, WebSockets, and HTTP
//! with SSE. They get log messages and requests for input in the response of the call.

use std::thread;

use serde_json::{Value, json};

use super::bridge::{begin_session, post_in};
use super::scripted::asking_on_one_stream;
use super::sse::SseServer;
use crate::links::telling::{begins, json_of};
use crate::scene::call;
use crate::stdio::child::command_of;
use crate::support::{Proxy, Upstream};
use crate::websocket::ends::accept;

const REQUESTS: [&str; 3] = ["elicitation/create", "sampling/createMessage", "roots/list"];
const ABLE: &str = r#"{"elicitation":{},"sampling":{},"roots":{}}"#;

pub(super) fn before_child(kind: &str, keys: &str) -> Proxy {
    let command = command_of(kind);
    Proxy::start(&format!(
        "[listen]\nworkers = 2\n[upstream.child]\nside = \"rpc\"\n{command}{keys}"
    ))
}

/// Answers a request of the server in a session, and returns the result of the call that waits for it.
fn answered(proxy: &Proxy, session: &str, method: &str) -> Value {
    let body = call("tools/call", &json!({ "name": method }).to_string());
    let mut client = post_in(proxy, session, &body);
    begins(&mut client);
    let logged = json_of(&mut client);
    assert_eq!(logged["method"], "notifications/message", "{logged}");
    let asked = json_of(&mut client);
    assert_eq!(asked["method"], method);
    let response = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "given": method } });
    let taken = post_in(proxy, session, &response.to_string()).read_answer();
    assert_eq!(taken.text(), "");
    let end = json_of(&mut client);
    assert_eq!(end["id"], 1);
    end["result"]["got"].clone()
}

fn is_asked(proxy: &Proxy) {
    let session = begin_session(proxy, ABLE);
    let level = call("logging/setLevel", r#"{"level":"info"}"#);
    let set = post_in(proxy, &session, &level).read_answer();
    assert_eq!(set.json()["result"], json!({}));
    for method in REQUESTS {
        let got = answered(proxy, &session, method);
        assert_eq!(got, json!({ "given": method }));
    }
}

#[test]
fn a_client_of_a_child_with_a_handshake_is_asked() {
    for keys in ["", "mode = \"pipelined\"\n"] {
        is_asked(&before_child("asking", keys));
    }
}

#[test]
fn a_client_of_a_stateless_child_is_asked() {
    for keys in ["", "mode = \"pipelined\"\n"] {
        is_asked(&before_child("requiring", keys));
    }
}

#[test]
fn a_client_of_a_server_over_sse_is_asked() {
    is_asked(&SseServer::asking().before(""));
}

#[test]
fn a_client_of_a_server_on_a_websocket_is_asked() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "handshake = \"mcp\"\n");
    let mut server = accept(&upstream);
    server.greet();
    let serving = thread::spawn(move || {
        for _ in 0..1 + 2 * REQUESTS.len() {
            let heard = server.hear();
            for message in asking_on_one_stream(&heard).unwrap() {
                server.say(message.to_string());
            }
        }
    });
    is_asked(&proxy);
    serving.join().unwrap();
}
