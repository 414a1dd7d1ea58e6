//! Requests that a proxy may not pass on as they came: absolute targets, TRACE and `Max-Forwards`.

use crate::scene::before_rest;
use crate::support::{Proxy, Track, Upstream, rest_only};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const SECRETS: &str =
    "Authorization: Bearer a\r\nCookie: b=c\r\nProxy-Authorization: Basic d\r\nX-Device: e\r\n";

#[test]
fn the_authority_of_an_absolute_target_counts_and_host_does_not() {
    for host in ["other.example", "a.example:81", ""] {
        let track = Track::rest();
        let request = format!("GET http://a.example/x?y HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let carried = track.carry(request, OK);
        assert_eq!(carried.answer.status(), 200, "{host}");
        assert_eq!(carried.request.head.start, "GET /x?y HTTP/1.1");
        assert_eq!(carried.request.head.one("host"), Some("a.example"));
        let forwarded = carried.request.head.one("forwarded").unwrap();
        assert!(forwarded.contains("host=\"a.example\"") || forwarded.contains("host=a.example"));
    }
}

#[test]
fn host_is_judged_behind_an_absolute_target_too() {
    for hosts in ["Host: a b\r\n", "Host: b\r\nHost: b\r\n", ""] {
        let track = Track::rest();
        let mut client = track.proxy.connect();
        client.send(format!("GET http://a.example/x HTTP/1.1\r\n{hosts}\r\n"));
        assert_eq!(client.read_answer().status(), 400, "{hosts}");
    }
}

#[test]
fn the_authority_of_an_absolute_target_is_that_of_a_call_that_the_proxy_answers() {
    let rest = Upstream::answering(OK);
    let proxy = Proxy::start(&format!(
        "{}[[local]]\nrest = \"GET /own\"\nanswer = {{ status = 204 }}\n",
        rest_only(&rest)
    ));
    let mut client = proxy.connect();
    client.send(
        "GET http://a.example/own HTTP/1.1\r\nHost: b.example\r\nOrigin: http://b.example\r\n\r\n",
    );
    assert_eq!(client.read_answer().status(), 403);
    client.send(
        "GET http://a.example/own HTTP/1.1\r\nHost: b.example\r\nOrigin: http://a.example\r\n\r\n",
    );
    assert_eq!(client.read_answer().status(), 204);
}

#[test]
fn a_trace_goes_on_without_credentials() {
    let rest = Upstream::answering(OK);
    let proxy = Proxy::start(&format!(
        "{}[log.redact]\nheaders = [\"x-device\"]\n",
        rest_only(&rest)
    ));
    let mut client = proxy.connect();
    client.send(format!(
        "TRACE /x HTTP/1.1\r\nHost: a\r\n{SECRETS}X-Kept: f\r\n\r\n"
    ));
    assert_eq!(client.read_answer().status(), 200);
    let head = rest.request().head;
    for name in ["authorization", "cookie", "proxy-authorization", "x-device"] {
        assert_eq!(head.one(name), None, "{head}");
    }
    assert_eq!(head.one("x-kept"), Some("f"));
}

#[test]
fn a_translated_trace_has_no_credentials() {
    let rest = Upstream::answering("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    let proxy = before_rest(
        &rest,
        "[[route]]\nname = \"m\"\nrest = \"TRACE /m\"\nrpc = \"m\"\n",
    );
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"m"}"#;
    let mut client = proxy.connect();
    client.send(format!(
        "POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer a\r\n\
         Content-Length: {}\r\n\r\n{call}",
        call.len()
    ));
    assert_eq!(client.read_answer().json()["result"], 1);
    let head = rest.request().head;
    assert_eq!(head.start, "TRACE /m HTTP/1.1");
    assert_eq!(head.one("authorization"), None);
}

