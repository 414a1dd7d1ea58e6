//! Real servers of the official libraries, which `.ci/install-peers` installs beside the programs that cargo builds.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{ROUTE, STARTS, strays};
use crate::scene::{body_of, call};
use crate::support::{Proxy, becomes, program, run_to_end};

/// A server that runs, and ends with the test.
pub(crate) struct Peer {
    child: Child,
    pub(crate) address: SocketAddr,
    path: &'static str,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A file of the peers.
pub(crate) fn installed(path: &str) -> PathBuf {
    let own = program(&[]);
    let target = Path::new(own.get_program()).ancestors().nth(2).unwrap();
    let peer = target.join(path);
    assert!(
        peer.exists(),
        "{} is missing; run .ci/install-peers",
        peer.display()
    );
    peer
}

/// A server of a Python library, on the port that it prints; or on this one.
fn python(library: &str, kind: &str, port: u16) -> Peer {
    script(
        library,
        "tests/it/mcp/server.py",
        &[kind, &port.to_string()],
    )
}

/// A script that serves on the port that it prints, run with a Python library.
pub(crate) fn script(library: &str, path: &str, arguments: &[&str]) -> Peer {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let mut child = Command::new(installed(&format!("{library}/bin/python")))
        .arg(script)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    Peer {
        child,
        address,
        path: "/mcp",
    }
}

/// The server from npm, which wants to be told its port.
fn everything() -> Peer {
    let script =
        installed("peers-npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let child = Command::new("node")
        .arg(script)
        .arg("streamableHttp")
        .env("PORT", address.port().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    becomes(|| TcpStream::connect(address).is_ok(), &true);
    Peer {
        child,
        address,
        path: "/mcp",
    }
}

fn before(peer: &Peer, keys: &str) -> Proxy {
    let (address, path) = (peer.address, peer.path);
    Proxy::start(&format!(
        "[upstream.m]\nside = \"rpc\"\nurl = \"http://{address}{path}\"\nprotocol = \"mcp\"\n\
         connect_timeout = \"30s\"\n{keys}\n{ROUTE}"
    ))
}

fn tool(proxy: &Proxy, name: &str, arguments: Value) -> Value {
    let params = json!({ "name": name, "arguments": arguments }).to_string();
    let answer = proxy.rpc(call("tools/call", &params)).json();
    answer["result"]["content"][0]["text"].clone()
}

fn tools(proxy: &Proxy) -> Vec<String> {
    let answer = proxy.rpc(call("tools/list", "{}")).json();
    let tools = answer["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{answer}")).iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Greets, lists, and calls as an RPC client and as a REST client.
fn serves(peer: &Peer, keys: &str) -> Proxy {
    let proxy = before(peer, keys);
    let greeting = proxy.rpc(call("initialize", "{}")).json();
    assert_eq!(
        greeting["result"]["serverInfo"]["name"], "peer",
        "{greeting}"
    );
    assert_eq!(tools(&proxy), ["add", "tell", "größe", "fail"]);
    assert_eq!(
        tool(&proxy, "add", json!({ "a": 1, "b": 2 })),
        "the sum is 3"
    );
    assert_eq!(tool(&proxy, "größe", json!({})), "groß");
    assert_eq!(tool(&proxy, "tell", json!({ "what": "it" })), "it");
    let answer = proxy.rest("GET", "/sum/7", &[], "");
    assert_eq!(body_of(&answer, 200), r#"{"said":"the sum is 8"}"#);
    proxy
}

/// A session goes on when the server is started again.
fn outlives(library: &str, kind: &str, keys: &str) {
    let peer = python(library, kind, 0);
    let port = peer.address.port();
    let proxy = serves(&peer, keys);
    drop(peer);
    let again = python(library, kind, port);
    assert_eq!(
        tool(&proxy, "add", json!({ "a": 2, "b": 2 })),
        "the sum is 4"
    );
    assert_eq!(again.address.port(), port);
    assert_eq!(proxy.metrics().value(STARTS), 2.0);
    assert!(proxy.stop().status.success());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_first_library_serves_with_sessions() {
    outlives("peers", "stateful", "");
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_first_library_serves_in_json() {
    outlives("peers", "json", "revision = \"2025-03-26\"");
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_first_library_serves_without_a_session_of_its_own() {
    let peer = python("peers", "stateless", 0);
    serves(&peer, "");
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_second_library_serves_without_sessions() {
    let peer = python("peers-2", "stateful", 0);
    let proxy = serves(&peer, "revision = \"2026-07-28\"");
    assert_eq!(strays(&proxy, "foreign"), 0.0);
    let port = peer.address.port();
    drop(peer);
    let _again = python("peers-2", "stateful", port);
    assert_eq!(
        tool(&proxy, "add", json!({ "a": 2, "b": 2 })),
        "the sum is 4"
    );
    assert_eq!(proxy.metrics().value(STARTS), 1.0);
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_second_library_serves_by_what_it_says_of_itself() {
    for kind in ["stateful", "json"] {
        let peer = python("peers-2", kind, 0);
        serves(&peer, "");
    }
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_server_of_the_second_library_serves_with_sessions() {
    outlives("peers-2", "stateful", "revision = \"2025-11-25\"");
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn the_server_from_npm_serves() {
    let peer = everything();
    let proxy = before(&peer, "");
    let greeting = proxy.rpc(call("initialize", "{}")).json();
    let name = greeting["result"]["serverInfo"]["name"].to_string();
    assert!(name.contains("everything"), "{greeting}");
    assert!(tools(&proxy).contains(&"echo".to_owned()));
    assert_eq!(tool(&proxy, "echo", json!({ "message": "hi" })), "Echo: hi");
    assert!(proxy.stop().status.success());
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn a_client_of_the_first_library_hears_how_far_a_call_is_and_recalls_another() {
    let peer = everything();
    let proxy = before(&peer, "timeout = \"60s\"");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mcp/hears.py");
    let mut command = Command::new(installed("peers/bin/python"));
    command
        .arg(script)
        .arg(format!("http://{}/mcp", proxy.address()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", proxy.log());
    let told: Value = serde_json::from_str(&ended.output).unwrap();
    assert_eq!(
        told[0],
        json!([[1.0, 4.0], [2.0, 4.0], [3.0, 4.0], [4.0, 4.0]])
    );
    assert!(told[1].as_str().unwrap().contains("completed"), "{told}");
    assert_eq!(told[2], true, "the client has a session");
    proxy.log_line(&["rpc_method=tools/call", "outcome=cancelled"]);
    becomes(|| proxy.metrics().value(super::IN_FLIGHT), &0.0);
}

/// REST clients of `config/examples/mcp-upstream.toml` read the failure of a tool where the old server said it.
fn tells_failures(peer: &Peer) {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let example = fs::read_to_string(config.join("examples/mcp-upstream.toml")).unwrap();
    let routes = fs::read_to_string(config.join("sqlite.toml")).unwrap();
    let (address, path) = (peer.address, peer.path);
    let example = example.replace("../sqlite.toml", "sqlite.toml").replace(
        "http://127.0.0.1:8000/mcp",
        &format!("http://{address}{path}"),
    );
    assert!(example.contains(&address.to_string()), "{example}");
    let example =
        format!("{example}connect_timeout = \"30s\"\n[rollout]\nflags = \"flags.toml\"\n");
    let flags = "[[flag]]\nname = \"moved\"\nside = \"rest\"\nstage = \"translate\"\n";
    let files = [("sqlite.toml", &*routes), ("flags.toml", flags)];
    let proxy = Proxy::start_with(&example, &files);
    let call = |name: &str, arguments: Value| {
        let body = json!({ "name": name, "arguments": arguments }).to_string();
        let kind = [("Content-Type", "application/json")];
        let answer = proxy.rest("POST", "/mcp/v1/tools/call", &kind, body);
        let result: Value = serde_json::from_str(body_of(&answer, 200)).unwrap();
        let text = result["content"][0]["text"].as_str().map(str::to_owned);
        (result["isError"].clone(), text.unwrap_or_default())
    };
    assert_eq!(
        call("add", json!({ "a": 1 })),
        (json!(false), "the sum is 2".to_owned())
    );
    let (is_error, text) = call("fail", json!({ "why": "out of paper" }));
    assert_eq!(is_error, true);
    assert!(text.contains("fail"), "{text}");
    let (is_error, text) = call("nope", json!({}));
    assert_eq!(is_error, true);
    assert!(text.contains("nope"), "{text}");
}

#[test]
#[ignore = "needs the peers of .ci/install-peers"]
fn rest_clients_read_the_failures_of_tools_of_both_libraries() {
    for library in ["peers", "peers-2"] {
        tells_failures(&python(library, "stateful", 0));
    }
}
