//! REST servers whose URL has a base path.

use crate::scene::{answer, json};
use crate::support::{Proxy, Upstream};

const ROUTE: &str =
    "[[route]]\nname = \"things.get\"\nrest = \"GET /things/{id}\"\nrpc = \"things/get\"\n";

fn before(server: &Upstream) -> Proxy {
    let url = format!("http://{}/base/", server.address());
    Proxy::start(&format!(
        "[upstream.rest]\nside = \"rest\"\nurl = \"{url}\"\n{ROUTE}"
    ))
}

#[test]
fn the_base_path_precedes_every_path() {
    let server = Upstream::answering(json("{}"));
    let proxy = before(&server);
    proxy.rest("GET", "/things/a%2Fb?x=1", &[], "");
    let seen = server.request();
    assert_eq!(seen.head.start, "GET /base/things/a%2Fb?x=1 HTTP/1.1");
    proxy.rpc(r#"{"jsonrpc":"2.0","id":1,"method":"things/get","params":{"id":"7"}}"#);
    let seen = server.requests().pop().unwrap();
    assert_eq!(seen.head.start, "GET /base/things/7 HTTP/1.1");
}

#[test]
fn a_location_below_the_base_path_is_one_of_the_proxy() {
    let rows = [
        ("/base/things/8", "/things/8"),
        ("/base", "/"),
        ("/base?a", "/?a"),
        ("/basement", "/basement"),
        ("/base//x", "/base//x"),
        ("https://other/base/x", "https://other/base/x"),
    ];
    for (sent, wanted) in rows {
        let server = Upstream::answering(answer("302 Found", &[("Location", sent)], ""));
        let came = before(&server).rest("GET", "/other", &[], "");
        assert_eq!(came.head.one("location"), Some(wanted), "{sent}");
    }
}
