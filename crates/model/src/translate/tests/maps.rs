//! Value maps in calls, in each position of a hole.

use super::constructs::{both_ways, from_rest, from_rpc};
use crate::route::parse_route;
use crate::route::test_syntax::{route, route_source};

const MORE: &str = r#"{
    "body": {
        "level": "{level:map(0=low|\"0\"=text|true=yes|null=none)}",
        "near": "is {near:map(x=X|y=Y)}"
    },
    "params": {
        "kind": "{kind}", "state": "{state}", "tags": "{tags}", "n": "{n}", "level": "{level}", "near": "{near}"
    }
}"#;

#[test]
fn each_side_has_its_own_words() {
    let tasks = route(
        "POST /{kind:map(task=TASK|job=JOB)}/x?state={state:map(open=OPEN|done=DONE)?}&tag={tags:map(a=A|b=B)[,]?}&n={n:map(0=none|1=some)[]?}",
        "tasks",
        MORE,
    );
    both_ways(
        &tasks,
        &[
            (
                r#"/task/x?state=open&tag=a%2Cb&n=0&n=1 {"level":0,"near":"is x"}"#,
                r#"tasks {"kind":"TASK","state":"OPEN","tags":["A","B"],"n":["none","some"],"level":"low","near":"X"}"#,
            ),
            (
                r#"/job/x {"level":"0","near":"is y"}"#,
                r#"tasks {"kind":"JOB","level":"text","near":"Y"}"#,
            ),
            (
                r#"/job/x {"level":null,"near":"is y"}"#,
                r#"tasks {"kind":"JOB","level":"none","near":"Y"}"#,
            ),
        ],
    );
    let near = r#","near":"is y"}"#;
    from_rest(
        &tasks,
        &[
            (
                &format!(r#"/TASK/x {{"level":0{near}"#),
                Err("not one of `task`, `job`"),
            ),
            (
                &format!(r#"/job/x {{"level":false{near}"#),
                Err(r#"must be one of `0`, `"0"`, `true`, `null`"#),
            ),
            (
                &format!(r#"/job/x {{"level":0.0{near}"#),
                Err("body/level: this number must be spelled `0`"),
            ),
            (
                &format!(r#"/job/x?tag=a,c {{"level":0{near}"#),
                Err("`c` is not one of"),
            ),
        ],
    );
    from_rpc(
        &tasks,
        &[(
            r#"tasks {"kind":"task","level":"low","near":"Y"}"#,
            Err("is not one of `TASK`, `JOB`"),
        )],
    );
}

#[test]
fn a_default_is_spelled_like_the_values_of_its_side() {
    let tasks = route(
        "GET /x?state={state:map(open=OPEN|done=DONE)=done}",
        "tasks",
        "",
    );
    from_rest(&tasks, &[("/x", Ok((r#"tasks {"state":"DONE"}"#, 0)))]);
    from_rpc(&tasks, &[("tasks", Ok(("/x?state=done", 0)))]);
    let keys = |default: &str| {
        let body = format!(
            r#"{{"body":{{"o":"{{o:keys(kebab=snake)={default}}}"}},"params":{{"o":"{{o}}"}}}}"#
        );
        parse_route(route_source("POST /x", "m", &body))
    };
    let route = keys(r#"{\"a-b\":1}"#).unwrap();
    from_rest(&route, &[("/x {}", Ok((r#"m {"o":{"a_b":1}}"#, 0)))]);
    from_rpc(&route, &[("m {}", Ok((r#"/x {"o":{"a-b":1}}"#, 0)))]);
    let errors = keys(r#"{\"a_b\":1}"#).unwrap_err();
    let words = "the default: the key `a_b` in kebab style would not come back";
    assert!(errors[0].what.contains(words), "{errors:?}");
}

#[test]
fn a_map_that_cannot_work_is_a_load_error() {
    for (rest, params, words) in [
        (
            "GET /x?s={s:map(a=A|a=B)}",
            "{s}",
            "the left word `a` occurs twice",
        ),
        (
            "GET /x?s={s:map(a=A|b=A)}",
            "{s}",
            "the right word `A` occurs twice",
        ),
        (
            "GET /x?s={s:map(a=A)}",
            "{s:map(b=B)}",
            "declare its type once",
        ),
        (
            "GET /x?s={s:map(a=A)=A}",
            "{s}",
            "the default: `A` is not one of `a`",
        ),
        (
            "GET /x?s={s:map(0=A|\"0\"=B)}",
            "{s}",
            "two left words have the text `0`",
        ),
        (
            "GET /x?s={s:map(\"\"=A)}",
            "{s}",
            "an empty left word is no text",
        ),
        ("GET /x?s={s:map(\"a,b\"=A)[,]}", "{s}", "contains a comma"),
        ("GET /x?s={s:map(a=A)x}", "{s}", "`x` after the map"),
        ("GET /x?s={s:map(a=1)}", "{s}", "the map on the other side"),
        ("GET /x?s={s}", "{=s:map(a=A)}", "has no default, no map"),
        (
            "GET /x?s={s}&t={_}",
            "{>s:map(a=A)}",
            "the hole `s` is on the rest side only",
        ),
    ] {
        let more = format!(r#"{{"params":{{"s":{params:?}}}}}"#);
        let errors = parse_route(route_source(rest, "m", &more)).unwrap_err();
        let shown = format!("{errors:?}");
        assert!(shown.contains(words), "{rest} {params}: {shown}");
    }
}

#[test]
fn a_word_that_no_url_can_have_is_a_load_error() {
    for (rest, words) in [
        (
            "GET /x/{s:map(..=A|b=B)}",
            "the left word `..` of the map of `s`: `.` and `..` are refused in a path",
        ),
        (
            "GET /x/{s:map(a.b=A|b=B)}.b",
            "the left word `a.b` of the map of `s`: it contains `.b`, the text that ends it here",
        ),
        (
            "GET /x/{s:map(\"a//b\"=A|b=B)=**}",
            "the left word `a//b` of the map of `s`: an empty segment is refused in a path",
        ),
        (
            "GET /x?s=a{s:map(a-b=A|b=B)}-b",
            "the left word `a-b` of the map of `s`: it contains `-b`, the text that ends it here",
        ),
    ] {
        let more = r#"{"params":{"s":"{s}"}}"#;
        let errors = parse_route(route_source(rest, "m", more)).unwrap_err();
        let shown = format!("{errors:?}");
        assert!(shown.contains(words), "{rest}: {shown}");
    }
}

#[test]
fn a_word_that_no_header_can_have_is_a_load_error() {
    for (value, word) in [
        ("{s:map(\\\"a \\\"=A|b=B)}", "a "),
        ("{s:map(\\\"a \\\"=A|b=B)[]}", "a "),
        ("Basic {s:map(\\\"a \\\"=A|b=B)}", "a "),
        ("Basic {>s:map(\\\"a \\\"=A|b=B)}", "a "),
    ] {
        let own = if value.contains('>') {
            "?s={s:map(a=A|b=B)}"
        } else {
            ""
        };
        let more = format!(r#"{{"headers":{{"x-s":"{value}"}},"params":{{"s":"{{s}}"}}}}"#);
        let errors = parse_route(route_source(&format!("GET /x{own}"), "m", &more)).unwrap_err();
        let shown = format!("{errors:?}");
        let words = format!(
            "the left word `{word}` of the map of `s`: its value is not allowed in a header"
        );
        assert!(shown.contains(&words), "{value}: {shown}");
    }
}
