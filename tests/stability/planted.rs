//! Changes that the list notices, planted into the documents of the repository.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::files::add_members;
use super::names::{add_api, add_part, read_json};

/// Adds the lines of a document.
type Add = fn(&Value, &mut BTreeSet<String>);

fn add_keys(schema: &Value, found: &mut BTreeSet<String>) {
    add_part(schema, "key ", found);
}

fn add_call(call: &Value, found: &mut BTreeSet<String>) {
    add_members(call, "recording call", found);
}

/// Replaces the value at a JSON Pointer, or removes it.
fn planted(document: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut changed = document.clone();
    if let Some(value) = value {
        *changed.pointer_mut(pointer).unwrap() = value;
        return changed;
    }
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = changed.pointer_mut(parent).unwrap();
    let removed = match parent.as_array_mut() {
        Some(items) => Some(items.remove(key.parse().unwrap())),
        None => parent.as_object_mut().unwrap().remove(key),
    };
    assert!(removed.is_some(), "{pointer}");
    changed
}

/// Checks that a change removes and adds these lines, and leaves all others.
fn check(add: Add, before: &Value, after: &Value, removed: &[&str], added: &[&str]) {
    let (mut old, mut new) = (BTreeSet::new(), BTreeSet::new());
    add(before, &mut old);
    add(after, &mut new);
    assert_eq!(Vec::from_iter(old.difference(&new)), removed);
    assert_eq!(Vec::from_iter(new.difference(&old)), added);
}

#[test]
fn changes_of_keys_are_noticed() {
    let keys = read_json("config/schema/dualgauge.schema.json");
    let flags = read_json("config/schema/flags.schema.json");
    for (schema, pointer, value, removed, added) in [
        (
            &flags,
            "/properties/flag/items/properties/side/enum/0",
            None,
            &[r#"key flag[].side enum "rest""#][..],
            &[][..],
        ),
        (
            &flags,
            "/properties/flag/items/properties/guard/properties/failure_delta/anyOf/1/const",
            Some(json!("none")),
            &[r#"key flag[].guard.failure_delta const "off""#],
            &[r#"key flag[].guard.failure_delta const "none""#],
        ),
        (
            &keys,
            "/properties/admin/properties/address/type",
            Some(json!("integer")),
            &[r#"key admin.address type "string""#],
            &[r#"key admin.address type "integer""#],
        ),
        (
            &keys,
            "/properties/admin/properties/address/default",
            Some(json!("127.0.0.1:9091")),
            &[r#"key admin.address default "127.0.0.1:9090""#],
            &[r#"key admin.address default "127.0.0.1:9091""#],
        ),
        (
            &keys,
            "/properties/rollout/properties/source/required/0",
            None,
            &["key rollout.source.url required"],
            &[],
        ),
        (
            &keys,
            "/properties/rollout/additionalProperties",
            Some(json!(true)),
            &["key rollout additionalProperties false"],
            &["key rollout additionalProperties true"],
        ),
    ] {
        let changed = planted(schema, pointer, value);
        check(add_keys, schema, &changed, removed, added);
    }
}

#[test]
fn changes_of_the_api_are_noticed() {
    let api = read_json("src/server/admin/admin.json");
    for (pointer, value, removed, added) in [
        (
            "/components/schemas/Flag/properties/tripped/oneOf/0/properties/reason",
            None,
            &[
                "member Flag.tripped.reason",
                r#"member Flag.tripped.reason type "string""#,
            ][..],
            &[][..],
        ),
        (
            "/components/schemas/Flag/properties/stage/enum/4",
            None,
            &[r#"member Flag.stage enum "retired""#],
            &[],
        ),
        (
            "/paths/~1api~1v1~1flags/get/parameters/0",
            None,
            &[
                "api GET /api/v1/flags query.search",
                "api GET /api/v1/flags query.search required false",
                r#"api GET /api/v1/flags query.search type "string""#,
            ],
            &[],
        ),
        (
            "/paths/~1api~1v1~1flags/get/parameters/1/schema/default",
            Some(json!(1)),
            &["api GET /api/v1/flags query.offset default 0"],
            &["api GET /api/v1/flags query.offset default 1"],
        ),
        (
            "/paths/~1api~1v1~1clients/get/responses/200/content/application~1json/schema/properties\
             /total/type",
            Some(json!("string")),
            &[r#"api GET /api/v1/clients 200.application/json.total type "integer""#],
            &[r#"api GET /api/v1/clients 200.application/json.total type "string""#],
        ),
        (
            "/paths/~1api~1v1~1flags~1{name}/put/requestBody/required",
            Some(json!(false)),
            &["api PUT /api/v1/flags/{name} body required true"],
            &["api PUT /api/v1/flags/{name} body required false"],
        ),
        (
            "/components/responses/Problem/content/application~1problem+json/schema/$ref",
            Some(json!("#/components/schemas/Flag")),
            &[
                r##"responses Problem.application/problem+json $ref "#/components/schemas/Problem""##,
            ],
            &[r##"responses Problem.application/problem+json $ref "#/components/schemas/Flag""##],
        ),
    ] {
        let changed = planted(&api, pointer, value);
        check(add_api, &api, &changed, removed, added);
    }
}

#[test]
fn a_schema_that_refers_to_itself_is_listed_once() {
    let node = json!({"properties": {"next": {"$ref": "#/$defs/node"}}});
    let schema =
        json!({"$defs": {"node": node}, "properties": {"first": {"$ref": "#/$defs/node"}}});
    let mut found = BTreeSet::new();
    add_keys(&schema, &mut found);
    let lines = [
        "key $defs.node",
        "key $defs.node.next",
        r##"key $defs.node.next $ref "#/$defs/node""##,
        "key first",
        r##"key first $ref "#/$defs/node""##,
    ];
    assert_eq!(Vec::from_iter(found), lines);
}

#[test]
fn a_missing_member_of_a_file_is_noticed() {
    let call = json!({"side": "rest", "response": {"latency_us": 1, "headers": [["a", "b"]]}});
    let removed = planted(&call, "/response/latency_us", None);
    let lines = [
        "recording call.response.latency_us",
        r#"recording call.response.latency_us type "integer""#,
    ];
    check(add_call, &call, &removed, &lines, &[]);
    let retyped = planted(&call, "/side", Some(json!(1)));
    let (string, integer) = (
        [r#"recording call.side type "string""#],
        [r#"recording call.side type "integer""#],
    );
    check(add_call, &call, &retyped, &string, &integer);
}
