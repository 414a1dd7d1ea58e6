//! What is not JSON-RPC over POST on an RPC path, and the other paths of a server that speaks JSON-RPC.

use crate::scene::{answer, problem, saying};
use crate::support::{Message, Proxy, Upstream, both, rest_only, rpc_only};

const APP: &str = "https://app.example";

const CORS: &str = "[cors]\norigins = [\"https://app.example\"]\nexpose = [\"x-total\"]\n";

const ROUTES: &str = r#"
[[client]]
name = "mover"
match = { header = { user-agent = "mover/*" } }
[[route]]
name = "items.get"
rest = "GET /items/{id}"
rpc = "items/get"
"#;

const MOVED: &str =
    "[[flag]]\nname = \"moved\"\nclient = \"mover\"\nside = \"rpc\"\nstage = \"translate\"\n";

/// A server that answers everything with this word, and says which page may read it.
fn server(word: &str) -> Upstream {
    let headers = [("Access-Control-Allow-Origin", "https://server.example")];
    Upstream::answering(answer("200 OK", &headers, word))
}

fn preflight(proxy: &Proxy, path: &str, origin: &str) -> Message {
    let asked = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type"),
    ];
    proxy.rest("OPTIONS", path, &asked, "")
}

fn allowed(answer: &Message) -> Option<&str> {
    answer.head.one("access-control-allow-origin")
}

#[test]
fn other_methods_on_an_rpc_path_reach_the_rpc_upstream() {
    let (rest, rpc) = (server("rest"), server("rpc"));
    for config in [rpc_only(&rpc), both(&rest, &rpc)] {
        let proxy = Proxy::start(&config);
        for method in ["OPTIONS", "HEAD", "PUT", "PATCH", "GET", "DELETE", "QUERY"] {
            let answer = proxy.rest(method, "/mcp?x=1", &[], "");
            assert_eq!(answer.status(), 200, "{method}: {answer:?}");
            let asked = rpc.requests().pop().unwrap();
            let expected = format!("{method} /rpc?x=1 HTTP/1.1");
            assert_eq!(asked.head.start, expected);
        }
        assert_eq!(
            allowed(&preflight(&proxy, "/rpc", APP)),
            Some("https://server.example")
        );
    }
    assert_eq!(rest.requests().len(), 0);
}

#[test]
fn without_an_rpc_upstream_they_reach_the_rest_upstream() {
    let rest = server("rest");
    let proxy = Proxy::start(&rest_only(&rest));
    for method in ["OPTIONS", "PUT", "GET", "DELETE"] {
        let answer = proxy.rest(method, "/rpc", &[], "");
        assert_eq!(answer.text(), "rest", "{method}");
        let asked = rest.requests().pop().unwrap();
        assert_eq!(asked.head.start, format!("{method} /rpc HTTP/1.1"));
    }
}

#[test]
fn without_an_rpc_upstream_messages_are_taken_at_one_path() {
    let rest = server("rest");
    let proxy = Proxy::start(&rest_only(&rest));
    let call = crate::scene::call("m", "{}");
    for path in ["/", "/jsonrpc", "/mcp"] {
        assert_eq!(
            proxy.rest("POST", path, &[], &call).text(),
            "rest",
            "{path}"
        );
    }
    let answer = proxy.rest("POST", "/rpc", &[], &call).json();
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
}

