//! A document becomes routes, and the document of these routes describes the same operations.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::described::{BodyMembers, Document, Failures, PROBLEM};
use crate::cli::draft_files;
use crate::cli::import::read;
use crate::config::configuration::Configuration;
use dualgauge_model::document::{ApiInfo, openapi};
use dualgauge_model::import::arbitrary::api;
use dualgauge_model::import::{DocumentKind, SourceDocument, draft};

/// Returns the draft of a document, and the document that its routes generate.
pub(super) fn there_and_back(document: &Value) -> (String, Value) {
    let given = SourceDocument {
        name: "api.json".to_owned(),
        kind: DocumentKind::OpenApi,
        document: document.clone(),
    };
    let toml = draft(&[given]).map(|draft| draft.toml).unwrap_or_default();
    let (_folder, sources) = draft_files::written(&toml);
    let read = Configuration::read(&sources);
    let configuration = read.unwrap_or_else(|problems| panic!("{problems}\nof\n{toml}"));
    let generated = openapi(configuration.plan.routes.routes(), &ApiInfo::default());
    (toml, generated)
}

/// Asserts that each operation of the generated document is described as in the original one.
fn assert_same(document: &Value, prefix: &str) {
    let (toml, generated) = there_and_back(document);
    let found = differences(document, &generated, prefix);
    assert!(found.is_empty(), "{found:#?}\n{toml}");
}

/// A difference between an operation of a document and the same one of the document of its routes.
#[derive(Debug)]
pub(super) struct Difference {
    /// The operation, `METHOD /path`.
    pub(super) place: String,
    /// The part of the operation that differs.
    pub(super) part: &'static str,
    /// The part of the original document.
    pub(super) old: Value,
    /// The names of the parameters in the original document.
    pub(super) parameters: BTreeSet<String>,
    /// The part of the generated document.
    pub(super) new: Value,
}

/// Returns the differences between the operations of the generated document and those of the original one.
pub(super) fn differences(document: &Value, generated: &Value, prefix: &str) -> Vec<Difference> {
    let (old, new) = (Document(document), Document(generated));
    let mut originals = BTreeMap::new();
    // OpenAPI 3.1 §4.8.8.1: paths that differ only in the names of parameters are identical, and must not exist.
    let mut identical = BTreeSet::new();
    for (method, path, item, operation) in old.operations() {
        let key = (method, format!("{prefix}{path}"));
        if originals.insert(key.clone(), (item, operation)).is_some() {
            identical.insert(key);
        }
    }
    let mut found = Vec::new();
    for (method, path, item, operation) in new.operations() {
        let place = format!("{} {path}", method.to_uppercase());
        let key = (method, path);
        let named = originals.get(&key);
        let named = named.map(|(item, operation)| old.parameter_names(item, operation));
        let named = named.unwrap_or_default();
        let mut differs = |part: &'static str, new: Value, old: Value| {
            let (place, parameters) = (place.clone(), named.clone());
            found.push(Difference {
                place,
                part,
                old,
                new,
                parameters,
            });
        };
        if identical.contains(&key) {
            continue;
        }
        let Some((old_item, old_operation)) = originals.get(&key) else {
            differs("operation", operation.clone(), Value::Null);
            continue;
        };
        let known = old.parameters(old_item, old_operation);
        for parameter in new.parameters(item, operation) {
            if !known.contains(&parameter) {
                differs("parameter", json!(parameter), json!(known));
            }
        }
        body_differences(&old.body(old_operation), &new.body(operation), &mut differs);
        if let Some(success) = old.success(old_operation) {
            let own = new.success(operation);
            if own.as_ref() != Some(&success) {
                differs("response", json!(own), json!(success));
            }
        }
        text_differences(
            old.texts(old_operation),
            &new.texts(operation),
            &mut differs,
        );
        failure_differences(
            old.failures(old_operation),
            &new.failures(operation),
            &mut differs,
        );
        label_differences(old_operation, operation, &mut differs);
    }
    found
}

