//! The REST side.

use super::Scene;
use crate::scene::{answer, body_of, json, json_with, saying};
use crate::support::{Upstream, chunked};

fn old(body: &'static str) -> Upstream {
    Upstream::answering(json(body))
}

#[test]
fn a_shadowed_call_is_answered_by_the_old_server_and_compared_with_the_new_one() {
    let scene = Scene::of(
        "shadow",
        "",
        (
            old(r#"{"a": 1.0, "b": [2]}"#),
            saying(r#""result":{"b":[2],"a":1}"#),
        ),
    );
    let answer = scene.proxy.rest("GET", "/items/7", &[], "");
    assert_eq!(body_of(&answer, 200), r#"{"a": 1.0, "b": [2]}"#);
    scene.expect(&[("match", 1.0)]);
    let asked = scene.rpc.request().json();
    assert_eq!(
        (&asked["method"], &asked["params"]["id"]),
        (&"items/get".into(), &"7".into())
    );
    let metrics = scene.proxy.metrics();
    let calls = metrics.table(
        "dualgauge_calls_total",
        &["route", "client", "side", "stage", "outcome", "blame"],
    );
    assert_eq!(
        calls.into_iter().collect::<Vec<_>>(),
        [("items.get other rest shadow success none".to_owned(), 1.0)]
    );
    let took = "dualgauge_candidate_duration_seconds_count{route=\"items.get\",side=\"rest\",stage=\"shadow\"}";
    assert_eq!(metrics.value(took), 1.0);
}

#[test]
fn a_difference_is_counted_and_said_once_without_its_values() {
    let scene = Scene::of(
        "shadow",
        "",
        (
            old(r#"{"a":"secret-1"}"#),
            saying(r#""result":{"a":"secret-2"}"#),
        ),
    );
    scene.proxy.rest("GET", "/items/7", &[], "");
    scene.expect(&[("mismatch", 1.0)]);
    let line = scene.proxy.log_line(&["dualgauge::mismatch", "items.get"]);
    assert!(line.contains("/body/a"), "{line}");
    let log = scene.proxy.stop().log;
    assert!(!log.contains("secret-"), "{log}");
}

#[test]
fn the_candidate_starts_when_the_client_has_everything_and_not_before() {
    let scene = Scene::of("shadow", "", (Upstream::start(), Upstream::start()));
    let mut client = scene.proxy.connect();
    client.send("GET /items/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = scene.rest.accept();
    server.read_request();
    server.send(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\"",
    );
    client.read_head();
    client.expect("{\"a\"");
    scene.rpc.expect_no_connection();
    server.send(":1}");
    client.expect(":1}");
    let mut candidate = scene.rpc.accept();
    let asked = candidate.read_request().json();
    let said = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"a":1}}}}"#,
        asked["id"]
    );
    candidate.send(json(said));
    scene.expect(&[("match", 1.0)]);
}

#[test]
fn the_bytes_on_the_wire_are_those_of_passthrough() {
    let pieces: [&[u8]; 2] = [b"{\"a\":", b"1}"];
    let head = "HTTP/1.1 200 Fine\r\nx-Odd-CASE: 1\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Type: application/json\r\n";
    let answers = [
        json(r#"{"a":1}"#),
        json_with("404 Not Found", r#"{"code":"x"}"#),
        answer("204 No Content", &[], ""),
        [
            format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes(),
            chunked(&pieces),
        ]
        .concat(),
        format!("{head}\r\n{{\"a\":1}}").into_bytes(),
    ];
    for sent in answers {
        let closes =
            !String::from_utf8_lossy(&sent).contains("-Length") && !sent.ends_with(b"0\r\n\r\n");
        let seen = ["passthrough", "shadow"].map(|stage| {
            let sent = sent.clone();
            let rest = Upstream::start();
            let scene = Scene::of(stage, "", (rest, saying(r#""result":{"a":1}"#)));
            let mut client = scene.proxy.connect();
            client.send("GET /items/7?x=%20y HTTP/1.1\r\nHost: a\r\nX-Mixed-Case: v\r\nConnection: close\r\n\r\n");
            let mut server = scene.rest.accept();
            let asked = server.read_request();
            server.send(&sent);
            if closes {
                drop(server);
            }
            let (came, _) = client.read_rest();
            let came = String::from_utf8(came).unwrap();
            let is_date = |line: &str| line.to_ascii_lowercase().starts_with("date:");
            let lines = came.lines().filter(|line| !is_date(line));
            (format!("{asked:?}"), lines.map(str::to_owned).collect::<Vec<_>>())
        });
        assert_eq!(seen[0], seen[1]);
    }
}

#[test]
fn a_call_that_is_not_safe_is_never_made_twice() {
    let scene = Scene::of("shadow", "", (old("{}"), saying(r#""result":{}"#)));
    let json = [("Content-Type", "application/json")];
    scene.proxy.rest("POST", "/items", &json, "{}");
    scene.expect(&[("skipped", 1.0)]);
    scene.expect_skipped(&[("unsafe", 1.0)]);
    assert_eq!(scene.rpc.requests().len(), 0);

    scene.proxy.rest("POST", "/find", &json, r#"{"q":"x"}"#);
    scene.expect(&[("match", 1.0), ("skipped", 1.0)]);
    assert_eq!(scene.rpc.request().json()["params"]["q"], "x");
}

#[test]
fn a_server_that_failed_is_told_apart_from_an_answer_that_differs() {
    let rows = [
        (
            json_with("500 Oops", "{}"),
            r#""result":{}"#,
            "control-failed",
        ),
        (
            json("{}"),
            r#""error":{"code":-32603,"message":"x"}"#,
            "candidate-failed",
        ),
        (
            json_with("503 Oops", "{}"),
            r#""error":{"code":-32603,"message":"x"}"#,
            "both-failed",
        ),
        (json_with("404 No", "{}"), r#""result":{}"#, "mismatch"),
    ];
    for (control, candidate, verdict) in rows {
        let scene = Scene::of(
            "shadow",
            "",
            (Upstream::answering(control), saying(candidate)),
        );
        scene.proxy.rest("GET", "/items/7", &[], "");
        scene.expect(&[(verdict, 1.0)]);
    }
    let scene = Scene::of(
        "shadow",
        "",
        (Upstream::nowhere(), saying(r#""result":{}"#)),
    );
    assert_eq!(scene.proxy.rest("GET", "/items/7", &[], "").status(), 502);
    scene.expect(&[("control-failed", 1.0)]);
}

#[test]
fn what_cannot_be_compared_is_not() {
    let scene = Scene::of("shadow", "", (old("{}"), saying(r#""result":{}"#)));
    scene
        .proxy
        .rest("GET", "/items/7", &[("If-None-Match", "\"1\"")], "");
    scene
        .proxy
        .rest("GET", "/items/7", &[("Range", "bytes=0-1")], "");
    scene.expect_skipped(&[("conditional", 2.0)]);

    let coded = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "zstd"),
    ];
    let coded = answer("200 OK", &coded, "xyz");
    let scene = Scene::of(
        "shadow",
        "",
        (Upstream::answering(coded), saying(r#""result":{}"#)),
    );
    scene.proxy.rest("GET", "/items/7", &[], "");
    scene.expect_skipped(&[("coded", 1.0)]);
}

#[test]
fn a_coded_answer_is_decoded_to_be_compared() {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(br#"{"a":1}"#).unwrap();
    let coded = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", "gzip"),
    ];
    let coded = answer("200 OK", &coded, encoder.finish().unwrap());
    let scene = Scene::of(
        "shadow",
        "",
        (Upstream::answering(coded), saying(r#""result":{"a":1}"#)),
    );
    scene
        .proxy
        .rest("GET", "/items/7", &[("Accept-Encoding", "gzip")], "");
    scene.expect(&[("match", 1.0)]);
}

#[test]
fn a_verified_call_is_answered_by_the_new_server_and_made_again_as_it_came() {
    let scene = Scene::of(
        "verify",
        "",
        (old(r#"{"a":1}"#), saying(r#""result":{"a":1}"#)),
    );
    let answer = scene
        .proxy
        .rest("GET", "/items/7?utm_source=1", &[("X-Mine", "v")], "");
    assert_eq!(body_of(&answer, 200), r#"{"a":1}"#);
    scene.expect(&[("match", 1.0)]);
    let asked = scene.rest.request();
    assert_eq!(asked.head.start, "GET /items/7?utm_source=1 HTTP/1.1");
    assert_eq!(
        (asked.head.one("x-mine"), asked.head.one("content-length")),
        (Some("v"), None)
    );

    let json = [("Content-Type", "application/json")];
    scene.proxy.rest("POST", "/find", &json, r#"{"q":"x"}"#);
    scene.expect(&[("match", 2.0)]);
    assert_eq!(scene.rest.requests().pop().unwrap().text(), r#"{"q":"x"}"#);
}

#[test]
fn a_head_is_compared_without_its_body() {
    let scene = Scene::of(
        "verify",
        "",
        (
            Upstream::answering(answer("200 OK", &[], "")),
            saying(r#""result":{"a":1}"#),
        ),
    );
    let mut client = scene.proxy.connect();
    client.send("HEAD /items/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.read_answer_to("HEAD").status(), 200);
    scene.expect(&[("match", 1.0)]);
}