#[test]
fn a_route_and_a_local_answer_keep_their_methods_on_an_rpc_path() {
    let rpc = saying(r#""result":1"#);
    let more = "[[route]]\nname = 'm'\nrest = 'PUT /rpc'\nrpc = 'm'\n\
        [[local]]\nrest = 'HEAD /mcp'\nanswer = { status = 204 }\n";
    let flags = "[[flag]]\nname = 'f'\nside = 'rest'\nstage = 'translate'\n";
    let proxy = Proxy::start_with_flags(&format!("{}{more}", rpc_only(&rpc)), flags);
    assert_eq!(proxy.rest("PUT", "/rpc", &[], "{}").text(), "1");
    assert_eq!(proxy.rest("HEAD", "/mcp", &[], "").status(), 204);
    let asked = rpc.requests();
    assert!(asked[0].head.start.starts_with("POST /rpc "), "{asked:?}");
    assert_eq!(asked.len(), 1);
}

#[test]
fn a_preflight_of_a_post_that_may_be_served_here_is_answered_here() {
    let (rest, rpc) = (server("rest"), server("rpc"));
    let config = format!("{}{ROUTES}{CORS}", both(&rest, &rpc));
    let proxy = Proxy::start_with_flags(&config, MOVED);
    // The client is known by a header that a preflight does not have.
    let answer = preflight(&proxy, "/rpc", APP);
    assert_eq!(answer.status(), 204, "{answer:?}");
    assert_eq!(allowed(&answer), Some(APP));
    let methods = answer.head.one("access-control-allow-methods");
    assert_eq!(methods, Some("POST"));
    let headers = answer.head.one("access-control-allow-headers");
    assert_eq!(headers, Some("content-type"));
    proxy.log_line(&["side=rpc", "method=OPTIONS", "decision=preflight"]);
    // A page that the proxy does not know, and a method that passes through, are the server's.
    for (origin, method) in [("https://other.example", "POST"), (APP, "GET")] {
        let asked = [
            ("Origin", origin),
            ("Access-Control-Request-Method", method),
        ];
        let answer = proxy.rest("OPTIONS", "/rpc", &asked, "");
        assert_eq!(allowed(&answer), Some("https://server.example"), "{origin}");
    }
    // Nothing is served here without a flag.
    let proxy = Proxy::start(&config);
    let answer = preflight(&proxy, "/rpc", APP);
    assert_eq!(allowed(&answer), Some("https://server.example"));
    // Without an RPC upstream everything is.
    let proxy = Proxy::start(&format!("{}{ROUTES}{CORS}", rest_only(&rest)));
    let answer = preflight(&proxy, "/rpc", APP);
    assert_eq!((answer.status(), allowed(&answer)), (204, Some(APP)));
}

#[test]
fn a_page_may_read_the_json_rpc_messages_that_the_proxy_writes() {
    let rest = Upstream::answering(crate::scene::json(r#"{"id":"7"}"#));
    let rpc = Upstream::nowhere();
    let config = format!(
        "{}{ROUTES}{CORS}[[local]]\nrpc = 'ping'\nanswer = {{ result = {{}} }}\n",
        both(&rest, &rpc)
    );
    let proxy = Proxy::start_with_flags(&config, MOVED);
    let host = [("Origin", APP), ("User-Agent", "mover/1")];
    let call = crate::scene::call("items/get", r#"{"id":"7"}"#);
    let (ping, unknown) = (
        crate::scene::call("ping", "{}"),
        crate::scene::call("x", "{}"),
    );
    let notification = r#"{"jsonrpc":"2.0","method":"items/get","params":{"id":"7"}}"#;
    let invalid = r#"{"jsonrpc":"2.0","id":1,"method":"items/get","params":{"id":[]}}"#;
    let batch = format!("[{call},{ping}]");
    let cut = r#"{"jsonrpc":"2.0","id""#;
    for body in [&*call, &ping, &unknown, notification, invalid, &batch, cut] {
        let answer = proxy.rest("POST", "/rpc", &host, body);
        assert_eq!(allowed(&answer), Some(APP), "{body}: {answer:?}");
        assert_eq!(answer.head.one("vary"), Some("origin"), "{body}");
        let exposed = answer.head.one("access-control-expose-headers");
        assert_eq!(exposed, Some("x-total"));
    }
    let other = [
        ("Origin", "https://other.example"),
        ("User-Agent", "mover/1"),
    ];
    let answer = proxy.rest("POST", "/rpc", &other, &call);
    assert_eq!(
        (allowed(&answer), answer.head.one("vary")),
        (None, Some("origin"))
    );
}

#[test]
fn an_answer_that_passes_through_keeps_the_cors_headers_of_its_server() {
    let headers = [("Access-Control-Allow-Origin", "https://server.example")];
    let said = answer("200 OK", &headers, r#"{"jsonrpc":"2.0","id":1,"result":1}"#);
    let rpc = Upstream::answering(said);
    let proxy = Proxy::start(&format!("{}{CORS}", rpc_only(&rpc)));
    let host = [("Origin", APP)];
    let answer = proxy.rest("POST", "/rpc", &host, crate::scene::call("m", "{}"));
    assert_eq!(allowed(&answer), Some("https://server.example"));
    assert_eq!(answer.head.one("vary"), None);
}

#[test]
fn other_paths_of_an_rpc_only_upstream_pass_through_to_it() {
    let rpc = server("card");
    let proxy = Proxy::start(&format!("{}{ROUTES}", rpc_only(&rpc)));
    for (method, target) in [
        ("GET", "/.well-known/agent-card.json"),
        ("GET", "/.well-known/oauth-authorization-server/mcp?x=%7E"),
        ("POST", "/message:send"),
        ("PUT", "/files//a/../b/"),
    ] {
        assert_eq!(proxy.rest(method, target, &[], "").text(), "card");
        let asked = rpc.requests().pop().unwrap();
        assert_eq!(asked.head.start, format!("{method} {target} HTTP/1.1"));
    }
    proxy.log_line(&[
        "side=rest",
        "path=/.well-known/agent-card.json",
        "decision=unrouted",
    ]);
    // The path of a route is none of them, and neither is any where calls of no route are refused.
    let count = rpc.requests().len();
    let answer = proxy.rest("DELETE", "/items/7", &[], "");
    assert_eq!(
        (answer.status(), &*problem(&answer).0),
        (405, "method_not_allowed")
    );
    let reject = format!("unrouted = \"reject\"\n{}", rpc_only(&rpc));
    let answer = Proxy::start(&reject).rest("GET", "/.well-known/agent-card.json", &[], "");
    assert_eq!(
        (answer.status(), &*problem(&answer).0),
        (404, "route_not_found")
    );
    assert_eq!(rpc.requests().len(), count);
}

#[test]
fn messages_do_not_pass_by_the_flags_at_the_path_of_an_rpc_only_upstream() {
    let rpc = server("card");
    let config = format!("[rpc]\npaths = [\"/api\"]\n{}", rpc_only(&rpc));
    let proxy = Proxy::start(&config);
    for path in ["/rpc", "//rpc", "/./rpc", "/%72pc"] {
        let answer = proxy.rest("POST", path, &[], crate::scene::call("m", "{}"));
        assert_eq!(answer.status(), 404, "{path}: {answer:?}");
    }
    assert_eq!(rpc.requests().len(), 0);
}

#[test]
fn a_failure_of_another_method_than_post_has_its_own_status() {
    let proxy = Proxy::start(&rpc_only(&Upstream::nowhere()));
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        let answer = proxy.rest(method, "/rpc", &[], "");
        assert_eq!(answer.status(), 502, "{method}: {answer:?}");
    }
    proxy.log_line(&["method=HEAD", "status=502", "reason=upstream_unreachable"]);
    assert_eq!(proxy.rpc(crate::scene::call("m", "{}")).status(), 200);
}
