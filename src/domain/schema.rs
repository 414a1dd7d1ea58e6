//! JSON Schema: what params and results must be like, where patterns say too little.
//!
//! A schema is compiled when it is loaded, by draft 2020-12 unless its `$schema` names another one. It stays within
//! itself: a `$ref` leads to its own `#/…`, never to a file or an address. Regular expressions take linear time. Laws:
//! no value makes it panic; what a schema is asked about is opened, so a value that two parsers could read
//! differently is refused here as it is by patterns. A validation has a budget of steps and memory; where it keeps
//! within it, its verdict is that of the validator without a budget.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;

use self::meter::Meter;
use self::node::{Handle, Metered};
use self::value::ValueTree;
use super::json::Json;

mod equality;
mod meter;
mod node;
mod recursion;
mod value;

pub use self::meter::{Exceeded, MemoryShare};

/// As many faults are told at once.
const MOST_FAULTS: usize = 3;
/// The compiled size of one regular expression, in bytes.
const MOST_REGEX: usize = 1 << 20;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator<Metered>,
    /// Tells the texts of two schemas apart.
    source_hash: u64,
    /// The limit that counts the memory of validations.
    room: OnceLock<Arc<dyn MemoryShare>>,
}

/// What a schema does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SchemaViolation {
    /// Where in the value: a JSON pointer (RFC 6901), empty for the value as a whole.
    pub pointer: String,
    /// What is wrong there; further faults follow, each with its pointer. Of the value
    /// it says names of members only.
    pub what: String,
}

/// Why a value was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema does not allow it.
    #[error(transparent)]
    Violation(SchemaViolation),
    /// The verdict would take more than the budget.
    #[error("checking it against the schema takes more than the budget of one validation")]
    Exceeded(Exceeded),
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it is no schema, for whoever wrote it.
    pub fn compile(schema: &Value) -> Result<Schema, String> {
        recursion::refuse(schema)?;
        let patterns = PatternOptions::regex().size_limit(MOST_REGEX);
        let options = jsonschema::options_for::<Metered>()
            .offline()
            .with_pattern_options(patterns);
        match options.build(schema) {
            Ok(validator) => Ok(Schema {
                validator,
                source_hash: hash(schema),
                room: OnceLock::new(),
            }),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Returns whether both were compiled from the same JSON.
    #[must_use]
    pub fn has_source_of(&self, other: &Schema) -> bool {
        self.source_hash == other.source_hash
    }

    /// Counts the memory of all validations from now on in `room`. Only the first call has an effect.
    pub fn count_memory_in(&self, room: &Arc<dyn MemoryShare>) {
        self.room.get_or_init(|| room.clone());
    }

    /// Whether the schema names `null` as a value: it allows it, and does not allow everything.
    #[must_use]
    pub fn promises_null(&self) -> bool {
        let allows = |text: &'static str| self.check(&Json::literal(text)).is_ok();
        allows("null") && !["true", "0", "\"\"", "[]", "{}"].into_iter().all(allows)
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`SchemaError`] with the first few faults, or the part of the budget that was exceeded.
    pub fn check(&self, value: &Json) -> Result<(), SchemaError> {
        let room = self.room.get().map(|room| &**room);
        let meter = Meter::new(value.as_bytes().len(), room);
        let tree = ValueTree::read(value, &meter)?;
        let in_use = meter.used();
        let node = Handle::new(&tree.root, tree.longest_pointer, &meter);
        let is_valid = self.validator.is_valid(node);
        match meter.exceeded() {
            Some(exceeded) => Err(SchemaError::Exceeded(exceeded)),
            None if is_valid => Ok(()),
            None => {
                let violation = self.violation(node, &meter, in_use);
                Err(SchemaError::Violation(violation))
            }
        }
    }

    /// The first few faults of a value that is invalid, or the first one, as far as a small budget reaches.
    fn violation(&self, node: Handle<'_>, meter: &Meter<'_>, in_use: usize) -> SchemaViolation {
        meter.collect_errors(in_use);
        let mut faults = self.validator.iter_errors(node);
        let few = first_of(faults.by_ref().take(MOST_FAULTS));
        drop(faults);
        if let (Some(violation), None) = (few, meter.exceeded()) {
            return violation;
        }
        meter.collect_errors(in_use);
        let one = first_of(self.validator.validate(node).err());
        if let (Some(violation), None) = (one, meter.exceeded()) {
            return violation;
        }
        SchemaViolation {
            pointer: String::new(),
            what: "it does not fit the schema, at more places than are searched".to_owned(),
        }
    }
}

/// Several faults as one, if there are any.
fn first_of<'e>(faults: impl IntoIterator<Item = ValidationError<'e>>) -> Option<SchemaViolation> {
    let mut faults = faults.into_iter();
    let first = faults.next()?;
    let pointer = first.instance_path().to_string();
    let mut what = masked(&first);
    for fault in faults {
        let place = fault.instance_path();
        what.push_str(&format!("; {place}: {}", masked(&fault)));
    }
    Some(SchemaViolation { pointer, what })
}

/// A fault without the value that has it.
fn masked(fault: &ValidationError<'_>) -> String {
    fault.masked_with("it").to_string()
}

fn hash(schema: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    schema.hash(&mut hasher);
    hasher.finish()
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

#[cfg(test)]
mod tests;
