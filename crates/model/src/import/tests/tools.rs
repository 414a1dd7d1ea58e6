//! Drafts of tools: names, schemas, and the way back to a document.

use serde_json::{Value, json};

use crate::import::{DocumentKind, ImportDraft, SourceDocument, ToolDraftOptions, draft_as_tools};
use crate::rollout::Glob;

fn drafted(document: Value, options: &ToolDraftOptions) -> ImportDraft {
    let source = SourceDocument {
        name: "api.json".to_owned(),
        kind: DocumentKind::OpenApi,
        document,
    };
    draft_as_tools(&[source], options).unwrap()
}

fn api(paths: Value, schemas: Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": { "title": "Pets", "version": "2" },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn table(draft: &ImportDraft) -> toml::Table {
    draft
        .toml
        .parse()
        .unwrap_or_else(|error| panic!("{error}\n{}", draft.toml))
}

fn names(draft: &ImportDraft) -> Vec<String> {
    let table = table(draft);
    let routes = table["route"].as_array().unwrap().iter();
    let names = routes.map(|route| route["params"]["name"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn names_are_valid_and_distinct() {
    let get = |id: &str| json!({ "get": { "operationId": id, "responses": {} } });
    let paths = json!({
        "/a": get("list pets!"), "/b": get("list pets?"), "/c": get("LIST_PETS"),
        "/d": get(&"x".repeat(300)), "/e": { "get": {} }, "/f": get("é"),
    });
    let draft = drafted(api(paths, json!({})), &ToolDraftOptions::default());
    let names = names(&draft);
    assert_eq!(names[..3], ["list_pets", "list_pets_2", "LIST_PETS_3"]);
    assert_eq!(names[3].len(), 128);
    assert_eq!(names[5], "tool");
    assert!(
        draft
            .toml
            .contains("look: 2 operations are called `list_pets`"),
        "{}",
        draft.toml
    );
}

#[test]
fn operations_are_chosen_by_their_names() {
    let paths = json!({
        "/a": { "get": { "operationId": "a", "tags": ["one"] }, "post": { "operationId": "b" } },
        "/c": { "get": { "operationId": "c" } },
    });
    let chosen = |include: &[&str], exclude: &[&str]| {
        let globs = |globs: &[&str]| globs.iter().map(|glob| Glob::new(*glob)).collect();
        let options = ToolDraftOptions {
            include: globs(include),
            exclude: globs(exclude),
            ..ToolDraftOptions::default()
        };
        names(&drafted(api(paths.clone(), json!({})), &options))
    };
    assert_eq!(chosen(&["GET *"], &[]), ["a", "c"]);
    assert_eq!(chosen(&["one"], &[]), ["a"]);
    assert_eq!(chosen(&["/a"], &["b"]), ["a"]);
    assert_eq!(chosen(&[], &["GET *"]), ["b"]);
}

#[test]
fn schemas_are_json_schemas_that_share_definitions_and_end() {
    let content = |name: &str| {
        let reference = format!("#/components/schemas/{name}");
        json!({ "content": { "application/json": { "schema": { "$ref": reference } } } })
    };
    let paths = json!({ "/a": { "post": {
        "operationId": "a",
        "requestBody": content("Pet"),
        "responses": { "200": content("Pet"), "default": content("Loop") },
    }, "get": { "operationId": "g", "responses": { "200": content("Loop") } } } });
    let schemas = json!({
        "Pet": {
            "type": "object",
            "required": ["id", "name"],
            "properties": {
                "id": { "type": "integer", "readOnly": true },
                "name": { "type": "string", "nullable": true, "example": "Rex" },
                "parent": { "$ref": "#/components/schemas/Pet" },
                "age": { "type": "integer", "minimum": 0, "exclusiveMinimum": true },
            },
        },
        "Loop": { "allOf": [{ "$ref": "#/components/schemas/Loop" }, { "type": "object" }] },
    });
    let draft = drafted(api(paths, schemas), &ToolDraftOptions::default());
    let table = table(&draft);
    let shared = |name: &str| -> Value {
        serde_json::from_str(table["schemas"][name].as_str().unwrap()).unwrap()
    };
    let pet = shared("Pet");
    assert_eq!(pet["required"], json!(["name"]));
    assert_eq!(pet["properties"]["name"]["type"], json!(["string", "null"]));
    assert_eq!(pet["properties"]["name"]["examples"], json!(["Rex"]));
    assert_eq!(pet["properties"]["parent"]["$ref"], "#/schemas/Pet");
    assert_eq!(
        pet["properties"]["age"],
        json!({ "type": "integer", "exclusiveMinimum": 0 })
    );
    assert_eq!(
        shared("Loop"),
        json!({ "allOf": [{}, { "type": "object" }] })
    );
    for schema in [pet, shared("Loop")] {
        dualgauge_patterns::schema::Schema::compile(&schema).ok();
    }
}

#[test]
fn another_kind_of_document_is_refused() {
    let source = SourceDocument {
        name: "rpc.json".to_owned(),
        kind: DocumentKind::OpenRpc,
        document: json!({}),
    };
    let error = draft_as_tools(&[source], &ToolDraftOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "rpc.json: tools are drafted from OpenAPI documents only"
    );
}
