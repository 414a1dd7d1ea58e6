//! The end of the program with a call in flight: it is answered within the limit of the drain, or its server hears that
//! nobody waits any more.

use std::fs;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use crate::mcp::scripted::{asked, begun, last, result, with_sessions};
use crate::scene::{call, rpc_failure};
use crate::support::{Proxy, Track, Upstream, Wire, becomes, rest_only};
use crate::websocket::ends::{accept, connect};

const LIMIT: &str = "[limits]\ndrain = \"300ms\"\n";

fn post(proxy: &Proxy, body: &str) -> Wire {
    let mut wire = proxy.connect();
    let length = body.len();
    wire.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    wire
}

/// Ends the program, which goes on until its calls are over.
fn drain(proxy: &Proxy) {
    proxy.signal("TERM");
    proxy.log_line(&["draining"]);
}

/// The client has an answer of the proxy's.
fn is_told(mut client: Wire) {
    let answer = client.read_answer();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.head.one("retry-after"), Some("1"));
    assert_eq!(rpc_failure(&answer.json()), (-31044, "draining"));
    client.expect_closed();
}

fn is_ended_by_the_drain(proxy: Proxy) {
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
    let line = stopped
        .log
        .lines()
        .find(|line| line.contains("reason=draining"));
    let line = line.unwrap_or_else(|| panic!("{stopped:?}"));
    assert!(line.contains("blame=proxy"), "{line}");
}

#[test]
fn a_call_over_a_websocket_is_answered_within_the_drain() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "");
    let mut server = accept(&upstream);
    let mut client = post(&proxy, &call("do", "[]"));
    let heard = server.hear();
    drain(&proxy);
    server.echo(&heard);
    assert_eq!(client.read_answer().json()["id"], 1);
    assert_eq!(server.end(), Some(1001));
    assert!(proxy.wait().status.success());
}

#[test]
fn a_call_over_a_websocket_is_cancelled_at_the_end_of_the_drain() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, &format!("handshake = \"mcp\"\n{LIMIT}"));
    let mut server = accept(&upstream);
    server.greet();
    let posted = post(&proxy, &call("do", "[]"));
    let mut socket = connect(&proxy);
    let mut calls = vec![server.hear()["id"].clone()];
    socket.say(call("do", "[]"));
    calls.push(server.hear()["id"].clone());
    drain(&proxy);
    let mut told = Vec::new();
    for _ in &calls {
        let heard = server.hear();
        assert_eq!(heard["method"], "notifications/cancelled");
        told.push(heard["params"]["requestId"].clone());
    }
    told.sort_by_key(serde_json::Value::as_u64);
    assert_eq!(told, calls);
    assert_eq!(server.end(), Some(1001));
    is_told(posted);
    assert_eq!(rpc_failure(&socket.hear()), (-31044, "draining"));
    assert_eq!(socket.end(), Some(1001));
    is_ended_by_the_drain(proxy);
}

#[test]
fn a_call_over_a_socket_of_its_client_is_answered_within_the_drain() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "sharing = \"client\"\n");
    let mut posted = post(&proxy, &call("do", "[]"));
    let mut first = accept(&upstream);
    let asked = first.hear();
    let mut client = connect(&proxy);
    client.say(call("do", "[]"));
    let mut second = accept(&upstream);
    let heard = second.hear();
    drain(&proxy);
    // What the server tells before the answer is still heard.
    second.say(r#"{"jsonrpc":"2.0","method":"event/x","params":[]}"#);
    second.echo(&heard);
    assert_eq!(client.hear()["method"], "event/x");
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(client.end(), Some(1001));
    assert_eq!(second.end(), Some(1001));
    first.echo(&asked);
    assert_eq!(posted.read_answer().json()["id"], 1);
    assert_eq!(first.end(), Some(1001));
    assert!(proxy.wait().status.success());
}

#[test]
fn a_call_over_a_socket_of_its_client_is_cancelled_at_the_end_of_the_drain() {
    let upstream = Upstream::start();
    let keys = format!("sharing = \"client\"\nhandshake = \"mcp\"\n{LIMIT}");
    let proxy = crate::websocket::before(&upstream, &keys);
    let posted = post(&proxy, &call("do", "[]"));
    let mut servers = Vec::new();
    let asked = |servers: &mut Vec<_>| {
        let mut server = accept(&upstream);
        server.greet();
        let id = server.hear()["id"].clone();
        servers.push((server, id));
    };
    asked(&mut servers);
    let mut socket = connect(&proxy);
    socket.say(call("do", "[]"));
    asked(&mut servers);
    drain(&proxy);
    for (mut server, id) in servers {
        let heard = server.hear();
        assert_eq!(heard["method"], "notifications/cancelled");
        assert_eq!(heard["params"]["requestId"], id);
        assert_eq!(server.end(), Some(1001));
    }
    is_told(posted);
    assert_eq!(rpc_failure(&socket.hear()), (-31044, "draining"));
    assert_eq!(socket.end(), Some(1001));
    is_ended_by_the_drain(proxy);
}

#[test]
fn a_socket_of_its_client_that_is_lost_in_the_drain_fails_its_call_and_closes_the_client() {
    let upstream = Upstream::start();
    let proxy = crate::websocket::before(&upstream, "sharing = \"client\"\n");
    let mut client = connect(&proxy);
    client.say(call("do", "[]"));
    let mut server = accept(&upstream);
    server.hear();
    drain(&proxy);
    drop(server);
    assert_eq!(rpc_failure(&client.hear()), (-31023, "upstream_cut"));
    assert_eq!(client.end(), Some(1001));
    assert!(proxy.wait().status.success());
}

