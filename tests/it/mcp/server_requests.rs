//! Requests that a server with sessions sends during calls, before clients of both eras.

use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use super::before;
use super::bridge::{begin_session, conversions, modern, params_of, post, post_in};
use super::scripted::{response, sessions_observed, stream};
use crate::links::telling::{begins, json_of};
use crate::scene::{Called, answer, call, rpc_failure};
use crate::support::{Message, Proxy, Upstream};
use crate::websocket::ends::connect;

const ABLE: &str = r#"{"elicitation":{}}"#;

/// The responses of clients to the server, by the number of the call that asked.
type Given = Arc<(Mutex<Vec<(String, Value)>>, Condvar)>;

/// A server whose calls ask who the user is, and return the answer. The stream of a call ends after the request and is
/// resumed.
pub(super) fn asking() -> Upstream {
    let given = Given::default();
    let waits = given.clone();
    let streams = move |request: &Message| {
        let Some(event) = request.head.one("last-event-id") else {
            return answer("405 Method Not Allowed", &[], "");
        };
        let id = event.strip_prefix("call-").unwrap();
        let (all, changed) = &*waits;
        let mut all = all.lock().unwrap();
        loop {
            if let Some((_, got)) = all.iter().find(|(of, _)| of == id) {
                return stream(&format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"got\":{got}}}}}\n\n"
                ));
            }
            all = changed.wait(all).unwrap();
        }
    };
    let calls = |_: &Message, called: &Called<'_>| {
        let id = called.id();
        let asks = json!({ "jsonrpc": "2.0", "id": format!("q-{id}"), "method": "elicitation/create", "params": { "message": "who?" } });
        match called.method() {
            "tools/call" => stream(&format!("id: call-{id}\nretry: 10\ndata: {asks}\n\n")),
            _ => stream(&format!("data: {}\n\n", response(called, "{}"))),
        }
    };
    let observe = move |request: &Message| {
        let body = request.json();
        let id = body["id"].as_str().and_then(|id| id.strip_prefix("q-"));
        let Some(id) = id else {
            return;
        };
        let (all, changed) = &*given;
        let what = match body["error"]["code"].as_i64() {
            Some(code) => json!({ "code": code }),
            None => body["result"].clone(),
        };
        all.lock().unwrap().push((id.to_owned(), what));
        changed.notify_all();
    };
    sessions_observed(observe, streams, calls)
}

fn tool(more: &Value, capabilities: &str) -> String {
    let mut params = more.clone();
    params["name"] = "t".into();
    let capabilities: Value = serde_json::from_str(capabilities).unwrap();
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    modern("tools/call", params, meta)
}

fn call_tool(proxy: &Proxy, more: &Value) -> Value {
    post(proxy, "tools/call", "t", &tool(more, ABLE)).json()
}

#[test]
fn a_stateless_client_supplies_the_input_by_sending_the_call_again() {
    let server = asking();
    let proxy = before(&server, "");
    let asked = call_tool(&proxy, &json!({}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let wanted = json!({ "method": "elicitation/create", "params": { "message": "who?" } });
    assert_eq!(asked["inputRequests"]["request"], wanted);
    let state = asked["requestState"].as_str().unwrap();
    // Without the input, the server still waits; the state changes.
    let again = call_tool(&proxy, &json!({ "requestState": state }))["result"].clone();
    assert_eq!(again["inputRequests"], asked["inputRequests"]);
    let given = json!({ "action": "accept", "content": { "name": "n" } });
    let retry = |state: &Value| {
        call_tool(
            &proxy,
            &json!({ "requestState": state, "inputResponses": { "request": given } }),
        )
    };
    let used = retry(&asked["requestState"]);
    assert_eq!(rpc_failure(&used), (-32602, "invalid_params"));
    let end = retry(&again["requestState"])["result"].clone();
    assert_eq!(end, json!({ "resultType": "complete", "got": given }));
    assert_eq!(rpc_failure(&retry(&again["requestState"])).0, -32602);
    assert_eq!(conversions(&proxy, "server_request"), 1.0);
    assert_eq!(conversions(&proxy, "server_response"), 1.0);
    let results = ["suspended", "continued", "unknown", "refused"];
    let suspended = results.map(|result| {
        let series = format!(r#"dualgauge_mcp_suspended_calls_total{{result="{result}"}}"#);
        proxy.metrics().value(&series)
    });
    assert_eq!(suspended, [2.0, 2.0, 2.0, 0.0]);
    let declared = &params_of(&server, "initialize")["capabilities"];
    let wanted = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} });
    assert_eq!(*declared, wanted);
}

/// Calls the tool with credentials. The API key `sesame` is that of a client.
fn call_tool_with(proxy: &Proxy, credentials: [(&str, &str); 2], more: &Value) -> Value {
    let headers = [
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "t"),
    ];
    let headers = [&headers[..], &credentials].concat();
    let body = tool(more, ABLE);
    proxy.rest("POST", "/rpc", &headers, body).json()
}

/// Asks a client for input, and returns its retry with it.
fn asked_for_input(proxy: &Proxy, credentials: [(&str, &str); 2]) -> Value {
    let asked = call_tool_with(proxy, credentials, &json!({}))["result"].clone();
    assert_eq!(asked["resultType"], "input_required");
    let given = json!({ "action": "accept" });
    json!({ "requestState": asked["requestState"], "inputResponses": { "request": given } })
}

