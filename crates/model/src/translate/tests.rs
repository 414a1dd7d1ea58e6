use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::route::{RouteSource, RouteTable, parse_route};

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: String::new,
};

fn route(rest: &str) -> Route {
    parse_route(RouteSource {
        name: "r".into(),
        rest: rest.into(),
        rpc: "m".into(),
        ..RouteSource::default()
    })
    .unwrap()
}

fn json(text: &str) -> Json {
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), 128).unwrap()
}

fn to_rpc(rest: &str, url: &str, body: Option<&str>) -> Result<String, String> {
    let (path, query) = url
        .split_once('?')
        .map_or((url, None), |(path, query)| (path, Some(query)));
    let route = route(rest);
    let head = RestHead {
        segments: &Segments::split(path),
        query,
        headers: &HeaderMap::new(),
    };
    let reading = read_rest(&route, head, TERMS).map_err(|error| error.to_string())?;
    let translated =
        rest_to_rpc(&route, reading, body.map(json), TERMS).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(translated.params.into_bytes().to_vec()).unwrap())
}

fn to_rest(rest: &str, params: Option<&str>) -> Result<(String, Option<String>, usize), String> {
    let translated = rpc_to_rest(
        &route(rest),
        MethodCall::new("m", params.map(json).as_ref()),
        TERMS,
    )
    .map_err(|error| error.to_string())?;
    let body = translated
        .body
        .map(|body| String::from_utf8(body.into_bytes().to_vec()).unwrap());
    Ok((translated.target, body, translated.dropped))
}

