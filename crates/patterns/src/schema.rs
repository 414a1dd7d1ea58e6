//! JSON Schema validation of params and results.
//!
//! A schema is compiled on load, by draft 2020-12 unless its `$schema` names another one. A `$ref` may point only to
//! the schema's own `#/…`, never to a file or an address. Regular expressions take linear time. Laws: no value causes a
//! panic; a validated value is opened, so a value that two parsers could read differently is rejected as patterns
//! reject it; validation has a budget of steps and memory, and within it the verdict equals that of the validator
//! without a budget.

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
mod error;
mod meter;
mod node;
mod recursion;
mod value;

pub use self::error::{SchemaError, SchemaViolation};
pub use self::meter::{Exceeded, MemoryShare};

/// The maximum number of violations in one message.
const MOST_FAULTS: usize = 3;
/// The compiled size of one regular expression, in bytes.
const MOST_REGEX: usize = 1 << 20;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    validator: Validator<Metered>,
    /// A hash that distinguishes the texts of two schemas.
    source_hash: u64,
    /// The limit that counts the memory of validations.
    memory: OnceLock<Arc<dyn MemoryShare>>,
}

impl Schema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason why the schema is invalid, for its author.
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
                memory: OnceLock::new(),
            }),
            Err(error) => Err(refusal(&error)),
        }
    }

    /// Returns whether both were compiled from the same JSON.
    #[must_use]
    pub fn has_source_of(&self, other: &Schema) -> bool {
        self.source_hash == other.source_hash
    }

    /// Counts the memory of all later validations in `memory`. Only the first call has an effect.
    pub fn count_memory_in(&self, memory: &Arc<dyn MemoryShare>) {
        self.memory.get_or_init(|| memory.clone());
    }

    /// Returns whether the schema allows `null` explicitly, rather than by allowing everything.
    #[must_use]
    pub fn promises_null(&self) -> bool {
        let allows = |text: &'static str| self.check(&Json::literal(text)).is_ok();
        allows("null") && !["true", "0", "\"\"", "[]", "{}"].into_iter().all(allows)
    }

    /// Checks a value.
    ///
    /// # Errors
    /// [`SchemaError`] with the first few violations, or the exceeded part of the budget.
    pub fn check(&self, value: &Json) -> Result<(), SchemaError> {
        let memory = self.memory.get().map(|memory| &**memory);
        let meter = Meter::new(value.as_bytes().len(), memory);
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

    /// Returns the first few violations of an invalid value, or only the first one if the small budget for them runs
    /// out.
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
            what: "it violates the schema; finding the places exceeds the budget".to_owned(),
        }
    }
}

/// Joins several violations into one, if there are any.
fn first_of<'e>(faults: impl IntoIterator<Item = ValidationError<'e>>) -> Option<SchemaViolation> {
    let mut faults = faults.into_iter();
    let first = faults.next()?;
    let pointer = first.instance_path().to_string();
    let mut what = masked(&first);
    for fault in faults {
        let pointer = fault.instance_path();
        what.push_str(&format!("; {pointer}: {}", masked(&fault)));
    }
    Some(SchemaViolation { pointer, what })
}

/// Returns the text of a violation without the value.
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
                "`$ref` points to `{uri}`, outside the schema; copy its target to `$defs` and write `#/$defs/NAME`"
            );
        }
        return format!("the schema cannot be resolved: {error}");
    }
    let pointer = error.instance_path();
    format!("is not a JSON Schema: at `{pointer}`, {error}")
}

#[cfg(test)]
mod tests;
