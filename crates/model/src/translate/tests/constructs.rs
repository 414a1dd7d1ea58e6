//! Each construct of the language in a call, with the very bytes on both sides.

use super::*;
use crate::route::test_syntax::route;

/// `target`, then ` name: value` in brackets, then the body: `/a?x=1 [h: v] {"b":1}`.
pub(super) fn rest_call(route: &Route, spelled: &str) -> Result<(String, usize), String> {
    let (target, more) = spelled.split_once(' ').unwrap_or((spelled, ""));
    let mut headers = HeaderMap::new();
    let mut body = more;
    if let Some((header, behind)) = more.strip_prefix('[').and_then(|more| more.split_once(']'))
        && let Some((name, value)) = header.split_once(": ")
    {
        headers.insert(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        body = behind.trim();
    }
    let (path, query) = target
        .split_once('?')
        .map_or((target, None), |(path, query)| (path, Some(query)));
    let head = RestHead {
        segments: &Segments::split(path),
        query,
        headers: &headers,
    };
    let body = (!body.is_empty()).then(|| json(body));
    let written =
        read_rest(route, head, TERMS).and_then(|read| rest_to_rpc(route, read, body, TERMS));
    let written = written.map_err(|error| error.to_string())?;
    let params = String::from_utf8(written.params.into_bytes().to_vec()).unwrap();
    Ok((format!("{} {params}", written.method), written.dropped))
}

pub(super) fn rpc_call(route: &Route, spelled: &str) -> Result<(String, usize), String> {
    let (method, params) = spelled.split_once(' ').unwrap_or((spelled, ""));
    let params = (!params.is_empty()).then(|| json(params));
    let written = rpc_to_rest(route, MethodCall::new(method, params.as_ref()), TERMS);
    let written = written.map_err(|error| error.to_string())?;
    let mut call = written.target;
    for (name, value) in &written.headers {
        call.push_str(&format!(" [{name}: {}]", value.to_str().unwrap()));
    }
    if let Some(body) = written.body {
        call.push(' ');
        call.push_str(std::str::from_utf8(&body.into_bytes()).unwrap());
    }
    Ok((call, written.dropped))
}

/// `REST RPC` pairs of a route that are each other's translation, byte for byte.
#[track_caller]
pub(super) fn both_ways(route: &Route, pairs: &[(&str, &str)]) {
    for (rest, rpc) in pairs {
        assert_eq!(rest_call(route, rest), Ok(((*rpc).to_owned(), 0)), "{rest}");
        assert_eq!(rpc_call(route, rpc), Ok(((*rest).to_owned(), 0)), "{rpc}");
    }
}

/// What is written and how much is dropped, or words of the refusal.
pub(super) type Wanted<'a> = Result<(&'a str, usize), &'a str>;