#[test]
fn only_a_client_with_the_same_authorization_continues_a_call() {
    let known = "[rollout.api_key]\nheader = \"x-api-key\"\n[[client]]\nname = \"known\"\n\
        match = { api_key = \"sha256:d0c04f4b1951e4aeaaec8223ed2039e542f3aae805a6fa7f6d794e5afff5d272\" }\n";
    let credentials = |key, token| [("X-Api-Key", key), ("Authorization", token)];
    for (link, key, is_enough) in [
        ("", "none", false),
        ("", "sesame", true),
        ("authorization = \"client\"\n", "none", false),
        ("authorization = \"client\"\n", "sesame", false),
    ] {
        let proxy = before(&asking(), &format!("{link}{known}"));
        let retry = asked_for_input(&proxy, credentials(key, "Bearer a"));
        // A caller that is authenticated may renew its token, unless the link belongs to the token.
        let other = call_tool_with(&proxy, credentials(key, "Bearer b"), &retry);
        match is_enough {
            true => assert_eq!(other["result"]["got"]["action"], "accept", "{link}{key}"),
            false => assert_eq!(rpc_failure(&other).0, -32602, "{link}{key}"),
        }
        let end = call_tool_with(&proxy, credentials(key, "Bearer a"), &retry);
        match is_enough {
            true => assert_eq!(rpc_failure(&end).0, -32602, "{link}{key}"),
            false => assert_eq!(end["result"]["got"]["action"], "accept", "{link}{key}"),
        }
    }
}

#[test]
fn the_request_is_declined_for_a_client_that_did_not_declare_the_capability() {
    let server = asking();
    for keys in ["", "server_requests = \"decline\"\n"] {
        let proxy = before(&server, keys);
        let capabilities = if keys.is_empty() { "{}" } else { ABLE };
        let body = tool(&json!({}), capabilities);
        let end = post(&proxy, "tools/call", "t", &body).json();
        assert_eq!(end["result"]["got"], json!({ "code": -32601 }));
        let body = call("tools/call", r#"{"name":"t"}"#);
        let old = proxy.rpc(body).json();
        assert_eq!(old["result"]["got"], json!({ "code": -32601 }));
        assert_eq!(conversions(&proxy, "server_request"), 0.0);
    }
    assert_eq!(params_of(&server, "initialize")["capabilities"], json!({}));
}

#[test]
fn a_call_that_is_left_unanswered_holds_up_no_other_of_its_socket() {
    let lost = |_: &Message| answer("405 Method Not Allowed", &[], "");
    let calls = |_: &Message, called: &Called<'_>| {
        let ask = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": { "message": "who?" } });
        match called.method() {
            // The second request, and the loss of the stream, come while nobody waits for a reply.
            "tools/call" => stream(&format!("data: {}\n\ndata: {}\n\n", ask("one"), ask("two"))),
            _ => stream(&format!("data: {}\n\n", response(called, "{}"))),
        }
    };
    let server = sessions_observed(|_| {}, lost, calls);
    let proxy = before(&server, "[rpc]\nwebsocket = true\n");
    let mut client = connect(&proxy);
    client.say(tool(&json!({}), ABLE));
    let asked = client.hear();
    assert_eq!(asked["result"]["resultType"], "input_required");
    for _ in 0..3 {
        client.say(modern("prompts/list", json!({}), json!({})));
        assert!(client.hear()["result"].is_object());
    }
}

#[test]
fn a_client_with_a_session_gets_the_request_on_the_stream_of_its_call() {
    let proxy = before(&asking(), "");
    let session = begin_session(&proxy, ABLE);
    let body = call("tools/call", r#"{"name":"t"}"#);
    let mut client = post_in(&proxy, &session, &body);
    begins(&mut client);
    let asked = json_of(&mut client);
    assert_eq!(asked["method"], "elicitation/create");
    let given = json!({ "action": "decline" });
    let response = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": given });
    post_in(&proxy, &session, &response.to_string()).read_answer();
    assert_eq!(json_of(&mut client)["result"], json!({ "got": given }));
    assert_eq!(client.read_chunk(), None);
}

#[test]
fn a_client_with_a_session_gets_a_reply_that_its_server_gives_without_the_answer() {
    let calls = |_: &Message, called: &Called<'_>| {
        let asks = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": { "message": "who?" } });
        let end = response(called, r#"{"got":"nothing"}"#);
        stream(&format!("data: {asks}\n\ndata: {end}\n\n"))
    };
    let none = |_: &Message| answer("405 Method Not Allowed", &[], "");
    let proxy = before(&sessions_observed(|_| {}, none, calls), "");
    let session = begin_session(&proxy, ABLE);
    let body = call("tools/call", r#"{"name":"t"}"#);
    let mut client = post_in(&proxy, &session, &body);
    begins(&mut client);
    let asked = json_of(&mut client);
    assert_eq!(asked["method"], "elicitation/create");
    let withdrawn = json_of(&mut client);
    assert_eq!(withdrawn["method"], "notifications/cancelled");
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    assert_eq!(json_of(&mut client)["result"], json!({ "got": "nothing" }));
}

#[test]
fn a_call_that_waits_for_input_does_not_delay_the_end_of_the_proxy() {
    let proxy = before(&asking(), "");
    let asked = call_tool(&proxy, &json!({}));
    assert_eq!(asked["result"]["resultType"], "input_required");
    assert!(proxy.stop().status.success());
}

#[test]
fn a_client_with_a_session_that_is_asked_does_not_delay_the_end_of_the_proxy() {
    let proxy = before(&asking(), "");
    let session = begin_session(&proxy, ABLE);
    let mut client = post_in(&proxy, &session, &call("tools/call", r#"{"name":"t"}"#));
    begins(&mut client);
    assert_eq!(json_of(&mut client)["method"], "elicitation/create");
    proxy.signal("TERM");
    assert_eq!(rpc_failure(&json_of(&mut client)), (-31044, "draining"));
    assert!(proxy.wait().status.success());
}
