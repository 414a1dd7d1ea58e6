//! JSON Schemas of observed values. Used by `learn::documents`.
//!
//! Law: every observed value is valid under its schema.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The depth below which values are not looked at.
const DEPTH: u8 = 6;
/// The most members of an object; one with more is a map.
const MEMBERS: usize = 100;

/// The shape of values at one place.
#[derive(Debug, Default)]
pub(super) struct Shape {
    seen: u64,
    /// The names of the types that were seen.
    types: BTreeSet<&'static str>,
    objects: u64,
    members: BTreeMap<String, Shape>,
    /// True if an object has too many members, lies too deep, or has names that are data.
    is_map: bool,
    elements: Option<Box<Shape>>,
}

impl Shape {
    /// Adds a value.
    pub(super) fn add(&mut self, value: &Value) {
        self.add_at(value, 0);
    }

    /// Returns the number of values.
    pub(super) const fn seen(&self) -> u64 {
        self.seen
    }

    fn add_at(&mut self, value: &Value, depth: u8) {
        self.seen += 1;
        self.types.insert(match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        });
        if let Value::Array(elements) = value {
            let shape = self.elements.get_or_insert_default();
            if depth < DEPTH {
                elements.iter().for_each(|it| shape.add_at(it, depth + 1));
            }
        }
        if let Value::Object(members) = value {
            self.add_object(members, depth);
        }
    }

    fn add_object(&mut self, members: &Map<String, Value>, depth: u8) {
        self.objects += 1;
        if self.is_map || depth >= DEPTH {
            self.is_map = true;
            return;
        }
        for (name, value) in members {
            let member = self.members.entry(name.clone()).or_default();
            member.add_at(value, depth + 1);
        }
        if self.members.len() > MEMBERS || members.keys().any(|name| is_data(name)) {
            self.is_map = true;
            self.members.clear();
        }
    }

    /// Returns the schema.
    pub(super) fn schema(&self) -> Value {
        let mut kinds = self.types.clone();
        if kinds.contains("number") {
            kinds.remove("integer");
        }
        let kinds: Vec<&str> = kinds.into_iter().collect();
        let mut schema = match kinds[..] {
            [] => return json!({}),
            [kind] => json!({ "type": kind }),
            // A value of several types has no pattern of its own.
            _ if kinds.len() > 2 || !kinds.contains(&"null") => return json!({}),
            _ => json!({ "type": kinds }),
        };
        if let Some(elements) = self.elements.as_ref().filter(|it| it.seen > 0) {
            schema["items"] = elements.schema();
        }
        if self.objects > 0 && !self.is_map && !self.members.is_empty() {
            let properties = self.members.iter();
            let properties: Map<String, Value> = properties
                .map(|(name, shape)| (name.clone(), shape.schema()))
                .collect();
            schema["properties"] = Value::Object(properties);
            let always = self
                .members
                .iter()
                .filter(|(_, it)| it.seen == self.objects);
            let always: Vec<&String> = always.map(|(name, _)| name).collect();
            if !always.is_empty() {
                schema["required"] = json!(always);
            }
        }
        schema
    }

    /// Returns the members of objects, and if each object had them.
    pub(super) fn members(&self) -> impl Iterator<Item = (&str, &Shape, bool)> {
        let members = self.members.iter();
        members.map(|(name, shape)| (name.as_str(), shape, shape.seen == self.objects))
    }

    /// Returns true if all values are objects with known members.
    pub(super) const fn is_plain_object(&self) -> bool {
        self.seen == self.objects && self.objects > 0 && !self.is_map
    }
}

/// Returns true if a name is probably data of a client: an id, a token or an address. A draft must not repeat it.
pub(super) fn is_data(name: &str) -> bool {
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    let is_address = name.trim_start_matches('@').contains('@');
    let is_number = digits == name.len() && digits > 0;
    let is_token = name.len() > 40 && digits > 0;
    is_address || is_number || is_token || digits >= 6 || name.len() > 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_data_are_told_from_those_of_an_api() {
        for name in [
            "7",
            "alice@example.com",
            "tok_9f8a7b6c5d4e",
            "0193f1c0-aaaa-bbbb-cccc-000000000001",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2ln",
        ] {
            assert!(is_data(name), "{name}");
        }
        for name in [
            "",
            "id",
            "@type",
            "sha256",
            "address_line_1",
            "$ref",
            "filter[name]",
        ] {
            assert!(!is_data(name), "{name}");
        }
    }
}
