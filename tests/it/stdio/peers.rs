//! Real servers from PyPI, which `.ci/install-peers` installs beside the programs that cargo builds.

use std::path::{Path, PathBuf};

use serde_json::Value;

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
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_str().unwrap();
    let config = format!(
        "[upstream.peer]\nside = \"rpc\"\ncommand = {command}\ndirectory = {home:?}\n\
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
    kill_children(&proxy);
    let recall = r#"{"query":"database ledger PostgreSQL"}"#;
    let starts = r#"dualgauge_link_starts_total{upstream="peer"}"#;
    becomes(|| proxy.metrics().value(starts), &2.0);
    let read = tool(&proxy, "kuzu_recall", recall);
    assert!(read.contains("We use PostgreSQL for the ledger"), "{read}");
    let stopped = proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
}

/// Kills the one child of the proxy.
fn kill_children(proxy: &Proxy) {
    let own = proxy.process();
    let listed =
        std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
    let of_tasks =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<String> = of_tasks
        .chain([listed])
        .flat_map(|children| {
            children
                .split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let child = children.first().unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-s", "KILL", child])
        .status();
    assert!(killed.unwrap().success());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_handwritten_server_remembers_over_a_restart() {
    let python = peer("python");
    remembers(&format!(
        "[{:?}, \"-m\", \"kuzu_memory.mcp.run_server\"]",
        python.to_str().unwrap()
    ));
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_official_library_remembers_over_a_restart() {
    let memory = peer("kuzu-memory");
    remembers(&format!("[{:?}, \"mcp\"]", memory.to_str().unwrap()));
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_clock_tells_the_time() {
    let clock = peer("mcp-server-time");
    let proxy = before(&format!(
        "[{:?}, \"--local-timezone\", \"UTC\"]",
        clock.to_str().unwrap()
    ));
    assert_eq!(tools(&proxy), ["get_current_time", "convert_time"]);
    let arguments = r#"{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}"#;
    let converted = tool(&proxy, "convert_time", arguments);
    assert!(converted.contains("T21:00:00+09:00"), "{converted}");
}
