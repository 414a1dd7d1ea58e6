//! Patterns of the params of a call, by name or by position.

use std::collections::BTreeMap;

use super::route::Pattern;

/// Patterns by place, in the order of insertion.
#[derive(Debug)]
pub(super) struct Places<P> {
    pub(super) all: Vec<(P, Pattern)>,
    /// The index of the first pattern of each place.
    known: BTreeMap<P, usize>,
}

impl<P> Default for Places<P> {
    fn default() -> Places<P> {
        Places {
            all: Vec::new(),
            known: BTreeMap::new(),
        }
    }
}

impl<P: Ord + Clone> Places<P> {
    pub(super) fn add(&mut self, place: P, pattern: Pattern) {
        self.known.entry(place.clone()).or_insert(self.all.len());
        self.all.push((place, pattern));
    }

    /// Adds a member to the object at a place.
    pub(super) fn add_inside(&mut self, place: &P, member: (String, Pattern)) {
        let known = self.known.get(place).and_then(|at| self.all.get_mut(*at));
        match known {
            Some((_, Pattern::Object(members))) => members.push(member),
            Some((_, Pattern::Text(_) | Pattern::List(_))) => {}
            None => self.add(place.clone(), Pattern::Object(vec![member])),
        }
    }
}
