//! Observed calls as documents that `import` drafts: OpenAPI, OpenRPC and a list of tools, with the guesses in them.
//!
//! Used by `cli::learn`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::observed::{Content, Observed, RestCall, RpcCall};
use super::paths::{Segment, templates};
use super::shape::{Shape, is_data};
use crate::cli::plural::count;

/// The inferred documents.
#[derive(Debug)]
pub(super) struct Documents {
    pub(super) openapi: Value,
    pub(super) openrpc: Value,
    pub(super) tools: Value,
    /// The guesses on a REST operation, by its method and path, such as `GET /items/{id}`.
    pub(super) rest_guesses: BTreeMap<String, Vec<String>>,
    /// The guesses on an RPC method or a tool.
    pub(super) rpc_guesses: BTreeMap<String, Vec<String>>,
}

/// Infers the documents.
pub(super) fn infer(observed: &mut Observed) -> Documents {
    let mut rest_guesses = BTreeMap::new();
    let mut paths = Map::new();
    for (template, calls) in templates(&observed.rest) {
        let names = names(&template);
        let path = path(&template, &names);
        let mut by_method: BTreeMap<&str, Vec<&RestCall>> = BTreeMap::new();
        for call in calls {
            by_method.entry(&call.method).or_default().push(call);
        }
        let mut item = Map::new();
        for (method, calls) in by_method {
            let mut guesses = Vec::new();
            let operation = operation((&template, &names), &calls, &mut guesses);
            rest_guesses.insert(format!("{method} {path}"), guesses);
            item.insert(method.to_ascii_lowercase(), operation);
        }
        paths.insert(path, Value::Object(item));
    }
    let rpc = rpc(observed);
    Documents {
        openapi: json!({ "openapi": "3.1.0", "info": { "title": "observed calls", "version": "0" }, "paths": paths }),
        openrpc: json!({ "openrpc": "1.3.2", "info": { "title": "observed calls", "version": "0" }, "methods": rpc.methods }),
        tools: json!({ "tools": rpc.tools }),
        rest_guesses,
        rpc_guesses: rpc.guesses,
    }
}

/// Returns a name for each varying segment: the word before it, or `id` for the last one.
fn names(template: &[Segment]) -> Vec<Option<String>> {
    let last = template
        .iter()
        .rposition(|segment| *segment == Segment::Varies);
    let mut used: Vec<String> = Vec::new();
    let mut names = Vec::new();
    for (at, segment) in template.iter().enumerate() {
        let name = (*segment == Segment::Varies).then(|| {
            let before = at.checked_sub(1).and_then(|before| template.get(before));
            let wanted = match before {
                _ if Some(at) == last => "id".to_owned(),
                Some(Segment::Word(word)) => format!("{}_id", singular(word)),
                Some(Segment::Varies) | None => "part".to_owned(),
            };
            let mut name = wanted.clone();
            let mut number = 1;
            while used.contains(&name) {
                number += 1;
                name = format!("{wanted}{number}");
            }
            used.push(name.clone());
            name
        });
        names.push(name);
    }
    names
}

fn singular(word: &str) -> String {
    let word: String = word
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_lowercase()
            } else {
                '_'
            }
        })
        .collect();
    let word = word.trim_matches('_');
    let stem = match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    };
    match stem.starts_with(|c: char| c.is_ascii_alphabetic()) {
        true => stem,
        false => format!("part_{stem}"),
    }
}

fn path(template: &[Segment], names: &[Option<String>]) -> String {
    let segments = template
        .iter()
        .zip(names)
        .map(|(segment, name)| match (segment, name) {
            (Segment::Word(word), _) => word.clone(),
            (Segment::Varies, name) => format!("{{{}}}", name.as_deref().unwrap_or("id")),
        });
    format!("/{}", segments.collect::<Vec<_>>().join("/"))
}

fn operation(
    path: (&[Segment], &[Option<String>]),
    calls: &[&RestCall],
    guesses: &mut Vec<String>,
) -> Value {
    let (template, names) = path;
    let mut parameters = Vec::new();
    for (at, name) in names.iter().enumerate().take(template.len()) {
        let Some(name) = name else { continue };
        let values: Vec<&str> = calls
            .iter()
            .map(|call| call.segments[at].as_str())
            .collect();
        let kind = kind(&values);
        let values: BTreeSet<&str> = values.into_iter().collect();
        let values = count(values.len() as u64, "value");
        guesses.push(match calls.iter().any(|call| call.is_counted) {
            true => format!("`{name}` varies, type {kind}"),
            false => format!("`{name}` varies: {values}, type {kind}"),
        });
        parameters.push(
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } }),
        );
    }
    parameters.extend(query(calls, guesses));
    let mut operation = json!({ "parameters": parameters, "responses": responses(calls) });
    if let Some(body) = body(calls, guesses) {
        operation["requestBody"] = body;
    }
    guesses.push(format!("from {}", count(total(calls), "observed call")));
    operation
}

