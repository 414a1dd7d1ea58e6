//! Odoo: clients of its JSON-RPC services before a server that has only JSON-2, and clients of JSON-2 before a server that
//! has only these services.

use super::explained;
use super::imitations::{Migration, PYTHON};

const SERVICES: Migration<'_> = Migration {
    kit: "odoo",
    environment: PYTHON,
    client: "odoo.py",
    server: "odoo_server.py",
    arguments: &[],
    own: "jsonrpc",
    other: "json2",
    replaced: &|line, url| {
        let (_, value) = line.split_once(" = ").filter(|(key, _)| *key == "url")?;
        let path = if value.contains("/jsonrpc") {
            "/jsonrpc"
        } else {
            ""
        };
        Some(format!("url = \"{url}{path}\""))
    },
    upstream: None,
    uncalled: &[],
};

#[test]
#[ignore = "needs .ci/install-kits"]
fn odoorpc_gets_the_results_of_json_rpc_from_json_2() {
    SERVICES.run();
}

#[test]
#[ignore = "needs .ci/install-kits"]
fn clients_of_json_2_get_its_results_from_json_rpc() {
    let replaced = |line: &str, url: &str| {
        let back = r#"default = { rest = "translate", rpc = "passthrough" }"#;
        let is_flags = line.starts_with("flags = ");
        is_flags
            .then(|| back.to_owned())
            .or_else(|| (SERVICES.replaced)(line, url))
    };
    Migration {
        client: "odoo_json2.py",
        own: "json2",
        other: "jsonrpc",
        replaced: &replaced,
        // Other spellings of the calls of other routes, which only JSON-RPC clients use.
        uncalled: &["access", "create.one", "login", "name_search.domain"],
        ..SERVICES
    }
    .run();
}

#[test]
fn services_without_a_route_pass() {
    let explain = |params: &str| {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"call","params":{params}}}"#);
        explained("odoo", &["-d", &call, "/jsonrpc"])
    };
    for params in [
        r#"{"service":"db","method":"drop","args":["secret","prod"]}"#,
        r#"{"service":"common","method":"about","args":[]}"#,
    ] {
        let found = explain(params);
        assert!(!found.contains("refused"), "{found}");
        assert!(
            found.contains("  decision   passthrough, unrouted"),
            "{found}"
        );
    }
    // No route has the names of these arguments.
    let args = r#"["prod",2,"k","res.partner","message_post",[7],"Hello"]"#;
    let found = explain(&format!(
        r#"{{"service":"object","method":"execute_kw","args":{args}}}"#
    ));
    assert!(found.contains("code -32602, invalid_params"), "{found}");
}
