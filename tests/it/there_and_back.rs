//! Two proxies behind one another, one for each direction: what comes back is what the server said.

use crate::scene::{answer, before_rest, before_rpc, json_with, saying};
use crate::support::{Proxy, Upstream};

const ROUTE: &str = "[[route]]\nname = \"m\"\nrest = \"POST /m/{id}\"\nrpc = \"m\"\n";

/// A proxy whose server is another proxy.
fn before(side: &str, inner: &Proxy) -> Proxy {
    let path = if side == "rpc" { "/rpc" } else { "" };
    let url = format!("http://{}{path}", inner.address());
    Proxy::start(&format!(
        "[upstream.inner]\nside = \"{side}\"\nurl = \"{url}\"\n{ROUTE}"
    ))
}

#[test]
fn a_rest_call_that_goes_as_rpc_arrives_as_it_was_and_so_does_its_answer() {
    let body = r#"{"a":1.10,"b":[ ],"c":"\u0041"}"#;
    let json = "application/json";
    let rows: [(&str, &str, &str); 7] = [
        ("200 OK", json, r#"{"a" : 1.10}"#),
        ("400 Bad Request", json, r#"{"detail":1.10}"#),
        ("404 Not Found", json, "[]"),
        ("409 Conflict", "text/plain", "taken"),
        (
            "422 Unprocessable Entity",
            "application/problem+json",
            r#"{"title":"no"}"#,
        ),
        ("500 Internal Server Error", "text/html", "<h1>no</h1>"),
        (
            "503 Service Unavailable",
            "application/vnd.x+json",
            r#""x""#,
        ),
    ];
    for (status, kind, content) in rows {
        let server = Upstream::answering(answer(status, &[("Content-Type", kind)], content));
        let inner = before_rest(&server, ROUTE);
        let outer = before("rpc", &inner);
        let came = outer.rest("POST", "/m/a%2Fb", &[], body);
        assert_eq!(came.head.start, format!("HTTP/1.1 {status}"));
        assert_eq!(came.head.one("content-type"), Some(kind));
        assert_eq!(came.text(), content);
        let seen = server.request();
        assert_eq!(seen.head.start, "POST /m/a%2Fb HTTP/1.1");
        assert_eq!(seen.text(), body);
    }
}

#[test]
fn an_rpc_call_that_goes_as_rest_arrives_as_it_was_and_so_does_its_answer() {
    let params = r#"{"id":"a/b","a":1.10,"c":"\u0041"}"#;
    let replies = [
        r#""result":{"a" : 1.10}"#,
        r#""result":null"#,
        r#""error":{"code":-32602,"message":"n\u006f","data":{"x":1.10}}"#,
        r#""error":{"code":-32601,"message":""}"#,
        r#""error":{"code":-32050,"message":"x","data":null}"#,
        r#""error":{"code":7,"message":"x","data":"y"}"#,
    ];
    for reply in replies {
        let server = saying(reply);
        let inner = before_rpc(&server, ROUTE);
        let outer = before("rest", &inner);
        let call = format!(r#"{{"jsonrpc":"2.0","id":1e3,"method":"m","params":{params}}}"#);
        let came = outer.rpc(call);
        assert_eq!(
            came.text(),
            format!(r#"{{"jsonrpc":"2.0","id":1e3,{reply}}}"#)
        );
        let sent = server.request();
        let sent = crate::scene::Called::of(&sent);
        assert_eq!((sent.method(), sent.params()), ("m", params));
    }
}

#[test]
fn a_failure_of_the_inner_proxy_comes_back_as_it_wrote_it() {
    let inner = before_rest(&Upstream::nowhere(), ROUTE);
    let direct = inner.rpc(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":"7"}}"#);
    let outer = before("rpc", &inner);
    let came = outer.rest("POST", "/m/7", &[], "");
    assert_eq!(came.json()["rpc"], direct.json()["error"]);

    let inner = before_rpc(&Upstream::nowhere(), ROUTE);
    let direct = inner.rest("POST", "/m/7", &[], "");
    let outer = before("rest", &inner);
    let came = outer.rpc(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"id":"7"}}"#);
    assert_eq!(came.json()["error"], direct.json()["rpc"]);
    assert_eq!(direct.status(), 502);
}

#[test]
fn a_notification_reaches_the_server_through_both() {
    let server = Upstream::answering(json_with("202 Accepted", ""));
    let inner = before_rest(&server, ROUTE);
    let outer = Proxy::start(&format!(
        "[upstream.inner]\nside = \"rpc\"\nurl = \"http://{}/rpc\"\n",
        inner.address()
    ));
    let came = outer.rpc(r#"{"jsonrpc":"2.0","method":"m","params":{"id":"7"}}"#);
    assert_eq!((came.status(), came.text()), (204, ""));
    assert_eq!(server.request().head.start, "POST /m/7 HTTP/1.1");
}
