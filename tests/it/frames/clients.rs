//! Clients that speak in frames, before servers that speak JSON-RPC.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::{ask, get_file, of_rpc, start, strays};
use crate::scene::{Called, json as json_answer};
use crate::support::{Proxy, Upstream, becomes, rpc_only};
use crate::websocket::ends::{accept, connect};

/// A server that posts are sent to, before which only the path `nope` is missing.
fn posted() -> Upstream {
    Upstream::serving(|request| {
        let called = Called::of(request);
        let reply = match called.method() {
            "file/get" if called.params().contains("nope") => {
                r#""error":{"code":-32602,"message":"no such file"}"#
            }
            "file/get" => r#""result":{"content":"1.50"}"#,
            "agent/run" => r#""result":{"status":"started"}"#,
            _ => r#""result":{"other":true}"#,
        };
        json_answer(format!(
            r#"{{"jsonrpc":"2.0","id":{},{reply}}}"#,
            called.id()
        ))
    })
}

#[test]
fn a_command_is_a_call_of_the_rpc_server_and_its_answer_a_frame() {
    let upstream = posted();
    let proxy = start(&rpc_only(&upstream).replace("[listen]\nworkers = 1\n", ""));
    let mut client = connect(&proxy);
    get_file(&mut client, "req-1", "a");
    assert_eq!(
        client.hear_text(),
        r#"{"event":"file","payload":{"content":"1.50"},"request_id":"req-1"}"#
    );
    get_file(&mut client, "req-2", "nope");
    let failed = client.hear();
    assert_eq!(failed["payload"]["message"], "no such file");
    assert_eq!(failed["request_id"], "req-2");
    // A success that the old protocol says nothing of, and an answer that it has no word for.
    client.say(r#"{"command":"run","request_id":"req-3"}"#);
    client.say(r#"{"command":"watch","request_id":"req-4","payload":{"session":"s"}}"#);
    assert_eq!(client.hear()["request_id"], "req-4");
    // A command that does not fit is told so; one that nobody knows is not.
    client.say(r#"{"command":"unknown","request_id":"req-5"}"#);
    client.say(r#"{"command":"get_file","request_id":"req-6","payload":{}}"#);
    let refused = client.hear();
    assert_eq!(
        (&refused["event"], &refused["request_id"]),
        (&json!("error"), &json!("req-6"))
    );
    // Nobody has waited for the one that nothing is said of.
    becomes(|| upstream.requests().len(), &4);
    let asked = upstream.requests();
    let methods: Vec<_> = asked
        .iter()
        .map(|sent| Called::of(sent).method().to_owned())
        .collect();
    assert_eq!(&methods[..2], ["file/get", "file/get"]);
    proxy.log_line(&[
        "route=file",
        "side=rest",
        "stage=translate",
        "outcome=success",
    ]);
    proxy.log_line(&["side=rest", "reason=route_not_found"]);
    assert_eq!(upstream.requests().len(), 4);
}

#[test]
fn the_protocol_of_each_message_is_found_out_anew() {
    let upstream = posted();
    let proxy = start(&rpc_only(&upstream).replace("[listen]\nworkers = 1\n", ""));
    let mut client = connect(&proxy);
    for noise in ["{", "7", "[]", "\"x\"", ""] {
        client.say(noise);
    }
    ask(&mut client, 7, ("file/get", json!({"path": "a"})));
    assert_eq!(client.hear()["id"], 7);
    client.send(Message::binary(
        br#"{"command":"get_file","request_id":"r","payload":{"path":"a"}}"#.to_vec(),
    ));
    assert_eq!(client.hear()["request_id"], "r");
    client.say(r#"[{"jsonrpc":"2.0","id":1,"method":"file/get","params":{"path":"a"}}]"#);
    assert_eq!(client.hear()[0]["id"], 1);
    becomes(|| strays(&proxy, "noise"), &5.0);
}

#[test]
fn commands_share_the_link_of_their_client_and_are_answered_in_any_order() {
    let upstream = Upstream::start();
    let proxy = start(&of_rpc(&upstream));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    get_file(&mut client, "1", "first");
    get_file(&mut client, "2", "second");
    let (one, two) = (server.hear(), server.hear());
    assert_eq!(
        (&one["method"], &one["params"]),
        (&json!("file/get"), &json!({"path": "first"}))
    );
    for call in [&two, &one] {
        let reply = json!({"jsonrpc": "2.0", "id": call["id"], "result": call["params"]});
        server.say(reply.to_string());
    }
    let heard = [client.hear(), client.hear()];
    assert_eq!(heard[0]["payload"]["path"], "second");
    assert_eq!(heard[0]["request_id"], "2");
    assert_eq!(heard[1]["payload"]["path"], "first");
    // A server that is lost is an error of the client's own protocol.
    get_file(&mut client, "3", "third");
    server.hear();
    drop(server);
    let lost = client.hear();
    assert_eq!(
        (&lost["event"], &lost["request_id"]),
        (&json!("error"), &json!("3"))
    );
}

#[test]
fn events_come_in_the_form_of_the_first_message_that_was_recognised() {
    let upstream = Upstream::start();
    let proxy = start(&of_rpc(&upstream));
    let mut client = connect(&proxy);
    // It is there although the client has said nothing yet.
    let mut server = accept(&upstream);
    let log = r#"{"jsonrpc":"2.0","method":"event/log","params":{"line":1.50}}"#;
    let heartbeat = r#"{"event":"heartbeat","payload":{"sequence":1}}"#;
    server.say(log);
    assert_eq!(
        client.hear_text(),
        r#"{"event":"log","payload":{"line":1.50}}"#
    );
    client.say("noise");
    server.say(log);
    assert_eq!(client.hear()["event"], "log");
    ask(&mut client, 1, ("file/get", json!({"path": "a"})));
    server.hear();
    server.say(log);
    assert_eq!(client.hear_text(), log);
    // No pair takes it: it is what it was, for everybody.
    server.say(heartbeat);
    assert_eq!(client.hear_text(), heartbeat);
    // Once fixed, the form stays.
    get_file(&mut client, "r", "a");
    server.hear();
    server.say(log);
    assert_eq!(client.hear_text(), log);
    let rewritten = r#"dualgauge_events_total{route="unrouted",side="rest",kind="rewritten"}"#;
    assert_eq!(proxy.metrics().value(rewritten), 2.0);
}

#[test]
fn a_server_that_is_away_is_an_error_in_frames() {
    let upstream = Upstream::nowhere();
    let proxy = start(&format!(
        "{}connect_timeout = \"200ms\"\n",
        of_rpc(&upstream)
    ));
    let mut client = connect(&proxy);
    get_file(&mut client, "1", "a");
    let failed = client.hear();
    assert_eq!(
        (&failed["event"], &failed["request_id"]),
        (&json!("error"), &json!("1"))
    );
    proxy.log_line(&["route=file", "upstream_unreachable"]);
}

#[test]
fn a_client_that_goes_away_cancels_its_commands() {
    let upstream = Upstream::start();
    let proxy = start(&of_rpc(&upstream));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    get_file(&mut client, "1", "a");
    server.hear();
    drop(client);
    proxy.log_line(&["route=file", "outcome=cancelled"]);
    assert_eq!(server.end(), Some(1001));
    in_flight_is_none(&proxy);
}

fn in_flight_is_none(proxy: &Proxy) {
    becomes(|| proxy.metrics().value("dualgauge_calls_in_flight"), &0.0);
}
