//! A route table drafted from an access log, which the program then checks and serves.

mod shipped;

use std::fs;

use tempfile::TempDir;

use crate::scene::{json, json_with};
use crate::support::{Proxy, Upstream, both, program, run_to_end};

const LOG: &str = r#"10.0.0.1 - - [10/Oct/2026:13:55:36 -0700] "GET /items/7?full=true HTTP/1.1" 200 2326 "-" "curl/8"
10.0.0.1 - - [10/Oct/2026:13:55:37 -0700] "GET /items/8?full=false HTTP/1.1" 200 2326 "-" "curl/8"
{"request_method":"POST","uri":"/items","status":201}
"#;

#[test]
fn an_access_log_becomes_a_table_that_serves_its_calls() {
    let folder = TempDir::new().unwrap();
    let (log, table) = (
        folder.path().join("access.log"),
        folder.path().join("routes.toml"),
    );
    fs::write(&log, LOG).unwrap();
    let server = Upstream::answering(json("{}"));
    let before = Proxy::start(&format!(
        "{}[[route]]\nname = \"other\"\nrest = \"GET /items/{{id}}/more\"\nrpc = \"other\"\n",
        both(&server, &server)
    ));
    before.rest("GET", "/items/7", &[], "");
    let admin = format!("http://{}", before.admin());
    let arguments = [
        "learn",
        log.to_str().unwrap(),
        "--admin",
        &admin,
        "--write",
        table.to_str().unwrap(),
    ];
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [
        "used: 4 REST calls, 0 RPC calls",
        "by prefix:\n  /items: 1",
        "2 of REST alone",
    ] {
        assert!(ended.errors.contains(said), "{said}: {ended:?}");
    }
    // A table that exists is kept.
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.errors.contains("already exists"), "{ended:?}");

    let routes = fs::read_to_string(&table).unwrap();
    let schema = routes
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("#:schema "));
    assert!(table.parent().unwrap().join(schema.unwrap()).exists());
    assert!(
        routes.contains("# guess: `id` varies, type integer"),
        "{routes}"
    );
    let proxy = Proxy::start(&format!("{}{routes}", both(&server, &server)));
    proxy.rest("GET", "/items/9?full=true", &[], "");
    proxy.rest(
        "POST",
        "/items",
        &[("content-type", "application/json")],
        r#"{"a":1}"#,
    );
    proxy.log_line(&["method=GET", "route=items.get", "status=200"]);
    proxy.log_line(&["method=POST", "route=items.create", "status=200"]);
}

/// Calls without a route that the server knows.
const UNROUTED: [(&str, &str, &str); 4] = [
    ("GET", "/orders/7?page=2&q=secret", ""),
    ("GET", "/orders/8?page=3", ""),
    ("GET", "/users/alice-1234/files", ""),
    ("POST", "/orders", "{}"),
];

fn send(proxy: &Proxy, calls: &[(&str, &str, &str)]) {
    for (method, target, body) in calls {
        let headers = [("content-type", "application/json")];
        proxy.rest(method, target, &headers, body);
    }
}

/// Returns the method, path and number of the calls without a route.
fn unrouted(proxy: &Proxy) -> Vec<String> {
    let told = proxy.ask("GET", "/api/v1/unrouted", "").json();
    assert!(!told.to_string().contains("secret"), "{told}");
    let paths = told["paths"].as_array().unwrap().iter();
    let shown = paths.map(|path| format!("{} {} {}", path["method"], path["path"], path["calls"]));
    shown.map(|line| line.replace('"', "")).collect()
}

#[test]
fn calls_without_a_route_that_a_proxy_has_counted_become_routes() {
    let folder = TempDir::new().unwrap();
    let table = folder.path().join("routes.toml");
    let server = Upstream::serving(|request| match request.head.start.contains("unknown") {
        true => json_with("404 Not Found", "{}"),
        false => json("{}"),
    });
    let before = Proxy::start(&format!(
        "{}[[route]]\nname = \"items\"\nrest = \"GET /items/{{id}}\"\nrpc = \"items\"\n",
        both(&server, &server)
    ));
    send(&before, &UNROUTED);
    send(
        &before,
        &[("GET", "/unknown/9", ""), ("GET", "/items/9", "")],
    );
    let paths = [
        "GET /orders/{integer} 2",
        "GET /users/{string}/files 1",
        "POST /orders 1",
    ];
    assert_eq!(unrouted(&before), paths);
    before.rest("OPTIONS", "/orders", &[], "");
    before.rest("HEAD", "/orders", &[], "");
    let metrics = before.metrics();
    let left_out = metrics.value("dualgauge_unrouted_calls_left_out_total");
    assert_eq!(
        (
            metrics.value("dualgauge_unrouted_calls_remembered"),
            left_out
        ),
        (3.0, 2.0)
    );
    let admin = format!("http://{}", before.admin());
    let arguments = [
        "learn",
        "--admin",
        &admin,
        "--write",
        table.to_str().unwrap(),
    ];
    let ended = run_to_end(program(&arguments));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.errors.contains("used: 4 REST calls"), "{ended:?}");
    let routes = fs::read_to_string(&table).unwrap();
    for said in [
        "# guess: `id` varies, type integer",
        "# guess: `page` is required, its type is not known",
        "# guess: `q` is optional, its type is not known: in 1 of 2 calls",
        "# guess: from 2 observed calls",
    ] {
        assert!(routes.contains(said), "{said}\n{routes}");
    }
    let proxy = Proxy::start(&format!("{}{routes}", both(&server, &server)));
    send(&proxy, &UNROUTED);
    proxy.log_line(&["method=GET", "path=/orders/7", "route=orders.get"]);
    proxy.log_line(&["method=POST", "path=/orders", "route=orders.create"]);
    assert!(unrouted(&proxy).is_empty());
}

#[test]
fn messages_that_are_left_out_are_counted_by_their_reason() {
    let folder = TempDir::new().unwrap();
    let recording = folder.path().join("calls.jsonl");
    let mut lines = vec![
        r#"{"format":"dualgauge-recording","version":1,"created":"2026-06-30T12:00:00.000Z","program":"dualgauge 0.1.0"}"#
            .to_owned(),
    ];
    for (side, target, body) in [
        (
            "rpc",
            "/rpc",
            r#"{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}"#,
        ),
        (
            "rpc",
            "/rpc",
            r#"{"jsonrpc":"2.0","id":2,"method":"item.get","params":{"id":7}}"#,
        ),
        ("rest", "/items", r#"{"a":1}"#),
        ("rest", "/rpc", r#"{"command":"get_item","request_id":1}"#),
        (
            "rest",
            "/old",
            r#"{"method":"get_item","arguments":{},"tag":3}"#,
        ),
    ] {
        lines.push(format!(
            r#"{{"time":"2026-06-30T12:00:01.000Z","side":"{side}","reason":"unrouted","request":{{"method":"POST","target":"{target}","body":{{"json":{body}}}}},"complete":true}}"#
        ));
    }
    fs::write(&recording, lines.join("\n") + "\n").unwrap();
    let ended = run_to_end(program(&["learn", recording.to_str().unwrap()]));
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for said in [
        "used: 1 REST call, 2 RPC calls",
        "left out 2 calls: a message of an old RPC dialect",
        "left out 1 call: a method of the protocol itself",
    ] {
        assert!(ended.errors.contains(said), "{said}: {ended:?}");
    }
}
