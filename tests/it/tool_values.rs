//! `result = "tool"` and `[[local]] answer = "tools"`: tools from routes, and the values that their results have.

use serde_json::{Value, json};

use crate::scene::{Called, answer, before_rest, before_rpc, call, json as json_answer, json_with};
use crate::support::{Proxy, Upstream};

const TOOLS: &str = r##"
[[local]]
rpc = "tools/list"
answer = "tools"
page = 2

[[route]]
name = "pets.get"
rest = "GET /pets/{id:integer}"
rpc = "tools/call"
params = { name = "get_pet", arguments = { id = "{id}" } }
result = "tool"
title = "Get a pet"
description = "Reads it."
schema.validate = false
schema.params = '{"properties":{"arguments":{"type":"object","properties":{"id":{"$ref":"#/schemas/Id"}},"required":["id"]}}}'
schema.result = '{"type":"object","properties":{"id":{"$ref":"#/schemas/Id"}}}'

[[route]]
name = "pets.list"
rest = "GET /pets?tag={tag?}"
rpc = "tools/call"
params = { name = "list_pets", arguments = { tag = "{tag}" } }
result = "tool"
summary = "List pets"
schema.validate = false
schema.result = '{"type":"array","items":{"type":"string"}}'

[[route]]
name = "pets.add"
rest = "POST /pets"
rpc = "tools/call"
body = "{pet:object}"
params = { name = "add_pet", arguments = "{pet}" }
result = "tool"

[[route]]
name = "pets.remove"
rest = "DELETE /pets/{id:integer}"
rpc = "tools/call"
params = { name = "remove_pet", arguments = { id = "{id}" } }
result = "tool"

[[route]]
name = "not.a.tool"
rest = "GET /health"
rpc = "health"

[schemas]
Id = '{"type":"integer","minimum":1}'
"##;

fn listed(proxy: &Proxy, params: &str) -> Value {
    proxy.rpc(call("tools/list", params)).json()["result"].clone()
}

/// The result of a tool before a REST server that answers so.
fn result_of(reply: &[u8], name: &str, arguments: &Value) -> Value {
    let rest = Upstream::answering(reply);
    let proxy = before_rest(&rest, TOOLS);
    let params = json!({ "name": name, "arguments": arguments });
    let said = proxy.rpc(call("tools/call", &params.to_string()));
    assert_eq!(said.status(), 200, "{said:?}");
    said.json()["result"].clone()
}

