//! Schemas of OpenAPI as JSON Schemas (2020-12) that refer to shared schemas as `#/schemas/NAME`.
//!
//! Laws: the converted schema accepts every value that the original accepts, read as OpenAPI says; beyond the limits, a
//! schema becomes one that accepts everything.
//!
//! Used by `import::tools`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::cycles;
use crate::route::{SHARED, escaped};
use dualgauge_patterns::percent::{self, Plus};
use dualgauge_patterns::schema::Schema as CompiledSchema;

/// The deepest nesting that is kept.
const DEEPEST: usize = 100;
/// The most values that are converted in all documents.
const MOST_STEPS: usize = 1_000_000;
/// Members that are no JSON Schema, that say nothing about values, or that have another meaning in another document:
/// within `$id`, references to shared schemas would name nothing.
const DROPPED: [&str; 13] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "$vocabulary",
    "discriminator",
    "example",
    "externalDocs",
    "nullable",
    "xml",
    "collectionFormat",
];
/// Members of a Swagger 2.0 parameter beside its schema.
const OF_PARAMETER: [&str; 5] = ["in", "name", "allowEmptyValue", "style", "explode"];
/// Members with values.
const OPAQUE: [&str; 4] = ["const", "default", "enum", "examples"];
/// Members that are maps of schemas.
const MAPS: [&str; 5] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
];

/// The shared schemas of all documents.
#[derive(Debug, Default)]
pub(in crate::import) struct Schemas<'d> {
    document: Option<&'d Value>,
    /// The names of the shared schemas, by document and reference.
    names: BTreeMap<(usize, String), String>,
    shared: Map<String, Value>,
    /// The last number of each wanted name that other schemas have.
    numbers: BTreeMap<String, usize>,
    steps: usize,
}

impl<'d> Schemas<'d> {
    /// Begins or continues the schemas of a document.
    pub(in crate::import) fn begin(&mut self, document: &'d Value) {
        self.document = Some(document);
    }

    /// Converts a schema, and the schemas that it refers to.
    pub(in crate::import) fn convert(&mut self, schema: &Value) -> Value {
        let mut pending = Vec::new();
        let converted = self.schema(schema, DEEPEST, &mut pending);
        while let Some((name, reference)) = pending.pop() {
            let target = self.document.and_then(|whole| target(whole, &reference));
            let definition = target.map(|target| self.schema(target, DEEPEST, &mut pending));
            self.shared
                .insert(name, definition.unwrap_or_else(|| json!({})));
        }
        converted
    }

    /// Returns the shared schemas.
    pub(in crate::import) fn finish(mut self) -> Map<String, Value> {
        cycles::cut(&mut self.shared);
        self.shared
    }

    fn schema(
        &mut self,
        schema: &Value,
        depth: usize,
        pending: &mut Vec<(String, String)>,
    ) -> Value {
        self.steps += 1;
        let (Value::Object(members), Some(depth)) = (schema, depth.checked_sub(1)) else {
            return match schema {
                Value::Bool(_) => schema.clone(),
                Value::Null
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_) => json!({}),
            };
        };
        if self.steps > MOST_STEPS {
            return json!({});
        }
        let mut found = Map::new();
        for (name, member) in members {
            let is_dropped = name.starts_with("x-")
                || DROPPED.contains(&name.as_str())
                || (members.contains_key("in") && OF_PARAMETER.contains(&name.as_str()));
            if !is_dropped {
                let copy = self.keyword(name, member, depth, pending);
                // Up to draft 2019-09, a list in `items` has the meaning of `prefixItems`.
                let is_list = name == "items" && member.is_array();
                let name = if is_list { "prefixItems" } else { name };
                found.extend(copy.map(|copy| (name.to_owned(), copy)));
            }
        }
        let reference = members.get("$ref").and_then(Value::as_str);
        if let Some(reference) = reference.and_then(|name| self.reference(name, pending)) {
            found.insert("$ref".to_owned(), reference.into());
        }
        if let Some(example) = members.get("example")
            && !found.contains_key("examples")
            && let Some(example) = self.copied(example)
        {
            found.insert("examples".to_owned(), json!([example]));
        }
        tidied(members, found)
    }

    /// Converts the value of a keyword; `None` if it has no meaning in JSON Schema.
    fn keyword(
        &mut self,
        name: &str,
        member: &Value,
        depth: usize,
        pending: &mut Vec<(String, String)>,
    ) -> Option<Value> {
        Some(match (name, member) {
            ("required" | "examples", Value::Array(_)) => self.copied(member)?,
            ("required" | "examples", _) => return None,
            ("pattern", _) if !is_regex(member) => return None,
            (name, _) if OPAQUE.contains(&name) => self.copied(member)?,
            (name, Value::Object(parts)) if MAPS.contains(&name) => {
                let parts = parts.iter();
                let parts =
                    parts.map(|(name, part)| (name.clone(), self.schema(part, depth, pending)));
                Value::Object(parts.collect())
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems" | "items", Value::Array(parts)) => {
                if parts.is_empty() {
                    return None;
                }
                let parts = parts.iter();
                parts
                    .map(|part| self.schema(part, depth, pending))
                    .collect()
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "contains"
                | "propertyNames"
                | "if"
                | "then"
                | "else"
                | "unevaluatedItems"
                | "unevaluatedProperties"
                | "contentSchema",
                Value::Object(_),
            ) => self.schema(member, depth, pending),
            _ => self.copied(member)?,
        })
    }

    /// Copies a value within the limit: operations may refer to the same large text many times.
    fn copied(&mut self, value: &Value) -> Option<Value> {
        self.steps = self.steps.saturating_add(weight(value));
        (self.steps <= MOST_STEPS).then(|| value.clone())
    }

    /// Returns the reference to a shared schema; `None` if it leaves the document.
    fn reference(
        &mut self,
        reference: &str,
        pending: &mut Vec<(String, String)>,
    ) -> Option<String> {
        if !reference.starts_with('#') {
            return None;
        }
        // A document stays in its place as long as these schemas refer to it.
        let document = self
            .document
            .map_or(0, |document| std::ptr::from_ref(document) as usize);
        let key = (document, reference.to_owned());
        let name = match self.names.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = self.unique(reference);
                self.names.insert(key, name.clone());
                // Reserves the name until the target is converted.
                self.shared.insert(name.clone(), json!({}));
                pending.push((name.clone(), reference.to_owned()));
                name
            }
        };
        Some(format!("{SHARED}{}", escaped(&name)))
    }

    fn unique(&mut self, reference: &str) -> String {
        const LONGEST: usize = 100;
        let last = reference.rsplit(['/', '#']).next().unwrap_or_default();
        let tidy = |character: char| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' | '.' => character,
            _ => '_',
        };
        let wanted: String = last.chars().take(LONGEST).map(tidy).collect();
        let wanted = if wanted.is_empty() {
            "Schema".to_owned()
        } else {
            wanted
        };
        let mut name = wanted.clone();
        while self.shared.contains_key(&name) {
            let number = self.numbers.entry(wanted.clone()).or_insert(1);
            *number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }
}

