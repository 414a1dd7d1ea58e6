//! REST calls that cannot be translated: refused with words that name the place, and nobody behind hears of them.

use crate::rest_to_rpc::ROUTES;
use crate::scene::{before_rpc, problem, saying};
use crate::support::{Message, Proxy, Upstream, chunked, rpc_only};

const JSON: [(&str, &str); 1] = [("Content-Type", "application/json")];

/// One row: what is sent, and the status, the reason and the words that come back.
struct Bad<'a> {
    request: (&'a str, &'a str, &'a str),
    refused: (u16, &'a str, &'a str),
}

const fn get<'a>(target: &'a str, reason: &'a str, words: &'a str) -> Bad<'a> {
    Bad {
        request: ("GET", target, ""),
        refused: (400, reason, words),
    }
}

const fn post<'a>(target: &'a str, body: &'a str, words: &'a str) -> Bad<'a> {
    Bad {
        request: ("POST", target, body),
        refused: (400, "invalid_params", words),
    }
}

/// Sends each row to a proxy whose upstream must stay alone.
fn expect_refused(rows: &[Bad<'_>]) {
    let upstream = Upstream::start();
    let plan = format!("unrouted = \"reject\"\n{}{ROUTES}", rpc_only(&upstream));
    let proxy = Proxy::start(&plan);
    for Bad { request, refused } in rows {
        let (method, target, body) = *request;
        let (status, reason, words) = *refused;
        let answer = proxy.rest(method, target, &JSON, body);
        assert_eq!(answer.status(), status, "{request:?}: {answer:?}");
        expect_problem(&answer, reason, words);
    }
    upstream.expect_no_connection();
}

fn expect_problem(answer: &Message, reason: &str, words: &str) {
    let (found, detail) = problem(answer);
    assert_eq!(found, reason, "{answer:?}");
    assert!(detail.contains(words), "{words:?} in {detail:?}");
    assert_eq!(answer.json()["blame"], "client");
    assert_eq!(answer.head.one("cache-control"), Some("no-store"));
}

#[test]
fn malformed_percent_encoding_is_refused_where_it_stands() {
    let hex = "`%` must be followed by two hexadecimal digits";
    let utf8 = "not valid UTF-8";
    expect_refused(&[
        get("/things/%", "invalid_params", "path parameter `id`"),
        get("/things/%", "invalid_params", hex),
        get("/things/%zz", "invalid_params", hex),
        get("/things/a%2", "invalid_params", hex),
        get("/things/%c3%28", "invalid_params", utf8),
        get("/things/%ff", "invalid_params", utf8),
        get("/files/a/%g1", "invalid_params", "path parameter `path`"),
        get("/search?q=%", "invalid_params", "query parameter `q`"),
        get("/search?q=%C3", "invalid_params", utf8),
        get("/search?%zz=1&q=x", "invalid_params", "a name in the query"),
    ]);
}

#[test]
fn values_of_another_type_are_refused_with_what_is_allowed() {
    let limit = "query parameter `limit`";
    expect_refused(&[
        get(
            "/count/x",
            "invalid_params",
            "path parameter `n`: `x` is not an integer",
        ),
        get("/count/1.0", "invalid_params", "not an integer"),
        get("/count/01", "invalid_params", "not an integer"),
        get("/count/%2B1", "invalid_params", "not an integer"),
        post("/things/7?limit=x", "", limit),
        post("/things/7?limit=1e3", "", "`1e3` is not an integer"),
        post("/things/7?limit=0x10", "", limit),
        post("/things/7?limit=+5", "", "` 5` is not an integer"),
        post("/things/7?limit=", "", "it must not be empty"),
        post("/things/7?deep=yes", "", "query parameter `deep`"),
        post("/things/7?deep=True", "", "`true` or `false`"),
        post("/things/7?deep=", "", "it must not be empty"),
        post("/things/7?ratio=NaN", "", "query parameter `ratio`"),
        post("/things/7?ratio=Infinity", "", "not a number"),
        post("/things/7?ratio=.5", "", "not a number"),
        post("/things/7?order=up", "", "one of `asc`, `desc`"),
        post("/things/7?ids=1,2", "", "query parameter `ids`"),
        post("/things/7?ids=1&ids=x", "", "`x` is not an integer"),
    ]);
}

#[test]
fn a_scalar_given_twice_is_refused() {
    expect_refused(&[
        post(
            "/things/7?limit=1&limit=1",
            "",
            "query parameter `limit`: it is given more than once",
        ),
        post("/things/7?limit=1&lim%69t=2", "", "given more than once"),
        post("/things/7?tags=a&tags=b", "", "query parameter `tags`"),
        get("/search?q=a&q=b", "invalid_params", "query parameter `q`"),
    ]);
}

#[test]
fn a_required_value_is_neither_missing_nor_empty() {
    expect_refused(&[
        get(
            "/search",
            "invalid_params",
            "query parameter `q`: it is required",
        ),
        get("/search?Q=x", "invalid_params", "it is required"),
        get(
            "/search?q=",
            "invalid_params",
            "query parameter `q`: it must not be empty",
        ),
        get("/search?q", "invalid_params", "it must not be empty"),
        get(
            "/files",
            "invalid_params",
            "path parameter `path`: it must not be empty",
        ),
    ]);
}

#[test]
fn what_a_program_behind_may_read_as_another_path_is_refused() {
    let dots = "`.` and `..` are refused";
    expect_refused(&[
        get("/things/..%2Fetc", "invalid_params", dots),
        get("/things/a%2f..%2fb", "invalid_params", dots),
        get("/things/a%2F%2e", "invalid_params", dots),
        get(
            "/things/%00",
            "invalid_params",
            "path parameter `id`: `\\u{0}` is refused",
        ),
        get("/things/a%0Ab", "invalid_params", "`\\n` is refused"),
        get("/things/a%7F", "invalid_params", "is refused"),
        get("/things/a%5Cb", "invalid_params", "`\\\\` is refused"),
        get(
            "/files/a%2Fb",
            "invalid_params",
            "`%2F` in a value of several segments",
        ),
        get("/files/a/b%2fc", "invalid_params", "path parameter `path`"),
        get("/files/a/%00/c", "invalid_params", "is refused"),
    ]);
}

#[test]
fn a_path_that_is_a_route_only_after_tidying_is_refused() {
    let empty =
        "an empty segment is refused, because the path without it is the route `things.get`";
    let dot = "a dot segment is refused";
    expect_refused(&[
        get("/things//7", "malformed_target", empty),
        get("//things/7", "malformed_target", empty),
        get(
            "/things/7/",
            "malformed_target",
            "a slash at the end is refused, because the path without it is the route `things.get`",
        ),
        get("/./things/7", "malformed_target", dot),
        get("/x/../things/7", "malformed_target", dot),
        get("/x/%2e%2E/things/7", "malformed_target", dot),
        get("/things/%2e/7", "malformed_target", "`things.get`"),
        get("/files/a/../b", "malformed_target", "`files.get`"),
    ]);
}

#[test]
fn a_body_must_be_an_object_of_other_members_than_the_url_has() {
    let given = "`id` is already given elsewhere";
    expect_refused(&[
        post(
            "/things/7",
            "[1]",
            "body: it must be an object, not an array",
        ),
        post("/things/7", "\"x\"", "not a string"),
        post("/do", "null", "body: it must be an object, not null"),
        post("/do", "1", "not a number"),
        post("/do", "true", "not a boolean"),
        post(
            "/things/7",
            r#"{"id":1}"#,
            "body/id: `id` is already given elsewhere",
        ),
        post("/things/7", r#"{"id":"7"}"#, given),
        post("/things/7", r#"{"ID":1}"#, given),
        post("/things/7", r#"{"\u0069d":1}"#, given),
        post("/things/7", r#"{"limit":5}"#, "body/limit"),
        post(
            "/things/7",
            r#"{"a":1,"a":2}"#,
            "member `a`: it is given twice",
        ),
        post("/things/7", r#"{"a":1,"\u0061":2}"#, "it is given twice"),
        post("/things/7", r#"{"a":1,"A":2}"#, "only in letter case"),
        post("/things/7", r#"{"\ud800":1}"#, "lone surrogate"),
        Bad {
            request: ("GET", "/things/7", r#"{"a":1}"#),
            refused: (
                400,
                "invalid_params",
                "body: GET of this route takes no body",
            ),
        },
    ]);
}

const fn no_json<'a>(body: &'a str, words: &'a str) -> Bad<'a> {
    Bad {
        request: ("POST", "/do", body),
        refused: (400, "malformed_json", words),
    }
}

#[test]
fn a_body_that_is_no_json_is_refused_at_its_byte() {
    expect_refused(&[
        no_json(" ", "body: there is no JSON value"),
        no_json("{", "the text ends inside a value"),
        no_json(r#"{"a":1,}"#, "body: byte 7"),
        no_json(r#"{'a':1}"#, "byte 1"),
        no_json(r#"{"a":01}"#, "byte"),
        no_json(r#"{"a":NaN}"#, "byte 5"),
        no_json(r#"{"a":1} x"#, "byte 8"),
        no_json("{\"a\":\"\n\"}", "a control character in a string"),
        no_json(r#"{"a":1}// x"#, "byte 7"),
        no_json("\u{feff}\u{feff}{}", "a byte order mark"),
        no_json("a=1&b=2", "byte 0"),
    ]);
}

#[test]
fn a_body_cannot_break_out_of_its_envelope() {
    expect_refused(&[
        no_json(r#"{}},"method":"x"#, "byte 2"),
        no_json(r#"{}},"method":"x","a":{"b":{}"#, "byte 2"),
        no_json(r#"{"a":1}},"id":9,"x":{"b":1}"#, "byte 7"),
        no_json(r#""},"method":"x","y":{"z":"1"}"#, "byte"),
        no_json(r#"1,"method":"x""#, "byte 1"),
    ]);
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    // What would be an envelope stays what it is: members of params.
    let members = r#"{"jsonrpc":"1.0","id":9,"method":"x","params":{}}"#;
    assert_eq!(proxy.rest("POST", "/do", &JSON, members).status(), 200);
    let sent = upstream.request().json();
    assert_eq!(sent["method"], "things/do");
    assert_eq!(sent["params"]["method"], "x");
}

#[test]
fn bytes_that_are_no_utf_8_are_refused() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let bodies: [&[u8]; 4] = [
        b"{\"a\":\"\xff\"}",
        b"{\"a\":\"\xc0\xaf\"}",
        b"{\"a\":\"\xed\xa0\x80\"}",
        b"\xff\xfe{\0}\0",
    ];
    for body in bodies {
        let answer = proxy.rest("POST", "/do", &JSON, body);
        assert_eq!(answer.status(), 400, "{body:?}");
        expect_problem(&answer, "malformed_json", "body: ");
    }
    upstream.expect_no_connection();
}

#[test]
fn nesting_beyond_the_limit_is_refused_before_anything_is_read() {
    let upstream = saying(r#""result":1"#);
    let proxy = before_rpc(&upstream, ROUTES);
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!(r#"{{"a":{open}{close}}}"#)
    };
    for body in [nested(129), nested(10_000), "[".repeat(1_000_000)] {
        let answer = proxy.rest("POST", "/do", &JSON, body);
        assert_eq!(answer.status(), 400);
        expect_problem(&answer, "too_deep", "128");
    }
    assert_eq!(upstream.requests().len(), 0);
    assert_eq!(proxy.rest("POST", "/do", &JSON, nested(128)).status(), 200);
    let sent = upstream.request();
    assert!(sent.text().contains(&nested(128)), "{sent:?}");
}

#[test]
fn other_content_types_charsets_and_codings_are_refused() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let rows: [(&str, &str, &str); 10] = [
        ("Content-Type", "text/plain", "`text/plain`"),
        (
            "Content-Type",
            "application/x-www-form-urlencoded",
            "form-urlencoded`",
        ),
        (
            "Content-Type",
            "multipart/form-data; boundary=b",
            "`multipart/form-data`",
        ),
        ("Content-Type", "", "content type"),
        (
            "Content-Type",
            "application/json; charset=latin1",
            "the charset `latin1`",
        ),
        ("Content-Type", "application/json; charset=UTF-16", "UTF-8"),
        ("Content-Type", "application/jsonx", "`application/jsonx`"),
        (
            "Content-Encoding",
            "deflate",
            "the content coding `deflate`",
        ),
        ("Content-Encoding", "zstd", "send gzip, br"),
        ("Content-Encoding", "gzip, br", "`gzip, br`"),
    ];
    for (name, value, words) in rows {
        let answer = proxy.rest("POST", "/do", &[(name, value)], "{}");
        assert_eq!(answer.status(), 415, "{name}: {value}: {answer:?}");
        expect_problem(&answer, "unsupported_media_type", words);
    }
    upstream.expect_no_connection();
}

fn limited(upstream: &Upstream) -> Proxy {
    before_rpc(upstream, &format!("{ROUTES}[limits]\nbody = 1000\n"))
}

#[test]
fn a_body_beyond_its_limit_is_refused_announced_or_not() {
    let upstream = saying(r#""result":1"#);
    let proxy = limited(&upstream);
    let text = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8));
    let whole = text(1001);
    let answer = proxy.rest("POST", "/do", &JSON, &whole);
    assert_eq!(answer.status(), 413);
    expect_problem(&answer, "body_too_large", "1000 bytes");

    let mut client = proxy.connect();
    client.send("POST /do HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    let (head, tail) = whole.split_at(600);
    client.send(chunked(&[head.as_bytes(), tail.as_bytes()]));
    let answer = client.read_answer();
    assert_eq!(answer.status(), 413);
    expect_problem(&answer, "body_too_large", "1000 bytes");

    // One that waits for `100 Continue` gets none.
    let mut client = proxy.connect();
    client.send(
        "POST /do HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1001\r\n\r\n",
    );
    assert_eq!(client.read_answer().status(), 413);
    assert_eq!(upstream.requests().len(), 0);

    assert_eq!(proxy.rest("POST", "/do", &JSON, text(1000)).status(), 200);
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn a_body_that_ends_early_is_refused() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    for head in ["Content-Length: 9", "Transfer-Encoding: chunked"] {
        let mut client = proxy.connect();
        client.send(format!(
            "POST /do HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n2\r\n{{}}"
        ));
        client.finish_sending();
        let answer = client.read_answer();
        assert_eq!(answer.status(), 400, "{answer:?}");
        expect_problem(&answer, "body_cut", "ended before it was complete");
        client.expect_gone();
    }
    upstream.expect_no_connection();
}

#[test]
fn a_path_without_a_route_is_not_found_and_a_method_without_one_not_allowed() {
    expect_refused(&[
        Bad {
            request: ("GET", "/nowhere", ""),
            refused: (404, "route_not_found", "GET `/nowhere`"),
        },
        Bad {
            request: ("GET", "/things/7/8", ""),
            refused: (404, "route_not_found", "/things/7/8"),
        },
        Bad {
            request: ("GET", "/Things/7", ""),
            refused: (404, "route_not_found", "/Things/7"),
        },
        Bad {
            request: ("DELETE", "/things/7", ""),
            refused: (
                405,
                "method_not_allowed",
                "DELETE is not allowed for this path",
            ),
        },
        Bad {
            request: ("GET", "/jobs/7:cancel", ""),
            refused: (405, "method_not_allowed", "allowed: POST"),
        },
    ]);
}
