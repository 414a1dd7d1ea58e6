//! A document becomes routes, and the document of these routes describes the same operations.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::MAIN;
use crate::cli::import::read;
use crate::config::configuration::Configuration;
use crate::config::load::Sources;
use dualgauge_model::document::{ApiInfo, openapi};
use dualgauge_model::import::arbitrary::api;
use dualgauge_model::import::{DocumentKind, SourceDocument, draft};
use dualgauge_patterns::percent::{self, Plus};

/// Returns the draft of a document, and the document that its routes generate.
pub(super) fn there_and_back(document: &Value) -> (String, Value) {
    let given = SourceDocument {
        name: "api.json".to_owned(),
        kind: DocumentKind::OpenApi,
        document: document.clone(),
    };
    let toml = draft(&[given]).map(|draft| draft.toml).unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    std::fs::write(&file, MAIN).unwrap();
    std::fs::write(folder.path().join("routes.toml"), &toml).unwrap();
    let sources = Sources {
        file: Some(file),
        ..Sources::default()
    };
    let read = Configuration::read(&sources);
    let configuration = read.unwrap_or_else(|problems| panic!("{problems}\nof\n{toml}"));
    let generated = openapi(configuration.plan.routes.routes(), &ApiInfo::default());
    (toml, generated)
}

/// A document whose references can be followed.
struct Document<'d>(&'d Value);

impl<'d> Document<'d> {
    fn follow(&self, value: &'d Value) -> &'d Value {
        let mut value = value;
        for _ in 0..32 {
            let target = value.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| self.0.pointer(target.strip_prefix('#')?));
            match target {
                Some(target) => value = target,
                None => break,
            }
        }
        value
    }

    /// Returns a schema without references, in the form of JSON Schema.
    fn schema(&self, schema: &'d Value, depth: usize) -> Value {
        const SAYS_NOTHING: [&str; 6] = [
            "example",
            "examples",
            "nullable",
            "xml",
            "discriminator",
            "$ref",
        ];
        let Some(depth) = depth.checked_sub(1) else {
            return json!({});
        };
        let schema = self.follow(schema);
        match schema {
            Value::Object(members) => {
                let mut found = Map::new();
                for (name, member) in members {
                    if SAYS_NOTHING.contains(&name.as_str()) || name.starts_with("x-") {
                        continue;
                    }
                    let copy = match name.as_str() {
                        "enum" | "default" | "const" | "required" => member.clone(),
                        "type" if !member.is_object() => member.clone(),
                        _ => self.schema(member, depth),
                    };
                    found.insert(name.clone(), copy);
                }
                if members.get("nullable") == Some(&Value::Bool(true))
                    && let Some(kind) = members.get("type")
                {
                    found.insert("type".to_owned(), json!([kind, "null"]));
                }
                // OpenAPI 3.0 has flags beside the bounds.
                for (flag, bound) in [
                    ("exclusiveMinimum", "minimum"),
                    ("exclusiveMaximum", "maximum"),
                ] {
                    match found.get(flag) {
                        Some(Value::Bool(true)) => {
                            let limit = found.remove(bound).unwrap_or_default();
                            found.insert(flag.to_owned(), limit);
                        }
                        Some(Value::Bool(false)) => {
                            found.remove(flag);
                        }
                        Some(_) | None => {}
                    }
                }
                if !found.contains_key("type") && found.contains_key("properties") {
                    found.insert("type".to_owned(), "object".into());
                }
                Value::Object(found)
            }
            Value::Array(items) => items.iter().map(|item| self.schema(item, depth)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
        }
    }

    /// Returns the operations: method, path without names, path item, operation.
    fn operations(&self) -> Vec<(String, String, &'d Value, &'d Value)> {
        const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];
        let paths = self.0["paths"].as_object().into_iter().flatten();
        let mut found = Vec::new();
        for (path, item) in paths {
            let item = self.follow(item);
            for method in METHODS {
                if let Some(operation) = item.get(method) {
                    found.push((method.to_owned(), shape(path), item, operation));
                }
            }
        }
        found
    }

