//! Holes: named gaps in a pattern, with the type and the absence that hold for them on both sides.
//!
//! This module owns the language of holes and the conversion of one value between a text (in a URL) and
//! JSON. It is where the full pair of patterns will live: a pattern reads a value into bindings and writes
//! bindings into a value. Law: what `Scalar::read` makes of a text, `Scalar::write` makes that text again.

mod parse;
mod value;

pub use parse::{PatternError, Token, parse_hole, tokens};
pub(in crate::domain) use parse::{hole_name, parse_type};
pub use value::Presence;

use crate::domain::json::Json;

/// A named gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// The name; the same name on both sides is the same value.
    pub name: String,
    /// What the value looks like.
    pub shape: Shape,
    /// What it means that there is none.
    pub absence: Absence,
}

/// One value, or a list of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// `{x}`: one value.
    One(Scalar),
    /// `{x:string[]}`: a repeated key.
    Repeated(Scalar),
    /// `{x:string[,]}`: one text, separated by commas.
    Separated(Scalar),
}

/// The type of a single value. In a URL each is a text; in JSON it has its own kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scalar {
    /// Any text.
    String,
    /// A number without fraction and exponent; it keeps its text.
    Integer,
    /// Any JSON number; it keeps its text.
    Number,
    /// `true` or `false`.
    Boolean,
    /// One of these texts.
    Enum(Vec<String>),
}

/// What it means that a hole has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It is the caller's error.
    Refused,
    /// `{x?}`: absent on one side is absent on the other.
    Kept,
    /// `{x=50}`: absent reads as the default, which is always written.
    Filled(Json),
    /// `{x?=50}`: absent reads as the default, which is not written.
    Implied(Json),
}

impl Hole {
    /// Whether a call without a value for this hole is refused.
    #[must_use]
    pub fn is_required(&self) -> bool {
        matches!(self.absence, Absence::Refused)
    }

    /// The value that stands for an absent one.
    #[must_use]
    pub fn default(&self) -> Option<&Json> {
        match &self.absence {
            Absence::Filled(default) | Absence::Implied(default) => Some(default),
            Absence::Refused | Absence::Kept => None,
        }
    }

    /// Whether this value is left out when written.
    #[must_use]
    pub fn leaves_out(&self, value: &[u8]) -> bool {
        matches!(&self.absence, Absence::Implied(default) if default.as_bytes() == value)
    }
}

impl Shape {
    /// The type of the value, or of each element.
    #[must_use]
    pub fn scalar(&self) -> &Scalar {
        match self {
            Shape::One(scalar) | Shape::Repeated(scalar) | Shape::Separated(scalar) => scalar,
        }
    }
}

#[cfg(test)]
mod tests;
