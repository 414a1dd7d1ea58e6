//! `[[local]]`: what the proxy itself answers, before every route and stage.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scene::{answer, body_of, json as answering, problem, rpc_failure, saying};
use crate::support::{Message, Proxy, Upstream, becomes, both, rest_only, rpc_only};

const PLAN: &str = r#"
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
[[local]]
rpc = "ping"
answer = { result = {} }
[[local]]
rpc = "notifications/*"
answer = "none"
[[local]]
rpc = "notifications/odd"
answer = { error = { code = 7, message = "odd", data = [1.0] } }
[[local]]
rpc = "items/get"
answer = { error = { code = -32602, message = "closed" } }
[[local]]
rpc = "rpc.discover"
answer = "openrpc"
[[local]]
rest = "GET /openapi.json"
answer = "openapi"
[[local]]
rest = "GET /items/closed"
answer = { status = 503, body = { why = "{{closed}}" }, headers = { retry-after = "60" } }
[[local]]
rest = "GET /mcp"
answer = { status = 405, headers = { allow = "POST" } }
[[local]]
rest = "DELETE /items/gone"
answer = { status = 204 }
"#;

const TRANSLATE: &str = "[rollout]\ndefault = { rest = \"translate\", rpc = \"translate\" }\n";
const LABELS: [&str; 6] = ["route", "client", "side", "stage", "outcome", "blame"];

struct Scene {
    rest: Upstream,
    rpc: Upstream,
    proxy: Proxy,
}

impl Scene {
    fn with(more: &str) -> Scene {
        let rest = Upstream::answering(answering(r#""rest""#));
        let rpc = saying(r#""result":"rpc""#);
        let proxy = Proxy::start(&format!("{}{PLAN}{more}", both(&rest, &rpc)));
        Scene { rest, rpc, proxy }
    }

    fn get(&self, target: &str) -> Message {
        self.proxy.rest("GET", target, &[], "")
    }

    fn call(&self, method: &str, id: &str) -> Message {
        self.proxy.rpc(message(method, id))
    }

    /// No server has been asked.
    fn expect_silence(&self) {
        assert!(self.rest.requests().is_empty());
        assert!(self.rpc.requests().is_empty());
    }
}

fn message(method: &str, id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"id":"7"}}}}"#)
}

