//! CORS: preflights of calls that are translated, and what lets a page read their answers.

use std::collections::BTreeMap;

use crate::scene::{answer, body_of, json, problem, saying};
use crate::support::{Message, Proxy, Upstream, becomes, both, rest_only};

const APP: &str = "https://app.example";

const PLAN: &str = r#"
[[client]]
name = "mover"
match = { header = { user-agent = "mover/*" } }
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[route]]
name = "items.put"
rest = "PUT /items/{id}?size={size:integer?}"
rpc = "items/put"
[[route]]
name = "items.drop"
rest = "DELETE /items/{id}"
rpc = "items/drop"
[[route]]
name = "old.put"
rest = "PUT /old/{id}"
rpc = "old/put"
[[route]]
name = "told.by.body"
rest = "POST /told"
rpc = "told/one"
params = { kind = "one" }
body = { kind = "one" }
[[route]]
name = "told.by.body.too"
rest = "POST /told"
rpc = "told/two"
params = { kind = "two" }
body = { kind = "two" }
[[route]]
name = "mine"
rest = "PUT /mine/{id}"
rpc = "mine/put"
[[local]]
rest = "PATCH /items/local"
answer = { status = 200, body = "here" }
"#;

const LISTED: &str = r#"
[cors]
origins = ["https://app.example", "http://localhost:3000"]
expose = ["x-total", "etag"]
credentials = true
max_age = "10m"
"#;

const FLAGS: &str = r#"
[[flag]]
name = "mine"
client = "mover"
route = "mine"
stage = "translate"
[[flag]]
name = "get"
route = "items.get"
stage = "translate"
[[flag]]
name = "put"
route = "items.put"
stage = "translate"
[[flag]]
name = "old"
route = "old.*"
stage = "retired"
[[flag]]
name = "told"
route = "told.by.body.too"
stage = "translate"
"#;

/// What the old server says: it has a mind of its own about origins.
fn old_answer() -> Vec<u8> {
    answer(
        "200 OK",
        &[
            ("Content-Type", "application/json"),
            ("Access-Control-Allow-Origin", "https://old.example"),
        ],
        r#""rest""#,
    )
}

struct Scene {
    rest: Upstream,
    _rpc: Upstream,
    proxy: Proxy,
}

