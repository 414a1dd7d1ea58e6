//! RPC clients before a REST upstream: what is sent there, and what comes back.

use crate::rest_to_rpc::ROUTES as COMMON;
use crate::scene::{answer, before_rest, code_of, json, json_with, rpc_failure};
use crate::support::{Message, Proxy, Upstream};

const MORE: &str = r#"
[[route]]
name = "things.delete"
rest = "DELETE /things/{id}"
rpc = "things/delete"
[[route]]
name = "things.replace"
rest = "PUT /things/{id}"
rpc = "things/replace"
[[route]]
name = "items.get"
rest = "GET /v1/{name=items/*}?view=full"
rpc = "items/get"
[[route]]
name = "ping"
rest = "GET /ping"
rpc = "ping"
"#;

pub(crate) fn routes() -> String {
    format!("{COMMON}{MORE}")
}

/// Calls with an id that does not travel, so that whatever comes back shows it unharmed.
fn ask(proxy: &Proxy, method: &str, params: &str) -> Message {
    proxy.rpc(format!(
        r#"{{"jsonrpc":"2.0","id":1e3,"method":"{method}","params":{params}}}"#
    ))
}

/// The content of an answer behind the id: `"result":…` or `"error":…`.
fn said(answer: &Message) -> &str {
    said_with(answer, 200)
}

