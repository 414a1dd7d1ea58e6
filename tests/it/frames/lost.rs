//! Sockets that end while their clients ask on: nothing runs on another one that the client knows nothing of.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{FILE, MORE, ask, get_file, of_frames, start};
use crate::scene::rpc_failure;
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{accept, connect};

/// Clients whose server goes away, and what is asked after that.
const CLIENTS: u64 = 5;
const AFTER: u64 = 300;

#[test]
fn a_client_whose_socket_is_lost_gets_no_other_before_it_is_let_go() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    for number in 0..CLIENTS {
        let mut client = connect(&proxy);
        let mut server = accept(&upstream);
        let first = format!("first of {number}");
        get_file(&mut client, &first, "a");
        // Of another client, unless the socket is that of this one.
        assert_eq!(server.hear()["request_id"], first);
        let is_gone = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..50 {
                    let (id, payload) = (&server.hear()["request_id"], json!({}));
                    server.say(
                        json!({"event": "file", "request_id": id, "payload": payload}).to_string(),
                    );
                }
                drop(server);
                is_gone.store(true, Ordering::Release);
            });
            let mut after = 0;
            while after < AFTER {
                let command =
                    json!({"command": "get_file", "request_id": "more", "payload": {"path": "a"}});
                if !client.says(command.to_string()) {
                    break;
                }
                after += u64::from(is_gone.load(Ordering::Acquire));
            }
        });
        assert_eq!(client.end(), Some(1001));
    }
}

#[test]
fn a_reload_leaves_a_client_the_socket_that_it_has_and_a_removed_server_lets_it_go() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, ""));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    let watch = json!({"command": "watch", "request_id": "w", "payload": {"session": "s"}});
    client.say(watch.to_string());
    assert_eq!(server.hear(), watch);
    server.say(r#"{"event":"watched","payload":{"session":"s"}}"#);
    assert_eq!(client.hear()["event"], "watched");
    reload(&proxy, &of_frames(&upstream, "timeout = \"29s\""), 1.0);
    // What is watched is watched there, and each event comes once.
    get_file(&mut client, "own", "a");
    assert_eq!(server.hear()["request_id"], "own");
    for line in 1..=3 {
        server.say(json!({"event": "log", "payload": {"line": line}}).to_string());
        assert_eq!(client.hear()["payload"]["line"], line);
    }
    // Another one begins with the plan of now.
    let mut other = connect(&proxy);
    let mut its_server = accept(&upstream);
    get_file(&mut other, "other", "a");
    assert_eq!(its_server.hear()["request_id"], "other");
    // Their calls are answered, and then they are let go.
    let renamed = of_frames(&upstream, "").replace("upstream.frames", "upstream.renamed");
    reload(&proxy, &renamed, 2.0);
    for (id, server) in [("own", &mut server), ("other", &mut its_server)] {
        server.say(json!({"event": "file", "request_id": id, "payload": {}}).to_string());
    }
    for (id, mut client) in [("own", client), ("other", other)] {
        assert_eq!(client.hear()["request_id"], id);
        assert_eq!(client.end(), Some(1001));
    }
    assert_eq!(server.end(), Some(1001));
}

#[test]
fn a_client_whose_server_is_planned_no_more_is_let_go_and_says_nothing_to_any_other() {
    for (place, keys) in [
        ("elsewhere", ""),
        ("here", "[upstream.frames.headers]\nX-Tenant = \"b\"\n"),
    ] {
        let (upstream, elsewhere) = (Upstream::start(), Upstream::start());
        let proxy = start(&of_frames(&upstream, ""));
        let mut client = connect(&proxy);
        let mut server = accept(&upstream);
        get_file(&mut client, "before", "a");
        assert_eq!(server.hear()["request_id"], "before");
        let planned = match place {
            "here" => &upstream,
            _ => &elsewhere,
        };
        reload(&proxy, &of_frames(planned, keys), 1.0);
        // Its one worker has the plan when it has served this.
        let mut other = connect(&proxy);
        let mut its_server = accept(planned);
        get_file(&mut other, "other", "a");
        assert_eq!(its_server.hear()["request_id"], "other");
        ask(&mut client, 1, ("file/get", json!({"path": "meanwhile"})));
        let failed = client.hear();
        assert_eq!(rpc_failure(&failed).1, "upstream_unreachable", "{place}");
        server.say(json!({"event": "file", "request_id": "before", "payload": {}}).to_string());
        assert_eq!(client.hear()["request_id"], "before");
        assert_eq!(client.end(), Some(1001));
        assert_eq!(server.heard(), None);
    }
}

#[test]
fn a_client_is_let_go_though_its_server_is_planned_again_meanwhile() {
    let (upstream, other) = (Upstream::start(), Upstream::start());
    let proxy = start(&of_frames(&upstream, "connections = 2"));
    for round in 0..4 {
        let mut client = connect(&proxy);
        let mut server = accept(&upstream);
        get_file(&mut client, "before", "a");
        assert_eq!(server.hear()["request_id"], "before");
        for (planned, reloads) in [(&other, 1.0), (&upstream, 2.0)] {
            let reloads = f64::from(round) * 2.0 + reloads;
            reload(&proxy, &of_frames(planned, "connections = 2"), reloads);
            // The one worker has the plan when a client is served by it.
            let _client = connect(&proxy);
            accept(planned);
        }
        ask(&mut client, 1, ("file/get", json!({"path": "meanwhile"})));
        assert_eq!(rpc_failure(&client.hear()).1, "upstream_unreachable");
        server.say(json!({"event": "file", "request_id": "before", "payload": {}}).to_string());
        assert_eq!(client.hear()["request_id"], "before");
        assert_eq!(client.end(), Some(1001));
        assert_eq!(server.end(), Some(1001));
    }
}

fn reload(proxy: &Proxy, upstreams: &str, count: f64) {
    let text = format!("[listen]\nworkers = 1\n{upstreams}{FILE}{MORE}");
    std::fs::write(proxy.folder().join("dualgauge.toml"), text).unwrap();
    proxy.signal("HUP");
    let reloads = r#"dualgauge_plan_reloads_total{result="ok"}"#;
    becomes(|| proxy.metrics().value(reloads), &count);
}

#[test]
fn what_was_given_up_before_it_was_written_is_not_written_later() {
    let upstream = Upstream::start();
    let proxy = start(&of_frames(&upstream, "timeout = \"500ms\""));
    let mut client = connect(&proxy);
    let mut server = accept(&upstream);
    // More than goes out while the server does not read.
    let long = "x".repeat(7 << 20);
    for id in 0..4 {
        ask(&mut client, id, ("file/get", json!({ "path": long })));
    }
    ask(&mut client, 4, ("file/get", json!({"path": "call"})));
    get_file(&mut client, "own", "frame");
    client.say(r#"{"command":"unknown","request_id":"stranger"}"#);
    for _ in 0..5 {
        assert_eq!(rpc_failure(&client.hear()), (-31022, "upstream_timeout"));
    }
    proxy.log_line(&["side=rest", "route=file", "upstream_timeout"]);
    proxy.log_line(&["side=rest", "decision=unrouted", "upstream_timeout"]);
    // Nothing is asked any more, and all that is on its way arrives.
    drop(client);
    while let Some(text) = server.heard() {
        let command: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(command["payload"]["path"], *long, "it was not taken back");
    }
}
