//! Clients of one revision before servers of another, over a link.

use serde_json::{Value, json};

use super::before;
use super::scripted::{asked, result, stateless, with_sessions};
use crate::scene::{body_of, call, json as json_of, json_with as json_answer, rpc_failure};
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

/// The requests of older revisions that 2026-07-28 has not.
const DROPPED: [(&str, &str); 4] = [
    ("ping", "{}"),
    ("logging/setLevel", r#"{"level":"info"}"#),
    ("resources/subscribe", r#"{"uri":"a:b"}"#),
    ("resources/unsubscribe", r#"{"uri":"a:b"}"#),
];

#[test]
fn requests_of_a_client_with_sessions_that_the_server_does_not_know_are_answered() {
    let server = stateless(|_, called| {
        let id = called.id();
        let error =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#);
        json_answer("404 Not Found", error)
    });
    let proxy = before(&server, "");
    let empty = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    for (method, params) in DROPPED {
        assert_eq!(body_of(&proxy.rpc(call(method, params)), 200), empty);
    }
    assert_eq!(asked(&server), ["POST server/discover"]);
    let new = post(&proxy, "ping", None, &modern("ping", json!({})));
    assert_eq!(new.json()["error"]["code"], -32601);
}

fn refused(said: &Message, status: u16, code: i64) -> Value {
    let answer = said.json();
    let got = (said.status(), answer["error"]["code"].as_i64());
    assert_eq!(got, (status, Some(code)), "{answer}");
    answer["error"]["data"].clone()
}

#[test]
fn a_revision_that_is_not_known_is_refused_before_a_link() {
    let server = with_sessions(|_, called| result(called, "{}"));
    let proxy = before(&server, "");
    let later = "2099-01-01";
    let headers = [
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", later),
        ("Mcp-Method", "tools/list"),
    ];
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": later,
        "io.modelcontextprotocol/clientCapabilities": {} } });
    for body in [
        call("tools/list", "{}"),
        call("tools/list", &meta.to_string()),
    ] {
        let said = proxy.rest("POST", "/rpc", &headers, body);
        let data = refused(&said, 400, -32022);
        assert_eq!(data["requested"], later);
        assert_eq!(data["supported"][4], VERSION);
    }
    assert!(!asked(&server).iter().any(|asked| asked.contains("tools/")));
}

#[test]
fn a_call_without_what_its_revision_asks_for_is_refused_before_a_link() {
    let server = stateless(|_, called| result(called, "{}"));
    let proxy = before(&server, "");
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": VERSION } });
    let body = call("tools/list", &meta.to_string());
    let said = post(&proxy, "tools/list", None, &body);
    refused(&said, 400, -32602);
    assert_eq!(rpc_failure(&said.json()), (-32602, "missing_meta"));
    assert!(!asked(&server).iter().any(|asked| asked.contains("tools/")));
    let whole = modern("tools/list", json!({}));
    assert_eq!(post(&proxy, "tools/list", None, &whole).status(), 200);
}

#[test]
fn a_name_that_is_not_a_string_is_the_fault_of_the_client() {
    let server = stateless(|_, called| result(called, "{}"));
    let proxy = before(&server, "");
    let named = modern("tools/call", json!({ "name": 7 }));
    refused(&post(&proxy, "tools/call", None, &named), 200, -32602);
    refused(&proxy.rpc(call("tools/call", r#"{"name":7}"#)), 200, -32602);
    let uri = call("resources/read", r#"{"uri":{}}"#);
    refused(&proxy.rpc(uri), 200, -32602);
    let failure = r#"dualgauge_failures_total{reason="invalid_params",blame="client",side="rpc"}"#;
    assert_eq!(proxy.metrics().value(failure), 3.0);
    assert!(
        !asked(&server)
            .iter()
            .any(|asked| asked.contains("tools/") || asked.contains("resources/"))
    );
}

#[test]
fn a_client_without_sessions_reads_the_errors_of_a_server_behind_a_link_by_their_status() {
    let server = with_sessions(|_, called| {
        let id = called.id();
        let code = called.method();
        json_of(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#
        ))
    });
    let proxy = before(&server, "");
    for (code, status) in [
        ("-32601", 404),
        ("-32021", 400),
        ("-32602", 200),
        ("-32603", 200),
    ] {
        let wanted = code.parse().unwrap();
        let new = post(&proxy, code, None, &modern(code, json!({})));
        refused(&new, status, wanted);
        refused(&proxy.rpc(call(code, "{}")), 200, wanted);
    }
}

#[test]
fn a_notification_of_either_era_is_accepted_by_the_status_of_mcp() {
    let server = stateless(|_, called| result(called, "{}"));
    let proxy = before(&server, "");
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let new = proxy.rest(
        "POST",
        "/rpc",
        &[
            ("Content-Type", "application/json"),
            ("MCP-Protocol-Version", VERSION),
        ],
        told,
    );
    assert_eq!(body_of(&new, 202), "");
    assert_eq!(body_of(&proxy.rpc(told), 202), "");
}
