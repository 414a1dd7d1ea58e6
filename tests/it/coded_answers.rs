//! Answers of servers in gzip or br, and JSON behind a byte order mark: translated calls read them as they were
//! before, within the limits of an answer.

use serde_json::json;

use crate::coded::{BROTLI, gzip};
use crate::rest_to_rpc::ROUTES;
use crate::scene::{
    Called, answer, before_rest, before_rpc, body_of, call, json, problem, rpc_failure,
};
use crate::support::{Proxy, Upstream};

fn coded(status: &str, coding: &str, body: &[u8]) -> Vec<u8> {
    let headers = [
        ("Content-Type", "application/json"),
        ("Content-Encoding", coding),
    ];
    answer(status, &headers, body)
}

fn get(proxy: &Proxy) -> serde_json::Value {
    proxy.rpc(call("things/get", r#"{"id":"7"}"#)).json()
}

/// An RPC upstream whose answer is made of `"result":…`, with this coding.
fn rpc_answering(
    coding: &'static str,
    text: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> Upstream {
    Upstream::serving(move |request| {
        let id = Called::of(request).own_id();
        coded("200 OK", coding, &text(&id.to_string()))
    })
}

#[test]
fn an_answer_of_a_rest_server_is_decoded() {
    let tables = json!({ "name": "list_tables", "arguments": {} });
    let rows: [(&str, &[u8], serde_json::Value); 5] = [
        ("gzip", &gzip(br#"{"a":1}"#), json!({ "a": 1 })),
        ("X-GZIP", &gzip(br#"{"a":1}"#), json!({ "a": 1 })),
        ("br", BROTLI, tables),
        ("identity", b"[2]", json!([2])),
        ("gzip", &gzip("\u{feff}[3]".as_bytes()), json!([3])),
    ];
    for (coding, body, result) in rows {
        let upstream = Upstream::answering(coded("200 OK", coding, body));
        let proxy = before_rest(&upstream, ROUTES);
        assert_eq!(get(&proxy)["result"], result, "{coding}");
        assert_eq!(upstream.requests().len(), 1);
    }
    let upstream = Upstream::answering(coded("204 No Content", "gzip", b""));
    let proxy = before_rest(&upstream, ROUTES);
    assert_eq!(
        get(&proxy)["result"],
        json!(null),
        "nothing is in no coding"
    );
}

#[test]
fn an_error_of_a_rest_server_is_decoded() {
    let body = gzip(br#"{"why":"busy"}"#);
    let upstream = Upstream::answering(coded("409 Conflict", "gzip", &body));
    let proxy = before_rest(&upstream, ROUTES);
    let data = get(&proxy)["error"]["data"].clone();
    assert_eq!(data["body"], json!({ "why": "busy" }), "{data}");
}

#[test]
fn an_answer_of_an_rpc_server_is_decoded() {
    let upstream = rpc_answering("gzip", |id| {
        gzip(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":1.10}}}}"#).as_bytes())
    });
    let proxy = before_rpc(&upstream, ROUTES);
    let answer = proxy.rest("GET", "/things/7", &[], "");
    assert_eq!(body_of(&answer, 200), r#"{"a":1.10}"#);
    assert_eq!(answer.head.one("content-encoding"), None);
    let upstream = rpc_answering("gzip", |id| {
        let error = r#"{"code":-7,"message":"no"}"#;
        gzip(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).as_bytes())
    });
    let proxy = before_rpc(&upstream, ROUTES);
    let answer = proxy.rest("GET", "/things/7", &[], "");
    assert_eq!(answer.json()["rpc"]["code"], -7, "{answer:?}");
}

#[test]
fn a_small_answer_cannot_become_a_large_one() {
    let bomb = gzip(format!("[{}]", " ".repeat(200_000)).as_bytes());
    assert!(bomb.len() < 1000);
    let limits = format!("{ROUTES}[limits]\nanswer = 100_000\n");
    let upstream = Upstream::answering(coded("200 OK", "gzip", &bomb));
    let proxy = before_rest(&upstream, &limits);
    assert_eq!(rpc_failure(&get(&proxy)).1, "upstream_too_large");
    let limits = format!("{ROUTES}[limits]\nmemory = 100_000\n");
    let proxy = before_rest(&upstream, &limits);
    assert_eq!(rpc_failure(&get(&proxy)).1, "memory_full");
    let bomb = bomb.clone();
    let upstream = rpc_answering("gzip", move |_| bomb.clone());
    let limits = format!("{ROUTES}[limits]\nanswer = 100_000\n");
    let proxy = before_rpc(&upstream, &limits);
    let (reason, detail) = problem(&proxy.rest("GET", "/things/7", &[], ""));
    assert_eq!(reason, "upstream_too_large", "{detail}");
}

#[test]
fn an_answer_that_is_not_what_its_coding_says_is_a_failure() {
    let whole = gzip(b"{}");
    let rows: [(&str, &[u8]); 5] = [
        ("gzip", b"{}"),
        ("gzip", &whole[..whole.len() - 3]),
        ("br", &whole),
        ("zstd", b"{}"),
        ("gzip, br", &whole),
    ];
    for (coding, body) in rows {
        for status in ["200 OK", "404 Not Found"] {
            let upstream = Upstream::answering(coded(status, coding, body));
            let proxy = before_rest(&upstream, ROUTES);
            let said = get(&proxy);
            assert_eq!(rpc_failure(&said).1, "upstream_not_protocol", "{coding}");
            assert_eq!(said["error"]["data"]["blame"], "upstream");
        }
    }
}

#[test]
fn a_byte_order_mark_before_json_is_ignored() {
    let upstream = Upstream::answering(json("\u{feff}{\"a\":1}"));
    let proxy = before_rest(&upstream, ROUTES);
    let message = format!("\u{feff}{}", call("things/get", r#"{"id":"7"}"#));
    assert_eq!(proxy.rpc(&message).json()["result"], json!({ "a": 1 }));
    let batch = format!("\u{feff}[{}]", call("things/get", r#"{"id":"7"}"#));
    assert_eq!(proxy.rpc(&batch).json()[0]["result"], json!({ "a": 1 }));
    let upstream = rpc_answering("identity", |id| {
        format!("\u{feff}{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":[1]}}").into_bytes()
    });
    let proxy = before_rpc(&upstream, ROUTES);
    let kind = [("Content-Type", "application/json")];
    let answer = proxy.rest("POST", "/do", &kind, "\u{feff}{\"a\":1}");
    assert_eq!(body_of(&answer, 200), "[1]");
    assert_eq!(Called::of(&upstream.request()).params(), r#"{"a":1}"#);
}
