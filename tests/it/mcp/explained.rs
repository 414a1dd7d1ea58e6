//! `explain` of calls between the eras of MCP.

use std::process::Stdio;

use crate::scene::call;
use crate::support::{program, run_to_end};

/// The explanation of a call, for an upstream with these keys. Without headers, it is of a client with a session.
fn explained(keys: &str, headers: &[&str], method: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dualgauge.toml");
    let config = format!(
        "[upstream.m]\nside = \"rpc\"\nurl = \"http://127.0.0.1:1/mcp\"\nprotocol = \"mcp\"\n{keys}"
    );
    std::fs::write(&path, config).unwrap();
    let mut command = program(&["explain", "--config"]);
    command.arg(&path);
    for header in headers {
        command.args(["-H", header]);
    }
    let meta = match headers {
        [] => r#"{"level":"info"}"#,
        _ => {
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"name":"t"}"#
        }
    };
    let body = call(method, meta);
    command
        .args(["-X", "POST", "-d", &body, "/rpc"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let ended = run_to_end(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.output
}

const NEW: [&str; 3] = [
    "MCP-Protocol-Version: 2026-07-28",
    "Mcp-Method: tools/call",
    "Mcp-Name: t",
];

#[test]
fn a_call_names_the_eras_and_the_conversions_that_apply() {
    let said = explained("", &NEW, "tools/call");
    for line in [
        "mcp        client 2026-07-28, server of either era, found at the handshake\n",
        "  server_request: with a server with sessions, a request of the server becomes",
        "  log_level: with a server with sessions, `logging/setLevel` precedes",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    let said = explained("server_requests = \"decline\"\n", &NEW, "tools/call");
    assert!(!said.contains("server_request:"), "{said}");
    let said = explained("revision = \"2026-07-28\"\n", &NEW, "tools/call");
    assert!(
        said.contains("client 2026-07-28, server 2026-07-28\n") && !said.contains("log_level:"),
        "{said}"
    );
    let said = explained("revision = \"2026-07-28\"\n", &[], "logging/setLevel");
    for line in [
        "client with sessions, server 2026-07-28\n",
        "  log_level: the proxy keeps the level for the session",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
}
