//! `config/kuzu.toml`: tools behind paths, texts that are unpacked, and failures that look like successes.

use serde_json::{Value, json};

use super::fake_kuzu::{MEMORY, face, server};
use super::servers::{message, upstream, with_table};
use crate::scene::{Called, body_of, problem, rpc_failure};
use crate::support::{Proxy, Upstream};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

fn before_rpc(server: &Upstream) -> Proxy {
    with_table("kuzu", &upstream("kuzu", "rpc", server, "/rpc"))
}

fn before_rest(server: &Upstream) -> Proxy {
    with_table("kuzu", &upstream("face", "rest", server, ""))
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn tool(name: &str, arguments: &Value) -> String {
    message("tools/call", &json!({"name": name, "arguments": arguments}))
}

/// Each call from both sides: the REST call with its body, what REST answers, the RPC call, and its result.
pub(super) const ROWS: [[&str; 4]; 10] = [
    [
        r#"POST /api/enhance {"prompt":"What database?","limit":5}"#,
        r###"200 {"enhanced":"## Relevant Context:\n- We use PostgreSQL\n\nWhat database?"}"###,
        r#"tools/call {"name":"kuzu_enhance","arguments":{"prompt":"What database?","limit":5}}"#,
        r###"{"content":[{"type":"text","text":"## Relevant Context:\n- We use PostgreSQL\n\nWhat database?"}]}"###,
    ],
    [
        "GET /api/recall?query=database&limit=5 ",
        r#"200 {"memories":"- We use PostgreSQL"}"#,
        r#"tools/call {"name":"kuzu_recall","arguments":{"query":"database","limit":5}}"#,
        r#"{"content":[{"type":"text","text":"- We use PostgreSQL"}]}"#,
    ],
    [
        "GET /api/recall?query=a%20%26%20b ",
        r#"200 {"memories":"- We use PostgreSQL"}"#,
        r#"tools/call {"name":"kuzu_recall","arguments":{"query":"a & b"}}"#,
        r#"{"content":[{"type":"text","text":"- We use PostgreSQL"}]}"#,
    ],
    [
        r#"POST /api/memories {"content":"We use PostgreSQL","source":"chat"}"#,
        r#"201 {"id":"0b564fee-8e2c-4a0e-9d53-1f0f6f2f4d11"}"#,
        r#"tools/call {"name":"kuzu_remember","arguments":{"content":"We use PostgreSQL","source":"chat"}}"#,
        r#"{"content":[{"type":"text","text":"Stored memory with ID: 0b564fee-8e2c-4a0e-9d53-1f0f6f2f4d11"}]}"#,
    ],
    [
        r#"POST /api/learn {"content":"We prefer tabs"}"#,
        r#"202 {"task":"ff193e47"}"#,
        r#"tools/call {"name":"kuzu_learn","arguments":{"content":"We prefer tabs"}}"#,
        r#"{"content":[{"type":"text","text":"Learning stored asynchronously (task ff193e47)"}]}"#,
    ],
    [
        r#"POST /api/memories {"content":""}"#,
        r#"502 {"error":"No content provided"}"#,
        r#"tools/call {"name":"kuzu_remember","arguments":{"content":""}}"#,
        r#"{"content":[{"type":"text","text":"Error: No content provided"}]}"#,
    ],
    [
        "GET /api/stats?detailed=true ",
        r#"200 {"stats":"Total Memories: 1\nMemory Types: {'episodic': 1}\nLocal LLM: not detected"}"#,
        r#"tools/call {"name":"kuzu_stats","arguments":{"detailed":true}}"#,
        r#"{"content":[{"type":"text","text":"Total Memories: 1\nMemory Types: {'episodic': 1}\nLocal LLM: not detected"}]}"#,
    ],
    [
        "GET /api/stats ",
        r#"200 {"stats":"Total Memories: 1\nMemory Types: {'episodic': 1}\nLocal LLM: not detected"}"#,
        r#"tools/call {"name":"kuzu_stats","arguments":{}}"#,
        r#"{"content":[{"type":"text","text":"Total Memories: 1\nMemory Types: {'episodic': 1}\nLocal LLM: not detected"}]}"#,
    ],
    [
        "GET /health ",
        r#"200 {"status":"ok"}"#,
        "ping {}",
        r#"{"pong":true}"#,
    ],
    [
        "GET /health?detailed=true ",
        r#"200 {"status":"ok","health":{"status":"healthy","checks":3},"duration_ms":1536.70}"#,
        r#"ping {"detailed":true}"#,
        r#"{"pong":true,"health":{"status":"healthy","checks":3},"duration_ms":1536.70}"#,
    ],
];

#[test]
fn a_rest_client_has_paths_for_the_tools() {
    let server = server();
    let proxy = before_rpc(&server);
    for [rest, reply, rpc, _] in ROWS {
        let mut words = rest.splitn(3, ' ');
        let [method, target, body] = [(); 3].map(|()| words.next().unwrap());
        let headers = if body.is_empty() { &JSON[..0] } else { &JSON };
        let answer = proxy.rest(method, target, headers, body);
        assert_eq!(format!("{} {}", answer.status(), answer.text()), reply);
        let sent = Called::of(server.requests().last().unwrap())
            .params()
            .to_owned();
        assert_eq!(sent, rpc.split_once(' ').unwrap().1, "{rest}");
    }
}

#[test]
fn an_rpc_client_has_tools_for_the_paths() {
    let face = face();
    let proxy = before_rest(&face);
    for [rest, _, rpc, result] in ROWS {
        let (method, params) = rpc.split_once(' ').unwrap();
        let call = format!(r#"{{"jsonrpc":"2.0","id":"a","method":"{method}","params":{params}}}"#);
        let answer = proxy.rpc(&call);
        let wanted = format!(r#"{{"jsonrpc":"2.0","id":"a","result":{result}}}"#);
        assert_eq!(body_of(&answer, 200), wanted, "{call}");
        let requests = face.requests();
        let sent = requests.last().unwrap();
        let line = sent.head.start.trim_end_matches("HTTP/1.1");
        assert_eq!(format!("{line}{}", sent.text()), rest);
    }
}

#[test]
fn what_is_created_has_an_address() {
    let server = server();
    let body = r#"{"content":"We use PostgreSQL"}"#;
    let answer = before_rpc(&server).rest("POST", "/api/memories", &JSON, body);
    let location = format!("/api/memories/{MEMORY}");
    assert_eq!(answer.head.one("location"), Some(location.as_str()));
}

#[test]
fn what_a_server_would_refuse_is_refused_before_it() {
    let server = server();
    let proxy = before_rpc(&server);
    let rows = [
        ("GET", "/api/recall?query=a&limit=five", "", "limit"),
        ("GET", "/api/recall", "", "query"),
        ("GET", "/api/recall?query=", "", "query"),
        ("GET", "/api/recall?query=a&bogus=1", "", "bogus"),
        ("GET", "/api/stats?detailed=yes", "", "detailed"),
        (
            "POST",
            "/api/enhance",
            r#"{"prompt":"a","bogus":1}"#,
            "bogus",
        ),
        ("POST", "/api/enhance", r#"{"limit":5}"#, "prompt"),
        ("POST", "/api/memories", r#"{"content":7}"#, "content"),
    ];
    for (method, target, body, named) in rows {
        let headers = if body.is_empty() { &JSON[..0] } else { &JSON };
        let answer = proxy.rest(method, target, headers, body);
        assert_eq!(answer.status(), 400, "{target} {answer:?}");
        let (reason, detail) = problem(&answer);
        let wanted = match target.contains("bogus") {
            true => "unknown_query",
            false => "invalid_params",
        };
        assert_eq!(reason, wanted, "{target}");
        assert!(detail.contains(named), "{target}: {detail}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn failures_of_both_versions_are_told_apart_and_come_back() {
    let server = server();
    let answer = before_rpc(&server).rest("GET", "/api/recall?query=a&format=cli", &[], "");
    assert_eq!(answer.status(), 502);
    assert_eq!(
        answer.json(),
        json!({"error": "Error executing tool 'kuzu_recall': database is locked", "code": -32001})
    );

    let face = face();
    let proxy = before_rest(&face);
    let recall = |query: &str| {
        let answer = proxy.rpc(tool("kuzu_recall", &json!({ "query": query })));
        answer.json()
    };
    assert_eq!(recall("broken")["result"], text("Error: corrupt database"));
    assert_eq!(
        recall("locked")["error"],
        json!({"code": -32001, "message": "database is locked"})
    );
}

#[test]
fn codes_of_the_server_have_statuses_and_keep_their_text() {
    let rows = [
        (
            r#"{"code":-32601,"message":"Tool not found: kuzu_recall"}"#,
            404,
        ),
        (
            r#"{"code":-32602,"message":"Invalid parameters for tool 'kuzu_recall': x"}"#,
            400,
        ),
        (
            r#"{"code":-32603,"message":"Internal error: 'list' object has no attribute 'get'"}"#,
            500,
        ),
        (r#"{"code":-32002,"message":"not ready"}"#, 503),
        (
            r#"{"code":-32003,"message":"Command timed out after 10 seconds"}"#,
            504,
        ),
    ];
    for (error, status) in rows {
        let wanted: Value = serde_json::from_str(error).unwrap();
        let server =
            crate::scene::saying(Box::leak(format!(r#""error":{error}"#).into_boxed_str()));
        let answer = before_rpc(&server).rest("GET", "/api/recall?query=a", &[], "");
        assert_eq!(answer.status(), status, "{error}");
        assert_eq!(answer.json(), json!({"error": wanted["message"]}));

        let line = format!("{status} Odd");
        let face = Upstream::answering(crate::scene::json_with(&line, answer.text()));
        let answer = before_rest(&face).rpc(tool("kuzu_recall", &json!({"query": "a"})));
        assert_eq!(answer.json()["error"], wanted);
    }
}

#[test]
fn the_other_server_of_the_package_says_its_failures_by_a_member() {
    let said = r#""result":{"content":[{"type":"text","text":"Input validation error: 'query' is a required property"}],"isError":true}"#;
    let answer =
        before_rpc(&crate::scene::saying(said)).rest("GET", "/api/recall?query=a", &[], "");
    assert_eq!(answer.status(), 422, "{answer:?}");
    assert_eq!(
        answer.text(),
        r#"{"error":"'query' is a required property"}"#
    );
    let said = r#""result":{"content":[{"type":"text","text":"- a"}],"isError":false}"#;
    let answer =
        before_rpc(&crate::scene::saying(said)).rest("GET", "/api/recall?query=a", &[], "");
    assert_eq!(body_of(&answer, 200), r#"{"memories":"- a"}"#);
}

#[test]
fn tools_and_methods_without_a_path_pass_through() {
    let server = server();
    let proxy = before_rpc(&server);
    let call = tool("kuzu_optimize", &json!({}));
    assert_eq!(
        body_of(&proxy.rpc(&call), 200),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Tool not found: kuzu_optimize"}}"#
    );
    assert_eq!(server.request().text(), call);
    proxy.log_line(&["rpc_method=tools/call", "decision=unrouted"]);

    let answer = before_rest(&face()).rpc(&call).json();
    assert_eq!(rpc_failure(&answer), (-32602, "invalid_params"));
    assert_eq!(answer["error"]["message"], "unknown tool: kuzu_optimize");
}

#[test]
fn a_notification_gets_silence() {
    let server = server();
    let proxy = before_rpc(&server);
    let answer = proxy.rpc(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!((answer.status(), answer.text()), (204, ""));
}
