//! The demands that the schema of a body makes on its members together: alternatives, and required members that it does
//! not describe.
//!
//! Used by `import::tools::operation`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::operation::follow;

/// The most `allOf` parts in which the members of an object are looked for.
const MOST_PARTS: usize = 64;
/// The most schemas in which members may be refused.
const MOST_SCHEMAS: usize = 1_000;

/// Returns the members of an object schema, also of its `allOf`.
pub(super) fn members<'d>(document: &'d Value, schema: &'d Value) -> BTreeMap<&'d str, &'d Value> {
    let mut found = BTreeMap::new();
    for schema in parts(document, schema) {
        let own = schema.get("properties").and_then(Value::as_object);
        for (name, member) in own.into_iter().flatten() {
            found.entry(name.as_str()).or_insert(member);
        }
    }
    found
}

/// Returns a schema and the parts of its `allOf`, each before its own parts.
fn parts<'d>(document: &'d Value, schema: &'d Value) -> Vec<&'d Value> {
    let mut found = Vec::new();
    let mut pending = vec![schema];
    // Parts may refer to each other.
    while let Some(schema) = pending.pop()
        && found.len() < MOST_PARTS
    {
        let schema = follow(document, schema);
        found.push(schema);
        let parts = schema.get("allOf").and_then(Value::as_array);
        pending.extend(parts.into_iter().flatten().rev());
    }
    found
}

/// Returns the alternatives and the undescribed required members of an object schema, each as a schema.
pub(super) fn demands(document: &Value, schema: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for schema in parts(document, schema) {
        for name in ["anyOf", "oneOf", "not"] {
            if let Some(alternatives) = schema.get(name) {
                found.push(json!({ name: alternatives }));
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        let Some(required) = required.filter(|required| !required.is_empty()) else {
            continue;
        };
        let described = members(document, schema);
        let is_described = |name: &Value| described.contains_key(name.as_str().unwrap_or_default());
        let undescribed = required.iter().filter(|name| !is_described(name));
        let undescribed: Vec<&Value> = undescribed.collect();
        if !undescribed.is_empty() {
            found.push(json!({ "required": undescribed }));
        }
    }
    found.dedup();
    found
}

/// Returns true when a schema refuses members that it does not name, or has too many parts to know.
pub(super) fn is_closed(document: &Value, schema: &Value) -> bool {
    let mut pending = vec![schema];
    for _ in 0..MOST_SCHEMAS {
        let Some(schema) = pending.pop() else {
            return false;
        };
        let schema = follow(document, schema);
        let refuses = |name: &str| schema.get(name) == Some(&Value::Bool(false));
        if refuses("additionalProperties")
            || refuses("unevaluatedProperties")
            || schema.get("maxProperties").is_some()
        {
            return true;
        }
        for name in ["allOf", "anyOf", "oneOf", "not"] {
            match schema.get(name) {
                Some(Value::Array(parts)) => pending.extend(parts),
                Some(part) => pending.push(part),
                None => {}
            }
        }
    }
    true
}