/// Returns the number of calls.
fn total(calls: &[&RestCall]) -> u64 {
    calls.iter().map(|call| call.times).sum()
}

/// Returns the JSON type of texts: integers only if each is written as the proxy writes it.
fn kind(values: &[&str]) -> &'static str {
    let is_integer = |text: &&str| {
        text.parse::<i64>()
            .is_ok_and(|number| number.to_string() == **text)
    };
    let is_boolean = |text: &&str| ["true", "false"].contains(text);
    if values.is_empty() {
        "string"
    } else if values.iter().all(is_integer) {
        "integer"
    } else if values.iter().all(is_boolean) {
        "boolean"
    } else {
        "string"
    }
}

fn query(calls: &[&RestCall], guesses: &mut Vec<String>) -> Vec<Value> {
    /// The most names; a query with more is not an API of names.
    const MOST: usize = 100;
    let mut names: BTreeMap<&str, (u64, Vec<&str>)> = BTreeMap::new();
    let mut repeated = Vec::new();
    let mut has_data = false;
    for call in calls {
        let mut own: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, value) in &call.query {
            if is_data(name) {
                has_data = true;
                continue;
            }
            *own.entry(name).or_default() += 1;
            let found = names.entry(name).or_default();
            found.1.push(value);
        }
        for (name, times) in own {
            if let Some(found) = names.get_mut(name) {
                found.0 += call.times;
            }
            if times > 1 {
                repeated.push(name);
            }
        }
    }
    if has_data {
        guesses.push("names of the query that look like ids or tokens are left out".to_owned());
    }
    if names.len() > MOST {
        guesses.push(format!(
            "the query has more than {MOST} names, which are left out"
        ));
        return Vec::new();
    }
    let calls_in_all = total(calls);
    let is_counted = calls.iter().any(|call| call.is_counted);
    let parameters = names.into_iter().map(|(name, (found, values))| {
        let kind = kind(&values);
        let is_required = found == calls_in_all;
        let known = match is_counted {
            true => "its type is not known".to_owned(),
            false => format!("type {kind}"),
        };
        guesses.push(match is_required {
            true => format!("`{name}` is required, {known}"),
            false => {
                format!("`{name}` is optional, {known}: in {found} of {calls_in_all} calls")
            }
        });
        let schema = match repeated.contains(&name) {
            true => json!({ "type": "array", "items": { "type": kind } }),
            false => json!({ "type": kind }),
        };
        json!({ "name": name, "in": "query", "required": is_required, "schema": schema })
    });
    parameters.collect()
}

fn body(calls: &[&RestCall], guesses: &mut Vec<String>) -> Option<Value> {
    let mut shape = Shape::default();
    let (mut empty, mut others, mut unknown) = (0, 0, 0);
    for call in calls {
        match &call.body {
            Content::Json(value) => shape.add(value),
            Content::Empty => empty += 1,
            Content::Other => others += 1,
            Content::Unknown => unknown += 1,
        }
    }
    if others > 0 {
        let calls = count(others, "call");
        guesses.push(format!(
            "the draft does not read the bodies of {calls}: they are not JSON"
        ));
    }
    let has_body = |call: &&RestCall| ["POST", "PUT", "PATCH"].contains(&call.method.as_str());
    if unknown > 0 && shape.seen() == 0 && calls.iter().all(has_body) {
        guesses.push("bodies are not in the source; any JSON is taken".to_owned());
        let content = json!({ "application/json": { "schema": {} } });
        return Some(json!({ "required": false, "content": content }));
    }
    if shape.seen() == 0 {
        return None;
    }
    let bodies = format!("{} of {} bodies", shape.seen(), calls.len());
    guesses.push(format!("the body is inferred from {bodies}"));
    Some(json!({
        "required": empty + others + unknown == 0,
        "content": { "application/json": { "schema": shape.schema() } },
    }))
}

/// Returns the responses whose content is known, by status.
fn responses(calls: &[&RestCall]) -> Value {
    let mut shapes: BTreeMap<u16, Option<Shape>> = BTreeMap::new();
    for call in calls {
        let Some(status) = call.status.filter(|status| *status >= 200) else {
            continue;
        };
        match &call.response {
            Content::Json(value) => {
                let shape = shapes.entry(status).or_default();
                shape.get_or_insert_default().add(value);
            }
            Content::Empty => {
                shapes.entry(status).or_default();
            }
            Content::Unknown | Content::Other => {}
        }
    }
    let responses = shapes.into_iter().map(|(status, shape)| {
        let response = match shape {
            Some(shape) => json!({
                "description": "observed",
                "content": { "application/json": { "schema": shape.schema() } },
            }),
            None => json!({ "description": "observed" }),
        };
        (status.to_string(), response)
    });
    Value::Object(responses.collect())
}