impl Scene {
    fn with(cors: &str) -> Scene {
        let rest = Upstream::answering(old_answer());
        let rpc = saying(r#""result":"rpc""#);
        let config = format!("{}{PLAN}{cors}", both(&rest, &rpc));
        Scene {
            proxy: Proxy::start_with_flags(&config, FLAGS),
            rest,
            _rpc: rpc,
        }
    }

    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> Message {
        self.proxy.rest(method, target, headers, "")
    }

    fn preflight(&self, target: &str, method: &str) -> Message {
        let asked = [("Origin", APP), ("Access-Control-Request-Method", method)];
        self.ask("OPTIONS", target, &asked)
    }
}

/// The fields of an answer that the CORS protocol reads.
fn cors_of(answer: &Message) -> BTreeMap<String, String> {
    let fields = answer.head.fields.iter();
    fields
        .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
        .filter(|(name, _)| name.starts_with("access-control-") || name == "vary")
        .collect()
}

fn expected(rows: &[(&str, &str)]) -> BTreeMap<String, String> {
    let rows = rows.iter();
    rows.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn readable() -> BTreeMap<String, String> {
    expected(&[
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-origin", APP),
        ("access-control-expose-headers", "x-total, etag"),
        ("vary", "origin"),
    ])
}

#[test]
fn a_preflight_of_a_call_that_is_translated_is_answered_by_the_proxy() {
    let scene = Scene::with(LISTED);
    let asked = [
        ("Origin", APP),
        ("Access-Control-Request-Method", "PUT"),
        ("Access-Control-Request-Headers", "content-type,x-tenant"),
    ];
    let answer = scene.ask("OPTIONS", "/items/7?size=1", &asked);
    assert_eq!(body_of(&answer, 204), "");
    assert_eq!(
        cors_of(&answer),
        expected(&[
            ("access-control-allow-credentials", "true"),
            ("access-control-allow-headers", "content-type, x-tenant"),
            // DELETE passes through: the old server has its own preflights.
            ("access-control-allow-methods", "GET, PUT"),
            ("access-control-allow-origin", APP),
            ("access-control-max-age", "600"),
            (
                "vary",
                "origin, access-control-request-method, access-control-request-headers"
            ),
        ])
    );
    assert!(scene.rest.requests().is_empty());
    let line = scene.proxy.log_line(&["decision=preflight"]);
    assert!(line.contains("outcome=success"), "{line}");
    assert!(line.contains("status=204"), "{line}");
    assert!(!line.contains("stage="), "{line}");
}

#[test]
fn who_answers_a_preflight_is_decided_by_the_call_that_it_asks_for() {
    let scene = Scene::with(LISTED);
    let rows = [
        ("/items/7", "PUT", Some("GET, PUT")),
        ("/items/7", "GET", Some("GET, PUT")),
        ("/items/7", "HEAD", Some("GET, HEAD, PUT")),
        ("/items/7", "DELETE", None),
        ("/items/7", "POST", None),
        ("/items/7", "put", None),
        ("/items/local", "PATCH", Some("GET, PATCH, PUT")),
        ("/items/local", "PUT", Some("GET, PATCH, PUT")),
        ("/old/7", "PUT", Some("PUT")),
        ("/told", "POST", Some("POST")),
        ("/mine/7", "PUT", None),
        ("/elsewhere", "PUT", None),
        ("/rpc", "POST", Some("POST")),
    ];
    let mut passed = 0;
    for (target, method, methods) in rows {
        let answer = scene.preflight(target, method);
        let found = answer.head.one("access-control-allow-methods");
        assert_eq!(found, methods, "{method} {target}");
        passed += usize::from(methods.is_none());
        assert_eq!(scene.rest.requests().len(), passed, "{method} {target}");
    }
    // The old server answers as it does.
    let answer = scene.preflight("/elsewhere", "PUT");
    assert_eq!(body_of(&answer, 200), r#""rest""#);
}

#[test]
fn a_preflight_is_decided_by_who_sends_it() {
    let scene = Scene::with(LISTED);
    let asked = |agent: &str| {
        let fields = [
            ("Origin", APP),
            ("Access-Control-Request-Method", "PUT"),
            ("User-Agent", agent),
        ];
        scene.ask("OPTIONS", "/mine/7", &fields).status()
    };
    assert_eq!(asked("mover/1"), 204);
    assert_eq!(asked("browser/1"), 200);
}

#[test]
fn what_is_no_preflight_passes() {
    let scene = Scene::with(LISTED);
    let rows: [(&str, &[(&str, &str)]); 4] = [
        ("OPTIONS", &[]),
        ("OPTIONS", &[("Origin", APP)]),
        ("OPTIONS", &[("Access-Control-Request-Method", "PUT")]),
        (
            "OPTIONS",
            &[
                ("Origin", APP),
                ("Origin", APP),
                ("Access-Control-Request-Method", "PUT"),
            ],
        ),
    ];
    for (method, headers) in rows {
        let answer = scene.ask(method, "/items/7", headers);
        assert_eq!(body_of(&answer, 200), r#""rest""#, "{headers:?}");
    }
}

#[test]
fn a_page_of_another_origin_is_allowed_nothing() {
    let scene = Scene::with(LISTED);
    for origin in ["https://evil.example", "null", "http://app.example"] {
        let asked = [("Origin", origin), ("Access-Control-Request-Method", "PUT")];
        let preflight = scene.ask("OPTIONS", "/items/7", &asked);
        assert_eq!(preflight.status(), 204);
        let call = scene.ask("PUT", "/items/7", &[("Origin", origin)]);
        assert_eq!(call.status(), 403);
        for answer in [preflight, call] {
            assert_eq!(answer.head.all("vary").len(), 1);
            let names: Vec<String> = cors_of(&answer).into_keys().collect();
            assert_eq!(names, ["vary"], "{answer:?}");
        }
    }
}

#[test]
fn the_answer_to_a_translated_call_may_be_read() {
    let scene = Scene::with(LISTED);
    for method in ["GET", "PUT", "HEAD"] {
        let answer = scene.ask(method, "/items/7", &[("Origin", APP)]);
        assert_eq!(answer.status(), 200);
        assert_eq!(cors_of(&answer), readable(), "{method}");
    }
    // A cache must not give this answer to a page.
    let answer = scene.ask("GET", "/items/7", &[]);
    assert_eq!(cors_of(&answer), expected(&[("vary", "origin")]));
}

#[test]
fn so_may_the_failures_that_the_proxy_writes_for_it() {
    let scene = Scene::with(LISTED);
    let from = [("Origin", APP)];
    let refused = scene.ask("PUT", "/items/7?size=x", &from);
    assert_eq!(problem(&refused).0, "invalid_params");
    let retired = scene.ask("PUT", "/old/7", &from);
    assert_eq!(problem(&retired).0, "retired");
    let typed = [("Origin", APP), ("Content-Type", "text/html")];
    let unread = scene.proxy.rest("PUT", "/items/7", &typed, "x");
    assert_eq!(problem(&unread).0, "unsupported_media_type");
    for answer in [refused, retired, unread] {
        assert_eq!(cors_of(&answer), readable(), "{answer:?}");
    }
    let (rest, nobody) = (Upstream::answering(old_answer()), Upstream::nowhere());
    let config = format!("{}{PLAN}{LISTED}", both(&rest, &nobody));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    let away = proxy.rest("GET", "/items/7", &from, "");
    assert_eq!(problem(&away).0, "upstream_unreachable");
    assert_eq!(cors_of(&away), readable());
}

#[test]
fn an_error_of_the_rpc_server_may_be_read_as_well() {
    let rest = Upstream::answering(old_answer());
    let rpc = saying(r#""error":{"code":-32601,"message":"no"}"#);
    let config = format!("{}{PLAN}{LISTED}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, FLAGS);
    let answer = proxy.rest("GET", "/items/7", &[("Origin", APP)], "");
    assert_eq!(answer.status(), 404);
    assert_eq!(cors_of(&answer), readable());
}

#[test]
fn a_call_that_passes_through_is_left_as_it_is() {
    let scene = Scene::with(LISTED);
    for (method, target) in [("DELETE", "/items/7"), ("GET", "/elsewhere")] {
        let answer = scene.ask(method, target, &[("Origin", APP)]);
        let own = expected(&[("access-control-allow-origin", "https://old.example")]);
        assert_eq!(cors_of(&answer), own, "{method} {target}");
    }
}

#[test]
fn where_every_origin_is_allowed_all_are_told_the_same() {
    let scene = Scene::with("[cors]\norigins = '*'\nheaders = ['x-tenant']\n");
    let all = expected(&[("access-control-allow-origin", "*")]);
    for origin in [&[("Origin", "https://any.example")][..], &[]] {
        let answer = scene.ask("GET", "/items/7", origin);
        assert_eq!(cors_of(&answer), all, "{origin:?}");
    }
    let answer = scene.preflight("/items/7", "PUT");
    let field = |name: &str| answer.head.one(name).map(str::to_owned);
    assert_eq!(
        field("access-control-allow-headers").as_deref(),
        Some("x-tenant")
    );
    assert_eq!(field("access-control-allow-credentials"), None);
    assert_eq!(field("access-control-max-age"), None);
}

#[test]
fn without_cors_nothing_is_answered_and_nothing_added() {
    let scene = Scene::with("");
    let preflight = scene.preflight("/items/7", "PUT");
    assert_eq!(body_of(&preflight, 200), r#""rest""#);
    let answer = scene.ask("GET", "/items/7", &[("Origin", "http://proxy.example")]);
    assert_eq!(body_of(&answer, 200), r#""rpc""#);
    assert!(cors_of(&answer).is_empty(), "{answer:?}");
    // Without a server of the REST side, an OPTIONS that no route has is refused.
    let rpc = saying(r#""result":"rpc""#);
    let proxy = Proxy::start(&format!("{}{PLAN}", crate::support::rpc_only(&rpc)));
    let asked = [("Origin", APP), ("Access-Control-Request-Method", "PUT")];
    let answer = proxy.rest("OPTIONS", "/items/7", &asked, "");
    assert_eq!(answer.status(), 405);
    assert_eq!(answer.head.one("allow"), Some("DELETE, GET, PUT"));
}

#[test]
fn a_row_that_names_an_origin_itself_gives_way() {
    let rest = Upstream::answering(json("1"));
    let rpc = saying(r#""result":{"a":1}"#);
    let route = r#"
[[route]]
name = "a"
rest = "GET /a"
rpc = "a"
[[route.outcome]]
rest = { status = 200, headers = { access-control-allow-origin = "https://b.example", vary = "accept" }, body = "{r}" }
rpc = { result = "{r}" }
"#;
    let config = format!("{}{route}{LISTED}", both(&rest, &rpc));
    let proxy = Proxy::start(&format!(
        "{config}[rollout]\ndefault = {{ rest = 'translate' }}\n"
    ));
    let answer = proxy.rest("GET", "/a", &[("Origin", APP)], "");
    assert_eq!(answer.head.one("access-control-allow-origin"), Some(APP));
    assert_eq!(answer.head.all("vary"), ["accept", "origin"]);
}

#[test]
fn preflights_are_counted_under_no_route_and_no_stage() {
    let scene = Scene::with(LISTED);
    scene.preflight("/items/7", "PUT");
    let labels = ["route", "client", "side", "stage", "outcome", "blame"];
    let counted = || {
        let metrics = scene.proxy.metrics();
        metrics.table("dualgauge_calls_total", &labels)
    };
    let row = "unrouted other rest none success none".to_owned();
    becomes(counted, &BTreeMap::from([(row, 1.0)]));
}

#[test]
fn a_preflight_reaches_a_path_in_its_normal_form_only() {
    let scene = Scene::with(LISTED);
    assert_eq!(scene.preflight("/%69tems/7", "PUT").status(), 204);
    let answer = scene.preflight("/items//7", "PUT");
    assert_eq!(answer.head.one("access-control-allow-methods"), None);
}

#[test]
fn an_answer_of_the_proxys_own_may_be_read() {
    let local = "[[local]]\nrest = 'GET /here'\nanswer = { status = 404, text = 'no' }\n";
    let upstream = Upstream::answering(old_answer());
    let proxy = Proxy::start(&format!("{}{local}{LISTED}", rest_only(&upstream)));
    let answer = proxy.rest("GET", "/here", &[("Origin", APP)], "");
    assert_eq!(body_of(&answer, 404), "no");
    assert_eq!(cors_of(&answer), readable());
}
