//! A route table drafted from an access log, which the program then checks and serves.

use std::fs;

use tempfile::TempDir;

use crate::scene::json;
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
        "used: 3 REST calls, 0 RPC calls",
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
        routes.contains("# guess: `id` varies: 2 values, type integer"),
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
