//! What is bounded, and what is counted where a bound is met.

use super::Scene;
use crate::scene::{body_of, json, saying};
use crate::support::Upstream;

fn old() -> Upstream {
    Upstream::answering(json("{}"))
}

#[test]
fn no_more_candidates_run_at_a_time_than_may() {
    let scene = Scene::of(
        "shadow",
        "concurrency = 1\ntimeout = \"60s\"",
        (old(), Upstream::start()),
    );
    scene.proxy.rest("GET", "/items/7", &[], "");
    let mut hanging = scene.rpc.accept();
    for _ in 0..3 {
        let answer = scene.proxy.rest("GET", "/items/7", &[], "");
        assert_eq!(body_of(&answer, 200), "{}");
    }
    scene.expect_skipped(&[("busy", 3.0)]);
    let asked = hanging.read_request().json();
    hanging.send(json(format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#,
        asked["id"]
    )));
    scene.expect(&[("match", 1.0), ("skipped", 3.0)]);
}

#[test]
fn a_request_that_does_not_fit_into_the_memory_passes_and_is_not_compared() {
    let scene = Scene::of(
        "shadow",
        "memory = \"16KiB\"",
        (old(), saying(r#""result":{}"#)),
    );
    let json = [("Content-Type", "application/json")];
    let body = format!(r#"{{"q":"{}"}}"#, "x".repeat(100_000));
    let answer = scene.proxy.rest("POST", "/find", &json, &body);
    assert_eq!(body_of(&answer, 200), "{}");
    assert_eq!(scene.rest.request().text().len(), body.len());
    scene.expect_skipped(&[("large", 1.0)]);
    scene.proxy.rest("POST", "/find", &json, r#"{"q":"x"}"#);
    scene.expect(&[("match", 1.0), ("skipped", 1.0)]);
}

#[test]
fn an_answer_that_does_not_fit_into_the_memory_passes_and_is_not_compared() {
    let large = format!(r#""{}""#, "x".repeat(100_000));
    let scene = Scene::of(
        "shadow",
        "memory = \"16KiB\"",
        (Upstream::answering(json(&large)), saying(r#""result":{}"#)),
    );
    let answer = scene.proxy.rest("GET", "/items/7", &[], "");
    assert_eq!(body_of(&answer, 200), large);
    scene.expect_skipped(&[("large", 1.0)]);
    assert_eq!(scene.rpc.requests().len(), 0);
}

#[test]
fn a_share_of_none_makes_no_call_twice() {
    let scene = Scene::of("shadow", "sample = 0", (old(), saying(r#""result":{}"#)));
    scene.proxy.rest("GET", "/items/7", &[], "");
    scene.expect_skipped(&[("not_sampled", 1.0)]);
    assert_eq!(scene.rpc.requests().len(), 0);
}

#[test]
fn the_control_is_made_once_more_to_learn_what_differs_by_itself() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let count = AtomicUsize::new(0);
    let rest = Upstream::serving(move |_| {
        let now = count.fetch_add(1, Ordering::Relaxed);
        json(format!(r#"{{"a":1,"now":{now}}}"#))
    });
    let scene = Scene::of(
        "shadow",
        "noise = 100\nconcurrency = 100",
        (rest, saying(r#""result":{"a":1,"now":-1}"#)),
    );
    for _ in 0..20 {
        scene.proxy.rest("GET", "/items/7", &[], "");
    }
    scene.expect(&[("match", 20.0)]);
    assert_eq!(scene.rest.requests().len(), 40);
    assert_eq!(scene.rpc.requests().len(), 20);
}

#[test]
fn long_answers_are_compared_beside_the_worker_and_come_to_the_same() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let long = |last: usize| format!(r#"{{"a":[{}1],"b":{last}}}"#, "1,".repeat(50_000));
    let count = AtomicUsize::new(0);
    let new = Upstream::serving(move |request| {
        let id = &request.json()["id"];
        let result = long(count.fetch_add(1, Ordering::Relaxed) / 3);
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
    });
    let scene = Scene::of("shadow", "", (Upstream::answering(json(long(0))), new));
    for verdicts in [
        &[("match", 1.0)][..],
        &[("match", 2.0)],
        &[("match", 3.0)],
        &[("match", 3.0), ("mismatch", 1.0)],
        &[("match", 3.0), ("mismatch", 2.0)],
    ] {
        let answer = scene.proxy.rest("GET", "/items/7", &[], "");
        assert_eq!(body_of(&answer, 200), long(0));
        scene.expect(verdicts);
    }
}
