//! Routes that spell out `params` and `body`.

use http::{HeaderMap, Method};

use super::source;
use crate::route::{Extra, RestSelection, RouteSource, RouteTable, Segments, parse_route};
use crate::translate::RestHead;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::pattern::SourceTree;

#[test]
fn a_full_form_that_means_nothing_is_refused_with_the_key() {
    let text = |text: &str| SourceTree::Text(text.into());
    let table = |members: &[(&str, &str)]| {
        let members = members
            .iter()
            .map(|(name, value)| ((*name).to_owned(), text(value)));
        SourceTree::Table(members.collect())
    };
    let twins = table(&[("a", "{a}"), ("A", "{b}")]);
    let middle = SourceTree::List(vec![text("{a}"), text("*"), text("{b}")]);
    let both = table(&[("a", "{a}"), ("b", "{b}")]);
    for (params, body, key, words) in [
        (both.clone(), Some(twins), "body.A", "only in letter case"),
        (
            middle,
            Some(both.clone()),
            "params[1]",
            "is the first of two",
        ),
        (both.clone(), None, "params", "on the rpc side only"),
        (text("{a}"), None, "params", "is on the rpc side only"),
        (table(&[("a", "{a}{b}")]), None, "params.a", "touch"),
        (
            table(&[("a", "{>a}")]),
            None,
            "params",
            "has no value to write",
        ),
        (table(&[("...", "x")]), None, "params.\"...\"", "one hole"),
    ] {
        let errors = parse_route(RouteSource {
            params: Some(params),
            body,
            ..source("r", "POST /a", "m")
        });
        let error = errors.unwrap_err().remove(0);
        assert_eq!(error.key, key, "{error:?}");
        assert!(error.what.contains(words), "{error:?}");
    }
}

#[test]
fn a_header_that_cannot_be_written_without_its_value_is_refused() {
    let parsed = |header: &str, param: &str| {
        let text =
            |name: &str, text: &str| vec![(name.to_owned(), SourceTree::Text(text.to_owned()))];
        let errors = parse_route(RouteSource {
            headers: text("x-a", header),
            params: Some(SourceTree::Table(text("a", param))),
            ..source("r", "GET /a", "m")
        });
        errors
            .map(drop)
            .map_err(|mut errors| errors.remove(0).to_string())
    };
    let cannot = "the default of `a`: its value is not allowed in a header";
    for (header, param, words) in [
        // The space behind a name is not part of a value: nothing would read what is written.
        ("Bearer {a=}", "{a=x}", cannot),
        ("Bearer {a=x}", "{a=}", cannot),
        ("{a= x}", "{a}", cannot),
        ("{a?=x}", "{a=y\nz}", cannot),
        ("Bearer {a} ", "{a}", "its value is not allowed in a header"),
        ("{a:string[,]=[\"x,y\"]}", "{a}", "it contains a comma"),
    ] {
        let error = parsed(header, param).unwrap_err();
        assert!(error.contains(words), "{header} {param}: {error}");
    }
    for (header, param) in [
        ("Bearer {a=x}", "{a=y}"),
        ("({a=})", "{a=x}"),
        ("{a=}", "{a=x}"),
        ("{a:string[,]=[]}", "{a=[\"x\",\"y\"]}"),
    ] {
        assert_eq!(parsed(header, param), Ok(()), "{header} {param}");
    }
}

#[test]
fn siblings_are_distinguished_by_the_bodies_they_accept() {
    let route = |name: &str, rest: &str, extra| {
        let full = RouteSource {
            params: Some(SourceTree::Table(vec![
                ("k".into(), SourceTree::Text("{k}".into())),
                ("b".into(), SourceTree::Text("{b?}".into())),
            ])),
            body: Some(SourceTree::Table(vec![(
                "b".into(),
                SourceTree::Text("{b?}".into()),
            )])),
            extra: Some(extra),
            ..source(name, rest, name)
        };
        parse_route(full).unwrap()
    };
    let routes = vec![
        route("strict", "POST /a?k={k:integer}", Extra::Reject),
        route("loose", "POST /a?k={k}", Extra::Drop),
    ];
    let table = RouteTable::build(routes).unwrap();
    let headers = HeaderMap::new();
    let segments = Segments::split("/a");
    let RestSelection::ByBody(group) =
        table.select_rest(&Method::POST, &segments, Some("k=1"), &headers)
    else {
        panic!("the body decides");
    };
    let head = RestHead {
        segments: &segments,
        query: Some("k=1"),
        headers: &headers,
    };
    for (body, name) in [("{\"b\":1}", "strict"), ("{\"c\":{}}", "loose")] {
        let body = Json::parse(body.into(), 128).unwrap();
        let taken = table.select_by_body(group, head, Some(&body)).unwrap();
        assert_eq!(table.route(taken).name, name);
    }
}
