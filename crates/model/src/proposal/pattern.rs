//! Patterns and rows as TOML. Used by `proposal`.
//!
//! Law: the text is one line of valid TOML for any name and text.

use serde_json::Value;

use crate::import::{bare, quoted};

/// A pattern of a part of a response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RowPattern {
    Hole(String),
    /// A literal value.
    Literal(Value),
    Object(Vec<(String, RowPattern)>),
    List(Vec<RowPattern>),
}

impl RowPattern {
    pub(super) fn object(members: Vec<(&str, RowPattern)>) -> RowPattern {
        let members = members.into_iter();
        RowPattern::Object(
            members
                .map(|(name, pattern)| (name.to_owned(), pattern))
                .collect(),
        )
    }

    /// Renders the pattern.
    pub(super) fn toml(&self) -> String {
        match self {
            RowPattern::Hole(name) => quoted(&format!("{{{name}}}")),
            RowPattern::Literal(Value::Null) => quoted("{_:null}"),
            RowPattern::Literal(Value::String(text)) => {
                quoted(&text.replace('{', "{{").replace('}', "}}"))
            }
            RowPattern::Literal(value) => value.to_string(),
            RowPattern::Object(members) if members.is_empty() => "{}".to_owned(),
            RowPattern::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, one)| format!("{} = {}", bare(name), one.toml()));
                format!("{{ {} }}", members.collect::<Vec<_>>().join(", "))
            }
            RowPattern::List(elements) => {
                let elements: Vec<String> = elements.iter().map(RowPattern::toml).collect();
                format!("[{}]", elements.join(", "))
            }
        }
    }
}