fn notification(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

#[test]
fn an_rpc_call_is_answered_under_its_own_id_byte_for_byte() {
    let scene = Scene::with("");
    for id in ["1", "\"\\u0061\"", "1.0", "null", "12345678901234567890123"] {
        let answer = scene.call("ping", id);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        assert_eq!(body_of(&answer, 200), expected);
        assert_eq!(answer.head.one("content-type"), Some("application/json"));
    }
    let answer = scene.call("notifications/odd", "1");
    assert_eq!(
        body_of(&answer, 200),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":7,"message":"odd","data":[1.0]}}"#
    );
    scene.expect_silence();
}

#[test]
fn a_local_answer_beats_the_route_in_every_stage() {
    let retire = "[rollout]\ndefault = { rest = \"retired\", rpc = \"retired\" }\n";
    for more in ["", TRANSLATE, retire] {
        let scene = Scene::with(more);
        let answer = scene.call("items/get", "1").json();
        assert_eq!(answer["error"]["message"], "closed", "{more}");
        let answer = scene.get("/items/closed");
        assert_eq!(body_of(&answer, 503), r#"{"why":"{closed}"}"#);
        assert_eq!(answer.head.one("content-type"), Some("application/json"));
        assert_eq!(answer.head.one("retry-after"), Some("60"));
        scene.expect_silence();
    }
}

#[test]
fn every_other_call_goes_where_it_went() {
    let scene = Scene::with("");
    assert_eq!(body_of(&scene.get("/items/7"), 200), r#""rest""#);
    assert_eq!(body_of(&scene.get("/openapi"), 200), r#""rest""#);
    assert_eq!(scene.call("pings", "1").json()["result"], "rpc");
    let translating = Scene::with(TRANSLATE);
    assert_eq!(body_of(&translating.get("/items/7"), 200), r#""rpc""#);
}

#[test]
fn the_proxy_answers_on_both_faces_whichever_server_there_is() {
    let rest = Upstream::answering(answering("1"));
    let rpc = saying(r#""result":1"#);
    for config in [rest_only(&rest), rpc_only(&rpc)] {
        let proxy = Proxy::start(&format!("{config}{PLAN}"));
        assert_eq!(proxy.rpc(message("ping", "1")).json()["result"], json!({}));
        let answer = proxy.rest("GET", "/mcp", &[], "");
        assert_eq!(body_of(&answer, 405), "");
        assert_eq!(answer.head.one("allow"), Some("POST"));
    }
    assert!(rest.requests().is_empty() && rpc.requests().is_empty());
}

#[test]
fn head_is_get_without_the_content() {
    let scene = Scene::with("");
    let whole = scene.get("/openapi.json");
    let head = scene.proxy.rest("HEAD", "/openapi.json", &[], "");
    assert_eq!((head.status(), head.text()), (200, ""));
    let length = whole.body.len().to_string();
    assert_eq!(head.head.one("content-length"), Some(length.as_str()));
    assert_eq!(
        scene.proxy.rest("DELETE", "/items/gone", &[], "").status(),
        204
    );
    scene.expect_silence();
}

#[test]
fn the_documents_are_made_of_the_routes() {
    let scene = Scene::with("");
    let document = scene.get("/openapi.json").json();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/items/{id}"]["get"].is_object());
    let document = scene.call("rpc.discover", "1").json();
    assert_eq!(document["result"]["methods"][0]["name"], "items/get");
    scene.expect_silence();
}

#[test]
fn a_notification_gets_no_answer_and_a_call_without_one_gets_null() {
    let scene = Scene::with("");
    for method in ["notifications/x", "ping", "notifications/odd", "items/get"] {
        let answer = scene.proxy.rpc(notification(method));
        assert_eq!(body_of(&answer, 204), "", "{method}");
    }
    let answer = scene.call("notifications/x", "1").json();
    assert_eq!(answer["result"], Value::Null);
    assert!(answer.get("error").is_none());
    scene.expect_silence();
}

#[test]
fn in_a_batch_each_call_is_answered_in_its_place() {
    let scene = Scene::with("");
    let batch = [
        message("ping", "1"),
        notification("notifications/x"),
        message("other", "2"),
        message("items/get", "3"),
        notification("ping"),
        message("notifications/x", "4"),
    ];
    let answer = scene.proxy.rpc(format!("[{}]", batch.join(",")));
    let answers = answer.json();
    assert_eq!(
        answers,
        json!([
            {"jsonrpc": "2.0", "id": 1, "result": {}},
            {"jsonrpc": "2.0", "id": 2, "result": "rpc"},
            {"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "closed"}},
            {"jsonrpc": "2.0", "id": 4, "result": null},
        ])
    );
    assert_eq!(scene.rpc.requests().len(), 1);
    let silent = [notification("ping"), notification("notifications/x")];
    let answer = scene.proxy.rpc(format!("[{}]", silent.join(",")));
    assert_eq!(body_of(&answer, 204), "");
}

#[test]
fn the_envelope_is_read_before_it_is_answered() {
    let scene = Scene::with("");
    let answer = scene
        .proxy
        .rpc(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#);
    assert_eq!(rpc_failure(&answer.json()), (-32600, "invalid_request"));
}

#[test]
fn no_other_form_of_the_path_passes_by() {
    let scene = Scene::with("");
    assert_eq!(scene.get("/%6Fpenapi.json?x=1").status(), 200);
    for target in ["//openapi.json", "/openapi.json/", "/x/../openapi.json"] {
        let refused = scene.get(target);
        assert_eq!(refused.status(), 400, "{target}");
        assert_eq!(problem(&refused).0, "malformed_target");
    }
    scene.expect_silence();
}

#[test]
fn a_path_that_is_answered_for_one_method_has_no_other_of_itself() {
    let upstream = Upstream::answering(answering("1"));
    let reject = format!("unrouted = \"reject\"\n{}{PLAN}", rest_only(&upstream));
    let proxy = Proxy::start(&reject);
    for (target, allow) in [("/openapi.json", "GET"), ("/items/gone", "DELETE, GET")] {
        let answer = proxy.rest("PUT", target, &[], "");
        assert_eq!(answer.status(), 405);
        assert_eq!(answer.head.one("allow"), Some(allow));
    }
    assert_eq!(proxy.rest("PUT", "/other", &[], "").status(), 404);
}

const CORS: &str = "[cors]\norigins = [\"https://app.example\"]\n";

#[test]
fn a_page_of_another_origin_is_refused() {
    let scene = Scene::with(CORS);
    // `proxy.example` is the host that the calls of these tests name.
    let rows = [
        ("https://app.example", 200),
        ("http://proxy.example", 200),
        ("https://proxy.example", 200),
        // `listen.hosts` has the name with any port.
        ("https://proxy.example:8443", 200),
        ("https://proxy.example.evil.example", 403),
        ("https://evil.example", 403),
        ("null", 403),
    ];
    for (origin, status) in rows {
        let from = [("Origin", origin)];
        let rest = scene.proxy.rest("GET", "/openapi.json", &from, "");
        let rpc = scene
            .proxy
            .rest("POST", "/rpc", &from, message("ping", "1"));
        assert_eq!((rest.status(), rpc.status()), (status, status), "{origin}");
        if status == 403 {
            assert_eq!(problem(&rest).0, "origin_refused");
            let answer = rpc.json();
            assert_eq!(rpc_failure(&answer), (-31013, "origin_refused"));
            assert_eq!(answer["id"], 1);
        }
        // What goes to a server is the server's to judge.
        let passed = scene.proxy.rest("GET", "/items/7", &from, "");
        assert_eq!(passed.status(), 200, "{origin}");
    }
}

#[test]
fn without_cors_only_pages_of_the_host_itself_are_answered() {
    let scene = Scene::with("");
    let status = |headers: &[(&str, &str)]| {
        let answer = scene.proxy.rest("GET", "/openapi.json", headers, "");
        assert_eq!(answer.head.one("access-control-allow-origin"), None);
        answer.status()
    };
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&[("Origin", "http://proxy.example")]), 200);
    assert_eq!(status(&[("Origin", "https://app.example")]), 403);
}

#[test]
fn in_a_batch_a_foreign_page_is_refused_what_the_proxy_itself_answers() {
    let scene = Scene::with("");
    let batch = [
        message("ping", "1"),
        message("other", "2"),
        notification("notifications/x"),
    ];
    let from = [("Origin", "https://evil.example")];
    let body = format!("[{}]", batch.join(","));
    let answer = scene.proxy.rest("POST", "/rpc", &from, body);
    assert_eq!(answer.status(), 200);
    let answers = answer.json();
    assert_eq!(rpc_failure(&answers[0]), (-31013, "origin_refused"));
    assert_eq!(answers[1]["result"], "rpc");
    assert_eq!(answers.as_array().unwrap().len(), 2);
    let labels = ["reason", "blame", "side"];
    let refused = || {
        let metrics = scene.proxy.metrics();
        metrics.table("dualgauge_failures_total", &labels)["origin_refused client rpc"]
    };
    becomes(refused, &2.0);
}

#[test]
fn only_the_hosts_that_are_listed_are_answered() {
    let upstream = Upstream::answering(answering("1"));
    for (hosts, status) in [
        ("\"other.example\"", 403),
        ("\"proxy.example\"", 200),
        ("\"proxy.example:8080\"", 403),
        ("\"other.example\", \"PROXY.example\"", 200),
    ] {
        let config =
            rest_only(&upstream).replacen("[listen]", &format!("[listen]\nhosts = [{hosts}]"), 1);
        let proxy = Proxy::start(&format!("{config}{PLAN}"));
        let rest = proxy.rest("GET", "/openapi.json", &[], "");
        let rpc = proxy.rpc(message("ping", "1"));
        assert_eq!((rest.status(), rpc.status()), (status, status), "{hosts}");
        assert_eq!(proxy.rest("GET", "/elsewhere", &[], "").status(), 200);
    }
}

#[test]
fn calls_are_logged_and_counted_as_the_proxys_own() {
    let scene = Scene::with("");
    scene.call("ping", "1");
    scene.call("items/get", "1");
    scene.proxy.rpc(notification("notifications/odd"));
    scene.get("/openapi.json");
    scene.get("/items/closed");
    let from = [("Origin", "https://evil.example")];
    scene.proxy.rest("GET", "/mcp", &from, "");
    for pieces in [
        ["decision=local", "rpc_method=ping", "outcome=success"],
        ["decision=local", "rpc_method=items/get", "code=-32602"],
        [
            "decision=local",
            "rpc_method=notifications/odd",
            "status=204",
        ],
        ["decision=local", "path=/openapi.json", "outcome=success"],
        ["decision=local", "path=/items/closed", "blame=proxy"],
        ["decision=local", "path=/mcp", "reason=origin_refused"],
    ] {
        let line = scene.proxy.log_line(&pieces);
        assert!(
            !line.contains("stage=") && !line.contains("upstream_ms"),
            "{line}"
        );
    }
    let counted = || {
        let metrics = scene.proxy.metrics();
        metrics.table("dualgauge_calls_total", &LABELS)
    };
    let rows = [
        ("unrouted other rpc none success none", 1.0),
        ("unrouted other rpc none error client", 1.0),
        ("unrouted other rpc none error proxy", 1.0),
        ("unrouted other rest none success none", 1.0),
        ("unrouted other rest none error proxy", 1.0),
        ("unrouted other rest none failed client", 1.0),
    ];
    let rows = rows.map(|(row, count)| (row.to_owned(), count));
    becomes(counted, &BTreeMap::from(rows));
}

#[test]
fn a_path_of_rpc_is_answered_where_no_server_would_be_asked() {
    let rpc = Upstream::answering(answer("200 OK", &[], "stream"));
    let proxy = Proxy::start(&format!("{}{PLAN}", rpc_only(&rpc)));
    assert_eq!(proxy.rest("GET", "/mcp", &[], "").status(), 405);
    // What is not answered here goes on to the server.
    assert_eq!(
        body_of(&proxy.rest("DELETE", "/mcp", &[], ""), 200),
        "stream"
    );
    assert_eq!(body_of(&proxy.rest("GET", "/rpc", &[], ""), 200), "stream");
}
