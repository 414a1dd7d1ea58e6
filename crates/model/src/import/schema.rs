//! The properties of a value that a hole can express, read from its JSON Schema.
//!
//! Reads only types, enumerations and the members of an object: a route never refuses more than its server does. Laws:
//! an unknown construct becomes [`Type::Any`], and reading a recursive schema terminates.
//!
//! Used by `import`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::media_type::is_json;
use super::refs::{DocumentFault, Refs};

/// The deepest nesting of `allOf`.
const DEEPEST: usize = 16;

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Type {
    #[default]
    Any,
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
    Enum(Vec<String>),
}

/// Returns true when a parameter has `required: true`.
pub(super) fn is_required(parameter: &Value) -> bool {
    parameter.get("required").and_then(Value::as_bool) == Some(true)
}

/// A value with a name: a parameter, or a member of an object.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct NamedValue {
    pub(super) name: String,
    pub(super) kind: Type,
    /// True if a call without the value is refused.
    pub(super) is_required: bool,
    pub(super) default: Option<Value>,
}

/// The properties of a member that only a form needs.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct FieldType {
    pub(super) kind: Type,
    /// The type of the elements of an array.
    pub(super) items: Option<Type>,
    pub(super) files: Files,
}

/// The files that a value stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Files {
    #[default]
    None,
    /// The bytes of a file.
    One,
    /// An array of files.
    Many,
}

/// The properties that a schema declares.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Schema {
    pub(super) kind: Type,
    /// True if null is allowed.
    is_nullable: bool,
    /// The type of the elements of an array.
    pub(super) items: Option<Type>,
    pub(super) default: Option<Value>,
    pub(super) members: Vec<NamedValue>,
    /// The members that are arrays, objects or files, for forms.
    pub(super) fields: BTreeMap<String, FieldType>,
    /// True for an object that may have members which the schema does not name.
    pub(super) has_others: bool,
    /// `additionalProperties`, if present.
    additional: Option<bool>,
    required: BTreeSet<String>,
    /// The names of the members.
    known: BTreeSet<String>,
    /// The names of members in `oneOf` and `anyOf`.
    alternative: BTreeSet<String>,
    /// `readOnly`: only the server sends it.
    is_read_only: bool,
    files: Files,
}

impl Schema {
    /// Returns the type of the value as JSON: [`Type::Any`] where null is allowed, which no type of a hole includes.
    pub(super) fn json_type(&self) -> Type {
        if self.is_nullable {
            Type::Any
        } else {
            self.kind.clone()
        }
    }

    /// Returns true when it is an object whose members can be named one by one.
    pub(super) fn is_open_object(&self) -> bool {
        self.kind == Type::Object && !self.is_nullable
    }
}

/// Reads a schema.
pub(super) fn read<'v>(
    refs: &Refs<'v>,
    schema: Option<&'v Value>,
) -> Result<Schema, DocumentFault> {
    let mut found = Schema::default();
    if let Some(schema) = schema {
        merge(refs, schema, DEEPEST, &mut found)?;
    }
    if found.kind == Type::Any && !found.members.is_empty() {
        found.kind = Type::Object;
    }
    // A schema that names no members does not restrict them, nor does one that names some in another place only.
    let others = found.required.iter().chain(&found.alternative);
    let has_others = others.into_iter().any(|name| !found.known.contains(name));
    found.has_others = found
        .additional
        .unwrap_or(found.members.is_empty() || has_others);
    for member in &mut found.members {
        if found.required.contains(&member.name) {
            member.is_required = true;
        }
    }
    Ok(found)
}

