//! `config/agent.toml`: two operations that exist on both sides, and paths for what JSON-RPC has alone.

use serde_json::{Value, json};

use super::fake_agent::{CHAT, TOOLS, broken, start};
use super::servers::{message, upstream, with_table};
use crate::scene::{Called, body_of, json as answered, json_with, problem};
use crate::support::{Message, Proxy, Upstream, becomes};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// The proxy before the JSON-RPC paths alone, so that every REST call is translated.
fn before_rpc(server: &Upstream) -> Proxy {
    with_table("agent", &rpc_upstreams(server))
}

fn rpc_upstreams(server: &Upstream) -> String {
    let mcp = upstream("mcp", "rpc", server, "/mcp");
    let api = upstream("api", "rpc", server, "/api");
    format!("{mcp}{api}default = true\n")
}

/// The proxy before the REST endpoints, with every RPC call translated; nobody is at the JSON-RPC paths.
fn before_rest(server: &Upstream) -> Proxy {
    let rpc = rpc_upstreams(&Upstream::nowhere());
    let rest = upstream("flask", "rest", server, "");
    let rollout = "[rollout]\ndefault = { rpc = \"translate\" }\n";
    with_table("agent", &format!("{rest}{rpc}{rollout}"))
}

fn post(proxy: &Proxy, target: &str, body: &str) -> Message {
    proxy.rest("POST", target, &JSON, body)
}

/// The path, the method and the params of the last call that came.
fn last(server: &Upstream) -> (String, String, String) {
    let requests = server.requests();
    let last = requests.last().unwrap();
    let called = Called::of(last);
    (
        last.head.start.clone(),
        called.method().to_owned(),
        called.params().to_owned(),
    )
}

fn called(path: &str, method: &str, params: &str) -> (String, String, String) {
    let start = format!("POST {path} HTTP/1.1");
    (start, method.to_owned(), params.to_owned())
}

fn tools() -> Value {
    serde_json::from_str(TOOLS).unwrap()
}

#[test]
fn the_tools_are_listed_in_both_directions() {
    let server = start();
    let answer = before_rpc(&server).rest("GET", "/tools", &[], "");
    assert_eq!(answer.status(), 200, "{answer:?}");
    assert_eq!(answer.json(), json!({ "tools": tools() }));
    assert_eq!(last(&server), called("/mcp", "mcp.list_tools", "{}"));

    let server = start();
    let answer = before_rest(&server).rpc(message("mcp.list_tools", &json!({})));
    assert_eq!(answer.json()["result"], json!({ "tools": tools() }));
    assert_eq!(server.request().head.start, "GET /tools HTTP/1.1");
}

#[test]
fn the_tools_have_another_name_where_an_agent_asks_for_them() {
    let server = start();
    let answer = before_rest(&server).rpc(message("agent.list_capabilities", &json!({})));
    assert_eq!(
        body_of(&answer, 200),
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"capabilities":{TOOLS}}}}}"#)
    );
    assert_eq!(server.request().head.start, "GET /tools HTTP/1.1");
}

#[test]
fn the_tools_are_reloaded_in_both_directions() {
    let reloaded = json!({"status": "reloaded", "tool_count": 3});
    let server = start();
    let answer = before_rpc(&server).rest("POST", "/tools/reload", &[], "");
    assert_eq!(answer.json(), reloaded);
    assert_eq!(last(&server), called("/mcp", "mcp.reload_tools", "{}"));

    let server = start();
    let proxy = before_rest(&server);
    let answer = proxy.rpc(message("mcp.reload_tools", &json!({})));
    assert_eq!(answer.json()["result"], reloaded);
    let request = server.request();
    assert_eq!(request.head.start, "POST /tools/reload HTTP/1.1");
    assert_eq!(request.text(), "{}");
}

