//! Pairs of observed operations under the rules of `weak_pair`.

use serde_json::{Value, json};

use super::{given, rest, rpc};
use crate::import::draft_observed;

/// Returns the pairs of observed operations, as `POST /a = b`.
fn paired(paths: Value, methods: Value) -> Vec<String> {
    let documents = [rest(paths), rpc(methods)].map(|(kind, document)| given(kind, document));
    let toml = draft_observed(&documents).unwrap().toml;
    let blocks = toml.split("\n\n");
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    let pairs = blocks.filter(|block| block.contains("# paired: "));
    let pairs =
        pairs.map(|block| format!("{} = {}", value(block, "rest = "), value(block, "rpc = ")));
    pairs.collect()
}

/// Returns an operation with these members in its body.
fn with_body(names: &[&str]) -> Value {
    let members = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })));
    let properties = Value::Object(members.collect());
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    json!({ "requestBody": { "required": true, "content": { "application/json": { "schema": schema } } } })
}

/// Returns an operation with these names in its path or its query.
fn with(place: &str, names: &[&str]) -> Value {
    let parameters = names.iter().map(|name| {
        json!({ "name": name, "in": place, "required": true, "schema": { "type": "string" } })
    });
    json!({ "parameters": parameters.collect::<Vec<_>>() })
}

fn method(name: &str, params: &[&str]) -> Value {
    let params = params
        .iter()
        .map(|name| json!({ "name": name, "required": true, "schema": { "type": "string" } }));
    json!({ "name": name, "params": params.collect::<Vec<_>>() })
}

#[test]
fn observed_operations_that_end_alike_and_have_the_same_values_are_pairs() {
    let found = paired(
        json!({
            "/api/shop/run": { "post": with_body(&["prompt", "mode"]) },
            "/api/shop/stop": { "post": with_body(&["session_id"]) },
            "/api/shop/sessions/messages": { "get": with("query", &["session_id"]) },
            "/tools/web_search": { "post": with_body(&["query"]) },
        }),
        json!([
            method("agent/run", &["prompt", "mode"]),
            method("agent/stop", &["session_id"]),
            method("session/messages", &["session_id"]),
            method("web_search", &["query"]),
        ]),
    );
    let wanted = [
        "GET /api/shop/sessions/messages?session_id={session_id:string} = session/messages",
        "POST /api/shop/run = agent/run",
        "POST /api/shop/stop = agent/stop",
        "POST /tools/web_search = web_search",
    ];
    let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
    found.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn observed_operations_with_other_values_words_or_effects_are_no_pairs() {
    for (why, paths, methods) in [
        (
            "other values",
            json!({ "/shop/run": { "post": with_body(&["prompt"]) } }),
            json!([method("agent/run", &["prompt", "mode"])]),
        ),
        (
            "no values",
            json!({ "/shop/run": { "post": {} } }),
            json!([method("agent/run", &[])]),
        ),
        (
            "a word that the other side knows",
            json!({
                "/items/search": { "post": with_body(&["q"]) },
                "/orders": { "get": {} },
            }),
            json!([method("orders.search", &["q"])]),
        ),
        (
            "a read that may become a change",
            json!({ "/users/{id}/session": { "get": with("path", &["id"]) } }),
            json!([method("revoke.session", &["id"])]),
        ),
        (
            "a deletion of an unknown verb",
            json!({ "/users/{id}/session": { "delete": with("path", &["id"]) } }),
            json!([method("admin.session", &["id"])]),
        ),
        (
            "two candidates",
            json!({
                "/shop/run": { "post": with_body(&["prompt"]) },
                "/store/run": { "post": with_body(&["prompt"]) },
            }),
            json!([method("agent/run", &["prompt"])]),
        ),
    ] {
        assert_eq!(paired(paths, methods), Vec::<String>::new(), "{why}");
    }
}

#[test]
fn an_observed_get_reads_what_a_method_gets_or_lists() {
    let paths = || json!({ "/items/hidden": { "get": {} } });
    let found = paired(paths(), json!([method("list_hidden_items", &[])]));
    assert_eq!(found, ["GET /items/hidden = list_hidden_items"]);
    let found = paired(paths(), json!([method("delete_hidden_items", &[])]));
    assert_eq!(found, Vec::<String>::new());
    let two = ["list_hidden_items", "enumerate_hidden_items"];
    let methods = two.map(|name| method(name, &[]));
    assert_eq!(paired(paths(), json!(methods)), Vec::<String>::new());
}
