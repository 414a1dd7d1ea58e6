//! `unrouted_irregular`: paths of no route that a lenient server may read as the path of one, on the wire.

use crate::scene::{body_of, call, json, problem, saying};
use crate::support::{Proxy, Upstream, both};

const ROUTES: &str = r#"
[[route]]
name = "items.list"
rest = "GET /api/items"
rpc = "items/list"
[[route]]
name = "items.delete"
rest = "DELETE /api/items/{id}"
rpc = "items/delete"
[[stream]]
name = "events"
rest = "GET /api/events"
rpc = "GET /sse"
"#;

const IRREGULAR: [(&str, &str, &str); 9] = [
    ("GET", "/API/items", "`items.list`"),
    ("GET", "/api%2fitems", "`items.list`"),
    ("GET", "/api\\items", "`items.list`"),
    ("GET", "/api;v=1/items", "`items.list`"),
    ("GET", "/x/%2e%2e/api/items", "`items.list`"),
    ("GET", "//api/items?a=1", "`items.list`"),
    ("DELETE", "/api/Items/7%00", "`items.delete`"),
    ("GET", "/api/Events", "`events`"),
    ("POST", "/RPC", "an RPC path"),
];

/// Paths that are irregular, but those of no route, and regular ones.
const OTHERS: [(&str, &str); 5] = [
    ("GET", "/Other"),
    ("GET", "/other%2fitems"),
    ("PUT", "/api%2fitems"),
    ("GET", "/api/items/"),
    ("GET", "/other"),
];

struct Scene {
    rest: Upstream,
    rpc: Upstream,
    proxy: Proxy,
}

fn scene(word: &str) -> Scene {
    let rest = Upstream::answering(json(r#""old""#));
    let rpc = saying(r#""result":"new""#);
    let config = both(&rest, &rpc);
    let config = format!("unrouted_irregular = \"{word}\"\n{config}{ROUTES}");
    let proxy = Proxy::start(&config);
    Scene { rest, rpc, proxy }
}

fn started(upstream: &Upstream) -> Vec<String> {
    let requests = upstream.requests().into_iter();
    requests.map(|request| request.head.start).collect()
}

#[test]
fn irregular_paths_pass_byte_for_byte_by_default() {
    let scene = scene("pass");
    let mut sent = Vec::new();
    let irregular = IRREGULAR.map(|(method, path, _)| (method, path));
    for (method, path) in irregular.into_iter().chain(OTHERS) {
        let answer = scene.proxy.rest(method, path, &[], "");
        assert_eq!(body_of(&answer, 200), r#""old""#, "{method} {path}");
        sent.push(format!("{method} {path} HTTP/1.1"));
    }
    assert_eq!(started(&scene.rest), sent);
    assert_eq!(started(&scene.rpc), [""; 0]);
}

#[test]
fn irregular_paths_are_refused_logged_and_counted_where_the_key_says_so() {
    let scene = scene("reject");
    for (method, path, owner) in IRREGULAR {
        let answer = scene.proxy.rest(method, path, &[], "");
        assert_eq!(answer.status(), 400, "{method} {path}: {answer:?}");
        let (reason, words) = problem(&answer);
        assert_eq!(reason, "irregular_path", "{path}");
        assert!(words.contains(owner), "{path}: {words}");
    }
    assert_eq!(started(&scene.rest), [""; 0]);
    assert_eq!(started(&scene.rpc), [""; 0]);
    let pieces = ["path=/api%2fitems", "irregular_path", "status=400"];
    scene.proxy.log_line(&pieces);
    let labels = ["reason", "blame", "side"];
    let metrics = scene.proxy.metrics();
    let counted = metrics.table("dualgauge_failures_total", &labels);
    assert_eq!(
        counted["irregular_path client rest"],
        IRREGULAR.len() as f64
    );
}

#[test]
fn other_paths_and_routes_are_served_where_irregular_ones_are_refused() {
    let scene = scene("reject");
    for (method, path) in OTHERS {
        let answer = scene.proxy.rest(method, path, &[], "");
        assert_eq!(body_of(&answer, 200), r#""old""#, "{method} {path}");
    }
    for (method, path) in [("GET", "/%61pi/items"), ("DELETE", "/api/items/A%2fB")] {
        let answer = scene.proxy.rest(method, path, &[], "");
        assert_eq!(body_of(&answer, 200), r#""old""#, "{method} {path}");
    }
    let answer = scene.proxy.rpc(call("none", "{}"));
    assert_eq!(answer.json()["result"], "new");
}

#[test]
fn a_request_for_a_websocket_at_an_irregular_path_is_refused() {
    let scene = scene("reject");
    for path in ["/API/items", "/rpc%00", "/Rpc"] {
        let mut wire = scene.proxy.connect();
        wire.send(format!(
            "GET {path} HTTP/1.1\r\nHost: proxy.example\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        ));
        let answer = wire.read_answer_to("GET");
        assert_eq!(answer.status(), 400, "{path}: {answer:?}");
        assert_eq!(problem(&answer).0, "irregular_path", "{path}");
    }
    assert_eq!(started(&scene.rest), [""; 0]);
    assert_eq!(started(&scene.rpc), [""; 0]);
}
