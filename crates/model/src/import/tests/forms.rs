//! Bodies that are forms, and Swagger 2.0.

use serde_json::{Value, json};

use super::{DocumentKind, drafted, fault, left_out, rest, routes, rpc};
use crate::route::test_syntax::tree;
use dualgauge_patterns::pattern::SourceTree;

fn with_body(content: Value) -> (DocumentKind, Value) {
    rest(
        json!({ "/x": { "post": { "operationId": "m", "requestBody": { "content": content, "required": true } } } }),
    )
}

#[test]
fn the_fields_of_a_form_are_typed_texts() {
    let schema = json!({ "type": "object", "required": ["name"], "properties": {
        "name": { "type": "string" },
        "age": { "type": "integer" },
        "tags": { "type": "array", "items": { "type": "string" } },
        "ids": { "type": "array", "items": { "type": "integer" } },
        "meta": { "type": "object" },
    } });
    let encoding = json!({ "ids": { "style": "form", "explode": false } });
    let content =
        json!({ "application/x-www-form-urlencoded": { "schema": schema, "encoding": encoding } });
    let found = routes([with_body(content)]);
    let wanted = r#"body_format = "form"
body = {
  age = "{age:integer?}",
  ids = "{ids:integer[,]?}",
  meta = "{meta:json?}",
  name = "{name:string}",
  tags = "{tags:string[]?}",
}
params = { age = "{age}", ids = "{ids}", meta = "{meta}", name = "{name}", tags = "{tags}" }"#;
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn the_members_of_a_deep_object_are_fields_of_their_own() {
    let string = || json!({ "type": "string" });
    let filter = json!({ "allOf": [{ "type": "object", "required": ["eq"], "additionalProperties": false, "properties": {
        "eq": string(), "n": { "type": "integer" }, "tags": { "type": "array" }, "deep": { "type": "object" },
    } }], "type": "object" });
    let content = |required: Value| {
        let properties = json!({ "filter": filter, "filter[n]": string(), "a": string() });
        let schema = json!({ "type": "object", "required": required, "properties": properties });
        let encoding = json!({ "filter": { "style": "deepObject", "explode": true } });
        json!({ "application/x-www-form-urlencoded": { "schema": { "allOf": [schema], "type": "object" }, "encoding": encoding } })
    };
    let found = drafted([with_body(content(json!(["filter"])))]).toml;
    for line in [
        r#"body = { a = "{a:string?}", "filter[eq]" = "{filter_eq:string}", "filter[n]" = "{filter_n:string?}" }"#,
        r#"params = { a = "{a}", filter = { eq = "{filter_eq}" }, "filter[n]" = "{filter_n}" }"#,
        "# look: the field `filter[n]` of its form is left out: another field has its name",
        "# look: the field `filter[tags]` of its form is left out: it is a list, an object or a file inside an object, which has no standard form",
    ] {
        assert!(found.lines().any(|own| own == line), "{line}\nin\n{found}");
    }
    let found = drafted([with_body(content(json!([])))]).toml;
    assert!(
        found.contains(r#""filter[eq]" = "{filter_eq:string?}""#),
        "{found}"
    );
    let exploded = content(json!(["filter"])).to_string();
    let exploded = exploded.replace("\"deepObject\"", "\"form\"");
    let exploded: Value = serde_json::from_str(&exploded).unwrap();
    let found = drafted([with_body(exploded)]).toml;
    let line = r#"body = { a = "{a:string?}", eq = "{eq:string}", n = "{n:integer?}", "filter[n]" = "{filter_n:string?}" }"#;
    assert!(found.lines().any(|own| own == line), "{found}");
    // The param of a method is the object.
    let param = json!({ "name": "Filter", "schema": { "type": "object" } });
    let method =
        json!({ "name": "m", "params": [param, { "name": "a" }, { "name": "filter[n]" }] });
    let found = drafted([with_body(content(json!([]))), rpc(json!([method]))]).toml;
    assert!(
        found.contains(r#"Filter = { eq = "{filter_eq}" }"#),
        "{found}"
    );
}

#[test]
fn a_file_has_a_name_and_a_type() {
    let file = json!({ "type": "string", "format": "binary" });
    let raw = json!({ "type": "string", "contentMediaType": "application/octet-stream" });
    let schema = json!({ "type": "object", "required": ["file"], "properties": {
        "file": file, "more": { "type": "array", "items": raw }, "note": { "type": "string" },
    } });
    let found = routes([with_body(
        json!({ "multipart/form-data": { "schema": schema } }),
    )]);
    for line in [
        r#"body_format = "multipart""#,
        r#"content = "{file:string}""#,
        r#"filename = "{file_name=file}""#,
        r#"content_type = "{file_type=application/octet-stream}""#,
        r#"file_type = "{file_type}""#,
        r#"filename = "{more_name}""#,
        r#"note = "{note:string?}""#,
    ] {
        assert!(found.contains(line), "{line}: {found}");
    }
}

#[test]
fn a_form_without_a_schema_is_carried() {
    let found = routes([with_body(json!({ "multipart/form-data": {} }))]);
    assert!(found.contains("body_format = \"multipart\""), "{found}");
    assert!(!found.contains("params"), "{found}");
}

#[test]
fn a_field_that_no_route_has_is_left_out_or_leaves_out_the_operation() {
    let schema = |required: Value| {
        let rows = json!({ "type": "array", "items": { "type": "object" } });
        let properties = json!({ "rows": rows, "a": {} });
        let schema = json!({ "type": "object", "required": required, "properties": properties });
        [with_body(
            json!({ "multipart/form-data": { "schema": schema } }),
        )]
    };
    let found = drafted(schema(json!([])));
    let look = "look: the field `rows` of its form is left out: it is a list of objects or lists";
    assert!(found.toml.contains(look), "{}", found.toml);
    let lines = left_out(schema(json!(["rows"])));
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("the field `rows` of its form is required"),
        "{lines:?}"
    );
}

fn swagger(paths: Value) -> (DocumentKind, Value) {
    let document = json!({
        "swagger": "2.0", "host": "h", "basePath": "/v1", "schemes": ["https"],
        "consumes": ["application/json"], "produces": ["application/json"],
        "definitions": { "Pet": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } },
        "parameters": {
            "limit": { "name": "limit", "in": "query", "type": "integer", "default": 20 },
            "pet": { "name": "pet", "in": "body", "required": true, "schema": { "$ref": "#/definitions/Pet" } },
            "note": { "name": "note", "in": "formData", "type": "string" },
        },
        "responses": { "Pet": { "description": "", "schema": { "$ref": "#/definitions/Pet" } } },
        "securityDefinitions": { "key": { "type": "apiKey", "in": "header", "name": "x-key" } },
        "paths": paths,
    });
    (DocumentKind::OpenApi, document)
}

#[test]
fn swagger_2_is_read_like_openapi_3() {
    let parameters = json!([
        { "$ref": "#/parameters/limit" },
        { "name": "tag", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "multi" },
        { "name": "id", "in": "query", "type": "array", "items": { "type": "integer" } },
        { "name": "p", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "pipes" },
        { "name": "t", "in": "query", "type": "array", "items": { "type": "string" }, "collectionFormat": "tsv" },
    ]);
    let document = swagger(json!({
        "/pets": {
            "get": { "operationId": "list", "parameters": parameters, "responses": { "200": { "description": "" } } },
            "post": { "operationId": "add", "parameters": [{ "$ref": "#/parameters/pet" }],
                "responses": { "201": { "$ref": "#/responses/Pet" } } },
        },
        "/pets/{id}": {
            "parameters": [{ "name": "id", "in": "path", "required": true, "type": "integer" }],
            "put": { "operationId": "put", "parameters": [{ "name": "b", "in": "body", "schema": { "type": "array", "items": {} } }],
                "responses": { "204": { "description": "" } } },
        },
    }));
    let found = drafted([document.clone()]).toml;
    let found = format!("{found}{}", routes([document]));
    for line in [
        "rest = \"GET /v1/pets?limit={limit:integer=20}&tag={tag:string[]?}&id={id:integer[,]?}&p={p:string[|]?}\"",
        "look: the parameter `t` is left out: a route does not support its list style",
        "rest = \"POST /v1/pets\"\nrpc = \"add\"\n[[route.outcome]]\nrest = { status = 201,",
        "rest = \"PUT /v1/pets/{id:integer}\"",
        "body = \"{body:array?}\"",
    ] {
        assert!(found.contains(line), "{line}: {found}");
    }
}

#[test]
fn swagger_2_forms_are_forms() {
    let operation = |id: &str, consumes: &str, parameters: Value| {
        json!({ "operationId": id, "consumes": [consumes], "parameters": parameters,
            "responses": { "200": { "description": "" } } })
    };
    let tags =
        json!({ "name": "tags", "in": "formData", "type": "array", "items": { "type": "string" } });
    let file = json!({ "name": "file", "in": "formData", "type": "file", "required": true });
    let found = drafted([swagger(json!({
        "/form": { "parameters": [{ "$ref": "#/parameters/note" }],
            "post": operation("form", "application/x-www-form-urlencoded", json!([tags])) },
        "/file": { "post": operation("file", "multipart/form-data", json!([file])) },
    }))]);
    for line in [
        "body_format = \"form\"\nbody = { note = \"{note:string?}\", tags = \"{tags:string[,]?}\" }",
        "body_format = \"multipart\"",
        "content = \"{file:string}\"",
    ] {
        assert!(found.toml.contains(line), "{line}: {}", found.toml);
    }
}

#[test]
fn a_swagger_file_response_passes_through() {
    let response = json!({ "200": { "description": "", "schema": { "type": "file" } } });
    let lines = left_out([swagger(
        json!({ "/x": { "get": { "produces": ["image/png"], "responses": response } } }),
    )]);
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains("its answer is image/png"), "{lines:?}");
}

