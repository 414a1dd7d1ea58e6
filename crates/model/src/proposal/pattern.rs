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
            RowPattern::Literal(value) => literal(value),
            RowPattern::Object(members) => {
                object(members.iter().map(|(name, one)| (name, one.toml())))
            }
            RowPattern::List(elements) => list(elements.iter().map(RowPattern::toml)),
        }
    }
}

/// Renders a value as a pattern that is equal to it alone.
fn literal(value: &Value) -> String {
    match value {
        Value::Null => quoted("{_:null}"),
        Value::Bool(value) => value.to_string(),
        // TOML has no integers beyond 64 bits with a sign.
        Value::Number(number) if number.is_u64() && !number.is_i64() => quoted("{_}"),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(&text.replace('{', "{{").replace('}', "}}")),
        Value::Array(elements) => list(elements.iter().map(literal)),
        Value::Object(members) => object(members.iter().map(|(name, one)| (name, literal(one)))),
    }
}

fn object<'n>(members: impl Iterator<Item = (&'n String, String)>) -> String {
    let members = members.map(|(name, value)| format!("{} = {value}", bare(name)));
    let members: Vec<String> = members.collect();
    match members.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", members.join(", ")),
    }
}

fn list(elements: impl Iterator<Item = String>) -> String {
    format!("[{}]", elements.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_known_result_beside_a_204_is_a_literal() {
        let report = include_bytes!("../../../../fuzz/corpus/mismatch_report/literal");
        let report = crate::proposal::MismatchReport::read(report).unwrap();
        let row = crate::proposal::propose(&report.routes[0].groups[0]).unwrap();
        assert!(row.rpc().contains("ok = true"), "{}", row.rpc());
        assert!(row.rest().contains("status = 204"), "{}", row.rest());
        let read: toml::Table = toml::from_str(&format!("row = {}", row.toml())).unwrap();
        assert_eq!(read["row"]["rpc"]["result"]["ok"].as_bool(), Some(true));
    }

    #[test]
    fn literals_are_toml() {
        let value = json!({ "ok": true, "a b": ["{x}", "b", "c", "d", "e", null, { "in": {} }], "n": 1.5e3, "u": u64::MAX });
        let text = RowPattern::Literal(value).toml();
        assert_eq!(
            text,
            r#"{ "a b" = ["{{x}}", "b", "c", "d", "e", "{_:null}", { in = {} }], n = 1500.0, ok = true, u = "{_}" }"#
        );
        let read: toml::Table = toml::from_str(&format!("row = {text}")).unwrap();
        assert_eq!(read["row"]["ok"].as_bool(), Some(true));
    }
}
