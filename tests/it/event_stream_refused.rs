//! Event streams where a route says that no response streams: the call fails as soon as the head has come, and the
//! connection is closed.

use crate::scene::{Called, answer, before_rest, before_rpc, call, json, problem, rpc_failure};
use crate::support::{Proxy, Upstream, both, eventually};

const ROUTES: &str = r#"
[[route]]
name = "a"
rest = "GET /a"
rpc = "a"
stream = false
[[route]]
name = "n"
rest = "POST /n"
rpc = "n"
notify = true
"#;

/// A head that promises events, and the first of them. Nothing else follows.
const OPENED: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n8\r\ndata: 1\n\r\n";

/// A server that begins a stream whatever it is asked.
fn streaming() -> Upstream {
    Upstream::answering(OPENED)
}

#[test]
fn a_rest_call_is_refused_at_the_head_of_the_stream() {
    for coding in ["", "Content-Encoding: gzip\r\n"] {
        let upstream = Upstream::start();
        let proxy = before_rpc(&upstream, ROUTES);
        let mut client = proxy.connect();
        client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut server = upstream.accept();
        server.read_request();
        server.send(OPENED.replace("Transfer", &format!("{coding}Transfer")));
        let came = client.read_answer();
        assert_eq!(came.status(), 502);
        let (reason, detail) = problem(&came);
        assert_eq!(reason, "upstream_stream");
        assert!(detail.contains("event stream"), "{detail}");
        server.expect_gone();
        proxy.log_line(&["outcome=failed", "blame=upstream", "reason=upstream_stream"]);
    }
}

#[test]
fn an_rpc_call_is_refused_at_the_head_of_the_stream() {
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, ROUTES);
    let mut client = proxy.connect();
    let body = call("a", "{}");
    let length = body.len();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let mut server = upstream.accept();
    server.read_request();
    server.send(OPENED);
    let came = client.read_answer();
    let failure = came.json();
    assert_eq!(rpc_failure(&failure), (-31075, "upstream_stream"));
    server.expect_gone();
    // In a batch each call has its own failure.
    let proxy = before_rest(&streaming(), ROUTES);
    let batch = format!("[{},{}]", call("a", "{}"), call("a", "{}"));
    let came = proxy.rpc(batch).json();
    assert_eq!(came.as_array().map(Vec::len), Some(2), "{came}");
    for failure in came.as_array().into_iter().flatten() {
        assert_eq!(rpc_failure(failure), (-31075, "upstream_stream"));
    }
}

#[test]
fn a_stream_that_answers_a_notification_is_closed_as_well() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, ROUTES);
    let mut client = proxy.connect();
    client.send("POST /n HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    let mut server = upstream.accept();
    server.read_request();
    assert_eq!(client.read_answer().status(), 202);
    server.send(OPENED);
    server.expect_gone();
}

#[test]
fn a_status_that_refuses_the_call_stays_though_a_stream_follows() {
    let refused = OPENED.replace("200 OK", "401 Unauthorized\r\nWWW-Authenticate: Bearer");
    let proxy = before_rpc(&Upstream::answering(refused), ROUTES);
    let came = proxy.rest("GET", "/a", &[], "");
    assert_eq!((came.status(), came.text()), (401, ""));
    assert_eq!(came.head.one("www-authenticate"), Some("Bearer"));
    assert_eq!(came.head.one("content-type"), None);
}

#[test]
fn a_candidate_that_is_answered_by_a_stream_has_failed_for_that_reason() {
    let rest = Upstream::answering(json("7"));
    let rpc = Upstream::serving(|request| {
        let id = Called::of(request).id().to_owned();
        json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":7}}"#))
    });
    let failed = |proxy: &Proxy, verdict: &str| {
        eventually("the verdict and its reason", || {
            let metrics = proxy.metrics();
            let labels = ["route", "client", "side", "stage", "verdict"];
            let verdicts = metrics.table("dualgauge_verdicts_total", &labels);
            verdicts.get(verdict)?;
            let failed = metrics.table("dualgauge_candidates_failed_total", &["route", "reason"]);
            failed.get("a upstream_stream").copied()
        })
    };
    let flags = "[[flag]]\nname = \"f\"\nstage = \"shadow\"\n";
    let proxy = Proxy::start_with_flags(&format!("{}{ROUTES}", both(&rest, &streaming())), flags);
    assert_eq!(proxy.rest("GET", "/a", &[], "").text(), "7");
    failed(&proxy, "a other rest shadow candidate-failed");

    let proxy = Proxy::start_with_flags(&format!("{}{ROUTES}", both(&streaming(), &rpc)), flags);
    let came = proxy.rpc(call("a", "{}"));
    assert_eq!(came.json()["result"], 7);
    failed(&proxy, "a other rpc shadow candidate-failed");

    // In the stage verify the client itself gets the failure.
    let flags = "[[flag]]\nname = \"f\"\nstage = \"verify\"\n";
    let proxy = Proxy::start_with_flags(&format!("{}{ROUTES}", both(&rest, &streaming())), flags);
    let came = proxy.rest("GET", "/a", &[], "");
    assert_eq!(problem(&came).0, "upstream_stream");
}

#[test]
fn an_answer_of_another_kind_is_read_as_ever() {
    let kind = [("Content-Type", "text/event-stream-like")];
    let proxy = before_rest(&Upstream::answering(answer("200 OK", &kind, "7")), ROUTES);
    assert_eq!(proxy.rpc(call("a", "{}")).json()["result"], 7);
}