    /// Returns the parameters of an operation by place and name; those of a path by their order.
    fn parameters(&self, item: &'d Value, operation: &'d Value) -> BTreeSet<String> {
        let lists = [item, operation].map(|owner| owner["parameters"].as_array());
        let mut declared = BTreeMap::new();
        for parameter in lists.into_iter().flatten().flatten() {
            let parameter = self.follow(parameter);
            let name = parameter["name"].as_str().unwrap_or_default();
            declared.insert((parameter["in"].to_string(), name), parameter);
        }
        let mut found = BTreeSet::new();
        for ((_, name), parameter) in declared {
            let place = &parameter["in"];
            if place == "path" {
                continue;
            }
            let is_required = parameter["required"] == true;
            let schema = self.schema(&parameter["schema"], 8);
            let described = parameter.get("description").or(schema.get("description"));
            let words = |name: &str, schema: &Value, is_required: bool| {
                let mut schema = schema.clone();
                if let Value::Object(members) = &mut schema {
                    members.remove("description");
                    // In a URL a value without a type is a text.
                    members.entry("type").or_insert_with(|| "string".into());
                }
                format!("{place} {} {is_required} {schema}", name.to_lowercase())
            };
            // The members of an object have parameters of their own.
            let members = schema["properties"]
                .as_object()
                .filter(|_| place == "query");
            for (member, schema) in members.into_iter().flatten() {
                for wire in [member.clone(), format!("{name}[{member}]")] {
                    found.insert(words(&wire, schema, is_required));
                    found.insert(words(&wire, schema, false));
                }
            }
            let described = described.and_then(Value::as_str).unwrap_or_default();
            found.insert(
                format!("{} {described}", words(name, &schema, is_required))
                    .trim()
                    .to_owned(),
            );
        }
        found
    }

    /// Returns the members of a JSON body.
    fn body(&self, operation: &'d Value) -> BodyMembers {
        let Some(request) = operation.get("requestBody") else {
            return BodyMembers::default();
        };
        let request = self.follow(request);
        let content = &request["content"];
        // The generated document writes `*/*` as JSON.
        let media = content.get("application/json").or(content.get("*/*"));
        let Some(schema) = media.and_then(|media| media.get("schema")) else {
            return BodyMembers::default();
        };
        let mut found = BodyMembers::default();
        self.add_members(schema, 8, &mut found);
        found.required.sort_by_key(Value::to_string);
        found.is_required = request["required"] == true && !found.required.is_empty();
        found
    }

