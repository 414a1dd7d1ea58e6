//! `config/sqlite.toml`: either client before either server gets what the server of its own side says.

use serde_json::json;

use super::fake_sqlite::{EVENT, TOOLS, USERS, new, old};
use super::servers::{directly, message, upstream, with_table};
use crate::scene::{Called, body_of, problem, rpc_failure};
use crate::support::{Proxy, Upstream, becomes, fields};

const CALL: &str = "/mcp/v1/tools/call";
const LIST: &str = "/mcp/v1/tools/list";
const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

fn before_old(server: &Upstream) -> Proxy {
    with_table("sqlite", &upstream("old", "rest", server, ""))
}

fn before_new(server: &Upstream) -> Proxy {
    with_table("sqlite", &upstream("new", "rpc", server, "/rpc"))
}

/// Calls that both servers understand, and what becomes of each.
const CALLS: [&str; 10] = [
    r#"{"name":"query_records","arguments":{"table_name":"users"}}"#,
    r#"{"name":"query_records","arguments":{"table_name":"empty","limit":5}}"#,
    r#"{"name":"query_records","arguments":{"table_name":"blobs"}}"#,
    r#"{"name":"list_tables","arguments":{}}"#,
    r#"{"name":"nope","arguments":{}}"#,
    r#"{"name":"query_records","arguments":{}}"#,
    r#"{"name":"query_records","arguments":{"table_name":"nosuch"}}"#,
    r#"{"name":"query_records","arguments":{"table_name":"a b"}}"#,
    r#"{"name":"execute_raw_query","arguments":{"query":"DROP TABLE users"}}"#,
    r#"{"arguments":{}}"#,
];

#[test]
fn a_rest_client_of_the_new_server_reads_what_the_old_one_said() {
    let (old, new) = (old(), new());
    let proxy = before_new(&new);
    for body in CALLS {
        let wanted = directly(&old, "POST", CALL, body);
        let found = proxy.rest("POST", CALL, &JSON, body);
        assert_eq!(found.text(), wanted.text(), "{body}");
        assert_eq!(found.status(), wanted.status(), "{body}");
        assert_eq!(found.head.one("content-type"), Some("application/json"));
    }
}

#[test]
fn an_rpc_client_of_the_old_server_reads_what_the_new_one_says_and_failures_as_results() {
    let (old, new) = (old(), new());
    let proxy = before_old(&old);
    let mut failed = 0;
    for params in CALLS {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let wanted = directly(&new, "POST", "/rpc", &call);
        let found = proxy.rpc(&call);
        let hidden = &wanted.json()["error"]["data"]["details"];
        if hidden.is_null() {
            assert_eq!(body_of(&found, 200), body_of(&wanted, 200), "{params}");
            continue;
        }
        let content = json!([{ "type": "text", "text": hidden }]);
        let result = json!({ "content": content, "isError": true });
        assert_eq!(found.json()["result"], result, "{params}");
        failed += 1;
    }
    assert_eq!(failed, 4);
}

#[test]
fn a_rest_client_reads_failures_as_any_mcp_server_says_them() {
    let cases = [
        (
            r#""result":{"content":[{"type":"text","text":"no such table"}],"isError":true}"#,
            r#"{"content":[{"type":"text","text":"no such table"}],"isError":true}"#,
        ),
        (
            r#""result":{"isError":true,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}"#,
        ),
        (
            r#""error":{"code":-32602,"message":"Unknown tool: nope"}"#,
            r#"{"content":[{"type":"text","text":"Unknown tool: nope"}],"isError":true}"#,
        ),
    ];
    for (said, read) in cases {
        let proxy = before_new(&crate::scene::saying(said));
        let found = proxy.rest("POST", CALL, &JSON, CALLS[0]);
        assert_eq!(body_of(&found, 200), read, "{said}");
    }
}

