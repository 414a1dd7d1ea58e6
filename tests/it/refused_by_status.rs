//! HTTP statuses of an RPC server, as a REST client gets them: 401, 403, 429 and 503 stay what they are, every other
//! error without a JSON-RPC response is a failure of the server.

use serde_json::json as value;

use crate::rest_to_rpc::ROUTES;
use crate::scene::{Called, answer, before_rpc, body_of, json, json_with, problem};
use crate::support::{Proxy, Upstream, both, eventually};

const CHALLENGE: &str = r#"Bearer realm="a", error="invalid_token""#;

const REFUSALS: [(&str, u16, &str); 4] = [
    ("401 Unauthorized", 401, "client"),
    ("403 Forbidden", 403, "client"),
    ("429 Too Many Requests", 429, "client"),
    ("503 Service Unavailable", 503, "upstream"),
];

/// An RPC server that refuses each call with this status and body.
fn refusing(status: &'static str, content_type: &'static str, body: &'static str) -> Upstream {
    Upstream::serving(move |_| {
        let headers = [
            ("Content-Type", content_type),
            ("WWW-Authenticate", CHALLENGE),
            ("WWW-Authenticate", "Basic"),
            ("Retry-After", "Fri, 31 Dec 2027 23:59:59 GMT"),
            ("Proxy-Authenticate", "Basic"),
        ];
        answer(status, &headers, body)
    })
}

#[test]
fn the_status_and_its_headers_stay_whatever_the_body_is() {
    let bodies = [
        ("text/html", "<h1>no</h1>"),
        ("application/json", r#"{"error":"invalid_token"}"#),
        (
            "application/json",
            r#"{"jsonrpc":"2.0","id":"x","result":1}"#,
        ),
        ("text/plain", ""),
    ];
    for (status, number, blame) in REFUSALS {
        for (kind, body) in bodies {
            let proxy = before_rpc(&refusing(status, kind, body), ROUTES);
            let came = proxy.rest("GET", "/things/7", &[], "");
            assert_eq!(body_of(&came, number), body);
            let kind = (!body.is_empty()).then_some(kind);
            assert_eq!(came.head.one("content-type"), kind);
            assert_eq!(came.head.all("www-authenticate"), [CHALLENGE, "Basic"]);
            let retry = came.head.one("retry-after");
            assert_eq!(retry, Some("Fri, 31 Dec 2027 23:59:59 GMT"));
            assert_eq!(came.head.one("proxy-authenticate"), None);
            let blame = format!("blame={blame}");
            let line = proxy.log_line(&["outcome=error", &blame, &format!("status={number}")]);
            assert!(!line.contains("reason="), "{line}");
        }
    }
}

#[test]
fn a_json_rpc_error_with_such_a_status_keeps_the_status_and_its_own_words() {
    const ROWS: &str = r#"
[[route]]
name = "rows"
rest = "GET /rows"
rpc = "rows"
[[route.outcome]]
rest = { status = 401, body = { said = "{m}" } }
rpc = { error = { code = -32001, message = "{m}" } }
[[route.outcome]]
rest = { status = 404, body = { said = "{m}" } }
rpc = { error = { code = -32002, message = "{m}" } }
"#;
    let reply = |code: i64| {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":"server-error","error":{{"code":{code},"message":"no","data":[1.10]}}}}"#
        );
        let text: &str = text.leak();
        refusing("401 Unauthorized", "application/json", text)
    };
    // No row.
    let proxy = before_rpc(&reply(-32002), ROUTES);
    let came = proxy.rest("GET", "/things/7", &[], "");
    let (reason, detail) = problem(&came);
    assert_eq!((came.status(), &*reason, &*detail), (401, "", "no"));
    assert_eq!(came.json()["rpc"]["code"], -32002);
    assert!(came.text().contains("[1.10]"), "{came:?}");
    assert_eq!(came.head.all("www-authenticate").len(), 2);
    proxy.log_line(&["outcome=error", "blame=client", "status=401", "code=-32002"]);
    // A row with this status, and one with another.
    let proxy = before_rpc(&reply(-32001), ROWS);
    let came = proxy.rest("GET", "/rows", &[], "");
    assert_eq!(body_of(&came, 401), r#"{"said":"no"}"#);
    let proxy = before_rpc(&reply(-32002), ROWS);
    let came = proxy.rest("GET", "/rows", &[], "");
    assert_eq!(came.status(), 401);
    assert_eq!(came.json()["rpc"]["message"], "no");
}

#[test]
fn any_other_error_status_without_a_response_is_a_failure_that_names_it() {
    let statuses = [
        ("400 Bad Request", 400),
        ("404 Not Found", 404),
        ("407 Proxy Authentication Required", 407),
        ("418 I'm a teapot", 418),
        ("500 Internal Server Error", 500),
        ("502 Bad Gateway", 502),
        ("504 Gateway Timeout", 504),
    ];
    for (status, number) in statuses {
        for body in ["<h1>no</h1>", "", r#"{"error":"no"}"#] {
            let proxy = before_rpc(&refusing(status, "text/html", body), ROUTES);
            let came = proxy.rest("GET", "/things/7", &[], "");
            assert_eq!(came.status(), 502, "{status}");
            let document = came.json();
            assert_eq!(document["blame"], "upstream");
            assert_eq!(document["upstream_status"], number);
            assert_eq!(document["rpc"]["data"]["upstream"]["status"], number);
            assert_eq!(came.head.one("proxy-authenticate"), None);
            assert_eq!(came.head.one("www-authenticate"), None);
            let status = format!("upstream_status={number}");
            proxy.log_line(&["outcome=failed", "blame=upstream", "status=502", &status]);
        }
    }
    // A JSON-RPC error decides, whatever its status is.
    let server = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        let error = r#"{"code":-32601,"message":"no"}"#;
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
        json_with("407 Proxy Authentication Required", body)
    });
    let came = before_rpc(&server, ROUTES).rest("GET", "/things/7", &[], "");
    assert_eq!(came.status(), 404);
}

