//! The names that users depend on: a line `KIND NAME` for each, and lines for its properties, such as
//! `KIND NAME type "string"`.
//!
//! In names, `NAME` stands for any name, and `[]` for an item.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Map, Value};

/// Adds a part of a JSON Schema or of an OpenAPI document, and the parts inside it.
///
/// Each keyword counts, except texts for people. A `$ref` is the name of another part, which is listed once.
pub(super) fn add_part(part: &Value, name: &str, found: &mut BTreeSet<String>) {
    for (keyword, value) in part.as_object().into_iter().flatten() {
        match (keyword.as_str(), value) {
            ("$schema" | "title" | "summary" | "description" | "example" | "examples", _) => {}
            // `add_parameters` has them in the name.
            ("name" | "in", _) => {}
            ("properties" | "responses" | "content" | "headers", Value::Object(parts)) => {
                add_parts(parts, name, found);
            }
            ("$defs", Value::Object(parts)) => add_parts(parts, &below(name, "$defs"), found),
            ("parameters", Value::Array(parameters)) => add_parameters(parameters, name, found),
            ("requestBody", _) => add_part(value, &below(name, "body"), found),
            ("schema", _) => add_part(value, name, found),
            ("oneOf" | "anyOf" | "allOf", Value::Array(parts)) => {
                parts.iter().for_each(|part| add_part(part, name, found));
            }
            ("items", Value::Object(_)) => add_part(value, &format!("{name}[]"), found),
            ("additionalProperties", Value::Object(_)) => {
                add_part(value, &below(name, "NAME"), found);
            }
            ("required", Value::Array(keys)) => {
                let keys = keys.iter().filter_map(Value::as_str);
                found.extend(keys.map(|key| format!("{} required", below(name, key))));
            }
            ("type" | "enum", Value::Array(items)) => {
                let name = name.trim_end();
                found.extend(items.iter().map(|item| format!("{name} {keyword} {item}")));
            }
            _ => {
                found.insert(format!("{} {keyword} {value}", name.trim_end()));
            }
        }
    }
}

fn add_parts(parts: &Map<String, Value>, name: &str, found: &mut BTreeSet<String>) {
    for (key, part) in parts {
        let name = below(name, key);
        found.insert(name.clone());
        add_part(part, &name, found);
    }
}

fn add_parameters(parameters: &[Value], name: &str, found: &mut BTreeSet<String>) {
    for parameter in parameters {
        let text = |member: &str| parameter[member].as_str().unwrap();
        let name = below(name, &format!("{}.{}", text("in"), text("name")));
        found.insert(name.clone());
        add_part(parameter, &name, found);
    }
}

/// Returns the name of a part inside another one. A name that ends in a space has no parts yet.
fn below(name: &str, key: &str) -> String {
    let dot = if name.ends_with(' ') { "" } else { "." };
    format!("{name}{dot}{key}")
}

/// Adds the methods of an OpenAPI document, and the parts that they share.
pub(super) fn add_api(document: &Value, found: &mut BTreeSet<String>) {
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let name = format!("api {} {path}", method.to_uppercase());
            add_part(operation, &format!("{name} "), found);
            found.insert(name);
        }
    }
    for (kind, parts) in document["components"].as_object().unwrap() {
        let kind = if kind == "schemas" { "member" } else { kind };
        add_parts(parts.as_object().unwrap(), &format!("{kind} "), found);
    }
}

/// Adds the metrics of the reference, which another test compares with the program.
fn add_metrics(page: &str, found: &mut BTreeSet<String>) {
    for cells in rows(page).filter(|cells| cells[1].starts_with("`dualgauge_")) {
        let name = format!("metric {}", cells[1].trim_matches('`'));
        found.insert(format!("{name} type {}", cells[2]));
        for label in cells[3].split(", ").filter(|label| !label.is_empty()) {
            found.insert(format!("{name} label {label}"));
        }
        found.insert(name);
    }
}

/// Adds the failures of the reference, which another test compares with the program.
fn add_failures(page: &str, found: &mut BTreeSet<String>) {
    let (_, table) = page.split_once("## Reasons\n").unwrap();
    let table = table.split("\n## ").next().unwrap();
    for cells in rows(table).filter(|cells| cells[1].starts_with('`')) {
        let name = format!("failure {}", cells[1].trim_matches('`'));
        for (at, property) in [(2, "blame"), (3, "status"), (4, "code"), (5, "rpc_status")] {
            found.insert(format!("{name} {property} {}", cells[at]));
        }
        found.insert(name);
    }
}

fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let rows = page.lines().filter(|line| line.starts_with("| "));
    rows.map(|row| row.split('|').map(str::trim).collect())
}

pub(super) fn read_json(file: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// Adds the names in the files of the repository.
pub(super) fn add_described(found: &mut BTreeSet<String>) {
    for (file, kind) in [
        ("dualgauge", "key"),
        ("flags", "key"),
        ("routes", "included"),
    ] {
        let schema = read_json(&format!("config/schema/{file}.schema.json"));
        add_part(&schema, &format!("{kind} "), found);
    }
    let page = |name: &str| fs::read_to_string(format!("docs/reference/{name}.md")).unwrap();
    add_metrics(&page("metrics"), found);
    add_failures(&page("failures"), found);
    add_api(&read_json("src/server/admin/admin.json"), found);
}
