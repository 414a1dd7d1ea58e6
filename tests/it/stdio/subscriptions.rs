//! Subscriptions of clients at a child that answers one call after another (MCP 2026-07-28, "Subscriptions").

use serde_json::{Value, json};

use super::child::command_of;
use super::{ask, seen};
use crate::links::telling::{BOTH, begins, json_of, post};
use crate::scene::rpc_failure;
use crate::support::{Proxy, becomes};
use crate::websocket::ends::connect;

const KEY: &str = "io.modelcontextprotocol/subscriptionId";
const CHANGED: &str = "notifications/tools/list_changed";

fn before(keys: &str) -> Proxy {
    let command = command_of("2026-07-28");
    Proxy::start(&format!(
        "[listen]\nworkers = 2\n[upstream.child]\nside = \"rpc\"\n{command}{keys}"
    ))
}

fn listen(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"notifications":{{"toolsListChanged":true}}}}}}"#
    )
}

/// Checks that a message is told of this subscription.
fn is_of(told: &Value, method: &str, id: &Value) {
    assert_eq!(told["method"], method, "{told}");
    assert_eq!(told["params"]["_meta"][KEY], *id, "{told}");
}

fn acknowledged(told: &Value, id: &Value) {
    is_of(told, "notifications/subscriptions/acknowledged", id);
}

/// How many subscriptions the child was told to end.
fn cancelled(proxy: &Proxy) -> usize {
    let seen = seen(proxy);
    let told = seen.iter();
    told.filter(|seen| seen.starts_with("notifications/cancelled "))
        .count()
}

#[test]
fn a_subscription_blocks_no_call_and_ends_when_its_client_closes_it() {
    let proxy = before("timeout = \"2s\"\n");
    let mut clients = Vec::new();
    for id in ["\"one\"", "7"] {
        let mut client = post(&proxy, BOTH, &listen(id));
        begins(&mut client);
        let id: Value = serde_json::from_str(id).unwrap();
        acknowledged(&json_of(&mut client), &id);
        clients.push((client, id));
    }
    assert!(ask(&proxy, "echo")["result"].is_object());
    for _ in 0..2 {
        assert_eq!(ask(&proxy, "change")["result"], 2);
        for (client, id) in &mut clients {
            is_of(&json_of(client), CHANGED, id);
        }
    }
    let calls = |state| {
        let series =
            format!(r#"dualgauge_link_calls_in_flight{{upstream="child",state="{state}"}}"#);
        proxy.metrics().value(&series)
    };
    assert_eq!((calls("written"), calls("waiting")), (0.0, 0.0));
    let (left, _) = clients.remove(0);
    drop(left);
    becomes(|| cancelled(&proxy), &1);
    proxy.log_line(&["rpc_method=subscriptions/listen", "outcome=cancelled"]);
    assert_eq!(ask(&proxy, "change")["result"], 1);
    let (mut stays, id) = clients.remove(0);
    is_of(&json_of(&mut stays), CHANGED, &id);
    // The end of the program is a good end of the subscription, and does not wait for it.
    assert!(proxy.stop().status.success());
    let end = json_of(&mut stays);
    assert_eq!(end["id"], id);
    let wanted = json!({"resultType": "complete", "_meta": {KEY: id}});
    assert_eq!(end["result"], wanted);
    assert_eq!(stays.read_chunk(), None);
}

#[test]
fn a_client_on_a_socket_calls_beside_its_subscription_and_cancels_it() {
    let proxy = before("[rpc]\nsocket_concurrency = 1\n");
    let mut client = connect(&proxy);
    client.say(listen("\"s\""));
    acknowledged(&client.hear(), &json!("s"));
    client.say(r#"{"jsonrpc":"2.0","id":2,"method":"change","params":{}}"#);
    is_of(&client.hear(), CHANGED, &json!("s"));
    assert_eq!(client.hear()["id"], 2);
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s"}}"#);
    becomes(|| cancelled(&proxy), &1);
    assert_eq!(ask(&proxy, "change")["result"], 0);
}

#[test]
fn a_child_that_ends_ends_its_subscriptions() {
    let proxy = before("");
    let mut client = post(&proxy, BOTH, &listen("1"));
    begins(&mut client);
    acknowledged(&json_of(&mut client), &json!(1));
    ask(&proxy, "crash");
    assert_eq!(rpc_failure(&json_of(&mut client)), (-31023, "upstream_cut"));
    assert_eq!(client.read_chunk(), None);
}

#[test]
fn a_subscription_without_a_stream_is_refused() {
    let proxy = before("");
    let mut client = post(&proxy, "application/json", &listen("1"));
    let refused = client.read_answer().json();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    let mut batch = post(&proxy, BOTH, &format!("[{}]", listen("1")));
    let refused = batch.read_answer().json();
    assert_eq!(refused[0]["error"]["code"], -32600, "{refused}");
    let mut socket = connect(&proxy);
    socket.say(format!("[{}]", listen("1")));
    assert_eq!(socket.hear()[0]["error"]["code"], -32600);
    assert!(!seen(&proxy).contains(&"subscriptions/listen".to_owned()));
}
