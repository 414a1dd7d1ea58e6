//! The reasons why a value does not pass a schema.

use super::meter::Exceeded;

/// A violation of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct SchemaViolation {
    /// A JSON pointer (RFC 6901) to the value; empty for the whole value.
    pub pointer: String,
    /// The violation; further ones follow, each with its pointer. The text contains only names of members, never their
    /// values.
    pub what: String,
}

/// The reason why a value was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The value violates the schema.
    #[error(transparent)]
    Violation(SchemaViolation),
    /// Validation exceeded its budget.
    #[error("validation against the schema exceeds its budget")]
    Exceeded(Exceeded),
}
