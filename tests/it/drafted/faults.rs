//! Bad input of `dualgauge rest` and `dualgauge mcp`: a clear message, and all else is served.

use std::fs;

use serde_json::{Value, json};

use super::{JSON, LOOPBACK, launched, mcp_server_with, post, rest};
use crate::scene::json as json_answer;
use crate::support::{Proxy, Upstream, program, run_to_end};

/// The errors of `mcp` for a document.
fn errors_of(document: &str, name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, document).unwrap();
    let ended = run_to_end(program(&["mcp", "--openapi", file.to_str().unwrap()]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ended.errors
}

/// An MCP server for a document.
fn mcp(document: &Value, server: &Upstream) -> (Proxy, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.json");
    fs::write(&file, document.to_string()).unwrap();
    let upstream = format!("http://{}", server.address());
    let arguments = [
        "mcp",
        "--openapi",
        file.to_str().unwrap(),
        "--upstream",
        &upstream,
    ];
    let proxy = launched(&[&arguments[..], &LOOPBACK].concat());
    let printed = proxy.printed("Stop with Ctrl-C.");
    (proxy, printed)
}

fn ask(proxy: &Proxy, method: &str, params: &Value) -> Value {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    proxy.rest("POST", "/mcp", &[JSON], call.to_string()).json()
}

fn tools_of(proxy: &Proxy) -> Vec<Value> {
    let listed = ask(proxy, "tools/list", &json!({}));
    listed["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

/// An MCP server over HTTP that lists these tools and echoes the name of a called one.
fn listing(tools: Value) -> Upstream {
    mcp_server_with(tools, |name, _| {
        Ok(json!({ "content": [{ "type": "text", "text": name }] }))
    })
}

#[test]
fn a_broken_document_is_reported_with_its_place() {
    let errors = errors_of("{\"openapi\": \"3.1.0\",\n \"paths\": }", "api.json");
    assert!(
        errors.contains("api.json") && errors.contains("line 2"),
        "{errors}"
    );
    let errors = errors_of("openapi: 3.1.0\npaths: [\n", "api.yaml");
    assert!(errors.contains("api.yaml"), "{errors}");
    let errors = errors_of("{\"hello\": 1}", "api.json");
    assert!(errors.contains("`openapi` is missing"), "{errors}");
    let none =
        json!({ "openapi": "3.1.0", "servers": [{ "url": "http://127.0.0.1:9" }], "paths": {} });
    let errors = errors_of(&none.to_string(), "api.json");
    assert!(errors.contains("`paths` is missing or empty"), "{errors}");
    let relative = json!({ "openapi": "3.1.0", "servers": [{ "url": "/v1" }], "paths": { "/a": { "get": {} } } });
    let errors = errors_of(&relative.to_string(), "api.json");
    assert!(errors.contains("name it with `--upstream URL`"), "{errors}");
}

#[test]
fn a_document_that_cannot_be_fetched_is_reported() {
    let ended = run_to_end(program(&[
        "mcp",
        "--openapi",
        "http://127.0.0.1:1/openapi.json",
    ]));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("127.0.0.1:1"), "{}", ended.errors);
    let ended = run_to_end(program(&["mcp", "--openapi", "/no/such/file.yaml"]));
    assert!(
        ended.errors.contains("/no/such/file.yaml"),
        "{}",
        ended.errors
    );
}

#[test]
fn an_unreachable_rest_server_fails_its_calls_only() {
    let document =
        json!({ "openapi": "3.1.0", "paths": { "/a": { "get": { "operationId": "a" } } } });
    let (proxy, _) = mcp(&document, &Upstream::nowhere());
    assert_eq!(names(&tools_of(&proxy)), ["a"]);
    let failed = ask(
        &proxy,
        "tools/call",
        &json!({ "name": "a", "arguments": {} }),
    );
    assert_eq!(
        failed["error"]["data"]["reason"], "upstream_unreachable",
        "{failed}"
    );
}

#[test]
fn looping_schemas_of_a_document_are_served() {
    let node = json!({ "$ref": "#/components/schemas/Node" });
    let operation = |id: &str, schema: Value| {
        let content = json!({ "application/json": { "schema": schema } });
        json!({
            "operationId": id,
            "requestBody": { "required": true, "content": content },
            "responses": { "200": { "description": "ok", "content": content } },
        })
    };
    let document = json!({
        "openapi": "3.1.0",
        "paths": {
            "/tree": { "post": operation("tree", node.clone()) },
            "/self": { "post": operation("self", json!({ "$ref": "#/components/schemas/Self" })) },
            "/ring": { "post": operation("ring", json!({ "allOf": [{ "$ref": "#/components/schemas/RingA" }] })) },
            "/gone": { "post": operation("gone", json!({ "$ref": "#/components/schemas/Gone" })) },
            "/plain": { "get": { "operationId": "plain" } },
        },
        "components": { "schemas": {
            "Node": { "type": "object", "properties": { "next": node, "all": { "type": "array", "items": node } } },
            "Self": { "$ref": "#/components/schemas/Self" },
            "RingA": { "allOf": [{ "$ref": "#/components/schemas/RingB" }] },
            "RingB": { "allOf": [{ "$ref": "#/components/schemas/RingA" }] },
        } },
    });
    let server = Upstream::answering(json_answer(r#"{"next":{"next":{}}}"#));
    let (proxy, printed) = mcp(&document, &server);
    let tools = tools_of(&proxy);
    let served = names(&tools);
    assert!(
        served.contains(&"tree") && served.contains(&"plain"),
        "{served:?}"
    );
    for name in ["tree", "self", "ring", "gone", "plain"] {
        assert!(
            served.contains(&name) || printed.contains(&format!("/{name}: ")),
            "{printed}"
        );
    }
    let arguments = json!({ "next": { "next": {} } });
    let called = ask(
        &proxy,
        "tools/call",
        &json!({ "name": "tree", "arguments": arguments }),
    );
    assert_eq!(called["result"]["structuredContent"], arguments, "{called}");
}

#[test]
fn odd_names_and_clashes_of_a_document_are_served_under_other_names() {
    let get = |id: &str| json!({ "get": { "operationId": id } });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/a": get("get it!"), "/b": get("twice"), "/c": get("Twice"), "/d": get("é"), "/e": get("") },
    });
    let server = Upstream::answering(json_answer("1"));
    let (proxy, _) = mcp(&document, &server);
    let tools = tools_of(&proxy);
    let mut served: Vec<&str> = names(&tools);
    served.sort_unstable();
    assert_eq!(served.len(), 5, "{served:?}");
    for name in ["get_it", "twice", "Twice_2"] {
        assert!(served.contains(&name), "{served:?}");
    }
    for (count, name) in served.iter().enumerate() {
        let called = ask(
            &proxy,
            "tools/call",
            &json!({ "name": name, "arguments": {} }),
        );
        assert_eq!(
            called["result"]["structuredContent"],
            json!({ "result": 1 }),
            "{called}"
        );
        assert_eq!(server.requests().len(), count + 1);
    }
}

#[test]
fn odd_names_and_looping_schemas_of_tools_are_served() {
    let tools = json!([
        { "name": "read file/é", "inputSchema": { "$ref": "#" } },
        { "name": "read-file", "inputSchema": { "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "$defs": { "a": { "$ref": "#/$defs/a" } } } },
        { "name": "mcp", "outputSchema": { "$ref": "#/$defs/none" } },
        { "name": "docs", "annotations": { "readOnlyHint": true } },
        { "name": "docs" },
        { "name": 7 },
        "no tool",
    ]);
    let server = listing(tools);
    let proxy = rest(&server, &LOOPBACK);
    for (path, name) in [
        ("/read-file-2", "read file/é"),
        ("/read-file", "read-file"),
        ("/mcp-2", "mcp"),
        ("/docs", "docs"),
    ] {
        let called = post(&proxy, path, &json!({}));
        assert_eq!((called.status(), called.text()), (200, name), "{path}");
    }
    let document = proxy.rest("GET", "/openapi.json", &[], "");
    assert_eq!(document.status(), 200);
    assert!(
        proxy
            .rest("GET", "/docs", &[], "")
            .text()
            .contains("<!doctype html>")
    );
}

#[test]
fn a_huge_list_of_tools_is_served() {
    let tools: Vec<Value> = (0..2_000)
        .map(|at| json!({ "name": format!("tool_{at}") }))
        .collect();
    let server = listing(tools.into());
    let proxy = rest(&server, &LOOPBACK);
    let called = post(&proxy, "/tool_1999", &json!({}));
    assert_eq!((called.status(), called.text()), (200, "tool_1999"));
}