type Differs<'f> = &'f mut dyn FnMut(&'static str, Value, Value);

/// Compares the summaries and the tags of two operations.
fn label_differences(old: &Value, new: &Value, differs: Differs<'_>) {
    for label in ["summary", "tags"] {
        let known = old.get(label).filter(|label| **label != json!([]));
        if new.get(label) != known {
            differs(label, json!(new.get(label)), json!(known));
        }
    }
}

/// Compares the members of two bodies, and which of them are required. A body without named members may have any form.
fn body_differences(old: &BodyMembers, new: &BodyMembers, differs: Differs<'_>) {
    if old.members.is_none() && new.members.is_none() {
        return;
    }
    let old_members = old.members.clone().unwrap_or_default();
    let members = new.members.clone().unwrap_or_default();
    let sent = |of: &Map<String, Value>| {
        let mut found = of.clone();
        found.retain(|name, member| {
            // A member that equals a parameter may have any spelling.
            let is_twin = members.get(name) == Some(&json!({}));
            // In a pattern, `...` means the unnamed members, so no route documents this one.
            let is_named = name != "...";
            is_named && member.get("readOnly") != Some(&Value::Bool(true)) && !is_twin
        });
        found
    };
    let (members, old_members) = (sent(&members), sent(&old_members));
    if members != old_members {
        differs("body", json!(members), json!(old_members));
    }
    if new.required != old.required {
        let names: Vec<&String> = old_members.keys().collect();
        let old = json!({ "required": old.required, "members": names });
        differs("required", json!(new.required), old);
    }
    if old.is_required && !new.is_required {
        differs("requestBody.required", json!(false), json!(true));
    }
}

/// Compares the descriptions of an operation's body, successes and headers. An absent one may become any, and only a
/// header must come back without one.
fn text_differences(
    old: BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
    differs: Differs<'_>,
) {
    for (place, text) in old {
        let own = new.get(&place);
        let is_header = place.contains(' ');
        let is_lost = own.is_none() && (is_header || !text.is_empty());
        if is_lost || own.is_some_and(|own| !text.is_empty() && *own != text) {
            differs("text", json!({ &place: own }), json!({ &place: text }));
        }
    }
}

/// Compares the declared failures of an operation.
fn failure_differences(old: Failures, new: &Failures, differs: Differs<'_>) {
    for (status, (text, schema)) in old {
        let back = new.get(&status);
        let is_same = back.is_some_and(|(own_text, own_schema)| {
            let title = text.is_empty() || text == *own_text;
            title && (schema.is_none() || schema == *own_schema)
        });
        if !is_same {
            let (new, old) = (json!({ &status: back }), json!({ &status: (text, schema) }));
            differs("failure", new, old);
        }
    }
}

#[test]
fn a_member_with_the_name_of_its_object_comes_back() {
    let member = json!({ "type": "string", "enum": ["a", "b"] });
    let schema = json!({ "type": "object", "properties": { "sort": member } });
    let parameter = json!({ "in": "query", "name": "sort", "schema": schema });
    let get = json!({ "parameters": [parameter], "responses": {} });
    assert_same(
        &json!({ "openapi": "3.1.0", "paths": { "/a": { "get": get } } }),
        "",
    );
}

#[test]
fn names_that_differ_in_letter_case_only_are_left_out() {
    let parameter = |place: &str, name: &str| json!({ "in": place, "name": name, "schema": { "type": "string" } });
    let parameters = [
        parameter("query", "pageSize"),
        parameter("header", "PageSize"),
    ];
    // A body that is no object needs the full form, which names the params.
    let content = json!({ "application/json": { "schema": { "type": "string" } } });
    let named =
        json!({ "parameters": parameters, "requestBody": { "content": content }, "responses": {} });
    let plain = json!({ "responses": {} });
    let paths = json!({ "/a/{x}": { "put": named }, "/a/{y}": { "put": plain } });
    let (toml, generated) = there_and_back(&json!({ "openapi": "3.1.0", "paths": paths }));
    assert!(
        toml.contains("are called `pagesize`, apart from letter case"),
        "{toml}"
    );
    // The other operation of this path is served.
    let paths = generated["paths"].as_object().unwrap();
    assert_eq!(Vec::from_iter(paths.keys()), ["/a/{y}"], "{toml}");
}

#[test]
fn each_success_has_its_own_content() {
    let content = |kind: &str| json!({ "application/json": { "schema": { "type": kind } } });
    let response = |kind: &str| json!({ "description": kind, "content": content(kind) });
    for statuses in [["201", "2XX"], ["+200", "0202"]] {
        let [one, other] = statuses;
        let responses = json!({ one: response("integer"), other: response("boolean") });
        let get = json!({ "responses": responses });
        let document = json!({ "openapi": "3.1.0", "paths": { "/a": { "get": get } } });
        let (toml, generated) = there_and_back(&document);
        let found = &generated["paths"]["/a"]["get"]["responses"];
        let second = &found[if one == "201" { "201" } else { "202" }];
        let kind = if one == "201" { "integer" } else { "boolean" };
        assert_eq!(second["content"], content(kind), "{toml}");
        assert_eq!(second["description"], kind);
    }
}

#[test]
fn the_documents_of_the_tests_come_back() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/import");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let Ok(document) = read::read(&file.unwrap().path()) else {
            continue;
        };
        if document.get("openapi").is_some() {
            let base = &document["servers"][0]["variables"]["base"]["default"];
            let path = base.as_str().map(|base| format!("/{base}"));
            assert_same(&document, &path.unwrap_or_default());
            count += 1;
        }
    }
    assert!(count > 1, "the documents of the tests are gone");
}

