//! Equality of values, as exact as their texts allow.
//!
//! Laws: an equivalence; white space, the order of members and the spelling of strings do not matter; numbers are
//! equal by their text (`1.0` is not `1`). The cost is that of reading both once and of sorting members.

use super::index::{JsonIndex, Spelled};
use super::{Json, JsonKind, kind_of};

impl Json {
    /// Returns whether both are the same value. Values of a repeated name must be the same in the same order. A string
    /// with a lone surrogate, which is not Unicode text, equals only its own spelling.
    #[must_use]
    pub fn same(&self, other: &Json) -> bool {
        let (one, other) = (self.as_bytes(), other.as_bytes());
        if one == other {
            return true;
        }
        match (kind_of(one), kind_of(other)) {
            (JsonKind::Object, JsonKind::Object) | (JsonKind::Array, JsonKind::Array) => {
                JsonIndex::read(one)
                    .root()
                    .same(&JsonIndex::read(other).root())
            }
            (JsonKind::String, JsonKind::String) => Spelled::read(one) == Spelled::read(other),
            // Values of the other kinds have one spelling only.
            _ => false,
        }
    }
}
