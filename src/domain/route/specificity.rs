//! Which of two routes is more specific: A is when every call that fits A fits B.
//!
//! Each side sees a route as slots: named places that must, or may, hold a value of some type. A name that
//! only a sibling has makes a call foreign, so the names of a call lie between the required and all names
//! of its route. Laws (tested): `refines` is reflexive and transitive; when one route refines another and
//! the second one can be called at all, the two share calls.

use super::{QueryValue, Route};
use crate::domain::pattern::{Hole, Scalar, Shape};
use crate::domain::side::Side;

/// A named place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) name: String,
    pub(super) required: Required,
    pub(super) content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Required {
    Yes,
    No,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Literal(String),
    Typed(Shape),
}

/// A route as one side sees it.
pub(super) fn slots(route: &Route, side: Side) -> Vec<Slot> {
    let typed = |name: String, hole: &Hole| Slot {
        name,
        required: if hole.is_required() {
            Required::Yes
        } else {
            Required::No
        },
        content: Content::Typed(hole.shape.clone()),
    };
    match side {
        Side::Rpc => route
            .holes()
            .map(|hole| typed(hole.name.clone(), hole))
            .collect(),
        Side::Rest => {
            // Siblings have the same path, so a hole of it is told by its place, whatever its name.
            let path = route.path.holes.iter();
            let path =
                path.map(|placed| typed(format!("/{}-{}", placed.start, placed.end), &placed.hole));
            let query = route.query.iter().map(|item| match &item.value {
                QueryValue::Hole(hole) => typed(item.key.clone(), hole),
                QueryValue::Literal(text) => Slot {
                    name: item.key.clone(),
                    required: Required::Yes,
                    content: Content::Literal(text.clone()),
                },
            });
            path.chain(query).collect()
        }
    }
}

fn named<'s>(slots: &'s [Slot], name: &str) -> Option<&'s Slot> {
    slots.iter().find(|slot| slot.name == name)
}

/// Whether some call fits both.
pub(super) fn share(one: &[Slot], other: &[Slot], side: Side) -> bool {
    let possible = |slots: &[Slot], within: &[Slot]| {
        slots.iter().all(|slot| match named(within, &slot.name) {
            None => slot.required == Required::No,
            Some(twin) => {
                let both_may_be_absent =
                    slot.required == Required::No && twin.required == Required::No;
                both_may_be_absent || overlap(&slot.content, &twin.content, side)
            }
        })
    };
    possible(one, other) && possible(other, one)
}

/// Whether every call that fits `one` fits `other`.
pub(super) fn refines(one: &[Slot], other: &[Slot], side: Side) -> bool {
    let known = one.iter().all(|slot| {
        named(other, &slot.name).is_some_and(|twin| within(&slot.content, &twin.content, side))
    });
    let required = other.iter().filter(|slot| slot.required == Required::Yes);
    known
        && required
            .into_iter()
            .all(|slot| named(one, &slot.name).is_some_and(|twin| twin.required == Required::Yes))
}

/// The texts of a type that has only a few.
fn finite(content: &Content) -> Option<Vec<&str>> {
    match content {
        Content::Literal(text) => Some(vec![text]),
        Content::Typed(Shape::One(Scalar::Boolean)) => Some(vec!["true", "false"]),
        Content::Typed(Shape::One(Scalar::Enum(words))) => {
            Some(words.iter().map(String::as_str).collect())
        }
        Content::Typed(_) => None,
    }
}

fn accepts(content: &Content, text: &str) -> bool {
    match content {
        Content::Literal(literal) => literal == text,
        Content::Typed(shape) => shape.scalar().accepts(text),
    }
}

/// On the RPC side each scalar has its own kind of JSON value, and a list is an array.
fn kind(content: &Content) -> u8 {
    match content {
        Content::Literal(_) => 0,
        Content::Typed(Shape::One(Scalar::String | Scalar::Enum(_))) => 0,
        Content::Typed(Shape::One(Scalar::Integer | Scalar::Number)) => 1,
        Content::Typed(Shape::One(Scalar::Boolean)) => 2,
        Content::Typed(Shape::Repeated(_) | Shape::Separated(_)) => 3,
    }
}

fn overlap(one: &Content, other: &Content, side: Side) -> bool {
    if side == Side::Rpc && kind(one) != kind(other) {
        return false;
    }
    match (finite(one), finite(other)) {
        (Some(texts), _) => texts.iter().any(|text| accepts(other, text)),
        (None, Some(texts)) => texts.iter().any(|text| accepts(one, text)),
        // Two lists share the empty one, or a text in the URL; any two open scalars share `0`.
        (None, None) => true,
    }
}

fn within(one: &Content, other: &Content, side: Side) -> bool {
    if side == Side::Rpc && kind(one) != kind(other) {
        return false;
    }
    if let (Some(texts), Content::Typed(Shape::One(_)) | Content::Literal(_)) = (finite(one), other)
    {
        return texts.iter().all(|text| accepts(other, text));
    }
    match (one, other) {
        (Content::Typed(Shape::One(one)), Content::Typed(Shape::One(other))) => {
            *other == Scalar::String
                || one == other
                || matches!((one, other), (Scalar::Integer, Scalar::Number))
        }
        (one, other) => one == other,
    }
}