#[test]
fn a_call_of_an_mcp_server_is_answered_within_the_drain() {
    let (go, gone) = sync_channel::<()>(1);
    let gone = Mutex::new(gone);
    let server = with_sessions(move |_, called| {
        gone.lock().unwrap().recv().unwrap();
        result(called, "1")
    });
    let proxy = crate::mcp::before(&server, "");
    let mut client = post(&proxy, &call("slow", "{}"));
    let written = r#"dualgauge_link_calls_in_flight{upstream="m",state="written"}"#;
    becomes(|| proxy.metrics().value(written), &1.0);
    drain(&proxy);
    go.send(()).unwrap();
    assert_eq!(client.read_answer().json()["result"], 1);
    assert!(proxy.wait().status.success());
    assert_eq!(asked(&server).last().unwrap(), "DELETE ");
}

#[test]
fn a_call_of_an_mcp_server_is_cancelled_at_the_end_of_the_drain() {
    let server = with_sessions(|_, _| begun(": wait\n\n"));
    let proxy = crate::mcp::before(&server, LIMIT);
    let client = post(&proxy, &call("never", "{}"));
    let written = r#"dualgauge_link_calls_in_flight{upstream="m",state="written"}"#;
    becomes(|| proxy.metrics().value(written), &1.0);
    drain(&proxy);
    is_told(client);
    is_ended_by_the_drain(proxy);
    let told = asked(&server);
    assert_eq!(
        told[told.len() - 2..],
        ["POST notifications/cancelled", "DELETE "]
    );
    let id = last(&server, "never").json()["id"].clone();
    assert_eq!(
        last(&server, "notifications/cancelled").json()["params"]["requestId"],
        id
    );
}

/// A proxy before a shell that runs a script.
fn before_shell(script: &str, keys: &str) -> (Proxy, Arc<TempDir>) {
    let folder = Arc::new(tempfile::tempdir().unwrap());
    fs::write(folder.path().join("child.sh"), script).unwrap();
    let config = format!(
        "[upstream.child]\nside = \"rpc\"\ncommand = [\"/bin/sh\", \"child.sh\"]\ndirectory = \".\"\n{keys}"
    );
    fs::write(folder.path().join("dualgauge.toml"), config).unwrap();
    (Proxy::run(folder.clone()), folder)
}

fn read(folder: &Path) -> String {
    fs::read_to_string(folder.join("heard")).unwrap_or_default()
}

#[test]
fn a_call_of_a_child_is_answered_within_the_drain() {
    let script = "mkfifo go\nread -r call\necho \"$call\" > heard\nread -r word < go\n\
        echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"late\"}'\ncat > rest\n";
    let (proxy, folder) = before_shell(script, "handshake = \"none\"\n");
    let mut client = post(&proxy, &call("slow", "[]"));
    becomes(|| read(folder.path()).contains("slow"), &true);
    drain(&proxy);
    // It is opened as soon as the child reads it.
    fs::write(folder.path().join("go"), "on\n").unwrap();
    assert_eq!(client.read_answer().json()["result"], "late");
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(!stopped.log.contains("does not exit"), "{stopped:?}");
}

#[test]
fn a_call_of_a_child_is_cancelled_at_the_end_of_the_drain() {
    let script = "read -r hello\n\
        echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\"}}'\n\
        while read -r line; do echo \"$line\" >> heard; done\n";
    let keys = format!("revision = \"2025-11-25\"\n{LIMIT}");
    let (proxy, folder) = before_shell(script, &keys);
    let client = post(&proxy, &call("never", "[]"));
    becomes(|| read(folder.path()).contains("never"), &true);
    drain(&proxy);
    is_told(client);
    is_ended_by_the_drain(proxy);
    let heard = read(folder.path());
    let last: serde_json::Value = serde_json::from_str(heard.lines().last().unwrap()).unwrap();
    assert_eq!(last["method"], "notifications/cancelled", "{heard}");
    assert_eq!(last["params"]["requestId"], 3, "{heard}");
}

/// A connection that has changed its protocol, with more keys of the configuration.
fn tunnel(more: &str) -> (Track, Wire, Wire) {
    let upstream = Upstream::start();
    let config = format!("{}{more}", rest_only(&upstream));
    let track = Track {
        proxy: Proxy::start(&config),
        upstream,
    };
    let upgrade = "Connection: Upgrade\r\nUpgrade: x";
    let mut open = track.open(format!("GET / HTTP/1.1\r\nHost: a\r\n{upgrade}\r\n\r\n"));
    open.server.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\n{upgrade}\r\n\r\n"
    ));
    open.client.read_head();
    (track, open.client, open.server)
}

#[test]
fn a_tunnel_goes_on_within_the_drain() {
    let (track, mut client, mut server) = tunnel("");
    drain(&track.proxy);
    client.send("question");
    server.expect("question");
    server.send("answer");
    client.expect("answer");
    drop(server);
    client.expect_gone();
    drop(client);
    let stopped = track.proxy.wait();
    assert!(stopped.log.contains("outcome=success"), "{stopped:?}");
}

#[test]
fn a_tunnel_is_cut_at_the_end_of_the_drain() {
    let (track, mut client, mut server) = tunnel(LIMIT);
    drain(&track.proxy);
    client.send("question");
    server.expect("question");
    client.expect_gone();
    server.expect_gone();
    track.proxy.wait();
}
