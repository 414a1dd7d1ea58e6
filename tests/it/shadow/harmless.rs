//! A candidate harms nobody, whatever its server does.

use super::Scene;
use crate::coded::gzip;
use crate::scene::{body_of, json, saying};
use crate::support::Upstream;

const SOON: &str = "timeout = \"200ms\"";

/// The client has its answer whatever the new server is like, on a connection that serves on.
fn assert_harmless(new: Upstream, verdict: &str) {
    assert_harmless_within(new, verdict, SOON);
}

fn assert_harmless_within(new: Upstream, verdict: &str, bounds: &str) {
    let scene = Scene::of(
        "shadow",
        bounds,
        (Upstream::answering(json(r#"{"a":1}"#)), new),
    );
    let mut client = scene.proxy.connect();
    for _ in 0..3 {
        client.send("GET /items/7 HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.read_answer();
        assert_eq!(body_of(&answer, 200), r#"{"a":1}"#);
    }
    scene.expect(&[(verdict, 3.0)]);
    let metrics = scene.proxy.metrics();
    let labels = ["route", "client", "side", "stage", "outcome", "blame"];
    let calls = metrics.table("dualgauge_calls_total", &labels);
    assert_eq!(
        calls.get("items.get other rest shadow success none"),
        Some(&3.0)
    );
    assert_eq!(calls.len(), 1, "{calls:?}");
}

#[test]
fn a_server_that_hangs() {
    assert_harmless(Upstream::start(), "candidate-failed");
}

#[test]
fn a_server_that_is_not_there() {
    assert_harmless(Upstream::nowhere(), "candidate-failed");
}

#[test]
fn a_server_that_fails() {
    assert_harmless(
        Upstream::answering("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"),
        "candidate-failed",
    );
}

#[test]
fn a_server_that_speaks_nonsense() {
    assert_harmless(Upstream::answering("nonsense\r\n\r\n"), "candidate-failed");
    assert_harmless(Upstream::answering(json("nonsense")), "candidate-failed");
}

#[test]
fn a_server_that_closes() {
    assert_harmless(Upstream::answering(""), "candidate-failed");
}

#[test]
fn a_server_that_floods() {
    let mut flood = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n\"".to_vec();
    flood.resize(flood.len() + 4_000_000, b'x');
    assert_harmless_within(Upstream::answering(flood), "skipped", "memory = \"1MiB\"");
}

/// What a candidate decodes is charged to what is kept for candidates.
#[test]
fn a_candidate_takes_no_room_of_what_is_answered() {
    let scene = Scene::of(
        "shadow",
        "[limits]\nmemory = \"10KiB\"\n",
        (Upstream::answering(json("1")), Upstream::start()),
    );
    let fields = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ];
    let body = format!(r#"{{"q":"{}"}}"#, "x".repeat(8000));
    let answer = scene
        .proxy
        .rest("POST", "/find", &fields, gzip(body.as_bytes()));
    assert_eq!(body_of(&answer, 200), "1");
    let mut server = scene.rpc.accept();
    let asked = server.read_request().json();
    assert_eq!(scene.proxy.metrics().value("dualgauge_buffered_bytes"), 0.0);
    let id = &asked["id"];
    server.send(json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":1}}"#)));
    scene.expect(&[("match", 1.0)]);
}

#[test]
fn a_client_that_goes_away_has_no_candidate() {
    let scene = Scene::of("shadow", "", (Upstream::start(), saying(r#""result":{}"#)));
    let mut client = scene.proxy.connect();
    client.send("GET /items/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = scene.rest.accept();
    server.read_request();
    server.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    client.read_until("half");
    drop(client);
    scene.expect(&[("skipped", 1.0)]);
    scene.expect_skipped(&[("cancelled", 1.0)]);
    assert_eq!(scene.rpc.requests().len(), 0);
}

#[test]
fn a_client_that_goes_away_before_its_call_is_whole_has_no_candidate() {
    let scene = Scene::of("shadow", "", (Upstream::start(), saying(r#""result":{}"#)));
    let mut client = scene.proxy.connect();
    client.send("POST /find HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"q\"");
    let mut server = scene.rest.accept();
    server.read_until("{\"q\"");
    drop(client);
    scene.expect(&[("skipped", 1.0)]);
    assert_eq!(scene.rpc.requests().len(), 0);
}

#[test]
fn the_program_ends_at_once_although_candidates_hang() {
    let scene = Scene::of(
        "shadow",
        "timeout = \"60s\"",
        (Upstream::answering(json("{}")), Upstream::start()),
    );
    scene.proxy.rest("GET", "/items/7", &[], "");
    let _hanging = scene.rpc.accept();
    let stopped = scene.proxy.stop();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(
        !stopped.log.contains("still in progress"),
        "{}",
        stopped.log
    );
}
