//! Names of methods for operations that have none.

use std::collections::BTreeSet;

use super::{drafted, json, named, rest, rpc};
use serde_json::Value;

/// The RPC methods of a draft, in its order.
fn methods(documents: impl IntoIterator<Item = (super::DocumentKind, Value)>) -> Vec<String> {
    let parsed: toml::Table = drafted(documents).toml.parse().unwrap();
    let routes = parsed["route"].as_array().unwrap().iter();
    routes
        .map(|route| route["rpc"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn operations_below_one_noun_get_distinct_names() {
    let paths = json!({
        "/users/{id}": { "get": {} },
        "/users/{id}/{section}": { "get": {} },
        "/v2/users/{id}": { "get": {}, "put": {}, "patch": {}, "trace": {} },
        "/{x}": { "get": {} },
        "/{y}/{z}": { "get": {} },
    });
    let found = methods([rest(paths)]);
    assert_eq!(
        found,
        [
            "users.get",
            "users.id.section.get",
            "users.id.get",
            "users.update",
            "users.patch",
            "users.trace",
            "root.get",
            "y.z.get",
        ]
    );
}

#[test]
fn a_number_distinguishes_equal_names() {
    let paths: serde_json::Map<String, Value> = (1..=40)
        .map(|version| (format!("/v{version}/users/{{id}}"), json!({ "get": {} })))
        .collect();
    let found = methods([rest(Value::Object(paths))]);
    let distinct: BTreeSet<&String> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (40, 40), "{found:?}");
    assert!(found.contains(&"users.id.get.2".to_owned()), "{found:?}");
}

#[test]
fn an_invented_name_is_no_name_that_the_documents_have() {
    let paths = json!({
        "/users/{id}": { "get": {} },
        "/x": { "get": { "operationId": "users.get" } },
        "/y/{id}": { "put": { "operationId": "z" } },
        "/z": { "get": { "operationId": "z" } },
    });
    let found = methods([rest(paths), rpc(named(&["users.id.get"]))]);
    assert_eq!(
        found,
        ["users.id.get.2", "users.get", "z", "z.get", "users.id.get"]
    );
}

#[test]
fn the_short_form_carries_params_that_differ_in_letter_case_only() {
    let param = |name: &str| json!({ "name": name, "schema": { "type": "string" } });
    let methods = json!([{ "name": "find", "params": [param("id"), param("ID")] }]);
    let toml = drafted([rpc(methods)]).toml;
    assert!(toml.contains("\nrpc = \"find\""), "{toml}");
}
