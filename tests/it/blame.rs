//! Whose fault a call is, and what belongs to which face, where that is easily mistaken.

use std::io::Write;
use std::net::TcpStream;
use std::thread;

use crate::scene::{before_rest, before_rpc, call, json, saying};
use crate::support::{Proxy, Upstream, both, rest_only};

const LIMITS: &str = "[limits]\n";

#[test]
fn an_upstream_that_takes_nothing_of_a_body_is_to_blame() {
    let upstream = Upstream::start();
    let proxy = Proxy::start(&format!("{}timeout = \"200ms\"\n", rest_only(&upstream)));
    let mut client = TcpStream::connect(proxy.address()).unwrap();
    let sender = thread::spawn(move || {
        let head = "POST /x HTTP/1.1\r\nHost: a.example\r\nContent-Length: 268435456\r\n\r\n";
        // It ends with the connection, which the proxy closes long before all is sent.
        let _ = client.write_all(head.as_bytes());
        let piece = vec![b'x'; 1 << 20];
        while client.write_all(&piece).is_ok() {}
    });
    let server = upstream.accept();
    proxy.log_line(&["status=504", "blame=upstream", "reason=upstream_timeout"]);
    sender.join().unwrap();
    drop(server);
}

#[test]
fn a_client_that_takes_nothing_of_its_answer_is_cut_and_frees_the_connection() {
    let large = vec![b'x'; 64 << 20];
    let upstream = Upstream::serving(move |request| {
        let length = if request.head.start.contains("/large") {
            large.len()
        } else {
            0
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        [head.as_bytes(), &large[..length]].concat()
    });
    let config = format!(
        "{}connections = 1\n{LIMITS}write_timeout = \"200ms\"\n",
        rest_only(&upstream)
    );
    let proxy = Proxy::start(&config);
    let mut idle = proxy.connect();
    idle.send("GET /large HTTP/1.1\r\nHost: a.example\r\n\r\n");
    idle.read_head();
    // The one connection is free again once the client is cut.
    assert_eq!(proxy.rest("GET", "/small", &[], "").status(), 200);
    proxy.log_line(&["path=/large", "outcome=cancelled", "blame=client"]);
}

#[test]
fn a_content_type_beyond_ascii_gets_an_answer() {
    let upstream = Upstream::start();
    let proxy = crate::rpc_refused::closed(&upstream);
    let mut client = proxy.connect();
    client.send("POST /rpc HTTP/1.1\r\nHost: a\r\nContent-Type: application/\u{e9}1234\r\nContent-Length: 2\r\n\r\n{}");
    assert_eq!(client.read_answer().status(), 415);
    upstream.expect_no_connection();
}

#[test]
fn a_refused_request_line_is_answered_as_rest() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, "");
    let mut client = proxy.connect();
    client.send("GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.read_answer();
    assert_eq!(answer.status(), 400);
    assert_eq!(
        answer.head.one("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(answer.json()["reason"], "malformed_http");
    client.expect_closed();
}

#[test]
fn an_rpc_path_is_known_in_every_spelling() {
    let (rest, rpc) = (Upstream::start(), saying(r#""result":1"#));
    let proxy = Proxy::start(&both(&rest, &rpc));
    for path in ["/%72pc", "/rp%63", "/rpc/"] {
        let json = [("Content-Type", "application/json")];
        let answered = proxy.rest("POST", path, &json, call("ping", "{}")).json();
        assert_eq!(answered["result"], 1, "{path}");
    }
    for path in ["//rpc", "/rpc//", "/x/../rpc", "/./rpc"] {
        let irregular = proxy.rest(
            "POST",
            path,
            &[("Content-Type", "application/json")],
            call("ping", "{}"),
        );
        assert_eq!(irregular.status(), 400, "{path}");
        assert!(
            irregular.text().contains("in its normal form"),
            "{path}: {}",
            irregular.text()
        );
    }
    rest.expect_no_connection();
}

#[test]
fn an_rpc_error_counts_as_one_alone_and_in_a_batch() {
    let upstream = saying(r#""error":{"code":-32601,"message":"no"}"#);
    let proxy = before_rpc(&upstream, "");
    let one = call("nope", "{}");
    assert_eq!(proxy.rpc(&one).json()["error"]["code"], -32601);
    proxy.log_line(&["outcome=error", "blame=client", "code=-32601"]);
    let proxy = before_rpc(&upstream, "");
    assert_eq!(
        proxy.rpc(format!("[{one}]")).json()[0]["error"]["code"],
        -32601
    );
    proxy.log_line(&["outcome=error", "blame=client", "code=-32601"]);
}

#[test]
fn blame_follows_the_status_that_an_rpc_client_does_not_see() {
    for (status, blame) in [
        ("403 Forbidden", "client"),
        ("429 Too Many Requests", "client"),
        ("500 Oops", "upstream"),
    ] {
        let upstream =
            Upstream::answering(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        let proxy = before_rest(
            &upstream,
            "[[route]]\nname = \"do\"\nrest = \"POST /do\"\nrpc = \"do\"\n",
        );
        proxy.rpc(call("do", "{}"));
        proxy.log_line(&["outcome=error", &format!("blame={blame}")]);
    }
}

#[test]
fn an_error_of_a_row_blames_the_client_where_an_rpc_server_that_says_it_does() {
    for (status, code, blame) in [
        (500, -32602, "client"),
        (500, -32010, "upstream"),
        (404, -32010, "client"),
    ] {
        let upstream =
            Upstream::answering(format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n"));
        let proxy = before_rest(
            &upstream,
            &format!(
                "[[route]]\nname = \"do\"\nrest = \"POST /do\"\nrpc = \"do\"\n[[route.outcome]]\nrest = {{ status = {status} }}\nrpc = {{ error = {{ code = {code} }} }}\n"
            ),
        );
        let said = proxy.rpc(call("do", "{}")).json();
        assert_eq!(said["error"]["code"], code, "{said}");
        proxy.log_line(&["outcome=error", &format!("blame={blame}")]);
    }
}

#[test]
fn a_null_reads_as_absent_where_a_url_may_lack_the_value() {
    let upstream = Upstream::serving(|_| json("{}"));
    let route =
        "[[route]]\nname = \"list\"\nrest = \"GET /list?q={q?}&n={n:integer=5}\"\nrpc = \"list\"\n";
    let proxy = before_rest(&upstream, route);
    assert_eq!(
        proxy.rpc(call("list", r#"{"q":null,"n":null}"#)).status(),
        200
    );
    assert_eq!(upstream.request().head.start, "GET /list?n=5 HTTP/1.1");
}
