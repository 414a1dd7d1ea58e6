//! The order of routes by specificity: A is more specific than B if every call that matches A matches B.
//!
//! Routes are compared on one side at a time, as the callers of that side see them: the REST side by path, query,
//! headers and body, the RPC side by method and params. The comparison assumes a closed world: a call with a name that
//! a route does not have does not match it.
//!
//! Used by `route::overlaps`.

use super::definition::{RestCall, Route};
use super::headers::HeaderItem;
use super::template::{PlacedHole, QueryItem};
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::{
    MemberPolicy, Pattern, Subsumption, TextPatterns, may_intersect, words_intersection,
};
use dualgauge_patterns::side::Side;

/// Returns true when every call that matches `one` matches `other`.
pub(super) fn refines(one: &Route, other: &Route, side: Side) -> bool {
    let mut compared = Subsumption::new(MemberPolicy::Closed);
    let each = match side {
        Side::Rpc => {
            let (one, other) = (&one.rpc_call, &other.rpc_call);
            compared.words(Some(&one.method), &other.method)
                && compared.optional(Some(&one.params), Some(&other.params))
        }
        Side::Rest => {
            let (one, other) = (&one.rest_call, &other.rest_call);
            path_within(&one.path.holes, &other.path.holes, &mut compared)
                && query_within(one, other, &mut compared)
                && headers_within(&one.headers, &other.headers, &mut compared)
                && compared.optional(one.body.as_ref(), other.body.as_ref())
        }
    };
    // A hole may occur in both path and body: then both have the same value.
    each && compared.agrees()
}

/// Returns true when some call matches both.
pub(super) fn share(one: &Route, other: &Route, side: Side) -> bool {
    match side {
        Side::Rpc => {
            words_intersection(&one.rpc_call.method, &other.rpc_call.method).is_some()
                && may_intersect(
                    &one.rpc_call.params,
                    &other.rpc_call.params,
                    MemberPolicy::Closed,
                )
        }
        Side::Rest => {
            let (first, second) = (&one.rest_call, &other.rest_call);
            heads_share(one, other)
                && match (&first.body, &second.body) {
                    (Some(one), Some(other)) => may_intersect(one, other, MemberPolicy::Closed),
                    (Some(body), None) | (None, Some(body)) => reads_nothing(body),
                    (None, None) => true,
                }
        }
    }
}

/// Returns true when a call without a body matches a pattern: it is read as the empty object.
fn reads_nothing(body: &Pattern) -> bool {
    body.may_be_absent() || matches!(body, Pattern::Object(object) if object.is_empty())
}

/// Returns true when some call matches the heads of both, for some body.
pub(super) fn heads_share(one: &Route, other: &Route) -> bool {
    let (one, other) = (&one.rest_call, &other.rest_call);
    let meet = |one: &TextPatterns, other: &TextPatterns| words_intersection(one, other).is_some();
    let named = |one: &RestCall, other: &RestCall| {
        one.query.iter().all(
            |item| match other.query.iter().find(|twin| twin.key == item.key) {
                Some(twin) => meet(&item.words, &twin.words),
                None => other.other_query.is_some() || item.words.may_be_absent(),
            },
        )
    };
    path(&one.path.holes, &other.path.holes, meet)
        && named(one, other)
        && named(other, one)
        && headers_meet(&one.headers, &other.headers)
}

/// Compares the holes of two paths by their position, regardless of their names.
fn path(
    one: &[PlacedHole],
    other: &[PlacedHole],
    by: impl Fn(&TextPatterns, &TextPatterns) -> bool,
) -> bool {
    one.iter().enumerate().all(|(index, placed)| {
        let words = |placed: &PlacedHole| TextPatterns::Hole(placed.slot.clone());
        counterpart(one, index, other).is_none_or(|twin| by(&words(placed), &words(twin)))
    })
}

/// Returns the hole of another path in the same place: the same segments, and the same position among the holes of one
/// segment.
fn counterpart<'r>(
    holes: &[PlacedHole],
    index: usize,
    other: &'r [PlacedHole],
) -> Option<&'r PlacedHole> {
    let placed = &holes[index];
    let same_span = |twin: &&PlacedHole| (twin.start, twin.end) == (placed.start, placed.end);
    let before = holes[..index].iter().filter(same_span).count();
    other.iter().filter(same_span).nth(before)
}

/// Returns true when all texts of the first path's holes fit the second. A hole that overlaps those of the other route
/// must take any text.
fn path_within<'r>(
    one: &'r [PlacedHole],
    other: &'r [PlacedHole],
    compared: &mut Subsumption<'r>,
) -> bool {
    other.iter().enumerate().all(|(index, placed)| {
        let twin = counterpart(other, index, one).map(|twin| &twin.slot);
        compared.slots(twin, &placed.slot)
    })
}

/// Compares queries. Captured names have any texts: a route that captures is within no route that refuses other names,
/// or that reads one of them.
fn query_within<'r>(
    one: &'r RestCall,
    other: &'r RestCall,
    compared: &mut Subsumption<'r>,
) -> bool {
    let captures = other.other_query.is_some();
    let known = one.query.iter().all(|item| {
        let twin = other.query.iter().find(|twin| twin.key == item.key);
        twin.map_or(captures, |twin| {
            compared.words(Some(&item.words), &twin.words)
        })
    });
    let missing = |item: &&QueryItem| one.query.iter().all(|twin| twin.key != item.key);
    let mut missing = other.query.iter().filter(missing);
    known
        && match one.other_query {
            Some(_) => captures && missing.next().is_none(),
            None => missing.all(|item| compared.words(None, &item.words)),
        }
}

/// Compares headers. Headers that a pattern does not name are ignored.
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
        twin.is_none_or(|twin| words_intersection(&item.words, &twin.words).is_some())
    })
}

/// Returns the literals of a pattern of params, each with its path.
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
            Pattern::Hole(_)
            | Pattern::Text(_)
            | Pattern::List(_)
            | Pattern::Each(_)
            | Pattern::Either(_) => {}
        }
    }
    let mut found = Vec::new();
    collect(pattern, &mut Vec::new(), &mut found);
    found
}