#[test]
fn a_body_that_cannot_be_read_counts_as_none() {
    let long: &str = "x".repeat(5000).leak();
    let bodies = [
        ("zstd", "no coding"),
        ("gzip", "no coding"),
        ("identity", long),
    ];
    for (status, number, _) in REFUSALS.into_iter().chain([("500 No", 500, "")]) {
        for (coding, body) in bodies {
            let server = Upstream::serving(move |_| {
                let headers = [
                    ("Content-Type", "application/json"),
                    ("Content-Encoding", coding),
                    ("WWW-Authenticate", CHALLENGE),
                    ("Retry-After", "7"),
                ];
                answer(status, &headers, body)
            });
            let limits = "[limits]\nanswer = \"4KiB\"\n";
            let proxy = before_rpc(&server, &format!("{limits}{ROUTES}"));
            let came = proxy.rest("GET", "/things/7", &[], "");
            if number == 500 {
                assert_eq!(came.status(), 502, "{coding}");
                assert_eq!(came.json()["upstream_status"], 500);
                continue;
            }
            assert_eq!(body_of(&came, number), "");
            assert_eq!(came.head.one("content-type"), None);
            assert_eq!(came.head.one("www-authenticate"), Some(CHALLENGE));
            assert_eq!(came.head.one("retry-after"), Some("7"));
        }
    }
}

