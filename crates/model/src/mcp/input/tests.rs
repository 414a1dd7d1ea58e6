//! Tests of rounds of input.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::jsonrpc::{Incoming, MessageItem, MessageLimits, parse};

fn call(params: &Value) -> Call {
    let text = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let limits = MessageLimits {
        depth: 16,
        batch: 1,
    };
    match parse(&text.to_string().into(), limits) {
        Ok(Incoming::Single(MessageItem::Call(call))) => call,
        other => panic!("{other:?}"),
    }
}

fn written(value: &Value) -> Json {
    Json::written(value.to_string())
}

fn able(capabilities: &Value) -> InputCapabilities {
    let params = written(&json!({ "capabilities": capabilities }));
    let able = InputCapabilities::of_initialize(Some(&params));
    // A stateless request declares the same.
    let again = written(
        &json!({ "capabilities": serde_json::from_slice::<Value>(able.to_json().as_bytes()).unwrap() }),
    );
    assert_eq!(InputCapabilities::of_initialize(Some(&again)), able);
    let session = format!("0123{}", able.to_suffix());
    assert_eq!(InputCapabilities::of_session(&session), able);
    let named = format!("{session}.app-c1/2-c3");
    assert_eq!(InputCapabilities::of_session(&named), able);
    able
}

fn asks(requests: &Value) -> Json {
    written(
        &json!({ "resultType": "input_required", "inputRequests": requests, "requestState": "s" }),
    )
}

#[test]
fn only_declared_requests_reach_the_client() {
    let form = json!({ "a": { "method": "elicitation/create", "params": { "message": "m" } } });
    let url = json!({ "a": { "method": "elicitation/create", "params": { "mode": "url" } } });
    let sampling = json!({ "a": { "method": "sampling/createMessage", "params": {} } });
    let roots = json!({ "a": { "method": "roots/list" } });
    let both = json!({ "a": form["a"], "b": roots["a"] });
    for (declared, allowed) in [
        (
            json!({ "elicitation": {} }),
            [true, false, false, false, false],
        ),
        (
            json!({ "elicitation": { "url": {} } }),
            [false, true, false, false, false],
        ),
        (
            json!({ "elicitation": { "url": {}, "form": {} } }),
            [true, true, false, false, false],
        ),
        (
            json!({ "sampling": {} }),
            [false, false, true, false, false],
        ),
        (
            json!({ "roots": {}, "elicitation": {} }),
            [true, false, false, true, true],
        ),
        (json!({}), [false; 5]),
    ] {
        let got = [&form, &url, &sampling, &roots, &both].map(|requests| {
            let round = InputRound::of_result("tools/call", &asks(requests), able(&declared));
            round.is_some()
        });
        assert_eq!(got, allowed, "{declared}");
    }
    for none in ["", "x", "0123", "0123-c", "0123-cx", "0123-c100"] {
        let able = InputCapabilities::of_session(none);
        assert_eq!(able, InputCapabilities::default(), "{none}");
    }
}

#[test]
fn what_is_no_request_for_input_begins_no_round() {
    let all = able(&json!({ "roots": {}, "elicitation": {}, "sampling": {} }));
    let roots = json!({ "method": "roots/list" });
    let many: serde_json::Map<String, Value> = (0..=MOST_REQUESTS)
        .map(|number| (number.to_string(), roots.clone()))
        .collect();
    for (method, result) in [
        ("tools/list", asks(&json!({ "a": roots }))),
        ("tools/call", written(&json!({ "resultType": "complete" }))),
        ("tools/call", written(&json!({}))),
        (
            "tools/call",
            written(&json!({ "resultType": "input_required" })),
        ),
        ("tools/call", asks(&json!([]))),
        ("tools/call", asks(&json!({ "a": { "method": "other" } }))),
        ("tools/call", asks(&json!({ "a": 1 }))),
        ("tools/call", asks(&Value::Object(many))),
    ] {
        let round = InputRound::of_result(method, &result, all);
        assert!(round.is_none(), "{method} {result:?}");
    }
    let waits = written(&json!({ "resultType": "input_required", "requestState": "s" }));
    let round = InputRound::of_result("tools/call", &waits, all).unwrap();
    assert_eq!(round.progress(), InputProgress::Complete);
    let retry = round.retry(&call(&json!({ "name": "t" }))).unwrap();
    let retry: Value = serde_json::from_slice(&retry).unwrap();
    assert_eq!(retry["params"], json!({ "name": "t", "requestState": "s" }));
}

