//! Alternatives and forms in calls.

use super::constructs::{both_ways, from_rest, from_rpc};
use crate::route::RouteTable;
use crate::route::parse_route;
use crate::route::test_syntax::{route, route_source};

/// The parts of a message of A2A 0.3 and 1.0.
const PARTS: &str = r#"{
    "body": { "parts": ["*", ["{|}",
        { "kind": "text", "text": "{text}", "metadata": "{metadata?}" },
        { "kind": "file", "file": { "uri": "{uri}", "mimeType": "{type?}" }, "metadata": "{metadata?}" },
        { "kind": "file", "file": { "bytes": "{bytes}", "mimeType": "{type?}" }, "metadata": "{metadata?}" },
        { "kind": "data", "data": "{data:object}", "metadata": "{metadata?}" }
    ]] },
    "params": { "content": ["*", ["{|}",
        { "text": "{text}", "metadata": "{metadata}" },
        { "url": "{uri}", "mediaType": "{type}", "metadata": "{metadata}" },
        { "raw": "{bytes}", "mediaType": "{type}", "metadata": "{metadata}" },
        { "data": "{data}", "metadata": "{metadata}" }
    ]] }
}"#;

#[test]
fn each_element_has_its_own_alternative() {
    let send = route("POST /message:send", "send", PARTS);
    both_ways(
        &send,
        &[
            (
                r#"/message:send {"parts":[{"kind":"text","text":"a"},{"kind":"file","file":{"uri":"u","mimeType":"t"}},{"kind":"data","data":{"k":1},"metadata":{}},{"kind":"file","file":{"bytes":"aGk="}}]}"#,
                r#"send {"content":[{"text":"a"},{"url":"u","mediaType":"t"},{"data":{"k":1},"metadata":{}},{"raw":"aGk="}]}"#,
            ),
            (r#"/message:send {"parts":[]}"#, r#"send {"content":[]}"#),
        ],
    );
    from_rest(
        &send,
        &[
            (
                r#"/message:send {"parts":[{"kind":"audio","text":"a"}]}"#,
                Err("it matches none of 4 alternatives (1: kind: it must be `\"text\"`; 2:"),
            ),
            (
                r#"/message:send {"parts":[{"kind":"file","file":{"uri":"u","bytes":"b"}}]}"#,
                Err("bytes: the route does not accept it"),
            ),
        ],
    );
    from_rpc(
        &send,
        &[(
            r#"send {"content":[{"text":"a"},{"text":"a","url":"u"}]}"#,
            Err("params/content/1: it matches none of 4 alternatives"),
        )],
    );
}

#[test]
fn the_most_specific_alternative_is_chosen() {
    let route = route(
        "POST /x",
        "m",
        r#"{
            "body": { "v": ["{|}", { "kind": "{kind}", "...": "{others}" }, { "kind": "n", "n": "{n:integer}" }, "{t:string}", "none"] },
            "params": { "v": ["{|}", { "type": "{kind}", "...": "{others}" }, ["{n}"], { "text": "{t}" }, 0] }
        }"#,
    );
    both_ways(
        &route,
        &[
            (r#"/x {"v":{"kind":"n","n":7}}"#, r#"m {"v":[7]}"#),
            (
                r#"/x {"v":{"kind":"n","n":"7"}}"#,
                r#"m {"v":{"type":"n","n":"7"}}"#,
            ),
            (r#"/x {"v":{"kind":"o"}}"#, r#"m {"v":{"type":"o"}}"#),
            (r#"/x {"v":"some"}"#, r#"m {"v":{"text":"some"}}"#),
            (r#"/x {"v":"none"}"#, r#"m {"v":0}"#),
        ],
    );
    // Whatever another alternative would read is not written.
    from_rpc(
        &route,
        &[
            (
                r#"m {"v":{"type":"n","n":7}}"#,
                Err("alternative 1 would write it, but alternative 2 would read it"),
            ),
            (
                r#"m {"v":{"text":"none"}}"#,
                Err("alternative 3 would write it, but alternative 4 would read it"),
            ),
        ],
    );
}

#[test]
fn params_have_several_forms() {
    let route = route(
        "GET /sum?a={a:integer}&b={b:integer?}",
        "sum",
        r#"{"params": ["{/}", { "a": "{a}", "b": "{b}" }, ["{a}", "{b}"]]}"#,
    );
    both_ways(
        &route,
        &[
            ("/sum?a=1&b=2", r#"sum {"a":1,"b":2}"#),
            ("/sum?a=1", r#"sum {"a":1}"#),
        ],
    );
    from_rpc(
        &route,
        &[
            ("sum [1,2]", Ok(("/sum?a=1&b=2", 0))),
            ("sum [1]", Ok(("/sum?a=1", 0))),
            (r#"sum {"a":1,"_meta":{}}"#, Ok(("/sum?a=1", 0))),
            ("sum", Err("it matches none of 2 alternatives")),
            (
                "sum [1,2,3]",
                Err("it has 3 elements; at most 2 are allowed"),
            ),
        ],
    );
}

#[test]
fn forms_lack_holes_that_may_be_absent() {
    let route = route(
        "POST /read",
        "call",
        r#"{
            "body": { "ids": "{ids:integer[]}", "fields": "{fields?}", "load": "{load=all}", "...": "{more}" },
            "params": ["{/}",
                ["kw", ["{ids}"], { "fields": "{fields}", "load": "{load}", "...": "{more}" }],
                ["kw", ["{ids}", "{fields}"], { "load": "{load}", "...": "{more}" }],
                ["kw", ["{ids}", "{fields}", "{load}"], { "...": "{more}" }],
                ["list", "{ids}", "{fields}"]
            ]
        }"#,
    );
    both_ways(
        &route,
        &[
            (
                r#"/read {"ids":[1],"fields":["a"],"load":"x","context":{}}"#,
                r#"call ["kw",[[1]],{"fields":["a"],"load":"x","context":{}}]"#,
            ),
            (
                r#"/read {"ids":[1],"load":"all"}"#,
                r#"call ["kw",[[1]],{"load":"all"}]"#,
            ),
        ],
    );
    from_rpc(
        &route,
        &[
            (
                r#"call ["kw",[[1],["a"]],{"load":"x","context":{}}]"#,
                Ok((
                    r#"/read {"ids":[1],"fields":["a"],"load":"x","context":{}}"#,
                    0,
                )),
            ),
            (
                r#"call ["kw",[[1],["a"],"x"]]"#,
                Ok((r#"/read {"ids":[1],"fields":["a"],"load":"x"}"#, 0)),
            ),
            (
                r#"call ["list",[1],["a"]]"#,
                Ok((r#"/read {"ids":[1],"fields":["a"],"load":"all"}"#, 0)),
            ),
            (
                r#"call ["list",[1]]"#,
                Ok((r#"/read {"ids":[1],"load":"all"}"#, 0)),
            ),
            (
                r#"call ["kw",[[1],["a"]],{"fields":["b"]}]"#,
                Err("`fields` is already given elsewhere"),
            ),
        ],
    );
}

/// Bodies and params with alternatives that cannot work, and words of the error.
const UNWORKABLE: [(&str, &str, &str); 16] = [
    (
        r#"["{|}", "{a}", "{b:string}"]"#,
        r#"["{|}", "{a}", "{c}"]"#,
        "the alternatives with the holes `a|b` are on the rest side only",
    ),
    (
        r#"["{|}", "x", "y"]"#,
        r#"["{|}", "x", "y", "z"]"#,
        "on the rest side only",
    ),
    (
        r#"["{|}", { "a": "{a}", "b": 1 }, { "a": 2, "b": "{b}" }]"#,
        r#"["{|}", ["{a}"], { "b": "{b}" }]"#,
        "the alternatives 1 and 2 both match `{\"a\":2,\"b\":1}`, and neither is more specific",
    ),
    (
        r#"["{|}", "{a:string}", "{b:string}"]"#,
        r#"["{|}", ["{a}"], { "b": "{b}" }]"#,
        "the alternatives 1 and 2 match the same values",
    ),
    (
        r#"["{|}", "{a:string?}", 1]"#,
        r#"["{|}", ["{a}"], 1]"#,
        "cannot be absent",
    ),
    (r#"["{|}", "{a}"]"#, r#""{a}""#, "has from 2 to 32 patterns"),
    (
        r#"{ "a": "{a}", "b": ["{|}", ["{a}"], "{b:string}"] }"#,
        r#"{ "a": "{a}", "b": ["{|}", ["{a}"], "{b}"] }"#,
        "inside an alternative, where holes are local, and outside of it",
    ),
    (
        r#"["{/}", ["{a}"], { "a": "{a}", "b": "{b}" }]"#,
        r#"["{a}", "{b}"]"#,
        "every form has the holes of the first one",
    ),
    (
        r#"["{/}", { "a": "{a}", "b": "{b}" }, ["{a}"]]"#,
        r#"["{a}", "{b}"]"#,
        "every form has the holes of the first one",
    ),
    (
        r#"["{|}", "{x:base64}", "bnV{y}"]"#,
        r#"["{|}", { "x": "{x}" }, { "y": "{y}" }]"#,
        "the alternatives 1 and 2 both match `\"bnVsbA==\"`, and neither is more specific",
    ),
    (
        r#"["{/}", ["{a}", "{c?=5}"], ["{a}"]]"#,
        r#"{ "a": "{a}", "c": "{c}" }"#,
        "[2]: the first form reads all values of this one; remove it",
    ),
    (
        r#"["{/}", { "p": ["{a}", "{c?}"], "k": 1 }, { "p": ["{a}"], "k": 1 }]"#,
        r#"{ "a": "{a}", "c": "{c}" }"#,
        "[2]: the first form reads all values of this one; remove it",
    ),
    (r#"["x", "{|}"]"#, "1", "is the first element"),
    (
        r#"[["{|}", "{a:string}", ["{b}"]], ["{|}", "{a:string}", ["{b}"]]]"#,
        r#"[["{|}", "{a}", ["{b}"]], ["{|}", "{a}", ["{b}"]]]"#,
        "body.v[1]: two sets of alternatives have the holes `a|b`; give them different names",
    ),
    (
        r#"{ "x": ["{|}", "p", "q"], "y": ["{|}", "r", "s"] }"#,
        r#"{ "y": ["{|}", 1, 2], "x": ["{|}", 3, 4] }"#,
        "body.v.y: two sets of alternatives have no holes",
    ),
    (
        r#"{ "...": "{a:json}" }"#,
        r#"{ "...": "{a}" }"#,
        "write its name alone",
    ),
];

#[test]
fn alternatives_that_cannot_work_are_load_errors() {
    for (body, params, words) in UNWORKABLE {
        let more = format!(r#"{{"body":{{"v":{body}}},"params":{{"v":{params}}}}}"#);
        let errors = parse_route(route_source("POST /x", "m", &more)).unwrap_err();
        let shown = errors.iter().map(|error| format!("{}: {error}", error.key));
        let shown = shown.collect::<String>();
        assert!(shown.contains(words), "{body} {params}: {shown}");
    }
}

#[test]
fn a_list_that_begins_with_a_sign_is_a_list() {
    let route = route(
        "POST /x",
        "m",
        r#"{"body": { "v": ["|", "{a}", "{b}"] }, "params": { "v": ["/", "{a}", "{b}"] }}"#,
    );
    both_ways(&route, &[(r#"/x {"v":["|",1,2]}"#, r#"m {"v":["/",1,2]}"#)]);
}

#[test]
fn forms_may_have_the_same_alternatives() {
    let route = route(
        "POST /x",
        "m",
        r#"{
            "body": { "v": ["{|}", "{a:string}", ["{b}"]] },
            "params": ["{/}", { "v": ["{|}", "{a}", ["{b}"]] }, [["{|}", "{a}", ["{b}"]]]]
        }"#,
    );
    both_ways(
        &route,
        &[
            (r#"/x {"v":"s"}"#, r#"m {"v":"s"}"#),
            (r#"/x {"v":[1]}"#, r#"m {"v":[1]}"#),
        ],
    );
    from_rpc(&route, &[(r#"m [[1]]"#, Ok((r#"/x {"v":[1]}"#, 0)))]);
}

#[test]
fn a_form_that_does_not_match_leaves_no_page() {
    // The first form reads a page before it fails; the second form has the page elsewhere.
    let route = route(
        "GET /x?offset={offset:integer}&limit={limit:integer}&kind={kind:enum(a|b)}",
        "m",
        r#"{"params": ["{/}",
            { "p": "{offset:page(limit)}", "limit": "{limit}", "kind": "{kind}" },
            { "kind": "{kind:map(x=a|y=b)}", "limit": "{limit}", "p": "{offset:page0(limit)}" }
        ]}"#,
    );
    from_rpc(
        &route,
        &[
            (
                r#"m {"p":3,"limit":10,"kind":"a"}"#,
                Ok(("/x?offset=20&limit=10&kind=a", 0)),
            ),
            (
                r#"m {"p":3,"limit":10,"kind":"x"}"#,
                Ok(("/x?offset=30&limit=10&kind=a", 0)),
            ),
        ],
    );
}

#[test]
fn alternatives_with_too_many_combinations_to_compare_are_a_load_error() {
    // No value matches both, as no hole can be 1 and 2, but only the values of all combinations would show it.
    let sets = |item: &str| {
        let sets = (0..4).map(|set| {
            let items = (0..8).map(|at| item.replace('#', &at.to_string()));
            let items = items.collect::<Vec<_>>().join(",");
            format!(r#""m{set}": ["{{|}}", {items}]"#).replace('@', &set.to_string())
        });
        format!("{{{}}}", sets.collect::<Vec<_>>().join(","))
    };
    let twice = sets(r#"{"k": "c#", "a": "{v@}", "b": "{v@}", "h": "{h@}"}"#);
    let apart = sets(r#"{"k": "c#", "a": 1, "b": 2, "h": "{h@}"}"#);
    let more = format!(
        r#"{{"body": ["{{|}}", {twice}, {apart}], "params": {{"v": ["{{|}}", {twice}, {apart}]}}}}"#
    );
    let errors = parse_route(route_source("POST /x", "m", &more)).unwrap_err();
    assert_eq!(errors[0].key, "route[0].body");
    let words = "the alternatives 1 and 2 have too many alternatives and repeated holes inside";
    assert!(errors[0].what.contains(words), "{errors:?}");
    let routes = [twice, apart].map(|pattern| {
        let more = format!(r#"{{"body": {pattern}, "params": {pattern}}}"#);
        let mut source = route_source("POST /x", "m", &more);
        source.name = format!("r{}", pattern.len());
        parse_route(source).unwrap()
    });
    let errors = RouteTable::build(Vec::from(routes)).unwrap_err();
    assert!(
        errors[0].what.contains("shares calls with the route"),
        "{errors:?}"
    );
}
