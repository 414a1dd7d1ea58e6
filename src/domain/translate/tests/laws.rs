//! The laws of translation, over generated routes and calls.

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::domain::pattern::arbitrary::{Dice, thrown};
use crate::domain::pattern::Bound;
use crate::domain::route::arbitrary::{Sent, rest_call, rpc_call, source};

/// A call as an RPC client sends it.
type Called = (String, Json);

fn there(route: &Route, sent: &Sent) -> Result<(Called, Bindings), BindError> {
    let (path, query) = match sent.target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (sent.target.as_str(), None),
    };
    let head = RestHead {
        segments: &Segments::split(path),
        query,
        headers: &sent.headers,
    };
    let reading = read_rest(route, head, TERMS)?;
    let written = rest_to_rpc(route, reading, sent.body.clone(), TERMS)?;
    let params = Json::parse(written.params.into_bytes(), 128).expect("what is written is JSON");
    Ok(((written.method, params), written.call))
}

fn back(route: &Route, (method, params): &Called) -> Result<(Sent, Bindings), BindError> {
    let written = rpc_to_rest(route, (method, Some(params)), TERMS)?;
    let body = written.body.map(|body| {
        Json::parse(body.into_bytes(), 128).expect("what is written is JSON")
    });
    let sent = Sent {
        target: written.target,
        headers: HeaderMap::from_iter(written.headers),
        body,
    };
    Ok((sent, written.call))
}

/// Whether a value is another one, or its normal form on the other side.
fn is_normal(before: &Bound, after: &Bound, defaults: &[&Json]) -> bool {
    let is_default = |value: &Json| defaults.iter().any(|default| default.same(value));
    let is_empty = |value: &Json| value.kind() == Kind::Array && value.elements().count() == 0;
    match (before, after) {
        (before, after) if before.same(after) => true,
        // An absent default is written.
        (Bound::Absent, Bound::Value(value)) => is_default(value),
        // An empty list is none in a URL.
        (Bound::Value(list), Bound::Absent) => is_empty(list),
        (Bound::Value(list), Bound::Value(value)) => is_empty(list) && is_default(value),
        // The members of nothing are none.
        (Bound::Absent, Bound::Members(members)) | (Bound::Members(members), Bound::Absent) => {
            members.whole().same(&Json::literal("{}"))
        }
        (Bound::Each(before), Bound::Each(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|(before, after)| is_normal(before, after, defaults))
        }
        _ => false,
    }
}

fn defaults(route: &Route, hole: usize) -> Vec<Json> {
    let slots = route.rest_slots().into_iter().chain(route.rpc_slots());
    let own = slots.filter(|slot| slot.binds() == Some(hole));
    own.filter_map(|slot| slot.default().cloned()).collect()
}

fn expect_normal(route: &Route, before: &Bindings, after: &Bindings) -> Result<(), TestCaseError> {
    for hole in 0..before.len() {
        let defaults = defaults(route, hole);
        let defaults: Vec<&Json> = defaults.iter().collect();
        let (before, after) = (before.get(hole), after.get(hole));
        prop_assert!(
            is_normal(before, after, &defaults),
            "{}",
            told(route, &[&route.facts.holes[hole], before, after])
        );
    }
    Ok(())
}

fn route_of(dice: &mut Dice) -> Option<Route> {
    parse_route(source(dice)).ok()
}

/// The route, and what has become of its call.
fn told(route: &Route, steps: &[&dyn std::fmt::Debug]) -> String {
    let call = &route.rest_call;
    format!(
        "{} {:?} {:?} <-> {} {:?}: {steps:#?}",
        route.rest, call.headers, call.body, route.rpc, route.rpc_call.params
    )
}

/// An optional value that is absent leaves a gap among elements, or in a text, that cannot be written: the
/// caller is told so.
fn is_gap(error: &BindError) -> bool {
    error.what.starts_with("it is absent, and") || error.what.starts_with("some of its values")
}

fn same_sent(one: &Sent, other: &Sent) -> bool {
    one.target == other.target
        && one.headers == other.headers
        && one.body.as_ref().map(Json::as_bytes) == other.body.as_ref().map(Json::as_bytes)
}

#[test]
fn most_generated_routes_load_and_most_calls_fit_them() {
    let (mut routes, mut calls) = (0, [0, 0]);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..400 {
        let mut dice = thrown(200..400).new_tree(&mut runner).unwrap().current();
        let Some(route) = route_of(&mut dice) else {
            continue;
        };
        routes += 1;
        calls[0] += usize::from(there(&route, &rest_call(&route, &mut dice)).is_ok());
        calls[1] += usize::from(back(&route, &rpc_call(&route, &mut dice)).is_ok());
    }
    assert!(
        routes > 200 && calls[0] > 50 && calls[1] > 50,
        "{routes} {calls:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, max_global_rejects: 40_000, ..ProptestConfig::default() })]

    #[test]
    fn what_came_from_rest_comes_back_as_it_was_or_in_normal_form(mut dice in thrown(40..300)) {
        let Some(route) = route_of(&mut dice) else { return Ok(()) };
        let first = rest_call(&route, &mut dice);
        let Ok((call, before)) = there(&route, &first) else { return Ok(()) };
        let second = back(&route, &call);
        prop_assume!(!matches!(&second, Err(error) if is_gap(error)));
        let (second, after) = second
            .map_err(|error| TestCaseError::fail(told(&route, &[&first, &call, &error])))?;
        expect_normal(&route, &before, &after)?;
        // Once in normal form, it stays.
        let (again, _) = there(&route, &second)
            .map_err(|error| TestCaseError::fail(told(&route, &[&call, &second, &error])))?;
        let (third, _) = back(&route, &again)
            .map_err(|error| TestCaseError::fail(told(&route, &[&second, &again, &error])))?;
        prop_assert!(same_sent(&second, &third), "{}", told(&route, &[&second, &again, &third]));
    }

    #[test]
    fn what_came_from_rpc_comes_back_as_it_was_or_in_normal_form(mut dice in thrown(40..300)) {
        let Some(route) = route_of(&mut dice) else { return Ok(()) };
        let first = rpc_call(&route, &mut dice);
        let Ok((sent, before)) = back(&route, &first) else { return Ok(()) };
        let second = there(&route, &sent);
        prop_assume!(!matches!(&second, Err(error) if is_gap(error)));
        let (second, after) = second
            .map_err(|error| TestCaseError::fail(told(&route, &[&first, &sent, &error])))?;
        expect_normal(&route, &before, &after)?;
        let (again, _) = back(&route, &second)
            .map_err(|error| TestCaseError::fail(told(&route, &[&sent, &second, &error])))?;
        let (third, _) = there(&route, &again)
            .map_err(|error| TestCaseError::fail(told(&route, &[&second, &again, &error])))?;
        prop_assert_eq!(&second.0, &third.0);
        prop_assert_eq!(second.1.as_bytes(), third.1.as_bytes());
    }
}
