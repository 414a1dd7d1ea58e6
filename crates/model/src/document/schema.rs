//! JSON Schema (2020-12) of patterns: the schema of the values that match. Used by `document`.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    Codec, EachPattern, JsonText, ListPattern, ObjectPattern, Pattern, Role, Scalar, Shape, Slot,
    TextPart, TextPattern, TextPatterns,
};

/// The treatment of members that an object pattern does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaExtras {
    /// They are allowed.
    Open,
    /// They are rejected.
    Closed,
}

/// Converts a JSON text to a value. Numbers beyond its range are rounded, which is good enough for a document.
pub(super) fn value(json: &Json) -> Value {
    serde_json::from_slice(json.as_bytes()).unwrap_or(Value::Null)
}

/// Returns the schema of the values that match a pattern.
pub(super) fn of_pattern(pattern: &Pattern, more: SchemaExtras) -> Value {
    match pattern {
        Pattern::Literal(literal) => json!({ "const": value(literal) }),
        Pattern::Hole(slot) => of_slot(slot),
        Pattern::Text(text) => of_text(text),
        Pattern::Object(object) => of_object(object, more),
        Pattern::List(list) => of_elements(list, more),
        Pattern::Each(each) => of_each(each, more),
        Pattern::Either(either) => {
            let alternatives = either.alternatives.iter();
            any_of(
                alternatives
                    .map(|alternative| of_pattern(alternative, more))
                    .collect(),
            )
        }
    }
}

/// Returns the schema of a hole's value in JSON.
pub(super) fn of_slot(slot: &Slot) -> Value {
    let mut schema = match (&slot.role, slot.codec.map()) {
        (Role::Ignored(_), _) => json!({}),
        (_, Some(map)) => of_list(&slot.shape, of_values(map.values().map(value))),
        (Role::Shared(_) | Role::ReadOnly(_) | Role::Equal(_) | Role::WriteOnly(_), None) => {
            of_shape(&slot.shape)
        }
    };
    if let Codec::Page(page) = &slot.codec {
        schema["minimum"] = json!(page.first());
    }
    if let Codec::Json(encoding) = slot.codec {
        schema = json_in_text(schema, encoding);
    }
    if let Some(default) = slot.default() {
        let written = match slot.codec.changes_value() {
            true => slot.as_json(Cow::Borrowed(default)).ok(),
            false => Some(Cow::Borrowed(default)),
        };
        schema["default"] = written.map_or(Value::Null, |default| value(&default));
    }
    schema
}

/// Returns the schema of these values; strings have their type.
fn of_values(values: impl Iterator<Item = Value>) -> Value {
    let values: Vec<Value> = values.collect();
    if values.iter().all(Value::is_string) {
        json!({ "type": "string", "enum": values })
    } else {
        json!({ "enum": values })
    }
}

/// Returns the schema of a value, or of a list of such values.
fn of_list(shape: &Shape, value: Value) -> Value {
    match shape {
        Shape::Repeated(_) | Shape::Separated(..) => json!({ "type": "array", "items": value }),
        Shape::Any | Shape::One(_) | Shape::Object | Shape::Array | Shape::Null => value,
    }
}

/// Returns the schema of a string that contains JSON.
pub(super) fn json_in_text(schema: Value, encoding: JsonText) -> Value {
    let mut text = json!({
        "type": "string",
        "contentMediaType": "application/json",
        "contentSchema": schema,
    });
    if encoding == JsonText::Base64 {
        text["contentEncoding"] = json!("base64");
    }
    text
}

fn of_shape(shape: &Shape) -> Value {
    match shape {
        Shape::Any => json!({}),
        Shape::One(scalar) => of_scalar(scalar),
        Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
            json!({ "type": "array", "items": of_scalar(scalar) })
        }
        Shape::Object => json!({ "type": "object" }),
        Shape::Array => json!({ "type": "array" }),
        Shape::Null => json!({ "type": "null" }),
    }
}

fn of_scalar(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::String => json!({ "type": "string" }),
        Scalar::Integer => json!({ "type": "integer" }),
        Scalar::Number => json!({ "type": "number" }),
        Scalar::Boolean => json!({ "type": "boolean" }),
        Scalar::Enum(words) => json!({ "type": "string", "enum": words }),
    }
}

/// Returns a string schema whose regular expression (ECMA-262) has the fixed parts.
fn of_text(text: &TextPattern) -> Value {
    let parts = text.parts.iter().map(|part| match part {
        TextPart::Text(literal) => escaped(literal),
        TextPart::Hole(_) => "[\\s\\S]*".to_owned(),
    });
    let pattern: String = parts.collect();
    json!({ "type": "string", "pattern": format!("^{pattern}$") })
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if r"\^$.|?*+()[]{}/-".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Returns the schema of a separate text: a header, a query parameter, a plain body.
pub(super) fn of_words(words: &TextPatterns) -> Value {
    match words {
        TextPatterns::Literal(literal) => json!({ "type": "string", "const": literal }),
        // In a text every value is a string, unless its type is narrower.
        TextPatterns::Hole(slot) if slot.shape == Shape::Any => {
            let mut schema = of_slot(slot);
            schema["type"] = json!("string");
            schema
        }
        TextPatterns::Hole(slot) => match slot.codec.map().filter(|_| slot.binds().is_some()) {
            Some(map) => of_list(&slot.shape, of_values(map.texts().map(Value::from))),
            None => of_slot(slot),
        },
        TextPatterns::Mixed(text) => of_text(text),
    }
}

fn of_object(object: &ObjectPattern, more: SchemaExtras) -> Value {
    if object.is_empty() {
        return match more {
            SchemaExtras::Open => json!({ "type": "object", "maxProperties": 0 }),
            SchemaExtras::Closed => json!({ "type": "object", "additionalProperties": false }),
        };
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, member) in &object.members {
        properties.insert(name.clone(), of_pattern(member, more));
        if !member.may_be_absent() {
            required.push(Value::from(name.as_str()));
        }
    }
    let mut schema = json!({ "type": "object" });
    if !properties.is_empty() {
        schema["properties"] = properties.into();
    }
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    if more == SchemaExtras::Closed && object.rest.is_none() {
        schema["additionalProperties"] = json!(false);
    }
    schema
}

fn of_elements(list: &ListPattern, more: SchemaExtras) -> Value {
    let items: Vec<Value> = list
        .items
        .iter()
        .map(|item| of_pattern(item, more))
        .collect();
    let last = list.items.iter().rposition(|item| !item.may_be_absent());
    let mut schema = json!({ "type": "array" });
    if let Some(last) = last {
        schema["minItems"] = json!(last + 1);
    }
    if list.rest.is_none() {
        schema["maxItems"] = json!(items.len());
    }
    if !items.is_empty() {
        schema["prefixItems"] = items.into();
    }
    schema
}

fn of_each(each: &EachPattern, more: SchemaExtras) -> Value {
    json!({ "type": "array", "items": of_pattern(&each.item, more) })
}

/// Joins schemas: equal ones become one, and literals an `enum`.
pub(super) fn any_of(schemas: Vec<Value>) -> Value {
    let mut distinct: Vec<Value> = Vec::with_capacity(schemas.len());
    for schema in schemas {
        if !distinct.contains(&schema) {
            distinct.push(schema);
        }
    }
    if distinct.len() < 2 {
        return distinct.pop().unwrap_or_else(|| json!({}));
    }
    let literals: Option<Vec<Value>> = distinct
        .iter()
        .map(|one| one.get("const").cloned())
        .collect();
    match literals {
        Some(literals) => json!({ "enum": literals }),
        None => json!({ "anyOf": distinct }),
    }
}
