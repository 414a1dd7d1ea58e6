//! Which paths a lenient server reads as the path of a route.

use http::HeaderMap;
use proptest::prelude::*;

use super::*;
use crate::route::{RestSelection, RouteSource, parse_route};
use dualgauge_patterns::percent::{Keep, encode};

fn table(rows: &[String]) -> RouteTable {
    let routes = rows.iter().enumerate().map(|(at, rest)| {
        let source = RouteSource {
            name: rest.clone(),
            rest: rest.clone(),
            rpc: format!("m{at}"),
            ..RouteSource::default()
        };
        parse_route(source).unwrap()
    });
    RouteTable::build(routes.collect()).unwrap()
}

/// The routes, without streams and answers of the proxy's own, and one RPC path.
fn lenient(routes: &RouteTable) -> LenientPaths {
    let rpc = ["/v1/mcp".to_owned()];
    LenientPaths::new(routes, &Streams::default(), &LocalReplies::default(), &rpc)
}

fn found(paths: &LenientPaths, request: &str) -> Option<Target> {
    let (method, path) = request.split_once(' ').unwrap();
    paths.find(&method.parse().unwrap(), path, |_| true)
}

const ROWS: [&str; 8] = [
    "GET /api/items",
    "DELETE /api/items/{id}",
    "POST /api/items/{id}:Stop",
    "GET /a%20b/c",
    "GET /caf%C3%A9/{id}/",
    "GET /files/{path=**}",
    "PUT /a%2Fb",
    "GET /blocks/{hash}.Json",
];

/// Calls, each with the index of the route that a lenient server reads in it.
const FOUND: [(&str, usize); 44] = [
    ("GET /API/items", 0),
    ("GET /api/ITEMS", 0),
    ("HEAD /api/Items", 0),
    ("GET /api%2fitems", 0),
    ("GET /api%252Fitems", 0),
    ("GET /api%5citems", 0),
    ("GET /api%C0%AFitems", 0),
    ("GET /api;v=1/items;x", 0),
    ("GET /api%3bv/items", 0),
    ("GET /api/items;x%2fy", 0),
    ("GET /x/../api/items", 0),
    ("GET /x/%2e%2e/api/items", 0),
    ("GET /x/%252e%252e/api/items", 0),
    ("GET /x%2f..%2fapi/items", 0),
    ("GET /x/..;/api/items", 0),
    ("GET /x/..%5capi/items", 0),
    ("GET //api/items", 0),
    ("GET /api/./items", 0),
    ("GET /api%2f%2fitems", 0),
    ("GET /%2561pi/items", 0),
    ("GET /api/items%00", 0),
    ("GET /api/items%00.html", 0),
    ("GET /api/items%20", 0),
    ("GET /api/items.", 0),
    ("GET /api/items%3fx=1", 0),
    ("GET /api/items%23", 0),
    ("GET /API/items/", 0),
    ("GET /api/%69tems%2f", 0),
    ("DELETE /api%2fitems%2f7", 1),
    ("DELETE /API/items/Seven", 1),
    ("DELETE /API/items/a%2fb", 1),
    ("DELETE /api/items//", 1),
    ("DELETE /api/items/7/..", 1),
    ("POST /api/items/7:sTOP", 2),
    ("POST /api%2fitems/7%3Astop", 2),
    ("GET /A%20B/c", 3),
    ("GET /a%2520b/c", 3),
    ("GET /CAF%C3%89/7", 4),
    ("GET /caf%C3%A9%2f7/", 4),
    ("GET /FILES/a/b", 5),
    ("PUT /A%2fb", 6),
    ("GET /Blocks/7.json", 7),
    ("GET /blocks%2f7.Json", 7),
    ("GET /blocks/7.Json;x", 7),
];

#[test]
fn a_path_that_a_lenient_server_reads_as_that_of_a_route_is_found() {
    let table = table(&ROWS.map(str::to_owned));
    let paths = lenient(&table);
    for (request, route) in FOUND {
        assert_eq!(
            found(&paths, request),
            Some(Target::Route(route)),
            "{request}"
        );
    }
    for request in ["POST /V1/mcp", "GET /v1%2Fmcp", "DELETE /v1/x/../mcp"] {
        assert_eq!(found(&paths, request), Some(Target::Rpc), "{request}");
    }
    for request in [
        "GET /",
        "GET /API",
        "PUT /api%2fitems",
        "GET /api/items/7/8",
        "GET /Api/items/7/8",
        "GET /api%zzitems",
        "GET /api%c0itemS",
        "GET /%2f%2e%2e",
        "GET /api/items.json",
        "GET /apiItems",
        "GET /Blocks/7.hex",
        "GET /..%2f..%2fetc/passwd",
    ] {
        assert_eq!(found(&paths, request), None, "{request}");
    }
}

