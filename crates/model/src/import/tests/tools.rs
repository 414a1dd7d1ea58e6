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
fn entries_of_paths_without_operations_are_left_out_with_a_reason() {
    let paths = json!({
        "/a": { "get": { "operationId": "a" } },
        "nopath": { "get": { "operationId": "b" } },
        "/h": 5,
        "x-extension": 5,
    });
    let draft = drafted(api(paths, json!({})), &ToolDraftOptions::default());
    let left_out = draft.report.left_out.iter();
    let left_out: Vec<String> = left_out
        .map(|one| format!("{}: {}", one.what, one.why))
        .collect();
    let expected = [
        "/h: its path item is no object, so it has no operations",
        "nopath: it is no path: it does not begin with `/`",
    ];
    assert_eq!(left_out, expected);
    assert_eq!(names(&draft), ["a"]);
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
    // The documents of the routes say which side requires the id.
    assert_eq!(pet["required"], json!(["id", "name"]));
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

/// The schema of the arguments of the only tool.
fn arguments(draft: &ImportDraft) -> Value {
    let table = table(draft);
    let text = table["route"][0]["schema"]["params"].as_str().unwrap();
    let schema: Value = serde_json::from_str(text).unwrap();
    schema["properties"]["arguments"].clone()
}

#[test]
fn files_are_arguments_as_their_patterns_name_them() {
    let file = json!({ "type": "string", "format": "binary", "description": "A picture." });
    let schema = json!({ "type": "object", "properties": {
        "photo": file, "more": { "type": "array", "items": file },
    } });
    let paths = json!({ "/a": { "post": { "operationId": "a", "requestBody": { "content": {
        "multipart/form-data": { "schema": schema },
    } } } } });
    let arguments = arguments(&drafted(
        api(paths, json!({})),
        &ToolDraftOptions::default(),
    ));
    let members = &arguments["properties"];
    assert_eq!(
        members["photo"],
        json!({ "type": "string", "contentEncoding": "base64", "description": "A picture." })
    );
    assert_eq!(members["photo_name"], json!({ "type": "string" }));
    assert_eq!(members["photo_type"]["examples"], json!(["image/png"]));
    assert_eq!(members["more"]["items"]["required"], json!(["content"]));
    assert_eq!(arguments["required"], json!(["more"]));
}

#[test]
fn the_body_as_a_whole_constrains_the_arguments() {
    let body = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "required": ["c"],
        "oneOf": [{ "required": ["a"] }, { "required": ["b"] }],
    });
    let closed = json!({ "oneOf": [
        { "type": "object", "properties": { "a": {} }, "additionalProperties": false },
    ] });
    let with = |path: &str, body: &Value| {
        let parameters = match path.contains('{') {
            true => {
                json!([{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }])
            }
            false => json!([]),
        };
        let paths = json!({ path: { "post": {
            "operationId": "a", "parameters": parameters,
            "requestBody": { "content": { "application/json": { "schema": body } } },
        } } });
        arguments(&drafted(
            api(paths, json!({})),
            &ToolDraftOptions::default(),
        ))
    };
    let arguments = with("/a/{id}", &body);
    let parts = json!([{ "oneOf": body["oneOf"] }, { "required": ["c"] }]);
    assert_eq!(arguments["allOf"], parts);
    assert_eq!(arguments.get("additionalProperties"), None);
    assert_eq!(with("/a", &closed)["allOf"][0]["oneOf"], closed["oneOf"]);
    assert_eq!(with("/a/{id}", &closed).get("allOf"), None);
}

#[test]
fn values_of_a_url_are_texts_where_their_type_is_open() {
    let open = json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] });
    let parameter = |name: &str, place: &str, schema: &Value| json!({ "name": name, "in": place, "required": true, "schema": schema });
    let paths = json!({ "/a/{id}": { "get": { "operationId": "a", "parameters": [
        parameter("id", "path", &open),
        parameter("ids", "query", &json!({ "type": "array", "items": open })),
        parameter("size", "query", &json!({ "type": "integer", "nullable": true })),
    ] } } });
    let arguments = arguments(&drafted(
        api(paths, json!({})),
        &ToolDraftOptions::default(),
    ));
    let members = &arguments["properties"];
    assert_eq!(members["id"], json!({ "type": "string" }));
    assert_eq!(members["ids"]["items"], json!({ "type": "string" }));
    assert_eq!(members["size"]["type"], json!(["integer", "null"]));
}

