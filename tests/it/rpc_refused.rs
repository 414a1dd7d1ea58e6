//! RPC calls that cannot be served: refused with words that name the place, and nobody behind hears of them.

use serde_json::{Value, json};

use crate::rpc_to_rest::routes;
use crate::scene::{before_rest, before_rpc, rpc_failure};
use crate::support::{Message, Proxy, Upstream, chunked, rpc_only};

/// A proxy before an RPC upstream whose only route is retired for every client: nothing that is not valid passes.
pub(crate) fn closed(upstream: &Upstream) -> Proxy {
    let route = "[[route]]\nname = 'm'\nrest = 'POST /m'\nrpc = 'm'\n";
    let flag = "[[flag]]\nname = 'closed'\nside = 'rpc'\nstage = 'retired'\n";
    Proxy::start_with_flags(&format!("{}{route}", rpc_only(upstream)), flag)
}

/// Checks an error whose id could be read, or not.
fn expect_some_error(answer: &Value, failure: (i64, &str), words: &str) {
    let id = answer["id"].clone();
    assert!(id.is_null() || id == 1, "{answer}");
    expect_error(answer, &id, failure, words);
}

/// Checks an error that bears an id.
fn expect_error(answer: &Value, id: &Value, failure: (i64, &str), words: &str) {
    assert_eq!(rpc_failure(answer), failure, "{answer}");
    assert_eq!(&answer["id"], id, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(words), "{words:?} in {message:?}");
    assert_eq!(answer["error"]["data"]["blame"], "client");
}

