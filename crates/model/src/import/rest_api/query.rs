//! The arguments of a tool as query parameters. Used by `rest_api` and `rest_api::openapi`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::import::hole::HoleNames;
use crate::import::write::quoted;
use dualgauge_patterns::percent::{self, Keep};

/// The most arguments of a call by GET.
const MOST: usize = 100;

/// The form of one argument in a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueryForm {
    /// A value of this type.
    Scalar(&'static str),
    /// Several values of this type, one parameter each.
    List(&'static str),
    /// JSON.
    Json,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryArgument {
    pub(super) name: String,
    pub(super) form: QueryForm,
    pub(super) is_required: bool,
    hole: String,
}

/// The arguments of a call by GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueryCall {
    pub(super) arguments: Vec<QueryArgument>,
}

impl QueryCall {
    /// Reads the arguments that the schema names.
    pub(super) fn new(schema: Option<&Value>) -> Result<QueryCall, String> {
        let absent = Value::Bool(true);
        let schema = schema.unwrap_or(&absent);
        for word in ["$ref", "allOf", "anyOf", "oneOf"] {
            if schema.get(word).is_some() {
                return Err(format!("its inputSchema has `{word}`"));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.cloned().unwrap_or_default();
        if properties.len() > MOST {
            return Err(format!("it has more than {MOST} arguments"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let required: BTreeSet<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(unnamed) = required
            .iter()
            .find(|name| !properties.contains_key(**name))
        {
            let unnamed = crate::import::printable(unnamed);
            return Err(format!(
                "it requires `{unnamed}`, which its inputSchema does not describe"
            ));
        }
        let mut holes = HoleNames::default();
        let mut arguments = Vec::new();
        for (name, property) in &properties {
            // In a pattern, `...` means the unnamed members.
            if name.is_empty() || name == "..." {
                return Err("an argument has no usable name".to_owned());
            }
            arguments.push(QueryArgument {
                name: name.clone(),
                form: form(property),
                is_required: required.contains(name.as_str()),
                hole: holes.unique(name),
            });
        }
        Ok(QueryCall { arguments })
    }

    /// Returns the query as a pattern.
    pub(super) fn query(&self) -> String {
        let mut query = String::new();
        for argument in &self.arguments {
            query.push(if query.is_empty() { '?' } else { '&' });
            percent::encode(&argument.name, Keep::Nothing, &mut query);
            let kind = match argument.form {
                QueryForm::Scalar(kind) => kind.to_owned(),
                QueryForm::List(kind) => format!("{kind}[]"),
                QueryForm::Json => "json".to_owned(),
            };
            let absence = if argument.is_required { "" } else { "?" };
            query.push_str(&format!("={{{}:{kind}{absence}}}", argument.hole));
        }
        query
    }

    /// Returns the query for people.
    pub(super) fn names(&self) -> String {
        let mut names = String::new();
        for argument in &self.arguments {
            names.push(if names.is_empty() { '?' } else { '&' });
            percent::encode(&argument.name, Keep::Nothing, &mut names);
            names.push('=');
        }
        names
    }

    /// Returns the arguments as TOML.
    pub(super) fn arguments(&self) -> String {
        let members = self.arguments.iter().map(|argument| {
            format!(
                "{} = {}",
                quoted(&argument.name),
                quoted(&format!("{{{}}}", argument.hole))
            )
        });
        let members: Vec<String> = members.collect();
        match members.is_empty() {
            true => "{}".to_owned(),
            false => format!("{{ {} }}", members.join(", ")),
        }
    }
}

fn form(property: &Value) -> QueryForm {
    if let Some(kind) = scalar(property) {
        return QueryForm::Scalar(kind);
    }
    if property.get("type").and_then(Value::as_str) == Some("array")
        && let Some(kind) = property.get("items").and_then(scalar)
    {
        return QueryForm::List(kind);
    }
    // `anyOf: [T, null]` is how Python's tools write an optional argument.
    let choices = property.get("anyOf").and_then(Value::as_array);
    let is_null = |choice: &&Value| choice.get("type").and_then(Value::as_str) == Some("null");
    let choices: Vec<&Value> = choices
        .into_iter()
        .flatten()
        .filter(|choice| !is_null(choice))
        .collect();
    match choices[..] {
        [only] if only.get("anyOf").is_none() => form(only),
        _ => QueryForm::Json,
    }
}

/// Returns the type of a scalar, which may be `null` as well.
fn scalar(schema: &Value) -> Option<&'static str> {
    let word = match schema.get("type")? {
        Value::String(word) => word.as_str(),
        Value::Array(words) => {
            let words = words.iter().filter_map(Value::as_str);
            let mut words = words.filter(|word| *word != "null");
            match (words.next(), words.next()) {
                (Some(word), None) => word,
                _ => return None,
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
    };
    let kinds = ["string", "integer", "number", "boolean"];
    kinds.into_iter().find(|kind| *kind == word)
}
