//! Schemas of routes as parts of another document: the definitions that they refer to are copied beside them.
//!
//! Laws: a value that fits before fits afterwards; a definition is copied once, so recursive schemas end; beyond the
//! limit, a definition becomes one that every value fits.
//!
//! Used by `config` and `document`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::route::{DescribedSchema, SHARED, escaped, unescaped};

/// Members with values, in which `$ref` is a plain name.
pub(super) const OPAQUE: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// Members whose own members have arbitrary names.
pub(super) const MAPS: [&str; 6] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
    "dependentRequired",
];

/// The references of which targets are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copied {
    /// Those to shared schemas; the whole schema is copied, so its own references stay valid.
    Shared,
    /// Those to shared schemas and into the schema itself.
    All,
}

/// The messages that copied schemas describe. One side alone sends a member with `readOnly` or `writeOnly`, so the other
/// one does not require it (OpenAPI 3.1 §4.8.24.3). JSON Schema does not have this rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Messages {
    /// Those of an OpenAPI document, whose readers apply the rule.
    OpenApi,
    /// Requests.
    Requests,
    /// Responses.
    Responses,
    /// Any, by schemas that they share.
    Shared,
}

impl Messages {
    /// Returns the marks of members that are not required.
    fn optional(self) -> &'static [&'static str] {
        match self {
            Messages::OpenApi => &[],
            Messages::Requests => &["readOnly"],
            Messages::Responses => &["writeOnly"],
            Messages::Shared => &["readOnly", "writeOnly"],
        }
    }

    /// Returns the names that a schema requires in these messages; `None` if there are none.
    fn required(self, schema: &Map<String, Value>, names: &[Value]) -> Option<Value> {
        let properties = schema.get("properties");
        let is_required = |name: &&Value| {
            let member = properties.and_then(|all| all.get(name.as_str()?));
            let is_set = |mark: &&str| {
                member.and_then(|member| member.get(*mark)) == Some(&Value::Bool(true))
            };
            !self.optional().iter().any(is_set)
        };
        let left: Vec<Value> = names.iter().filter(is_required).cloned().collect();
        (!left.is_empty() || names.is_empty()).then(|| left.into())
    }
}

/// Schemas copied into one document.
#[derive(Debug)]
pub(super) struct Bundle {
    /// The beginning of a reference to a definition: `#/$defs/`.
    prefix: &'static str,
    messages: Messages,
    copied: Copied,
    /// The names of the definitions, by source.
    names: BTreeMap<(usize, String), String>,
    definitions: Map<String, Value>,
    /// The bytes that further definitions may have.
    left: usize,
    missing: Option<String>,
}

impl Bundle {
    /// Creates an empty bundle whose definitions have at most `limit` bytes.
    pub(super) fn new(prefix: &'static str, messages: Messages, limit: usize) -> Bundle {
        Bundle {
            prefix,
            messages,
            copied: Copied::All,
            names: BTreeMap::new(),
            definitions: Map::new(),
            left: limit,
            missing: None,
        }
    }

    /// Returns the copy of a part of a schema.
    pub(super) fn embed(&mut self, source: &DescribedSchema, part: &Value) -> Value {
        let mut pending = Vec::new();
        let copy = self.copy(source, part, &mut pending);
        while let Some((name, reference)) = pending.pop() {
            let Some(target) = source.target(&reference) else {
                self.missing.get_or_insert(reference);
                self.definitions.insert(name, json!({}));
                continue;
            };
            let size = target.to_string().len();
            let definition = match self.left.checked_sub(size) {
                Some(left) => {
                    self.left = left;
                    self.copy(source, target, &mut pending)
                }
                None => json!({}),
            };
            self.definitions.insert(name, definition);
        }
        copy
    }

    /// Adds a definition under its own name.
    pub(super) fn reserve(&mut self, name: &str, definition: Value) {
        self.definitions.insert(name.to_owned(), definition);
    }

    /// Returns the definitions.
    pub(super) fn finish(self) -> Map<String, Value> {
        self.definitions
    }

    fn copy(
        &mut self,
        source: &DescribedSchema,
        value: &Value,
        pending: &mut Vec<(String, String)>,
    ) -> Value {
        match value {
            Value::Object(members) => {
                let copies = members.iter().filter_map(|(name, member)| {
                    let copy = match (name.as_str(), member) {
                        ("required", Value::Array(names)) => {
                            self.messages.required(members, names)?
                        }
                        ("$ref", Value::String(reference)) => {
                            self.reference(source, reference, pending).into()
                        }
                        (name, Value::Object(named)) if MAPS.contains(&name) => {
                            let named = named.iter();
                            let named = named.map(|(name, part)| {
                                (name.clone(), self.copy(source, part, pending))
                            });
                            Value::Object(named.collect())
                        }
                        (name, member) if OPAQUE.contains(&name) => member.clone(),
                        (_, member) => self.copy(source, member, pending),
                    };
                    Some((name.clone(), copy))
                });
                Value::Object(copies.collect())
            }
            Value::Array(items) => {
                let items = items.iter();
                items.map(|item| self.copy(source, item, pending)).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }

    fn reference(
        &mut self,
        source: &DescribedSchema,
        reference: &str,
        pending: &mut Vec<(String, String)>,
    ) -> String {
        let is_shared = reference.starts_with(SHARED);
        let is_own = reference == "#" || reference.starts_with("#/");
        if !is_shared && (self.copied == Copied::Shared || !is_own) {
            return reference.to_owned();
        }
        let origin = if is_shared {
            0
        } else {
            std::sync::Arc::as_ptr(&source.schema) as usize
        };
        let key = (origin, reference.to_owned());
        let name = match self.names.get(&key) {
            Some(name) => name.clone(),
            None => {
                let name = self.unique(reference);
                self.names.insert(key, name.clone());
                // Reserves the name until the definition is copied.
                self.definitions.insert(name.clone(), Value::Null);
                pending.push((name.clone(), reference.to_owned()));
                name
            }
        };
        format!("{}{}", self.prefix, escaped(&name))
    }

    fn unique(&self, reference: &str) -> String {
        let last = reference.rsplit('/').next().unwrap_or_default();
        let wanted = match unescaped(last) {
            name if name.is_empty() || name == "#" => "Schema".to_owned(),
            name => name,
        };
        let mut name = wanted.clone();
        let mut number = 1;
        while self.definitions.contains_key(&name) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        name
    }
}

/// Returns a schema of a route as a document of its own, with the shared schemas that it refers to in `$defs`.
///
/// # Errors
/// A text about a reference to an unknown shared schema.
pub fn bundled(source: &DescribedSchema, messages: Messages) -> Result<Value, String> {
    let own = source.schema.get("$defs").and_then(Value::as_object);
    let mut bundle = Bundle::new("#/$defs/", messages, usize::MAX);
    bundle.copied = Copied::Shared;
    bundle.definitions = own.cloned().unwrap_or_default();
    let mut whole = bundle.embed(source, &source.schema);
    if let Some(reference) = bundle.missing {
        let name = reference.strip_prefix(SHARED).unwrap_or(&reference);
        return Err(format!(
            "`$ref: {reference}` has no target; write the schema `{name}` in `[schemas]`"
        ));
    }
    let copied = bundle.definitions.into_iter();
    let known = |name: &String| own.is_some_and(|own| own.contains_key(name));
    let copied: Vec<(String, Value)> = copied.filter(|(name, _)| !known(name)).collect();
    for (name, definition) in copied {
        whole["$defs"][name] = definition;
    }
    Ok(whole)
}
