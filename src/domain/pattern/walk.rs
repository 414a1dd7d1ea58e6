//! Objects read in one walk: each member is read where the walk comes to it.
//!
//! A walk ends at the first thing that is out of the common: a name that is strange, given twice or spelled with
//! escapes, a value that does not fit. Then the object is opened and read member by member, which tells what is
//! wrong; what the walk has bound is bound to the same values again. So no object is walked in which a hole stands
//! twice, where it would matter which of its places comes first.

use std::ops::Range;

use super::{Codec, ObjectPattern, Pattern, Reading, Role, Scalar, Shape, Slot};
use crate::domain::json::{Json, Kind, Spelling, Walk, is_integer, kind_of, same_ignoring_case};

/// How the objects of a pattern are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// In one walk, unless something is out of the common; with what is looked for at each member.
    Walked(Box<[Glance]>),
    /// Opened.
    Opened,
}

impl Access {
    /// How objects are read that have these members, and others where `rest` takes them.
    pub(super) fn of(members: &[(String, Pattern)], rest: Option<&Slot>) -> Access {
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
        if rest.is_some() || twins || twice || members.len() > Seen::MOST {
            Access::Opened
        } else {
            Access::Walked(members.iter().map(|(_, member)| member.glance()).collect())
        }
    }
}

/// What a value must be to be read at a glance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Glance {
    /// Something of this sort, which is the value of this hole.
    Value(usize, Sort),
    /// Nothing: it is looked at more closely.
    Closer,
}

/// What is told of a value by its first byte, and little more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Anything but `null`, which may stand for no value.
    Any,
    /// A string without escapes.
    Plain,
    /// A number without fraction and exponent.
    Integer,
    /// Any value of this kind.
    Of(Kind),
}

impl Pattern {
    fn glance(&self) -> Glance {
        match self {
            Pattern::Hole(slot) => match (&slot.role, slot.codec, slot.shape.sort()) {
                (Role::Shared(hole), Codec::Plain | Codec::Percent, Some(sort)) => {
                    Glance::Value(*hole, sort)
                }
                _ => Glance::Closer,
            },
            Pattern::Literal(_)
            | Pattern::Object(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_) => Glance::Closer,
        }
    }
}

impl Shape {
    fn sort(&self) -> Option<Sort> {
        match self {
            Shape::Any => Some(Sort::Any),
            Shape::One(Scalar::String) => Some(Sort::Plain),
            Shape::One(Scalar::Integer) => Some(Sort::Integer),
            Shape::One(Scalar::Number) => Some(Sort::Of(Kind::Number)),
            Shape::One(Scalar::Boolean) => Some(Sort::Of(Kind::Boolean)),
            Shape::Object => Some(Sort::Of(Kind::Object)),
            Shape::Array => Some(Sort::Of(Kind::Array)),
            Shape::One(Scalar::Enum(_))
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Null => None,
        }
    }
}

impl Sort {
    #[inline(always)]
    fn has(self, text: &[u8], spelling: Spelling) -> bool {
        match self {
            Sort::Any => text.first() != Some(&b'n'),
            Sort::Plain => text.first() == Some(&b'"') && spelling == Spelling::Plain,
            Sort::Integer => is_integer(text),
            Sort::Of(kind) => kind_of(text) == kind,
        }
    }
}

/// The members that a walk has come to, by their places in the pattern.
#[derive(Debug, Default)]
struct Seen(u64);

impl Seen {
    const MOST: usize = u64::BITS as usize;

    /// Adds a member that has not been seen before.
    #[inline(always)]
    fn add(&mut self, place: usize) -> Option<()> {
        let before = self.0;
        self.0 |= 1 << place;
        (self.0 != before).then_some(())
    }

    fn has(&self, place: usize) -> bool {
        self.0 & (1 << place) != 0
    }

    fn count(&self) -> usize {
        self.0.count_ones() as usize
    }
}

impl ObjectPattern {
    /// Reads an object in one walk; nothing where that has to be done with more care.
    pub(super) fn read_walking(&self, object: &Json, reading: &mut Reading) -> Option<()> {
        let dropped = reading.dropped;
        let read = self.walk(object, &mut Walk::of(object.as_bytes(), 0)?, reading);
        if read.is_none() {
            reading.dropped = dropped;
        }
        read
    }

    fn is_walkable(&self) -> bool {
        matches!(self.access, Access::Walked(_)) && self.rest.is_none()
    }

    /// Reads the members of an object that is a part of the whole.
    fn walk(&self, whole: &Json, walk: &mut Walk<'_>, reading: &mut Reading) -> Option<()> {
        let Access::Walked(glances) = &self.access else {
            return None;
        };
        let text = whole.as_bytes();
        let mut seen = Seen::default();
        let mut next = 0;
        while let Some(place) = self.next_known(next, walk)? {
            seen.add(place)?;
            next = place + 1;
            if let Some(Glance::Value(hole, sort)) = glances.get(place) {
                let (value, spelling) = walk.spelled_value();
                if sort.has(text.get(value.clone())?, spelling) {
                    reading.bind_value(*hole, whole.piece(value))?;
                } else {
                    self.members[place].1.look(whole, value, reading)?;
                }
            } else if let Pattern::Object(object) = &self.members[place].1
                && object.is_walkable()
            {
                let mut inside = walk.inside()?;
                object.walk(whole, &mut inside, reading)?;
                walk.leave(&inside);
            } else {
                self.members[place].1.look(whole, walk.value(), reading)?;
            }
        }
        if seen.count() < self.members.len() {
            for (place, (_, member)) in self.members.iter().enumerate() {
                if !seen.has(place) {
                    member.read(None, reading).ok()?;
                }
            }
        }
        Some(())
    }

    /// Goes to the value of the next member and tells which it is, if there is one: mostly it is this.
    #[inline(always)]
    fn next_known(&self, mostly: usize, walk: &mut Walk<'_>) -> Option<Option<usize>> {
        let key = self.keys.get(mostly);
        if key.is_some_and(|key| walk.takes(key)) {
            return Some(Some(mostly));
        }
        match walk.name() {
            None => Some(None),
            Some((_, Spelling::Escaped)) => None,
            Some((name, Spelling::Plain)) => {
                let mut known = self.members.iter();
                known
                    .position(|(known, _)| known.as_bytes() == name)
                    .map(Some)
            }
        }
    }
}

impl Pattern {
    /// Reads a part of the whole that is no value at a glance.
    #[inline(never)]
    fn look(&self, whole: &Json, value: Range<usize>, reading: &mut Reading) -> Option<()> {
        let text = whole.as_bytes();
        match self {
            Pattern::Literal(literal) if literal.as_bytes() == text.get(value.clone())? => Some(()),
            Pattern::Literal(_)
            | Pattern::Hole(_)
            | Pattern::Object(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_) => self.take(whole.piece(value), reading).ok(),
        }
    }
}
