//! Documents for property tests.

use proptest::prelude::*;
use serde_json::{Value, json};

/// Words that documents are made of, so that arbitrary JSON is understood now and then.
const WORDS: &[&str] = &[
    "openapi",
    "openrpc",
    "swagger",
    "paths",
    "methods",
    "tools",
    "servers",
    "url",
    "variables",
    "/",
    "/a",
    "/{x}",
    "/a/{x}:go",
    "get",
    "post",
    "delete",
    "parameters",
    "params",
    "name",
    "in",
    "path",
    "query",
    "header",
    "schema",
    "type",
    "object",
    "array",
    "string",
    "properties",
    "items",
    "required",
    "default",
    "enum",
    "const",
    "allOf",
    "oneOf",
    "anyOf",
    "$ref",
    "#",
    "#/paths",
    "#/paths/~1a",
    "requestBody",
    "content",
    "application/json",
    "responses",
    "200",
    "201",
    "operationId",
    "inputSchema",
    "annotations",
    "paramStructure",
    "by-position",
    "3.0.0",
    "1.3.2",
    "...",
    "now",
    "_",
    "{",
    "}",
    "",
    "é",
    "\u{7f}",
    "\"",
    "a b",
    "1",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(WORDS).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

/// Any JSON, with the words of documents.
pub(super) fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const KINDS: &[&str] = &[
    "string", "integer", "number", "boolean", "array", "object", "null",
];

fn schema() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => prop::sample::select(KINDS).prop_map(|kind| json!({ "type": kind })),
        1 => prop::collection::vec(word(), 0..4).prop_map(|words| json!({ "enum": words })),
        1 => (word(), any_json()).prop_map(|(name, default)| {
            json!({ "type": "object", "properties": { name: { "type": "string" } }, "default": default })
        }),
        1 => word().prop_map(|default| json!({ "type": "string", "default": default })),
    ]
}

fn parameter() -> impl Strategy<Value = Value> {
    let location = prop::sample::select(&["path", "query", "header", "cookie"][..]);
    (word(), location, any::<bool>(), schema()).prop_map(|(name, location, required, schema)| {
        json!({ "name": name, "in": location, "required": required, "schema": schema })
    })
}

fn operation() -> impl Strategy<Value = Value> {
    let id = prop::option::of(word());
    let parameters = prop::collection::vec(parameter(), 0..4);
    let kind = prop::sample::select(&["application/json", "text/plain", "image/png"][..]);
    let status = prop::sample::select(&["200", "201", "204", "2XX", "default", "400"][..]);
    let header = (prop::option::of(word()), any::<bool>(), schema()).prop_map(
        |(description, required, schema)| json!({ "description": description, "required": required, "schema": schema }),
    );
    let header_name = prop::sample::select(&["ETag", "link", "X-Total", "content-type"][..]);
    let headers = prop::collection::btree_map(header_name, header, 0..2);
    let response = (prop::option::of(kind), prop::option::of(word()), headers).prop_map(
        |(kind, description, headers)| {
            let mut response = json!({ "description": description, "headers": headers });
            if let Some(kind) = kind {
                response["content"] = json!({ kind: {} });
            }
            response
        },
    );
    let responses = prop::collection::btree_map(status, response, 0..3);
    let body = prop::option::of((schema(), prop::option::of(word())));
    (id, parameters, body, responses).prop_map(|(id, parameters, body, responses)| {
        let mut operation = json!({ "parameters": parameters });
        operation["operationId"] = json!(id);
        operation["responses"] = json!(responses);
        if let Some((schema, description)) = body {
            let content = json!({ "application/json": { "schema": schema } });
            operation["requestBody"] = json!({ "content": content, "description": description });
        }
        operation
    })
}

/// A small OpenAPI document that is well-formed, with odd names.
pub fn api() -> impl Strategy<Value = Value> {
    let segment = prop_oneof![
        prop::sample::select(
            &[
                "pets",
                "toys",
                "a b",
                "v1",
                "{id}",
                "{x-y}",
                "{id}:go",
                "50%",
                "{id}.json",
                "{x-y}...{b}",
                "tx-{n}",
                "{a}:{b}",
                "{id}*",
                "{a}{b}",
            ][..]
        )
        .prop_map(str::to_owned),
        word(),
    ];
    let path =
        prop::collection::vec(segment, 0..4).prop_map(|parts| format!("/{}", parts.join("/")));
    let method = prop::sample::select(&["get", "put", "post", "patch", "delete"][..]);
    let item = prop::collection::btree_map(method, operation(), 1..3);
    prop::collection::btree_map(path, item, 1..5)
        .prop_map(|paths| json!({ "openapi": "3.1.0", "paths": paths }))
}

/// A small OpenRPC document of this kind.
pub fn rpc() -> impl Strategy<Value = Value> {
    let param = (word(), schema(), any::<bool>()).prop_map(
        |(name, schema, required)| json!({ "name": name, "schema": schema, "required": required }),
    );
    let structure = prop::sample::select(&["by-name", "by-position", "either"][..]);
    let name = prop_oneof![
        word(),
        Just("pets.list".to_owned()),
        Just("toys.get".to_owned())
    ];
    let method = (name, prop::collection::vec(param, 0..4), structure).prop_map(
        |(name, params, structure)| {
            json!({ "name": name, "params": params, "paramStructure": structure })
        },
    );
    prop::collection::vec(method, 1..5)
        .prop_map(|methods| json!({ "openrpc": "1.3.2", "methods": methods }))
}
