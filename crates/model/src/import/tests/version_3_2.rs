//! OpenAPI 3.2: read like 3.1, with its additions.

use super::{DocumentKind, drafted, json, left_out};
use serde_json::Value;

fn version_3_2(paths: Value) -> (DocumentKind, Value) {
    let document = json!({ "openapi": "3.2.0", "paths": paths });
    (DocumentKind::OpenApi, document)
}

#[test]
fn query_and_additional_operations_are_routes() {
    let body = json!({ "content": { "application/json": { "schema": { "type": "object" } } } });
    let documents = [version_3_2(json!({ "/items": {
        "get": { "operationId": "list" },
        "query": { "operationId": "search", "requestBody": body },
        "additionalOperations": { "COPY": { "operationId": "copy" } },
    } }))];
    let found = drafted(documents.clone());
    assert_eq!(left_out(documents), Vec::<String>::new());
    for route in [
        "rest = \"GET /items\"\nrpc = \"list\"",
        "rest = \"QUERY /items\"\nrpc = \"search\"\neffect = \"safe\"",
        "rest = \"COPY /items\"\nrpc = \"copy\"",
    ] {
        assert!(found.toml.contains(route), "{route}: {}", found.toml);
    }
}

#[test]
fn methods_that_no_route_can_have_are_left_out() {
    let documents = [version_3_2(json!({ "/items": { "additionalOperations": {
        "copy": {}, "TWO WORDS": {}, "": {}, "CONNECT": {}, "OPTIONS": {},
    } } }))];
    let mut lines = left_out(documents);
    lines.sort_unstable();
    let unnamed = "a route cannot have a method of this name";
    assert_eq!(
        lines,
        [
            format!("/items: {unnamed}"),
            "CONNECT /items: CONNECT opens a tunnel".to_owned(),
            "OPTIONS /items: OPTIONS is sent by browsers, not by clients".to_owned(),
            format!("TWO WORDS /items: {unnamed}"),
            format!("copy /items: {unnamed}"),
        ]
    );
}

#[test]
fn a_parameter_that_is_the_whole_query_has_no_route_where_it_is_required() {
    let with = |required: bool| {
        let parameter = json!({ "name": "q", "in": "querystring", "required": required,
            "content": { "application/x-www-form-urlencoded": {} } });
        [version_3_2(
            json!({ "/items": { "get": { "parameters": [parameter] } } }),
        )]
    };
    assert_eq!(
        left_out(with(true)),
        [
            "GET /items: its parameter `q` is required, and it is the whole query string, which a route cannot name"
        ]
    );
    let optional = drafted(with(false));
    assert!(
        optional
            .toml
            .contains("look: the parameter `q` is left out: it is the whole query string"),
        "{}",
        optional.toml
    );
    assert!(optional.toml.contains("\"*\"]"), "{}", optional.toml);
}

#[test]
fn an_answer_of_items_streams() {
    let item = json!({ "itemSchema": { "type": "object" } });
    for (kind, format) in [
        ("application/jsonl", "ndjson"),
        ("text/event-stream", "sse"),
    ] {
        let responses = json!({ "200": { "content": { (kind): item } } });
        let documents = [version_3_2(
            json!({ "/log": { "get": { "responses": responses } } }),
        )];
        let toml = drafted(documents).toml;
        let key = format!("stream = \"{format}\"");
        assert!(
            toml.contains(&key) && toml.contains("look: its 200 streams"),
            "{toml}"
        );
    }
    let both = json!({ "application/json": {}, "text/event-stream": item });
    let responses = json!({ "200": { "content": both } });
    let documents = [version_3_2(
        json!({ "/log": { "post": { "responses": responses } } }),
    )];
    assert!(drafted(documents).toml.contains("stream = \"sse\""));
}

#[test]
fn a_document_may_name_itself() {
    let id = "https://example.com/api";
    let reference = format!("{id}#/components/schemas/Id");
    let parameters = json!([{ "name": "id", "in": "query", "schema": { "$ref": reference } }]);
    let document = json!({
        "openapi": "3.2.0",
        "$self": id,
        "paths": { "/a": { "get": { "parameters": parameters } } },
        "components": { "schemas": { "Id": { "type": "integer" } } },
    });
    let found = drafted([(DocumentKind::OpenApi, document)]);
    assert!(found.toml.contains("{id:integer?}"), "{}", found.toml);
}
