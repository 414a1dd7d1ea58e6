//! Clients that speak in frames, before a server that does; and WebSockets that are none of the proxy's business.

use serde_json::json;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Message, client};

use super::{ask, get_file, of_frames, of_rpc, start, start_with_flags};
use crate::support::{Upstream, rest_only};
use crate::websocket::ends::{accept, connect, connect_with};

const APP: &str = "[[client]]\nname = \"app\"\nmatch = { header = { x-app = \"*\" } }\n";

#[test]
fn frames_pass_as_the_bytes_that_they_are() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    let sent = [
        r#"{"request_id" : "req-1", "command":"get_file","payload":{"path":"\u0061"}}"#,
        r#"{"command":"unknown","n":1.50}"#,
        r#"{"command":"run","request_id":"req-2"}"#,
        r#"{"command":"get_file","request_id":"bad"}"#,
    ];
    for text in sent {
        client.say(text);
        assert_eq!(server.hear_text(), text);
    }
    let said = [
        r#"{"event":"warning"}"#,
        r#"{"request_id":"req-1", "event":"file","payload":{"size":1.50}}"#,
        r#"{"event":"error","request_id":"nobody","payload":{"message":"x"}}"#,
        r#"{"event":"watched","payload":{}}"#,
        "no JSON",
    ];
    for text in said {
        server.say(text);
        assert_eq!(client.hear_text(), text);
    }
    proxy.log_line(&[
        "route=file",
        "side=rest",
        "stage=passthrough",
        "outcome=success",
    ]);
    proxy.log_line(&["route=run", "stage=passthrough", "outcome=success"]);
    drop(server);
    // What the server knew of the client is gone, and nothing but this says so.
    assert_eq!(client.end(), Some(1001));
}

#[test]
fn a_flag_moves_one_client_and_an_open_socket_stays() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let flags = "[[flag]]\nname = \"move\"\nclient = \"app\"\nroute = \"file\"\nside = \"rest\"\nstage = \"translate\"\n";
    let upstreams = format!("{}{}{APP}", of_frames(&old, ""), of_rpc(&new));
    let proxy = start_with_flags(&upstreams, flags);
    let (mut moved, _) = connect_with(&proxy, &[("x-app", "1")]);
    let mut other = connect(&proxy);
    get_file(&mut other, "1", "a");
    let mut old_server = accept(&old);
    assert_eq!(old_server.hear()["request_id"], "1");
    get_file(&mut moved, "2", "b");
    let mut new_server = accept(&new);
    let heard = new_server.hear();
    assert_eq!(heard["method"], "file/get");
    new_server.echo(&heard);
    assert_eq!(moved.hear()["request_id"], "2");
    // Back at run time: the open socket goes on as it began, a new one does not.
    let flip = r#"{"stage":"passthrough","percent":100}"#;
    let flipped = proxy.ask("PUT", "/api/v1/flags/move", flip);
    assert_eq!(flipped.status(), 200, "{flipped:?}");
    get_file(&mut moved, "3", "c");
    assert_eq!(new_server.hear()["params"]["path"], "c");
    let (mut again, _) = connect_with(&proxy, &[("x-app", "1")]);
    get_file(&mut again, "4", "d");
    assert_eq!(accept(&old).hear()["request_id"], "4");
}

#[test]
fn events_come_from_one_server_only() {
    let (old, new) = (Upstream::start(), Upstream::start());
    let flags =
        "[[flag]]\nname = \"move\"\nroute = \"file\"\nside = \"rest\"\nstage = \"translate\"\n";
    let upstreams = format!("{}{}", of_frames(&old, ""), of_rpc(&new));
    let proxy = start_with_flags(&upstreams, flags);
    let mut client = connect(&proxy);
    get_file(&mut client, "1", "a");
    let mut new_server = accept(&new);
    new_server.hear();
    client.say(r#"{"command":"watch","request_id":"2","payload":{"session":"s"}}"#);
    let mut old_server = accept(&old);
    old_server.hear();
    old_server.say(r#"{"event":"log","payload":{"from":"old"}}"#);
    old_server.say(r#"{"event":"watched","payload":{"session":"s"}}"#);
    new_server.say(r#"{"jsonrpc":"2.0","method":"event/log","params":{"from":"new"}}"#);
    let heard = [client.hear(), client.hear()];
    // The answer to what was asked there comes; the event does not come twice.
    assert!(
        heard.iter().any(|said| said["event"] == "watched"),
        "{heard:?}"
    );
    let log = json!({"event": "log", "payload": {"from": "new"}});
    assert!(heard.contains(&log), "{heard:?}");
}

#[test]
fn one_client_may_speak_both_protocols_to_a_server_of_frames() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    get_file(&mut client, "mine", "a");
    ask(&mut client, 9, ("file/get", json!({"path": "b"})));
    for _ in 0..2 {
        let heard = server.hear();
        let file = json!({"event": "file", "request_id": heard["request_id"], "payload": heard["payload"]});
        server.say(file.to_string());
    }
    let heard = [client.hear(), client.hear()];
    assert!(
        heard.iter().any(|said| said["request_id"] == "mine"),
        "{heard:?}"
    );
    assert!(heard.iter().any(|said| said["id"] == 9), "{heard:?}");
}

#[test]
fn an_ordinary_websocket_is_a_tunnel_beside_frames() {
    let upstream = Upstream::start();
    let proxy = start(&rest_only(&upstream).replace("[listen]\nworkers = 1\n", ""));
    let request = format!("ws://{}/chat?room=1", proxy.address());
    let request = request.into_client_request().unwrap();
    let stream = proxy.connect().into_stream();
    let mut server = None;
    let mut own = std::thread::scope(|scope| {
        scope.spawn(|| server = Some(accept(&upstream)));
        client(request, stream).unwrap().0
    });
    let mut server = server.unwrap();
    for message in [
        Message::text(r#"{"command":"get_file"}"#),
        Message::text(r#"{"jsonrpc":"2.0","id":1,"method":"file/get"}"#),
        Message::binary(vec![0, 255, 13]),
        Message::Ping("are you there".into()),
    ] {
        own.send(message.clone()).unwrap();
        assert_eq!(server.next(), message);
    }
    // With what is said next the library sends the pong as well.
    server.send(Message::binary(vec![1]));
    let heard = [own.read().unwrap(), own.read().unwrap()];
    assert!(
        heard.contains(&Message::Pong("are you there".into())),
        "{heard:?}"
    );
    assert!(heard.contains(&Message::binary(vec![1])), "{heard:?}");
    let code = CloseFrame {
        code: 4001.into(),
        reason: "enough".into(),
    };
    own.close(Some(code)).unwrap();
    assert_eq!(server.end(), Some(4001));
}

#[test]
fn the_drain_waits_for_the_answer_to_a_frame_of_no_route_that_has_an_id() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    client.say(r#"{"command":"unknown","request_id":"u1"}"#);
    server.hear();
    client.say(r#"{"command":"unknown","n":1}"#);
    server.hear();
    proxy.signal("TERM");
    proxy.log_line(&["draining"]);
    let answer = r#"{"event":"file","payload":{"n":1},"request_id":"u1"}"#;
    server.say(r#"{"event":"log","payload":{}}"#);
    server.say(answer);
    assert_eq!(client.hear()["event"], "log");
    assert_eq!(client.hear_text(), answer);
    assert_eq!(client.end(), Some(1001));
    let stopped = proxy.wait();
    assert!(stopped.status.success(), "{stopped:?}");
}
