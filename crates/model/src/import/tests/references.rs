//! References: which are followed, and what one that cannot be followed leaves out.

use super::{DocumentKind, drafted, fault, json, left_out, rest, routes, rpc};
use serde_json::Value;

/// A document whose `POST /a` has a body of this schema, and a `GET /b`.
fn with_schemas(schemas: Value) -> (DocumentKind, Value) {
    let schema = json!({ "$ref": "#/components/schemas/A" });
    let content = json!({ "application/json": { "schema": schema } });
    let document = json!({
        "openapi": "3.0.0",
        "paths": {
            "/a": { "post": { "requestBody": { "content": content } } },
            "/b": { "get": {} },
        },
        "components": { "schemas": schemas },
    });
    (DocumentKind::OpenApi, document)
}

#[test]
fn references_that_go_in_circles_leave_out_their_operation() {
    let a = json!({ "$ref": "#/components/schemas/B" });
    let b = json!({ "$ref": "#/components/schemas/A" });
    let documents = [with_schemas(json!({ "A": a, "B": b }))];
    assert_eq!(drafted(documents.clone()).report.rest_alone, 1);
    let lines = left_out(documents).concat();
    assert!(
        lines.starts_with("POST /a: `$ref: #/components/schemas/"),
        "{lines}"
    );
    assert!(lines.contains("leads to itself"), "{lines}");
    let of_itself = json!({ "allOf": [{ "$ref": "#/components/schemas/A" }] });
    let expected =
        "POST /a: `allOf` inside `allOf` leads to itself, or is nested more than 16 deep";
    let lines = left_out([with_schemas(json!({ "A": of_itself }))]);
    assert_eq!(lines, [expected]);
    let double = json!({ "$ref": "#/components/schemas/A" });
    let many = json!({ "allOf": vec![double; 40] });
    assert_eq!(left_out([with_schemas(json!({ "A": many }))]), [expected]);
}

#[test]
fn a_reference_that_names_nothing_leaves_out_its_path() {
    for reference in ["#/components/none", "#anchor", "#/%zz"] {
        let paths = || json!({ "/a": { "$ref": reference }, "/b": { "get": {} } });
        let expected = format!("/a: `$ref: {reference}` has no target in the document");
        assert_eq!(left_out([rest(paths())]), [expected]);
        assert_eq!(drafted([rest(paths())]).report.rest_alone, 1);
    }
}

#[test]
fn a_reference_that_leaves_the_document_leaves_out_its_operation() {
    for reference in ["https://example.com/pet.json", "pet.yaml#/Pet", "//h/x", ""] {
        let parameters = json!([{ "$ref": reference }]);
        let paths = json!({ "/a": { "get": { "parameters": parameters }, "post": {} } });
        let documents = [rest(paths)];
        assert_eq!(drafted(documents.clone()).report.rest_alone, 1);
        let lines = left_out(documents);
        let expected = format!("GET /a: `$ref: {reference}` leaves the document");
        assert!(
            lines.len() == 1 && lines[0].starts_with(&expected),
            "{lines:?}"
        );
    }
}

#[test]
fn a_bad_reference_of_a_method_or_a_tool_leaves_out_that_one() {
    let bad = json!({ "$ref": "#/none" });
    let methods = json!([
        { "name": "a", "params": [bad] },
        bad,
        { "name": "c", "params": [] },
    ]);
    let found = drafted([rpc(methods.clone())]);
    assert_eq!((found.report.rpc, found.report.rpc_alone), (3, 1));
    let why = "`$ref: #/none` has no target in the document";
    assert_eq!(
        left_out([rpc(methods)]),
        [format!("a: {why}"), format!("method 2: {why}")]
    );
    let tools = json!({ "tools": [
        { "name": "a", "inputSchema": { "properties": { "x": bad } } },
        { "name": "b", "inputSchema": { "type": "object" } },
    ] });
    let tools = [(DocumentKind::Tools, tools)];
    assert_eq!(drafted(tools.clone()).report.rpc_alone, 1);
    assert_eq!(left_out(tools), [format!("tools/call a: {why}")]);
}

#[test]
fn a_reference_that_no_operation_needs_is_not_followed() {
    let outside = json!({ "$ref": "code/a.sh" });
    let code = json!([{ "lang": "curl", "source": outside }]);
    let document = json!({
        "openapi": "3.0.3",
        "x-tags": outside,
        "paths": {
            "x-all": outside,
            "/a": { "x-path": outside, "get": { "x-codeSamples": code } },
        },
        "components": { "schemas": { "Unused": outside } },
    });
    let documents = [(DocumentKind::OpenApi, document)];
    assert_eq!(left_out(documents.clone()), Vec::<String>::new());
    assert_eq!(drafted(documents).report.rest_alone, 1);
}

#[test]
fn an_example_may_look_like_a_reference() {
    let example = json!({ "$ref": "https://example.com" });
    let paths = json!({ "/a": { "get": { "responses": { "200": { "example": example } } } } });
    assert_eq!(drafted([rest(paths)]).report.rest_alone, 1);
}

#[test]
fn an_anchor_names_a_schema() {
    for keyword in ["$anchor", "$dynamicAnchor"] {
        let pet = json!({ keyword: "pet", "type": "object", "properties": { "id": { "type": "integer" } } });
        let schema = json!({ "schema": { "$ref": "#pet" } });
        let body = json!({ "content": { "application/json": schema } });
        let document = json!({
            "openapi": "3.1.0",
            "paths": { "/pets/{id}": { "put": { "requestBody": body } } },
            "components": { "schemas": { "Pet": pet } },
        });
        let found = routes([(DocumentKind::OpenApi, document)]);
        assert!(found.contains("{=id?}"), "{found}");
    }
}

#[test]
fn an_anchor_in_an_example_or_an_extension_names_nothing() {
    let hidden = json!({ "$anchor": "pet", "type": "object" });
    for location in ["example", "x-schema"] {
        let schema = json!({ "$ref": "#pet" });
        let parameters = json!([{ "name": "q", "in": "query", "schema": schema }]);
        let paths = json!({ "/a": { "get": { "parameters": parameters, location: hidden } } });
        let lines = left_out([rest(paths)]);
        assert_eq!(
            lines,
            ["GET /a: `$ref: #pet` has no target in the document"]
        );
    }
}

#[test]
fn a_document_that_is_nested_too_deeply_is_refused_as_a_whole() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..150 {
        deep = json!({ "allOf": [deep] });
    }
    let (kind, document) = with_schemas(json!({ "A": deep }));
    let message = fault(kind, document);
    assert!(
        message.starts_with("document: nested more than 200 deep at #/components/schemas/A"),
        "{message}"
    );
}
