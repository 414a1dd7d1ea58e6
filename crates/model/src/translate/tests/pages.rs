//! Pages and offsets, cursors and links.

use proptest::prelude::*;

use super::constructs::{both_ways, from_rest, from_rpc, rest_call, rpc_call};
use crate::route::parse_route;
use crate::route::test_syntax::{route, route_source};

const PAGED: &str = "GET /items?page={offset:page(limit)=1}&per_page={limit:integer=20}";

#[test]
fn a_page_is_an_offset() {
    let items = route(PAGED, "items", "");
    both_ways(
        &items,
        &[
            (
                "/items?page=3&per_page=50",
                r#"items {"offset":100,"limit":50}"#,
            ),
            (
                "/items?page=1&per_page=50",
                r#"items {"offset":0,"limit":50}"#,
            ),
        ],
    );
    from_rest(
        &items,
        &[
            ("/items", Ok((r#"items {"offset":0,"limit":20}"#, 0))),
            (
                "/items?page=2",
                Ok((r#"items {"offset":20,"limit":20}"#, 0)),
            ),
            // The order of the query does not matter.
            (
                "/items?per_page=5&page=2",
                Ok((r#"items {"offset":5,"limit":5}"#, 0)),
            ),
            ("/items?page=0", Err("it must be a page, at least 1")),
            ("/items?page=-1", Err("it must be a page, at least 1")),
            ("/items?page=x", Err("`x` is not an integer")),
            (
                "/items?page=9223372036854775807&per_page=3",
                Err("page 9223372036854775807 with the limit 3 begins beyond 64 bits"),
            ),
            (
                "/items?page=9223372036854775808",
                Err("a number within 64 bits"),
            ),
        ],
    );
    from_rpc(
        &items,
        &[
            (
                r#"items {"offset":30,"limit":20}"#,
                Err("the offset 30 is no multiple of the limit 20, so no page begins there"),
            ),
            (
                r#"items {"offset":-20,"limit":20}"#,
                Err("it must be an offset within 64 bits, at least 0"),
            ),
            ("items {}", Ok(("/items?page=1&per_page=20", 0))),
        ],
    );
}

#[test]
fn a_limit_is_at_least_one_on_every_page() {
    let items = route(PAGED, "items", "");
    let refused = "query parameter `page`: the limit of a page must be at least 1, within 64 bits";
    for call in [
        "/items?page=2&per_page=0",
        "/items?page=1&per_page=0",
        "/items?per_page=0",
        "/items?per_page=-5",
    ] {
        from_rest(&items, &[(call, Err(refused))]);
    }
    let refused = Err("the limit of a page must be at least 1");
    from_rpc(&items, &[(r#"items {"limit":0}"#, refused)]);
}

#[test]
fn pages_may_count_from_zero_and_be_in_json() {
    let items = route(
        "POST /items",
        "items",
        r#"{
            "body": { "offset": "{offset:integer}", "limit": "{limit:integer}" },
            "params": ["{offset:page0(limit)}", "{limit}"]
        }"#,
    );
    both_ways(
        &items,
        &[
            (r#"/items {"offset":0,"limit":5}"#, "items [0,5]"),
            (r#"/items {"offset":15,"limit":5}"#, "items [3,5]"),
        ],
    );
    from_rpc(
        &items,
        &[
            ("items [-0,5]", Ok((r#"/items {"offset":0,"limit":5}"#, 0))),
            (
                "items [0,0]",
                Err("params/0: the limit of a page must be at least 1"),
            ),
            (
                "items [0,-5]",
                Err("params/0: the limit of a page must be at least 1"),
            ),
        ],
    );
}

#[test]
fn a_page_that_is_left_out_has_a_limit_too() {
    let items = route(
        "GET /items?page={offset:page(limit)?=1}&per_page={limit:integer}",
        "items",
        "",
    );
    both_ways(&items, &[("/items?per_page=5", r#"items {"limit":5}"#)]);
    from_rest(
        &items,
        &[(
            "/items?per_page=0",
            Err("query parameter `page`: the limit of a page must be at least 1"),
        )],
    );
    from_rpc(
        &items,
        &[
            (
                r#"items {"offset":0,"limit":5}"#,
                Ok(("/items?per_page=5", 0)),
            ),
            (
                r#"items {"offset":0,"limit":0}"#,
                Err("the limit of a page must be at least 1"),
            ),
        ],
    );
}

#[test]
fn a_page_that_cannot_work_is_a_load_error() {
    for (rest, words) in [
        (
            "GET /x?p={o:page(l)}",
            "`l` must be a hole of the same call",
        ),
        (
            "GET /x?p={o:page(l)}&l={l}",
            "an `integer` that is required",
        ),
        ("GET /x?p={o:page(l)}&l={l:integer?}", "or has a default"),
        (
            "GET /x?p={o:page(l)=2}&l={l:integer}",
            "the default page is 1",
        ),
        (
            "GET /x?p={o:page()}&l={l:integer}",
            "write the hole for the number",
        ),
        (
            "GET /x?p={o:page(l)}&o={o:integer=40}&l={l:integer}",
            "its default must be 0, the offset of the first page; a default on the other side counts as well",
        ),
        (
            "GET /x?p={o:page(l)}&l={<l:integer=5}",
            "`l` must be a hole of the same call or response, on both sides",
        ),
        (
            "GET /x?p={>o:page(l)}&o={o:integer}&l={l:integer}",
            "the type and the absence",
        ),
    ] {
        let errors = parse_route(route_source(rest, "m", "")).unwrap_err();
        let shown = errors.iter().map(ToString::to_string).collect::<String>();
        assert!(shown.contains(words), "{rest}: {shown}");
    }
}

#[test]
fn a_cursor_may_hold_the_number_of_a_page() {
    let items = route(
        "GET /items?page={page:integer?}",
        "items",
        r#"{"params":{"cursor":"{page:json}"}}"#,
    );
    both_ways(
        &items,
        &[
            ("/items?page=3", r#"items {"cursor":"3"}"#),
            ("/items", "items {}"),
        ],
    );
    from_rpc(
        &items,
        &[(r#"items {"cursor":"x"}"#, Err("the JSON in this text"))],
    );
}

proptest! {
    #[test]
    fn a_page_that_was_read_is_written_back(page in 1..i64::MAX, limit in 1..1_000_000_i64) {
        let items = route(PAGED, "items", "");
        let sent = format!("/items?page={page}&per_page={limit}");
        let there = rest_call(&items, &sent);
        match (page - 1).checked_mul(limit) {
            Some(offset) => {
                let (call, _) = there.unwrap();
                prop_assert_eq!(&call, &format!(r#"items {{"offset":{offset},"limit":{limit}}}"#));
                prop_assert_eq!(rpc_call(&items, &call).unwrap().0, sent);
            }
            None => prop_assert!(there.is_err()),
        }
    }

    #[test]
    fn an_offset_comes_back_or_is_refused(offset in 0..i64::MAX, limit in 1..50_i64) {
        let items = route(PAGED, "items", "");
        let sent = format!(r#"items {{"offset":{offset},"limit":{limit}}}"#);
        match rpc_call(&items, &sent) {
            Ok((there, _)) => prop_assert_eq!(rest_call(&items, &there).unwrap().0, sent),
            Err(_) => prop_assert!(offset % limit != 0),
        }
    }
}