/// Merges a schema into its siblings in `allOf`.
fn merge<'v>(
    refs: &Refs<'v>,
    schema: &'v Value,
    depth: usize,
    found: &mut Schema,
) -> Result<(), DocumentFault> {
    // OpenAPI 3.1 allows members next to `$ref`; those of the referring schema come last.
    let target = refs.follow(schema)?;
    if depth == 0 {
        return Err(DocumentFault::AllOf(DEEPEST));
    }
    let Some(members) = target.as_object() else {
        return Ok(());
    };
    for part in list(members, "allOf") {
        merge(refs, part, depth - 1, found)?;
    }
    read_type(refs, members, found);
    one_of(refs, members, found)?;
    if let Some(default) = schema.get("default").or_else(|| members.get("default")) {
        found.default = is_short(default).then(|| default.clone());
    }
    if members.get("readOnly") == Some(&Value::Bool(true)) {
        found.is_read_only = true;
    }
    if let Some(items) = members.get("items") {
        found.items = Some(brief(refs, items)?.kind);
    }
    match members.get("additionalProperties") {
        Some(Value::Bool(true) | Value::Object(_)) => found.additional = Some(true),
        Some(Value::Bool(false)) => found.additional = Some(false),
        Some(_) | None => {}
    }
    for name in list(members, "required").filter_map(Value::as_str) {
        refs.steps(1)?;
        refs.text(name)?;
        found.required.insert(name.to_owned());
    }
    if let Some(properties) = members.get("properties").and_then(Value::as_object) {
        read_members(refs, properties, found)?;
    }
    read_alternatives(refs, members, found)
}

/// Reads the names of members that only some values have.
fn read_alternatives<'v>(
    refs: &Refs<'v>,
    members: &'v Map<String, Value>,
    found: &mut Schema,
) -> Result<(), DocumentFault> {
    for part in list(members, "oneOf").chain(list(members, "anyOf")) {
        let part = refs.follow(part)?;
        let properties = part.get("properties").and_then(Value::as_object);
        for name in properties.into_iter().flat_map(Map::keys) {
            refs.steps(1)?;
            refs.text(name)?;
            found.alternative.insert(name.clone());
        }
    }
    Ok(())
}

fn read_members<'v>(
    refs: &Refs<'v>,
    properties: &'v Map<String, Value>,
    found: &mut Schema,
) -> Result<(), DocumentFault> {
    for (name, schema) in properties {
        refs.text(name)?;
        let brief = brief(refs, schema)?;
        let known = found.known.contains(name);
        // In a pattern, `...` means the unnamed members.
        if !known && !brief.is_read_only && name != "..." {
            found.known.insert(name.clone());
            if brief.files == Files::One || matches!(brief.kind, Type::Array | Type::Object) {
                let field = FieldType {
                    kind: brief.kind.clone(),
                    items: brief.items.clone(),
                    files: brief.files,
                };
                found.fields.insert(name.clone(), field);
            }
            found.members.push(NamedValue {
                name: name.clone(),
                kind: brief.json_type(),
                is_required: false,
                default: None,
            });
        }
    }
    Ok(())
}

/// Returns the type of a schema without its members, so that a recursive schema terminates.
fn brief<'v>(refs: &Refs<'v>, schema: &'v Value) -> Result<Schema, DocumentFault> {
    let mut found = Schema::default();
    let Some(members) = refs.follow(schema)?.as_object() else {
        return Ok(found);
    };
    read_type(refs, members, &mut found);
    one_of(refs, members, &mut found)?;
    if found.kind == Type::Any {
        // One level suffices for the usual `allOf: [{ $ref }]` around a reference.
        for part in list(members, "allOf") {
            if let Some(members) = refs.follow(part)?.as_object() {
                read_type(refs, members, &mut found);
            }
        }
    }
    if is_binary(members) {
        found.files = Files::One;
    }
    if let Some(items) = members.get("items")
        && let Some(items) = refs.follow(items)?.as_object()
    {
        let mut element = Schema::default();
        read_type(refs, items, &mut element);
        found.items = Some(element.kind);
        if is_binary(items) {
            found.files = Files::Many;
        }
    }
    if members.get("readOnly") == Some(&Value::Bool(true)) {
        found.is_read_only = true;
    }
    Ok(found)
}

/// Returns true for the bytes of a file (OpenAPI 3.0 §4.7.14.2, 3.1 §4.8.14.3).
fn is_binary(members: &Map<String, Value>) -> bool {
    let word = |name: &str| members.get(name).and_then(Value::as_str);
    let is_raw = word("contentMediaType").is_some() && word("contentEncoding").is_none();
    let is_json = word("contentMediaType").is_some_and(is_json);
    let may_be_text = matches!(word("type"), None | Some("string" | "file"));
    may_be_text && (word("format") == Some("binary") || (is_raw && !is_json))
}

fn list<'v>(members: &'v Map<String, Value>, name: &str) -> impl Iterator<Item = &'v Value> {
    let list = members.get(name).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// Returns true when a default is short enough to be written in a route.
