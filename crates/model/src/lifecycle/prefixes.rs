//! The leading literal segments of the routes' paths. A call that matches no route, but has the prefix of one, may be a
//! call of that route in an unexpected spelling.
//!
//! Used by `lifecycle::usage`.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::route::{Route, SegmentPattern, Segments};

/// The prefixes of a plan, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefixes {
    all: Vec<String>,
    indexes: HashMap<String, usize, FixedState>,
    /// The prefix of each route, by the route's index in the table.
    of_routes: Vec<Option<usize>>,
    longest: usize,
}

impl Prefixes {
    /// Collects the prefixes of all routes.
    #[must_use]
    pub fn new(routes: &[Route]) -> Prefixes {
        let mut prefixes = Prefixes::default();
        for route in routes {
            // A frame has no path to compare with.
            let index = (!route.is_frame()).then(|| prefixes.add(prefix(route)));
            prefixes.of_routes.push(index);
        }
        prefixes
    }

    fn add(&mut self, prefix: String) -> usize {
        self.longest = self.longest.max(prefix.len());
        let next = self.all.len();
        let index = *self.indexes.entry(prefix.clone()).or_insert(next);
        if index == next {
            self.all.push(prefix);
        }
        index
    }

    /// Returns all prefixes, each once.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.all
    }

    /// Returns the prefix of a route.
    #[must_use]
    pub fn of_route(&self, route: usize) -> &str {
        let index = self.of_routes.get(route).copied().flatten();
        index.map_or("/", |index| &self.all[index])
    }

    /// Returns the index of the longest prefix that contains a path.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<usize> {
        if self.all.is_empty() {
            return None;
        }
        // Fast path: most paths need no normalization.
        let path = if path.contains('%') || !path.is_ascii() {
            Cow::Owned(Segments::split(path).normal())
        } else {
            Cow::Borrowed(path)
        };
        let mut end = path.len();
        loop {
            if end <= self.longest
                && let Some(index) = self.indexes.get(&path[..end])
            {
                return Some(*index);
            }
            match path[..end].rfind('/') {
                Some(slash) if slash > 0 => end = slash,
                _ => return self.indexes.get("/").copied(),
            }
        }
    }
}

/// Returns true when one prefix lies under another.
pub(super) fn is_under(prefix: &str, above: &str) -> bool {
    above == "/"
        || prefix
            .strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the leading literal segments of a path; `/` where the path begins with a hole.
fn prefix(route: &Route) -> String {
    let mut prefix = String::new();
    let (segments, _) = route.rest_call.path.before_slash();
    for segment in segments {
        let SegmentPattern::Literal(text) = segment else {
            break;
        };
        prefix.push('/');
        prefix.push_str(text);
    }
    if prefix.is_empty() {
        prefix.push('/');
    }
    prefix
}
