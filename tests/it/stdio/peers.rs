//! Real servers from PyPI, which `.ci/install-peers` installs beside the programs that cargo builds.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::kill_child;
use crate::scene::call;
use crate::support::{Proxy, becomes, program};

/// A program of the peers.
fn peer(name: &str) -> PathBuf {
    let own = program(&[]);
    let target = Path::new(own.get_program()).ancestors().nth(2).unwrap();
    let peer = target.join("peers/bin").join(name);
    assert!(
        peer.exists(),
        "{} is missing; run .ci/install-peers",
        peer.display()
    );
    peer
}

/// A proxy before a peer, with a folder of its own for what the peer keeps.
fn before(command: &str) -> Proxy {
    before_with(command, "")
}

/// The same with a shipped table.
fn before_with(command: &str, table: &str) -> Proxy {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let config = format!(
        "{table}[upstream.peer]\nside = \"rpc\"\ncommand = {command}\ndirectory = {home:?}\n\
         connect_timeout = \"60s\"\ntimeout = \"60s\"\nstart_timeout = \"60s\"\n\
         env = {{ PATH = \"/usr/bin:/bin\", HOME = {home:?}, KUZU_MEMORY_PROJECT = {home:?} }}\n"
    );
    std::fs::write(folder.path().join("dualgauge.toml"), config).unwrap();
    Proxy::run(folder)
}

fn tool(proxy: &Proxy, name: &str, arguments: &str) -> String {
    let params = format!(r#"{{"name":"{name}","arguments":{arguments}}}"#);
    let answer = proxy.rpc(call("tools/call", &params)).json();
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned()
}

fn tools(proxy: &Proxy) -> Vec<String> {
    let answer = proxy.rpc(call("tools/list", "{}")).json();
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{answer}")).iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Greets, lists, writes, is killed, and reads back.
fn remembers(command: &str) {
    let proxy = before(command);
    let greeting: Value = proxy.rpc(call("initialize", "{}")).json();
    let name = greeting["result"]["serverInfo"]["name"].to_string();
    assert!(name.contains("kuzu-memory"), "{greeting}");
    assert!(tools(&proxy).contains(&"kuzu_remember".to_owned()));
    let stored = tool(
        &proxy,
        "kuzu_remember",
        r#"{"content":"We use PostgreSQL for the ledger"}"#,
    );
    assert!(stored.starts_with("Stored memory with ID: "), "{stored}");
    kill_child(&proxy);
    let recall = r#"{"query":"database ledger PostgreSQL"}"#;
    let starts = r#"dualgauge_link_starts_total{upstream="peer"}"#;
    becomes(|| proxy.metrics().value(starts), &2.0);
    let read = tool(&proxy, "kuzu_recall", recall);
    assert!(read.contains("We use PostgreSQL for the ledger"), "{read}");
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
}

/// A REST client writes through the table, and reads it back in the next life of the server.
fn remembers_by_routes(command: &str) {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/kuzu.toml");
    let proxy = before_with(command, &format!("include = [{table:?}]\n"));
    assert_eq!(
        proxy.rest("GET", "/health", &[], "").text(),
        r#"{"status":"ok"}"#
    );
    let kind = [("Content-Type", "application/json")];
    let body = r#"{"content":"We use PostgreSQL for the ledger"}"#;
    let stored = proxy.rest("POST", "/api/memories", &kind, body);
    assert_eq!(stored.status(), 201, "{stored:?}");
    let id = stored.json()["id"].as_str().unwrap().to_owned();
    let address = format!("/api/memories/{id}");
    assert_eq!(stored.head.one("location"), Some(address.as_str()));
    kill_child(&proxy);
    let starts = r#"dualgauge_link_starts_total{upstream="peer"}"#;
    becomes(|| proxy.metrics().value(starts), &2.0);
    let target = "/api/recall?query=database%20ledger%20PostgreSQL&limit=5";
    let read = proxy.rest("GET", target, &[], "");
    assert_eq!(read.status(), 200, "{read:?}");
    let memories = read.json()["memories"].to_string();
    assert!(
        memories.contains("We use PostgreSQL for the ledger"),
        "{memories}"
    );
    let body = r#"{"prompt":"Which database has the ledger?"}"#;
    let enhanced = proxy.rest("POST", "/api/enhance", &kind, body);
    assert_eq!(enhanced.status(), 200, "{enhanced:?}");
    let stats = proxy.rest("GET", "/api/stats", &[], "");
    assert_eq!(stats.status(), 200, "{stats:?}");
    assert!(stats.json()["stats"].is_string(), "{stats:?}");
    let empty = proxy.rest("POST", "/api/memories", &kind, r#"{"content":""}"#);
    assert!(empty.status() >= 400, "{empty:?}");
}

fn handwritten() -> String {
    let python = peer("python");
    format!(
        "[{:?}, \"-m\", \"kuzu_memory.mcp.run_server\"]",
        python.to_str().unwrap()
    )
}

fn of_the_library() -> String {
    let memory = peer("kuzu-memory");
    format!("[{:?}, \"mcp\"]", memory.to_str().unwrap())
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_rest_client_reaches_a_handwritten_server_through_the_table() {
    remembers_by_routes(&handwritten());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_rest_client_reaches_a_server_of_the_official_library_through_the_table() {
    remembers_by_routes(&of_the_library());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_handwritten_server_remembers_over_a_restart() {
    remembers(&handwritten());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_official_library_remembers_over_a_restart() {
    remembers(&of_the_library());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_clock_tells_the_time_over_a_restart() {
    let clock = peer("mcp-server-time");
    let proxy = before(&format!(
        "[{:?}, \"--local-timezone\", \"UTC\"]",
        clock.to_str().unwrap()
    ));
    let starts = r#"dualgauge_link_starts_total{upstream="peer"}"#;
    for life in [1.0, 2.0] {
        let params = r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
        let greeting = proxy.rpc(call("initialize", params)).json();
        let greeted = &greeting["result"];
        assert_eq!(greeted["serverInfo"]["name"], "mcp-time", "{greeting}");
        assert_eq!(greeted["protocolVersion"], "2025-11-25", "{greeting}");
        assert!(greeted["capabilities"]["tools"].is_object(), "{greeting}");
        assert_eq!(tools(&proxy), ["get_current_time", "convert_time"]);
        let arguments =
            r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#;
        let converted = tool(&proxy, "convert_time", arguments);
        assert!(converted.contains("T21:00:00+09:00"), "{converted}");
        assert_eq!(proxy.metrics().value(starts), life);
        if life == 1.0 {
            kill_child(&proxy);
            becomes(|| proxy.metrics().value(starts), &2.0);
        }
    }
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
}
