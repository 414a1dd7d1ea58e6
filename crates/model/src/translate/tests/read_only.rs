//! Values of a call that only the response on their side repeats.

use super::constructs::{from_rest, from_rpc};
use crate::route::test_syntax::{route, route_source, row};
use crate::route::{RouteSource, parse_route};

const MORE: &str = r#"{
    "body": { "a": "{a}", "tag": "{<tag:integer}", "mode": "{<mode=fast}" },
    "params": { "a": "{a}" }
}"#;

#[test]
fn a_kept_value_is_read_and_not_sent_on() {
    let route = route("POST /x?trace={<trace}", "m", MORE);
    from_rest(
        &route,
        &[
            (
                r#"/x?trace=t {"a":1,"tag":7,"mode":"slow"}"#,
                Ok((r#"m {"a":1}"#, 0)),
            ),
            (r#"/x {"a":1}"#, Ok((r#"m {"a":1}"#, 0))),
            (
                r#"/x {"a":1,"tag":"7"}"#,
                Err("body/tag: it must be an integer"),
            ),
        ],
    );
    from_rpc(
        &route,
        &[
            (r#"m {"a":1}"#, Ok((r#"/x {"a":1,"mode":"fast"}"#, 0))),
            (r#"m {"a":1,"tag":7}"#, Err("the route does not know it")),
        ],
    );
}

fn refused(source: RouteSource, words: &str) {
    let errors = parse_route(source).unwrap_err();
    let shown = errors.iter().map(ToString::to_string).collect::<String>();
    assert!(shown.contains(words), "{shown}");
}

#[test]
fn a_kept_value_that_cannot_work_is_a_load_error() {
    let mut source = route_source("POST /x", "m", MORE);
    let answer = r#"{"status":200,"body":{"r":"{r}"}}"#;
    source.rows = vec![row(0, answer, r#"{"result":{"r":"{r}","t":"{>tag}"}}"#)];
    refused(
        source,
        "`{>tag}` has no value on the rpc side: `{<tag}` is read on the rest side",
    );
    let mut source = route_source("POST /x", "m", MORE);
    let answer = r#"{"status":200,"body":{"r":"{r}","t":"{<t}"}}"#;
    source.rows = vec![row(0, answer, r#"{"result":{"r":"{r}"}}"#)];
    refused(source, "in a response, write `{_}` to ignore it");
    for (rest, body, params, words) in [
        (
            "POST /x/{a}",
            r#"{"t":"{<t}"}"#,
            r#"{"a":"{a}","t":"{t}"}"#,
            "and also at another place of the call",
        ),
        (
            "POST /x",
            r#"{"t":"is {<t}"}"#,
            "{}",
            "must be a whole value",
        ),
        (
            "POST /x",
            r#"{"t":["*","{<t}"]}"#,
            "{}",
            "must be a whole value",
        ),
        ("POST /x", r#"{"t":"{<t?}"}"#, "{}", "may always be absent"),
        ("POST /x", r#"{"t":"{<_}"}"#, "{}", "no value to keep"),
        (
            "POST /x",
            r#"{"t":"{t}"}"#,
            "{}",
            "`{<t}` in a call to keep it for the response on its side",
        ),
    ] {
        let more = format!(r#"{{"body":{body},"params":{params}}}"#);
        refused(route_source(rest, "m", &more), words);
    }
}