#[test]
fn the_call_itself_arrives_with_its_arguments_as_they_were() {
    let (old, new) = (old(), new());
    let arguments =
        r#"{"data":{"z":1.10,"a":[ ],"big":123456789012345678901234567890},"table_name":"users"}"#;
    // What the table does not know goes along.
    let body = format!(r#"{{"name":"query_records","arguments":{arguments},"trace":1.10}}"#);
    before_new(&new).rest("POST", CALL, &JSON, &body);
    assert_eq!(Called::of(&new.request()).method(), "tools/call");
    assert_eq!(Called::of(&new.request()).params(), body);
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{body}}}"#);
    before_old(&old).rpc(call);
    assert_eq!(old.request().head.start, format!("POST {CALL} HTTP/1.1"));
    assert_eq!(old.request().text(), body);
}

#[test]
fn arguments_that_an_rpc_client_may_leave_out_are_written_for_the_old_server() {
    let left_out = json!({"name": "list_tables"});
    let null = json!({"name": "list_tables", "arguments": null});
    for params in [left_out, null] {
        let old = old();
        let proxy = before_old(&old);
        let answer = proxy.rpc(message("tools/call", &params));
        assert_eq!(
            body_of(&answer, 200),
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"['users']"}]}}"#
        );
        assert_eq!(
            old.request().text(),
            r#"{"name":"list_tables","arguments":{}}"#
        );
    }
}

#[test]
fn the_list_of_tools_is_the_same_bytes_on_both_sides() {
    let (old, new) = (old(), new());
    let answer = before_new(&new).rest("POST", LIST, &[], "");
    assert_eq!(body_of(&answer, 200), TOOLS);
    assert_eq!(Called::of(&new.request()).params(), "{}");
    let answer = before_old(&old).rpc(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#);
    assert_eq!(
        body_of(&answer, 200),
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{TOOLS}}}"#)
    );
    assert_eq!(old.request().text(), "{}");
}

#[test]
fn what_the_old_server_cannot_validate_is_a_failed_result_with_its_reasons() {
    let old = old();
    let proxy = before_old(&old);
    let params = json!({"name": "query_records", "arguments": [1]});
    let answer = proxy.rpc(message("tools/call", &params)).json();
    assert_eq!(answer["id"], 1);
    let result = &answer["result"];
    assert_eq!(result["isError"], true, "{answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(
        text.contains("Input should be a valid dictionary"),
        "{text}"
    );
    let kept = &result["_meta"]["dualgauge/answer"];
    assert_eq!(kept["status"], 422, "{answer}");
    assert_eq!(kept["body"]["detail"][0]["type"], "dict_type", "{answer}");
}

#[test]
fn bodies_that_the_new_server_would_answer_without_json_rpc_do_not_reach_it() {
    let new = new();
    let proxy = before_new(&new);
    let rows = [
        ("application/json", "{\"name\":", 400, "malformed_json"),
        ("text/plain", "{}", 415, "unsupported_media_type"),
        ("application/json", "[]", 400, "invalid_params"),
    ];
    for (kind, body, status, reason) in rows {
        let answer = proxy.rest("POST", CALL, &[("Content-Type", kind)], body);
        assert_eq!(answer.status(), status, "{body}");
        assert_eq!(problem(&answer).0, reason, "{body}");
    }
    assert_eq!(new.requests().len(), 0);
    // What an RPC client sends is the server's to judge.
    for body in ["{", "[]", "7"] {
        let answer = proxy.rpc(body);
        assert_eq!(answer.status(), 422, "{body}: {answer:?}");
    }
}

#[test]
fn ids_that_the_new_server_changes_or_refuses_come_back_as_they_were() {
    for path in ["/rpc", "/mcp"] {
        let new = new();
        let proxy = with_table("sqlite", &upstream("new", "rpc", &new, path));
        for id in ["\"1\"", "0", "2.0", "1.5", "123456789012345678901234567890"] {
            let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let answer = proxy.rpc(call);
            let answer = body_of(&answer, 200).replace(' ', "");
            assert_eq!(
                answer,
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
            );
        }
    }
}

#[test]
fn a_notification_that_the_new_server_answers_is_answered_with_nothing() {
    for path in ["/rpc", "/mcp"] {
        let new = new();
        let proxy = with_table("sqlite", &upstream("new", "rpc", &new, path));
        let answer = proxy.rpc(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert_eq!((answer.status(), answer.text()), (204, ""), "{path}");
    }
}

#[test]
fn a_notification_becomes_a_call_of_the_old_server() {
    let old = old();
    let proxy = before_old(&old);
    let call = r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"list_tables"}}"#;
    let answer = proxy.rpc(call);
    assert_eq!((answer.status(), answer.text()), (204, ""));
    becomes(|| old.requests().len(), &1);
}

