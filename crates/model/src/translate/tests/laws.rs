//! The laws of translation, over generated routes and calls.

use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::*;
use crate::route::arbitrary::{Sent, rest_call, rpc_call, source};
use dualgauge_patterns::pattern::arbitrary::{Dice, thrown};
use dualgauge_patterns::pattern::{BoundValue, SourceTree};

/// A call as an RPC client sends it.
type Called = (String, Json);

fn cut(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

fn there(route: &Route, sent: &Sent) -> Result<(Called, Bindings), MatchError> {
    let (path, query) = cut(&sent.target);
    let head = RestHead {
        segments: &Segments::split(path),
        query,
        headers: &sent.headers,
    };
    let reading = read_rest(route, head, TERMS)?;
    let written = rest_to_rpc(route, reading, sent.body.clone(), TERMS)?;
    let params = Json::parse(written.params.into_bytes(), 128).expect("what is written is JSON");
    Ok(((written.method.into_owned(), params), written.bindings))
}

fn back(route: &Route, (method, params): &Called) -> Result<(Sent, Bindings), MatchError> {
    let written = rpc_to_rest(route, MethodCall::new(method, Some(params)), TERMS)?;
    let body = written
        .body
        .map(|body| Json::parse(body.into_bytes(), 128).expect("what is written is JSON"));
    let sent = Sent {
        target: written.target,
        headers: HeaderMap::from_iter(written.headers),
        body,
    };
    Ok((sent, written.bindings))
}

/// Whether a value is another one, or its normal form on the other side.
fn is_normal(before: &BoundValue, after: &BoundValue, defaults: &[&Json]) -> bool {
    let is_default = |value: &Json| defaults.iter().any(|default| default.same(value));
    let is_empty = |value: &Json| value.kind() == JsonKind::Array && value.elements().count() == 0;
    match (before, after) {
        (before, after) if before.same(after) => true,
        // An absent default is written.
        (BoundValue::Absent, BoundValue::Value(value)) => {
            is_default(value) || value.same(&Json::literal("{}"))
        }
        // An empty list is none in a URL.
        (BoundValue::Value(list), BoundValue::Absent) => is_empty(list),
        (BoundValue::Value(list), BoundValue::Value(value)) => is_empty(list) && is_default(value),
        // The members of nothing are none.
        (BoundValue::Absent, BoundValue::Members(members))
        | (BoundValue::Members(members), BoundValue::Absent) => {
            members.whole().same(&Json::literal("{}"))
        }
        (BoundValue::Each(before), BoundValue::Each(after)) => {
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
            describe(route, &[&route.facts.holes[hole], before, after])
        );
    }
    Ok(())
}

fn route_of(dice: &mut Dice) -> Option<Route> {
    parse_route(source(dice)).ok()
}

/// The route, and what has become of its call.
fn describe(route: &Route, steps: &[&dyn std::fmt::Debug]) -> String {
    let call = &route.rest_call;
    format!(
        "{} {:?} {:?} <-> {} {:?}: {steps:#?}",
        route.rest, call.headers, call.body, route.rpc, route.rpc_call.params
    )
}

/// A step that must succeed, but for one thing: an optional value that is absent, or an empty list of a URL,
/// leaves a gap among elements or in a text that cannot be written, and the caller is told so.
fn step<T>(
    (route, before): (&Route, &dyn std::fmt::Debug),
    step: Result<T, MatchError>,
) -> Result<T, TestCaseError> {
    step.map_err(|error| {
        let gap = ["it is absent, but", "some of its values"];
        if gap.iter().any(|words| error.what.starts_with(words)) {
            TestCaseError::reject("a gap")
        } else {
            TestCaseError::fail(describe(route, &[before, &error]))
        }
    })
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
    #![proptest_config(ProptestConfig { cases: 1000, max_global_rejects: 100_000, ..ProptestConfig::default() })]

    #[test]
    fn a_call_from_rest_round_trips_unchanged_or_in_normal_form(mut dice in thrown(40..300)) {
        let Some(route) = route_of(&mut dice) else { return Ok(()) };
        let first = rest_call(&route, &mut dice);
        let Ok((call, before)) = there(&route, &first) else { return Ok(()) };
        let (second, after) = step((&route, &(&first, &call)), back(&route, &call))?;
        expect_normal(&route, &before, &after)?;
        // Once in normal form, it stays.
        let (again, _) = step((&route, &(&call, &second)), there(&route, &second))?;
        let (third, _) = step((&route, &(&second, &again)), back(&route, &again))?;
        prop_assert!(same_sent(&second, &third), "{}", describe(&route, &[&second, &again, &third]));
    }

    #[test]
    fn a_call_from_rpc_round_trips_unchanged_or_in_normal_form(mut dice in thrown(40..300)) {
        let Some(route) = route_of(&mut dice) else { return Ok(()) };
        let first = rpc_call(&route, &mut dice);
        let Ok((sent, before)) = back(&route, &first) else { return Ok(()) };
        let (second, after) = step((&route, &(&first, &sent)), there(&route, &sent))?;
        expect_normal(&route, &before, &after)?;
        let (again, _) = step((&route, &(&sent, &second)), back(&route, &second))?;
        let (third, _) = step((&route, &(&second, &again)), there(&route, &again))?;
        prop_assert_eq!(&second.0, &third.0);
        prop_assert_eq!(second.1.as_bytes(), third.1.as_bytes(), "{}", describe(&route, &[&second, &again, &third]));
    }

    #[test]
    fn what_a_pattern_writes_it_reads_as_the_same_values(mut dice in thrown(40..300)) {
        let Some(route) = route_of(&mut dice) else { return Ok(()) };
        let sent = rest_call(&route, &mut dice);
        if let Ok((call, before)) = there(&route, &sent) {
            let reading = read_rpc(&route, MethodCall::new(&call.0, Some(&call.1)), TERMS);
            let reading = step((&route, &(&sent, &call)), reading)?;
            expect_normal(&route, &before, &reading.bindings)?;
        }
        let call = rpc_call(&route, &mut dice);
        if let Ok((sent, before)) = back(&route, &call) {
            let (path, query) = cut(&sent.target);
            let head = RestHead { segments: &Segments::split(path), query, headers: &sent.headers };
            let reading = read_rest(&route, head, TERMS).and_then(|mut reading| {
                read_body(&route, sent.body.as_ref(), &mut reading)?;
                Ok(reading)
            });
            let reading = step((&route, &(&call, &sent)), reading)?;
            expect_normal(&route, &before, &reading.bindings)?;
        }
    }

    #[test]
    fn unopened_values_round_trip_byte_for_byte(inside in any_json(3), member in any_json(2)) {
        let whole = format!("{{\"a\":{inside} , \"b\" :{member}}}");
        // The short form carries all of it.
        let params = to_rpc("POST /a", "/a", Some(&whole)).unwrap();
        prop_assert_eq!(&params, &whole);
        prop_assert_eq!(to_rest("POST /a", Some(&params)).unwrap().1.unwrap(), whole.clone());
        // A hole of any type carries its value.
        let text = |text: &str| SourceTree::Text(text.into());
        let route = parse_route(RouteSource {
            rest: "POST /a".into(),
            rpc: "m".into(),
            body: Some(SourceTree::Table(vec![("x".into(), text("{x}")), ("...".into(), text("{others}"))])),
            params: Some(SourceTree::List(vec![text("{others}"), text("{x}")])),
            ..RouteSource::default()
        }).unwrap();
        let headers = HeaderMap::new();
        let sent = Sent { target: "/a".into(), headers, body: Some(json(&format!("{{\"x\":{inside},\"y\":{member}}}"))) };
        let (call, _) = there(&route, &sent).unwrap();
        prop_assert_eq!(&call.1.clone().into_bytes()[..], format!("[{{\"y\":{member}}},{inside}]").into_bytes());
        let (again, _) = back(&route, &call).unwrap();
        prop_assert_eq!(again.body.unwrap().into_bytes(), sent.body.unwrap().into_bytes());
    }

    #[test]
    fn no_call_makes_a_route_panic(
        mut dice in thrown(40..300),
        target in "/p[ -~é\u{0}]{0,30}",
        name in "[ -~é\u{0}]{0,12}",
        value in proptest::collection::vec(any::<u8>(), 0..12),
        body in proptest::collection::vec(any::<u8>(), 0..60),
        text in any_json(3),
    ) {
        let route = match parse_route(source(&mut dice)) {
            Ok(route) => route,
            Err(errors) => {
                prop_assert!(errors.iter().all(|error| error.key.starts_with("route[0]")), "{errors:?}");
                return Ok(());
            }
        };
        let mut headers = HeaderMap::new();
        for item in &route.rest_call.headers {
            headers.extend(HeaderValue::from_bytes(&value).map(|value| (item.name.clone(), value)));
        }
        for bytes in [Bytes::from(body), text.clone().into()] {
            let body = Json::parse(bytes, 128).ok();
            let _ = there(&route, &Sent { target: target.clone(), headers: headers.clone(), body: body.clone() });
            if let Some(params) = body {
                let _ = back(&route, &(name.clone(), params));
            }
        }
        // The same in places that the route knows.
        let mut sent = rest_call(&route, &mut dice);
        sent.body = Some(json(&text));
        let _ = there(&route, &sent);
        let (method, _) = rpc_call(&route, &mut dice);
        let _ = back(&route, &(method, json(&text)));
    }

    #[test]
    fn no_table_makes_the_compiler_panic(
        rest in "(GET|POST|X) /[{}a-z0-9:?=&|*/.%,\\[\\]_>é]{0,24}",
        rpc in "[{}a-z:=?>.]{0,10}",
        params in any_tree(3),
        body in proptest::option::of(any_tree(3)),
        header in "[a-z-]{0,6}|host|A",
        text in any_tree(1),
    ) {
        let source = RouteSource {
            key: "route[0]".into(),
            name: "r".into(),
            rest,
            rpc,
            params: Some(params),
            body,
            headers: vec![(header, text.clone())],
            query: vec![("q".into(), text)],
            ..RouteSource::default()
        };
        match parse_route(source) {
            Ok(route) => drop(back(&route, &("m".into(), json("{}")))),
            Err(errors) => prop_assert!(
                !errors.is_empty() && errors.iter().all(|error| error.key.starts_with("route[0].") && !error.what.is_empty()),
                "{errors:?}"
            ),
        }
    }
}

/// JSON of any bytes that are valid: white space, escapes, duplicate keys, big numbers, lone surrogates.
fn any_json(depth: u32) -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1.10".to_owned()),
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,4})?",
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just(r#""\ud800""#.to_owned()),
        Just(r#""\u0041\/""#.to_owned()),
        any::<String>()
            .prop_map(|text| String::from_utf8(Json::string(&text).as_bytes().to_vec()).unwrap()),
    ];
    leaf.prop_recursive(depth, 24, 4, |inner| {
        let names = prop_oneof![
            Just("a"),
            Just("A"),
            Just("x"),
            Just(r"\u0061"),
            Just("_meta")
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[ {}]", items.join(" ,\n"))),
            proptest::collection::vec((names, inner), 0..4).prop_map(|members| {
                let members = members
                    .iter()
                    .map(|(name, value)| format!("\"{name}\" :{value}"));
                format!("{{\t{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

/// What a route table may say where a pattern stands, sense or nonsense.
fn any_tree(depth: u32) -> impl Strategy<Value = SourceTree> {
    let leaf = prop_oneof![
        "[{}a-z:?=|,\\[\\]()_>\".é]{0,16}".prop_map(SourceTree::Text),
        "\\{[>]?[ab_](:(integer|json|string\\[\\]|object|null|enum\\(a\\|b\\)))?[?]?(=[1a]?)?\\}"
            .prop_map(SourceTree::Text),
        Just(SourceTree::Text("{b...}".into())),
        Just(SourceTree::Text("*".into())),
        Just(SourceTree::Literal(Json::literal("7"))),
    ];
    leaf.prop_recursive(depth, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(SourceTree::List),
            proptest::collection::vec(("[aA]|\\.\\.\\.|x y", inner), 0..4)
                .prop_map(SourceTree::Table),
        ]
    })
}
