//! JSON Schema: what params and results must be like, where patterns say too little.
//!
//! A schema is compiled when it is loaded, by draft 2020-12 unless its `$schema` names another one. It stays within
//! itself: a `$ref` leads to its own `#/…`, never to a file or an address. Regular expressions take linear time. Laws:
//! no value makes it panic; what a schema is asked about is opened, so a value that two parsers could read
//! differently is refused here as it is by patterns.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::{Map, Number, Value};

use super::json::{Json, Kind};

/// As many faults are told at once.
const MOST_FAULTS: usize = 3;
/// The compiled size of one regular expression, in bytes.
const MOST_REGEX: usize = 1 << 20;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
}

/// What a schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Violation {
    /// Where in the value: a JSON pointer (RFC 6901), empty for the value as a whole.
    pub pointer: String,
    /// What is wrong there; further faults follow, each with its pointer. Of the value
    /// it says names of members only.
    pub what: String,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it is no schema, for whoever wrote it.
    pub fn compile(schema: &Value) -> Result<Schema, String> {
        let patterns = PatternOptions::regex().size_limit(MOST_REGEX);
        let options = jsonschema::options()
            .offline()
            .with_pattern_options(patterns);
        match options.build(schema) {
            Ok(validator) => Ok(Schema { validator }),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`Violation`] with the first few faults.
    pub fn check(&self, value: &Json) -> Result<(), Violation> {
        let value = open(value, &mut String::new())?;
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let mut faults = self.validator.iter_errors(&value);
        let Some(first) = faults.next() else {
            return Ok(());
        };
        let pointer = first.instance_path().to_string();
        let mut what = masked(&first);
        for fault in faults.take(MOST_FAULTS - 1) {
            let place = fault.instance_path();
            what.push_str(&format!("; {place}: {}", masked(&fault)));
        }
        Err(Violation { pointer, what })
    }
}

/// A fault without the value that has it.
fn masked(fault: &ValidationError<'_>) -> String {
    fault.masked_with("it").to_string()
}

fn refusal(error: &ValidationError<'_>) -> String {
    if let ValidationErrorKind::Referencing(error) = error.kind() {
        if let ReferencingError::Unretrievable { uri, .. } = error {
            return format!(
                "`$ref` leads to `{uri}`, out of the schema; write what it names under `$defs`, and `#/$defs/NAME`"
            );
        }
        return format!("the schema cannot be resolved: {error}");
    }
    let place = error.instance_path();
    format!("is no JSON Schema: at `{place}`, {error}")
}

/// The value as the validator takes it.
fn open(value: &Json, pointer: &mut String) -> Result<Value, Violation> {
    let fault = |pointer: &str, what: &str| Violation {
        pointer: pointer.to_owned(),
        what: what.to_owned(),
    };
    match value.kind() {
        Kind::Null => Ok(Value::Null),
        Kind::Boolean => Ok(Value::Bool(value.as_bytes() == b"true")),
        Kind::Number => match serde_json::from_slice::<Number>(value.as_bytes()) {
            Ok(number) => Ok(Value::Number(number)),
            Err(_) => Err(fault(pointer, "it is no number of 64 bits")),
        },
        Kind::String => match value.text() {
            Some(Ok(text)) => Ok(Value::String(text)),
            Some(Err(error)) => Err(fault(pointer, &error.to_string())),
            None => Ok(Value::Null),
        },
        Kind::Array => {
            let mut items = Vec::new();
            for (index, item) in value.elements().enumerate() {
                let item = below(pointer, &index.to_string(), |pointer| {
                    open(&value.piece(item), pointer)
                });
                items.push(item?);
            }
            Ok(Value::Array(items))
        }
        Kind::Object => {
            let members = value.open();
            let members = members.map_err(|error| fault(pointer, &error.to_string()))?;
            let mut object = Map::with_capacity(members.len());
            for member in members {
                let inside = below(pointer, &member.name, |pointer| {
                    open(&value.piece(member.value), pointer)
                });
                object.insert(member.name.into_owned(), inside?);
            }
            Ok(Value::Object(object))
        }
    }
}

/// Goes one step down for as long as `read` takes.
fn below<T>(pointer: &mut String, step: &str, read: impl FnOnce(&mut String) -> T) -> T {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&step.replace('~', "~0").replace('/', "~1"));
    let read = read(pointer);
    pointer.truncate(length);
    read
}

#[cfg(test)]
mod tests;
