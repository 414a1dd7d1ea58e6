//! Paths that are no route's, but that a server may take for one: a slash at the end, empty and dot segments, an empty
//! hole. They pass where the calls of that route pass for the client, and are refused where it is moved.

use std::fs;

use crate::scene::{Called, answer, body_of, call, json, problem, saying};
use crate::support::{Proxy, Upstream, both, program, rpc_only, run_to_end};

const ROUTES: &str = r#"
[[client]]
name = "mover"
match = { header = { x-client = "mover" } }
[[route]]
name = "items.list"
rest = "GET /api/items"
rpc = "items/list"
[[route]]
name = "items.delete"
rest = "DELETE /api/items/{id}"
rpc = "items/delete"
[[route]]
name = "users.list"
rest = "GET /api/users/"
rpc = "users/list"
[[route]]
name = "users.get"
rest = "GET /api/users/{id}/"
rpc = "users/get"
[[route]]
name = "users.raw"
rest = "GET /api/users/{id}"
rpc = "users/raw"
[[stream]]
name = "events"
rest = "GET /api/events"
rpc = "GET /sse"
"#;

/// Calls of no route, and the route that a server may take them for.
const NEAR: [(&str, &str, &str); 10] = [
    ("GET", "/api/items/", "items.list"),
    ("GET", "/api//items", "items.list"),
    ("GET", "/x/../api/items", "items.list"),
    ("GET", "/api/./items/", "items.list"),
    ("DELETE", "/api/items/", "items.delete"),
    ("DELETE", "/api/items//", "items.delete"),
    ("DELETE", "/api/items/7/", "items.delete"),
    ("DELETE", "/api/items/7/..", "items.delete"),
    ("GET", "/api/users", "users.list"),
    ("GET", "/api/events/", "events"),
];

const MOVER: [(&str, &str); 1] = [("X-Client", "mover")];

struct Scene {
    rest: Upstream,
    rpc: Upstream,
    proxy: Proxy,
}

