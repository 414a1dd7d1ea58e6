//! The official MCP clients before the old REST server, which `.ci/install-peers` installs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::fake_sqlite::old;
use super::mcp_face::before;
use crate::support::{program, run_to_end};

/// Where peers are: beside the programs that cargo builds.
fn peers(folder: &str) -> PathBuf {
    let own = program(&[]);
    let target = Path::new(own.get_program()).ancestors().nth(2).unwrap();
    let peers = target.join(folder);
    let missing = format!("{} is missing; run .ci/install-peers", peers.display());
    assert!(peers.exists(), "{missing}");
    peers
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/mcp")
        .join(name)
}

/// What a client prints that has greeted, listed, called, asked for a tool that is not there, and for one that fails.
fn told(command: impl FnOnce(&str) -> Command) -> Value {
    let old = old();
    let proxy = before(&old);
    let url = format!("http://{}/mcp", proxy.address());
    let mut command = command(&url);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", proxy.log());
    serde_json::from_str(&ended.output).unwrap()
}

fn is_served(told: &Value) {
    assert_eq!(told[0], "sqlite", "{told}");
    assert_eq!(told[1], json!(["list_tables", "query_records"]), "{told}");
    assert!(told[2].as_str().unwrap().contains("users"), "{told}");
    assert!(
        told[3].as_str().unwrap().contains("Tool not found: nope"),
        "{told}"
    );
    let failed = json!([true, "no such table: nosuch"]);
    assert_eq!(json!([told[4], told[5]]), failed, "{told}");
}

fn python(peers: &Path, name: &str, url: &str, more: &[&str]) -> Command {
    let mut command = Command::new(peers.join("bin/python"));
    command.arg(script(name)).arg(url).args(more);
    command
}

#[test]
#[ignore = "needs the official MCP clients"]
fn the_first_python_client_is_served() {
    let peers = peers("peers");
    is_served(&told(|url| python(&peers, "first.py", url, &[])));
}

#[test]
#[ignore = "needs the official MCP clients"]
fn the_second_python_client_is_served_with_and_without_sessions() {
    let peers = peers("peers-2");
    for mode in ["legacy", "auto", "2026-07-28"] {
        is_served(&told(|url| python(&peers, "second.py", url, &[mode])));
    }
}

#[test]
#[ignore = "needs the official MCP clients"]
fn both_typescript_clients_are_served() {
    let modules = peers("peers-npm").join("node_modules");
    for library in ["sdk", "client"] {
        // A script finds its libraries in the folders above it.
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("client.mjs");
        std::fs::copy(script("client.mjs"), &copy).unwrap();
        std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
        is_served(&told(|url| {
            let mut command = Command::new("node");
            command.arg(&copy).arg(url).arg(library);
            command
        }));
    }
}