#[test]
fn a_batch_that_the_new_server_does_not_take_is_its_own_to_refuse() {
    let new = new();
    let proxy = before_new(&new);
    let batch =
        r#"[{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"list_tables"}}]"#;
    let refused = proxy.rpc(batch);
    assert_eq!(refused.status(), 422, "{refused:?}");
    assert_eq!(refused.json()["detail"][0]["input"], batch);
}

#[test]
fn old_paths_that_the_new_server_no_longer_has_are_not_found() {
    let new = new();
    let proxy = with_table("sqlite", &upstream("old", "rest", &new, ""));
    let answer = proxy.rpc(message("tools/list", &json!({}))).json();
    assert_eq!(answer["error"]["code"], -31404);
    assert_eq!(
        answer["error"]["data"]["body"],
        json!({"detail": "Not Found"})
    );
}

#[test]
fn what_has_no_route_passes_through() {
    let (old, new) = (old(), new());
    let proxy = before_old(&old);
    let answer = proxy.rest("GET", "/mcp/v1/sse", &[], "");
    assert_eq!(body_of(&answer, 200), EVENT);
    let kind = answer.head.one("content-type");
    assert_eq!(kind, Some("text/event-stream; charset=utf-8"));
    let answer = proxy.rest("GET", "/health", &[], "");
    assert_eq!(
        body_of(&answer, 200),
        r#"{"status":"healthy","service":"mcp-sqlite-server"}"#
    );
    let answer = proxy.rest("GET", CALL, &[], "");
    assert_eq!(
        (answer.status(), answer.head.one("allow")),
        (405, Some("POST"))
    );
    // The old server knows no such method.
    let answer = proxy.rpc(message("ping", &json!({}))).json();
    assert_eq!(rpc_failure(&answer), (-32601, "route_not_found"));
    let answer = before_new(&new).rpc(message("ping", &json!({}))).json();
    assert_eq!(answer["result"], json!({}));
}

#[test]
fn a_redirect_of_the_old_server_leads_back_to_the_proxy() {
    let old = old();
    let proxy = before_old(&old);
    let answer = proxy.rest("GET", "/health/", &[], "");
    assert_eq!(answer.status(), 307);
    // It is made of the host that the client has asked for, and so is the proxy's own.
    let location = answer.head.one("location");
    assert_eq!(location, Some("http://proxy.example/health"));
    // A path with a slash at its end is another resource than the route's, and passes where the route's calls do.
    let near = "/mcp/v1/tools/list/";
    let answer = proxy.rest("POST", near, &[], "");
    assert_eq!(answer.status(), 307);
    let location = answer.head.one("location");
    assert_eq!(location, Some("http://proxy.example/mcp/v1/tools/list"));
    // For a client that is moved, it would be a way around the route.
    let new = new();
    let answer = before_new(&new).rest("POST", near, &[], "");
    assert_eq!(answer.status(), 400, "{answer:?}");
    assert_eq!(new.requests().len(), 0);
}

#[test]
fn a_client_that_is_not_moved_gets_the_bytes_of_its_own_server() {
    let (old, new) = (old(), new());
    let upstreams = [
        upstream("old", "rest", &old, ""),
        upstream("new", "rpc", &new, "/mcp"),
    ];
    let proxy = with_table("sqlite", &upstreams.concat());
    let call = r#"{"name":"query_records","arguments":{"table_name":"users"}}"#;
    let answer = proxy.rest("POST", CALL, &JSON, call);
    let wanted = directly(&old, "POST", CALL, call);
    assert_eq!(answer.body, wanted.body);
    assert!(answer.json()["content"][0]["text"] == USERS, "{answer:?}");
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{call}}}"#);
    let answer = proxy.rpc(&call);
    let wanted = directly(&new, "POST", "/mcp", &call);
    assert_eq!(answer.body, wanted.body);
    let session = fields(&[("mcp-protocol-version", "2024-11-05")]);
    assert!(answer.head.sorted().contains(&session[0]), "{answer:?}");
}
