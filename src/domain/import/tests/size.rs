//! Large documents, and texts of documents that a terminal takes for commands.

use super::{Kind, draft, fault, given, json, left_out, rest, routes, rpc};
use serde_json::{Map, Value};

/// A body of so many properties, and a method of as many params with other spellings.
fn large(count: usize) -> [(Kind, Value); 2] {
    let names = || (0..count).map(|number| format!("member_{number}Id"));
    let properties: Map<String, Value> = names().map(|name| (name, json!({}))).collect();
    let required: Vec<String> = names().collect();
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let body = json!({ "content": { "application/json": { "schema": schema } } });
    let paths = json!({ "/a": { "post": { "operationId": "a", "requestBody": body } } });
    let params: Vec<Value> = (0..count)
        .map(|number| json!({ "name": format!("Member-{number}-id") }))
        .collect();
    [rest(paths), rpc(json!([{ "name": "a", "params": params }]))]
}

#[test]
fn large_bodies_are_paired_with_many_params() {
    let given = large(20_000).map(|(kind, document)| given(kind, document));
    let found = draft(&given).unwrap();
    assert_eq!(found.report.paired, 1);
    assert_eq!(found.toml.matches("look: ").count(), 0, "all have twins");
}

#[test]
fn words_of_an_enumeration_that_repeat_are_named_once() {
    let words: Vec<String> = (0..60_000)
        .map(|number| format!("w{}", number % 30_000))
        .collect();
    let parameters =
        json!([{ "name": "q", "in": "query", "schema": { "type": "string", "enum": words } }]);
    let found = routes([rest(
        json!({ "/a": { "get": { "parameters": parameters } } }),
    )]);
    assert_eq!(found.matches("w29999").count(), 1);
    assert_eq!(found.matches('|').count(), 29_999);
}

#[test]
fn no_control_character_of_a_document_is_told() {
    let nasty = "\u{1b}[2J\u{0}\u{9b}x";
    let bad = json!({ "$ref": format!("#/{nasty}") });
    let told = left_out([rest(
        json!({ format!("/{nasty}"): { "get": { "parameters": [bad] } } }),
    )]);
    assert_eq!(told.len(), 1);
    assert!(!told[0].contains(char::is_control), "{told:?}");
    let mut deep = json!({});
    for _ in 0..250 {
        deep = json!({ "a": deep });
    }
    let document = json!({ "openapi": "3.0.0", "paths": { "/a": {} }, nasty: deep });
    let said = fault(Kind::OpenApi, document);
    assert!(
        said.contains("nested more than 200 deep") && !said.contains(char::is_control),
        "{said:?}"
    );
}