#[test]
fn no_answer_of_an_rpc_server_makes_a_407() {
    const ROWS: &str = r#"
[rpc]
tool_error_status = 407
[[route]]
name = "plain"
rest = "GET /plain"
rpc = "plain"
[[route]]
name = "rows"
rest = "GET /rows"
rpc = "rows"
[[route.outcome]]
rest = { status = 407, body = { said = "{m}" } }
rpc = { error = { code = -32001, message = "{m}" } }
[[route.outcome]]
rest = { status = "{status:integer}", body = { said = "{m}" } }
rpc = { error = { code = "{status:integer}", message = "{m}" } }
[[route]]
name = "tool"
rest = "GET /tool"
rpc = "tools/call"
params = { name = "tool" }
"#;
    let kept = r#"{"status":407,"type":"text/plain","body":"no"}"#;
    let cut = r#"{"status":407,"type":"text/plain","body":"n","truncated":true}"#;
    let error = |code: i64, data: &str| {
        format!(r#""error":{{"code":{code},"message":"no","data":{data}}}"#)
    };
    let meta = format!(
        r#""result":{{"content":[],"isError":true,"_meta":{{"dualgauge/answer":{kept}}}}}"#
    );
    let cases = [
        ("/plain", error(-31400, kept)),
        ("/plain", error(-31400, cut)),
        ("/rows", error(-32001, "1")),
        ("/rows", error(407, "1")),
        ("/tool", meta),
        (
            "/tool",
            r#""result":{"content":[],"isError":true}"#.to_owned(),
        ),
    ];
    for (target, said) in cases {
        let answered = said.clone();
        let server = Upstream::serving(move |request| {
            let id = Called::of(request).id().to_owned();
            json(format!(r#"{{"jsonrpc":"2.0","id":{id},{answered}}}"#))
        });
        let came = before_rpc(&server, ROWS).rest("GET", target, &[], "");
        assert_eq!(came.status(), 502, "{said}");
    }
}

#[test]
fn a_success_that_is_no_response_names_no_status() {
    let server = Upstream::answering(answer("200 OK", &[], "<h1>hello</h1>"));
    let proxy = before_rpc(&server, ROUTES);
    let came = proxy.rest("GET", "/things/7", &[], "");
    assert_eq!(came.status(), 502);
    assert_eq!(came.json().get("upstream_status"), None);
    let line = proxy.log_line(&["outcome=failed"]);
    assert!(!line.contains("upstream_status"), "{line}");
}

#[test]
fn a_redirect_of_an_rpc_server_is_named_as_one_whatever_the_body_is() {
    for body in ["", "<h1>moved</h1>", "{}"] {
        let headers = [("Location", "/login"), ("Content-Type", "text/html")];
        let server = Upstream::answering(answer("302 Found", &headers, body));
        let proxy = before_rpc(&server, ROUTES);
        let came = proxy.rest("GET", "/things/7", &[], "");
        assert_eq!(came.status(), 502, "{came:?}");
        assert_eq!(problem(&came).0, "upstream_redirect", "{came:?}");
    }
}

/// Half of the devices are on the new way, and both servers refuse one of four calls of each, in the same way.
#[test]
fn a_guard_is_content_when_both_servers_refuse_alike() {
    const CONFIG: &str = r#"
[[client]]
name = "app"
match = { header = { x-client-id = "app" } }
key = { header = "x-device-id" }
[[route]]
name = "item.get"
rest = "GET /items/{id}"
rpc = "item/get"
"#;
    const FLAGS: &str = r#"
[[flag]]
name = "mover"
side = "rest"
stage = "translate"
percent = 50
guard = { window = "10s", min_calls = 10 }
"#;
    let refused = || {
        answer(
            "401 Unauthorized",
            &[("WWW-Authenticate", CHALLENGE)],
            "<h1>no</h1>",
        )
    };
    let old = Upstream::serving(move |request| match request.head.start.contains("hidden") {
        true => refused(),
        false => json("{}"),
    });
    let new = Upstream::serving(move |request| match request.text().contains("hidden") {
        true => refused(),
        false => {
            let id = Called::of(request).id().to_owned();
            json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#))
        }
    });
    let proxy = Proxy::start_with_flags(&format!("{}{CONFIG}", both(&old, &new)), FLAGS);
    let flag = || proxy.ask("GET", "/api/v1/flags/mover", "").json();
    let labels = ["flag", "ruling"];
    eventually("the guard is content", || {
        for call in 0..64 {
            let (item, status) = match call % 4 {
                0 => ("hidden", 401),
                _ => ("7", 200),
            };
            let device = (call / 4).to_string();
            let headers = [("x-client-id", "app"), ("x-device-id", &*device)];
            let came = proxy.rest("GET", &format!("/items/{item}"), &headers, "");
            assert_eq!(came.status(), status);
        }
        assert_eq!(flag()["tripped"], value!(null));
        let rulings = proxy.metrics().table("dualgauge_guard_ruling", &labels);
        (rulings.get("mover content") == Some(&1.0)).then_some(())
    });
    let asked = |server: &Upstream| !server.requests().is_empty();
    assert!(asked(&old) && asked(&new));
}

#[test]
fn a_candidate_that_is_refused_as_its_control_matches() {
    let [old, new] = [(); 2].map(|()| refusing("401 Unauthorized", "text/html", "<h1>no</h1>"));
    let config = format!("{}{ROUTES}", both(&old, &new));
    let flags = "[[flag]]\nname = \"f\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&config, flags);
    assert_eq!(proxy.rest("GET", "/things/7", &[], "").status(), 401);
    let labels = ["route", "client", "side", "stage", "verdict"];
    eventually("a match", || {
        let verdicts = proxy.metrics();
        let verdicts = verdicts.table("dualgauge_verdicts_total", &labels);
        verdicts.get("things.get other rest shadow match").copied()
    });
}