#[test]
fn a_request_to_open_a_url_has_the_id_that_older_clients_require() {
    let able = able(&json!({ "elicitation": { "url": {}, "form": {} } }));
    let params = |params: Value| {
        let asked = json!({ "a": { "method": "elicitation/create", "params": params } });
        let round = InputRound::of_result("tools/call", &asks(&asked), able).unwrap();
        let message: Value = serde_json::from_slice(&round.message(0, "x").unwrap()).unwrap();
        message["params"].clone()
    };
    let url = json!({ "mode": "url", "url": "https://a/", "message": "m" });
    let wanted =
        json!({ "mode": "url", "url": "https://a/", "message": "m", "elicitationId": "x" });
    assert_eq!(params(url), wanted);
    for unchanged in [
        json!({ "mode": "url", "url": "https://a/", "message": "m", "elicitationId": "own" }),
        json!({ "mode": "form", "message": "m" }),
    ] {
        assert_eq!(params(unchanged.clone()), unchanged);
    }
}

#[test]
fn an_error_of_the_client_ends_the_round() {
    let roots = json!({ "a": { "method": "roots/list" } });
    let able = able(&json!({ "roots": {} }));
    let mut round = InputRound::of_result("tools/call", &asks(&roots), able).unwrap();
    let message = round.message(0, "x").unwrap();
    assert_eq!(
        message,
        r#"{"jsonrpc":"2.0","id":"x","method":"roots/list"}"#
    );
    let error: Bytes = r#"{"id":"x","error":{"code":-1,"message":"no"}}"#.into();
    assert_eq!(round.take(0, &error, 8), InputProgress::Refused(error));
    assert!(round.retry(&call(&json!({ "name": "t" }))).is_none());
}

proptest! {
    /// Responses come in any order; each is found under the key of its request.
    #[test]
    fn a_retry_has_the_results_of_all_requests(
        (keys, order) in prop::collection::btree_set("[a-z\"\\\\]{1,4}", 1..MOST_REQUESTS)
            .prop_flat_map(|keys| {
                let keys: Vec<String> = keys.into_iter().collect();
                let order: Vec<usize> = (0..keys.len()).collect();
                (Just(keys), Just(order).prop_shuffle())
            })
    ) {
        let request = json!({ "method": "roots/list" });
        let requests: serde_json::Map<String, Value> =
            keys.iter().map(|key| (key.clone(), request.clone())).collect();
        let able = able(&json!({ "roots": {} }));
        let asked = asks(&Value::Object(requests));
        let mut round = InputRound::of_result("tools/call", &asked, able).unwrap();
        let first = call(&json!({ "name": "t", "inputResponses": 1, "requestState": 2 }));
        for (turn, index) in order.iter().enumerate() {
            prop_assert!(round.retry(&first).is_none());
            let response = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"roots":[{index}]}}}}"#);
            let progress = round.take(*index, &response.into(), 8);
            let is_last = turn + 1 == order.len();
            prop_assert_eq!(progress == InputProgress::Complete, is_last);
        }
        let retry: Value = serde_json::from_slice(&round.retry(&first).unwrap()).unwrap();
        prop_assert_eq!(&retry["params"]["name"], "t");
        prop_assert_eq!(&retry["params"]["requestState"], "s");
        let responses = retry["params"]["inputResponses"].as_object().unwrap();
        prop_assert_eq!(responses.len(), keys.len());
        for index in 0..keys.len() {
            let message: Value =
                serde_json::from_slice(&round.message(index, "x").unwrap()).unwrap();
            prop_assert_eq!(&message["method"], "roots/list");
        }
    }
}