#[test]
fn routes_are_listed_as_tools_page_by_page() {
    let proxy = before_rest(&Upstream::nowhere(), TOOLS);
    let first = listed(&proxy, "{}");
    let second = listed(
        &proxy,
        &json!({ "cursor": first["nextCursor"] }).to_string(),
    );
    assert_eq!(second.get("nextCursor"), None);
    let tools = [&first["tools"], &second["tools"]].map(|page| page.as_array().unwrap().clone());
    let tools = tools.concat();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["get_pet", "list_pets", "add_pet", "remove_pet"]);
    assert_eq!(first["tools"].as_array().unwrap().len(), 2);
    let id = json!({ "type": "integer", "minimum": 1 });
    assert_eq!(
        tools[0],
        json!({
            "name": "get_pet",
            "title": "Get a pet",
            "description": "Reads it.",
            "inputSchema": {
                "type": "object",
                "properties": { "id": { "$ref": "#/$defs/Id" } },
                "required": ["id"],
                "$defs": { "Id": id },
            },
            "outputSchema": {
                "type": "object",
                "properties": { "id": { "$ref": "#/$defs/Id" } },
                "$defs": { "Id": id },
            },
            "annotations": { "readOnlyHint": true, "idempotentHint": true, "destructiveHint": false },
        })
    );
    let wrapped = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(tools[1]["outputSchema"]["properties"]["result"], wrapped);
    assert_eq!(tools[1]["title"], "List pets");
    assert_eq!(
        tools[1]["inputSchema"]["properties"]["tag"]["type"],
        "string"
    );
    assert_eq!(
        tools[2]["annotations"],
        json!({ "readOnlyHint": false, "idempotentHint": false })
    );
    assert_eq!(
        tools[3]["annotations"],
        json!({ "readOnlyHint": false, "idempotentHint": true, "destructiveHint": true })
    );
    let stale = proxy.rpc(call("tools/list", r#"{"cursor":"0000000000000000.1"}"#));
    assert_eq!(stale.json()["error"]["code"], -32602);
}

#[test]
fn the_value_of_a_tool_is_structured_and_a_text() {
    let pet = r#"{ "id": 7, "price": 1.10 }"#;
    let result = result_of(&json_answer(pet), "get_pet", &json!({ "id": 7 }));
    assert_eq!(
        result,
        json!({
            "content": [{ "type": "text", "text": pet }],
            "structuredContent": { "id": 7, "price": 1.10 },
        })
    );
    let result = result_of(&json_answer(r#"["a"]"#), "list_pets", &json!({}));
    assert_eq!(result["structuredContent"], json!({ "result": ["a"] }));
    assert_eq!(result["content"][0]["text"], r#"["a"]"#);
    assert_eq!(result["_meta"]["fastmcp"]["wrap_result"], true);
    let made = json_with("201 Created", r#"{"id":8}"#);
    let result = result_of(&made, "add_pet", &json!({ "name": "Rex" }));
    assert_eq!(result["structuredContent"], json!({ "id": 8 }));
    let gone = answer("204 No Content", &[], "");
    let result = result_of(&gone, "remove_pet", &json!({ "id": 7 }));
    assert_eq!(result, json!({ "content": [] }));
    let text = answer("200 OK", &[("Content-Type", "text/plain")], "done");
    let result = result_of(&text, "add_pet", &json!({}));
    assert_eq!(
        result["content"],
        json!([{ "type": "text", "text": "done" }])
    );
    assert_eq!(result.get("structuredContent"), None);
}

#[test]
fn bytes_are_an_image_a_sound_or_a_resource() {
    let bytes = b"\x89PNG\x00\xff";
    for (kind, block) in [
        (
            "image/png",
            json!({ "type": "image", "data": "iVBORwD/", "mimeType": "image/png" }),
        ),
        (
            "audio/wav",
            json!({ "type": "audio", "data": "iVBORwD/", "mimeType": "audio/wav" }),
        ),
        (
            "application/pdf",
            json!({ "type": "resource", "resource": {
                "uri": "resource:///response", "blob": "iVBORwD/", "mimeType": "application/pdf",
            } }),
        ),
    ] {
        let reply = answer("200 OK", &[("Content-Type", kind)], bytes);
        let result = result_of(&reply, "add_pet", &json!({}));
        assert_eq!(result, json!({ "content": [block] }));
    }
    // A tool with an `outputSchema` has a structured value in each success.
    let reply = answer("200 OK", &[("Content-Type", "image/png")], bytes);
    let result = result_of(&reply, "list_pets", &json!({}));
    assert_eq!(result["structuredContent"], json!({ "result": "iVBORwD/" }));
}

#[test]
fn any_content_type_is_accepted_and_json_preferred() {
    let rest = Upstream::answering(json_answer("1"));
    let proxy = before_rest(&rest, TOOLS);
    proxy.rpc(call(
        "tools/call",
        r#"{"name":"list_pets","arguments":{"tag":"a b"}}"#,
    ));
    proxy.rpc(call("health", "{}"));
    let requests = rest.requests();
    assert_eq!(requests[0].head.start, "GET /pets?tag=a%20b HTTP/1.1");
    let accepted = requests.iter().map(|request| request.head.one("accept"));
    let accepted: Vec<Option<&str>> = accepted.collect();
    assert_eq!(
        accepted,
        [
            Some("application/json, */*;q=0.5"),
            Some("application/json")
        ]
    );
}

#[test]
fn a_failure_is_a_result_with_the_words_of_the_server() {
    let problem = r#"{"detail":"no such pet"}"#;
    for (status, words) in [
        ("404 Not Found", "HTTP 404 Not Found: no such pet"),
        (
            "422 Unprocessable Content",
            "HTTP 422 Unprocessable Entity: no such pet",
        ),
        (
            "503 Service Unavailable",
            "HTTP 503 Service Unavailable: no such pet",
        ),
    ] {
        let result = result_of(&json_with(status, problem), "get_pet", &json!({ "id": 7 }));
        assert_eq!(result["isError"], true, "{result}");
        assert_eq!(result["content"][0]["text"], words);
        assert_eq!(result.get("structuredContent"), None);
    }
}

/// Returns the response to a call of a tool by a client of this MCP revision.
fn called_by(proxy: &Proxy, revision: Option<&str>, name: &str, arguments: &Value) -> Value {
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(revision.map(|revision| ("MCP-Protocol-Version", revision)));
    let params = json!({ "name": name, "arguments": arguments });
    let said = proxy.rest(
        "POST",
        "/rpc",
        &headers,
        call("tools/call", &params.to_string()),
    );
    assert_eq!(said.status(), 200, "{said:?}");
    said.json()
}

#[test]
fn invalid_arguments_are_a_result_that_a_model_can_read_from_2025_11_25_on() {
    let rest = Upstream::answering(json_answer("{}"));
    let proxy = before_rest(&rest, TOOLS);
    let wrong = json!({ "id": "seven" });
    let old = called_by(&proxy, Some("2025-06-18"), "get_pet", &wrong);
    assert_eq!(old["error"]["code"], -32602, "{old}");
    let words = old["error"]["message"].clone();
    let unnamed = called_by(&proxy, None, "get_pet", &wrong);
    assert_eq!(unnamed["error"]["code"], -32602, "{unnamed}");
    let new = called_by(&proxy, Some("2025-11-25"), "get_pet", &wrong);
    let text = json!([{ "type": "text", "text": words }]);
    assert_eq!(new["result"], json!({ "content": text, "isError": true }));
    proxy.log_line(&["reason=invalid_params", "rpc_method=tools/call"]);
    let missing = called_by(&proxy, Some("2025-11-25"), "get_pet", &json!({}));
    assert_eq!(missing["result"]["isError"], true, "{missing}");
    let unknown = called_by(&proxy, Some("2025-11-25"), "no_such_tool", &wrong);
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(rest.requests().is_empty());
}

/// A server whose tools return this result.
fn returning(result: &'static str) -> Upstream {
    Upstream::serving(move |request| {
        let id = Called::of(request).id().to_owned();
        json_answer(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#
        ))
    })
}

const CREATED: &str = r#"
[[route]]
name = "pets.add"
rest = "POST /pets"
rpc = "tools/call"
body = "{pet:object}"
params = { name = "add_pet", arguments = "{pet}" }
result = "tool"
outcome = [{ rest = { status = 201, body = "{made}" }, rpc = { result = { structuredContent = "{made}" } } }]

[[route]]
name = "pets.remove"
rest = "DELETE /pets/{id:integer}"
rpc = "tools/call"
params = { name = "remove_pet", arguments = { id = "{id}" } }
result = "tool"
"#;

#[test]
fn a_rest_client_gets_the_status_of_its_outcome() {
    let rpc =
        returning(r#"{"content":[{"type":"text","text":"made"}],"structuredContent":{"id":8}}"#);
    let proxy = before_rpc(&rpc, CREATED);
    let made = proxy.rest(
        "POST",
        "/pets",
        &[("Content-Type", "application/json")],
        "{}",
    );
    assert_eq!((made.status(), made.json()), (201, json!({ "id": 8 })));
    let removed = proxy.rest("DELETE", "/pets/8", &[], "");
    assert_eq!(
        (removed.status(), removed.json()),
        (200, json!({ "id": 8 }))
    );
    let rpc = returning(r#"{"content":[]}"#);
    let proxy = before_rpc(&rpc, CREATED);
    let removed = proxy.rest("DELETE", "/pets/8", &[], "");
    assert_eq!((removed.status(), removed.text()), (204, ""));
    let rpc = returning(r#"{"content":[{"type":"text","text":"no such pet"}],"isError":true}"#);
    let proxy = before_rpc(&rpc, CREATED);
    let failed = proxy.rest("DELETE", "/pets/8", &[], "");
    assert_eq!(
        (failed.status(), &failed.json()["detail"]),
        (422, &json!("no such pet"))
    );
}

#[test]
fn a_rest_client_gets_an_image_as_bytes() {
    let rpc =
        returning(r#"{"content":[{"type":"image","data":"iVBORwD/","mimeType":"image/png"}]}"#);
    let proxy = before_rpc(&rpc, CREATED);
    let drawn = proxy.rest("DELETE", "/pets/8", &[], "");
    assert_eq!(
        (drawn.status(), &*drawn.body),
        (200, &b"\x89PNG\x00\xff"[..])
    );
    assert_eq!(drawn.head.one("content-type"), Some("image/png"));
    assert_eq!(drawn.head.one("x-content-type-options"), Some("nosniff"));
}
