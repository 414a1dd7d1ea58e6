//! Query names and headers that a route does not know, as objects.

use super::constructs::{both_ways, from_rest, from_rpc};
use super::*;
use crate::check::{self, LossVerdict};
use crate::route::test_syntax::{route, route_source};
use crate::route::{MAX_CAPTURED, RouteTable, parse_route};

const QUERY: &str = r#"{"params":{"limit":"{limit}","where":"{filters}"}}"#;
const HEADERS: &str = r#"{"headers":{"x-meta-id":"{id?}","x-meta-...":"{meta}"},"params":{"id":"{id}","meta":"{meta}"}}"#;

#[test]
fn unknown_query_names_are_members() {
    let route = route("GET /a?limit={limit:integer?}&...={filters}", "m", QUERY);
    both_ways(
        &route,
        &[
            ("/a", r#"m {"where":{}}"#),
            ("/a?limit=5", r#"m {"limit":5,"where":{}}"#),
            (
                "/a?limit=5&state=open",
                r#"m {"limit":5,"where":{"state":"open"}}"#,
            ),
            (
                "/a?tag=a&tag=b%20c&q=",
                r#"m {"where":{"tag":["a","b c"],"q":""}}"#,
            ),
            (
                "/a?filter%5Ba%5D=1&utm_x=2",
                r#"m {"where":{"filter[a]":"1","utm_x":"2"}}"#,
            ),
        ],
    );
    from_rest(
        &route,
        &[
            (
                "/a?x=1&limit=2&x=3",
                Ok((r#"m {"limit":2,"where":{"x":["1","3"]}}"#, 0)),
            ),
            ("/a?flag", Ok((r#"m {"where":{"flag":""}}"#, 0))),
            (
                "/a?Limit=1",
                Err("differs from `limit` only in letter case"),
            ),
            (
                "/a?x=1&X=2",
                Err("`X`: it differs from `x` only in letter case"),
            ),
            ("/a?x=%FF", Err("query parameter `x`")),
        ],
    );
}

#[test]
fn a_member_that_would_be_read_as_another_is_refused() {
    let route = route("GET /a?limit={limit:integer?}&...={filters}", "m", QUERY);
    from_rpc(
        &route,
        &[
            (
                r#"m {"where":{"limit":"1"}}"#,
                Err("params/where: member `limit`: the route has the query parameter `limit`"),
            ),
            (
                r#"m {"where":{"LIMIT":"1"}}"#,
                Err("the route has the query parameter `limit`"),
            ),
            (
                r#"m {"where":{"a":1}}"#,
                Err("params/where: member `a`: it must be a string, not a number"),
            ),
            (r#"m {"where":{"a":["x"]}}"#, Err("at least two strings")),
            (r#"m {"where":{"a":[]}}"#, Err("at least two strings")),
            (
                r#"m {"where":{"a":null}}"#,
                Err("it must be a string, not null"),
            ),
            (r#"m {"where":{"a":"1","A":"2"}}"#, Err("params/where")),
            (
                r#"m {"where":[]}"#,
                Err("params/where: it must be an object"),
            ),
            (r#"m {}"#, Err("params/where: it is required")),
        ],
    );
}

#[test]
fn headers_with_a_prefix_are_members() {
    let route = route("GET /a", "m", HEADERS);
    both_ways(
        &route,
        &[
            ("/a", r#"m {"meta":{}}"#),
            ("/a [x-meta-id: 7]", r#"m {"id":"7","meta":{}}"#),
            ("/a [x-meta-color: red]", r#"m {"meta":{"color":"red"}}"#),
        ],
    );
    from_rest(
        &route,
        &[
            ("/a [x-meta-: 7]", Ok((r#"m {"meta":{}}"#, 0))),
            ("/a [x-metal: 7]", Ok((r#"m {"meta":{}}"#, 0))),
        ],
    );
    from_rpc(
        &route,
        &[
            (
                r#"m {"meta":{"a":["1","2"]}}"#,
                Ok(("/a [x-meta-a: 1] [x-meta-a: 2]", 0)),
            ),
            (
                r#"m {"meta":{"id":"1"}}"#,
                Err("params/meta: member `id`: the route has a pattern for this header"),
            ),
            (
                r#"m {"meta":{"Color":"red"}}"#,
                Err("in lower case, and not empty"),
            ),
            (
                r#"m {"meta":{"":"red"}}"#,
                Err("in lower case, and not empty"),
            ),
            (
                r#"m {"meta":{"a b":"red"}}"#,
                Err("not the rest of a header name"),
            ),
            (
                r#"m {"meta":{"a":"x\r\ny: z"}}"#,
                Err("not allowed in a header"),
            ),
            (r#"m {"meta":{"a":" x"}}"#, Err("not allowed in a header")),
        ],
    );
}

#[test]
fn captured_values_are_bounded() {
    let route = route("GET /a?...={f}", "m", r#"{"params":{"f":"{f}"}}"#);
    let pairs = |count: usize| {
        let pairs: Vec<String> = (0..count).map(|index| format!("k{index}=v")).collect();
        format!("/a?{}", pairs.join("&"))
    };
    let members = |count: usize| {
        let members: Vec<String> = (0..count)
            .map(|index| format!("\"k{index}\":\"v\""))
            .collect();
        format!("m {{\"f\":{{{}}}}}", members.join(","))
    };
    both_ways(&route, &[(&pairs(MAX_CAPTURED), &members(MAX_CAPTURED))]);
    from_rest(
        &route,
        &[(&pairs(MAX_CAPTURED + 1), Err("more than 256 values"))],
    );
    from_rpc(
        &route,
        &[(&members(MAX_CAPTURED + 1), Err("more than 256 values"))],
    );
}

#[test]
fn query_names_are_captured_by_one_plain_hole() {
    for (rest, more, words) in [
        (
            "GET /a?...={_}",
            r#"{"params":{}}"#,
            "would forget the names",
        ),
        (
            "GET /a?...={x?}",
            r#"{"params":{"x":"{x}"}}"#,
            "write its name alone",
        ),
        ("GET /a?...=x", r#"{"params":{}}"#, "captured by one hole"),
        (
            "GET /a?...={x:json}",
            r#"{"params":{"x":"{x}"}}"#,
            "receives the captured names as they are",
        ),
        (
            "GET /a?...={x:keys(kebab=snake)}",
            r#"{"params":{"x":"{x}"}}"#,
            "receives the captured names as they are",
        ),
        (
            "GET /a?...={x}",
            r#"{"params":{}}"#,
            "is on the rest side only",
        ),
        (
            "GET /a?...={x}",
            r#"{"params":{"x":"{x:integer}"}}"#,
            "declare its type once",
        ),
    ] {
        let errors = parse_route(route_source(rest, "m", more)).unwrap_err();
        assert!(errors[0].what.contains(words), "{rest} {more}: {errors:?}");
    }
}

#[test]
fn headers_are_captured_only_by_a_prefix_of_their_own() {
    for (rest, more, words) in [
        (
            "GET /a",
            r#"{"headers":{"...":"{x}"},"params":{"x":"{x}"}}"#,
            "only by a prefix",
        ),
        (
            "GET /a",
            r#"{"headers":{"x-meta-...":"{x:keys(kebab=snake)}"},"params":{"x":"{x}"}}"#,
            "receives the captured names as they are",
        ),
        (
            "GET /a",
            r#"{"headers":{"x-meta...":"{x}"},"params":{"x":"{x}"}}"#,
            "ends in `-`",
        ),
        (
            "GET /a",
            r#"{"headers":{"X-Meta-...":"{x}"},"params":{"x":"{x}"}}"#,
            "in lower case",
        ),
        (
            "GET /a",
            r#"{"headers":{"x-...":"{x}"},"params":{"x":"{x}"}}"#,
            "which belongs to",
        ),
        (
            "GET /a",
            r#"{"headers":{"proxy-x-...":"{x}"},"params":{"x":"{x}"}}"#,
            "would capture `proxy-`",
        ),
        (
            "GET /a",
            r#"{"headers":{"content-...":"{x}"},"params":{"x":"{x}"}}"#,
            "which belongs to",
        ),
        (
            "GET /a",
            r#"{"headers":{"x-a-...":"{x}","x-a-b-...":"{y}"},"params":{"x":"{x}","y":"{y}"}}"#,
            "share names",
        ),
    ] {
        let errors = parse_route(route_source(rest, "m", more)).unwrap_err();
        assert!(errors[0].what.contains(words), "{rest} {more}: {errors:?}");
    }
}

#[test]
fn check_knows_what_a_capture_loses() {
    for (params, verdict) in [
        (r#"{"params":{"f":"{f}"}}"#, LossVerdict::Lossless),
        // Absent params are `{}`.
        (r#"{"params":{"...":"{f}"}}"#, LossVerdict::NormalForm),
        (r#"{"params":{"f":"{f?}"}}"#, LossVerdict::NormalForm),
        (r#"{"params":{"f":"{f?={}}"}}"#, LossVerdict::NormalForm),
    ] {
        let route = parse_route(route_source("GET /a?...={f}", "m", params)).unwrap();
        let table = RouteTable::build(vec![route]).unwrap();
        let reports = check::check(&table);
        let directions = reports[0].directions.iter().take(2);
        let worst = directions.clone().map(check::Direction::verdict).max();
        assert_eq!(
            worst,
            Some(verdict),
            "{params}: {:?}",
            reports[0].directions
        );
        assert!(
            directions.clone().all(|direction| !direction.is_untried()),
            "{params}"
        );
    }
}

#[test]
fn a_route_that_captures_is_less_specific() {
    let source = |name: &str, rest: &str, params: &str| RouteSource {
        name: name.to_owned(),
        ..route_source(rest, name, params)
    };
    let one = source("one", "GET /a?id={id}", r#"{"params":{"id":"{id}"}}"#);
    let all = source("all", "GET /a?...={f}", r#"{"params":{"f":"{f}"}}"#);
    let routes = [all, one].map(|source| parse_route(source).unwrap());
    let table = RouteTable::build(routes.into()).unwrap();
    for (query, name) in [
        (Some("id=1"), "one"),
        (Some("id=1&x=2"), "all"),
        (None, "all"),
    ] {
        let segments = Segments::split("/a");
        let found = table.select_rest(&http::Method::GET, &segments, query, &HeaderMap::new());
        let crate::route::RestSelection::Route(found) = found else {
            panic!("{found:?}")
        };
        assert_eq!(table.route(found).name, name, "{query:?}");
    }
}
