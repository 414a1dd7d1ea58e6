//! Subsumption: decides by structure whether every value that matches one pattern matches another. The cost is bounded
//! by the number of parts of the two patterns; the result is `false` if the structure does not tell.

use super::acceptance::{
    DEPTH, MemberPolicy, element, few, is_nullable, is_unopened, matches_all, matches_null,
    member_matches_null, named, reading, reads, texts_of,
};
use super::grammar::Fit;
use super::hole_links::{HoleLink, HoleLinks};
use super::shapes::{repeats, shape_within};
use super::words::words_within;
use crate::json::{Json, JsonKind};
use crate::pattern::{
    Codec, EachPattern, EitherPattern, ListPattern, ObjectPattern, Pattern, Scalar, Shape, Slot,
    TextPart, TextPattern, TextPatterns,
};

/// A comparison of several positions in which the same holes may occur. Each step tells whether its own position is
/// subsumed; [`Subsumption::agrees`] tells whether the holes are consistent across positions.
#[derive(Debug)]
pub struct Subsumption<'p> {
    policy: MemberPolicy,
    /// The correspondents of the holes of the wider pattern.
    pub(super) links: HoleLinks<'p>,
}

impl<'p> Subsumption<'p> {
    /// Starts a comparison.
    #[must_use]
    pub fn new(policy: MemberPolicy) -> Subsumption<'p> {
        Subsumption {
            policy,
            links: HoleLinks::default(),
        }
    }

    /// Returns true if every value of one position, or its absence, matches the other; `None` is a position that is not
    /// named.
    #[must_use]
    pub fn optional(&mut self, one: Option<&'p Pattern>, other: Option<&'p Pattern>) -> bool {
        match (one, other) {
            (None, None) => true,
            (Some(_), None) => self.policy == MemberPolicy::Open,
            (None, Some(other)) => other.may_be_absent() && self.nothing(other),
            (Some(one), Some(other)) => {
                let absent = !one.may_be_absent() || other.may_be_absent();
                absent && self.present(one, other)
            }
        }
    }

    /// Returns true if all texts of one position outside of JSON match the other; `None` means no text.
    #[must_use]
    pub fn words(&mut self, one: Option<&'p TextPatterns>, other: &'p TextPatterns) -> bool {
        let Some(one) = one else {
            for slot in other.slots() {
                self.links.add(slot, HoleLink::Nothing);
            }
            return other.may_be_absent();
        };
        match (one, other) {
            (TextPatterns::Literal(text), _) => {
                let mut reading = super::words::reading(other);
                let _ = other.read(&[text], &mut reading);
                for slot in other.slots() {
                    let bound = slot.binds().map(|hole| reading.bindings.get(hole).clone());
                    let link = bound.map_or(HoleLink::Unknown, HoleLink::Value);
                    self.links.add(slot, link);
                }
            }
            (TextPatterns::Hole(one), TextPatterns::Hole(other)) => {
                self.links.add(other, HoleLink::Hole(one))
            }
            (TextPatterns::Mixed(one), TextPatterns::Mixed(other)) if aligned(one, other) => {
                for (one, other) in one.slots().zip(other.slots()) {
                    self.links.add(other, HoleLink::Hole(one));
                }
            }
            (TextPatterns::Hole(_) | TextPatterns::Mixed(_), _) => {
                for slot in other.slots() {
                    self.links.add(slot, HoleLink::Unknown);
                }
            }
        }
        words_within(one, other)
    }

    /// Returns true if all texts of one path hole match the other; `None` means any text.
    #[must_use]
    pub fn slots(&mut self, one: Option<&'p Slot>, other: &'p Slot) -> bool {
        let Some(one) = one else {
            self.links.add(other, HoleLink::Unknown);
            let text = other.codec == Codec::Plain && other.shape == Shape::One(Scalar::String);
            return text || other.binds().is_none();
        };
        self.links.add(other, HoleLink::Hole(one));
        words_within(
            &TextPatterns::Hole(one.clone()),
            &TextPatterns::Hole(other.clone()),
        )
    }

    /// Returns true if each hole that occurs several times has equal values everywhere.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.links.agree()
    }

    /// Records that the holes of the wider pattern have no value, and returns true.
    fn nothing(&mut self, other: &'p Pattern) -> bool {
        other.slots(&mut |slot| self.links.add(slot, HoleLink::Nothing));
        true
    }

    /// Returns true if every value of one pattern matches the other.
    pub(super) fn present(&mut self, one: &'p Pattern, other: &'p Pattern) -> bool {
        if let (Pattern::Hole(slot), false) = (other, matches!(one, Pattern::Literal(_)))
            && matches_all(slot)
        {
            self.links.add(slot, link_of(one));
            return true;
        }
        match (one, other) {
            // Only another hole with the same `{=x}` is certain to equal a hole.
            (one, Pattern::Hole(slot))
                if slot.equals().is_some() && !matches!(one, Pattern::Hole(_)) =>
            {
                false
            }
            (Pattern::Literal(value), other) => self.literal(value, other),
            (Pattern::Either(one), other) => {
                self.unknown(other);
                let mut alternatives = one.alternatives.iter();
                alternatives.all(|one| Subsumption::new(self.policy).alone(one, other))
            }
            (Pattern::Hole(one), Pattern::Either(other)) => self.hole_in_either(one, other),
            (one, Pattern::Either(either)) => {
                self.unknown(other);
                self.in_one_of(one, either)
            }
            (Pattern::Hole(one), Pattern::Hole(other)) => self.holes(one, other),
            (Pattern::Hole(one), other) => self.hole(one, other),
            (Pattern::Text(one), Pattern::Text(other)) if aligned(one, other) => {
                for (one, other) in one.slots().zip(other.slots()) {
                    self.links.add(other, HoleLink::Hole(one));
                }
                true
            }
            (Pattern::Text(_), other) => self.texts(one, other),
            (Pattern::Object(one), Pattern::Object(other)) => self.objects(one, other),
            (Pattern::Object(_), Pattern::Hole(slot)) => {
                self.links.add(slot, HoleLink::Unknown);
                slot.codec == Codec::Plain && slot.shape == Shape::Object
            }
            (Pattern::List(one), Pattern::List(other)) => self.lists(one, other),
            (Pattern::List(one), Pattern::Each(other)) => self.list_in_each(one, other),
            (Pattern::List(one), Pattern::Hole(slot)) => self.list_in_hole(one, slot),
            (Pattern::Each(one), Pattern::Each(other)) => self.each(one, other),
            (Pattern::Each(one), Pattern::List(other)) => self.each_in_list(one, other),
            (Pattern::Each(one), Pattern::Hole(slot)) => {
                self.links.add(slot, HoleLink::Unknown);
                slot.codec.keeps_elements()
                    && (slot.shape == Shape::Array || self.in_elements(&one.item, slot))
            }
            (Pattern::Object(_) | Pattern::List(_) | Pattern::Each(_), _) => false,
        }
    }

    fn in_one_of(&self, one: &Pattern, either: &EitherPattern) -> bool {
        let mut alternatives = either.alternatives.iter();
        alternatives.any(|other| Subsumption::new(self.policy).alone(one, other))
    }

    fn hole_in_either(&mut self, one: &'p Slot, either: &'p EitherPattern) -> bool {
        for alternative in &either.alternatives {
            self.unknown(alternative);
        }
        if let Some(values) = few(one) {
            let read = |value: &Json| {
                let mut alternatives = either.alternatives.iter();
                alternatives.any(|alternative| reads(alternative, value, self.policy))
            };
            return values.iter().all(read);
        }
        self.in_one_of(&Pattern::Hole(one.clone()), either)
    }

    /// Records that the correspondents of all holes in the wider pattern are unknown.
    fn unknown(&mut self, other: &'p Pattern) {
        self.links.unknown(other);
    }

    fn literal(&mut self, value: &Json, other: &'p Pattern) -> bool {
        let mut reading = reading(other, self.policy);
        if other.read(Some(value), &mut reading).is_err() {
            return false;
        }
        let links = &mut self.links;
        let mut add = |slot: &'p Slot| {
            let bound = slot.binds().map(|hole| reading.bindings.get(hole).clone());
            links.add(slot, bound.map_or(HoleLink::Unknown, HoleLink::Value));
        };
        other.slots(&mut add);
        true
    }

    /// Compares a hole that accepts only a few values, by reading each of them.
    fn few(&mut self, values: &[Json], other: &'p Pattern) -> bool {
        self.unknown(other);
        values.iter().all(|value| reads(other, value, self.policy))
    }

    fn holes(&mut self, one: &'p Slot, other: &'p Slot) -> bool {
        self.links.add(other, HoleLink::Hole(one));
        if other.equals().is_some() {
            // The links tell which hole each of them equals.
            return one.equals().is_some() && shape_within(&one.shape, &other.shape);
        }
        if let Some(values) = few(one) {
            let mut values = values.iter();
            return values.all(|value| other.read_json(Some(value), DEPTH).is_ok());
        }
        let null = !matches_null(one) || matches_null(other);
        let shapes = match (&one.codec, &other.codec) {
            (Codec::Map(_), _) | (_, Codec::Map(_)) => {
                match (element(one, &one.shape), element(other, &other.shape)) {
                    (Some(one), Some(other)) => Subsumption::new(self.policy).alone(&one, &other),
                    (_, _) => false,
                }
            }
            (Codec::Page(one), Codec::Page(other)) => one.first() >= other.first(),
            (Codec::Page(_), Codec::Plain | Codec::Percent) => {
                shape_within(&one.shape, &other.shape)
            }
            (Codec::Page(_), _) | (_, Codec::Page(_)) => false,
            // Keys of another style matter in objects only.
            (Codec::Keys(one_styles), Codec::Keys(styles)) => {
                one_styles == styles && shape_within(&one.shape, &other.shape)
            }
            (Codec::Keys(_), Codec::Plain) => shape_within(&one.shape, &other.shape),
            (Codec::Plain, Codec::Keys(_)) => {
                matches!(one.shape, Shape::One(_)) && shape_within(&one.shape, &other.shape)
            }
            (Codec::Keys(_), Codec::Json(_) | Codec::Percent)
            | (Codec::Json(_) | Codec::Percent, Codec::Keys(_)) => false,
            (Codec::Json(text), Codec::Json(other)) if text != other => false,
            (Codec::Plain | Codec::Percent, Codec::Plain | Codec::Percent)
            | (Codec::Json(_), Codec::Json(_)) => shape_within(&one.shape, &other.shape),
            (Codec::Json(_), Codec::Plain | Codec::Percent) => {
                other.shape == Shape::One(Scalar::String)
            }
            (Codec::Plain | Codec::Percent, Codec::Json(_)) => false,
        };
        one.binds().is_some() && null && shapes
    }

    fn hole(&mut self, one: &'p Slot, other: &'p Pattern) -> bool {
        if let Some(values) = few(one) {
            return self.few(&values, other);
        }
        if one.binds().is_none() || matches_null(one) {
            return false;
        }
        self.unknown(other);
        match (other, &one.shape, &one.codec) {
            (Pattern::Text(_), Shape::One(Scalar::String), _)
            | (Pattern::Text(_), _, Codec::Json(_)) => {
                texts_within(&Pattern::Hole(one.clone()), other)
            }
            (Pattern::Object(other), Shape::Object, Codec::Plain) => {
                is_unopened(other) && !other.is_empty()
            }
            (Pattern::List(other), Shape::Array, Codec::Plain) => {
                other.items.is_empty() && other.rest.is_some()
            }
            (Pattern::Each(other), shape, _) => match element(one, shape) {
                Some(element) => Subsumption::new(self.policy).alone(&element, &other.item),
                None => false,
            },
            (
                Pattern::Literal(_)
                | Pattern::Hole(_)
                | Pattern::Text(_)
                | Pattern::Object(_)
                | Pattern::List(_)
                | Pattern::Either(_),
                _,
                _,
            ) => false,
        }
    }

    /// Compares two patterns without any other position.
    pub(super) fn alone(mut self, one: &'p Pattern, other: &'p Pattern) -> bool {
        self.present(one, other) && self.links.agree()
    }

    fn texts(&mut self, one: &Pattern, other: &'p Pattern) -> bool {
        self.unknown(other);
        texts_within(one, other)
    }

    fn objects(&mut self, one: &'p ObjectPattern, other: &'p ObjectPattern) -> bool {
        let (loose, looser) = (self.policy.is_loose(one), self.policy.is_loose(other));
        let also = |name: &String| one.overlapping_names.contains(name);
        if loose && !(looser && other.overlapping_names.iter().all(also)) {
            return false;
        }
        if loose && is_unopened(one) && !is_unopened(other) {
            return false;
        }
        let unknown_members = one
            .members
            .iter()
            .filter(|(name, _)| named(other, name).is_none());
        for (name, _) in unknown_members {
            if !looser || !self.policy.allows(other, name) {
                return false;
            }
        }
        if let Some(rest) = &other.rest {
            let same = one.members.len() == other.members.len()
                && one
                    .members
                    .iter()
                    .all(|(name, _)| named(other, name).is_some());
            let link = one.rest.as_ref().filter(|_| same).map(HoleLink::Hole);
            self.links.add(rest, link.unwrap_or(HoleLink::Unknown));
        }
        other
            .members
            .iter()
            .all(|(name, wider)| match named(one, name) {
                Some(member) => self.member(member, wider),
                None if loose && self.policy.allows(one, name) => {
                    let anything = matches!(wider, Pattern::Hole(slot) if matches_all(slot));
                    self.unknown(wider);
                    // In requests, a name that differs only in letter case matches where this name is unknown.
                    let same_in_all_cases = self.policy == MemberPolicy::Open
                        || name.to_uppercase() == name.to_lowercase();
                    anything && wider.may_be_absent() && same_in_all_cases
                }
                None => self.optional(None, Some(wider)),
            })
    }

    /// Compares a member that both name. If it may be `null`, the wider one must allow that too.
    fn member(&mut self, one: &'p Pattern, other: &'p Pattern) -> bool {
        let is_null = matches!(one, Pattern::Literal(value) if value.kind() == JsonKind::Null);
        if is_null && is_nullable(other, self.policy) {
            return self.nothing(other);
        }
        let null = !is_nullable(one, self.policy) || member_matches_null(other, self.policy);
        self.optional(Some(one), Some(other)) && null
    }

    fn lists(&mut self, one: &'p ListPattern, other: &'p ListPattern) -> bool {
        let (known, wider) = (one.items.len(), other.items.len());
        if other.rest.is_none() && (one.rest.is_some() || known > wider) {
            return false;
        }
        if let Some(rest) = &other.rest {
            let link = one
                .rest
                .as_ref()
                .filter(|_| known == wider)
                .map(HoleLink::Hole);
            self.links.add(rest, link.unwrap_or(HoleLink::Unknown));
        }
        let least = one.least();
        other.items.iter().enumerate().all(|(index, wider)| {
            let may_end = index < least || wider.may_be_absent();
            let inside = match one.items.get(index) {
                Some(item) => self.present(item, wider),
                None if one.rest.is_some() => {
                    self.unknown(wider);
                    matches!(wider, Pattern::Hole(slot) if matches_all(slot))
                }
                None => self.nothing(wider),
            };
            may_end && inside
        })
    }

    fn list_in_each(&mut self, one: &'p ListPattern, other: &'p EachPattern) -> bool {
        self.unknown(&other.item);
        let rest =
            one.rest.is_none() || matches!(&*other.item, Pattern::Hole(slot) if matches_all(slot));
        let mut items = one.items.iter();
        rest && items.all(|item| Subsumption::new(self.policy).alone(item, &other.item))
    }

    fn list_in_hole(&mut self, one: &'p ListPattern, slot: &'p Slot) -> bool {
        self.links.add(slot, HoleLink::Unknown);
        if !slot.codec.keeps_elements() || slot.shape == Shape::Array {
            return slot.codec == Codec::Plain;
        }
        let mut items = one.items.iter();
        let elements = element(slot, &slot.shape).is_some() && one.rest.is_none();
        elements && items.all(|item| self.in_elements(item, slot))
    }

    /// Returns true if a value is an allowed element of a hole.
    fn in_elements(&self, item: &Pattern, slot: &Slot) -> bool {
        element(slot, &slot.shape)
            .is_some_and(|element| Subsumption::new(self.policy).alone(item, &element))
    }

    fn each(&mut self, one: &'p EachPattern, other: &'p EachPattern) -> bool {
        let mut inside = Subsumption::new(self.policy);
        let fits = inside.present(&one.item, &other.item) && inside.links.agree();
        self.links.add_lists(inside.links);
        fits
    }

    fn each_in_list(&mut self, one: &'p EachPattern, other: &'p ListPattern) -> bool {
        for item in &other.items {
            self.unknown(item);
        }
        let Some(rest) = &other.rest else {
            return false;
        };
        self.links.add(rest, HoleLink::Unknown);
        other.items.iter().all(|wider| {
            wider.may_be_absent() && Subsumption::new(self.policy).alone(&one.item, wider)
        })
    }
}

