//! The one relation over patterns by which routes and rows of outcomes are chosen: A is more specific than
//! B when every value that fits A fits B.
//!
//! It knows patterns and nothing of routes and replies. Laws (tested over generated patterns): [`subsumption`]
//! is reflexive and transitive, and never true when a value of the one does not fit the other; what
//! [`intersection`] returns fits both, and where it returns nothing, nothing does. Two gaps are left, both on
//! the side of silence: JSON inside of a longer text is compared by a few samples, and so are the values of
//! a hole that stands in one pattern in several places, where each place narrows it in a way of its own.

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
pub use intersection::{intersection, place_meeting, sample};
pub use subsumption::Subsumption;
pub use words::{words_meeting, words_within};

/// Whether members that a pattern does not name are fine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberPolicy {
    /// Replies: members not named do not matter, and `{}` fits the empty object only.
    Open,
    /// Requests among siblings: a member that a pattern does not name makes a value not fit it.
    Closed,
}

impl MemberPolicy {
    /// Whether members that an object does not name may be there.
    fn is_loose(self, object: &ObjectPattern) -> bool {
        match self {
            MemberPolicy::Open => !object.is_empty(),
            MemberPolicy::Closed => object.rest.is_some(),
        }
    }

    /// Whether a member that an object does not name may be in it, where further ones may.
    fn welcomes(self, object: &ObjectPattern, name: &str) -> bool {
        let mut known = object.members.iter();
        !object.foreign.iter().any(|foreign| foreign == name)
            && (self == MemberPolicy::Open || !known.any(|(known, _)| twins(known, name)))
    }

    fn strangers(self) -> UnknownMembers {
        match self {
            MemberPolicy::Open => UnknownMembers::Open,
            MemberPolicy::Closed => UnknownMembers::Refused,
        }
    }
}

/// Whether every value that fits `one` fits `other`; `false` where that cannot be told.
#[must_use]
pub fn within(one: &Pattern, other: &Pattern, world: MemberPolicy) -> bool {
    Subsumption::new(world).alone(one, other)
}

/// The same where there may be nothing at all, as for a member of an object: nothing counts as a value.
/// `None` is a place that a pattern does not name.
#[must_use]
pub fn place_within(one: Option<&Pattern>, other: Option<&Pattern>, world: MemberPolicy) -> bool {
    let mut comparison = Subsumption::new(world);
    comparison.place(one, other) && comparison.agrees()
}

/// The nesting of JSON inside of strings that is compared.
const DEPTH: u16 = 128;

/// A reading of one pattern.
fn reading(pattern: &Pattern, world: MemberPolicy) -> PatternReader {
    let mut holes = 0;
    pattern.slots(&mut |slot| holes = holes.max(slot.binds().map_or(0, |hole| hole + 1)));
    PatternReader {
        bindings: Bindings::new(holes),
        ..PatternReader::new(0, world.strangers(), DEPTH)
    }
}

/// Whether a value fits a pattern.
fn reads(pattern: &Pattern, value: &Json, world: MemberPolicy) -> bool {
    pattern
        .read(Some(value), &mut reading(pattern, world))
        .is_ok()
}

/// Whether two names differ, and only in letter case.
fn twins(one: &str, other: &str) -> bool {
    one != other && same_ignoring_case(one, other)
}

/// Whether any value of JSON fits.
fn takes_all(slot: &Slot) -> bool {
    if slot.equals().is_some() {
        return false;
    }
    let null = slot.null == Null::Value || slot.absence != Absence::Refused;
    slot.binds().is_none() || (slot.codec == Codec::Plain && slot.shape == Shape::Any && null)
}

/// Whether `null` fits.
fn takes_null(slot: &Slot) -> bool {
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

/// Whether `null` fits a member, which it does of a call where an object may be absent.
fn member_takes_null(member: &Pattern, world: MemberPolicy) -> bool {
    is_nullable(member, world) || reads(member, &Json::literal("null"), world)
}

/// Whether a member of a call is an object that may be absent: then it may be `null`.
fn is_nullable(member: &Pattern, world: MemberPolicy) -> bool {
    world == MemberPolicy::Closed && matches!(member, Pattern::Object(_)) && member.may_be_absent()
}

/// All values of a hole that takes a few only.
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
    if takes_null(slot) {
        values.push(Json::literal("null"));
    }
    Some(values)
}

/// What each element is like of the arrays that a hole takes.
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

/// The strings that fit, where strings may.
fn texts_of(pattern: &Pattern, fit: Fit) -> Option<TextSet> {
    match pattern {
        Pattern::Literal(value) => value.text()?.ok().map(|text| TextSet::one(&text)),
        Pattern::Text(text) => Some(TextSet::pattern(text, fit)),
        Pattern::Hole(slot) => match (&slot.shape, slot.codec) {
            (Shape::One(Scalar::String | Scalar::Enum(_)), _) | (_, Codec::Json) => {
                Some(TextSet::grammar(Grammar::of_text(slot, fit)))
            }
            (_, Codec::Plain | Codec::Percent) => {
                takes_all(slot).then(|| TextSet::grammar(Grammar::ANY))
            }
        },
        Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_) => None,
    }
}

#[cfg(test)]
mod tests;
