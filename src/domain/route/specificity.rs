//! Which of two routes is more specific: A is when every call that fits A fits B.
//!
//! A route is compared on one side at a time, as that side's callers see it: on the REST side by its path,
//! query, headers and body, on the RPC side by its method and params. Requests live in a closed world: a
//! name that one route has and the other does not makes a call foreign to the other.

use super::{HeaderItem, PlacedHole, QueryItem, Route};
use crate::domain::json::Json;
use crate::domain::pattern::{
    MemberPolicy, Pattern, Subsumption, TextPatterns, intersection, words_meeting,
};
use crate::domain::side::Side;

/// Whether every call that fits `one` fits `other`.
pub(super) fn refines(one: &Route, other: &Route, side: Side) -> bool {
    let mut compared = Subsumption::new(MemberPolicy::Closed);
    let each = match side {
        Side::Rpc => {
            let (one, other) = (&one.rpc_call, &other.rpc_call);
            compared.words(Some(&one.method), &other.method)
                && compared.place(Some(&one.params), Some(&other.params))
        }
        Side::Rest => {
            let (one, other) = (&one.rest_call, &other.rest_call);
            path_within(&one.path.holes, &other.path.holes, &mut compared)
                && query_within(&one.query, &other.query, &mut compared)
                && headers_within(&one.headers, &other.headers, &mut compared)
                && compared.place(one.body.as_ref(), other.body.as_ref())
        }
    };
    // A hole may stand in the path and in the body: then both have the same value.
    each && compared.agrees()
}

/// Whether some call fits both.
pub(super) fn share(one: &Route, other: &Route, side: Side) -> bool {
    match side {
        Side::Rpc => {
            words_meeting(&one.rpc_call.method, &other.rpc_call.method).is_some()
                && intersection(
                    &one.rpc_call.params,
                    &other.rpc_call.params,
                    MemberPolicy::Closed,
                )
                .is_some()
        }
        Side::Rest => {
            let (first, second) = (&one.rest_call, &other.rest_call);
            heads_share(one, other)
                && match (&first.body, &second.body) {
                    (Some(one), Some(other)) => {
                        intersection(one, other, MemberPolicy::Closed).is_some()
                    }
                    (Some(body), None) | (None, Some(body)) => reads_nothing(body),
                    (None, None) => true,
                }
        }
    }
}

/// Whether a call without a body fits a pattern: it is read as the empty object.
fn reads_nothing(body: &Pattern) -> bool {
    body.may_be_absent() || matches!(body, Pattern::Object(object) if object.is_empty())
}

/// Whether some call fits the heads of both, whatever its body is.
pub(super) fn heads_share(one: &Route, other: &Route) -> bool {
    let (one, other) = (&one.rest_call, &other.rest_call);
    let meet = |one: &TextPatterns, other: &TextPatterns| words_meeting(one, other).is_some();
    let named = |one: &[QueryItem], other: &[QueryItem]| {
        one.iter().all(
            |item| match other.iter().find(|twin| twin.key == item.key) {
                Some(twin) => meet(&item.words, &twin.words),
                None => item.words.may_be_absent(),
            },
        )
    };
    path(&one.path.holes, &other.path.holes, meet)
        && named(&one.query, &other.query)
        && named(&other.query, &one.query)
        && headers_meet(&one.headers, &other.headers)
}

/// Holes of one path are told by their place, whatever their names.
fn path(
    one: &[PlacedHole],
    other: &[PlacedHole],
    by: impl Fn(&TextPatterns, &TextPatterns) -> bool,
) -> bool {
    one.iter().all(|placed| {
        let place = |twin: &&PlacedHole| (twin.start, twin.end) == (placed.start, placed.end);
        let words = |placed: &PlacedHole| TextPatterns::Hole(placed.slot.clone());
        other
            .iter()
            .find(place)
            .is_none_or(|twin| by(&words(placed), &words(twin)))
    })
}

/// The same, of all texts. A hole that lies across those of the other route must take any text.
fn path_within<'r>(
    one: &'r [PlacedHole],
    other: &'r [PlacedHole],
    compared: &mut Subsumption<'r>,
) -> bool {
    other.iter().all(|placed| {
        let place = |twin: &&PlacedHole| (twin.start, twin.end) == (placed.start, placed.end);
        let twin = one.iter().find(place).map(|twin| &twin.slot);
        compared.slots(twin, &placed.slot)
    })
}

fn query_within<'r>(
    one: &'r [QueryItem],
    other: &'r [QueryItem],
    compared: &mut Subsumption<'r>,
) -> bool {
    let known = one.iter().all(|item| {
        let twin = other.iter().find(|twin| twin.key == item.key);
        twin.is_some_and(|twin| compared.words(Some(&item.words), &twin.words))
    });
    let missing = |item: &&QueryItem| one.iter().all(|twin| twin.key != item.key);
    known
        && other
            .iter()
            .filter(missing)
            .all(|item| compared.words(None, &item.words))
}

/// Headers that a pattern does not name do not matter.
fn headers_within<'r>(
    one: &'r [HeaderItem],
    other: &'r [HeaderItem],
    compared: &mut Subsumption<'r>,
) -> bool {
    other.iter().all(|item| {
        let twin = one.iter().find(|twin| twin.name == item.name);
        twin.is_some_and(|twin| compared.words(Some(&twin.words), &item.words))
    })
}

fn headers_meet(one: &[HeaderItem], other: &[HeaderItem]) -> bool {
    one.iter().all(|item| {
        let twin = other.iter().find(|twin| twin.name == item.name);
        twin.is_none_or(|twin| words_meeting(&item.words, &twin.words).is_some())
    })
}

/// A value at a place of the params that tells routes apart: the same place is a literal in many of them.
pub(super) fn literals(pattern: &Pattern) -> Vec<(Vec<String>, Json)> {
    fn collect(pattern: &Pattern, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, Json)>) {
        match pattern {
            Pattern::Literal(json) => found.push((path.clone(), json.clone())),
            Pattern::Object(object) => {
                for (name, member) in &object.members {
                    path.push(name.clone());
                    collect(member, path, found);
                    path.pop();
                }
            }
            Pattern::Hole(_) | Pattern::Text(_) | Pattern::List(_) | Pattern::Each(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(pattern, &mut Vec::new(), &mut found);
    found
}
