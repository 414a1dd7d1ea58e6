//! Drafts pass `check` as they are.

use serde_json::{Value, json};

use super::{DocumentKind, SourceDocument, draft, problems};

fn given(kind: DocumentKind, document: Value) -> SourceDocument {
    SourceDocument {
        name: "document".to_owned(),
        kind,
        document,
    }
}

fn rest(paths: Value) -> SourceDocument {
    let document = json!({ "openapi": "3.1.0", "paths": paths });
    given(DocumentKind::OpenApi, document)
}

/// Drafts documents, and asserts that `check` passes the draft.
fn checked(documents: &[SourceDocument]) -> String {
    let toml = draft(documents).unwrap().toml;
    assert_eq!(problems(&toml), "", "{toml}");
    toml
}

#[test]
fn a_reply_with_json_or_nothing_passes() {
    for status in ["200", "201"] {
        let json = json!({ "content": { "application/json": {} } });
        let post = json!({ "operationId": "addPet", "responses": { status: json, "204": {} } });
        let toml = checked(&[rest(json!({ "/pets": { "post": post } }))]);
        assert!(toml.contains("rest = \"POST /pets\""), "{toml}");
    }
}

#[test]
fn a_pair_with_a_location_passes() {
    let id = json!({ "type": "string" });
    let thing = json!({ "type": "object", "required": ["id"], "properties": { "id": id } });
    let content = json!({ "application/json": { "schema": thing } });
    let created = json!({ "headers": { "Location": {} }, "content": content });
    let parameter = json!({ "name": "id", "in": "path", "required": true, "schema": id });
    for end in ["", "/"] {
        let paths = json!({
            format!("/things{end}"): { "post": { "operationId": "create_thing", "responses": { "201": created } } },
            format!("/things/{{id}}{end}"): { "get": { "operationId": "read_thing", "parameters": [parameter], "responses": {} } },
        });
        let tool = json!({ "name": "create_thing", "inputSchema": { "type": "object" }, "outputSchema": thing });
        let tools = given(DocumentKind::Tools, json!({ "tools": [tool] }));
        let toml = checked(&[rest(paths), tools]);
        // A path that ends in a slash is a resource of its own.
        let location = format!("location = \"/things/{{>id}}{end}\"");
        assert!(toml.contains(&location), "{toml}");
    }
}
