//! `dualgauge explain` of a frame says what becomes of it on a socket.

use std::fs;

use serde_json::{Value, json};

use super::{get_file, of_frames, of_rpc, start};
use crate::support::{Proxy, Upstream, program};
use crate::websocket::ends::{accept, connect};

/// The explanation of one frame, and of the answer to its call.
fn explained(proxy: &Proxy, frame: &Value, reply: Option<&Value>) -> Value {
    let config = proxy.folder().join("dualgauge.toml");
    let mut command = program(&["explain", "--format", "json", "--config"]);
    command.arg(config);
    if let Some(reply) = reply {
        let file = proxy.folder().join("reply.json");
        fs::write(&file, reply.to_string()).unwrap();
        command.arg("--reply").arg(file);
    }
    let output = command.args(["-d", &frame.to_string(), "/rpc"]).output();
    let output = output.unwrap();
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    said[0]["explanations"][0].clone()
}

#[test]
fn a_frame_that_is_explained_is_what_the_rpc_server_hears() {
    let upstream = Upstream::start();
    let proxy = start(&of_rpc(&upstream));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    let frame =
        json!({"command": "get_file", "request_id": "r", "payload": {"path": "a"}, "more": 1});
    client.say(frame.to_string());
    let heard = server.hear();
    let result = json!({"size": 1});
    let reply = json!({"jsonrpc": "2.0", "id": heard["id"], "result": result});
    server.say(reply.to_string());
    let told = client.hear();
    let explained = explained(&proxy, &frame, Some(&reply));
    assert_eq!(
        (&explained["side"], &explained["route"]["name"]),
        (&json!("rest"), &json!("file"))
    );
    let sent = &explained["sends"];
    assert_eq!(
        (&sent["upstream"], &sent["method"]),
        (&json!("live"), &json!("one message"))
    );
    let body = &sent["body"];
    assert_eq!(
        (&body["method"], &body["params"]),
        (&heard["method"], &heard["params"])
    );
    assert_eq!(explained["dropped"], json!(["frame/more"]));
    assert_eq!(explained["answer"]["body"], told);
    let unfit = json!({"command": "get_file", "request_id": "r", "payload": {}});
    client.say(unfit.to_string());
    let refused = self::explained(&proxy, &unfit, None);
    assert_eq!(refused["refused"]["document"], client.hear());
    let unknown = self::explained(&proxy, &json!({"command": "unknown"}), None);
    assert_eq!(unknown["refused"]["reason"], "route_not_found");
    assert_eq!(unknown["refused"]["document"], "");
}

#[test]
fn a_frame_that_passes_is_explained_as_it_came() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    let mut client = connect(&proxy);
    get_file(&mut client, "r", "a");
    let heard = accept(&upstream).hear();
    let explained = explained(&proxy, &heard, None);
    assert_eq!(explained["decision"]["stage"], "passthrough");
    assert_eq!(explained["sends"]["upstream"], "frames");
    assert_eq!(explained["sends"]["body"], heard);
    let unknown = json!({"command": "unknown"});
    let explained = self::explained(&proxy, &unknown, None);
    assert_eq!(
        (&explained["route"], &explained["sends"]["body"]),
        (&Value::Null, &unknown)
    );
}
