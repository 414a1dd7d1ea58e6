//! Example arguments from a schema. Used by `cli` and `rest_api`.

use serde_json::{Map, Value, json};

/// The deepest nesting of an example.
const DEEPEST: usize = 4;
/// The most members of an example.
const MOST: usize = 20;

/// Returns an example value with the required members of a schema. References are not followed.
#[must_use]
pub fn sample(schema: &Value) -> Value {
    value(schema, 0)
}

fn value(schema: &Value, depth: usize) -> Value {
    for name in ["default", "const", "example"] {
        if let Some(given) = schema.get(name) {
            return given.clone();
        }
    }
    for name in ["examples", "enum"] {
        let given = schema.get(name).and_then(Value::as_array);
        if let Some(first) = given.and_then(|given| given.first()) {
            return first.clone();
        }
    }
    if let Some(first) = choice(schema)
        && depth < DEEPEST
        && schema.get("properties").is_none()
    {
        return value(first, depth + 1);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("object") => object(schema, depth),
        Some("array") => json!([]),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        None if schema.get("properties").is_some() || depth == 0 => object(schema, depth),
        Some(_) | None => json!("text"),
    }
}

fn choice(schema: &Value) -> Option<&Value> {
    let mut lists = ["allOf", "anyOf", "oneOf"].iter();
    lists.find_map(|name| schema.get(*name)?.as_array()?.first())
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut members = Map::new();
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    for name in names.take(MOST) {
        if depth < DEEPEST
            && let Some(property) = properties.and_then(|properties| properties.get(name))
        {
            members.insert(name.to_owned(), value(property, depth + 1));
        }
    }
    Value::Object(members)
}
