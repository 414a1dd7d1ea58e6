//! REST clients before an RPC upstream: what is sent there, and what comes back.

use serde_json::json as value;

use crate::scene::{Called, answer, before_rpc, body_of, json_with, lower_sorted, problem, saying};
use crate::support::{Proxy, Upstream, fields, rpc_only};

pub(crate) const ROUTES: &str = r#"
[[route]]
name = "things.put"
rest = "POST /things/{id}?limit={limit:integer=50}&order={order:enum(asc|desc)?=asc}&tags={tags:string[,]?}&ids={ids:integer[]?}&deep={deep:boolean?}&ratio={ratio:number?}&q={q?}"
rpc = "things/put"
[[route]]
name = "things.get"
rest = "GET /things/{id}"
rpc = "things/get"
[[route]]
name = "things.do"
rest = "POST /do"
rpc = "things/do"
[[route]]
name = "things.count"
rest = "GET /count/{n:integer}"
rpc = "things/count"
[[route]]
name = "search"
rest = "GET /search?q={q}"
rpc = "search"
[[route]]
name = "files.get"
rest = "GET /files/{path=**}"
rpc = "files/get"
[[route]]
name = "jobs.cancel"
rest = "POST /jobs/{id}:cancel"
rpc = "jobs/cancel"
"#;

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// Checks that a call arrives as this method with exactly these params, in an envelope of the proxy's own.
fn expect_sent(upstream: &Upstream, method: &str, params: &str) {
    let requests = upstream.requests();
    let sent = requests.last().unwrap();
    let id = Called::of(sent).own_id();
    let expected =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    assert_eq!(sent.text(), expected);
    assert_eq!(sent.head.start, "POST /rpc HTTP/1.1");
}

