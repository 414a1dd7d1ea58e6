//! The laws of a drafted REST API for any bytes. Used for fuzzing, and by the test that runs its corpus.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{RestApiOptions, draft_rest_api};

/// The keys of a drafted route.
const KEYS: [&str; 13] = [
    "body",
    "description",
    "effect",
    "from",
    "name",
    "params",
    "rest",
    "result",
    "rpc",
    "schema.params",
    "schema.result",
    "schema.validate",
    "summary",
];

/// Drafts the API of any bytes and checks that each operation has one route, that no two routes have the same call or
/// the same name, and that no text of a tool leaves the value that it is in.
///
/// # Panics
/// If a law does not hold.
pub fn check_any_list(data: &[u8]) {
    let Ok(list) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let options = RestApiOptions {
        reserved: vec![("POST", "/mcp"), ("GET", "/docs")],
    };
    let Ok(api) = draft_rest_api(&list, &options) else {
        return;
    };
    let mut routes = 0;
    let mut calls = BTreeSet::new();
    let mut names = BTreeSet::new();
    let lines = api
        .routes
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    for line in lines {
        if line == "[[route]]" {
            routes += 1;
            continue;
        }
        let (key, value) = line.split_once(" = ").unwrap_or_default();
        assert!(KEYS.contains(&key), "a text has left its value: {line}");
        check_value(value);
        match key {
            "rest" => assert!(calls.insert(value.to_owned()), "two routes have {line}"),
            "name" => assert!(names.insert(value.to_owned()), "two routes have {line}"),
            _ => {}
        }
    }
    assert_eq!(routes, api.operations.len());
    assert_eq!((calls.len(), names.len()), (routes, routes));
    for operation in &api.operations {
        assert!(operation.target.starts_with('/'), "{operation:?}");
        assert!(!operation.summary.contains('\n'), "{operation:?}");
    }
}

/// Checks that a string of TOML ends where its line ends.
fn check_value(value: &str) {
    if value.starts_with('"') {
        let read: Result<String, _> = serde_json::from_str(value);
        assert!(read.is_ok(), "not one string: {value}");
    } else if let Some(rest) = value.strip_prefix('\'') {
        let inside = rest.strip_suffix('\'').unwrap_or_default();
        assert!(!inside.contains('\''), "not one string: {value}");
        let read: Result<Value, _> = serde_json::from_str(inside);
        assert!(read.is_ok(), "no JSON: {value}");
    }
}
