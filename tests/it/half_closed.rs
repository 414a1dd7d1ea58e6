//! Clients that end their side of the connection: within a request it is half a request; behind one, nobody waits for
//! the answer any more.

use crate::quadrant::{ALL, Quadrant, RestPassed, RestTranslated};
use crate::scene::{problem, rpc_failure};
use crate::support::{Upstream, becomes};

/// The ways whose server hears nothing before the request is whole.
fn is_read_whole(quadrant: Quadrant) -> bool {
    quadrant != RestPassed
}

#[test]
fn a_client_that_ends_its_side_within_a_request_is_told_so() {
    for quadrant in ALL {
        let upstream = Upstream::start();
        let proxy = quadrant.start(&upstream, "");
        let mut client = proxy.connect();
        let is_rest = matches!(quadrant, RestPassed | RestTranslated);
        let path = if is_rest { "/do" } else { "/rpc" };
        client.send(format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{{\"jsonrpc\""
        ));
        client.finish_sending();
        let answer = client.read_answer();
        if is_rest {
            assert_eq!(answer.status(), 400, "{quadrant:?}: {answer:?}");
            assert_eq!(problem(&answer).0, "body_cut");
        } else {
            assert_eq!(rpc_failure(&answer.json()), (-32700, "body_cut"));
        }
        client.expect_closed();
        proxy.log_line(&["outcome=failed", "blame=client", "reason=body_cut"]);
        if is_read_whole(quadrant) {
            upstream.expect_no_connection();
        } else {
            // Half an upload never looks whole.
            let mut server = upstream.accept();
            server.read_head();
            server.expect("{\"jsonrpc\"");
            server.expect_gone();
        }
    }
}

#[test]
fn a_client_that_ends_its_side_within_a_head_is_told_so() {
    for part in [
        "G",
        "GET /x HTTP/1.1\r",
        "GET /x HTTP/1.1\r\n",
        "GET /x HTTP/1.1\r\nHost: a.exa",
        "GET /x HTTP/1.1\r\nHost: a.example\r\n",
        "GET /x HTTP/1.1\r\nHost: a.example\r\n\r",
    ] {
        let upstream = Upstream::start();
        let proxy = RestPassed.start(&upstream, "");
        let mut client = proxy.connect();
        client.send(part);
        client.finish_sending();
        let answer = client.read_answer();
        assert_eq!(answer.status(), 400, "{part:?}: {answer:?}");
        assert_eq!(problem(&answer).0, "malformed_http");
        client.expect_closed();
        proxy.log_line(&["outcome=failed", "blame=client", "reason=malformed_http"]);
        upstream.expect_no_connection();
    }
}

#[test]
fn a_client_that_ends_its_side_before_a_request_has_called_nothing() {
    let upstream = Upstream::start();
    let proxy = RestPassed.start(&upstream, "");
    for sent in ["", "\r\n"] {
        let mut client = proxy.connect();
        client.send(sent);
        client.finish_sending();
        client.expect_closed();
    }
    let labels = ["route", "client", "side", "stage", "outcome", "blame"];
    let calls = proxy.metrics().table("dualgauge_calls_total", &labels);
    assert_eq!(calls.values().sum::<f64>(), 0.0, "{calls:?}");
}

#[test]
fn a_client_that_ends_its_side_behind_a_request_is_gone() {
    for quadrant in ALL {
        let upstream = Upstream::start();
        let proxy = quadrant.start(&upstream, "");
        let mut client = proxy.connect();
        quadrant.send(&mut client);
        let mut server = upstream.accept();
        server.read_request();
        client.finish_sending();
        client.expect_closed();
        server.expect_gone();
        let line = proxy.log_line(&["outcome=cancelled", "blame=client"]);
        // The server was kept busy all the same.
        assert!(line.contains("upstream_ms="), "{quadrant:?}: {line}");
        let metrics = proxy.metrics();
        let labels = ["route", "client", "side", "stage", "outcome"];
        let told = metrics.table("dualgauge_upstream_duration_seconds_count", &labels);
        assert_eq!(told.values().sum::<f64>(), 1.0, "{told:?}");
    }
}

#[test]
fn a_client_that_is_gone_before_its_request_is_read_has_called_all_the_same() {
    const CALLS: f64 = 300.0;
    let upstream = Upstream::serving(|_| crate::scene::json("1"));
    let proxy = RestPassed.start(&upstream, "");
    for _ in 0..300 {
        let mut client = proxy.connect();
        client.send("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
    }
    let labels = ["route", "client", "side", "stage", "outcome", "blame"];
    let told = || {
        let calls = proxy.metrics().table("dualgauge_calls_total", &labels);
        calls.values().sum::<f64>()
    };
    becomes(told, &CALLS);
}

#[test]
fn a_refused_request_is_answered_although_nobody_reads_its_body() {
    let upstream = Upstream::start();
    let proxy = RestPassed.start(&upstream, "");
    let body = "x".repeat(48 * 1024);
    for _ in 0..20 {
        let mut client = proxy.connect();
        let framings = "Content-Length: 49152\r\nTransfer-Encoding: chunked";
        client.send(format!(
            "POST /do HTTP/1.1\r\nHost: a\r\n{framings}\r\n\r\n{body}"
        ));
        let answer = client.read_answer();
        assert_eq!(answer.status(), 400, "{answer:?}");
        // Its end, and no reset.
        client.expect_closed();
    }
    upstream.expect_no_connection();
}
