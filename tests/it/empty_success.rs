//! A success without content: a result of `null` for calls that may do something, and where the route promises it.

use serde_json::json;

use crate::scene::{answer, before_rest, before_rpc, body_of, call, json, rpc_failure, saying};
use crate::support::{Upstream, program, run_to_end};

/// Routes of REST servers, by their method and what they add.
const ROUTES: &str = r#"
[[route]]
name = "put"
rest = "PUT /put"
rpc = "put"
[[route]]
name = "post"
rest = "POST /post"
rpc = "post"
[[route]]
name = "delete"
rest = "DELETE /delete"
rpc = "delete"
[[route]]
name = "get"
rest = "GET /get"
rpc = "get"
[[route]]
name = "find"
rest = "POST /find"
rpc = "find"
effect = "safe"
[[route]]
name = "start"
rest = "GET /start"
rpc = "start"
effect = "idempotent"
[[route]]
name = "row"
rest = "GET /row"
rpc = "row"
[[route.outcome]]
rest = { status = 204 }
rpc = { result = "{_:null}" }
[[route]]
name = "schema"
rest = "GET /schema"
rpc = "schema"
schema.result = { type = ["object", "null"] }
[[route]]
name = "any"
rest = "GET /any"
rpc = "any"
schema.result = {}
"#;

#[test]
fn an_empty_success_of_a_call_that_may_do_something_is_null() {
    let kind = [("Content-Type", "application/json")];
    let empty = [
        answer("200 OK", &[], ""),
        json(" \r\n"),
        answer("203 Non-Authoritative Information", &kind, ""),
    ];
    for scripted in empty {
        let upstream = Upstream::answering(scripted);
        let proxy = before_rest(&upstream, ROUTES);
        for method in ["put", "post", "delete", "start", "row", "schema"] {
            let said = proxy.rpc(call(method, "{}"));
            let null = r#"{"jsonrpc":"2.0","id":1,"result":null}"#;
            assert_eq!(said.text(), null, "{method}");
        }
        for method in ["get", "find", "any"] {
            let said = proxy.rpc(call(method, "{}")).json();
            assert_eq!(rpc_failure(&said).1, "upstream_empty", "{method}");
        }
    }
}

/// A route of a tool without rows, one whose row writes `null`, and one that is safe.
const TOOLS: &str = r#"
[[route]]
name = "touch"
rest = "POST /touch"
rpc = "tools/call"
params = { name = "touch", arguments = "{a={}}" }
body = "{a={}}"
[[route]]
name = "row"
rest = "POST /row"
rpc = "tools/call"
params = { name = "row", arguments = "{a={}}" }
body = "{a={}}"
[[route.outcome]]
rest = { status = 200 }
rpc = { result = "{_:null}" }
[[route]]
name = "look"
rest = "GET /look"
rpc = "tools/call"
params = { name = "look" }
"#;

#[test]
fn an_empty_success_of_a_tool_is_a_result_without_content() {
    let upstream = Upstream::answering(answer("200 OK", &[], ""));
    let proxy = before_rest(&upstream, TOOLS);
    for tool in ["touch", "row"] {
        let said = call("tools/call", &format!(r#"{{"name":"{tool}"}}"#));
        let empty = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
        assert_eq!(proxy.rpc(&*said).text(), empty, "{tool}");
        let batch = proxy.rpc(format!("[{said}]"));
        assert_eq!(batch.text(), format!("[{empty}]"), "{tool}");
    }
    let said = proxy.rpc(call("tools/call", r#"{"name":"look"}"#)).json();
    assert_eq!(rpc_failure(&said).1, "upstream_empty");
}

#[test]
fn a_draft_of_a_document_that_promises_no_content_takes_an_empty_success() {
    let draft = draft_of_a_document();
    let upstream = Upstream::answering(answer("200 OK", &[], ""));
    let proxy = before_rest(&upstream, &draft);
    for method in ["touch", "ping"] {
        let said = proxy.rpc(call(method, "{}")).json();
        assert_eq!(said["result"], json!(null), "{method}: {said}\n{draft}");
        assert!(said.get("error").is_none(), "{method}: {said}\n{draft}");
    }
    let said = proxy.rpc(call("list", "{}")).json();
    assert_eq!(rpc_failure(&said).1, "upstream_empty");
}

#[test]
fn a_draft_of_a_document_that_promises_no_content_keeps_the_status_of_an_empty_success() {
    let draft = draft_of_a_document();
    let upstream = saying("\"result\":null");
    let proxy = before_rpc(&upstream, &draft);
    for (method, path) in [("PUT", "/touch"), ("GET", "/ping")] {
        let said = proxy.rest(method, path, &[], "");
        assert_eq!((said.status(), said.text()), (200, ""), "{path}\n{draft}");
    }
}

#[test]
fn a_draft_of_a_document_that_promises_no_content_keeps_content_that_there_is() {
    let draft = draft_of_a_document();
    let upstream = Upstream::answering(json(r#"{"a":1}"#));
    let said = before_rest(&upstream, &draft).rpc(call("touch", "{}"));
    assert_eq!(said.json()["result"], json!({ "a": 1 }), "{draft}");
    let upstream = saying(r#""result":{"a":1}"#);
    let said = before_rpc(&upstream, &draft).rest("PUT", "/touch", &[], "");
    assert_eq!((said.status(), said.text()), (200, r#"{"a":1}"#), "{draft}");
}

/// The draft of a document that promises content of one operation only.
fn draft_of_a_document() -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let touch = json!({ "operationId": "touch", "responses": { "200": { "description": "OK" } } });
    let list = json!({ "operationId": "list", "responses": { "200": {
        "description": "OK", "content": { "application/json": { "schema": { "type": "array" } } },
    } } });
    let ping = json!({ "operationId": "ping", "responses": { "200": { "description": "OK" } } });
    let document = json!({
        "openapi": "3.0.3", "info": { "title": "t", "version": "1" },
        "paths": { "/touch": { "put": touch }, "/list": { "get": list }, "/ping": { "get": ping } },
    });
    std::fs::write(path("document.json"), document.to_string()).unwrap();
    let (from, to) = (path("document.json"), path("draft.toml"));
    let ended = run_to_end(program(&["import", "--openapi", &from, "--output", &to]));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    std::fs::read_to_string(to).unwrap()
}

#[test]
fn a_response_without_a_result_is_null_where_a_row_reads_null() {
    let upstream = saying(r#""more":1"#);
    let rows = [
        ("{ status = 204 }", "'{_}'", 204),
        ("{ status = 204 }", "'{_:null}'", 502),
        (
            "{ status = 200, body = '{x:string?}' }",
            "'{x:string?}'",
            502,
        ),
        (
            "{ status = 200, body = { next = '{next?}', items = '{items?}' } }",
            "{ next = '{next?}', items = '{items?}' }",
            502,
        ),
    ];
    for (rest, result, status) in rows {
        let routes = format!(
            "[[route]]\nname = 'end'\nrest = 'DELETE /end'\nrpc = 'end'\n[[route.outcome]]\nlossy = 'any result'\n\
             rest = {rest}\nrpc = {{ result = {result} }}\n"
        );
        let proxy = before_rpc(&upstream, &routes);
        let came = proxy.rest("DELETE", "/end", &[], "");
        body_of(&came, status);
    }
}