#[test]
fn names_that_differ_only_in_letter_case_are_refused_even_if_the_route_knows_both() {
    let read = |params: &str| to_rest("GET /a?id={id?}&ID={ID?}", Some(params));
    assert_eq!(read(r#"{"id":"1"}"#).unwrap().0, "/a?id=1");
    assert_eq!(
        read(r#"{"id":"1","ID":"2"}"#).unwrap_err(),
        "params: member `id`: it differs from `ID` only in letter case"
    );
}

#[test]
fn members_are_read_alike_in_any_order_and_spelling_but_once() {
    let read = |params: &str| to_rest("GET /a/{id}/{n:integer}", Some(params));
    for params in [
        r#"{"id":"x","n":7}"#,
        r#"{"n":7,"id":"x"}"#,
        r#" { "n" : 7 , "id" : "x" } "#,
        r#"{"\u0069d":"x","n":7}"#,
        r#"{"id":"\u0078","n":7}"#,
    ] {
        assert_eq!(read(params).unwrap().0, "/a/x/7", "{params}");
    }
    for params in [
        r#"{"id":"x","n":7,"id":"x"}"#,
        r#"{"n":7,"n":7,"id":"x"}"#,
        r#"{"id":"x","\u0069d":"x","n":7}"#,
    ] {
        let fault = read(params).unwrap_err();
        assert!(fault.ends_with("it is given twice"), "{params}: {fault}");
    }
}

#[test]
fn an_integer_with_a_fraction_or_an_exponent_is_written_in_digits() {
    for (n, digits) in [("3.0", "3"), ("3e0", "3"), ("1.5e1", "15"), ("-0.0", "0")] {
        let params = format!(r#"{{"n":{n}}}"#);
        let written = to_rest("GET /a?n={n:integer}", Some(&params)).unwrap();
        assert_eq!(written.0, format!("/a?n={digits}"));
    }
    for n in ["3.5", "1e400", "18446744073709551616.0"] {
        let params = format!(r#"{{"n":{n}}}"#);
        let fault = to_rest("GET /a?n={n:integer}", Some(&params)).unwrap_err();
        assert_eq!(fault, format!("params/n: `{n}` is not an integer"));
    }
    let list = to_rest("GET /a?n={n:integer[]}", Some(r#"{"n":[1, 2.0]}"#)).unwrap();
    assert_eq!(list.0, "/a?n=1&n=2");
    // A text is what it is: `3.0` may be the name of another resource.
    assert!(to_rpc("GET /a/{n:integer}", "/a/3.0", None).is_err());
}

#[test]
fn empty_positional_params_are_none_at_all() {
    for params in ["[]", "[ ]"] {
        let written = to_rest("GET /a?q={q?}", Some(params)).unwrap();
        assert_eq!(written, ("/a".into(), None, 0));
        let fault = to_rest("GET /a/{id}", Some(params)).unwrap_err();
        assert_eq!(fault, "params/id: it is required");
    }
    let fault = to_rest("GET /a?q={q?}", Some("[1]")).unwrap_err();
    assert_eq!(fault, "params: it must be an object, not an array");
}

#[test]
fn a_body_that_nothing_opens_is_carried_as_it_is() {
    let body =
        r#"{ "b":1.10,"a":123456789012345678901234567890,"a":"\u0041" ,"n":1e400, "s":"\ud800"}"#;
    assert_eq!(to_rpc("POST /a", "/a", Some(body)).unwrap(), body);
    assert_eq!(
        to_rest("POST /a", Some(body)).unwrap(),
        ("/a".into(), Some(body.into()), 0)
    );
}

#[test]
fn absent_and_empty_read_alike_and_have_one_written_form() {
    assert_eq!(to_rpc("POST /a", "/a", None).unwrap(), "{}");
    for params in [None, Some("{}"), Some("{ }")] {
        let (target, body, _) = to_rest("POST /a", params).unwrap();
        let body = body.map(|body| body.replace(' ', ""));
        assert_eq!((&*target, body.as_deref()), ("/a", Some("{}")));
        assert_eq!(
            to_rest("DELETE /a", params).unwrap(),
            ("/a".into(), None, 0)
        );
    }
}

#[test]
fn holes_and_members_share_one_object() {
    let rest = "PUT /a/{id}?n={n:integer?}";
    let params = to_rpc(rest, "/a/7?n=1", Some(r#"{ "x" : [1.0] }"#)).unwrap();
    assert_eq!(params, r#"{"id":"7","n":1, "x" : [1.0] }"#);
    let back = to_rest(rest, Some(&params)).unwrap();
    assert_eq!(
        back,
        ("/a/7?n=1".into(), Some(r#"{"x" : [1.0]}"#.into()), 0)
    );
    assert_eq!(to_rpc(rest, "/a/7", Some("{}")).unwrap(), r#"{"id":"7"}"#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_value_that_cannot_be_written_is_an_error_with_its_location() {
    for (rest, url, body, words) in [
        (
            "POST /a",
            "/a",
            Some("[1]"),
            "body: it must be an object, not an array",
        ),
        (
            "GET /a",
            "/a",
            Some("{}"),
            "body: GET of this route takes no body",
        ),
        (
            "POST /a/{id}",
            "/a/7",
            Some(r#"{"id":8}"#),
            "body/id: `id` is already given elsewhere",
        ),
        (
            "POST /a/{id}",
            "/a/7",
            Some(r#"{"ID":8}"#),
            "body/ID: `id` is already given elsewhere",
        ),
        (
            "POST /a/{id}",
            "/a/7",
            Some(r#"{"\u0069d":8}"#),
            "body/id: `id` is already given elsewhere",
        ),
        (
            "POST /a/{id}",
            "/a/7",
            Some(r#"{"x":1,"x":2}"#),
            "body: member `x`: it is given twice",
        ),
        (
            "POST /a/{id}",
            "/a/7",
            Some(r#"{"x":1,"X":2}"#),
            "body: member `x`: it differs from `X` only in letter case",
        ),
        (
            "POST /a/{id}",
            "/a/7",
            Some(r#"{"\ud800":1}"#),
            "body: a member name: a lone surrogate escape is not Unicode text",
        ),
    ] {
        assert_eq!(to_rpc(rest, url, body).unwrap_err(), words);
    }
    for (rest, params, words) in [
        (
            "POST /a",
            "[1]",
            "params: it must be an object, not an array",
        ),
        ("POST /a/{id}", "{\"x\":1}", "params/id: it is required"),
        (
            "POST /a/{id}",
            r#"{"id":7}"#,
            "params/id: it must be a string, not a number",
        ),
        (
            "POST /a/{id}",
            r#"{"id":"7","Id":"8"}"#,
            "params: member `id`: it differs from `Id` only in letter case",
        ),
        (
            "GET /a?n={n?}",
            r#"{"N":"8"}"#,
            "params/N: it differs from `n` only in letter case",
        ),
    ] {
        assert_eq!(to_rest(rest, Some(params)).unwrap_err(), words);
    }
}

#[test]
fn unknown_members_are_refused_and_those_of_the_protocol_are_not() {
    for rest in ["GET /a/{id}", "DELETE /a/{id}"] {
        let refused = to_rest(rest, Some(r#"{"id":"7","x":1,"y":2,"_meta":{}}"#)).unwrap_err();
        assert_eq!(refused, "params/x: the route does not know it");
        let passed = to_rest(rest, Some(r#"{"id":"7","_meta":{}}"#)).unwrap();
        assert_eq!(passed, ("/a/7".into(), None, 0));
    }
    let carried = to_rest("POST /a", Some(r#"{"x":1,"_meta":{"v":1}}"#)).unwrap();
    assert_eq!(carried, ("/a".into(), Some(r#"{"x":1}"#.into()), 0));
}

#[test]
fn a_body_cannot_break_out_of_its_envelope() {
    let broken = Json::parse(Bytes::from_static(br#"{}},"method":"x""#), 128);
    assert!(broken.is_err());
    let inside = to_rpc("POST /a", "/a", Some(r#"{"a":"}},\"method\":\"x\""}"#)).unwrap();
    assert_eq!(inside, r#"{"a":"}},\"method\":\"x\""}"#);
}

#[test]
fn a_member_that_only_a_sibling_accepts_is_refused() {
    let delete = |name: &str, rest: &str| {
        let source = RouteSource {
            name: name.into(),
            rest: rest.into(),
            rpc: "s/delete".into(),
            ..RouteSource::default()
        };
        parse_route(source).unwrap()
    };
    let table = RouteTable::build(vec![
        delete("one", "DELETE /s?id={id}"),
        delete("all", "DELETE /s"),
    ])
    .unwrap();
    let select = |params: Option<&Json>| {
        table
            .route(table.select_rpc("s/delete", params).unwrap())
            .name
            .clone()
    };
    assert_eq!(select(Some(&json(r#"{"id":"7"}"#))), "one");
    assert_eq!(select(None), "all");
    assert_eq!(select(Some(&json(r#"{"id":""}"#))), "one");
    let all = table
        .routes()
        .iter()
        .find(|route| route.name == "all")
        .unwrap();
    let error = rpc_to_rest(
        all,
        MethodCall::new("s/delete", Some(&json(r#"{"id":""}"#))),
        TERMS,
    )
    .unwrap_err();
    assert_eq!(error.to_string(), "params/id: the route does not accept it");
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "[a-z\"\\\\é{}]{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::hash_map("[a-z]{1,5}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn there_and_back_is_the_same_call(
        id in "[^\\p{C}\\\\/.]{1,9}",
        n in proptest::option::of(any::<i64>()),
        members in proptest::collection::hash_map("m[a-z]{1,6}", value(), 0..5),
    ) {
        let rest = "POST /a/{id}?n={n:integer?}";
        let mut params = serde_json::Map::new();
        params.insert("id".into(), id.into());
        if let Some(n) = n { params.insert("n".into(), n.into()); }
        params.extend(members);
        let text = serde_json::Value::Object(params.clone()).to_string();
        let (target, body, _) = to_rest(rest, Some(&text)).unwrap();
        let back = to_rpc(rest, &target, body.as_deref()).unwrap();
        let back: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&back).unwrap();
        prop_assert_eq!(back, params);
    }

    #[test]
    fn no_body_makes_it_panic(body in value(), url in "/a/[a-z%]{0,6}(\\?[a-z=&]{0,9})?") {
        let _ = to_rpc("POST /a/{id}?n={n?}", &url, Some(&body.to_string()));
        let _ = to_rest("POST /a/{id}?n={n?}", Some(&body.to_string()));
    }
}

mod alternatives;
mod captured;
mod constructs;
mod equal;
mod forms;
mod laws;
mod maps;
mod pages;
mod read_only;