/// Returns the link for a hole that accepts every value of a pattern.
fn link_of(one: &Pattern) -> HoleLink<'_> {
    match one {
        Pattern::Hole(slot) => HoleLink::Hole(slot),
        Pattern::Literal(_)
        | Pattern::Text(_)
        | Pattern::Object(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => HoleLink::Unknown,
    }
}

/// Returns true if one set of strings contains the other.
fn texts_within(one: &Pattern, other: &Pattern) -> bool {
    if repeats(other) {
        return false;
    }
    let texts = (texts_of(one, Fit::Above), texts_of(other, Fit::Below));
    matches!(texts, (Some(one), Some(other)) if one.within(&other))
}

/// Returns true if two text patterns have the same literal texts, and the holes of one are subsumed by those of the
/// other.
fn aligned(one: &TextPattern, other: &TextPattern) -> bool {
    let pairs = one.parts.iter().zip(&other.parts);
    one.parts.len() == other.parts.len()
        && pairs.into_iter().all(|pair| match pair {
            (TextPart::Text(one), TextPart::Text(other)) => one == other,
            (TextPart::Hole(one), TextPart::Hole(other)) => text_hole_within(one, other),
            (TextPart::Text(_) | TextPart::Hole(_), _) => false,
        })
}

/// Compares two holes within a text that delimits both.
pub(super) fn text_hole_within(one: &Slot, other: &Slot) -> bool {
    let both_json = one.codec.is_json() && one.codec == other.codec;
    if both_json && one.binds().is_some() && other.binds().is_some() {
        return shape_within(&one.shape, &other.shape);
    }
    let one = super::texts::TextSet::grammar(super::grammar::Grammar::of_text(one, Fit::Above));
    let other = super::texts::TextSet::grammar(super::grammar::Grammar::of_text(other, Fit::Below));
    one.within(&other)
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

impl ListPattern {
    /// Returns the length of the shortest array that matches.
    pub(super) fn least(&self) -> usize {
        let required = self.items.iter().rposition(|item| !item.may_be_absent());
        required.map_or(0, |last| last + 1)
    }
}