/// Everybody passes through but the client `mover`, who has this stage.
fn scene(stage: &str) -> Scene {
    let rest = Upstream::answering(json(r#""old""#));
    let rpc = saying(r#""result":"new""#);
    let config = format!("{}{ROUTES}", both(&rest, &rpc));
    let flags = format!("[[flag]]\nname = \"f\"\nclient = \"mover\"\nstage = \"{stage}\"\n");
    let proxy = Proxy::start_with_flags(&config, &flags);
    Scene { rest, rpc, proxy }
}

fn started(upstream: &Upstream) -> Vec<String> {
    let requests = upstream.requests().into_iter();
    requests.map(|request| request.head.start).collect()
}

#[test]
fn a_client_that_passes_through_gets_the_answer_of_the_server_at_every_near_path() {
    let scene = scene("translate");
    let mut sent = Vec::new();
    for (method, path, _) in NEAR {
        let answer = scene.proxy.rest(method, path, &[], "");
        assert_eq!(body_of(&answer, 200), r#""old""#, "{method} {path}");
        sent.push(format!("{method} {path} HTTP/1.1"));
    }
    assert_eq!(started(&scene.rest), sent);
    assert_eq!(started(&scene.rpc), [""; 0]);
    scene
        .proxy
        .log_line(&["path=/api/items/", "decision=unrouted"]);
}

#[test]
fn a_client_that_is_moved_is_refused_at_every_near_path() {
    for stage in ["translate", "retired", "verify"] {
        let scene = scene(stage);
        for (method, path, route) in NEAR {
            // A stream is never opened twice to compare.
            if route == "events" && stage == "verify" {
                continue;
            }
            let answer = scene.proxy.rest(method, path, &MOVER, "");
            assert_eq!(answer.status(), 400, "{stage} {method} {path}: {answer:?}");
            let (reason, words) = problem(&answer);
            assert_eq!(reason, "malformed_target", "{stage} {path}");
            assert!(words.contains(&format!("`{route}`")), "{path}: {words}");
        }
        assert_eq!(started(&scene.rest), [""; 0], "{stage}");
        assert_eq!(started(&scene.rpc), [""; 0], "{stage}");
    }
}

#[test]
fn a_client_in_shadow_passes_at_every_near_path() {
    let scene = scene("shadow");
    for (method, path, route) in NEAR {
        if route == "events" {
            continue;
        }
        let answer = scene.proxy.rest(method, path, &MOVER, "");
        assert_eq!(body_of(&answer, 200), r#""old""#, "{method} {path}");
    }
    assert_eq!(started(&scene.rpc), [""; 0]);
}

#[test]
fn only_the_route_that_is_near_decides() {
    let scene = Scene::of_flag("route = \"users.*\"\nstage = \"retired\"");
    let served = |method: &str, path: &str| scene.proxy.rest(method, path, &[], "").status();
    assert_eq!(served("GET", "/api/items/"), 200);
    assert_eq!(served("GET", "/api/users"), 400);
    assert_eq!(served("GET", "/api/users/"), 410);
    assert_eq!(served("GET", "/api//users/7"), 400);
    assert_eq!(served("POST", "/api/users"), 200);
}

impl Scene {
    fn of_flag(keys: &str) -> Scene {
        let (rest, rpc) = (Upstream::answering(json("{}")), saying(r#""result":{}"#));
        let flags = format!("[[flag]]\nname = \"f\"\n{keys}\n");
        let proxy = Proxy::start_with_flags(&format!("{}{ROUTES}", both(&rest, &rpc)), &flags);
        Scene { rest, rpc, proxy }
    }
}

#[test]
fn paths_with_and_without_a_slash_at_the_end_are_two_routes() {
    let scene = scene("translate");
    for (path, method, params) in [
        ("/api/users/", "users/list", "{}"),
        ("/api/users/7/", "users/get", r#"{"id":"7"}"#),
        ("/api/users/7", "users/raw", r#"{"id":"7"}"#),
    ] {
        let answer = scene.proxy.rest("GET", path, &MOVER, "");
        assert_eq!(body_of(&answer, 200), r#""new""#, "{path}");
        let requests = scene.rpc.requests();
        let called = Called::of(requests.last().unwrap());
        assert_eq!((called.method(), called.params()), (method, params));

        let json = [MOVER[0], ("Content-Type", "application/json")];
        let answer = scene
            .proxy
            .rest("POST", "/rpc", &json, call(method, params));
        assert_eq!(answer.json()["result"], "old", "{method}");
        let last = started(&scene.rest).pop().unwrap();
        assert_eq!(last, format!("GET {path} HTTP/1.1"));
    }
}

#[test]
fn an_rpc_path_works_with_a_slash_at_its_end() {
    let rest = Upstream::start();
    let rpc = Upstream::serving(|request| match request.body.is_empty() {
        true => answer("204 No Content", &[], ""),
        false => json(r#"{"jsonrpc":"2.0","id":1,"result":"new"}"#),
    });
    let proxy = Proxy::start(&format!("{}{ROUTES}", both(&rest, &rpc)));
    let json = [("Content-Type", "application/json")];
    for path in ["/mcp/", "/rpc/", "/%6dcp/"] {
        let answer = proxy.rest("POST", path, &json, call("none", "{}"));
        assert_eq!(answer.json()["result"], "new", "{path}");
        assert_eq!(proxy.rest("GET", path, &[], "").status(), 204, "{path}");
    }
    let sent = ["POST /rpc HTTP/1.1", "GET /rpc HTTP/1.1"];
    assert_eq!(started(&rpc)[..2], sent);
    let answer = proxy.rest("POST", "//rpc", &json, call("none", "{}"));
    assert_eq!(answer.status(), 400);
    rest.expect_no_connection();

    let rpc = saying(r#""result":"new""#);
    let config = format!("{}[rpc]\npaths = [\"/v1/mcp/\"]\n", rpc_only(&rpc));
    let proxy = Proxy::start(&config);
    for path in ["/v1/mcp/", "/v1/mcp"] {
        let answer = proxy.rest("POST", path, &json, call("none", "{}"));
        assert_eq!(answer.json()["result"], "new", "{path}");
    }
}

#[test]
fn a_path_that_ends_in_a_slash_is_imported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("api.json");
    let document = r#"{"openapi": "3.0.0", "paths": {
        "/api/0/items/": {"get": {"operationId": "listItems"}},
        "/api/0/items/{id}/": {"delete": {"operationId": "deleteItem"}}}}"#;
    fs::write(&file, document).unwrap();
    let ended = run_to_end(program(&["import", "--openapi", file.to_str().unwrap()]));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    for line in [
        r#"rest = "GET /api/0/items/""#,
        r#"rest = "DELETE /api/0/items/{id}/""#,
    ] {
        assert!(ended.output.contains(line), "{}", ended.output);
    }
    assert!(!ended.output.contains("No route"), "{}", ended.output);
}
