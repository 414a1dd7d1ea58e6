//! `config/examples/mcp-face.toml`: what an MCP client says to the old REST server, which knows nothing of it.

use std::fs;

use serde_json::{Value, json};

use super::fake_sqlite::old;
use super::servers::{asked, config, message};
use crate::support::{Message, Proxy, Upstream};

/// The example as it is shipped, before a server of the test.
pub(super) fn before(server: &Upstream) -> Proxy {
    let example = fs::read_to_string(config().join("examples/mcp-face.toml")).unwrap();
    let routes = fs::read_to_string(config().join("sqlite.toml")).unwrap();
    let address = format!("http://{}", server.address());
    let example = example
        .replace("../sqlite.toml", "sqlite.toml")
        .replace("http://127.0.0.1:9001", &address);
    assert!(example.contains(&address), "{example}");
    Proxy::start_with(&example, &[("sqlite.toml", &routes)])
}

const HEADERS: [(&str, &str); 2] = [
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
];

const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn say(proxy: &Proxy, more: &[(&str, &str)], body: &str) -> Message {
    let headers = [&HEADERS[..], more].concat();
    proxy.rest("POST", "/mcp", &headers, body)
}

fn result(proxy: &Proxy, more: &[(&str, &str)], method: &str, params: &Value) -> Value {
    let said = say(proxy, more, &message(method, params));
    assert_eq!(said.status(), 200, "{said:?}");
    said.json()["result"].clone()
}

#[test]
fn a_client_is_greeted_lists_and_calls() {
    let old = old();
    let proxy = before(&old);
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let greeting = result(&proxy, &[], "initialize", &params);
    assert_eq!(greeting["protocolVersion"], "2025-06-18");
    assert_eq!(greeting["serverInfo"]["name"], "sqlite");
    assert_eq!(greeting["capabilities"], json!({ "tools": {} }));
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(say(&proxy, &[], note).status(), 202);
    assert_eq!(result(&proxy, &[], "ping", &json!({})), json!({}));
    let tools = result(&proxy, &[], "tools/list", &json!({}));
    assert_eq!(tools["tools"][0]["name"], "list_tables");
    assert_eq!(tools.get("resultType"), None);
    let call = json!({ "name": "list_tables", "arguments": {} });
    let called = result(&proxy, &[], "tools/call", &call);
    assert_eq!(called["content"][0]["type"], "text");
    // The greeting, the notification and the ping are none of the old server's business.
    let requests = old.requests();
    let asked: Vec<_> = requests.iter().map(|request| asked(request).1).collect();
    assert_eq!(asked, ["/mcp/v1/tools/list", "/mcp/v1/tools/call"]);
}

