//! JSON as a value whose numbers are texts: `1.10` is not `1.1`, and thirty digits stay thirty digits.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::value::RawValue;

/// A value; the order of members is no part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(BTreeMap<String, Json>),
}

impl Json {
    pub(crate) fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    pub(crate) fn number(number: impl ToString) -> Json {
        Json::Number(number.to_string())
    }

    pub(crate) fn object<const N: usize>(members: [(&str, Json); N]) -> Json {
        let members = members.map(|(name, value)| (name.to_owned(), value));
        Json::Object(members.into())
    }

    pub(crate) fn parse(text: &str) -> Json {
        fn read<'t, T: serde::Deserialize<'t>>(text: &'t str) -> T {
            serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
        }
        let text = read::<&RawValue>(text).get();
        match text.as_bytes()[0] {
            b'{' => {
                let members: BTreeMap<String, &RawValue> = read(text);
                let members = members.into_iter();
                Json::Object(
                    members
                        .map(|(name, raw)| (name, Json::parse(raw.get())))
                        .collect(),
                )
            }
            b'[' => {
                let elements: Vec<&RawValue> = read(text);
                Json::List(elements.iter().map(|raw| Json::parse(raw.get())).collect())
            }
            b'"' => Json::Text(read(text)),
            b'n' => Json::Null,
            b't' | b'f' => Json::Boolean(read(text)),
            _ => Json::Number(text.to_owned()),
        }
    }

    /// The member of an object.
    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.get(name),
            Json::Null | Json::Boolean(_) | Json::Number(_) | Json::Text(_) | Json::List(_) => None,
        }
    }

    /// The member of an object, which must be there.
    pub(crate) fn at(&self, name: &str) -> &Json {
        self.get(name)
            .unwrap_or_else(|| panic!("no `{name}` in {self}"))
    }

    pub(crate) fn elements(&self) -> &[Json] {
        if let Json::List(elements) = self {
            return elements;
        }
        panic!("no list: {self}")
    }

    /// The text of a string.
    pub(crate) fn as_text(&self) -> &str {
        if let Json::Text(text) = self {
            return text;
        }
        panic!("no text: {self}")
    }

    /// The value as a URL or a header has it.
    pub(crate) fn plain(&self) -> String {
        if let Json::Text(text) = self {
            return text.clone();
        }
        self.to_string()
    }
}

/// Compact JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        match self {
            Json::Null => f.write_str("null"),
            Json::Boolean(value) => write!(f, "{value}"),
            Json::Number(text) => f.write_str(text),
            Json::Text(text) => f.write_str(&quoted(text)),
            Json::List(elements) => {
                let elements: Vec<String> = elements.iter().map(Json::to_string).collect();
                write!(f, "[{}]", elements.join(","))
            }
            Json::Object(members) => {
                let member = |(name, value): (&String, &Json)| format!("{}:{value}", quoted(name));
                let members: Vec<String> = members.iter().map(member).collect();
                write!(f, "{{{}}}", members.join(","))
            }
        }
    }
}
