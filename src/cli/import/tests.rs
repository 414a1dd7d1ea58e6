//! A draft is a route file, whatever the documents are.

mod checked;
mod described;
mod public_documents;
mod round_trip;

use proptest::prelude::*;
use serde_json::json;

use crate::cli::draft_files::{self, problems};
use crate::config::configuration::Configuration;
use dualgauge_model::document::{ApiInfo, openapi, tools};
use dualgauge_model::import::arbitrary::{api, rpc};
use dualgauge_model::import::{
    DocumentKind, SourceDocument, ToolDraftOptions, draft, draft_as_tools,
};

#[test]
fn a_path_that_no_route_can_have_is_left_out() {
    let segments = [
        "/.", "/.:a", "/..:a", "/*:a", "/:a", "/a:", "/a:.", "/a:..", "/a:**", "/{id}:.", "/{id}:*",
    ];
    for path in segments {
        let get = json!({ "get": { "responses": {} } });
        let document = json!({ "openapi": "3.1.0", "paths": { path: get, "/usual": get } });
        let (name, kind) = ("document".to_owned(), DocumentKind::OpenApi);
        let given = SourceDocument {
            name,
            kind,
            document,
        };
        let toml = draft(&[given]).unwrap().toml;
        assert_eq!(problems(&toml), "", "{toml}");
        let routes: Vec<_> = toml.matches("rest = ").collect();
        assert!(
            routes.len() == 1 && toml.contains("\"GET /usual\""),
            "{toml}"
        );
    }
}

#[test]
fn an_object_in_the_query_with_the_name_of_unnamed_members_is_left_out() {
    let properties = json!({ "a": { "type": "string" } });
    let schema = json!({ "type": "object", "properties": properties });
    let parameter = json!({ "in": "query", "name": "...", "schema": schema });
    let get = json!({ "parameters": [parameter], "responses": {} });
    let given = SourceDocument {
        name: "document".to_owned(),
        kind: DocumentKind::OpenApi,
        document: json!({ "openapi": "3.1.0", "paths": { "/pets": { "get": get } } }),
    };
    let toml = draft(&[given]).unwrap().toml;
    assert_eq!(problems(&toml), "", "{toml}");
    assert!(toml.contains("\"GET /pets\""), "{toml}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_draft_is_a_route_file_without_problems(api in api(), rpc in rpc()) {
        let given = |kind, document| SourceDocument { name: "document".to_owned(), kind, document };
        let drafted = draft(&[given(DocumentKind::OpenApi, api), given(DocumentKind::OpenRpc, rpc)]);
        let toml = drafted.map(|draft| draft.toml).unwrap_or_default();
        prop_assert_eq!(problems(&toml), "", "{}", toml);
    }
}

/// Loads a draft with tools.
fn loaded(document: &serde_json::Value) -> (Configuration, String) {
    let given = SourceDocument {
        name: "api.json".to_owned(),
        kind: DocumentKind::OpenApi,
        document: document.clone(),
    };
    let draft = draft_as_tools(&[given], &ToolDraftOptions::default()).unwrap();
    let (_folder, sources) = draft_files::written(&draft.toml);
    match Configuration::read(&sources) {
        Ok(read) => (read, draft.toml),
        Err(problems) => panic!("{problems}\nof\n{}", draft.toml),
    }
}

/// Returns the parameters of an operation: place, name, requirement and type.
fn parameters(operation: &serde_json::Value) -> Vec<String> {
    let list = operation["parameters"].as_array().into_iter().flatten();
    let mut found: Vec<String> = list
        .map(|one| format!("{} {} {}", one["in"], one["name"], one["schema"]["type"]))
        .collect();
    found.sort();
    found
}

#[test]
fn the_document_of_drafted_tools_describes_the_same_operations() {
    let string = json!({ "type": "string" });
    let integer = json!({ "type": "integer", "minimum": 1, "description": "A number" });
    let pet = json!({ "$ref": "#/components/schemas/Pet" });
    let content = json!({ "application/json": { "schema": pet } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Pets", "version": "1" },
        "paths": {
            "/pets/{id}": {
                "get": {
                    "operationId": "get_pet", "summary": "One pet", "description": "Reads it", "tags": ["pets"],
                    "parameters": [
                        { "in": "path", "name": "id", "required": true, "schema": integer },
                        { "in": "query", "name": "q", "required": true, "schema": string },
                        { "in": "header", "name": "x-tenant", "schema": string },
                    ],
                    "responses": { "200": { "description": "OK", "content": content } },
                },
                "put": {
                    "operationId": "put_pet",
                    "parameters": [{ "in": "path", "name": "id", "required": true, "schema": integer }],
                    "requestBody": { "required": true, "content": content },
                    "responses": { "200": { "description": "OK", "content": content } },
                },
            },
        },
        "components": { "schemas": { "Pet": {
            "type": "object", "required": ["name"],
            "properties": { "name": string, "parent": pet, "age": { "type": "integer", "maximum": 99 } },
        } } },
    });
    let (configuration, toml) = loaded(&document);
    let generated = openapi(configuration.plan.routes.routes(), &ApiInfo::default());
    let (old, new) = (
        &document["paths"]["/pets/{id}"],
        &generated["paths"]["/pets/{id}"],
    );
    for method in ["get", "put"] {
        assert_eq!(parameters(&old[method]), parameters(&new[method]), "{toml}");
        let result = |operation: &serde_json::Value| {
            operation["responses"]["200"]["content"]["application/json"]["schema"].clone()
        };
        assert_eq!(result(&old[method]), result(&new[method]));
    }
    for text in ["summary", "description", "tags"] {
        assert_eq!(old["get"][text], new["get"][text]);
    }
    let id = &new["get"]["parameters"][0];
    assert_eq!(
        (&id["description"], &id["schema"]["minimum"]),
        (&json!("A number"), &json!(1))
    );
    let pet = |of: &serde_json::Value| of["components"]["schemas"]["Pet"].clone();
    assert_eq!(pet(&document), pet(&generated));
    let body = &new["put"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(body["properties"], pet(&document)["properties"]);
    let tools = tools(configuration.plan.routes.routes());
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[0]["title"], "One pet");
    assert_eq!(tools[1]["inputSchema"]["required"], json!(["id", "name"]));
}

proptest! {
    #[test]
    fn a_draft_of_tools_loads_and_its_tools_have_valid_schemas(document in api()) {
        let given = SourceDocument {
            name: "any".to_owned(),
            kind: DocumentKind::OpenApi,
            document: document.clone(),
        };
        prop_assume!(draft_as_tools(&[given], &ToolDraftOptions::default()).is_ok());
        let (configuration, _) = loaded(&document);
        for tool in tools(configuration.plan.routes.routes()) {
            prop_assert_eq!(&tool["inputSchema"]["type"], "object");
            let name = tool["name"].as_str().unwrap();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            prop_assert!(!name.is_empty() && name.len() <= 128 && name.chars().all(is_plain));
        }
    }
}