#[test]
fn a_client_without_sessions_finds_what_its_revision_asks_for() {
    let old = old();
    let proxy = before(&old);
    let stateless = |method| [VERSION, ("Mcp-Method", method)];
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    let method = "server/discover";
    let found = result(&proxy, &stateless(method), method, &meta);
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let tools = result(&proxy, &stateless("tools/list"), "tools/list", &meta);
    assert_eq!(tools["resultType"], "complete");
    assert_eq!(
        (&tools["ttlMs"], &tools["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let mut call = json!({ "name": "list_tables", "arguments": {} });
    call["_meta"] = meta["_meta"].clone();
    let named = [
        VERSION,
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "list_tables"),
    ];
    let called = result(&proxy, &named, "tools/call", &call);
    assert_eq!(called["resultType"], "complete");
    let pong = result(&proxy, &stateless("ping"), "ping", &meta);
    assert_eq!(pong, json!({ "resultType": "complete" }));
    let body = old.requests()[1].json();
    assert_eq!(
        body.get("_meta"),
        None,
        "the envelope is the protocol's, not the server's"
    );
}

fn is_refused(said: &Message, code: i64, reason: &str) -> Value {
    assert_eq!(said.status(), 400, "{said:?}");
    let error = said.json()["error"].clone();
    assert_eq!(error["code"], code, "{error}");
    assert_eq!(error["data"]["reason"], reason, "{error}");
    error
}

#[test]
fn a_client_whose_headers_say_something_else_than_its_message_is_refused() {
    let old = old();
    let proxy = before(&old);
    let call = json!({ "name": "list_tables", "arguments": {},
        "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    let call = message("tools/call", &call);
    let (method, name) = (("Mcp-Method", "tools/call"), ("Mcp-Name", "list_tables"));
    for headers in [
        &[method, name][..],
        &[VERSION, name],
        &[VERSION, method],
        &[VERSION, ("Mcp-Method", "tools/list"), name],
        &[VERSION, method, ("Mcp-Name", "query_records")],
        &[("MCP-Protocol-Version", "2025-06-18"), method, name],
    ] {
        let said = say(&proxy, headers, &call);
        is_refused(&said, -32020, "header_mismatch");
        assert_eq!(said.json()["id"], 1, "{headers:?}");
    }
    assert!(old.requests().is_empty());
    let encoded = ("Mcp-Name", "=?base64?bGlzdF90YWJsZXM=?=");
    let said = say(&proxy, &[VERSION, method, encoded], &call);
    assert_eq!(said.status(), 200, "{said:?}");
    let failures =
        r#"dualgauge_failures_total{reason="header_mismatch",blame="client",side="rpc"}"#;
    assert_eq!(proxy.metrics().value(failures), 6.0);
}

#[test]
fn a_revision_that_is_not_spoken_is_refused_with_those_that_are() {
    let old = old();
    let proxy = before(&old);
    let later = ("MCP-Protocol-Version", "2099-01-01");
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2099-01-01" } });
    let asked = message("tools/list", &meta);
    let said = say(&proxy, &[later, ("Mcp-Method", "tools/list")], &asked);
    let error = is_refused(&said, -32022, "unsupported_version");
    let spoken = json!([
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28"
    ]);
    assert_eq!(error["data"]["supported"], spoken);
    assert_eq!(error["data"]["requested"], "2099-01-01");
    let said = say(&proxy, &[later], &message("tools/list", &json!({})));
    is_refused(&said, -32022, "unsupported_version");
    assert!(old.requests().is_empty());
}

#[test]
fn a_revision_without_sessions_has_no_batches_and_tells_by_the_status_what_is_not_there() {
    let old = old();
    let proxy = before(&old);
    let ping = message("ping", &json!({}));
    let said = say(
        &proxy,
        &[VERSION, ("Mcp-Method", "ping")],
        &format!("[{ping}]"),
    );
    is_refused(&said, -32600, "no_batch");
    // Those who do not say which revision they speak may send some, in which each message is looked at by itself.
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    let modern = message("ping", &meta);
    let said = say(&proxy, &[], &format!("[{ping},{modern}]"));
    assert_eq!(said.status(), 200);
    assert_eq!(said.json()[0]["result"], json!({}));
    assert_eq!(said.json()[1]["error"]["code"], -32020);
    let said = say(
        &proxy,
        &[VERSION, ("Mcp-Method", "nope")],
        &message("nope", &meta),
    );
    assert_eq!(
        (said.status(), &said.json()["error"]["code"]),
        (404, &json!(-32601))
    );
    let said = say(&proxy, &[], &message("nope", &json!({})));
    assert_eq!(
        (said.status(), &said.json()["error"]["code"]),
        (200, &json!(-32601))
    );
}

#[test]
fn there_is_no_stream_of_the_servers_own_and_no_session_to_end() {
    let old = old();
    let proxy = before(&old);
    for method in ["GET", "DELETE"] {
        let refused = proxy.rest(method, "/mcp", &[("Accept", "text/event-stream")], "");
        assert_eq!(refused.status(), 405, "{method}");
        assert_eq!(refused.head.one("allow"), Some("POST"), "{method}");
    }
}

#[test]
fn a_tool_that_fails_says_why_in_its_result() {
    let old = old();
    let proxy = before(&old);
    let call = json!({ "name": "query_records", "arguments": { "table_name": "nosuch" } });
    let failed = result(&proxy, &[], "tools/call", &call);
    let content = json!([{ "type": "text", "text": "no such table: nosuch" }]);
    assert_eq!(failed, json!({ "content": content, "isError": true }));
    proxy.log_line(&["outcome=tool_error", "status=200"]);
    let call = json!({ "name": "nope", "arguments": {} });
    let unknown = say(&proxy, &[], &message("tools/call", &call)).json();
    assert_eq!(unknown["error"]["code"], -32602);
    assert_eq!(unknown["error"]["message"], "Tool not found: nope");
}
