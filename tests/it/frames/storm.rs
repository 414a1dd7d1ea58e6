//! Storms of frames, in which clients leave, servers say nothing or go away, and what they leave behind: nothing.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ask, get_file, of_frames, start};
use crate::random::dice::Dice;
use crate::scene::rpc_failure;
use crate::soak::Held;
use crate::support::{Proxy, Upstream, becomes};
use crate::websocket::ends::{End, connect};

/// Clients at a time, and what each of them asks in a storm.
const CLIENTS: u64 = 4;
const CALLS: u64 = 150;
/// The storms after the one that all is compared with.
const STORMS: u64 = 2;

/// One socket of the server, up to its end.
fn serve(mut end: End) {
    while let Some(text) = end.heard() {
        let command: Value = serde_json::from_str(&text).unwrap();
        let path = command["payload"]["path"].as_str().unwrap_or_default();
        match path.split('-').next() {
            Some("crash") => return,
            Some("never") => continue,
            _ => {}
        }
        let (id, payload) = (&command["request_id"], &command["payload"]);
        let log = json!({"event": "log", "payload": {"of": path}});
        let file = json!({"event": "file", "request_id": id, "payload": payload});
        if !(end.says(log.to_string()) && end.says(file.to_string())) {
            return;
        }
    }
}

/// What a client asks for by its own name of the command.
fn path(kind: &str, own: &str) -> String {
    format!("{kind}-{own}-{}", "x".repeat(8 * 1024))
}

/// Reads up to the answer that is waited for. Between, events come, and answers in frames that were late on a slow
/// machine; each of these bears what was asked for by its id.
fn answer(end: &mut End, member: &str, id: &Value) -> Value {
    loop {
        let said = end.hear();
        if let Some(own) = said.get("request_id").and_then(Value::as_str) {
            let found = said["payload"]["path"].as_str();
            assert_eq!(found, Some(&*path("file", own)), "another's answer");
        }
        if said.get(member) == Some(id) {
            return said;
        }
        assert!(said.get("id").is_none(), "another's answer: {said}");
    }
}

/// Asks over JSON-RPC, and gives the path of the answer, or the code of the failure.
fn call(end: &mut End, turn: u64, path: &str) -> Result<String, i64> {
    ask(end, turn, ("file/get", json!({"path": path})));
    let said = answer(end, "id", &json!(turn));
    match said["result"]["path"].as_str() {
        Some(path) => Ok(path.to_owned()),
        None => Err(rpc_failure(&said).0),
    }
}

/// What one client does in a storm, in both protocols on one socket.
fn client(proxy: &Proxy, seed: u64) {
    let mut dice = Dice::of(seed);
    let mut end = connect(proxy);
    for turn in 0..CALLS {
        let own = format!("{seed}-{turn}");
        match dice.below(40) {
            0 => {
                let crashed = call(&mut end, turn, &path("crash", &own));
                assert!(matches!(crashed, Err(-31023 | -31022)), "{crashed:?}");
                // One that has spoken in frames first is let go.
                end = connect(proxy);
                get_file(&mut end, &own, &path("crash", &own));
                assert_eq!(end.end(), Some(1001));
                end = connect(proxy);
            }
            1..=3 => {
                get_file(&mut end, &own, &path("never", &own));
                let never = json!({"path": path("never", &own)});
                ask(&mut end, turn, ("file/get", never));
                end = connect(proxy);
            }
            4 => assert_eq!(call(&mut end, turn, &path("never", &own)), Err(-31022)),
            5..=22 => {
                get_file(&mut end, &own, &path("file", &own));
                answer(&mut end, "request_id", &json!(own));
            }
            _ => {
                let path = path("file", &own);
                match call(&mut end, turn, &path) {
                    Ok(found) => assert_eq!(found, path, "another's answer"),
                    // A slow machine.
                    Err(code) => assert_eq!(code, -31022),
                }
            }
        }
    }
}

fn storm(proxy: &Proxy, number: u64) {
    std::thread::scope(|scope| {
        for place in 0..CLIENTS {
            scope.spawn(move || client(proxy, number * CLIENTS + place));
        }
    });
}

fn is_calm(proxy: &Proxy) -> bool {
    let metrics = proxy.metrics();
    let levels = [
        "dualgauge_calls_in_flight",
        "dualgauge_client_connections",
        r#"dualgauge_upstream_connections{side="rest"}"#,
    ];
    levels.iter().all(|series| metrics.value(series) == 0.0)
}

#[test]
fn frames_leave_nothing_behind() {
    let upstream = Arc::new(Upstream::start());
    let server = upstream.clone();
    std::thread::spawn(move || {
        loop {
            let wire = server.accept();
            std::thread::spawn(move || End::of(wire).map(serve));
        }
    });
    let proxy = start(&of_frames(&upstream, "timeout = \"300ms\"\n"));
    storm(&proxy, 0);
    becomes(|| is_calm(&proxy), &true);
    let before = Held::by(&proxy);
    for number in 1..=STORMS {
        storm(&proxy, number);
    }
    becomes(|| is_calm(&proxy), &true);
    let mut last = None;
    let back = || {
        let held = Held::by(&proxy);
        let is_back = held.is_back_at(&before);
        last = Some(held);
        is_back
    };
    becomes(back, &true);
    eprintln!("frames: {before:?}, then {last:?}");
}
