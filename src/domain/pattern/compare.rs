//! The specificity relation between patterns, by which routes and outcomes are chosen: A is more specific than B if
//! every value that matches A matches B.
//!
//! This module knows neither routes nor outcomes. Laws, tested on generated patterns: [`within`] is reflexive and
//! transitive, and never true if a value of the one does not match the other; the result of [`intersection()`] matches
//! both, and without a result no value matches both. Two cases are incomplete, and may only miss a result: JSON inside
//! a longer text is compared by a few samples. So are the values of a hole that occurs several times in a pattern with
//! different restrictions.

mod grammar;
mod hole_links;
mod intersection;
mod repeated_holes;
mod subsumption;
mod texts;
mod words;

use super::{
    Absence, Bindings, Codec, Null, ObjectPattern, Pattern, PatternReader, Role, Scalar, Shape,
    Slot, UnknownMembers,
};
use crate::domain::json::{Json, same_ignoring_case};
use grammar::{Fit, Grammar};
use texts::TextSet;

#[cfg(test)]
pub(in crate::domain::pattern) use intersection::{array, object};
pub use intersection::{intersection, optional_intersection, sample};
pub use subsumption::Subsumption;
pub use words::{words_intersection, words_within};

/// The treatment of members that a pattern does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberPolicy {
    /// For responses: unnamed members do not matter, and `{}` matches only the empty object.
    Open,
    /// For requests among sibling routes: a value with an unnamed member does not match.
    Closed,
}

impl MemberPolicy {
    /// Returns true if the value may have members that the object does not name.
    fn is_loose(self, object: &ObjectPattern) -> bool {
        match self {
            MemberPolicy::Open => !object.is_empty(),
            MemberPolicy::Closed => object.rest.is_some(),
        }
    }

    /// Returns true if an unnamed member may have this name, given that unnamed members are allowed.
    fn allows(self, object: &ObjectPattern, name: &str) -> bool {
        let mut known = object.members.iter();
        !object.foreign.iter().any(|foreign| foreign == name)
            && (self == MemberPolicy::Open || !known.any(|(known, _)| twins(known, name)))
    }

    fn unknown_members(self) -> UnknownMembers {
        match self {
            MemberPolicy::Open => UnknownMembers::Open,
            MemberPolicy::Closed => UnknownMembers::Refused,
        }
    }
}

/// Returns true if every value that matches `one` matches `other`; `false` if that cannot be determined.
#[must_use]
pub fn within(one: &Pattern, other: &Pattern, policy: MemberPolicy) -> bool {
    Subsumption::new(policy).alone(one, other)
}

/// Does the same where the value may be absent, as in a member of an object: absence counts as a value. `None` is a
/// position that a pattern does not name.
#[must_use]
pub fn optional_within(
    one: Option<&Pattern>,
    other: Option<&Pattern>,
    policy: MemberPolicy,
) -> bool {
    let mut comparison = Subsumption::new(policy);
    comparison.optional(one, other) && comparison.agrees()
}

/// The maximum nesting depth of JSON inside strings that is compared.
const DEPTH: u16 = 128;

/// Returns a reader for one pattern.
fn reading(pattern: &Pattern, policy: MemberPolicy) -> PatternReader {
    let mut holes = 0;
    pattern.slots(&mut |slot| holes = holes.max(slot.binds().map_or(0, |hole| hole + 1)));
    PatternReader {
        bindings: Bindings::new(holes),
        ..PatternReader::new(0, policy.unknown_members(), DEPTH)
    }
}

/// Returns true if a value matches a pattern.
fn reads(pattern: &Pattern, value: &Json, policy: MemberPolicy) -> bool {
    pattern
        .read(Some(value), &mut reading(pattern, policy))
        .is_ok()
}

/// Returns true if two names differ only in letter case.
fn twins(one: &str, other: &str) -> bool {
    one != other && same_ignoring_case(one, other)
}

/// Returns true if every JSON value matches.
fn matches_all(slot: &Slot) -> bool {
    if slot.equals().is_some() {
        return false;
    }
    let null = slot.null == Null::Value || slot.absence != Absence::Refused;
    slot.binds().is_none() || (slot.codec == Codec::Plain && slot.shape == Shape::Any && null)
}

/// Returns true if `null` matches.
fn matches_null(slot: &Slot) -> bool {
    if slot.equals().is_some() {
        return !slot.is_required();
    }
    let plain = slot.codec == Codec::Plain && matches!(slot.shape, Shape::Any | Shape::Null);
    slot.binds().is_none()
        || match slot.null {
            Null::Value => plain,
            Null::Absent => slot.absence != Absence::Refused,
        }
}

/// Returns true if `null` matches a member. In a call it also matches an optional object.
fn member_matches_null(member: &Pattern, policy: MemberPolicy) -> bool {
    is_nullable(member, policy) || reads(member, &Json::literal("null"), policy)
}

/// Returns true if a member of a call is an optional object: then it may be `null`.
fn is_nullable(member: &Pattern, policy: MemberPolicy) -> bool {
    policy == MemberPolicy::Closed && matches!(member, Pattern::Object(_)) && member.may_be_absent()
}

/// Returns all values of a hole that accepts only a few.
fn few(slot: &Slot) -> Option<Vec<Json>> {
    if slot.codec == Codec::Json || slot.binds().is_none() {
        return None;
    }
    let mut values = match &slot.shape {
        Shape::One(Scalar::Enum(words)) => words.iter().map(|word| Json::string(word)).collect(),
        Shape::One(Scalar::Boolean) => vec![Json::literal("true"), Json::literal("false")],
        Shape::Null => Vec::new(),
        Shape::Any
        | Shape::One(Scalar::String | Scalar::Integer | Scalar::Number)
        | Shape::Repeated(_)
        | Shape::Separated(..)
        | Shape::Object
        | Shape::Array => return None,
    };
    if matches_null(slot) {
        values.push(Json::literal("null"));
    }
    Some(values)
}

/// Returns the pattern of the elements, for a hole that accepts arrays.
fn element(slot: &Slot, shape: &Shape) -> Option<Pattern> {
    let shape = match shape {
        Shape::Repeated(scalar) | Shape::Separated(scalar, _) => Shape::One(scalar.clone()),
        Shape::Array => Shape::Any,
        Shape::Any | Shape::One(_) | Shape::Object | Shape::Null => return None,
    };
    (slot.codec == Codec::Plain).then(|| {
        Pattern::Hole(Slot {
            name: slot.name.clone(),
            role: Role::Shared(0),
            shape,
            absence: Absence::Refused,
            codec: Codec::Plain,
            null: Null::Value,
        })
    })
}

/// Returns the strings that match, if strings can.
fn texts_of(pattern: &Pattern, fit: Fit) -> Option<TextSet> {
    match pattern {
        Pattern::Literal(value) => value.text()?.ok().map(|text| TextSet::one(&text)),
        Pattern::Text(text) => Some(TextSet::pattern(text, fit)),
        Pattern::Hole(slot) => match (&slot.shape, slot.codec) {
            (Shape::One(Scalar::String | Scalar::Enum(_)), _) | (_, Codec::Json) => {
                Some(TextSet::grammar(Grammar::of_text(slot, fit)))
            }
            (_, Codec::Plain | Codec::Percent) => {
                matches_all(slot).then(|| TextSet::grammar(Grammar::ANY))
            }
        },
        Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_) => None,
    }
}

#[cfg(test)]
mod tests;
