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
    let stateless = [("MCP-Protocol-Version", "2026-07-28")];
    let meta = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    let found = result(&proxy, &stateless, "server/discover", &meta);
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!("2026-07-28")), "{found}");
    let tools = result(&proxy, &stateless, "tools/list", &meta);
    assert_eq!(tools["resultType"], "complete");
    assert_eq!(
        (&tools["ttlMs"], &tools["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let mut call = json!({ "name": "list_tables", "arguments": {} });
    call["_meta"] = meta["_meta"].clone();
    let called = result(&proxy, &stateless, "tools/call", &call);
    assert_eq!(called["resultType"], "complete");
    let body = old.requests()[1].json();
    assert_eq!(
        body.get("_meta"),
        None,
        "the envelope is the protocol's, not the server's"
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