#[test]
fn texts_and_schemas_come_back() {
    let document: Value = serde_json::from_str(include_str!("orders.json")).unwrap();
    assert_same(&document, "");
    let (toml, generated) = there_and_back(&document);
    let orders = &generated["paths"]["/orders"];
    let description = &orders["get"]["description"];
    assert_eq!(*description, json!("The newest\nfirst."), "{toml}");
    let one = &generated["paths"]["/orders/{id}"];
    let statuses = |operation: &Value| {
        let responses = operation["responses"].as_object().unwrap();
        responses.keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(statuses(&orders["get"]), "200 default");
    assert_eq!(statuses(&one["put"]), "200 204 default");
    assert_eq!(statuses(&one["delete"]), "204 404 4XX 503 default");
    let content = &one["delete"]["responses"]["404"]["content"];
    let schema = json!({ "$ref": "#/components/schemas/Fault" });
    assert_eq!(content["application/json"]["schema"], schema);
    let problem = &content["application/problem+json"]["schema"];
    assert_eq!(*problem, json!({ "$ref": PROBLEM }));
    assert_eq!(one["put"]["parameters"][0]["schema"]["format"], "uuid");
}

#[test]
fn bodies_come_back_and_their_loss_is_a_difference() {
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "properties": { "name": { "type": "string", "description": "Its name" }, "age": { "type": "integer" } },
    });
    let content = json!({ "application/json": { "schema": schema } });
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "Pets", "version": "1" },
        "paths": { "/pets/{id}": { "put": {
            "operationId": "putPet",
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }],
            "requestBody": { "required": true, "content": content },
            "responses": { "200": { "description": "made" } },
        } } },
    });
    assert_same(&document, "");
    let (_, generated) = there_and_back(&document);
    let mut lost = generated.clone();
    let body = &mut lost["paths"]["/pets/{id}"]["put"]["requestBody"];
    *body = json!({ "content": { "application/json": { "schema": { "type": "object" } } } });
    let found = differences(&document, &lost, "");
    let found: Vec<&str> = found.iter().map(|difference| difference.part).collect();
    assert_eq!(found, ["body", "required", "requestBody.required"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn small_documents_come_back(document in api()) {
        assert_same(&document, "");
    }
}
