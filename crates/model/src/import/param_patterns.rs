//! The params of a route as patterns, by name or by index. Used by `import::route`.

use std::collections::BTreeMap;

use super::drafted::Pattern;

/// Patterns of params by position, in the order of insertion.
#[derive(Debug)]
pub(super) struct ParamPatterns<P> {
    pub(super) all: Vec<(P, Pattern)>,
    /// The index of the first pattern at each position.
    first_at: BTreeMap<P, usize>,
}

impl<P> Default for ParamPatterns<P> {
    fn default() -> ParamPatterns<P> {
        ParamPatterns {
            all: Vec::new(),
            first_at: BTreeMap::new(),
        }
    }
}

impl<P: Ord + Clone> ParamPatterns<P> {
    pub(super) fn add(&mut self, position: P, pattern: Pattern) {
        self.first_at
            .entry(position.clone())
            .or_insert(self.all.len());
        self.all.push((position, pattern));
    }

    /// Adds a member to the object at a position.
    pub(super) fn add_inside(&mut self, position: &P, name: String, member: Pattern) {
        let first_at = self
            .first_at
            .get(position)
            .and_then(|at| self.all.get_mut(*at));
        match first_at {
            Some((_, Pattern::Object(members))) => members.push((name, member)),
            Some((_, Pattern::Text(_) | Pattern::Literal(_) | Pattern::List(_))) => {}
            None => self.add(position.clone(), Pattern::Object(vec![(name, member)])),
        }
    }
}
