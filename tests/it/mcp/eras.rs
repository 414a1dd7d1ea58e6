//! Clients of one revision before servers of another, over a link.

use serde_json::{Value, json};

use super::before;
use super::scripted::{result, stateless, with_sessions};
use crate::scene::{body_of, call, rpc_failure};
use crate::support::{Message, Proxy};

const VERSION: &str = "2026-07-28";

/// A call of a client without sessions, as its revision asks for it.
fn modern(method: &str, params: Value) -> String {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    call(method, &params.to_string())
}

/// Posts a call with the headers of such a client.
fn post(proxy: &Proxy, method: &str, name: Option<&str>, body: &str) -> Message {
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", method),
    ];
    headers.extend(name.map(|name| ("Mcp-Name", name)));
    proxy.rest("POST", "/rpc", &headers, body)
}

#[test]
fn a_result_of_an_older_server_is_completed_for_a_client_without_sessions() {
    let server = with_sessions(|_, called| match called.method() {
        "tools/list" => result(called, r#"{"tools": [1.0]}"#),
        "ping" => result(called, "{}"),
        _ => result(called, r#"{"content":[]}"#),
    });
    let proxy = before(&server, "");
    let list = post(&proxy, "tools/list", None, &modern("tools/list", json!({})));
    let wanted = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools": [1.0]}}"#;
    assert_eq!(body_of(&list, 200), wanted);
    let ping = post(&proxy, "ping", None, &modern("ping", json!({})));
    let wanted = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#;
    assert_eq!(body_of(&ping, 200), wanted);
    let tool = modern("tools/call", json!({ "name": "add" }));
    let tool = post(&proxy, "tools/call", Some("add"), &tool);
    let wanted = json!({ "resultType": "complete", "content": [] });
    assert_eq!(tool.json()["result"], wanted);
    // A client of the server's own revision gets its bytes.
    let list = proxy.rpc(call("tools/list", "{}"));
    let wanted = r#"{"jsonrpc":"2.0","id":1,"result":{"tools": [1.0]}}"#;
    assert_eq!(body_of(&list, 200), wanted);
}

#[test]
fn a_client_with_sessions_gets_a_failure_in_place_of_a_result_that_asks_for_input() {
    let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
    let server = stateless(move |_, called| result(called, asks));
    let proxy = before(&server, "");
    let old = proxy.rpc(call("tools/call", r#"{"name":"add"}"#));
    assert_eq!(old.status(), 200, "{old:?}");
    let failure = (-31034, "upstream_input_required");
    assert_eq!(rpc_failure(&old.json()), failure);
    let tool = modern("tools/call", json!({ "name": "add" }));
    let new = post(&proxy, "tools/call", Some("add"), &tool);
    assert_eq!(
        new.json()["result"],
        json!({ "resultType": "input_required", "requestState": "s" })
    );
}