#[test]
fn a_path_in_lower_case_is_irregular_where_a_route_has_capitals() {
    let table = table(&["GET /Api/Items".to_owned()]);
    let paths = lenient(&table);
    assert_eq!(found(&paths, "GET /api/items"), Some(Target::Route(0)));
    assert_eq!(found(&paths, "GET /api/other"), None);
}

#[test]
fn an_owner_that_does_not_count_is_left_out() {
    let table = table(&["GET /items/{id}/".to_owned()]);
    let paths = lenient(&table);
    let path = "/items/ABC";
    let is_other = |target: Target| target != Target::Route(0);
    assert!(paths.find(&Method::GET, path, |_| true).is_some());
    assert_eq!(paths.find(&Method::GET, path, is_other), None);
}

#[test]
fn the_longest_path_has_a_bounded_number_of_readings() {
    let path = "/%252525;a\\%00/..".repeat(8 * 1024 / 18);
    let mut read = 0;
    let none: Option<()> = reading::find_reading(&path, |_| {
        read += 1;
        None
    });
    assert_eq!(none, None);
    assert!((2..=128).contains(&read), "{read}");
}

/// A literal, a hole, or a hole beside text.
fn segment() -> impl Strategy<Value = String> {
    let literal = "[a-zA-Zé][a-zA-Z0-9é ~_.-]{0,5}[a-z]".prop_map(|text| {
        let mut literal = String::new();
        encode(&text, Keep::Nothing, &mut literal);
        literal
    });
    let beside_text = prop_oneof![Just("{}.Json"), Just("tx{}")].prop_map(str::to_owned);
    prop_oneof![3 => literal, 1 => Just("{}".to_owned()), 1 => beside_text]
}

/// A method and a template, each hole with a name of its own.
fn row() -> impl Strategy<Value = String> {
    let method = prop_oneof![Just("GET"), Just("POST")];
    (method, prop::collection::vec(segment(), 1..4)).prop_map(|(method, segments)| {
        let named = segments.iter().enumerate();
        let named = named.map(|(at, segment)| segment.replace("{}", &format!("{{h{at}}}")));
        format!("{method} /{}", named.collect::<Vec<_>>().join("/"))
    })
}

fn is_strictly_routed(table: &RouteTable, method: &Method, path: &str) -> bool {
    let segments = Segments::split(path);
    let selected = table.select_rest(method, &segments, None, &HeaderMap::new());
    match selected {
        RestSelection::Route(_) | RestSelection::ByBody(_) | RestSelection::OtherLiterals => true,
        RestSelection::OtherMethods(_) | RestSelection::Unrouted | RestSelection::Near(_) => false,
    }
}

proptest! {
    #[test]
    fn each_irregular_spelling_of_a_path_of_a_route_is_found(row in row()) {
        let table = table(&[row]);
        let paths = lenient(&table);
        let route = table.route(0);
        for path in spellings(&sample(&route.rest_call.path)) {
            if !is_strictly_routed(&table, &route.method, &path) {
                let found = paths.find(&route.method, &path, |_| true);
                prop_assert_eq!(found, Some(Target::Route(0)), "{}", path);
            }
        }
    }

    #[test]
    fn a_path_that_the_byte_check_passes_has_one_reading_and_no_capitals(
        path in "(/[a-z0-9.~:_-]{0,3}|[A-Z%;\\\\ \u{0}é]){1,6}"
    ) {
        if !reading::may_be_irregular(path.as_bytes()) {
            let mut readings = Vec::new();
            let none: Option<()> = reading::find_reading(&path, |read| {
                readings.push(read.to_owned());
                None
            });
            prop_assert_eq!(none, None);
            prop_assert_eq!(&readings, std::slice::from_ref(&path));
            prop_assert!(!reading::has_uppercase(&path));
        }
    }
}
