//! Frames that the proxy itself answers.

use serde_json::{Value, json};

use super::{get_file, of_frames, start};
use crate::support::{Upstream, becomes};
use crate::websocket::ends::{accept, connect};

const LOCAL: &str = r#"
[[local]]
frame = { command = "ping", request_id = "{id?}" }
answer = { frame = { event = "pong", request_id = "{>id}" } }

[[local]]
frame = { command = "hello" }
answer = "none"
"#;

#[test]
fn they_are_none_of_the_servers_business() {
    let upstream = Upstream::start();
    let proxy = start(&format!("{}{LOCAL}", of_frames(&upstream, "")));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    client.say(json!({"command": "ping", "request_id": "a"}).to_string());
    assert_eq!(client.hear_text(), r#"{"event":"pong","request_id":"a"}"#);
    client.say(json!({"command": "hello", "version": 2}).to_string());
    client.say(json!({"command": "ping"}).to_string());
    assert_eq!(client.hear_text(), r#"{"event":"pong"}"#);
    get_file(&mut client, "b", "a");
    let heard: Value = server.hear();
    assert_eq!(heard["request_id"], "b");
    proxy.log_line(&["side=rest", "decision=local", "outcome=success"]);
    drop(client);
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}
