//! The specificity relation between patterns, by which routes and outcomes are chosen: A is more specific than B if
//! every value that matches A matches B.
//!
//! This module knows neither routes nor outcomes. Laws, tested on generated patterns: [`within`] is reflexive and
//! transitive, and never true if a value of the one does not match the other; the result of [`intersection()`] matches
//! both. If [`may_intersect`] is false, no value matches both, with two exceptions, where values are compared by a few
//! samples: JSON inside a longer text, and a hole that occurs several times with different restrictions. The search is
//! limited; at its limit, [`may_intersect`] is true.

mod acceptance;
mod grammar;
mod hole_links;
mod intersection;
mod repeated_holes;
mod segments;
mod shapes;
mod subsumption;
mod texts;
mod words;

pub use acceptance::MemberPolicy;
pub(in crate::pattern) use acceptance::reads;
#[cfg(any(test, feature = "arbitrary"))]
pub(in crate::pattern) use acceptance::{array, object};
pub(in crate::pattern) use intersection::{Intersection, search};
pub use intersection::{intersection, may_intersect, optional_intersection, sample};
pub use segments::{segment_intersection, segment_within};
pub use subsumption::{Subsumption, optional_within, within};
pub use words::{words_intersection, words_within};

#[cfg(test)]
mod tests;