#[test]
fn a_chat_keeps_every_byte_of_its_answer() {
    let server = start();
    let proxy = before_rpc(&server);
    let answer = post(&proxy, "/chat", r#"{"message":"explain tcp"}"#);
    assert_eq!(body_of(&answer, 200), super::servers::spaced(CHAT));
    let params = r#"{"message":"explain tcp"}"#;
    assert_eq!(last(&server), called("/api", "agent.chat", params));
}

#[test]
fn failures_of_the_agent_are_told_by_their_text() {
    let server = start();
    let proxy = before_rpc(&server);
    let rows = [
        ("/chat", "{}", 400, "the parameter 'message' is missing"),
        ("/chat", r#"{"message":"fail"}"#, 500, "Grok API error: 429"),
        (
            "/tools/web_search",
            r#"{"q":1}"#,
            400,
            "'query' parameter is required",
        ),
        (
            "/tools/code_generation",
            r#"{"prompt":"fail"}"#,
            500,
            "Grok API error: 429",
        ),
        ("/tools/nope:execute", "", 404, "Method not found: nope"),
        (
            "/tools/web_search:execute",
            "{}",
            400,
            "'query' parameter is required",
        ),
        (
            "/tools/web_search:execute",
            r#"{"query":"fail"}"#,
            500,
            "Internal error: Grok API error: 429",
        ),
    ];
    for (target, body, status, error) in rows {
        let answer = post(&proxy, target, body);
        assert_eq!(answer.status(), status, "{target} {body} {answer:?}");
        assert_eq!(answer.json(), json!({ "error": error }), "{target} {body}");
        let kind = answer.head.one("content-type");
        assert_eq!(kind, Some("application/json"));
    }
}

#[test]
fn the_name_of_a_tool_in_the_path_is_the_method() {
    let server = start();
    let proxy = before_rpc(&server);
    let rows = [
        ("text_generation", r#"{"prompt":"hi"}"#),
        (
            "text_generation",
            r#"{"prompt":"hi","structured_output":"true"}"#,
        ),
        ("code_generation", r#"{"prompt":"hi"}"#),
        ("web_search", r#"{"query":"hi"}"#),
    ];
    for (tool, body) in rows {
        let answer = post(&proxy, &format!("/tools/{tool}"), body);
        assert_eq!(body_of(&answer, 200), r#"{"result":"Hello **x**"}"#);
        assert_eq!(last(&server), called("/mcp", tool, body));
    }
}

#[test]
fn an_rpc_client_reaches_the_path_that_has_its_method() {
    let server = start();
    let upstreams = upstream("flask", "rest", &server, "") + &rpc_upstreams(&server);
    let proxy = with_table("agent", &upstreams);
    let rows = [
        ("/mcp", "mcp.list_tools", "{}"),
        ("/mcp", "text_generation", r#"{"prompt":"hi"}"#),
        ("/api", "agent.chat", r#"{"message":"hi"}"#),
        ("/api", "agent.list_capabilities", "{}"),
        ("/api", "agent.refresh_capabilities", "{}"),
    ];
    for (path, method, params) in rows {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        let answer = proxy.rpc(call).json();
        assert_eq!(answer.get("error"), None, "{method} {answer}");
        assert_eq!(last(&server), called(path, method, params));
    }
}

#[test]
fn a_text_that_holds_json_stays_a_text() {
    let server = start();
    let answer = post(
        &before_rpc(&server),
        "/tools/web_search",
        r#"{"query":"json"}"#,
    );
    assert_eq!(
        body_of(&answer, 200),
        r#"{"result":"{\"html\": \"<p>1.10</p>\"}"}"#
    );
}

#[test]
fn a_tool_that_no_route_names_is_the_callers_error() {
    let server = start();
    let answer = post(&before_rpc(&server), "/tools/nope", "{}");
    assert_eq!(answer.status(), 400, "{answer:?}");
    assert_eq!(problem(&answer).0, "invalid_params");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_tool_runs_within_the_agent_as_well() {
    let server = start();
    let proxy = before_rpc(&server);
    let answer = post(
        &proxy,
        "/tools/text_generation:execute",
        r#"{"prompt":"hi"}"#,
    );
    assert_eq!(body_of(&answer, 200), r#"{"result":"Hello **x**"}"#);
    let params = r#"{"tool_name":"text_generation","tool_params":{"prompt":"hi"}}"#;
    assert_eq!(last(&server), called("/api", "agent.execute_tool", params));
    post(&proxy, "/tools/web_search:execute", "");
    let params = r#"{"tool_name":"web_search","tool_params":{}}"#;
    assert_eq!(last(&server), called("/api", "agent.execute_tool", params));
}

#[test]
fn a_failure_of_the_rest_side_is_what_the_rpc_side_would_say() {
    let server = broken();
    let answer = before_rest(&server).rpc(message("mcp.list_tools", &json!({})));
    assert_eq!(
        body_of(&answer, 200),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error: 'int' object has no attribute 'get'"}}"#
    );
}

#[test]
fn pages_for_people_become_errors() {
    let server = broken();
    let answer = before_rest(&server).rpc(message("mcp.reload_tools", &json!({})));
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["status"]),
        (&json!(-31404), &json!(404))
    );
    let page = error["data"]["body"].as_str().unwrap();
    assert!(page.starts_with("<!doctype html>"), "{page}");
}

#[test]
fn a_rest_body_on_an_rpc_path_is_no_answer() {
    let failed = json_with("500 INTERNAL SERVER ERROR", r#"{"error":"boom"}"#);
    let html = answered("<!doctype html>");
    let no_content = crate::scene::answer("204 NO CONTENT", &[("Content-Type", "text/html")], "");
    for scripted in [failed, html, no_content] {
        let server = Upstream::answering(scripted);
        let answer = before_rpc(&server).rest("GET", "/tools", &[], "");
        assert_eq!(answer.status(), 502, "{answer:?}");
        problem(&answer);
    }
}

#[test]
fn an_rpc_client_meets_a_rest_body_of_its_server_as_it_is_alone_and_for_a_batch() {
    let body = r#"{"error":"'int' object has no attribute 'get'"}"#;
    let server = Upstream::answering(json_with("500 INTERNAL SERVER ERROR", body));
    let proxy = before_rpc(&server);
    let call = r#"{"jsonrpc":"2.0","id":"a","method":"text_generation","params":{}}"#;
    let answer = proxy.rpc(call);
    assert_eq!(body_of(&answer, 500), body);
    assert_eq!(body_of(&proxy.rpc(format!("[{call}]")), 500), body);
}

#[test]
fn a_form_does_not_reach_a_server_that_would_lose_it() {
    let server = start();
    let proxy = before_rpc(&server);
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let answer = proxy.rest("POST", "/chat", &form, r#"{"message":"hi"}"#);
    assert_eq!(answer.status(), 415, "{answer:?}");
    let call = message("agent.chat", &json!({"message": "hi"}));
    assert_eq!(server.requests().len(), 0);
    // What an RPC client sends is the server's to judge.
    proxy.rest("POST", "/rpc", &form, &call);
    assert_eq!(server.request().text(), call);
}

#[test]
fn an_error_for_a_notification_is_swallowed() {
    let server = start();
    let proxy = before_rpc(&server);
    for method in ["text_generation", "agent.chat", "nope"] {
        let call = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#);
        let answer = proxy.rpc(call);
        assert_eq!((answer.status(), answer.text()), (204, ""), "{method}");
    }
    becomes(|| server.requests().len(), &3);
}

#[test]
fn ids_of_any_kind_and_batches_are_answered_as_the_specification_says() {
    let server = start();
    let proxy = before_rpc(&server);
    for id in [
        "0",
        "1.5",
        "\"a\"",
        "123456789012345678901234567890",
        "null",
    ] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"mcp.reload_tools"}}"#);
        let answer = proxy.rpc(call);
        let end = format!(r#""id": {id}}}"#);
        assert!(body_of(&answer, 200).ends_with(&end), "{id}: {answer:?}");
    }
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"web_search","params":{"query":"a"}},{"jsonrpc":"2.0","method":"nope"},{"jsonrpc":"2.0","id":2,"method":"agent.chat"}]"#;
    let answers = proxy.rpc(batch).json();
    assert_eq!(answers[0]["result"], "Hello **x**");
    assert_eq!(answers[1]["error"]["message"], "Internal error: 'message'");
    assert_eq!(
        (&answers[1]["id"], answers.as_array().unwrap().len()),
        (&json!(2), 2)
    );
    // The server says nothing to an empty batch, and takes no params for an error.
    assert_eq!(proxy.rpc("[]").text(), "");
    let null = r#"{"jsonrpc":"2.0","id":1,"method":"mcp.list_tools","params":null}"#;
    assert_eq!(proxy.rpc(null).json()["error"]["code"], -32600);
}

#[test]
fn a_notification_reloads_the_tools_of_the_rest_side() {
    let server = start();
    let proxy = before_rest(&server);
    let answer = proxy.rpc(r#"{"jsonrpc":"2.0","method":"mcp.reload_tools"}"#);
    assert_eq!((answer.status(), answer.text()), (204, ""));
    becomes(|| server.requests().len(), &1);
    assert_eq!(server.request().head.start, "POST /tools/reload HTTP/1.1");
}

#[test]
fn what_exists_on_one_side_only_passes_through() {
    let server = start();
    let upstreams = upstream("flask", "rest", &server, "") + &rpc_upstreams(&server);
    let proxy = with_table("agent", &upstreams);
    let answer = proxy.rest("GET", "/health", &[], "");
    assert_eq!(
        body_of(&answer, 200),
        "{\"agent\":\"intelligent\",\"mcp\":\"ready\",\"status\":\"ok\",\"tools\":3}\n"
    );
    let answer = proxy.rpc(message("agent.refresh_capabilities", &json!({})));
    assert_eq!(answer.json()["result"], json!({ "capabilities": tools() }));
    let answer = proxy.rest("GET", "/api", &[], "");
    assert_eq!(answer.head.one("allow"), Some("OPTIONS, POST"));
}
