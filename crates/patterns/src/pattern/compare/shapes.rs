//! The subsumption of shapes, by which holes are compared. Used by `pattern::compare`.

use crate::pattern::{Pattern, Scalar, Shape};

/// Returns true if every value of one shape has the other.
pub(super) fn shape_within(one: &Shape, other: &Shape) -> bool {
    match (one, other) {
        (_, Shape::Any)
        | (Shape::Object, Shape::Object)
        | (Shape::Null, Shape::Null)
        | (Shape::Array | Shape::Repeated(_) | Shape::Separated(..), Shape::Array) => true,
        (Shape::One(one), Shape::One(other))
        | (
            Shape::Repeated(one) | Shape::Separated(one, _),
            Shape::Repeated(other) | Shape::Separated(other, _),
        ) => scalar_within(one, other),
        (
            Shape::Any
            | Shape::One(_)
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Object
            | Shape::Array
            | Shape::Null,
            _,
        ) => false,
    }
}

/// Returns true if every JSON value of one type has the other.
fn scalar_within(one: &Scalar, other: &Scalar) -> bool {
    match (one, other) {
        (Scalar::Enum(_), Scalar::String) | (Scalar::Integer, Scalar::Number) => true,
        (Scalar::Enum(one), Scalar::Enum(other)) => one.iter().all(|word| other.contains(word)),
        (
            Scalar::String | Scalar::Integer | Scalar::Number | Scalar::Boolean | Scalar::Enum(_),
            _,
        ) => one == other,
    }
}

/// Returns true if a hole occurs twice in a pattern, which requires equal values.
pub(super) fn repeats(pattern: &Pattern) -> bool {
    let (mut seen, mut twice) = (Vec::new(), false);
    pattern.slots(&mut |slot| {
        twice |= slot.binds().is_some_and(|hole| seen.contains(&hole));
        seen.extend(slot.binds());
    });
    twice
}