#[test]
fn keywords_that_a_client_may_refuse_are_left_out() {
    let schema = json!({
        "$id": "https://example.com/pet",
        "type": "object",
        "properties": {
            "a": { "type": "string", "pattern": "^{[0-9]{4}}$" },
            "b": { "type": "string", "pattern": "^(?!x)\\d+$" },
            "c": { "$ref": "#/components/schemas/C" },
            "d": { "$dynamicRef": "#d" },
        },
    });
    let paths = json!({ "/a": { "get": { "operationId": "a", "responses": { "200": {
        "content": { "application/json": { "schema": schema } },
    } } } } });
    let schemas = json!({ "C": { "type": "integer" } });
    let draft = drafted(api(paths, schemas), &ToolDraftOptions::default());
    let table = table(&draft);
    let text = table["route"][0]["schema"]["result"].as_str().unwrap();
    let schema: Value = serde_json::from_str(text).unwrap();
    assert_eq!(schema.get("$id"), None);
    let members = &schema["properties"];
    assert_eq!(members["a"], json!({ "type": "string" }));
    assert_eq!(members["b"]["pattern"], "^(?!x)\\d+$");
    assert_eq!(members["c"], json!({ "$ref": "#/schemas/C" }));
    assert_eq!(members["d"], json!({}));
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

#[test]
fn alternatives_that_multiply_are_left_out_beside_parameters() {
    let reference = |index: usize| json!({ "$ref": format!("#/components/schemas/S{index}") });
    let schemas = (0..40).map(|index| {
        let next = reference(index + 1);
        (format!("S{index}"), json!({ "anyOf": [next, next] }))
    });
    let mut schemas: serde_json::Map<String, Value> = schemas.collect();
    schemas.insert("S40".to_owned(), json!({ "minProperties": 1 }));
    let body = json!({
        "type": "object", "properties": { "a": { "type": "string" } },
        "anyOf": [reference(0)],
    });
    let id =
        json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let paths = json!({ "/a/{id}": { "post": {
        "operationId": "a", "parameters": [id],
        "requestBody": { "content": { "application/json": { "schema": body } } },
    } } });
    let draft = drafted(api(paths, schemas.into()), &ToolDraftOptions::default());
    assert_eq!(arguments(&draft).get("allOf"), None);
}

#[test]
fn a_large_text_that_many_operations_share_is_copied_within_a_limit() {
    let text = "x".repeat(1_000_000);
    let reference = json!({ "$ref": "#/components/parameters/P" });
    let paths: serde_json::Map<String, Value> = (0..1_000)
        .map(|number| {
            let get = json!({ "parameters": [reference], "responses": {} });
            (format!("/a{number}"), json!({ "get": get }))
        })
        .collect();
    let mut document = api(Value::Object(paths), json!({}));
    document["components"]["parameters"] = json!({ "P": {
        "in": "query", "name": "q", "schema": { "type": "string", "description": text },
    } });
    let draft = drafted(document, &ToolDraftOptions::default());
    assert!(draft.toml.len() < 100_000_000, "{}", draft.toml.len());
    assert_eq!(names(&draft).len(), 1_000);
}

#[test]
fn loops_of_dependent_schemas_are_cut_and_lists_of_items_are_prefix_items() {
    let a = json!({ "$ref": "#/components/schemas/A" });
    let schemas = json!({
        "A": { "type": "object", "dependentSchemas": { "x": a } },
        "Pair": { "type": "array", "items": [a, { "type": "string" }] },
    });
    let members = json!({ "a": a, "pair": { "$ref": "#/components/schemas/Pair" } });
    let body = json!({ "schema": { "type": "object", "properties": members } });
    let post = json!({
        "operationId": "add",
        "requestBody": { "content": { "application/json": body } },
        "responses": {},
    });
    let draft = drafted(
        api(json!({ "/a": { "post": post } }), schemas),
        &ToolDraftOptions::default(),
    );
    let table = table(&draft);
    let shared = |name: &str| -> Value {
        serde_json::from_str(table["schemas"][name].as_str().unwrap()).unwrap()
    };
    assert_eq!(shared("A")["dependentSchemas"]["x"], json!({}));
    assert_eq!(
        shared("Pair")["prefixItems"][0],
        json!({ "$ref": "#/schemas/A" })
    );
    assert_eq!(shared("Pair")["items"], Value::Null);
}

#[test]
fn an_operation_on_an_rpc_path_is_a_tool_for_rpc_clients_only() {
    let post = |id: &str| json!({ "post": { "operationId": id, "responses": {} } });
    let paths = json!({ "/": post("root"), "/mcp": post("mcp"), "/x": post("x") });
    let draft = drafted(api(paths, json!({})), &ToolDraftOptions::default());
    assert!(draft.report.left_out.is_empty(), "{}", draft.toml);
    let table = table(&draft);
    let routes = table["route"].as_array().unwrap().iter();
    let from: Vec<(&str, Option<&str>)> = routes
        .map(|route| {
            let from = route.get("from").map(|from| from.as_str().unwrap());
            (route["rest"].as_str().unwrap(), from)
        })
        .collect();
    let wanted = [
        ("POST /", Some("rpc")),
        ("POST /mcp", Some("rpc")),
        ("POST /x", None),
    ];
    assert_eq!(from, wanted);
}