#[test]
fn max_forwards_counts_down_for_trace_and_options_alone() {
    for (method, came, goes) in [
        ("TRACE", "2", "1"),
        ("OPTIONS", "10", "9"),
        ("OPTIONS", "99999999999999999999999", "18446744073709551614"),
        ("OPTIONS", "x", "x"),
        ("GET", "0", "0"),
    ] {
        let request =
            format!("{method} /x HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: {came}\r\n\r\n");
        let carried = Track::rest().carry(request, OK);
        let found = carried.request.head.one("max-forwards");
        assert_eq!(found, Some(goes), "{method} {came}");
    }
}

#[test]
fn the_last_hop_of_a_trace_is_answered_with_what_came() {
    let track = Track::rest();
    let mut client = track.proxy.connect();
    client.send(format!(
        "TRACE /x?y HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n{SECRETS}X-Kept: f\r\nConnection: x-own\r\nX-Own: g\r\n\r\n"
    ));
    let answer = client.read_answer();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.head.one("content-type"), Some("message/http"));
    let lines: Vec<&str> = answer.text().split("\r\n").collect();
    assert_eq!(lines[0], "TRACE /x?y HTTP/1.1");
    for line in ["host: a.example", "max-forwards: 0", "x-kept: f"] {
        assert!(lines.contains(&line), "{lines:?}");
    }
    for secret in ["Bearer", "b=c", "Basic", "x-own"] {
        assert!(!answer.text().contains(secret), "{lines:?}");
    }
    track.proxy.log_line(&["path=/x", "decision=local"]);
    track.upstream.expect_no_connection();
}

#[test]
fn the_last_hop_checks_host_and_origin() {
    let rest = Upstream::start();
    let proxy = Proxy::start_with_own_hosts(&rest_only(&rest), "");
    for method in ["TRACE", "OPTIONS"] {
        for (fields, allowed) in [
            ("Host: localhost\r\n", true),
            ("Host: localhost\r\nOrigin: http://localhost\r\n", true),
            ("Host: localhost\r\nOrigin: http://evil.example\r\n", false),
            ("Host: evil.example\r\n", false),
        ] {
            let mut client = proxy.connect();
            client.send(format!(
                "{method} /x HTTP/1.1\r\n{fields}Max-Forwards: 0\r\n\r\n"
            ));
            let status = client.read_answer().status();
            assert_eq!(status == 403, !allowed, "{method} {fields}: {status}");
        }
    }
    rest.expect_no_connection();
}

#[test]
fn the_last_hop_of_options_is_the_proxy() {
    for target in ["/x", "*", "/rpc"] {
        let track = Track::rest();
        let mut client = track.proxy.connect();
        client.send(format!(
            "OPTIONS {target} HTTP/1.1\r\nHost: a.example\r\nMax-Forwards: 0\r\n\r\n"
        ));
        let answer = client.read_answer();
        assert_eq!(answer.status(), 204, "{target}");
        track.upstream.expect_no_connection();
    }
}

#[test]
fn a_trace_goes_on_without_the_credentials_that_the_configuration_names() {
    let rest = Upstream::answering(OK);
    let proxy = Proxy::start(&format!(
        "{}[rollout.api_key]\nheader = \"x-client\"\n\
         [rpc.envelope.auth]\nheader = \"x-member\"\nvalue = \"{{v}}\"\n",
        rest_only(&rest)
    ));
    let mut client = proxy.connect();
    let fields = "X-Client: own\r\nX-Member: own\r\nX-Kept: f\r\n";
    client.send(format!("TRACE /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    assert_eq!(client.read_answer().status(), 200);
    let head = rest.request().head;
    for (name, value) in [
        ("x-client", None),
        ("x-member", None),
        ("x-kept", Some("f")),
    ] {
        assert_eq!(head.one(name), value, "{head}");
    }
    client.send(format!(
        "TRACE /x HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n{fields}\r\n"
    ));
    let answer = client.read_answer();
    assert!(answer.text().contains("x-kept: f"), "{}", answer.text());
    assert!(!answer.text().contains("own"), "{}", answer.text());
    // Other methods keep them.
    client.send(format!("GET /x HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.read_answer();
    let head = rest.requests().pop().unwrap().head;
    assert_eq!(head.one("x-client"), Some("own"));
}
