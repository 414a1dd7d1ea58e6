//! Each construct of the language in an answer, with the very bytes on both sides.

use http::HeaderName;

use super::*;
use crate::route::test_syntax::{route_source, row};
use crate::route::{Route, parse_route};
use crate::translate::{MethodCall, TranslateContext, rpc_to_rest as call_rest};
use dualgauge_patterns::pattern::Bindings;

const TERMS: TranslateContext = TranslateContext {
    depth: 128,
    now: || "2026-01-02T03:04:05Z".to_owned(),
};

/// A route whose call has the hole `id`, with these rows.
fn answering(rpc: &str, rows: &[(&str, &str)]) -> Route {
    let mut source = route_source("POST /a?id={id?}", rpc, "");
    source.rows = rows
        .iter()
        .copied()
        .enumerate()
        .map(|(index, (rest, rpc))| row(index, rest, rpc))
        .collect();
    parse_route(source).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn call(route: &Route) -> Bindings {
    let params = Json::literal(r#"{"id":"7"}"#);
    call_rest(route, MethodCall::new(&route.rpc, Some(&params)), TERMS)
        .unwrap()
        .bindings
}

/// `404 body`, `200 text/html body`, `201 [location: /x] body`.
fn to_rpc(route: &Route, spelled: &str) -> String {
    let (status, mut more) = spelled.split_once(' ').unwrap_or((spelled, ""));
    let mut reply = rest(status.parse().unwrap(), "", "");
    if let Some((header, rest)) = more
        .strip_prefix('[')
        .and_then(|more| more.split_once("] "))
        && let Some((name, value)) = header.split_once(": ")
    {
        reply
            .headers
            .insert(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        more = rest;
    }
    if let Some(text) = more.strip_prefix("text/plain ") {
        reply
            .headers
            .insert(CONTENT_TYPE, "text/plain".parse().unwrap());
        more = text;
    } else if !more.is_empty() {
        reply
            .headers
            .insert(CONTENT_TYPE, "application/json".parse().unwrap());
    }
    reply.body = Bytes::copy_from_slice(more.as_bytes());
    match route
        .outcomes
        .rest_to_rpc(&reply, &call(route), LIMITS, TERMS)
    {
        Ok(answered) => match answered.answer {
            RpcAnswer::Result(result) => {
                let dropped = counted(answered.dropped);
                format!(
                    "result {}{dropped}",
                    String::from_utf8_lossy(&result.into_bytes())
                )
            }
            RpcAnswer::Error(error) => shown(&error) + &counted(answered.dropped),
        },
        Err(failure) => failure.to_string(),
    }
}

fn counted(dropped: usize) -> String {
    match dropped {
        0 => String::new(),
        some => format!(" ({some} dropped)"),
    }
}

/// `result …`, or `error code message data`.
fn to_rest(route: &Route, spelled: &str) -> String {
    let json = |text: &str| Json::parse(text.to_owned().into(), 128).unwrap();
    let reply = match spelled.strip_prefix("error ") {
        None => ResponseReply::Result(json(spelled.trim_start_matches("result "))),
        Some(error) => {
            let (code, more) = error.split_once(" \"").unwrap();
            let (message, data) = more.split_once("\" ").unwrap();
            ResponseReply::Error(ErrorObject {
                code: code.parse().unwrap(),
                message: json(&format!("\"{message}\"")),
                data: (data != "-").then(|| json(data)),
            })
        }
    };
    let answered = route.outcomes.rpc_to_rest(reply, &call(route), TERMS);
    let answer = answered.answer;
    let mut shown = answer.status.to_string();
    for (name, value) in &answer.headers {
        shown.push_str(&format!(" [{name}: {}]", value.to_str().unwrap()));
    }
    if answer
        .content_type
        .is_some_and(|kind| kind.starts_with("text/plain"))
    {
        shown.push_str(" text/plain");
    }
    let body = answer.body.into_bytes();
    if !body.is_empty() {
        shown.push(' ');
        shown.push_str(std::str::from_utf8(&body).unwrap());
    }
    shown + &counted(answered.dropped)
}

#[track_caller]
fn both_ways(route: &Route, pairs: &[(&str, &str)]) {
    for (rest, rpc) in pairs {
        assert_eq!(to_rpc(route, rest), *rpc, "{rest}");
        assert_eq!(to_rest(route, rpc), *rest, "{rpc}");
    }
}

#[test]
fn one_status_maps_several_codes_that_a_text_distinguishes() {
    let route = answering(
        "m",
        &[
            (
                r#"{"status":404,"body":{"error":"no file {m}"}}"#,
                r#"{"code":-32010,"message":"{m}"}"#,
            ),
            (
                r#"{"status":404,"body":{"error":"no session {m}"}}"#,
                r#"{"code":-32012,"message":"{m}"}"#,
            ),
            (
                r#"{"status":404,"body":{"error":"gone","path":"{p}"}}"#,
                r#"{"code":-32013,"message":"gone","data":{"path":"{p}"}}"#,
            ),
        ],
    );
    both_ways(
        &route,
        &[
            (r#"404 {"error":"no file x"}"#, r#"error -32010 "x" -"#),
            (r#"404 {"error":"no session x"}"#, r#"error -32012 "x" -"#),
            (
                r#"404 {"error":"gone","path":"/a"}"#,
                r#"error -32013 "gone" {"path":"/a"}"#,
            ),
        ],
    );
    // What no row fits is for the built-in table.
    let built_in = r#"error -31404 "Not Found" {"status":404,"type":"application/json","body":{"error":"other"}}"#;
    both_ways(&route, &[(r#"404 {"error":"other"}"#, built_in)]);
}

#[test]
fn statuses_and_codes_are_lists_classes_and_holes() {
    let route = answering(
        "m",
        &[
            (
                r#"{"status":[503,"5xx"],"body":{"kind":"A","e":"{m}"}}"#,
                r#"{"code":[-32005,-32006],"message":"{m}","data":{"kind":"A"}}"#,
            ),
            (
                r#"{"status":"{s:integer}","body":{"kind":"B","said":"{m}","code":"{c:integer}"}}"#,
                r#"{"code":"{c}","message":"{m}","data":{"kind":"B","http":"{s}"}}"#,
            ),
        ],
    );
    both_ways(
        &route,
        &[
            (
                r#"503 {"kind":"A","e":"x"}"#,
                r#"error -32005 "x" {"kind":"A"}"#,
            ),
            (
                r#"418 {"kind":"B","said":"x","code":7}"#,
                r#"error 7 "x" {"kind":"B","http":418}"#,
            ),
        ],
    );
    assert_eq!(
        to_rpc(&route, r#"599 {"kind":"A","e":"x"}"#),
        r#"error -32005 "x" {"kind":"A"}"#
    );
    assert_eq!(
        to_rest(&route, r#"error -32006 "x" {"kind":"A"}"#),
        r#"503 {"kind":"A","e":"x"}"#
    );
    // A number that is no status is written by no row.
    assert!(to_rest(&route, r#"error 7 "x" {"kind":"B","http":99}"#).starts_with("500 "));
}

#[test]
fn an_answer_uses_holes_of_its_call_and_the_time() {
    let route = answering(
        "m",
        &[
            (
                r#"{"status":201,"headers":{"location":"/a/{>id}"},"body":{"id":"{new}"}}"#,
                r#"{"result":{"success":"made","created":"{new}","of":"{>id}"}}"#,
            ),
            (
                r#"{"status":204}"#,
                r#"{"result":{"success":true,"message":"deleted {>id}"}}"#,
            ),
            (
                r#"{"status":409,"body":{"m":"{m}","at":"{>now}"}}"#,
                r#"{"code":-32009,"message":"{m}"}"#,
            ),
        ],
    );
    both_ways(
        &route,
        &[
            (
                r#"201 [location: /a/7] {"id":1.0}"#,
                r#"result {"success":"made","created":1.0,"of":"7"}"#,
            ),
            ("204", r#"result {"success":true,"message":"deleted 7"}"#),
        ],
    );
    assert_eq!(
        to_rest(&route, r#"error -32009 "x" -"#),
        r#"409 {"m":"x","at":"2026-01-02T03:04:05Z"}"#
    );
    assert_eq!(
        to_rpc(&route, r#"409 {"m":"x","at":"then"}"#),
        r#"error -32009 "x" -"#
    );
}

#[test]
fn a_location_is_read_where_the_result_has_it() {
    let route = answering(
        "m",
        &[(
            r#"{"status":201,"headers":{"location":"/a/{new}"}}"#,
            r#"{"result":{"id":"{new}"}}"#,
        )],
    );
    assert_eq!(
        to_rpc(&route, "201 [location: /a/9] "),
        r#"result {"id":"9"}"#
    );
    assert_eq!(
        to_rest(&route, r#"result {"id":"9"}"#),
        "201 [location: /a/9]"
    );
}

#[test]
fn a_success_may_mean_failure() {
    let tool = answering(
        "tools/call",
        &[
            (
                r#"{"status":200,"body":"{v}"}"#,
                r#"{"result":{"structuredContent":"{v}","content":[{"type":"text","text":"{>v:json}"}]}}"#,
            ),
            (
                r#"{"status":422,"body":{"error":"{m}"}}"#,
                r#"{"result":{"isError":true,"content":[{"type":"text","text":"Error: {m}"}]}}"#,
            ),
        ],
    );
    both_ways(
        &tool,
        &[
            (
                r#"200 {"a":1}"#,
                r#"result {"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\":1}"}]}"#,
            ),
            (
                r#"422 {"error":"no"}"#,
                r#"result {"isError":true,"content":[{"type":"text","text":"Error: no"}]}"#,
            ),
        ],
    );
    // Members that the row does not name, `isError: false` among them, are dropped and counted.
    let success = r#"result {"isError":false,"structuredContent":1,"content":[]}"#;
    assert!(
        to_rest(&tool, success).starts_with("200 "),
        "{}",
        to_rest(&tool, success)
    );
}

#[test]
fn a_member_of_the_result_may_mean_failure() {
    let flat = answering(
        "m",
        &[
            (
                r#"{"status":404,"body":{"error":"{m}"}}"#,
                r#"{"result":{"success":false,"error":"{m:string}"}}"#,
            ),
            (
                r#"{"status":500,"body":{"error":"{m}"}}"#,
                r#"{"result":{"error":{"message":"{m}"}}}"#,
            ),
        ],
    );
    both_ways(
        &flat,
        &[
            (
                r#"404 {"error":"no"}"#,
                r#"result {"success":false,"error":"no"}"#,
            ),
            (
                r#"500 {"error":"no"}"#,
                r#"result {"error":{"message":"no"}}"#,
            ),
        ],
    );
    assert_eq!(
        to_rest(&flat, r#"result {"success":true}"#),
        r#"200 {"success":true}"#
    );
}

#[test]
fn an_answer_may_be_a_text_that_is_no_json() {
    let route = answering(
        "m",
        &[(
            r#"{"status":400,"text":"Error: {m}"}"#,
            r#"{"code":-32602,"message":"{m}"}"#,
        )],
    );
    both_ways(
        &route,
        &[("400 text/plain Error: no", r#"error -32602 "no" -"#)],
    );
    let other = r#"error -32602 "Bad Request" {"status":400,"type":"text/plain","body":"no"}"#;
    assert_eq!(to_rpc(&route, "400 text/plain no"), other);
}

#[test]
fn members_that_no_row_names_are_dropped_and_counted_or_carried() {
    let route = answering(
        "m",
        &[
            (
                r#"{"status":200,"body":{"id":"{i}","...":"{others}"}}"#,
                r#"{"result":{"kind":"key","key":"{i}","...":"{others}"}}"#,
            ),
            (
                r#"{"status":202,"body":{"id":"{i}"}}"#,
                r#"{"result":{"kind":"job","job":"{i}"}}"#,
            ),
        ],
    );
    both_ways(
        &route,
        &[(
            r#"200 {"id":1,"a":1.0}"#,
            r#"result {"kind":"key","key":1,"a":1.0}"#,
        )],
    );
    assert_eq!(
        to_rpc(&route, r#"202 {"id":1,"a":1.0,"ID":2}"#)
            .split(' ')
            .next(),
        Some("result")
    );
    assert_eq!(
        to_rpc(&route, r#"202 {"id":1,"a":1.0}"#),
        r#"result {"kind":"job","job":1} (1 dropped)"#
    );
    // A collision, or one name twice, is no answer of the row.
    assert_eq!(
        to_rpc(&route, r#"200 {"id":1,"key":2}"#),
        r#"result {"id":1,"key":2}"#
    );
    assert_eq!(
        to_rpc(&route, r#"200 {"id":1,"id":2}"#),
        r#"result {"id":1,"id":2}"#
    );
}

#[test]
fn a_mapped_status_is_one_of_a_response() {
    let errors = |rest: &str, rpc: &str| {
        let mut source = route_source("POST /a?id={id?}", "m", "");
        source.rows = vec![row(0, rest, rpc)];
        let errors = parse_route(source).unwrap_err();
        errors.iter().map(ToString::to_string).collect::<String>()
    };
    for (status, words) in [
        ("99999=a|404=b", "99999 is not a response status"),
        ("404=a|100=b", "100 is not a response status"),
        ("404=a|x=b", "`\"x\"` is not a number"),
        ("404=a|204=b", "an answer with 204 has no content"),
    ] {
        let rest = format!(r#"{{"status":"{{s:map({status})}}","body":{{"m":"{{m}}"}}}}"#);
        let rpc = r#"{"code":-1,"message":"{m}","data":"{s}"}"#;
        let shown = errors(&rest, rpc);
        assert!(shown.contains(words), "{status}: {shown}");
    }
    let mut source = route_source("POST /a?id={id?}", "m", "");
    let rest = r#"{"status":"{s:map(204=a|205=b)}"}"#;
    source.rows = vec![row(0, rest, r#"{"result":{"s":"{s}"}}"#)];
    parse_route(source).unwrap();
}
