//! Objects read in one walk: each member is read where the walk comes to it.
//!
//! A walk ends at the first thing that is out of the common: a name that is strange, given twice or spelled with
//! escapes, a value that does not fit. Then the object is opened and read member by member, which tells what is
//! wrong; what the walk has bound is bound to the same values again. So no object is walked in which a hole stands
//! twice, where it would matter which of its places comes first.

use super::{Bound, Codec, ObjectPattern, Pattern, Reading, Role, Slot};
use crate::domain::json::{Json, Spelling, Walk, kind_of, same_ignoring_case};

/// How the objects of a pattern are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// In one walk, unless something is out of the common.
    Walked,
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
            Access::Walked
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
        if !self.is_walkable() {
            return None;
        }
        let dropped = reading.dropped;
        let read = self.walk(object, &mut Walk::of(object.as_bytes(), 0)?, reading);
        if read.is_none() {
            reading.dropped = dropped;
        }
        read
    }

    fn is_walkable(&self) -> bool {
        self.access == Access::Walked && self.rest.is_none()
    }

    fn walk(&self, whole: &Json, walk: &mut Walk<'_>, reading: &mut Reading) -> Option<()> {
        let mut seen = Seen::default();
        let mut next = 0;
        while let Some(place) = self.next_known(next, walk)? {
            seen.add(place)?;
            self.members[place].1.read_next(whole, walk, reading)?;
            next = place + 1;
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
        if key.is_some_and(|key| walk.takes(&key[1..])) {
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
    /// Reads the value that a walk has come to, which is a part of the whole.
    #[inline(always)]
    fn read_next(&self, whole: &Json, walk: &mut Walk<'_>, reading: &mut Reading) -> Option<()> {
        match self {
            Pattern::Object(object) if object.is_walkable() => {
                let mut inside = walk.inside()?;
                object.walk(whole, &mut inside, reading)?;
                walk.leave(&inside);
                Some(())
            }
            Pattern::Hole(slot) => {
                let (place, spelling) = walk.spelled_value();
                let text = &whole.as_bytes()[place.clone()];
                match slot.role {
                    Role::Shared(hole) if slot.takes(text, spelling) => {
                        let value = Bound::Value(whole.piece(place));
                        reading.bind_hole(hole, value).ok()
                    }
                    Role::Shared(_) | Role::Written(_) | Role::Forgotten(_) => {
                        self.take(whole.piece(place), reading).ok()
                    }
                }
            }
            Pattern::Literal(_)
            | Pattern::Object(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_) => self.take(whole.piece(walk.value()), reading).ok(),
        }
    }
}

impl Slot {
    /// Whether a text is a value of this place, told at a glance; others may be values as well.
    #[inline(always)]
    fn takes(&self, text: &[u8], spelling: Spelling) -> bool {
        self.codec != Codec::Json
            && text.first() != Some(&b'n')
            && self.shape.takes(kind_of(text), text, spelling)
    }
}
