//! The values that holes and patterns accept, as far as comparisons need them.

use std::borrow::Cow;

use super::grammar::{Fit, Grammar};
use super::texts::TextSet;
use crate::json::{Json, encode, same_ignoring_case};
use crate::pattern::{
    Absence, Bindings, Codec, Null, ObjectPattern, Pattern, PatternReader, Role, Scalar, Shape,
    Slot, UnknownMembers,
};

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
    pub(super) fn is_loose(self, object: &ObjectPattern) -> bool {
        match self {
            MemberPolicy::Open => !object.is_empty(),
            MemberPolicy::Closed => object.rest.is_some(),
        }
    }

    /// Returns true if an unnamed member may have this name, given that unnamed members are allowed.
    pub(super) fn allows(self, object: &ObjectPattern, name: &str) -> bool {
        let mut known = object.members.iter();
        !object.overlapping_names.iter().any(|other| other == name)
            && (self == MemberPolicy::Open || !known.any(|(known, _)| twins(known, name)))
    }

    pub(super) fn unknown_members(self) -> UnknownMembers {
        match self {
            MemberPolicy::Open => UnknownMembers::Open,
            MemberPolicy::Closed => UnknownMembers::Refused,
        }
    }
}

/// The maximum nesting depth of JSON inside strings that is compared.
pub(super) const DEPTH: u16 = 128;

/// Returns a reader for one pattern.
pub(super) fn reading(pattern: &Pattern, policy: MemberPolicy) -> PatternReader {
    let mut holes = 0;
    pattern.slots(&mut |slot| holes = holes.max(slot.binds().map_or(0, |hole| hole + 1)));
    PatternReader {
        bindings: Bindings::new(holes),
        ..PatternReader::new(0, policy.unknown_members(), DEPTH)
    }
}

/// Returns true if a value matches a pattern.
pub(in crate::pattern) fn reads(pattern: &Pattern, value: &Json, policy: MemberPolicy) -> bool {
    pattern
        .read(Some(value), &mut reading(pattern, policy))
        .is_ok()
}

/// Returns true if two names differ only in letter case.
pub(super) fn twins(one: &str, other: &str) -> bool {
    one != other && same_ignoring_case(one, other)
}

/// Returns true if every JSON value matches.
pub(super) fn matches_all(slot: &Slot) -> bool {
    if slot.equals().is_some() {
        return false;
    }
    let null = slot.null == Null::Value || slot.absence != Absence::Required;
    slot.binds().is_none() || (slot.codec == Codec::Plain && slot.shape == Shape::Any && null)
}

/// Returns true if `null` matches.
pub(super) fn matches_null(slot: &Slot) -> bool {
    if slot.equals().is_some() {
        return !slot.is_required();
    }
    if let Some(map) = slot.codec.map().filter(|map| map.has_null())
        && matches!(slot.shape, Shape::One(_))
    {
        return slot.binds().is_some() && map.has_null();
    }
    let plain = matches!(slot.codec, Codec::Plain | Codec::Keys(_))
        && matches!(slot.shape, Shape::Any | Shape::Null);
    slot.binds().is_none()
        || match slot.null {
            Null::Value => plain,
            Null::Absent => slot.absence != Absence::Required,
        }
}

/// Returns true if `null` matches a member. In a call it also matches an optional object.
pub(super) fn member_matches_null(member: &Pattern, policy: MemberPolicy) -> bool {
    is_nullable(member, policy) || reads(member, &Json::literal("null"), policy)
}

/// Returns true if a member of a call is an optional object: then it may be `null`.
pub(super) fn is_nullable(member: &Pattern, policy: MemberPolicy) -> bool {
    policy == MemberPolicy::Closed && matches!(member, Pattern::Object(_)) && member.may_be_absent()
}

