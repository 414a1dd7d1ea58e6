//! Clients with sessions on WebSockets: requests and notifications of servers of both eras.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::before;
use super::bridge::{interactive, params_of};
use super::scripted::{asked, stateless};
use super::server_requests::asking;
use super::subscriptions::{serve, updating, with_changes};
use crate::scene::call;
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{End, connect};

fn serving(server: &Upstream) -> Proxy {
    before(server, "[rpc]\nwebsocket = true\nsocket_concurrency = 1\n")
}

/// Connects a client with these capabilities, and begins its session.
fn begin(proxy: &Proxy, capabilities: &Value) -> End {
    let mut client = connect(proxy);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "c", "version": "1" } });
    client.say(call("initialize", &params.to_string()));
    assert!(client.hear()["result"]["serverInfo"]["name"].is_string());
    client
}

fn respond(client: &mut End, to: &Value, result: &Value) {
    let response = json!({ "jsonrpc": "2.0", "id": to["id"], "result": result });
    client.say(response.to_string());
}

#[test]
fn a_request_of_a_server_with_sessions_reaches_the_client() {
    let proxy = serving(&asking());
    let mut client = begin(&proxy, &json!({ "elicitation": {} }));
    client.say(call("tools/call", r#"{"name":"t"}"#));
    let asked = client.hear();
    assert_eq!(asked["method"], "elicitation/create");
    // Another socket cannot answer it.
    let mut other = begin(&proxy, &json!({}));
    let given = json!({ "action": "accept" });
    respond(&mut other, &asked, &given);
    assert_eq!(other.hear()["error"]["code"], -32600);
    respond(&mut client, &asked, &given);
    let end = client.hear();
    assert_eq!((&end["id"], &end["result"]["got"]), (&json!(1), &given));
    // A client that did not declare the capability is not asked.
    other.say(call("tools/call", r#"{"name":"t"}"#));
    assert_eq!(other.hear()["result"]["got"], json!({ "code": -32601 }));
}

/// Sends so many calls that need no input.
fn send_calls(client: &mut End, count: usize) {
    for _ in 0..count {
        client.say(call("prompts/list", "{}"));
    }
}

#[test]
fn a_response_is_read_behind_calls_that_wait_for_it() {
    let proxy = serving(&asking());
    let mut client = begin(&proxy, &json!({ "elicitation": {} }));
    client.say(call("tools/call", r#"{"name":"t"}"#));
    let asked = client.hear();
    // More than the proxy reads ahead.
    send_calls(&mut client, 80);
    let given = json!({ "action": "accept" });
    respond(&mut client, &asked, &given);
    assert_eq!(client.hear()["result"]["got"], given);
    for _ in 0..80 {
        assert_eq!(client.hear()["result"], json!({}));
    }
}

#[test]
fn a_call_ends_without_a_response_that_too_many_calls_precede() {
    let proxy = serving(&asking());
    let mut client = begin(&proxy, &json!({ "elicitation": {} }));
    client.say(call("tools/call", r#"{"name":"t"}"#));
    assert_eq!(client.hear()["method"], "elicitation/create");
    send_calls(&mut client, 200);
    assert_eq!(client.hear()["method"], "notifications/cancelled");
    assert_eq!(client.hear()["result"]["got"]["code"], -32603);
    for _ in 0..200 {
        assert_eq!(client.hear()["result"], json!({}));
    }
}

#[test]
fn a_response_is_read_while_the_proxy_shuts_down() {
    let proxy = serving(&asking());
    let mut client = begin(&proxy, &json!({ "elicitation": {} }));
    let idle = connect(&proxy);
    client.say(call("tools/call", r#"{"name":"t"}"#));
    let asked = client.hear();
    proxy.signal("TERM");
    assert_eq!(idle.end(), Some(1001));
    let given = json!({ "action": "accept" });
    respond(&mut client, &asked, &given);
    assert_eq!(client.hear()["result"]["got"], given);
    assert_eq!(client.end(), Some(1001));
    assert!(proxy.wait().status.success());
}

#[test]
fn input_that_a_stateless_server_requires_is_asked_of_the_client() {
    let server = stateless(|_, called| interactive(called));
    let proxy = serving(&server);
    let mut client = begin(&proxy, &json!({ "elicitation": {}, "roots": {} }));
    client.say(call("tools/call", r#"{"name":"t"}"#));
    let (name, roots) = (client.hear(), client.hear());
    let declared =
        &params_of(&server, "tools/call")["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let wanted = json!({ "elicitation": { "form": {} }, "roots": {} });
    assert_eq!(declared, &wanted);
    respond(&mut client, &roots, &json!({ "roots": [] }));
    respond(&mut client, &name, &json!({ "action": "accept" }));
    let end = client.hear();
    let got = &end["result"]["got"]["inputResponses"];
    let wanted = json!({ "name": { "action": "accept" }, "roots": { "roots": [] } });
    assert_eq!(got, &wanted);
}

#[test]
fn changes_at_a_stateless_server_reach_the_client() {
    let proxy = serving(&stateless(serve()));
    let mut client = begin(&proxy, &json!({}));
    let told = client.hear();
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[test]
fn updates_of_resources_reach_the_client_of_a_stateless_server() {
    let server = updating();
    let proxy = serving(&server);
    let mut client = begin(&proxy, &json!({}));
    client.say(call("resources/subscribe", r#"{"uri":"a:b"}"#));
    let mut told = [client.hear(), client.hear()];
    told.sort_by_key(|message| message["id"].is_null());
    assert_eq!(told[0]["result"], json!({}));
    assert_eq!(told[1]["params"]["uri"], "a:b");
    let filter = &params_of(&server, "subscriptions/listen")["notifications"];
    assert_eq!(filter["toolsListChanged"], true);
}

#[test]
fn changes_at_a_server_with_sessions_reach_the_client_once() {
    let server = with_changes(1);
    let proxy = serving(&server);
    let mut client = begin(&proxy, &json!({}));
    client.say(call("resources/subscribe", r#"{"uri":"a:b"}"#));
    let told: BTreeSet<String> = [client.hear(), client.hear(), client.hear()]
        .map(|message| message["method"].as_str().unwrap_or("response").to_owned())
        .into();
    let wanted = [
        "notifications/resources/updated",
        "notifications/tools/list_changed",
        "response",
    ];
    assert_eq!(told, BTreeSet::from(wanted.map(str::to_owned)));
    client.say(call("any", "{}"));
    assert_eq!(client.hear()["id"], 1);
    // The server is told when the client leaves.
    drop(client);
    let unsubscribed = "POST resources/unsubscribe".to_owned();
    becomes(|| asked(&server).contains(&unsubscribed), &true);
}

#[test]
fn a_client_unsubscribes_at_the_server() {
    let server = with_changes(9);
    let proxy = serving(&server);
    let mut client = begin(&proxy, &json!({}));
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        client.say(call(method, r#"{"uri":"a:b"}"#));
        assert_eq!(client.hear()["result"], json!({}));
    }
    let unsubscribed = "POST resources/unsubscribe".to_owned();
    becomes(|| asked(&server).contains(&unsubscribed), &true);
}
