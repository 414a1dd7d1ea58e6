//! `config/examples/cdev-socket.toml`: what the client of cdev for iOS says, before a server that knows frames only.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Proxy, Upstream};
use crate::websocket::ends::{End, accept};

/// The example as it is shipped, before a server of the test.
fn before(server: &Upstream) -> Proxy {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let example = fs::read_to_string(config.join("examples/cdev-socket.toml")).unwrap();
    let routes = fs::read_to_string(config.join("cdev.toml")).unwrap();
    let address = format!("ws://{}/", server.address());
    let example = example
        .replace("../cdev.toml", "cdev.toml")
        .replace("ws://127.0.0.1:8765/", &address);
    assert!(example.contains(&address), "{example}");
    Proxy::start_with(&example, &[("cdev.toml", &routes)])
}

const IDS: [&str; 6] = [
    "9B2D7B0C-0E5F-4C6A-8F0A-5C1B7E4D2A11",
    "0C5E1A54-6D8B-4B7E-9C55-51E0F0A3C7D2",
    "F3A0E6B1-2C44-4F0D-8E7B-0D9C3B5A6E10",
    "5D8F6C21-7B1E-4D93-A6F4-8C2E9B7A1F03",
    "A1B2C3D4-E5F6-4789-8ABC-DEF012345678",
    "11112222-3333-4444-8555-666677778888",
];

/// Asks as the client does: the id is a UUID in upper case, and there are no params where there are none.
fn ask(client: &mut End, id: &str, method: &str, params: Option<Value>) {
    let mut call = json!({"jsonrpc": "2.0", "id": id, "method": method});
    if let Some(params) = params {
        call["params"] = params;
    }
    client.say(call.to_string());
}

fn result(client: &mut End, id: &str) -> Value {
    let said = client.hear();
    assert_eq!(
        (&said["id"], &said["jsonrpc"]),
        (&json!(id), &json!("2.0")),
        "{said}"
    );
    assert!(said.get("error").is_none(), "{said}");
    said["result"].clone()
}

#[test]
fn its_client_is_greeted_and_works_before_the_old_server() {
    let upstream = Upstream::start();
    let proxy = before(&upstream);
    let mut client = End::to(&format!("ws://{}/ws", proxy.address()), proxy.connect());
    // The socket is there for events, and nothing of the greeting reaches it.
    let mut server = accept(&upstream);
    let info = json!({"client_info": {"name": "cdev-ios", "version": "1.0.0"}});
    ask(&mut client, IDS[0], "initialize", Some(info));
    let greeting = result(&mut client, IDS[0]);
    assert_eq!(greeting["serverInfo"]["name"], "cdev");
    assert_eq!(greeting["capabilities"]["agent"]["run"], true);
    client.say(r#"{"jsonrpc":"2.0","method":"initialized"}"#);
    ask(&mut client, IDS[1], "status/get", None);
    let command = server.hear();
    assert_eq!(command["command"], "get_status");
    let status = json!({"claude_state": "idle", "agent_version": "1.0.0"});
    let time = "2025-12-20T15:30:00.123456789Z";
    let event =
        |name: &str, payload: Value| json!({"event": name, "timestamp": time, "payload": payload});
    server.say(event("claude_log", json!({"line": "x"})).to_string());
    let mut answer = event("status_response", status.clone());
    answer["request_id"] = command["request_id"].clone();
    server.say(answer.to_string());
    let log = json!({"jsonrpc": "2.0", "method": "event/claude_log", "params": {"line": "x"}});
    assert_eq!(client.hear(), log);
    assert_eq!(result(&mut client, IDS[1]), status);
    ask(&mut client, IDS[2], "agent/stop", None);
    assert_eq!(server.hear()["command"], "stop_claude");
    assert_eq!(result(&mut client, IDS[2]), json!({"status": "stopped"}));
    // What the old server has over HTTP alone, or not at all, is no method here.
    for method in ["git/status", "agent/status"] {
        ask(&mut client, IDS[3], method, None);
        let unknown = client.hear();
        assert_eq!(
            (&unknown["id"], &unknown["error"]["code"]),
            (&json!(IDS[3]), &json!(-32601))
        );
    }
    ask(&mut client, IDS[4], "ping", None);
    assert_eq!(result(&mut client, IDS[4]), json!({}));
    ask(&mut client, IDS[5], "shutdown", None);
    assert_eq!(result(&mut client, IDS[5]), json!({"success": true}));
    proxy.log_line(&["rpc_method=initialize", "decision=local"]);
    drop(client);
    assert_eq!(server.end(), Some(1001));
}
