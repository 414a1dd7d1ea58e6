//! Targets as clients send them: characters that belong percent-encoded and are not, and targets that are refused.

use crate::scene::{before_rpc, json};
use crate::support::{Track, Upstream};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
const RAW: [&str; 6] = [
    "/a\"<b>`{|}",
    "/x?q=\"<b>`{|}",
    "/<",
    "/é<?é=>",
    "/%3C<%60`?%22\"&a=%3E>",
    "/a?\"?<",
];

/// Each goes on as it came, on one connection of the client and one of the server.
#[test]
fn raw_characters_go_on_byte_for_byte() {
    let track = Track::rest();
    let mut open = track.open("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    open.server.send(OK);
    open.client.read_answer();
    for target in RAW {
        for request in [
            format!("GET {target} HTTP/1.1\r\nHost: a.example\r\nX-oDD: 1\r\n\r\n"),
            format!(
                "POST {target} HTTP/1.1\r\nHost: a.example\r\nX-oDD: 1\r\nContent-Length: 3\r\n\r\nabc"
            ),
            format!(
                "POST http://a.example{target} HTTP/1.1\r\nHost: a.example\r\nX-oDD: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            ),
        ] {
            open.client.send(&request);
            let came = open.server.read_until("\r\n\r\n");
            let method = request.split(' ').next().unwrap();
            let line = format!("{method} {target} HTTP/1.1\r\n");
            assert!(
                came.starts_with(line.as_bytes()),
                "{:?}",
                String::from_utf8_lossy(&came)
            );
            let fields = String::from_utf8_lossy(&came).into_owned();
            assert!(fields.contains("\r\nX-oDD: 1\r\n"), "{fields}");
            if method == "POST" {
                open.server.read_until("abc");
            }
            if fields.contains("chunked") {
                open.server.read_until("0\r\n\r\n");
            }
            open.server.send(OK);
            assert_eq!(open.client.read_answer().status(), 200, "{target}");
        }
    }
}

#[test]
fn raw_characters_that_come_in_pieces_go_on_byte_for_byte() {
    let target = RAW[4];
    let request = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let track = Track::rest();
    for cut in [5, 6, 12, request.len() - 30, request.len() - 2] {
        let mut client = track.proxy.connect();
        client.send(&request.as_bytes()[..cut]);
        std::thread::yield_now();
        client.send(&request.as_bytes()[cut..]);
        let mut server = track.upstream.accept();
        let came = server.read_until("\r\n\r\n");
        assert!(came.starts_with(format!("GET {target} HTTP/1.1\r\n").as_bytes()));
        server.send(OK.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"));
        assert_eq!(client.read_answer().status(), 200);
    }
}

/// A kept connection that the server closes is no reason to lose the target.
#[test]
fn a_call_that_is_sent_again_has_its_raw_target() {
    let track = Track::rest();
    let mut open = track.open("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
    open.server.send(OK);
    open.client.read_answer();
    open.client
        .send("GET /<a>?\"b HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let came = open.server.read_until("\r\n\r\n");
    drop(open.server);
    let mut server = track.upstream.accept();
    assert_eq!(server.read_until("\r\n\r\n"), came);
    assert!(came.starts_with(b"GET /<a>?\"b HTTP/1.1\r\n"));
    server.send(OK);
    assert_eq!(open.client.read_answer().status(), 200);
}

#[test]
fn translated_calls_read_raw_characters_as_what_they_are() {
    let rpc = Upstream::serving(|asked| {
        let called: serde_json::Value = asked.json();
        json(format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#,
            called["id"], called["params"]
        ))
    });
    let proxy = before_rpc(
        &rpc,
        "[[route]]\nname = \"m\"\nrest = \"GET /m/{id}?q={q}\"\nrpc = \"m\"\n",
    );
    let mut client = proxy.connect();
    client.send("GET /m/<\"a\">`%3C?q=\"<b>`%22 HTTP/1.1\r\nHost: a.example\r\n\r\n");
    let params = client.read_answer().json();
    assert_eq!(params["id"], "<\"a\">`<");
    assert_eq!(params["q"], "\"<b>`\"");
}

#[test]
fn a_refused_call_is_logged_with_its_target() {
    let track = Track::rest();
    for (line, told) in [
        ("GET /a b HTTP/1.1", ["method=GET", "path=/a%20b "]),
        (
            "POST /fragment#b HTTP/1.1",
            ["method=POST", "path=/fragment%23b "],
        ),
        ("GET /\u{7f}del HTTP/1.1", ["method=GET", "path=/%7Fdel "]),
        (
            "PUT http://u:secret@a/x HTTP/1.1",
            ["method=PUT", "path=/x "],
        ),
        ("PUT /version HTTP/3.0", ["method=PUT", "path=/version "]),
        ("GET foo HTTP/1.1", ["method=GET", "path=foo "]),
        ("GET u:secret@foo?a HTTP/1.1", ["method=GET", "path=foo "]),
    ] {
        let mut client = track.proxy.connect();
        client.send(format!("{line}\r\nHost: a.example\r\n\r\n"));
        assert_eq!(client.read_answer().status(), 400, "{line}");
        let [method, path] = told;
        track
            .proxy
            .log_line(&["status=400", "reason=malformed_http", method, path]);
    }
    let mut client = track.proxy.connect();
    client.send(format!("GET /long/{} HTTP/1.1\r\n", "a".repeat(9000)));
    assert_eq!(client.read_answer().status(), 414);
    track.proxy.log_line(&["status=414", "path=\"/long/aaa"]);
    assert!(!track.proxy.log().contains("secret"));
}