/// The same with this HTTP status.
fn said_with(answer: &Message, status: u16) -> &str {
    assert_eq!(answer.status(), status, "{answer:?}");
    assert_eq!(answer.head.one("content-type"), Some("application/json"));
    let inside = answer.text().strip_prefix(r#"{"jsonrpc":"2.0","id":1e3,"#);
    let inside = inside.and_then(|inside| inside.strip_suffix('}'));
    inside.unwrap_or_else(|| panic!("{answer:?}"))
}

const fn put(
    params: &'static str,
    target: &'static str,
    body: &'static str,
) -> (&'static str, &'static str, [&'static str; 2], &'static str) {
    ("things/put", params, ["POST", target], body)
}

/// A method, its params, and the method, the target and the body that they become.
const CALLS: &[(&str, &str, [&str; 2], &str)] = &[
    put(r#"{"id":"7"}"#, "/things/7?limit=50", "{}"),
    put(
        r#"{"id":"7","limit":5,"a":1.10}"#,
        "/things/7?limit=5",
        r#"{"a":1.10}"#,
    ),
    put(
        r#"{ "a":1.10 , "id":"7","b" : [ ] }"#,
        "/things/7?limit=50",
        r#"{"a":1.10,"b" : [ ]}"#,
    ),
    put(
        r#"{"id":"7","limit":123456789012345678901234567890}"#,
        "/things/7?limit=123456789012345678901234567890",
        "{}",
    ),
    put(r#"{"id":"7","order":"asc"}"#, "/things/7?limit=50", "{}"),
    put(
        r#"{"id":"7","order":"desc"}"#,
        "/things/7?limit=50&order=desc",
        "{}",
    ),
    put(
        r#"{"id":"7","tags":["a","b c"]}"#,
        "/things/7?limit=50&tags=a%2Cb%20c",
        "{}",
    ),
    put(r#"{"id":"7","tags":[]}"#, "/things/7?limit=50", "{}"),
    put(
        r#"{"id":"7","ids":[1,2]}"#,
        "/things/7?limit=50&ids=1&ids=2",
        "{}",
    ),
    put(
        r#"{"id":"7","deep":false}"#,
        "/things/7?limit=50&deep=false",
        "{}",
    ),
    put(
        r#"{"id":"7","ratio":1.10}"#,
        "/things/7?limit=50&ratio=1.10",
        "{}",
    ),
    put(r#"{"id":"7","q":""}"#, "/things/7?limit=50&q=", "{}"),
    put(
        r#"{"id":"7","q":"a b+&=#?\u00e9/\n"}"#,
        "/things/7?limit=50&q=a%20b%2B%26%3D%23%3F%C3%A9%2F%0A",
        "{}",
    ),
    put(
        r#"{"id":"a/b?c#d%65"}"#,
        "/things/a%2Fb%3Fc%23d%2565?limit=50",
        "{}",
    ),
    put(r#"{"i\u0064":"\u0061:b"}"#, "/things/a%3Ab?limit=50", "{}"),
    put(
        r#"{"id":"7","_meta":{"t":1},"a":1}"#,
        "/things/7?limit=50",
        r#"{"a":1}"#,
    ),
    put(r#"{"id":"7","_meta":{"t":1}}"#, "/things/7?limit=50", "{}"),
    ("things/get", r#"{"id":"7"}"#, ["GET", "/things/7"], ""),
    (
        "things/delete",
        r#"{"id":"7"}"#,
        ["DELETE", "/things/7"],
        "",
    ),
    (
        "things/replace",
        r#"{"id":"7","a":null}"#,
        ["PUT", "/things/7"],
        r#"{"a":null}"#,
    ),
    (
        "files/get",
        r#"{"path":"a/b c/é"}"#,
        ["GET", "/files/a/b%20c/%C3%A9"],
        "",
    ),
    (
        "jobs/cancel",
        r#"{"id":"a:b"}"#,
        ["POST", "/jobs/a%3Ab:cancel"],
        "{}",
    ),
    (
        "items/get",
        r#"{"name":"items/7"}"#,
        ["GET", "/v1/items/7?view=full"],
        "",
    ),
    ("search", r#"{"q":"x"}"#, ["GET", "/search?q=x"], ""),
    ("ping", "{}", ["GET", "/ping"], ""),
    ("things/do", " { } ", ["POST", "/do"], "{ }"),
];

#[test]
fn params_become_a_url_and_a_body() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, &routes());
    for (method, params, [verb, target], body) in CALLS {
        assert_eq!(
            said(&ask(&proxy, method, params)),
            r#""result":1"#,
            "{params}"
        );
        let requests = upstream.requests();
        let sent = requests.last().unwrap();
        assert_eq!(sent.head.start, format!("{verb} {target} HTTP/1.1"));
        assert_eq!(sent.text(), *body, "{params}");
        let kind = (!body.is_empty()).then_some("application/json");
        assert_eq!(sent.head.one("content-type"), kind, "{params}");
    }
}

/// Everything that a program that rebuilds JSON would change.
const ODD: &str = r#"{ "z":1.10 , "a":123456789012345678901234567890,"e":"\u0041\/","s":"\ud800","big":1e400,"neg":-0.0,
"n":{"x":[ ],"dup":1,"dup":2} ,"é":"𝄞","t":1,"t":2 }"#;

#[test]
fn params_and_results_that_nothing_opens_stay_the_bytes_they_were() {
    let upstream = Upstream::answering(json(ODD));
    let proxy = before_rest(&upstream, &routes());
    let answer = ask(&proxy, "things/do", ODD);
    assert_eq!(said(&answer), format!(r#""result":{ODD}"#));
    assert_eq!(upstream.request().text(), ODD);
}

#[test]
fn members_that_a_request_without_body_has_no_place_for_are_refused() {
    let upstream = Upstream::answering(json("1"));
    let proxy = before_rest(&upstream, &routes());
    let params = r#"{"id":"7","a":1,"_meta":{},"b":{"c":2}}"#;
    let answer = ask(&proxy, "things/get", params);
    assert_eq!(rpc_failure(&answer.json()), (-32602, "invalid_params"));
    assert!(
        answer
            .text()
            .contains("params/a: the route does not know it"),
        "{answer:?}"
    );
    assert!(upstream.requests().is_empty());
}

/// Checks what a REST answer becomes.
fn expect(scripted: Vec<u8>, expected: &str) {
    let proxy = before_rest(&Upstream::answering(&scripted), &routes());
    let answer = ask(&proxy, "things/get", r#"{"id":"7"}"#);
    let shown = String::from_utf8_lossy(&scripted);
    let kept = ["401", "403", "429", "503"];
    let kept = kept.iter().find(|status| shown[9..].starts_with(**status));
    let status = kept.map_or(200, |status| status.parse().unwrap());
    assert_eq!(said_with(&answer, status), expected, "{shown}");
}

#[test]
fn success_is_a_result() {
    let text = [("Content-Type", "text/plain")];
    let rows = [
        (json(" {\"a\" : 1.10}\r\n"), "{\"a\" : 1.10}"),
        (json("null"), "null"),
        (json("\"x\""), "\"x\""),
        (answer("200 OK", &text, "[1]"), "[1]"),
        (answer("200 OK", &[], "[1]"), "[1]"),
        (json_with("201 Created", r#"{"id":7}"#), r#"{"id":7}"#),
        (json_with("201 Created", ""), "null"),
        (json_with("202 Accepted", ""), "null"),
        (json_with("202 Accepted", r#"{"job":1}"#), r#"{"job":1}"#),
        (json_with("203 Non-Authoritative Information", "1"), "1"),
        (b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(), "null"),
        (json_with("205 Reset Content", ""), "null"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n"
                .to_vec(),
            "[1]",
        ),
    ];
    for (scripted, result) in rows {
        expect(scripted, &format!(r#""result":{result}"#));
    }
}

#[test]
fn failure_is_an_error_that_keeps_the_answer() {
    let rows = [
        ("400 Bad Request", -32602),
        ("401 Unauthorized", -31400),
        ("403 Forbidden", -31400),
        ("404 Not Found", -31404),
        ("405 Method Not Allowed", -32601),
        ("409 Conflict", -31400),
        ("410 Gone", -31410),
        ("422 Unprocessable Entity", -32602),
        ("429 Too Many Requests", -31400),
        ("500 Internal Server Error", -32603),
        ("501 Not Implemented", -32601),
        ("503 Service Unavailable", -32603),
    ];
    for (status, code) in rows {
        let (number, title) = status.split_once(' ').unwrap();
        let error = |kind: &str, body: &str| {
            format!(
                r#""error":{{"code":{code},"message":"{title}","data":{{"status":{number},"type":{kind},"body":{body}}}}}"#
            )
        };
        let body = r#"{"detail" : 1.10}"#;
        expect(
            json_with(status, body),
            &error(r#""application/json""#, body),
        );
        expect(answer(status, &[], ""), &error("null", "null"));
        let html = [("Content-Type", "text/html; charset=utf-8")];
        expect(
            answer(status, &html, "<h1>\"no\"</h1>"),
            &error(r#""text/html; charset=utf-8""#, r#""<h1>\"no\"</h1>""#),
        );
    }
}

#[test]
fn a_body_that_only_says_that_it_is_json_is_kept_as_text() {
    let error = |kind: &str, body: &str| {
        format!(
            r#""error":{{"code":-32603,"message":"Internal Server Error","data":{{"status":500,"type":"{kind}","body":{body}}}}}"#
        )
    };
    let status = "500 Internal Server Error";
    expect(
        json_with(status, r#"{"a":NaN}"#),
        &error("application/json", r#""{\"a\":NaN}""#),
    );
    let problem = [("Content-Type", "application/problem+json")];
    let body = r#"{"title":"no","status":500}"#;
    expect(
        answer(status, &problem, body),
        &error("application/problem+json", body),
    );
    let text = [("Content-Type", "text/plain")];
    expect(answer(status, &text, "{}"), &error("text/plain", r#""{}""#));
}

#[test]
fn a_status_that_has_no_name_is_shown_as_its_number() {
    let answer = answer("599 Whatever", &[], "");
    expect(
        answer,
        r#""error":{"code":-32603,"message":"HTTP status 599","data":{"status":599,"type":null,"body":null}}"#,
    );
}

#[test]
fn a_text_of_the_server_is_kept_up_to_its_limit() {
    let text = [("Content-Type", "text/plain")];
    let rows = [
        ("0123456789", r#""0123456789""#, ""),
        ("0123456789a", r#""0123456789""#, r#","truncated":true"#),
        // A letter is not cut in two.
        ("012345678é", r#""012345678""#, r#","truncated":true"#),
    ];
    for (body, kept, mark) in rows {
        let upstream = Upstream::answering(answer("409 Conflict", &text, body));
        let more = format!("{}[limits]\nerror_text = 10\n", routes());
        let proxy = before_rest(&upstream, &more);
        let answer = ask(&proxy, "things/get", r#"{"id":"7"}"#);
        let data = format!(r#"{{"status":409,"type":"text/plain","body":{kept}{mark}}}"#);
        let expected = format!(r#""error":{{"code":-31400,"message":"Conflict","data":{data}}}"#);
        assert_eq!(said(&answer), expected);
    }
}

/// Checks the failure that a REST answer becomes; the one request was not repeated.
fn expect_failure(scripted: &[u8], more: &str, code: i64, reason: &str) -> serde_json::Value {
    let upstream = Upstream::answering(scripted);
    let proxy = before_rest(&upstream, &format!("{}{more}", routes()));
    let answer = ask(&proxy, "things/get", r#"{"id":"7"}"#);
    assert!(said(&answer).starts_with(r#""error":"#), "{answer:?}");
    let answer = answer.json();
    assert_eq!(rpc_failure(&answer), (code, reason), "{answer}");
    assert_eq!(answer["error"]["data"]["blame"], "upstream");
    assert_eq!(upstream.requests().len(), 1);
    let reason = format!("reason={reason}");
    proxy.log_line(&["outcome=failed", "blame=upstream", &reason]);
    answer["error"].clone()
}

#[test]
fn a_redirect_is_never_followed_and_shows_its_location() {
    for status in [301, 302, 303, 304, 307, 308] {
        let location = [("Location", "http://elsewhere.example/\"x\"")];
        let scripted = answer(&format!("{status} Elsewhere"), &location, "");
        let error = expect_failure(&scripted, "", -31031, "upstream_redirect");
        let upstream = &error["data"]["upstream"];
        assert_eq!(upstream["status"], status);
        assert_eq!(upstream["location"], "http://elsewhere.example/\"x\"");
    }
    let error = expect_failure(
        &answer("302 Found", &[], ""),
        "",
        -31031,
        "upstream_redirect",
    );
    assert_eq!(
        error["data"]["upstream"]["location"],
        serde_json::Value::Null
    );
}

#[test]
fn a_success_that_is_none_is_a_failure() {
    let html = [("Content-Type", "text/html")];
    let rows = [
        (json(""), "upstream_empty"),
        (json(" \r\n"), "upstream_empty"),
        (
            answer("200 OK", &html, "<h1>Welcome</h1>"),
            "upstream_not_json",
        ),
        (json("Infinity"), "upstream_not_json"),
        (json("{\"a\":1} // done"), "upstream_not_json"),
        (json(b"\"\xff\""), "upstream_not_json"),
        (json("ok"), "upstream_not_json"),
        (json_with("201 Created", "ok"), "upstream_not_json"),
        (json("[".repeat(10_000)), "upstream_not_protocol"),
        (
            json_with("206 Partial Content", "1"),
            "upstream_not_protocol",
        ),
    ];
    for (scripted, reason) in rows {
        expect_failure(&scripted, "", code_of(reason), reason);
    }
}

#[test]
fn an_answer_beyond_its_limit_is_a_failure() {
    let limit = "[limits]\nanswer = 1000\n";
    let long = json(format!("\"{}\"", "x".repeat(999)));
    let error = expect_failure(&long, limit, -31030, "upstream_too_large");
    assert!(
        error["message"].as_str().unwrap().contains("1000"),
        "{error}"
    );
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".as_slice();
    let chunks = crate::support::chunked(&[&[b' '; 600], &[b' '; 600]]);
    expect_failure(
        &[head, &chunks].concat(),
        limit,
        -31030,
        "upstream_too_large",
    );
}

#[test]
fn a_notification_becomes_a_call_whose_answer_is_dropped() {
    let answers = [
        json(r#"{"a":1}"#),
        json_with("500 Internal Server Error", r#"{"a":1}"#),
        answer("302 Found", &[("Set-Cookie", "a=1")], ""),
    ];
    for (status, config) in [(204, ""), (202, "[rpc]\nnotification_status = 202\n")] {
        for scripted in &answers {
            let upstream = Upstream::answering(scripted);
            let proxy = before_rest(&upstream, &format!("{}{config}", routes()));
            let answer = proxy
                .rpc(r#"{"jsonrpc":"2.0","method":"things/put","params":{"id":"7","a":1.10}}"#);
            assert_eq!((answer.status(), answer.text()), (status, ""));
            assert_eq!(answer.head.one("set-cookie"), None);
            let sent = upstream.request();
            assert_eq!(sent.head.start, "POST /things/7?limit=50 HTTP/1.1");
            assert_eq!(sent.text(), r#"{"a":1.10}"#);
        }
    }
}

#[test]
fn a_call_takes_along_who_asks_and_brings_back_what_still_holds() {
    let headers = [
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Retry-After", "7"),
        ("WWW-Authenticate", "Bearer"),
        ("X-RateLimit-Limit", "9"),
        ("ETag", "\"e\""),
        ("Content-Type", "application/json"),
    ];
    let upstream = Upstream::answering(answer("429 Too Many Requests", &headers, "{}"));
    let proxy = before_rest(&upstream, &routes());
    let sent = [
        ("Content-Type", "application/json"),
        ("Authorization", "Bearer secret"),
        ("Cookie", "c=3"),
        ("X-Request-Id", "r-1"),
        ("Origin", "http://proxy.example"),
        ("If-None-Match", "\"e\""),
        ("Accept", "text/event-stream"),
    ];
    let call = r#"{"jsonrpc":"2.0","id":1e3,"method":"things/get","params":{"id":"7"}}"#;
    let answer = proxy.rest("POST", "/rpc?tenant=1", &sent, call);
    assert!(said_with(&answer, 429).contains("-31400"), "{answer:?}");
    assert_eq!(answer.head.all("set-cookie"), ["a=1", "b=2"]);
    assert_eq!(answer.head.one("retry-after"), Some("7"));
    assert_eq!(answer.head.one("www-authenticate"), Some("Bearer"));
    assert_eq!(answer.head.one("x-ratelimit-limit"), Some("9"));
    assert_eq!(answer.head.one("cache-control"), Some("no-store"));
    assert_eq!(answer.head.one("etag"), None);

    let seen = upstream.request();
    assert_eq!(seen.head.start, "GET /things/7 HTTP/1.1");
    let host = upstream.address().to_string();
    let expected = crate::support::fields(&[
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("authorization", "Bearer secret"),
        ("cookie", "c=3"),
        (
            "forwarded",
            "for=127.0.0.1;host=\"proxy.example\";proto=http",
        ),
        ("host", &host),
        ("via", "1.1 dualgauge"),
        ("x-request-id", "r-1"),
    ]);
    assert_eq!(seen.head.sorted(), expected);
}