fn is_short(default: &Value) -> bool {
    const LONGEST: usize = 1_000;
    const MOST: usize = 20;
    match default {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= LONGEST,
        Value::Array(elements) => {
            let is_nested = |value: &Value| value.is_array() || value.is_object();
            let is_plain = |value: &Value| !is_nested(value) && is_short(value);
            elements.len() <= MOST && elements.iter().all(is_plain)
        }
        Value::Object(members) => members.is_empty(),
    }
}

/// Reads `type`, `nullable`, `enum` and `const`, or infers the type where they are absent.
fn read_type(refs: &Refs<'_>, members: &Map<String, Value>, found: &mut Schema) {
    /// The number of types in JSON.
    const MOST_TYPES: usize = 7;
    if members.get("nullable") == Some(&Value::Bool(true)) {
        found.is_nullable = true;
    }
    let kind = match members.get("type") {
        Some(Value::String(word)) => type_of(word),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            let words: Vec<&str> = words.take(MOST_TYPES).collect();
            if words.contains(&"null") {
                found.is_nullable = true;
            }
            let others: Vec<&&str> = words.iter().filter(|word| **word != "null").collect();
            match others[..] {
                [one] => type_of(one),
                _ => Type::Any,
            }
        }
        Some(_) | None if members.contains_key("properties") => Type::Object,
        Some(_) | None => Type::Any,
    };
    if kind != Type::Any {
        found.kind = kind;
    }
    let allowed = match members.get("const") {
        Some(only) => Some(std::slice::from_ref(only)),
        None => members
            .get("enum")
            .and_then(Value::as_array)
            .map(Vec::as_slice),
    };
    if let Some(allowed) = allowed
        && matches!(found.kind, Type::Any | Type::String)
    {
        found.kind = enumeration(refs, allowed, found);
    }
}

fn type_of(word: &str) -> Type {
    match word {
        "string" => Type::String,
        "integer" => Type::Integer,
        "number" => Type::Number,
        "boolean" => Type::Boolean,
        "object" => Type::Object,
        "array" => Type::Array,
        _ => Type::Any,
    }
}

/// Returns an enumeration whose values a hole can name; else keeps the type.
fn enumeration(refs: &Refs<'_>, allowed: &[Value], found: &mut Schema) -> Type {
    if !refs.may_read_words(allowed) {
        // The unread values may include null.
        found.is_nullable = true;
        return found.kind.clone();
    }
    if allowed.contains(&Value::Null) {
        found.is_nullable = true;
    }
    let spellable = |word: &str| {
        let plain =
            |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
        !word.is_empty() && word.chars().all(plain)
    };
    let mut words = Vec::new();
    let mut seen = BTreeSet::new();
    for value in allowed.iter().filter(|value| !value.is_null()) {
        match value.as_str() {
            Some(word) if spellable(word) => {
                if seen.insert(word) {
                    words.push(word.to_owned());
                }
            }
            Some(_) => return Type::String,
            None => return found.kind.clone(),
        }
    }
    if words.is_empty() {
        found.kind.clone()
    } else {
        Type::Enum(words)
    }
}

/// Reads `oneOf` and `anyOf`: the common type of all choices, apart from null.
fn one_of<'v>(
    refs: &Refs<'v>,
    members: &'v Map<String, Value>,
    found: &mut Schema,
) -> Result<(), DocumentFault> {
    let mut common: Option<Type> = None;
    for part in list(members, "oneOf").chain(list(members, "anyOf")) {
        let mut choice = Schema::default();
        if let Some(members) = refs.follow(part)?.as_object() {
            if members.get("type").and_then(Value::as_str) == Some("null") {
                found.is_nullable = true;
                continue;
            }
            read_type(refs, members, &mut choice);
        }
        found.is_nullable |= choice.is_nullable;
        common = match common {
            None => Some(choice.kind),
            Some(kind) if kind == choice.kind => Some(kind),
            Some(_) => Some(Type::Any),
        };
    }
    if let Some(kind) = common {
        if kind == Type::Object {
            // Each choice may have members of its own.
            found.additional = Some(true);
        }
        if found.kind == Type::Any {
            found.kind = kind;
        }
    }
    Ok(())
}
