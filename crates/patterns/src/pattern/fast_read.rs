//! Reading of objects in one pass: each member is read as the pass reaches it.
//!
//! The pass stops at anything unusual: an unknown, repeated or escaped name, or a value that does not match. The
//! object is then opened and read member by member, which gives the error. What the pass has bound is bound to the
//! same values again. Objects in which a hole occurs twice are never read in one pass, because the order of its
//! positions would matter.

use std::ops::Range;

use super::object_plan::{FastKind, FastMatch, ReadPlan};
use super::{Codec, ObjectPattern, Pattern, PatternReader, Role, Scalar, Shape, Slot};
use crate::json::{Json, JsonKind, Members, StringForm, is_integer, kind_of, same_ignoring_case};

impl ReadPlan {
    /// Returns the plan for objects with these members, and others if `rest` receives them.
    pub(super) fn new(members: &[(String, Pattern)], rest: Option<&Slot>) -> ReadPlan {
        let twins = members.iter().enumerate().any(|(index, (name, _))| {
            let mut before = members[..index].iter();
            before.any(|(known, _)| same_ignoring_case(known, name))
        });
        let mut holes = Vec::new();
        for (_, member) in members {
            member.slots(&mut |slot| holes.extend(slot.binds()));
        }
        holes.sort_unstable();
        let twice = holes.array_windows().any(|[one, other]| one == other);
        if rest.is_some() || twins || twice || members.len() > SeenMembers::MOST {
            ReadPlan::Opened
        } else {
            ReadPlan::OnePass(
                members
                    .iter()
                    .map(|(_, member)| member.fast_match())
                    .collect(),
            )
        }
    }
}

impl Pattern {
    fn fast_match(&self) -> FastMatch {
        match self {
            Pattern::Hole(slot) => match (&slot.role, &slot.codec, slot.shape.fast_kind()) {
                (Role::Shared(hole), Codec::Plain | Codec::Percent, Some(fast_kind)) => {
                    FastMatch::Value(*hole, fast_kind)
                }
                _ => FastMatch::ByPattern,
            },
            Pattern::Literal(_)
            | Pattern::Object(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => FastMatch::ByPattern,
        }
    }
}

impl Shape {
    fn fast_kind(&self) -> Option<FastKind> {
        match self {
            Shape::Any => Some(FastKind::Any),
            Shape::One(Scalar::String) => Some(FastKind::Plain),
            Shape::One(Scalar::Integer) => Some(FastKind::Integer),
            Shape::One(Scalar::Number) => Some(FastKind::Of(JsonKind::Number)),
            Shape::One(Scalar::Boolean) => Some(FastKind::Of(JsonKind::Boolean)),
            Shape::Object => Some(FastKind::Of(JsonKind::Object)),
            Shape::Array => Some(FastKind::Of(JsonKind::Array)),
            Shape::One(Scalar::Enum(_))
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Null => None,
        }
    }
}

impl FastKind {
    #[inline(always)]
    fn has(self, text: &[u8], spelling: StringForm) -> bool {
        match self {
            FastKind::Any => text.first() != Some(&b'n'),
            FastKind::Plain => text.first() == Some(&b'"') && spelling == StringForm::Plain,
            FastKind::Integer => is_integer(text),
            FastKind::Of(kind) => kind_of(text) == kind,
        }
    }
}

/// The members that a pass has reached, by their index in the pattern.
#[derive(Debug, Default)]
struct SeenMembers(u64);

impl SeenMembers {
    const MOST: usize = u64::BITS as usize;

    /// Adds a member. Returns `None` if it has been seen before.
    #[inline(always)]
    fn add(&mut self, index: usize) -> Option<()> {
        let before = self.0;
        self.0 |= 1 << index;
        (self.0 != before).then_some(())
    }

    fn has(&self, index: usize) -> bool {
        self.0 & (1 << index) != 0
    }

    fn count(&self) -> usize {
        self.0.count_ones() as usize
    }
}

impl ObjectPattern {
    /// Reads an object in one pass. Returns `None` if it has to be opened.
    pub(super) fn read_in_one_pass(
        &self,
        object: &Json,
        reading: &mut PatternReader,
    ) -> Option<()> {
        let (dropped, pages) = (reading.dropped, reading.pages.len());
        let read = self.walk(object, &mut Members::new(object.as_bytes(), 0)?, reading);
        if read.is_none() {
            reading.dropped = dropped;
            reading.pages.truncate(pages);
        }
        read
    }

    fn is_single_pass(&self) -> bool {
        matches!(self.access, ReadPlan::OnePass(_)) && self.rest.is_none()
    }

    /// Reads the members of an object that lies within a larger value.
    fn walk(
        &self,
        whole: &Json,
        walk: &mut Members<'_>,
        reading: &mut PatternReader,
    ) -> Option<()> {
        let ReadPlan::OnePass(fast_matches) = &self.access else {
            return None;
        };
        let text = whole.as_bytes();
        let mut seen = SeenMembers::default();
        let mut next = 0;
        while let Some(index) = self.next_known(next, walk)? {
            seen.add(index)?;
            next = index + 1;
            if let Some(FastMatch::Value(hole, fast_kind)) = fast_matches.get(index) {
                let (value, spelling) = walk.spelled_value();
                if fast_kind.has(text.get(value.clone())?, spelling) {
                    reading.bind_value(*hole, whole.piece(value))?;
                } else {
                    self.members[index].1.read_member(whole, value, reading)?;
                }
            } else if let Pattern::Object(object) = &self.members[index].1
                && object.is_single_pass()
            {
                let mut inside = walk.inside()?;
                object.walk(whole, &mut inside, reading)?;
                walk.leave(&inside);
            } else {
                self.members[index]
                    .1
                    .read_member(whole, walk.value(), reading)?;
            }
        }
        if seen.count() < self.members.len() {
            for (index, (_, member)) in self.members.iter().enumerate() {
                if !seen.has(index) {
                    member.read(None, reading).ok()?;
                }
            }
        }
        Some(())
    }

    /// Advances to the next member and returns its index; `expected` is the likely one.
    #[inline(always)]
    fn next_known(&self, expected: usize, walk: &mut Members<'_>) -> Option<Option<usize>> {
        let key = self.keys.get(expected);
        if key.is_some_and(|key| walk.advance_to(key)) {
            return Some(Some(expected));
        }
        match walk.name() {
            None => Some(None),
            Some((_, StringForm::Escaped)) => None,
            Some((name, StringForm::Plain)) => {
                let mut known = self.members.iter();
                known
                    .position(|(known, _)| known.as_bytes() == name)
                    .map(Some)
            }
        }
    }
}

impl Pattern {
    /// Reads a nested value by its pattern.
    #[inline(never)]
    fn read_member(
        &self,
        whole: &Json,
        value: Range<usize>,
        reading: &mut PatternReader,
    ) -> Option<()> {
        let text = whole.as_bytes();
        match self {
            Pattern::Literal(literal) if literal.as_bytes() == text.get(value.clone())? => Some(()),
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Object(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => self.take(whole.piece(value), reading).ok(),
        }
    }
}
