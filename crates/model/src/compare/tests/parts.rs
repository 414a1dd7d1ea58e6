//! Status, headers and bodies of REST answers; errors of RPC.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{TERMS, json, rendered, rules};
use crate::compare::*;
use dualgauge_patterns::json::Json;

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

type Rest<'a> = (u16, &'a [(&'a str, &'a str)], &'a [u8]);

fn rest(control: Rest<'_>, candidate: Rest<'_>, lines: &[&str]) -> Comparison {
    let maps = [headers(control.1), headers(candidate.1)];
    let bodies = [control.2, candidate.2].map(Bytes::copy_from_slice);
    let answer = |index: usize, status| ComparedResponse::Rest {
        status,
        headers: &maps[index],
        body: &bodies[index],
    };
    compare(
        &answer(0, control.0),
        &answer(1, candidate.0),
        &rules(lines),
        &TERMS,
    )
}

const AS_JSON: &[(&str, &str)] = &[("content-type", "application/json")];

#[test]
fn a_rest_answer_is_status_media_type_and_body() {
    fn of(control: Rest<'_>, candidate: Rest<'_>, lines: &[&str]) -> String {
        rendered(&rest(control, candidate, lines)).join(", ")
    }
    fn json(body: &[u8]) -> Rest<'_> {
        (200, AS_JSON, body)
    }
    assert_eq!(
        of(
            json(b"{\"a\":1}"),
            (
                200,
                &[("content-type", "Application/JSON; charset=utf-8")],
                b" {\"a\": 1.0}"
            ),
            &[]
        ),
        ""
    );
    assert_eq!(of(json(b"1"), (404, AS_JSON, b"1"), &[]), "status /status");
    assert_eq!(
        of(
            json(b"1"),
            (200, &[("content-type", "text/json")], b"1"),
            &[]
        ),
        "header /headers/content-type"
    );
    assert_eq!(
        of(json(b"1"), (200, &[], b"1"), &[]),
        "missing /headers/content-type"
    );
    assert_eq!(
        of((204, &[], b""), (204, AS_JSON, b""), &[]),
        "",
        "no body has no media type"
    );
    assert_eq!(of((200, &[], b""), (200, &[], b"1"), &[]), "extra /body");
    assert_eq!(of(json(b"{\"a\":1}"), json(b"{\"a\":1"), &[]), "type /body");
    assert_eq!(
        of((200, &[], b"ab\xff"), (200, &[], b"ab\xfe"), &[]),
        "value /body"
    );
}

#[test]
fn a_body_is_json_by_its_media_type_or_its_content() {
    fn of(control: Rest<'_>, candidate: Rest<'_>, lines: &[&str]) -> String {
        rendered(&rest(control, candidate, lines)).join(", ")
    }
    fn json(body: &[u8]) -> Rest<'_> {
        (200, AS_JSON, body)
    }
    let text = &[("content-type", "text/plain")][..];
    assert_eq!(
        of((200, text, b"1.0"), (200, text, b"1"), &[]),
        "value /body",
        "a text is a text"
    );
    assert_eq!(
        of((200, text, b"{\"a\":1}"), (200, text, b" {\"a\":1.0}"), &[]),
        "",
        "what looks like JSON is read as such"
    );
    assert_eq!(
        of(
            json(b"{\"a\":1}"),
            (500, AS_JSON, b"{\"b\":1}"),
            &["ignore /status", "ignore /body"]
        ),
        "2 ignored"
    );
}

#[test]
fn headers_are_compared_where_they_are_named() {
    type Lines<'a> = &'a [(&'a str, &'a str)];
    fn of(control: Lines<'_>, candidate: Lines<'_>, lines: &[&str]) -> String {
        rendered(&rest((200, control, b""), (200, candidate, b""), lines)).join(", ")
    }
    let place = |to| [("location", to)];
    assert_eq!(of(&place("/a"), &place("/b"), &[]), "");
    assert_eq!(
        of(&place("/a"), &place("/b"), &["header location"]),
        "header /headers/location"
    );
    assert_eq!(
        of(&place("/a"), &[], &["header location"]),
        "missing /headers/location"
    );
    assert_eq!(
        of(
            &place("/a"),
            &place("/b"),
            &["header location", "ignore /headers"]
        ),
        "1 ignored"
    );
    let twice = [("vary", "a"), ("vary", " b ")];
    assert_eq!(of(&twice, &[("vary", "a, b")], &["header vary"]), "");
}

#[test]
fn an_error_is_code_message_and_data() {
    let (no, none, object) = (json("\"no\""), json("\"none\""), json("{\"a\":1}"));
    fn error<'a>(code: i64, message: &'a Json, data: Option<&'a Json>) -> ComparedResponse<'a> {
        ComparedResponse::Error {
            code,
            message,
            data,
        }
    }
    let of = |control: ComparedResponse<'_>, candidate: ComparedResponse<'_>, lines: &[&str]| {
        rendered(&compare(&control, &candidate, &rules(lines), &TERMS)).join(", ")
    };
    assert_eq!(of(error(1, &no, None), error(1, &no, None), &[]), "");
    assert_eq!(
        of(error(1, &no, None), error(2, &none, Some(&object)), &[]),
        "code /error/code, value /error/message, extra /error/data"
    );
    assert_eq!(
        of(
            error(1, &no, None),
            error(1, &none, None),
            &["ignore /error/message"]
        ),
        "1 ignored"
    );
    assert_eq!(
        of(error(1, &no, None), error(2, &no, None), &["ignore /error"]),
        "1 ignored"
    );
    assert_eq!(
        of(ComparedResponse::Result(&object), error(2, &no, None), &[]),
        "missing /result, extra /error"
    );
    assert_eq!(
        of(
            error(2, &no, None),
            ComparedResponse::Result(&object),
            &["ignore /result"]
        ),
        "missing /error, 1 ignored"
    );
}

#[test]
fn a_header_of_a_credential_is_never_shown() {
    let found = rest(
        (200, &[("set-cookie", "id=hunter2")], b""),
        (200, &[("set-cookie", "id=hunter3")], b""),
        &["header set-cookie", "show"],
    );
    assert_eq!(found.differences[0].control.as_str(), "text (hidden)");
}
