//! The order in which the paths of two routes are compared with a call.
//!
//! [`super::path`] finds a path segment by segment from the left. This module answers which of two templates it finds
//! first. Law: if both match a path and the order is decided, the lookup returns the one that comes first.
//!
//! Used by `route::overlaps` and `route::table`.

use super::template::{SegmentPattern, Template};
use dualgauge_patterns::pattern::segment_intersection;

/// The order of two templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathOrder {
    /// No path matches both.
    Apart,
    /// Both match the same paths.
    Same,
    /// The first one is found where both match.
    First,
    /// The second one is found where both match.
    Second,
    /// Both match some path, and each has a segment of text and holes that the other one does not contain.
    Undecided,
}

impl PathOrder {
    /// Returns this order, or the next one if both are the same so far.
    fn then(self, next: impl FnOnce() -> PathOrder) -> PathOrder {
        match self {
            PathOrder::Same => next(),
            PathOrder::Apart | PathOrder::First | PathOrder::Second | PathOrder::Undecided => self,
        }
    }

    /// Returns the order by a property: one that has it comes first.
    fn by(have: [bool; 2]) -> PathOrder {
        match have {
            [true, false] => PathOrder::First,
            [false, true] => PathOrder::Second,
            [true, true] | [false, false] => PathOrder::Same,
        }
    }
}

/// Returns the order of two templates.
pub(super) fn path_order<H>(one: &Template<H>, other: &Template<H>) -> PathOrder {
    let ((left, left_slash), (right, right_slash)) = (one.before_slash(), other.before_slash());
    let verbs_differ = match (&one.verb, &other.verb) {
        (Some(one), Some(other)) => one != other,
        (Some(_), None) | (None, Some(_) | None) => false,
    };
    if left_slash != right_slash || verbs_differ {
        return PathOrder::Apart;
    }
    let by_verb = PathOrder::by([one.verb.is_some(), other.verb.is_some()]);
    let mut order = PathOrder::Same;
    for at in 0.. {
        use SegmentPattern::Rest;
        let (a, b) = (left.get(at), right.get(at));
        return match (a, b) {
            (None, None) => order,
            (Some(Rest), Some(Rest)) => order.then(|| by_verb),
            // One that ends here, or has a pattern for the next segment, is found before any number of segments.
            (Some(Rest), _) => order.then(|| PathOrder::Second),
            (_, Some(Rest)) => order.then(|| PathOrder::First),
            (None, Some(_)) | (Some(_), None) => PathOrder::Apart,
            (Some(a), Some(b)) => {
                let is_last = at + 1 == left.len() && at + 1 == right.len();
                let with_verb = is_last && by_verb != PathOrder::Same;
                if !meets(a, b, with_verb) {
                    return PathOrder::Apart;
                }
                if is_last {
                    order = order.then(|| by_verb);
                }
                order = order.then(|| segment_order(a, b));
                continue;
            }
        };
    }
    order
}

/// Returns true when a segment may match both, where only one of them has a verb behind it.
fn meets(one: &SegmentPattern, other: &SegmentPattern, with_verb: bool) -> bool {
    let is_open = |pattern: &SegmentPattern| !matches!(pattern, SegmentPattern::Literal(_));
    match with_verb {
        // A literal has no colon, and a hole may contain one.
        true => is_open(one) || is_open(other),
        false => one.meets(other),
    }
}

fn segment_order(one: &SegmentPattern, other: &SegmentPattern) -> PathOrder {
    match PathOrder::by([one.precedes(other), other.precedes(one)]) {
        PathOrder::Same if one != other => PathOrder::Undecided,
        order @ (PathOrder::Apart
        | PathOrder::Same
        | PathOrder::First
        | PathOrder::Second
        | PathOrder::Undecided) => order,
    }
}

/// Returns true when every path of the inner template matches the outer one.
pub(super) fn path_contains(outer: &Template, inner: &Template) -> bool {
    let mut pairs = outer.segments.iter().zip(&inner.segments);
    let ends_open = outer.segments.last() == Some(&SegmentPattern::Rest);
    let same_length = outer.segments.len() == inner.segments.len()
        || (ends_open && inner.segments.len() > outer.segments.len());
    same_length
        && outer.verb == inner.verb
        && pairs.all(|(outer, inner)| outer == inner || inner.precedes(outer))
}

/// Returns a path that two templates without `**` share, for messages.
pub(super) fn common_path(one: &Template, other: &Template) -> String {
    let mut path = String::new();
    for (one, other) in one.segments.iter().zip(&other.segments) {
        use SegmentPattern::{Literal, One, Rest, Text};
        path.push('/');
        match (one, other) {
            (Literal(text), _) | (_, Literal(text)) => path.push_str(text),
            (Text(one), Text(other)) => {
                path.push_str(&segment_intersection(one, other).unwrap_or_default());
            }
            (Text(text), One | Rest) | (One | Rest, Text(text)) => {
                path.push_str(&segment_intersection(text, text).unwrap_or_default());
            }
            (One | Rest, One | Rest) => path.push('a'),
        }
    }
    if let Some(verb) = one.verb.as_ref().or(other.verb.as_ref()) {
        path.push(':');
        path.push_str(verb);
    }
    path
}