/// A method, params that do not fit it, and the words that say so.
const UNFIT: &[(&str, &str, &str)] = &[
    ("things/put", "{}", "params/id: it is required"),
    (
        "things/put",
        r#"{"id":""}"#,
        "params/id: it must not be empty",
    ),
    (
        "things/put",
        r#"{"id":7}"#,
        "params/id: it must be a string, not a number",
    ),
    (
        "things/put",
        r#"{"id":["7"]}"#,
        "params/id: it must be a string, not an array",
    ),
    ("things/put", r#"{"id":null}"#, "params/id"),
    (
        "things/put",
        r#"{"ID":"7"}"#,
        "params/ID: it differs from `id` only in letter case",
    ),
    (
        "things/put",
        r#"{"id":"7","Id":"8"}"#,
        "only in letter case",
    ),
    (
        "things/put",
        r#"{"id":"7","id":"8"}"#,
        "member `id`: it is given twice",
    ),
    (
        "things/put",
        r#"{"id":"7","\u0069d":"8"}"#,
        "it is given twice",
    ),
    (
        "things/put",
        r#"{"id":"7","a":1,"a":2}"#,
        "member `a`: it is given twice",
    ),
    (
        "things/put",
        r#"{"id":"7","Limit":3}"#,
        "params/Limit: it differs from `limit` only in letter case",
    ),
    (
        "things/put",
        r#"{"id":"7","limit":"5"}"#,
        "params/limit: it must be an integer, not a string",
    ),
    (
        "things/put",
        r#"{"id":"7","limit":1.5}"#,
        "params/limit: `1.5` is not an integer",
    ),
    ("things/put", r#"{"id":"7","deep":"true"}"#, "params/deep"),
    (
        "things/put",
        r#"{"id":"7","order":"up"}"#,
        "one of `asc`, `desc`",
    ),
    (
        "things/put",
        r#"{"id":"7","tags":"a"}"#,
        "params/tags: it must be an array, not a string",
    ),
    (
        "things/put",
        r#"{"id":"7","tags":["a,b"]}"#,
        "params/tags: element 0: it contains a comma",
    ),
    (
        "things/put",
        r#"{"id":"7","tags":[""]}"#,
        "params/tags: element 0",
    ),
    (
        "things/put",
        r#"{"id":"7","ids":[1,"2"]}"#,
        "params/ids: element 1",
    ),
    (
        "things/get",
        r#"{"id":"."}"#,
        "params/id: `.` and `..` are refused",
    ),
    ("things/get", r#"{"id":".."}"#, "params/id"),
    ("things/get", r#"{"id":"../x"}"#, "params/id"),
    (
        "things/get",
        r#"{"id":"a\u0000"}"#,
        "params/id: `\\u{0}` is refused",
    ),
    ("things/get", r#"{"id":"a\nb"}"#, "params/id"),
    ("things/get", r#"{"id":"a\\b"}"#, "params/id"),
    (
        "things/get",
        r#"{"id":"\ud800"}"#,
        "params/id: a lone surrogate",
    ),
    ("things/get", r#"{"\ud800":1}"#, "lone surrogate"),
    (
        "files/get",
        r#"{"path":"a//b"}"#,
        "params/path: an empty segment",
    ),
    ("files/get", r#"{"path":"/a"}"#, "params/path"),
    ("files/get", r#"{"path":"a/"}"#, "params/path"),
    ("files/get", r#"{"path":"a/../b"}"#, "params/path"),
    (
        "files/get",
        r#"{"path":""}"#,
        "params/path: it must not be empty",
    ),
    (
        "items/get",
        r#"{"name":"items"}"#,
        "it must have the form `items/*`",
    ),
    ("items/get", r#"{"name":"items/7/8"}"#, "`items/*`"),
    ("items/get", r#"{"name":"things/7"}"#, "`items/*`"),
    (
        "things/do",
        "[1]",
        "params: it must be an object, not an array",
    ),
    ("things/put", "[]", "params/id: it is required"),
];

#[test]
fn params_that_fit_no_url_and_body_are_refused_by_their_names() {
    let upstream = Upstream::start();
    let more = format!("{}[limits]\ntarget = 300\n", routes());
    let proxy = before_rest(&upstream, &more);
    let long = format!(r#"{{"q":"{}"}}"#, "x".repeat(300));
    let long = ("search", long.as_str(), "longer than 300 bytes");
    for (method, params, words) in UNFIT.iter().copied().chain([long]) {
        let call = format!(r#"{{"jsonrpc":"2.0","id":"c","method":"{method}","params":{params}}}"#);
        let answer = proxy.rpc(call);
        assert_eq!(answer.status(), 200, "{params}");
        let failure = (-32602, "invalid_params");
        expect_error(&answer.json(), &json!("c"), failure, words);
    }
    upstream.expect_no_connection();
}

/// Bodies that are no message, whether their id can be read, and the words that say what is wrong.
const NO_MESSAGES: &[(&str, Option<u32>, &str)] = &[
    (r#"{"id":7,"method":"m"}"#, Some(7), "`jsonrpc` is missing"),
    (
        r#"{"jsonrpc":"1.0","id":7,"method":"m"}"#,
        Some(7),
        "`jsonrpc`",
    ),
    (
        r#"{"jsonrpc":2.0,"id":7,"method":"m"}"#,
        Some(7),
        "`jsonrpc`",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7}"#,
        Some(7),
        "`method` is missing",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":null}"#,
        Some(7),
        "`method` must be a string",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":["m"]}"#,
        Some(7),
        "`method`",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":"x"}"#,
        Some(7),
        "`params`",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":null}"#,
        Some(7),
        "not null",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","result":1}"#,
        Some(7),
        "must not have `result`",
    ),
    (
        r#"{"jsonrpc":"2.0","method":"m","params":1}"#,
        None,
        "`params`",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","method":"n"}"#,
        None,
        "`method` is given twice",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","Method":"n"}"#,
        None,
        "only in letter case",
    ),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"m","params":{},"\u0070arams":{}}"#,
        None,
        "`params` is given twice",
    ),
    ("\"x\"", None, "must be an object, not a string"),
    ("null", None, "not null"),
    ("7", None, "not a number"),
    ("{}", None, "`jsonrpc` is missing"),
];

#[test]
fn what_is_no_message_is_refused_by_the_member_that_is_wrong() {
    let upstream = Upstream::start();
    let proxy = closed(&upstream);
    for (body, id, words) in NO_MESSAGES {
        let id = json!(id);
        let answer = proxy.rpc(body);
        assert_eq!(answer.status(), 200, "{body}");
        expect_error(&answer.json(), &id, (-32600, "invalid_request"), words);
        let answer = proxy.rpc(format!("[{body}]"));
        expect_error(&answer.json()[0], &id, (-32600, "invalid_request"), words);
    }
    upstream.expect_no_connection();
}

#[test]
fn a_body_that_is_no_json_is_a_parse_error() {
    let upstream = Upstream::start();
    let proxy = closed(&upstream);
    let bodies: [&[u8]; 9] = [
        b"",
        b" ",
        b"{",
        br#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"m",}"#,
        br#"{"jsonrpc":"2.0","id":01,"method":"m"}"#,
        b"\xef\xbb\xbf\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\n\"}",
    ];
    for body in bodies {
        let answer = proxy.rpc(body);
        assert_eq!(answer.status(), 200, "{answer:?}");
        let failure = (-32700, "malformed_json");
        expect_some_error(&answer.json(), failure, "the body is not JSON");
    }
    upstream.expect_no_connection();
}

#[test]
fn nesting_beyond_the_limit_is_refused_before_anything_is_read() {
    let upstream = Upstream::start();
    let proxy = closed(&upstream);
    let nested = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for body in [&nested, &format!("[{nested}]"), &"[".repeat(1_000_000)] {
        let answer = proxy.rpc(body).json();
        expect_error(&answer, &Value::Null, (-31008, "too_deep"), "128");
    }
    upstream.expect_no_connection();
}

/// An error of a whole request: the HTTP status tells it as well, and nobody's id can be known.
fn expect_status(answer: &Message, status: u16, failure: (i64, &str), words: &str) {
    assert_eq!(answer.status(), status, "{answer:?}");
    assert_eq!(answer.head.one("content-type"), Some("application/json"));
    expect_error(&answer.json(), &Value::Null, failure, words);
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;

#[test]
fn other_content_types_charsets_and_codings_are_refused() {
    let upstream = Upstream::start();
    let proxy = closed(&upstream);
    let rows = [
        ("Content-Type", "text/plain", "`text/plain`"),
        (
            "Content-Type",
            "application/x-www-form-urlencoded",
            "urlencoded",
        ),
        (
            "Content-Type",
            "application/json; charset=latin1",
            "`latin1`",
        ),
        ("Content-Encoding", "gzip", "not supported on an RPC path"),
        ("Content-Encoding", "zstd", "`zstd`"),
    ];
    for (name, value, words) in rows {
        let answer = proxy.rest("POST", "/rpc", &[(name, value)], CALL);
        assert_eq!(answer.status(), 415, "{answer:?}");
        expect_some_error(&answer.json(), (-31007, "unsupported_media_type"), words);
    }
    upstream.expect_no_connection();
}

#[test]
fn a_body_beyond_its_limit_is_refused_announced_or_not() {
    let upstream = crate::scene::saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, "[limits]\nbody = 1000\n");
    let padded = |length: usize| format!("{CALL}{}", " ".repeat(length - CALL.len()));
    let failure = (-31005, "body_too_large");
    expect_status(&proxy.rpc(padded(1001)), 413, failure, "1000 bytes");
    let mut client = proxy.connect();
    client.send("POST /rpc HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(chunked(&[padded(600).as_bytes(), &[b' '; 401]]));
    expect_status(&client.read_answer(), 413, failure, "1000 bytes");
    assert_eq!(upstream.requests().len(), 0);
    assert_eq!(proxy.rpc(padded(1000)).json()["result"], 1);
}

#[test]
fn a_body_that_ends_early_is_a_parse_error() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, "");
    let mut client = proxy.connect();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\n{CALL}"
    ));
    client.finish_sending();
    expect_status(
        &client.read_answer(),
        200,
        (-32700, "body_cut"),
        "ended before",
    );
    upstream.expect_no_connection();
}

#[test]
fn a_method_that_no_route_takes_is_unknown_where_nobody_is_behind() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, &routes());
    for method in ["nope", "things/Get", "", "rpc.discover", "\\ud83d"] {
        let answer = proxy
            .rpc(CALL.replace("\"m\"", &format!("\"{method}\"")))
            .json();
        if method == "\\ud83d" {
            expect_error(&answer, &json!(1), (-32600, "invalid_request"), "`method`");
            continue;
        }
        let failure = (-32601, "route_not_found");
        expect_error(&answer, &json!(1), failure, &format!("`{method}`"));
    }
    let answer = proxy.rpc(CALL.replace("\"m\"", "\"\\n<b>\\\"\""));
    let failure = (-32601, "route_not_found");
    expect_error(&answer.json(), &json!(1), failure, r#"`\n<b>\"`"#);
    upstream.expect_no_connection();
}

#[test]
fn an_rpc_path_takes_post() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, "");
    // Without an RPC upstream, GET there is the REST server's.
    let mut client = proxy.connect();
    client.send("GET /rpc HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut server = upstream.accept();
    assert_eq!(server.read_request().head.start, "GET /rpc HTTP/1.1");

    let upstream = crate::scene::saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, &routes());
    for path in ["/", "/rpc", "/jsonrpc", "/mcp", "/rpc?tenant=1"] {
        assert_eq!(proxy.rest("POST", path, &[], CALL).json()["result"], 1);
        let query = path
            .split_once('?')
            .map_or(String::new(), |(_, query)| format!("?{query}"));
        let expected = format!("POST /rpc{query} HTTP/1.1");
        assert_eq!(upstream.requests().last().unwrap().head.start, expected);
    }
}