#[test]
fn path_query_and_body_become_params_with_their_types() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let calls = [
        ("/things/7", r#""id":"7","limit":50"#),
        ("/things/7?limit=5", r#""id":"7","limit":5"#),
        ("/things/7?limit=-0", r#""id":"7","limit":-0"#),
        (
            "/things/7?limit=123456789012345678901234567890",
            r#""id":"7","limit":123456789012345678901234567890"#,
        ),
        (
            "/things/7?order=desc",
            r#""id":"7","limit":50,"order":"desc""#,
        ),
        ("/things/7?order=asc", r#""id":"7","limit":50"#),
        (
            "/things/7?tags=a,b",
            r#""id":"7","limit":50,"tags":["a","b"]"#,
        ),
        ("/things/7?tags=", r#""id":"7","limit":50,"tags":[]"#),
        (
            "/things/7?ids=1&ids=2",
            r#""id":"7","limit":50,"ids":[1,2]"#,
        ),
        ("/things/7?ids=3", r#""id":"7","limit":50,"ids":[3]"#),
        ("/things/7?deep=true", r#""id":"7","limit":50,"deep":true"#),
        (
            "/things/7?ratio=1.10",
            r#""id":"7","limit":50,"ratio":1.10"#,
        ),
        (
            "/things/7?ratio=-1e400",
            r#""id":"7","limit":50,"ratio":-1e400"#,
        ),
        (
            "/things/7?q=a+b%2B%26",
            r#""id":"7","limit":50,"q":"a b+&""#,
        ),
        ("/things/7?q=", r#""id":"7","limit":50,"q":"""#),
        ("/things/7?q", r#""id":"7","limit":50,"q":"""#),
        ("/things/7?&&limit=5&", r#""id":"7","limit":5"#),
        ("/things/7?l%69mit=%35", r#""id":"7","limit":5"#),
        ("/things/a%2Fb+c%20d", r#""id":"a/b+c d","limit":50"#),
        ("/things/%C3%A9%22%7D", r#""id":"é\"}","limit":50"#),
        ("/things/a:b", r#""id":"a:b","limit":50"#),
        ("/t%68ings/%37", r#""id":"7","limit":50"#),
    ];
    for (target, params) in calls {
        let answer = proxy.rest("POST", target, &[], "");
        assert_eq!(body_of(&answer, 200), "1", "{target}");
        expect_sent(&upstream, "things/put", &format!("{{{params}}}"));
    }
}

#[test]
fn segments_and_verbs_become_params() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let calls = [
        (
            "GET",
            "/files/a/b%20c/d.txt",
            "files/get",
            r#""path":"a/b c/d.txt""#,
        ),
        ("GET", "/count/12", "things/count", r#""n":12"#),
        ("GET", "/search?q=x", "search", r#""q":"x""#),
        ("POST", "/jobs/7:cancel", "jobs/cancel", r#""id":"7""#),
        ("POST", "/jobs/a:b:cancel", "jobs/cancel", r#""id":"a:b""#),
    ];
    for (method, target, rpc, params) in calls {
        body_of(&proxy.rest(method, target, &[], ""), 200);
        expect_sent(&upstream, rpc, &format!("{{{params}}}"));
    }
}

/// Everything that a program that rebuilds JSON would change.
const ODD: &str = r#"{ "z":1.10 , "a":123456789012345678901234567890,"e":"\u0041\/","s":"\ud800","big":1e400,"neg":-0.0,
"n":{"x":[ ],"dup":1,"dup":2} ,"é":"𝄞" }"#;

#[test]
fn what_no_hole_names_stays_the_bytes_it_was() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    body_of(&proxy.rest("POST", "/do", &JSON, ODD), 200);
    expect_sent(&upstream, "things/do", ODD);
    body_of(&proxy.rest("POST", "/things/7?limit=5", &JSON, ODD), 200);
    let behind = &ODD[1..];
    expect_sent(
        &upstream,
        "things/put",
        &format!(r#"{{"id":"7","limit":5,{behind}"#),
    );
    // Nothing opens the object here, so that even a name given twice is the server's to judge.
    let twice = r#"{"a":1,"a":2,"A":3}"#;
    body_of(&proxy.rest("POST", "/do", &JSON, twice), 200);
    expect_sent(&upstream, "things/do", twice);
}

#[test]
fn no_body_and_an_empty_object_read_alike() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let kinds: [&[(&str, &str)]; 4] = [
        &[],
        &JSON,
        &[("Content-Type", "text/plain")],
        &[("Content-Length", "0")],
    ];
    for kind in kinds {
        body_of(&proxy.rest("POST", "/do", kind, ""), 200);
        expect_sent(&upstream, "things/do", "{}");
        body_of(&proxy.rest("POST", "/jobs/7:cancel", kind, ""), 200);
        expect_sent(&upstream, "jobs/cancel", r#"{"id":"7"}"#);
    }
    for body in ["{}", " { } ", "{\n}"] {
        body_of(&proxy.rest("POST", "/jobs/7:cancel", &JSON, body), 200);
        expect_sent(&upstream, "jobs/cancel", r#"{"id":"7"}"#);
    }
}

#[test]
fn json_goes_by_several_names() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;charset=\"UTF-8\"",
        "application/vnd.api+json",
    ] {
        let headers = [("Content-Type", kind), ("Content-Encoding", "identity")];
        body_of(&proxy.rest("POST", "/do", &headers, r#"{"a":1}"#), 200);
        expect_sent(&upstream, "things/do", r#"{"a":1}"#);
    }
    body_of(&proxy.rest("POST", "/do", &[], r#"{"a":1}"#), 200);
}

#[test]
fn a_method_override_is_not_honoured() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let headers = [("X-HTTP-Method-Override", "GET")];
    body_of(&proxy.rest("POST", "/things/7", &headers, ""), 200);
    expect_sent(&upstream, "things/put", r#"{"id":"7","limit":50}"#);
}

#[test]
fn query_parameters_that_are_ignored_are_dropped_and_counted() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    body_of(
        &proxy.rest("GET", "/things/7?utm_a=1&_=2&utm_a=3", &[], ""),
        200,
    );
    expect_sent(&upstream, "things/get", r#"{"id":"7"}"#);
    proxy.log_line(&["route=things.get", "dropped=3"]);
}

#[test]
fn the_result_is_the_answer_in_the_bytes_it_was() {
    for result in [ODD, "[]", "false", "0", r#""""#, r#"  {"a" : 1.10}"#] {
        let reply: &'static str = format!(r#""result":{result}"#).leak();
        let proxy = before_rpc(&saying(reply), ROUTES);
        let answer = proxy.rest("GET", "/things/7", &[], "");
        assert_eq!(body_of(&answer, 200), result.trim());
        assert_eq!(answer.head.one("content-type"), Some("application/json"));
        assert_eq!(answer.head.one("cache-control"), Some("no-store"));
    }
}

#[test]
fn a_null_result_is_no_content() {
    let proxy = before_rpc(&saying(r#""result":null"#), ROUTES);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send("GET /things/7 HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = client.read_answer();
        assert_eq!((answer.status(), answer.text()), (204, ""));
        assert_eq!(answer.head.one("content-type"), None);
        assert_eq!(answer.head.one("content-length"), None, "RFC 9110 §8.6");
    }
}

#[test]
fn an_error_is_a_problem_document_with_the_error_inside() {
    let rows = [
        (-32700, 400, "Bad Request"),
        (-32600, 400, "Bad Request"),
        (-32602, 400, "Bad Request"),
        (-32601, 404, "Not Found"),
        (-31404, 404, "Not Found"),
        (-31410, 410, "Gone"),
        (-31400, 400, "Bad Request"),
        (-32603, 500, "Internal Server Error"),
        (-32000, 500, "Internal Server Error"),
        (1, 500, "Internal Server Error"),
        (404, 500, "Internal Server Error"),
    ];
    for (code, status, title) in rows {
        let error = format!(r#"{{"code":{code},"message":"n\u006f","data":{{"x":1.10}}}}"#);
        let proxy = before_rpc(&saying(format!(r#""error":{error}"#).leak()), ROUTES);
        let answer = proxy.rest("GET", "/things/7", &[], "");
        let expected = format!(
            r#"{{"type":"about:blank","title":"{title}","status":{status},"detail":"n\u006f","rpc":{error}}}"#
        );
        assert_eq!(body_of(&answer, status), expected);
        problem(&answer);
        assert_eq!(answer.head.one("cache-control"), Some("no-store"));
        let line = proxy.log_line(&["outcome=error"]);
        let code = format!("code={code}");
        assert!(line.contains(&code), "{line}");
    }
}

#[test]
fn an_error_counts_whatever_http_status_bears_it() {
    for status in ["200 OK", "400 Bad Request", "500 Internal Server Error"] {
        let upstream = Upstream::serving(move |request| {
            let id = Called::of(request).own_id();
            json_with(
                status,
                format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no"}}}}"#
                ),
            )
        });
        let proxy = before_rpc(&upstream, ROUTES);
        let answer = proxy.rest("GET", "/things/7", &[], "");
        assert_eq!(answer.status(), 404, "{status}");
        assert_eq!(
            answer.json()["rpc"],
            value!({"code": -32601, "message": "no"})
        );
    }
}

#[test]
fn an_error_that_was_a_rest_answer_is_that_answer_again() {
    let rows = [
        (
            -31404,
            r#"{"status":404,"type":"application/json","body":{"detail":1.10}}"#,
            (404, Some("application/json"), r#"{"detail":1.10}"#),
        ),
        (
            -31400,
            r#"{"status":409,"type":"text/plain","body":"taken \u0041"}"#,
            (409, Some("text/plain"), "taken A"),
        ),
        (
            -32603,
            r#"{"status":503,"type":null,"body":null}"#,
            (503, None, ""),
        ),
    ];
    for (code, data, (status, kind, body)) in rows {
        let reply = format!(r#""error":{{"code":{code},"message":"","data":{data}}}"#);
        let proxy = before_rpc(&saying(reply.leak()), ROUTES);
        let answer = proxy.rest("GET", "/things/7", &[], "");
        assert_eq!(body_of(&answer, status), body);
        assert_eq!(answer.head.one("content-type"), kind);
    }
}

#[test]
fn head_is_get_without_its_content() {
    let upstream = saying(r#""result":{"a":1.10}"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let mut client = proxy.connect();
    client.send("HEAD /things/7 HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.read_answer_to("HEAD");
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.head.one("content-length"), Some("10"));
    assert_eq!(answer.head.one("content-type"), Some("application/json"));
    expect_sent(&upstream, "things/get", r#"{"id":"7"}"#);
    client.send("HEAD /count/x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.read_answer_to("HEAD").status(), 400);
    client.send("GET /things/8 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.read_answer().text(), r#"{"a":1.10}"#);
}

/// The headers that a caller sends, good and bad for a translated call.
const SENT: [(&str, &str); 24] = [
    ("Accept", "text/html"),
    ("Accept-Encoding", "gzip, br"),
    ("Accept-Language", "de"),
    ("Authorization", "Bearer secret"),
    ("Baggage", "k=v"),
    ("Content-Type", "application/json; charset=utf-8"),
    ("Cookie", "a=1"),
    ("Cookie", "b=2"),
    ("Forwarded", "for=192.0.2.1"),
    ("Idempotency-Key", "k-1"),
    ("If-Match", "\"e\""),
    ("If-None-Match", "\"e\""),
    ("Origin", "http://proxy.example"),
    ("Proxy-Authorization", "Basic eA=="),
    ("Range", "bytes=0-1"),
    ("TE", "trailers"),
    (
        "Traceparent",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    ),
    ("Tracestate", "v=1"),
    ("User-Agent", "app/1"),
    ("Via", "1.1 outer"),
    ("X-Other", "1"),
    ("X-Request-Id", "r-1"),
    ("X-Tenant", "t"),
    ("X-Tenant", "u"),
];

/// A proxy before an RPC upstream, behind a hop that it trusts.
fn behind_a_hop(rpc: &Upstream, more: &str) -> Proxy {
    let listen = "[listen]\ntrusted = [\"127.0.0.1\"]\n";
    let config = rpc_only(rpc).replace("[listen]\n", listen);
    Proxy::start(&format!("{config}{more}"))
}

/// The headers of the translated call, sorted, without credentials.
fn taken_along(upstream: &Upstream, length: usize) -> Vec<(String, String)> {
    let host = upstream.address().to_string();
    fields(&[
        ("accept", "application/json"),
        ("accept-encoding", "identity"),
        ("accept-language", "de"),
        ("baggage", "k=v"),
        ("content-length", &length.to_string()),
        ("content-type", "application/json"),
        ("forwarded", "for=192.0.2.1"),
        (
            "forwarded",
            "for=127.0.0.1;host=\"proxy.example\";proto=http",
        ),
        ("host", &host),
        ("idempotency-key", "k-1"),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        ("tracestate", "v=1"),
        ("user-agent", "app/1"),
        ("via", "1.1 outer"),
        ("via", "1.1 dualgauge"),
        ("x-request-id", "r-1"),
        ("x-tenant", "t"),
        ("x-tenant", "u"),
    ])
}

#[test]
fn a_call_takes_along_just_what_the_other_side_can_use() {
    let upstream = saying(r#""result":1"#);
    let proxy = behind_a_hop(&upstream, &format!("forward = [\"x-tenant\"]\n{ROUTES}"));
    body_of(&proxy.rest("POST", "/do", &SENT, "{}"), 200);
    let sent = upstream.request();
    let mut expected = taken_along(&upstream, sent.body.len());
    expected.extend(fields(&[
        ("authorization", "Bearer secret"),
        ("cookie", "a=1"),
        ("cookie", "b=2"),
    ]));
    expected.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(lower_sorted(&sent), expected);
}

#[test]
fn credentials_stay_behind_where_the_upstream_is_to_get_none() {
    let upstream = saying(r#""result":1"#);
    let more = format!("forward = [\"x-tenant\"]\ncredentials = \"drop\"\n{ROUTES}");
    let proxy = behind_a_hop(&upstream, &more);
    body_of(&proxy.rest("POST", "/do", &SENT, "{}"), 200);
    let sent = upstream.request();
    assert_eq!(lower_sorted(&sent), taken_along(&upstream, sent.body.len()));
}

#[test]
fn fields_that_connection_names_stay_behind() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, &format!("forward = [\"x-tenant\"]\n{ROUTES}"));
    let headers = [
        ("Connection", "x-tenant, X-Request-Id"),
        ("X-Tenant", "t"),
        ("X-Request-Id", "r"),
        ("User-Agent", "app/1"),
    ];
    body_of(&proxy.rest("GET", "/things/7", &headers, ""), 200);
    let sent = upstream.request();
    assert_eq!(sent.head.one("x-tenant"), None, "{sent:?}");
    assert_eq!(sent.head.one("x-request-id"), None, "{sent:?}");
    assert_eq!(sent.head.one("user-agent"), Some("app/1"));
}

#[test]
fn an_answer_brings_back_what_still_holds_for_it() {
    let kept = [
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("www-authenticate", "Bearer"),
        ("retry-after", "7"),
        ("cache-control", "private"),
        ("ratelimit-remaining", "3"),
        ("x-ratelimit-limit", "9"),
    ];
    let lost = [
        ("etag", "\"e\""),
        ("last-modified", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("content-language", "de"),
        ("server", "s"),
        ("location", "/x"),
        ("x-other", "1"),
        ("access-control-allow-origin", "*"),
    ];
    let replies = [r#""result":1"#, r#""error":{"code":1,"message":""}"#];
    for reply in replies {
        let upstream = Upstream::serving(move |request| {
            let id = Called::of(request).own_id();
            let headers: Vec<_> = kept.into_iter().chain(lost).collect();
            answer(
                "200 OK",
                &headers,
                format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#),
            )
        });
        let proxy = before_rpc(&upstream, ROUTES);
        let came = proxy.rest("GET", "/things/7", &[], "");
        let own = ["content-type", "content-length", "date"];
        let mut brought = lower_sorted(&came);
        brought.retain(|(name, _)| !own.contains(&name.as_str()));
        let mut expected = fields(&kept);
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        assert_eq!(brought, expected, "{reply}");
    }
}

#[test]
fn an_answer_beyond_its_limit_is_a_failure() {
    let text = format!(r#""result":"{}""#, "x".repeat(2000)).leak();
    let proxy: Proxy = before_rpc(&saying(text), &format!("{ROUTES}[limits]\nanswer = 1000\n"));
    let answer = proxy.rest("GET", "/things/7", &[], "");
    assert_eq!(answer.status(), 502);
    let (reason, detail) = problem(&answer);
    assert_eq!(reason, "upstream_too_large");
    assert!(detail.contains("1000"), "{detail}");
}
