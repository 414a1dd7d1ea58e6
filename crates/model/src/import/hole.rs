//! Names and spellings of holes. Used by `import::bind` and `import::values`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::model::List;
use super::schema::Type;

/// The meaning of a hole without a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Absence {
    /// The call is refused.
    Required,
    /// `?`: absent on the other side, too.
    Optional,
    /// `=text`: replaced by the default.
    Default(String),
}

/// Returns a valid name of a hole for any name: letters, digits and `_`.
pub(super) fn name(wire: &str) -> String {
    let mut name = String::new();
    for character in wire.chars() {
        if character.is_ascii_alphanumeric() || character == '_' {
            name.push(character);
        } else if !name.ends_with('_') {
            name.push('_');
        }
    }
    // Trims `_` at the ends that replaced brackets or signs.
    let has_underscore = wire.starts_with('_') || wire.ends_with('_');
    let name = if has_underscore {
        name.as_str()
    } else {
        name.trim_matches('_')
    };
    match name.chars().next() {
        None => "value".to_owned(),
        Some(_) if name.chars().all(|character| character == '_') => "value".to_owned(),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        // `{>now}` is the current time.
        Some(_) if name == "now" => "now_".to_owned(),
        Some(_) => name.to_owned(),
    }
}

/// The names of holes in use, with the next number for each name.
#[derive(Debug, Clone, Default)]
pub(super) struct HoleNames {
    used: BTreeSet<String>,
    numbers: BTreeMap<String, usize>,
}

impl HoleNames {
    /// Reserves a hole name for any name, unlike all names in use.
    pub(super) fn unique(&mut self, wire: &str) -> String {
        let wanted = name(wire);
        let mut found = wanted.clone();
        while !self.used.insert(found.clone()) {
            let number = self.numbers.entry(wanted.clone()).or_insert(1);
            *number += 1;
            found = format!("{wanted}_{number}");
        }
        found
    }
}

/// Renders a hole: `{name:type?=default}`.
pub(super) fn spell(name: &str, kind: &Type, list: Option<List>, absence: &Absence) -> String {
    let mut text = format!("{{{name}");
    let word = match kind {
        Type::Any => String::new(),
        Type::String => "string".to_owned(),
        Type::Integer => "integer".to_owned(),
        Type::Number => "number".to_owned(),
        Type::Boolean => "boolean".to_owned(),
        Type::Object => "object".to_owned(),
        Type::Array => "array".to_owned(),
        Type::Enum(words) => format!("enum({})", words.join("|")),
    };
    if !word.is_empty() {
        text.push(':');
        text.push_str(&word);
    }
    match list {
        Some(List::Repeated) => text.push_str("[]"),
        Some(List::Commas) => text.push_str("[,]"),
        Some(List::Pipes) => text.push_str("[|]"),
        Some(List::Spaces) => text.push_str("[ ]"),
        None => {}
    }
    match absence {
        Absence::Required => {}
        Absence::Optional => text.push('?'),
        Absence::Default(default) => {
            text.push('=');
            text.push_str(default);
        }
    }
    text.push('}');
    text
}

/// Renders a default as a hole writes it. Returns `None` if it is of another type or has no spelling.
pub(super) fn default(kind: &Type, list: Option<List>, default: &Value) -> Option<String> {
    if list.is_some() {
        return None;
    }
    match (kind, default) {
        (Type::Integer, Value::Number(number)) if number.is_i64() || number.is_u64() => {
            Some(number.to_string())
        }
        (Type::Number, Value::Number(number)) => Some(number.to_string()),
        (Type::Boolean, Value::Bool(value)) => Some(value.to_string()),
        (Type::String | Type::Any, Value::String(text)) if is_plain(text) => Some(text.clone()),
        (Type::Enum(words), Value::String(text)) if words.contains(text) => Some(text.clone()),
        _ => None,
    }
}

/// Returns true when a text is written unquoted after `=`.
pub(super) fn is_plain(text: &str) -> bool {
    let plain = |character: char| character.is_ascii_alphanumeric() || "_-.:/ ".contains(character);
    // A text that is valid JSON would be parsed as JSON.
    let is_json = serde_json::from_str::<Value>(text).is_ok();
    !text.is_empty()
        && text.len() <= 100
        && text.trim() == text
        && text.chars().all(plain)
        && !is_json
}
