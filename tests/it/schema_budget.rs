//! Checks against a schema of a route: they end soon, and their memory counts in `limits.memory`.

use crate::scene::{before_rest, before_rpc, call, json, problem, rpc_failure, saying};
use crate::support::{Upstream, eventually, program, run_to_end};

/// Conditions of `and`, `or`, `not` and leaves, for params and results.
const CONDITIONS: &str = r##"
[[route]]
name = "search"
rest = "POST /search"
rpc = "search"
[route.schema.params]
properties.filter = { "$ref" = "#/$defs/condition" }
[route.schema.params."$defs".condition]
anyOf = [
  { type = "object", required = ["and"], properties = { and = { type = "array", items = { "$ref" = "#/$defs/condition" } } } },
  { type = "object", required = ["or"], properties = { or = { type = "array", items = { "$ref" = "#/$defs/condition" } } } },
  { type = "object", required = ["not"], properties = { not = { "$ref" = "#/$defs/condition" } } },
  { type = "object", required = ["field"], properties = { field = { type = "string" } } },
]
[route.schema.result]
"$ref" = "#/$defs/condition"
[route.schema.result."$defs".condition]
anyOf = [
  { type = "object", required = ["and"], properties = { and = { type = "array", items = { "$ref" = "#/$defs/condition" } } } },
  { type = "object", required = ["not"], properties = { not = { "$ref" = "#/$defs/condition" } } },
  { type = "object", required = ["field"], properties = { field = { type = "string" } } },
]
"##;

/// A condition that does not fit, in about 320 bytes.
fn unfit() -> String {
    let (and, not) = (r#"{"and":["#.repeat(17), r#"{"not":"#.repeat(17));
    format!("{and}{not}1{}{}", "}".repeat(17), "]}".repeat(17))
}

#[test]
fn params_that_do_not_fit_a_recursive_schema_are_refused_at_once() {
    let params = format!(r#"{{"filter":{}}}"#, unfit());
    assert!(params.len() < 330, "{}", params.len());
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, CONDITIONS);
    let (reason, detail) = problem(&proxy.rest("POST", "/search", &[], &params));
    assert_eq!(reason, "invalid_params", "{detail}");
    assert!(detail.len() < 300, "{detail}");
    upstream.expect_no_connection();
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, CONDITIONS);
    let said = proxy.rpc(call("search", &params)).json();
    assert_eq!(rpc_failure(&said), (-32602, "invalid_params"));
    upstream.expect_no_connection();
}

#[test]
fn a_result_that_does_not_fit_a_recursive_schema_is_refused_at_once() {
    let upstream = Upstream::answering(json(unfit()));
    let proxy = before_rest(&upstream, CONDITIONS);
    let said = proxy.rpc(call("search", "{}")).json();
    assert_eq!(rpc_failure(&said).1, "upstream_invalid");
    let upstream = saying(r#""result":{"not":{"not":{"not":{"and":[{"not":{"field":7}}]}}}}"#);
    let proxy = before_rpc(&upstream, CONDITIONS);
    let (reason, detail) = problem(&proxy.rest("POST", "/search", &[], "{}"));
    assert_eq!(reason, "upstream_invalid", "{detail}");
}

/// A route whose schema asks each item for one of many members.
fn costly() -> String {
    let names: Vec<String> = (0..400)
        .map(|name| format!("{{ required = [\"{name}\"] }}"))
        .collect();
    let items = format!("{{ items = {{ anyOf = [{}] }} }}", names.join(", "));
    format!(
        "[[route]]\nname = \"c\"\nrest = \"POST /c\"\nrpc = \"c\"\n\
         schema = {{ params = {{ properties = {{ all = {items} }} }}, result = {items} }}\n"
    )
}

fn many() -> String {
    format!("[{}{{}}]", r#"{"399":1},"#.repeat(4_000))
}

#[test]
fn params_whose_check_takes_too_many_steps_are_refused() {
    let params = format!(r#"{{"all":{}}}"#, many());
    let upstream = Upstream::start();
    let proxy = before_rpc(&upstream, &costly());
    let refused = proxy.rest("POST", "/c", &[], &params);
    assert_eq!(refused.status(), 422);
    let (reason, detail) = problem(&refused);
    assert_eq!(reason, "schema_too_costly", "{detail}");
    let upstream = Upstream::start();
    let proxy = before_rest(&upstream, &costly());
    let said = proxy.rpc(call("c", &params)).json();
    assert_eq!(rpc_failure(&said), (-31080, "schema_too_costly"));
    proxy.log_line(&["reason=schema_too_costly", "blame=client"]);
}

#[test]
fn a_result_whose_check_takes_too_many_steps_is_refused() {
    let upstream = Upstream::answering(json(many()));
    let proxy = before_rest(&upstream, &costly());
    let said = proxy.rpc(call("c", "{}")).json();
    assert_eq!(rpc_failure(&said), (-31081, "upstream_too_costly"));
    proxy.log_line(&["reason=upstream_too_costly", "blame=upstream"]);
}

#[test]
fn a_check_without_room_for_its_memory_is_refused() {
    let route = "[limits]\nmemory = \"1MiB\"\n[[route]]\nname = \"c\"\nrest = \"POST /c\"\nrpc = \"c\"\n\
        schema = { params = { type = \"object\" }, result = { type = \"array\" } }\n";
    let values = format!("[{}0]", "{},".repeat(60_000));
    let upstream = Upstream::answering(json(values.clone()));
    let proxy = before_rest(&upstream, route);
    let refused = proxy.rpc(call("c", &format!(r#"{{"all":{values}}}"#)));
    assert_eq!(rpc_failure(&refused.json()), (-31043, "memory_full"));
    let refused = proxy.rpc(call("c", "{}"));
    assert_eq!(
        rpc_failure(&refused.json()),
        (-31043, "memory_full"),
        "a result"
    );
    upstream.request();
    eventually("memory is given back", || {
        (proxy.metrics().value("dualgauge_buffered_bytes") == 0.0).then_some(())
    });
}

#[test]
fn a_schema_that_refers_only_to_itself_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dualgauge.toml");
    let text = "[upstream.old]\nside = 'rest'\nurl = 'http://127.0.0.1:1'\n\
        [[route]]\nname = 'a'\nrest = 'POST /a'\nrpc = 'a'\nschema.params = { '$ref' = '#' }\n";
    std::fs::write(&file, text).unwrap();
    let ended = run_to_end(program(&["check", "--config", file.to_str().unwrap()]));
    let said = ended.errors + &ended.output;
    assert_eq!(ended.code, Some(1), "{said}");
    for wanted in [
        "schema.params",
        "refers to itself without going down into the value",
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}