/// The methods and tools of RPC calls.
#[derive(Debug, Default)]
struct Rpc {
    methods: Vec<Value>,
    tools: Vec<Value>,
    guesses: BTreeMap<String, Vec<String>>,
}

fn rpc(observed: &mut Observed) -> Rpc {
    let mut methods: BTreeMap<String, Vec<&RpcCall>> = BTreeMap::new();
    let mut tools: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let is_mcp = observed
        .rpc
        .iter()
        .any(|call| is_tool_call(call) || call.method == "initialize");
    let mut protocol = 0;
    for call in &observed.rpc {
        if is_in_rest_api(&call.method, &observed.rest) {
            methods.entry(call.method.clone()).or_default().push(call);
        } else if is_tool_call(call) {
            let params = call.params.as_ref();
            let name = params.and_then(|params| params["name"].as_str());
            let arguments = params.and_then(|params| params.get("arguments"));
            let found = tools
                .entry(name.unwrap_or_default().to_owned())
                .or_default();
            found.push(arguments.cloned().unwrap_or_else(|| json!({})));
        } else if is_mcp || call.method.starts_with("rpc.") {
            protocol += 1;
        } else {
            methods.entry(call.method.clone()).or_default().push(call);
        }
    }
    let mut rpc = Rpc::default();
    for (name, calls) in methods {
        let mut guesses = Vec::new();
        rpc.methods.push(method(&name, &calls, &mut guesses));
        guesses.push(format!(
            "from {}",
            count(calls.len() as u64, "observed call")
        ));
        rpc.guesses.insert(name, guesses);
    }
    for (name, arguments) in tools {
        let mut shape = Shape::default();
        arguments.iter().for_each(|value| shape.add(value));
        let schema = match shape.is_plain_object() {
            true => shape.schema(),
            false => json!({ "type": "object" }),
        };
        let guess = format!(
            "the arguments are inferred from {}",
            count(arguments.len(), "observed call")
        );
        rpc.guesses.insert(name.clone(), vec![guess]);
        rpc.tools
            .push(json!({ "name": name, "inputSchema": schema }));
    }
    for _ in 0..protocol {
        observed.leave_out("a method of the protocol itself");
    }
    rpc
}

/// Returns true for a method of MCP tools with a REST path of its own: a path that ends in `tools/call` has the name of
/// the tool in its body, as the method has it in its params.
fn is_in_rest_api(method: &str, rest: &[RestCall]) -> bool {
    let ends = |call: &RestCall, end: &[&str]| {
        let segments = call.segments.iter().map(String::as_str);
        segments
            .rev()
            .zip(end.iter().rev().copied())
            .filter(|(one, other)| one == other)
            .count()
            == end.len()
    };
    match method {
        "tools/call" => rest.iter().any(|call| ends(call, &["tools", "call"])),
        "tools/list" => rest.iter().any(|call| {
            ends(call, &["tools", "list"]) || (call.method == "GET" && ends(call, &["tools"]))
        }),
        _ => false,
    }
}

fn is_tool_call(call: &RpcCall) -> bool {
    let name = call
        .params
        .as_ref()
        .and_then(|params| params["name"].as_str());
    call.method == "tools/call" && name.is_some()
}

fn method(name: &str, calls: &[&RpcCall], guesses: &mut Vec<String>) -> Value {
    let mut named = Shape::default();
    let mut positions: Vec<Shape> = Vec::new();
    let (mut lists, mut shortest) = (0_u64, usize::MAX);
    let mut result = Shape::default();
    for call in calls {
        match &call.params {
            Some(Value::Array(values)) => {
                lists += 1;
                shortest = shortest.min(values.len());
                for (at, value) in values.iter().enumerate().take(32) {
                    if positions.len() <= at {
                        positions.push(Shape::default());
                    }
                    positions[at].add(value);
                }
            }
            Some(value) => named.add(value),
            None => named.add(&json!({})),
        }
        if let Some(value) = &call.result {
            result.add(value);
        }
    }
    let by_position = lists > 0;
    let params: Vec<Value> = if by_position {
        let params = positions.iter().enumerate();
        guesses.push("params are by position; their names are not known".to_owned());
        params
            .map(|(at, shape)| json!({ "name": format!("param{}", at + 1), "required": at < shortest, "schema": shape.schema() }))
            .collect()
    } else {
        let params = named.members();
        params
            .map(|(name, shape, is_always)| {
                if !is_always {
                    guesses.push(format!(
                        "`{name}` is optional: in {} of {} calls",
                        shape.seen(),
                        calls.len()
                    ));
                }
                json!({ "name": name, "required": is_always, "schema": shape.schema() })
            })
            .collect()
    };
    let structure = if by_position {
        "by-position"
    } else {
        "by-name"
    };
    let mut method = json!({ "name": name, "paramStructure": structure, "params": params });
    if result.seen() > 0 {
        method["result"] = json!({ "name": "result", "schema": result.schema() });
    }
    method
}
