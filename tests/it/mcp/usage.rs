//! The programs of clients in the report of eras.

use serde_json::{Value, json};

use super::before;
use super::bridge::begin_session;
use super::scripted::{result, with_sessions};
use crate::scene::call;
use crate::support::{Proxy, becomes};
use crate::websocket::ends::connect;

/// The names of the programs that have called in a revision.
fn programs(proxy: &Proxy, revision: &str) -> Vec<String> {
    let usage = proxy.ask("GET", "/api/v1/usage", "").json();
    let rows = usage["eras"]["clients"].as_array().unwrap().clone();
    let own = rows.iter().filter(|row| row["revision"] == revision);
    let names = own.flat_map(|row| row["programs"].as_array().unwrap());
    names
        .map(|program| program["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_later_call_of_a_session_belongs_to_the_program_of_its_initialize() {
    let server = with_sessions(|_, called| result(called, "{}"));
    let proxy = before(&server, "");
    let session = begin_session(&proxy, "{}");
    let headers = [
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", "2025-06-18"),
        ("Mcp-Session-Id", &*session),
    ];
    proxy.rest("POST", "/rpc", &headers, call("tools/list", "{}"));
    becomes(|| programs(&proxy, "2025-06-18"), &vec!["c".to_owned()]);
    assert_eq!(programs(&proxy, "2025-11-25"), ["c"]);
}

#[test]
fn a_later_call_on_a_socket_belongs_to_the_program_of_its_initialize() {
    let server = with_sessions(|_, called| result(called, "{}"));
    let proxy = before(&server, "[rpc]\nwebsocket = true\n");
    let mut client = connect(&proxy);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "s", "version": "1" } });
    for (method, params) in [("initialize", params), ("tools/list", json!({}))] {
        client.say(call(method, &params.to_string()));
        assert!(client.hear()["result"].is_object());
    }
    becomes(|| programs(&proxy, "unnamed"), &vec!["s".to_owned()]);
}

/// Returns the eras in which clients have called.
pub(crate) fn eras(proxy: &Proxy) -> Vec<String> {
    let usage = proxy.ask("GET", "/api/v1/usage", "").json();
    let rows = usage["eras"]["clients"].as_array().cloned();
    let eras = rows.into_iter().flatten();
    let word = |row: Value| row["era"].as_str().unwrap().to_owned();
    eras.map(word).collect()
}
