//! Where the members lie that a pattern names: all of its objects in one walk.
//!
//! A walk ends at the first name that is strange, given twice or spelled with escapes, and then nothing is found: such
//! objects are opened one by one. Where it comes through, each name stands once and is known, so nothing else can be
//! wrong with the names.

use std::ops::Range;

use super::{ObjectPattern, Pattern};
use crate::domain::json::{Json, Spelling, Walk};

/// The places of all members that a pattern and the patterns inside it name.
#[derive(Debug)]
pub(super) struct Found {
    places: Vec<Place>,
}

/// The place of a member.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// The value in the text of the whole; empty where there is no such member.
    pub(super) value: Range<usize>,
    /// Where the places of its own members begin, if these were walked through.
    pub(super) inside: Option<usize>,
}

impl Found {
    /// Where the members of an object lie, from the first place on.
    pub(super) fn of(pattern: &ObjectPattern, object: &Json) -> Option<Found> {
        /// Few patterns have more members, and growing a list costs more than some room that stays empty.
        const USUAL: usize = 16;
        if !pattern.is_walkable() {
            return None;
        }
        let mut found = Found {
            places: Vec::with_capacity(USUAL),
        };
        found.walk(pattern, &mut Walk::of(object.as_bytes(), 0)?)?;
        Some(found)
    }

    /// The places of members, from this one on.
    pub(super) fn from(&self, first: usize) -> &[Place] {
        self.places.get(first..).unwrap_or_default()
    }

    fn walk(&mut self, pattern: &ObjectPattern, walk: &mut Walk<'_>) -> Option<()> {
        let first = self.places.len();
        let last = first + pattern.members.len();
        self.places.resize(last, Place::default());
        let mut next = 0;
        while let Some(index) = pattern.next_known(next, walk)? {
            next = index + 1;
            let place = match &pattern.members[index].1 {
                Pattern::Object(inner) if inner.is_walkable() => {
                    let inside = self.places.len();
                    let mut inner_walk = walk.inside()?;
                    self.walk(inner, &mut inner_walk)?;
                    Place {
                        value: walk.value_of(&inner_walk),
                        inside: Some(inside),
                    }
                }
                Pattern::Object(_)
                | Pattern::Literal(_)
                | Pattern::Hole(_)
                | Pattern::Text(_)
                | Pattern::List(_)
                | Pattern::Each(_) => Place {
                    value: walk.value(),
                    inside: None,
                },
            };
            let known = &mut self.places[first + index];
            if !known.value.is_empty() {
                return None;
            }
            *known = place;
        }
        Some(())
    }
}

impl ObjectPattern {
    /// Whether a value that has only names of the pattern, each once, can be read without another look at its names.
    fn is_walkable(&self) -> bool {
        self.rest.is_none() && !self.has_twins
    }

    /// Goes to the value of the next member and tells which it is, if there is one: mostly it is this.
    #[inline]
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