#[test]
fn another_swagger_version_is_refused() {
    let document = json!({ "swagger": "1.2", "paths": {} });
    let fault = fault(DocumentKind::OpenApi, document);
    assert!(
        fault.contains("`swagger: 1.2` is not supported, only 2.0"),
        "{fault}"
    );
}

/// Every drafted form loads.
#[test]
fn drafted_forms_load() {
    let file = json!({ "type": "string", "format": "binary" });
    let schema = json!({ "type": "object", "required": ["file", "name"], "properties": {
        "file": file, "more": { "type": "array", "items": file }, "file_name": { "type": "string" },
        "other": file, "name": { "type": "string" }, "tags": { "type": "array", "items": { "type": "boolean" } },
        "meta": { "type": "object" }, "a-b": { "type": "number" },
    } });
    for kind in ["multipart/form-data", "application/x-www-form-urlencoded"] {
        let toml = drafted([with_body(json!({ kind: { "schema": schema } }))]).toml;
        let table: toml::Table = toml.parse().unwrap();
        let route = &table["route"][0];
        let text = |key: &str| route[key].as_str().unwrap().to_owned();
        let json = |key: &str| -> SourceTree { tree(&serde_json::to_string(&route[key]).unwrap()) };
        let formats = [
            crate::form::BodyFormat::Form,
            crate::form::BodyFormat::Multipart,
        ];
        let format = formats
            .into_iter()
            .find(|format| format.as_str() == text("body_format"));
        let source = crate::route::RouteSource {
            name: "r".to_owned(),
            rest: text("rest"),
            rpc: text("rpc"),
            body: Some(json("body")),
            params: Some(json("params")),
            body_format: format.unwrap(),
            ..Default::default()
        };
        crate::route::parse_route(source).unwrap_or_else(|errors| panic!("{toml}: {errors:?}"));
    }
}

#[test]
fn a_file_is_described_as_it_is_sent() {
    let file = json!({ "type": "string", "format": "binary", "description": "A picture." });
    let schema = json!({ "type": "object", "required": ["file"], "properties": { "file": file } });
    let found = drafted([with_body(
        json!({ "multipart/form-data": { "schema": schema } }),
    )]);
    let table: toml::Table = found.toml.parse().unwrap();
    let text = table["route"][0]["schema"]["params"].as_str().unwrap();
    let params: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        params["properties"]["file"],
        json!({ "type": "string", "contentEncoding": "base64", "description": "A picture." })
    );
    assert_eq!(
        params["properties"]["file_name"],
        json!({ "type": "string" })
    );
    assert_eq!(params["required"], json!(["file"]));
}
