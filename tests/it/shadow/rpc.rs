//! The RPC side.

use super::Scene;
use crate::scene::{call, json, json_with, saying};
use crate::support::Upstream;

fn old(body: &'static str) -> Upstream {
    Upstream::answering(json(body))
}

#[test]
fn a_shadowed_call_is_answered_by_the_rpc_server_and_compared_with_the_rest_one() {
    let scene = Scene::of(
        "shadow",
        "",
        (old(r#"{"a":1}"#), saying(r#""result":{"a":1}"#)),
    );
    let answer = scene.proxy.rpc(call("items/get", r#"{"id":"7"}"#));
    assert_eq!(
        answer.text(),
        r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#
    );
    scene.expect(&[("match", 1.0)]);
    assert_eq!(scene.rest.request().head.start, "GET /items/7 HTTP/1.1");
    let sent = scene.rpc.request();
    assert_eq!(
        sent.text(),
        call("items/get", r#"{"id":"7"}"#),
        "as the same bytes"
    );
}

#[test]
fn an_id_that_does_not_travel_is_compared_as_well() {
    let scene = Scene::of("shadow", "", (old("1"), saying(r#""result":2"#)));
    let answer = scene
        .proxy
        .rpc(r#"{"jsonrpc":"2.0","id":1.5,"method":"items/get","params":{"id":"7"}}"#);
    assert_eq!(answer.text(), r#"{"jsonrpc":"2.0","id":1.5,"result":2}"#);
    scene.expect(&[("mismatch", 1.0)]);
}

#[test]
fn a_batch_has_as_many_candidates_as_a_request_may() {
    let scene = Scene::of("shadow", "", (old("1"), saying(r#""result":1"#)));
    let one = call("items/get", r#"{"id":"7"}"#);
    let silent = r#"{"jsonrpc":"2.0","method":"items/get","params":{"id":"8"}}"#;
    let answer = scene.proxy.rpc(format!("[{silent},{one},{one},{one}]"));
    assert_eq!(answer.json().as_array().unwrap().len(), 3);
    scene.expect(&[("match", 1.0), ("skipped", 3.0)]);
    scene.expect_skipped(&[("batch_limit", 2.0), ("notification", 1.0)]);
    assert_eq!(scene.rest.requests().len(), 1);
}

#[test]
fn an_unsafe_method_is_never_called_twice() {
    let scene = Scene::of("shadow", "", (old("1"), saying(r#""result":1"#)));
    scene.proxy.rpc(call("items/make", "{}"));
    scene.expect_skipped(&[("unsafe", 1.0)]);
    assert_eq!(scene.rest.requests().len(), 0);
}

#[test]
fn a_verified_call_is_answered_by_the_rest_server_and_passed_on_as_it_came() {
    let scene = Scene::of(
        "verify",
        "",
        (old(r#"{"a":1}"#), saying(r#""result":{"a":2}"#)),
    );
    let answer = scene.proxy.rpc(call("items/get", r#"{"id":"7"}"#));
    assert_eq!(answer.json()["result"]["a"], 1);
    scene.expect(&[("mismatch", 1.0)]);
    assert_eq!(
        scene.rpc.request().text(),
        call("items/get", r#"{"id":"7"}"#)
    );

    let one = call("items/get", r#"{"id":"7"}"#);
    scene.proxy.rpc(format!("[{one},{one}]"));
    scene.expect(&[("mismatch", 2.0), ("skipped", 1.0)]);
}

#[test]
fn errors_are_compared_and_failures_are_not() {
    let rows = [
        (
            json_with("404 No", "{}"),
            r#""error":{"code":-32601,"message":"x"}"#,
            "mismatch",
        ),
        (
            json_with("500 No", "{}"),
            r#""error":{"code":-32603,"message":"x"}"#,
            "both-failed",
        ),
        (
            json("{}"),
            r#""error":{"code":-32603,"message":"x"}"#,
            "control-failed",
        ),
        (
            json_with("503 No", "{}"),
            r#""result":{}"#,
            "candidate-failed",
        ),
    ];
    for (rest, rpc, verdict) in rows {
        let scene = Scene::of("shadow", "", (Upstream::answering(rest), saying(rpc)));
        scene.proxy.rpc(call("items/get", r#"{"id":"7"}"#));
        scene.expect(&[(verdict, 1.0)]);
    }
}
