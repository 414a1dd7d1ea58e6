//! Paths with text beside holes, for a table that is drafted route by route.
//!
//! Law: a table of the paths that were added has no two of which neither is more specific.
//!
//! Used by `import`.

use http::Method;

use super::parse::parse_rest;
use super::path_order::{PathOrder, path_order};
use super::template::{SegmentPattern, Template};
use dualgauge_patterns::pattern::HoleRef;

/// The most paths that are compared with each new one.
const MOST: usize = 1_000;

/// Paths with text beside holes.
#[derive(Debug, Default)]
pub(crate) struct PathTexts {
    known: Vec<(Method, Template<HoleRef>)>,
}

impl PathTexts {
    /// Adds `METHOD /path`. A path without text beside a hole is not kept.
    ///
    /// # Errors
    /// The reason why a table with the known paths may not have this one.
    pub(crate) fn add(&mut self, rest: &str) -> Result<(), &'static str> {
        let Ok(spelling) = parse_rest(rest) else {
            return Ok(());
        };
        let is_text = |segment: &SegmentPattern| matches!(segment, SegmentPattern::Text(_));
        if !spelling.path.segments.iter().any(is_text) {
            return Ok(());
        }
        let mut known = self.known.iter();
        let overlaps = known.any(|(method, path)| {
            *method == spelling.method && path_order(path, &spelling.path) == PathOrder::Undecided
        });
        if overlaps {
            return Err(
                "shares paths with another route, and neither is more specific; order the two by `after`",
            );
        }
        if self.known.len() == MOST {
            return Err("comes after 1000 other paths with text beside a parameter");
        }
        self.known.push((spelling.method, spelling.path));
        Ok(())
    }
}