    /// Adds the members of an object, and of the parts of `allOf`. Each has the same depth, wherever it is declared.
    fn add_members(&self, schema: &'d Value, parts: usize, found: &mut BodyMembers) {
        let Some(parts) = parts.checked_sub(1) else {
            return;
        };
        let schema = self.follow(schema);
        if let Some(members) = schema["properties"].as_object() {
            let known = found.members.get_or_insert_default();
            let members = members.iter();
            known.extend(members.map(|(name, member)| (name.clone(), self.schema(member, 7))));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if !found.required.contains(name) {
                found.required.push(name.clone());
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.add_members(part, parts, found);
        }
    }

    /// Returns the schema of the first success with JSON, and its status.
    fn success(&self, operation: &'d Value) -> Option<(String, Value)> {
        let responses = operation["responses"].as_object()?;
        let (status, response) = responses
            .iter()
            .find(|(status, _)| status.starts_with('2'))?;
        let content = self.follow(response).get("content")?;
        let schema = content.get("application/json")?.get("schema")?;
        Some((status.clone(), self.schema(schema, 8)))
    }

    /// Returns the declared failures: their descriptions, and the schemas of their JSON.
    fn failures(&self, operation: &'d Value) -> Failures {
        let responses = operation["responses"].as_object().into_iter().flatten();
        let mut found = BTreeMap::new();
        let is_failure = |status: &str| !status.starts_with(['1', '2', '3']);
        for (status, response) in responses.filter(|(status, _)| is_failure(status)) {
            let response = self.follow(response);
            let text = response["description"].as_str().unwrap_or_default().trim();
            let content = response["content"].as_object().into_iter().flatten();
            let is_json = |kind: &str| kind == "application/json" || kind.ends_with("+json");
            let json = content.filter(|(kind, _)| is_json(kind));
            // The content of the proxy itself comes last.
            let json = json.min_by_key(|(kind, _)| kind.contains("problem"));
            let schema = json.and_then(|(_, media)| media.get("schema"));
            let schema = schema.map(
                |schema| match schema["anyOf"].as_array().map(Vec::as_slice) {
                    Some([own, problem]) if problem["$ref"] == PROBLEM => self.schema(own, 8),
                    _ => self.schema(schema, 8),
                },
            );
            found.insert(status.to_uppercase(), (text.to_owned(), schema));
        }
        found
    }
}

/// The members of a JSON body that is an object.
#[derive(Debug, Default)]
struct BodyMembers {
    /// Their schemas; none if the schema names no members.
    members: Option<Map<String, Value>>,
    /// The names of required members.
    required: Vec<Value>,
    /// True if there is always a body, because a member is required.
    is_required: bool,
}

/// The reference to the problem document of the proxy.
const PROBLEM: &str = "#/components/schemas/Problem";

/// Returns a path without the names of its parameters.
fn shape(path: &str) -> String {
    let mut shape = String::new();
    let mut is_inside = false;
    for character in path.chars() {
        match character {
            '{' => {
                is_inside = true;
                shape.push_str("{}");
            }
            '}' => is_inside = false,
            other if !is_inside => shape.push(other),
            _ => {}
        }
    }
    let decoded = percent::decode(&shape, Plus::Literal);
    decoded.map_or_else(|_| shape.clone(), Cow::into_owned)
}

/// Asserts that each operation of the generated document is described as in the original one.
fn assert_same(document: &Value, prefix: &str) {
    let (toml, generated) = there_and_back(document);
    let found = differences(document, &generated, prefix);
    assert!(found.is_empty(), "{found:#?}\n{toml}");
}

/// Returns the differences between the operations of the generated document and those of the original one: the
/// operation, the part that differs, and both values.
pub(super) fn differences(document: &Value, generated: &Value, prefix: &str) -> Vec<[String; 3]> {
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
        let mut differs = |part: &str, values: String| {
            found.push([place.clone(), part.to_owned(), values]);
        };
        let key = (method, path);
        if identical.contains(&key) {
            continue;
        }
        let Some((old_item, old_operation)) = originals.get(&key) else {
            differs("operation", "is new".to_owned());
            continue;
        };
        let known = old.parameters(old_item, old_operation);
        for parameter in new.parameters(item, operation) {
            if !known.contains(&parameter) {
                differs("parameter", format!("{parameter} of {known:#?}"));
            }
        }
        body_differences(&old.body(old_operation), &new.body(operation), &mut differs);
        if let Some(success) = old.success(old_operation) {
            let own = new.success(operation);
            if own.as_ref() != Some(&success) {
                differs("response", format!("{own:?} instead of {success:?}"));
            }
        }
        failure_differences(
            old.failures(old_operation),
            &new.failures(operation),
            &mut differs,
        );
        for text in ["summary", "tags"] {
            let known = old_operation.get(text).filter(|text| **text != json!([]));
            if operation.get(text) != known {
                differs(
                    text,
                    format!("{:?} instead of {known:?}", operation.get(text)),
                );
            }
        }
    }
    found
}

type Differs<'f> = &'f mut dyn FnMut(&str, String);

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
        differs("body", format!("{members:?} instead of {old_members:?}"));
    }
    if new.required != old.required {
        differs(
            "required",
            format!("{:?} instead of {:?}", new.required, old.required),
        );
    }
    if old.is_required && !new.is_required {
        differs("requestBody.required", "false instead of true".to_owned());
    }
}

/// The text and the schema of each declared failure, by status.
type Failures = BTreeMap<String, (String, Option<Value>)>;

/// Compares the declared failures of an operation.
fn failure_differences(old: Failures, new: &Failures, differs: Differs<'_>) {
    for (status, (text, schema)) in old {
        let back = new.get(&status);
        let is_same = back.is_some_and(|(own_text, own_schema)| {
            let title = text.is_empty() || text == *own_text;
            title && (schema.is_none() || schema == *own_schema)
        });
        if !is_same {
            let values = format!("{status} {back:?} instead of {text:?} {schema:?}");
            differs("failure", values);
        }
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
    let parts = |found: Vec<[String; 3]>| found.into_iter().map(|[_, part, _]| part);
    let found: Vec<String> = parts(differences(&document, &lost, "")).collect();
    assert_eq!(found, ["body", "required", "requestBody.required"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn small_documents_come_back(document in api()) {
        assert_same(&document, "");
    }
}