/// Returns all values of a hole that accepts only a few.
pub(super) fn few(slot: &Slot) -> Option<Vec<Json>> {
    if slot.codec.is_json() || slot.binds().is_none() {
        return None;
    }
    let mut values = match &slot.shape {
        Shape::One(_) if let Some(map) = slot.codec.map() => map.values().cloned().collect(),
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
pub(super) fn element(slot: &Slot, shape: &Shape) -> Option<Pattern> {
    let shape = match shape {
        Shape::Repeated(scalar) | Shape::Separated(scalar, _) => Shape::One(scalar.clone()),
        Shape::Array => Shape::Any,
        Shape::Any | Shape::One(_) | Shape::Object | Shape::Null => return None,
    };
    slot.codec.keeps_elements().then(|| {
        Pattern::Hole(Slot {
            name: slot.name.clone(),
            role: Role::Shared(0),
            shape,
            absence: Absence::Required,
            codec: slot.codec.clone(),
            null: Null::Value,
        })
    })
}

/// Returns the strings that match, if strings can.
pub(super) fn texts_of(pattern: &Pattern, fit: Fit) -> Option<TextSet> {
    match pattern {
        Pattern::Literal(value) => value.text()?.ok().map(|text| TextSet::one(&text)),
        Pattern::Text(text) => Some(TextSet::pattern(text, fit)),
        Pattern::Hole(slot) => match (&slot.shape, &slot.codec) {
            (Shape::One(_), Codec::Map(map)) if slot.binds().is_some() => {
                let strings = map.values().filter_map(|value| value.text()?.ok());
                Some(TextSet::grammar(Grammar::of_words(strings)))
            }
            (Shape::One(Scalar::String | Scalar::Enum(_)), _) | (_, Codec::Json(_)) => {
                Some(TextSet::grammar(Grammar::of_text(slot, fit)))
            }
            (Shape::Any, Codec::Keys(_)) => Some(TextSet::grammar(Grammar::ANY)),
            (
                _,
                Codec::Plain | Codec::Percent | Codec::Map(_) | Codec::Keys(_) | Codec::Page(_),
            ) => matches_all(slot).then(|| TextSet::grammar(Grammar::ANY)),
        },
        Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_) | Pattern::Either(_) => None,
    }
}

/// Returns the pattern of a named member.
pub(super) fn named<'o>(object: &'o ObjectPattern, name: &str) -> Option<&'o Pattern> {
    let member = object.members.iter().find(|(known, _)| known == name);
    member.map(|(_, pattern)| pattern)
}

/// Returns true if any object matches, so that it is not opened.
pub(super) fn is_unopened(object: &ObjectPattern) -> bool {
    object.members.is_empty() && object.overlapping_names.is_empty() && object.rest.is_some()
}

/// Returns values that a hole accepts, covering all relevant distinctions.
pub(super) fn values_of(slot: &Slot) -> Vec<Json> {
    let values = shape_values(&slot.shape).into_iter();
    let mut values: Vec<Json> = values
        .filter_map(|value| Some(slot.as_json(Cow::Owned(value)).ok()?.into_owned()))
        .collect();
    values.push(Json::literal("null"));
    values.retain(|value| slot.read_json(Some(value), DEPTH).is_ok());
    values
}

fn shape_values(shape: &Shape) -> Vec<Json> {
    match shape {
        Shape::Any => vec![
            Json::literal("\"text\""),
            Json::literal("1"),
            Json::literal("true"),
            Json::literal("{}"),
            Json::literal("[]"),
            Json::literal("null"),
        ],
        Shape::One(scalar) => scalar_values(scalar),
        Shape::Repeated(scalar) | Shape::Separated(scalar, _) => {
            let mut values: Vec<Json> = scalar_values(scalar)
                .into_iter()
                .map(|value| array(&[value]))
                .collect();
            values.push(Json::literal("[]"));
            values
        }
        Shape::Object => vec![Json::literal("{}")],
        Shape::Array => vec![Json::literal("[]")],
        Shape::Null => vec![Json::literal("null")],
    }
}

fn scalar_values(scalar: &Scalar) -> Vec<Json> {
    match scalar {
        Scalar::String => vec![Json::literal("\"text\"")],
        Scalar::Integer => vec![Json::literal("1")],
        Scalar::Number => vec![Json::literal("1.5"), Json::literal("1")],
        Scalar::Boolean => vec![Json::literal("true"), Json::literal("false")],
        Scalar::Enum(words) => words.iter().map(|word| Json::string(word)).collect(),
    }
}

pub(in crate::pattern) fn array(items: &[Json]) -> Json {
    let mut text = vec![b'['];
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item.as_bytes());
    }
    text.push(b']');
    Json::written(text)
}

pub(in crate::pattern) fn object(members: &[(&str, Json)]) -> Json {
    let mut text = vec![b'{'];
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        encode(name, &mut text);
        text.push(b':');
        text.extend_from_slice(value.as_bytes());
    }
    text.push(b'}');
    Json::written(text)
}