/// Returns the cost of a copy in steps: one for each value in it, and for each 64 bytes of its texts.
fn weight(value: &Value) -> usize {
    const STEP: usize = 64;
    match value {
        Value::String(text) => text.len() / STEP,
        Value::Array(parts) => parts.iter().map(|part| 1 + weight(part)).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, part)| 1 + name.len() / STEP + weight(part))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Rewrites what OpenAPI 3.0 and Swagger 2.0 say in another way than JSON Schema.
fn tidied(members: &Map<String, Value>, mut found: Map<String, Value>) -> Value {
    for (flag, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(Value::Bool(is_exclusive)) = found.get(flag) {
            let is_exclusive = *is_exclusive;
            found.remove(flag);
            if let Some(limit) = found.get(bound).cloned().filter(|_| is_exclusive) {
                found.insert(flag.to_owned(), limit);
                found.remove(bound);
            }
        }
    }
    if found.get("type").is_some_and(|kind| kind == "file") {
        found.insert("type".to_owned(), json!("string"));
    }
    if found.get("type").is_some_and(|kind| !is_type(kind)) {
        found.remove("type");
    }
    if !found.contains_key("type") && found.contains_key("properties") {
        found.insert("type".to_owned(), json!("object"));
    }
    if let Some(Value::Array(required)) = found.get_mut("required") {
        required.retain(|name| name.is_string());
        if required.is_empty() {
            found.remove("required");
        }
    }
    if members.get("nullable") == Some(&Value::Bool(true)) {
        return nullable(found);
    }
    found.into()
}

/// Returns true unless a pattern is no regular expression of ECMA-262, which a client may refuse with the whole list.
/// Lookaround and backreferences are not read.
fn is_regex(pattern: &Value) -> bool {
    const UNREAD: [&str; 3] = ["(?=", "(?!", "(?<"];
    let Some(text) = pattern.as_str() else {
        return false;
    };
    let is_reference = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9' | b'k');
    UNREAD.iter().any(|word| text.contains(word))
        || text.as_bytes().windows(2).any(is_reference)
        || CompiledSchema::compile(&json!({ "pattern": text })).is_ok()
}

fn is_type(kind: &Value) -> bool {
    const TYPES: [&str; 7] = [
        "string", "integer", "number", "boolean", "object", "array", "null",
    ];
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match kind {
        Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(known),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            known(kind)
        }
    }
}

fn nullable(mut found: Map<String, Value>) -> Value {
    let has_parts = ["$ref", "allOf", "anyOf", "oneOf", "not"]
        .iter()
        .any(|name| found.contains_key(*name));
    let kind = found.get("type").cloned();
    if has_parts {
        return json!({ "anyOf": [found, { "type": "null" }] });
    }
    if let Some(Value::Array(values)) = found.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(kind @ Value::String(_)) = kind {
        found.insert("type".to_owned(), json!([kind, "null"]));
    }
    found.into()
}

/// Returns the target of a reference inside a document.
pub(super) fn target<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    let fragment = reference.strip_prefix('#')?;
    let fragment = percent::decode(fragment, Plus::Literal).ok()?;
    document.pointer(&fragment)
}
