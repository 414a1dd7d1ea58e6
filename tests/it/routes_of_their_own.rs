//! What a route may say of itself: its upstream, its schema, that nobody waits for it, the side it is entered from.

use crate::scene::{before_rest, before_rpc, json, problem, rpc_failure, saying};
use crate::support::{Proxy, Upstream};

#[test]
fn a_route_names_its_upstream_and_the_default_takes_the_rest() {
    let (usual, other) = (saying(r#""result":"usual""#), saying(r#""result":"other""#));
    let upstream = |name: &str, upstream: &Upstream, more: &str| {
        let address = upstream.address();
        format!("[upstream.{name}]\nside = \"rpc\"\nurl = \"http://{address}/rpc\"\n{more}")
    };
    let proxy = Proxy::start(&format!(
        "[listen]\nworkers = 1\n{}{}[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"a\"\nupstream = \"other\"\n\
         [[route]]\nname = \"b\"\nrest = \"GET /b\"\nrpc = \"b\"\n",
        upstream("other", &other, ""),
        upstream("usual", &usual, "default = true\n"),
    ));
    assert_eq!(proxy.rest("GET", "/a", &[], "").text(), "\"other\"");
    assert_eq!(proxy.rest("GET", "/b", &[], "").text(), "\"usual\"");
    let passed =
        |method: &str| proxy.rpc(crate::scene::call(method, "{}")).json()["result"].clone();
    assert_eq!(passed("a"), "other", "also what passes");
    assert_eq!(passed("of.no.route"), "usual");
}

const SCHEMA: &str = r#"
[[route]]
name = "s"
rest = "POST /s/{id}"
rpc = "s"
schema = { params = { required = ["n"], properties = { n = { type = "integer", minimum = 1 }, id = { pattern = "^[a-z]+$" } } }, result = { type = "object" } }
"#;

#[test]
fn params_that_the_schema_does_not_allow_are_refused_with_their_pointer() {
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, SCHEMA);
    for (path, body, pointer) in [
        ("/s/a", "{}", "params"),
        ("/s/a", r#"{"n":0}"#, "params/n"),
        ("/s/7", r#"{"n":1}"#, "params/id"),
    ] {
        let (reason, detail) = problem(&proxy.rest("POST", path, &[], body));
        assert_eq!(reason, "invalid_params");
        assert!(detail.starts_with(&format!("{pointer}: ")), "{detail}");
    }
    upstream.expect_no_connection();
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, SCHEMA);
    let said = proxy
        .rpc(crate::scene::call("s", r#"{"id":"a","n":1.5}"#))
        .json();
    assert_eq!(rpc_failure(&said), (-32602, "invalid_params"));
    let message = said["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("params/n: "), "{message}");
    upstream.expect_no_connection();
}

#[test]
fn a_result_that_the_schema_does_not_allow_is_the_servers_fault() {
    let upstream = saying(r#""result":[1]"#);
    let proxy = before_rpc(&upstream, SCHEMA);
    let (reason, detail) = problem(&proxy.rest("POST", "/s/a", &[], r#"{"n":1}"#));
    assert_eq!(reason, "upstream_invalid", "{detail}");
    let upstream = Upstream::answering(json("[1]"));
    let proxy = before_rest(&upstream, SCHEMA);
    let said = proxy
        .rpc(crate::scene::call("s", r#"{"id":"a","n":1}"#))
        .json();
    assert_eq!(rpc_failure(&said), (-31028, "upstream_invalid"));
}

#[test]
fn nobody_waits_for_a_notification_that_a_route_sends() {
    let upstream = Upstream::start();
    let route = "[[route]]\nname = \"n\"\nrest = \"POST /n\"\nrpc = \"n\"\nnotify = true\n";
    let proxy = before_rpc(&upstream, route);
    let said = proxy.rest("POST", "/n", &[], r#"{"a":1}"#);
    assert_eq!((said.status(), said.text()), (202, ""));
    let mut connection = upstream.accept();
    assert_eq!(
        connection.read_request().text(),
        r#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#
    );
}

#[test]
fn a_route_is_entered_from_the_side_that_it_names_alone() {
    let upstream = saying(r#""result":7"#);
    let routes = "[[route]]\nname = \"a\"\nrest = \"GET /a\"\nrpc = \"m\"\nfrom = \"rest\"\n\
        [[route]]\nname = \"b\"\nrest = \"GET /b\"\nrpc = \"m\"\n";
    let proxy = before_rpc(&upstream, routes);
    assert_eq!(proxy.rest("GET", "/a", &[], "").text(), "7");
    let rest = Upstream::answering(json("8"));
    let proxy = before_rest(&rest, routes);
    assert_eq!(proxy.rpc(crate::scene::call("m", "{}")).json()["result"], 8);
    assert_eq!(rest.request().head.start, "GET /b HTTP/1.1");
}