/// What becomes of REST calls: the RPC call and how much is dropped, or words of the refusal.
#[track_caller]
pub(super) fn from_rest(route: &Route, rows: &[(&str, Wanted<'_>)]) {
    for (call, wanted) in rows {
        expect(call, rest_call(route, call), *wanted);
    }
}

#[track_caller]
pub(super) fn from_rpc(route: &Route, rows: &[(&str, Wanted<'_>)]) {
    for (call, wanted) in rows {
        expect(call, rpc_call(route, call), *wanted);
    }
}

#[track_caller]
fn expect(call: &str, found: Result<(String, usize), String>, wanted: Wanted<'_>) {
    match (&found, wanted) {
        (Ok((found, dropped)), Ok(wanted)) => assert_eq!((&**found, *dropped), wanted, "{call}"),
        (Err(error), Err(words)) => assert!(error.contains(words), "{call}: {error}"),
        _ => panic!("{call}: {found:?}, not {wanted:?}"),
    }
}

#[test]
fn positional_params_have_gaps_at_their_end_only() {
    let route = route(
        "POST /a?n={n:integer?}&k={k?=x}",
        "m",
        r#"{"params":["{id}","{k}","{n}","{t...}"],"body":{"id":"{id}","t":"{t}"}}"#,
    );
    both_ways(
        &route,
        &[
            (r#"/a {"id":1.0,"t":[]}"#, "m [1.0]"),
            (r#"/a?n=5&k=y {"id":1,"t":[1, {}]}"#, r#"m [1,"y",5,1, {}]"#),
            // A default that is left out elsewhere keeps its place here.
            (r#"/a?n=5 {"id":1,"t":[]}"#, r#"m [1,"x",5]"#),
        ],
    );
    from_rest(
        &route,
        &[(
            r#"/a?k=y {"id":1,"t":[7]}"#,
            Err("it is absent, but elements after it are not"),
        )],
    );
    from_rpc(
        &route,
        &[
            ("m []", Err("params/0: it is required")),
            ("m {}", Err("params: it must be an array")),
        ],
    );
}

#[test]
fn a_method_may_have_holes() {
    let route = route("POST /tools/{tool}?v={v?}", "call.{tool:enum(add|del)}", "");
    both_ways(
        &route,
        &[
            (r#"/tools/add {"a":1}"#, r#"call.add {"a":1}"#),
            (r#"/tools/del?v=1 {"a":1}"#, r#"call.del {"v":"1","a":1}"#),
        ],
    );
    from_rest(
        &route,
        &[(
            "/tools/zap",
            Err("path parameter `tool`: `zap` is not one of `add`, `del`"),
        )],
    );
    from_rpc(
        &route,
        &[("call.zap {}", Err("method")), ("call. {}", Err("method"))],
    );
}

#[test]
fn headers_are_texts_with_holes() {
    let route = route(
        "GET /a",
        "m",
        r#"{"headers":{"x-key":"Bearer {key?}"},"params":{"key":"{key}"}}"#,
    );
    both_ways(
        &route,
        &[("/a [x-key: Bearer k]", r#"m {"key":"k"}"#), ("/a", "m {}")],
    );
    from_rest(
        &route,
        &[(
            "/a [x-key: Basic k]",
            Err("header `x-key`: it must have the form `Bearer {key}`"),
        )],
    );
    from_rpc(
        &route,
        &[
            (
                "m {\"key\":\"a\\nb\"}",
                Err("header `x-key`: its value is not allowed in a header"),
            ),
            ("m {\"key\":\"k \"}", Err("is not allowed in a header")),
        ],
    );
}

#[test]
fn a_text_ends_a_hole_where_its_delimiter_first_occurs() {
    let route = route(
        "POST /a",
        "m",
        r#"{"params":{"a":"{a}","b":"{b:integer}"},"body":{"t":"<{a}: {b}>"}}"#,
    );
    both_ways(
        &route,
        &[
            (r#"/a {"t":"<x:y: 7>"}"#, r#"m {"a":"x:y","b":7}"#),
            (r#"/a {"t":"<: 7>"}"#, r#"m {"a":"","b":7}"#),
        ],
    );
    from_rest(
        &route,
        &[
            (
                r#"/a {"t":"<x: y: 7>"}"#,
                Err("body/t: `b`: `y: 7` is not an integer"),
            ),
            (
                r#"/a {"t":"x: 7"}"#,
                Err("it must have the form `<{a}: {b}>`"),
            ),
        ],
    );
    from_rpc(
        &route,
        &[(
            r#"m {"a":"x: y","b":7}"#,
            Err("params/a: it contains `: `, the text that ends it here"),
        )],
    );
}

#[test]
fn five_states_of_absence_keep_apart_where_they_can() {
    let in_body = route(
        "POST /a",
        "m",
        r#"{"params":{"x":"{x?}"},"body":{"y":"{x}"}}"#,
    );
    both_ways(
        &in_body,
        &[
            (r#"/a {"y":null}"#, r#"m {"x":null}"#),
            (r#"/a {"y":""}"#, r#"m {"x":""}"#),
            (r#"/a {"y":[]}"#, r#"m {"x":[]}"#),
            (r#"/a {"y":{}}"#, r#"m {"x":{}}"#),
            ("/a", "m {}"),
        ],
    );
    let in_query = route("GET /a?x={x?}&l={l:string[]?}", "m", "");
    both_ways(
        &in_query,
        &[
            ("/a", "m {}"),
            ("/a?x=", r#"m {"x":""}"#),
            ("/a?l=", r#"m {"l":[""]}"#),
        ],
    );
    from_rpc(
        &in_query,
        &[
            (r#"m {"x":null,"l":null}"#, Ok(("/a", 0))),
            (r#"m {"l":[]}"#, Ok(("/a", 0))),
            (
                r#"m {"x":[]}"#,
                Err("params/x: it must be a string, not an array"),
            ),
        ],
    );
}

#[test]
fn an_absent_default_is_written_unless_the_hole_says_otherwise() {
    let with_default = route("GET /a?n={n:integer=5}&o={o:integer?=6}", "m", "");
    both_ways(
        &with_default,
        &[
            ("/a?n=5", r#"m {"n":5}"#),
            ("/a?n=1&o=2", r#"m {"n":1,"o":2}"#),
        ],
    );
    from_rest(
        &with_default,
        &[
            ("/a", Ok((r#"m {"n":5}"#, 0))),
            (
                "/a?o=6&n=",
                Err("query parameter `n`: it must not be empty"),
            ),
        ],
    );
    from_rpc(
        &with_default,
        &[
            ("m {}", Ok(("/a?n=5", 0))),
            (r#"m {"n":null,"o":6}"#, Ok(("/a?n=5", 0))),
        ],
    );
}

#[test]
fn what_is_written_only_is_not_read() {
    let route = route(
        "POST /a",
        "m",
        r#"{"params":{"id":"{id}","twin":"{>id}","at":"{>now}","k":"{_=7}"},"body":{"id":"{id}","z":"{_}"}}"#,
    );
    from_rest(
        &route,
        &[(
            r#"/a {"id":1.0,"z":[9]}"#,
            Ok((r#"m {"id":1.0,"twin":1.0,"at":"","k":7}"#, 0)),
        )],
    );
    from_rpc(
        &route,
        &[(r#"m {"id":2,"twin":3,"k":null}"#, Ok((r#"/a {"id":2}"#, 0)))],
    );
}

#[test]
fn lists_pair_by_position_and_tails_follow() {
    let route = route(
        "POST /a",
        "m",
        r#"{"params":{"us":["*",{"n":"{n}","t":"{t:string[]?}"}],"one":"{one}","more":"{more:array}"},
            "body":{"users":["*",{"name":"{n}","tags":"{t}"}],"list":["{one}","{more...}"]}}"#,
    );
    both_ways(
        &route,
        &[
            (
                r#"/a {"users":[{"name":1.0},{"name":"b","tags":["x"]}],"list":[7,8 ,9]}"#,
                r#"m {"us":[{"n":1.0},{"n":"b","t":["x"]}],"one":7,"more":[8 ,9]}"#,
            ),
            (
                r#"/a {"users":[],"list":[7]}"#,
                r#"m {"us":[],"one":7,"more":[]}"#,
            ),
        ],
    );
    from_rest(
        &route,
        &[(
            r#"/a {"users":[{}],"list":[7]}"#,
            Err("body/users/0/name: it is required"),
        )],
    );
}

#[test]
fn json_inside_of_a_string_is_compact() {
    let route = route(
        "POST /a?f={f:json?}",
        "m",
        r#"{"params":{"f":"{f:object}","s":"{s:json}"},"body":{"s":"{s:array}"}}"#,
    );
    both_ways(
        &route,
        &[(
            "/a?f=%7B%22a%22%3A1.0%7D {\"s\":[]}",
            r#"m {"f":{"a":1.0},"s":"[]"}"#,
        )],
    );
    from_rest(
        &route,
        &[
            (r#"/a {"s":[ 1, 2 ]}"#, Ok((r#"m {"s":"[1,2]"}"#, 0))),
            (
                r#"/a?f=[] {"s":[]}"#,
                Err("query parameter `f`: it must be an object, not an array"),
            ),
            (
                r#"/a?f={ {"s":[]}"#,
                Err("query parameter `f`: the JSON in this text"),
            ),
        ],
    );
    from_rpc(
        &route,
        &[
            (r#"m {"s":"[ 1 ]"}"#, Ok((r#"/a {"s":[ 1 ]}"#, 0))),
            (
                r#"m {"s":[1]}"#,
                Err("params/s: it must be a string that holds JSON"),
            ),
        ],
    );
}

#[test]
fn remaining_members_do_not_collide_with_named_ones() {
    let route = route(
        "POST /a/{id}",
        "m",
        r#"{"params":{"id":"{id}","k":"{k?}","...":"{others}"},"body":{"key":"{k}","...":"{others}"}}"#,
    );
    both_ways(
        &route,
        &[
            (
                r#"/a/7 {"key":1.0,"a":1e400,"b":{"a":1,"a":2}}"#,
                r#"m {"id":"7","k":1.0,"a":1e400,"b":{"a":1,"a":2}}"#,
            ),
            ("/a/7", r#"m {"id":"7"}"#),
        ],
    );
    from_rest(
        &route,
        &[
            (
                r#"/a/7 {"id":"8"}"#,
                Err("body/id: `id` is already given elsewhere"),
            ),
            (
                r#"/a/7 {"Id":"8"}"#,
                Err("body/Id: `id` is already given elsewhere"),
            ),
            (
                r#"/a/7 {"KEY":1}"#,
                Err("body/KEY: it differs from `key` only in letter case"),
            ),
        ],
    );
    from_rpc(
        &route,
        &[(
            r#"m {"id":"7","key":1}"#,
            Err("params/key: `key` is already given elsewhere"),
        )],
    );
}

#[test]
fn what_the_route_does_not_know_is_dropped_rejected_or_carried() {
    let full = |extra: &str| {
        let more =
            format!(r#"{{"params":{{"id":"{{id}}"}},"body":{{"id":"{{id}}"}},"extra":"{extra}"}}"#);
        route("PUT /a", "m", &more)
    };
    from_rest(
        &full("drop"),
        &[(r#"/a?q=1 {"id":1,"y":2,"z":3}"#, Ok((r#"m {"id":1}"#, 3)))],
    );
    from_rpc(
        &full("drop"),
        &[(r#"m {"id":1,"y":2}"#, Ok((r#"/a {"id":1}"#, 1)))],
    );
    from_rest(
        &full("reject"),
        &[
            (
                r#"/a {"id":1,"y":2}"#,
                Err("body/y: the route does not know it"),
            ),
            (
                r#"/a?q=1 {"id":1}"#,
                Err("query parameter `q`: the route `r` does not know it"),
            ),
        ],
    );
    from_rpc(
        &full("reject"),
        &[(
            r#"m {"id":1,"y":2}"#,
            Err("params/y: the route does not know it"),
        )],
    );
    both_ways(
        &full("carry"),
        &[(r#"/a {"id":1,"y":2}"#, r#"m {"id":1,"y":2}"#)],
    );
    from_rest(
        &full("carry"),
        &[(r#"/a?q=1 {"id":1}"#, Ok((r#"m {"id":1}"#, 1)))],
    );
}

#[test]
fn the_members_of_the_protocol_are_never_extra() {
    let rejects = route(
        "GET /a?id={id}",
        "m",
        r#"{"params":{"id":"{id}"},"extra":"reject"}"#,
    );
    from_rpc(
        &rejects,
        &[
            (
                r#"m {"_meta":{"progressToken":1},"id":"7"}"#,
                Ok(("/a?id=7", 0)),
            ),
            (
                r#"m {"id":"7","meta":1}"#,
                Err("params/meta: the route does not know it"),
            ),
        ],
    );
    let carries = route("POST /a", "m", "");
    from_rpc(
        &carries,
        &[
            (r#"m {"_meta":{}}"#, Ok(("/a {}", 0))),
            (r#"m {"a" : 1, "_meta":{}}"#, Ok((r#"/a {"a" : 1}"#, 0))),
            (
                r#"m {"a" : {"_meta":1} , "b":2}"#,
                Ok((r#"/a {"a" : {"_meta":1} , "b":2}"#, 0)),
            ),
            (
                r#"m {"_meta":1,"_meta":2}"#,
                Err("params: member `_meta`: it is given twice"),
            ),
        ],
    );
    let names_it = route(
        "POST /a",
        "m",
        r#"{"params":{"_meta":"{m?}"},"body":{"m":"{m}"}}"#,
    );
    both_ways(
        &names_it,
        &[(r#"/a {"m":{"a":1}}"#, r#"m {"_meta":{"a":1}}"#)],
    );
}
