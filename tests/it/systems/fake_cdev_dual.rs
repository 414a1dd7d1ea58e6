//! The socket of cdev that speaks both of its protocols: each message is of one or the other, what is of neither gets no
//! answer, and the first that is recognised says in which form the connection's events come.

use serde_json::{Value, json};

use super::fake_cdev::go;
use super::fake_cdev_socket::legacy;

const GREETING: &str = r#"{"protocolVersion":"1.0","serverInfo":{"name":"cdev","version":"1.0.0"},"capabilities":{"agent":{"run":true,"stop":true,"respond":true,"sessions":true,"sessionWatch":true},"git":{"status":true,"discard":false},"file":{"get":true,"list":true},"repository":{"index":true,"search":true,"tree":true},"notifications":["agent_log","agent_state","file_changed","git_status"],"supportedAgents":["claude"]}}"#;

/// In legacy form even for those who speak JSON-RPC.
pub(super) const HEARTBEAT: &str = r#"{"event":"heartbeat","timestamp":"2025-12-21T15:30:00Z","payload":{"server_time":"2025-12-21T15:30:00Z","sequence":1,"claude_status":"idle","uptime_seconds":1}}"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Rpc,
    Legacy,
}

impl Protocol {
    fn of(message: &str) -> Option<Protocol> {
        let read: Value = serde_json::from_str(message).ok()?;
        if message.len() >= 20 && message.starts_with('{') && read["jsonrpc"] == "2.0" {
            return Some(Protocol::Rpc);
        }
        let command = read["command"].as_str().unwrap_or_default();
        (!command.is_empty()).then_some(Protocol::Legacy)
    }
}

/// The server's side of one connection.
pub(super) struct Dual {
    events: Option<Protocol>,
    /// The result or the error of a method.
    methods: fn(&str, &Value) -> String,
}

impl Dual {
    pub(super) fn new(methods: fn(&str, &Value) -> String) -> Dual {
        Dual {
            events: None,
            methods,
        }
    }

    /// What it says to a message.
    pub(super) fn hears(&mut self, message: &str) -> Vec<String> {
        let Some(protocol) = Protocol::of(message) else {
            return Vec::new();
        };
        self.events.get_or_insert(protocol);
        let read: Value = serde_json::from_str(message).unwrap();
        match protocol {
            Protocol::Rpc => self.answers(&read).into_iter().collect(),
            Protocol::Legacy => {
                let answers = legacy(&read);
                let answers = answers.iter().map(|answer| go(&answer.to_string()));
                std::iter::once(warning(&read)).chain(answers).collect()
            }
        }
    }

    /// An event, in the form of the connection.
    pub(super) fn tells(&self, name: &str, payload: &Value) -> String {
        go(&match self.events {
            Some(Protocol::Rpc) => {
                format!(r#"{{"jsonrpc":"2.0","method":"event/{name}","params":{payload}}}"#)
            }
            Some(Protocol::Legacy) | None => format!(
                r#"{{"event":"{name}","timestamp":"2025-12-21T15:30:00.123456789Z","payload":{payload}}}"#
            ),
        })
    }

    fn answers(&self, call: &Value) -> Option<String> {
        let id = match &call["id"] {
            Value::Null => return None,
            Value::Number(number) if number.is_f64() => {
                json!(number.as_f64().unwrap().trunc() as i64)
            }
            Value::String(_) | Value::Number(_) => call["id"].clone(),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                return Some(nobody("invalid id"));
            }
        };
        let Some(method) = call["method"].as_str() else {
            return Some(nobody("missing method"));
        };
        let said = match method {
            "initialize" => format!(r#","result":{GREETING}"#),
            // Neither a result nor an error.
            "initialized" => String::new(),
            "shutdown" => r#","result":{"success":true}"#.to_owned(),
            _ if call["params"].is_array() => {
                let message = "invalid params: json: cannot unmarshal array into Go value of type methods.AgentRunParams";
                format!(r#","error":{{"code":-32602,"message":"{message}"}}"#)
            }
            _ => format!(",{}", (self.methods)(method, &call["params"])),
        };
        Some(go(&format!(r#"{{"jsonrpc":"2.0","id":{id}{said}}}"#)))
    }
}

/// An error that does not say whose it is.
fn nobody(message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":-32700,"message":"{message}"}}}}"#)
}

/// What comes before the answer to a command.
fn warning(command: &Value) -> String {
    let warning = json!({
        "event": "deprecation_warning",
        "payload": {
            "command": command["command"],
            "documentation": "See /api/rpc/discover for the JSON-RPC 2.0 API specification.",
            "message": "Legacy command format is deprecated. Please migrate to JSON-RPC 2.0.",
            "migration": {
                "get_file": "file/get",
                "get_status": "status/get",
                "respond_to_claude": "agent/respond",
                "run_claude": "agent/run",
                "stop_claude": "agent/stop",
                "unwatch_session": "session/unwatch",
                "watch_session": "session/watch",
            },
            "removal": "Legacy support will be removed in version 3.0.",
        },
        "timestamp": "2025-12-21T15:30:00Z",
    });
    go(&warning.to_string())
}

#[test]
fn the_protocol_of_a_message_is_its_own() {
    let mut socket = Dual::new(|_, _| r#""result":1"#.to_owned());
    let payload = json!({"state": "idle"});
    for ignored in [
        "",
        "{",
        "7",
        "[]",
        r#"[{"jsonrpc":"2.0","id":1,"method":"status/get"}]"#,
        r#" {"jsonrpc":"2.0","id":1,"method":"status/get"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"status/get"}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"command":""}"#,
        r#"{"jsonrpc":2.0,"id":1,"method":"status/get"}"#,
    ] {
        assert_eq!(socket.hears(ignored), Vec::<String>::new(), "{ignored}");
    }
    assert!(
        socket
            .tells("claude_status", &payload)
            .contains("\"event\"")
    );
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"status/get"}}"#);
    for (id, back) in [("\"A\"", "\"A\""), ("7", "7"), ("1.7", "1")] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{back},"result":1}}"#);
        assert_eq!(socket.hears(&call(id)), [answer]);
    }
    assert_eq!(socket.hears(&call("null")), Vec::<String>::new());
    assert!(socket.hears(&call("[1]"))[0].contains("-32700"));
    let event = r#"{"jsonrpc":"2.0","method":"event/claude_status","params":{"state":"idle"}}"#;
    assert_eq!(socket.tells("claude_status", &payload), event);
    let told = socket.hears(r#"{"command":"get_status","request_id":"r"}"#);
    assert!(told[0].contains("deprecation_warning"), "{told:?}");
    assert!(told[1].contains("status_response"), "{told:?}");
    // The form of events is what the first message made it.
    assert_eq!(socket.tells("claude_status", &payload), event);
}
