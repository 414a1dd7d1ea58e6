//! The specificity relation for texts outside of JSON, of which there may be none, one or several: query parameters,
//! headers and methods.

use super::acceptance::{DEPTH, MemberPolicy};
use super::grammar::{Empty, Fit, Grammar};
use super::texts::TextSet;
use super::{intersection, shapes};
use crate::pattern::{
    Bindings, Codec, Pattern, PatternReader, Role, Scalar, Shape, Slot, TextPart, TextPattern,
    TextPatterns, UnknownMembers,
};

/// Returns true if all texts that match `one` match `other`: none, one, several.
#[must_use]
pub fn words_within(one: &TextPatterns, other: &TextPatterns) -> bool {
    if let TextPatterns::Literal(text) = one {
        return reads(other, &[text]);
    }
    let none = !one.may_be_absent() || other.may_be_absent();
    let several = match (several(one), several(other)) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(one), Some(other)) => TextSet::grammar(one).within(&TextSet::grammar(other)),
    };
    none && several && once_within(one, other)
}

/// Returns texts that match both: preferably one, else none, else several.
#[must_use]
pub fn words_intersection(one: &TextPatterns, other: &TextPatterns) -> Option<Vec<String>> {
    let both = |texts: &[&str]| reads(one, texts) && reads(other, texts);
    for fit in [Fit::Below, Fit::Above] {
        let found = once(one, fit).common_text(&once(other, fit));
        if let Some(found) = found.filter(|found| both(&[found])) {
            return Some(vec![found]);
        }
    }
    // A hole that occurs twice in a text requires a search.
    let found = intersection(&as_pattern(one), &as_pattern(other), MemberPolicy::Closed);
    if let Some(Ok(found)) = found.and_then(|found| found.text())
        && both(&[&found])
    {
        return Some(vec![found]);
    }
    if one.may_be_absent() && other.may_be_absent() {
        return Some(Vec::new());
    }
    let found = TextSet::grammar(several(one)?).common_text(&TextSet::grammar(several(other)?))?;
    Some(vec![found.clone(), found])
}

fn reads(words: &TextPatterns, texts: &[&str]) -> bool {
    words.read(texts, &mut reading(words)).is_ok()
}

/// Returns a reader for a text pattern.
pub(super) fn reading(words: &TextPatterns) -> PatternReader {
    let holes = words.slots().into_iter().filter_map(Slot::binds).max();
    PatternReader {
        bindings: Bindings::new(holes.map_or(0, |most| most + 1)),
        ..PatternReader::new(0, UnknownMembers::Refused, DEPTH)
    }
}

/// Returns true if every single text that matches one matches the other.
fn once_within(one: &TextPatterns, other: &TextPatterns) -> bool {
    if let (TextPatterns::Hole(one), TextPatterns::Hole(other)) = (one, other)
        && let (true, true) = (holds_json(one), holds_json(other))
    {
        return shapes::shape_within(&one.shape, &other.shape);
    }
    if let (TextPatterns::Mixed(_), TextPatterns::Mixed(_)) = (one, other) {
        return super::within(&as_pattern(one), &as_pattern(other), MemberPolicy::Closed);
    }
    once(one, Fit::Above).within(&once(other, Fit::Below)) && !repeats(other)
}

fn holds_json(slot: &Slot) -> bool {
    slot.binds().is_some() && slot.codec.is_json()
}

/// Returns true if a hole occurs twice in the pattern, which requires equal values.
fn repeats(words: &TextPatterns) -> bool {
    let mut holes: Vec<usize> = words.slots().into_iter().filter_map(Slot::binds).collect();
    let count = holes.len();
    holes.sort_unstable();
    holes.dedup();
    holes.len() < count
}

/// Returns the single texts that match.
fn once(words: &TextPatterns, fit: Fit) -> TextSet {
    match words {
        TextPatterns::Literal(text) => TextSet::one(text),
        TextPatterns::Mixed(text) => TextSet::pattern(text, fit),
        TextPatterns::Hole(slot) => TextSet::grammar(hole(slot, fit)),
    }
}

/// Returns the grammar of a hole that is a whole text. Empty and absent are two states, and a required hole is never
/// empty.
fn hole(slot: &Slot, fit: Fit) -> Grammar {
    let grammar = Grammar::of_text(slot, fit);
    if slot.binds().is_none() {
        return grammar;
    }
    let empty = |is_allowed: Option<Empty>| match is_allowed {
        Some(empty) if !slot.is_required() => empty,
        Some(_) | None => Empty::Refused,
    };
    match &slot.shape {
        Shape::Repeated(_) if slot.codec.keeps_elements() => grammar,
        Shape::Separated(_, delimiter) if slot.codec.keeps_elements() => grammar
            .separated(*delimiter)
            .empty(empty(Some(Empty::Allowed))),
        Shape::One(Scalar::String) => grammar.empty(empty(Some(Empty::AsWord))),
        Shape::Any
        | Shape::One(_)
        | Shape::Repeated(_)
        | Shape::Separated(..)
        | Shape::Object
        | Shape::Array
        | Shape::Null => grammar.empty(Empty::Refused),
    }
}

/// Returns the grammar of each of several texts.
fn several(words: &TextPatterns) -> Option<Grammar> {
    let TextPatterns::Hole(slot) = words else {
        return None;
    };
    match (&slot.shape, &slot.codec) {
        _ if slot.binds().is_none() => Some(Grammar::ANY),
        (Shape::Repeated(_), Codec::Map(map)) => Some(Grammar::of_words(map.texts())),
        (Shape::Repeated(scalar), Codec::Plain) => Some(Grammar::from_scalar(scalar)),
        (_, _) => None,
    }
}

/// Returns the single texts that match, or a superset, as a pattern of JSON strings.
fn as_pattern(words: &TextPatterns) -> Pattern {
    let parts = match words {
        TextPatterns::Literal(text) => vec![TextPart::Text(text.clone())],
        TextPatterns::Mixed(text) => text.parts.clone(),
        TextPatterns::Hole(slot) => {
            let mut slot = slot.clone();
            if matches!(slot.shape, Shape::Separated(..)) {
                slot.role = Role::Ignored(None);
            }
            vec![TextPart::Hole(slot)]
        }
    };
    Pattern::Text(TextPattern { parts })
}
