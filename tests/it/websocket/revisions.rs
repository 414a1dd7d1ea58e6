//! The revision that a server over a WebSocket agrees on.

use serde_json::json;

use super::before;
use super::ends::{accept, connect};
use crate::scene::{call, rpc_failure};
use crate::support::{Proxy, Upstream};

/// A server that answers the greeting with this, and the proxy before it.
fn greeted(keys: &str, result: serde_json::Value) -> (Proxy, super::ends::End) {
    let upstream = Upstream::start();
    let keys = format!("handshake = \"mcp\"\nconnect_timeout = \"200ms\"\n{keys}");
    let proxy = before(&upstream, &keys);
    let mut server = accept(&upstream);
    let hello = server.hear();
    assert_eq!(hello["method"], "initialize", "{hello}");
    server.say(json!({"jsonrpc": "2.0", "id": hello["id"], "result": result}).to_string());
    (proxy, server)
}

#[test]
fn a_server_that_agrees_on_a_revision_that_is_not_known_here_is_not_spoken_to() {
    for (result, said) in [
        (json!({"protocolVersion": "2026-07-28"}), "2026-07-28"),
        (json!({"protocolVersion": 1}), "no revision"),
        (json!({}), "no revision"),
    ] {
        let (proxy, server) = greeted("", result);
        let answer = proxy.rpc(call("do", "{}")).json();
        assert_eq!(rpc_failure(&answer), (-31021, "upstream_unreachable"));
        proxy.log_line(&["the link is lost", "upstream=socket", said, "2025-11-25"]);
        assert_eq!(server.end(), Some(1001));
    }
}

#[test]
fn a_revision_that_the_configuration_asks_for_is_taken() {
    for (initialize, result) in [
        (
            "{ protocolVersion = \"1.0\" }",
            json!({"protocolVersion": "1.0"}),
        ),
        (
            "{ protocolVersion = \"1.0\" }",
            json!({"protocolVersion": "2024-11-05"}),
        ),
        // Who asks for none is told none.
        (
            "{ client_info = { name = \"x\" } }",
            json!({"server_info": {}}),
        ),
    ] {
        let (proxy, mut server) = greeted(&format!("initialize = {initialize}\n"), result);
        assert_eq!(server.hear()["method"], "notifications/initialized");
        drop(proxy);
    }
}

#[test]
fn the_revision_of_a_call_is_checked_before_the_call_goes_to_a_socket() {
    let keys = "initialize = { protocolVersion = \"1.0\" }\n[rpc]\nwebsocket = true\n";
    let (proxy, mut server) = greeted(keys, json!({"protocolVersion": "1.0"}));
    assert_eq!(server.hear()["method"], "notifications/initialized");
    let headers = [
        ("Content-Type", "application/json"),
        ("MCP-Protocol-Version", "2.0"),
    ];
    let posted = proxy.rest("POST", "/rpc", &headers, call("do", "{}"));
    assert_eq!(posted.status(), 400, "{posted:?}");
    let unsupported = (-32022, "unsupported_version");
    assert_eq!(rpc_failure(&posted.json()), unsupported);
    let mut client = connect(&proxy);
    let meta = |version| json!({"_meta": {"io.modelcontextprotocol/protocolVersion": version}});
    for (version, failure) in [
        ("2.0", unsupported),
        ("2026-07-28", (-32602, "missing_meta")),
    ] {
        client.say(call("do", &meta(version).to_string()));
        assert_eq!(rpc_failure(&client.hear()), failure, "{version}");
    }
    // The handshake of the link asks for this one.
    let meta = meta("1.0");
    client.say(call("do", &meta.to_string()));
    let asked = server.hear();
    assert_eq!(asked["params"], meta);
    server.echo(&asked);
    assert_eq!(client.hear()["id"], 1);
}
