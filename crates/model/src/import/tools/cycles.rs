//! Shared schemas that lead back to themselves without a value in between: no value could be checked against them, so
//! the last reference of such a loop is cut.
//!
//! Used by `import::tools`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::route::{SHARED, unescaped};

/// The keywords whose schemas apply to the same value.
const IN_PLACE: [&str; 8] = [
    "allOf", "anyOf", "oneOf", "not", "if", "then", "else", DEPENDENT,
];

/// A keyword with a map of such schemas.
const DEPENDENT: &str = "dependentSchemas";

/// Cuts every loop.
pub(super) fn cut(shared: &mut Map<String, Value>) {
    let names: Vec<String> = shared.keys().cloned().collect();
    let mut finished: BTreeSet<String> = BTreeSet::new();
    for name in names {
        visit(name, shared, &mut finished);
    }
}

/// Visits a schema and those that it leads to, depth first, with a stack of its own: chains may be long.
fn visit(start: String, shared: &mut Map<String, Value>, finished: &mut BTreeSet<String>) {
    let mut path: Vec<(String, Vec<String>)> = Vec::new();
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut next = Some(start);
    loop {
        if let Some(name) = next.take() {
            if finished.contains(&name) {
                continue_path(&mut path, &mut next, finished, &mut open);
            } else {
                let mut targets = BTreeSet::new();
                if let Some(schema) = shared.get_mut(&name) {
                    open.insert(name.clone());
                    remove(schema, &open);
                    collect(schema, &mut targets);
                }
                open.insert(name.clone());
                path.push((name, targets.into_iter().collect()));
                continue_path(&mut path, &mut next, finished, &mut open);
            }
        }
        if next.is_none() {
            return;
        }
    }
}

/// Chooses the next schema to visit, and closes those without further targets.
fn continue_path(
    path: &mut Vec<(String, Vec<String>)>,
    next: &mut Option<String>,
    finished: &mut BTreeSet<String>,
    open: &mut BTreeSet<String>,
) {
    while let Some((name, targets)) = path.last_mut() {
        if let Some(target) = targets.pop() {
            *next = Some(target);
            return;
        }
        open.remove(name);
        finished.insert(name.clone());
        path.pop();
    }
}

fn name_of(reference: &Value) -> Option<String> {
    reference.as_str()?.strip_prefix(SHARED).map(unescaped)
}

/// Removes the references to open schemas that apply to the same value.
fn remove(schema: &mut Value, open: &BTreeSet<String>) {
    let Value::Object(members) = schema else {
        return;
    };
    let target = members.get("$ref").and_then(name_of);
    if target.is_some_and(|target| open.contains(&target)) {
        members.remove("$ref");
    }
    for (name, part) in members
        .iter_mut()
        .filter(|(name, _)| IN_PLACE.contains(&name.as_str()))
    {
        match part {
            Value::Array(parts) => parts.iter_mut().for_each(|part| remove(part, open)),
            Value::Object(parts) if name == DEPENDENT => {
                parts.values_mut().for_each(|part| remove(part, open));
            }
            Value::Object(_) => remove(part, open),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn collect(schema: &Value, targets: &mut BTreeSet<String>) {
    let Value::Object(members) = schema else {
        return;
    };
    targets.extend(members.get("$ref").and_then(name_of));
    for (name, part) in members
        .iter()
        .filter(|(name, _)| IN_PLACE.contains(&name.as_str()))
    {
        match part {
            Value::Array(parts) => parts.iter().for_each(|part| collect(part, targets)),
            Value::Object(parts) if name == DEPENDENT => {
                parts.values().for_each(|part| collect(part, targets));
            }
            Value::Object(_) => collect(part, targets),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
