//! The documentation of routes in API documents: texts, and the schemas of values. A value without a schema keeps that
//! of its pattern. Used by `document::openapi`, `document::openrpc` and `document::response`.

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::schema::json_in_text;
use crate::outcome::ToolValue;
use crate::route::{DescribedSchema, Route, RouteDocs};
use dualgauge_patterns::pattern::{Codec, Pattern, Slot, TextPatterns};

/// Adds the texts of a route to an operation.
pub(super) fn texts(docs: &RouteDocs, operation: &mut Value) {
    let summary = docs.summary.as_ref().or(docs.title.as_ref());
    for (name, text) in [
        ("summary", summary),
        ("description", docs.description.as_ref()),
    ] {
        if let Some(text) = text {
            operation[name] = json!(text);
        }
    }
    if !docs.tags.is_empty() {
        operation["tags"] = json!(docs.tags);
    }
    let deprecated = docs.description.as_ref();
    if deprecated.is_some_and(|text| text.starts_with("Deprecated.")) {
        operation["deprecated"] = json!(true);
    }
}

/// Replaces the schemas of parameters by those of the route, with their descriptions.
pub(super) fn parameters(route: &Route, parameters: &mut [Value], schemas: &mut Bundle) {
    let call = &route.rest_call;
    let path = call.path.holes.iter();
    let path = path.map(|placed| ("path", placed.slot.name.as_str(), &placed.slot));
    let words = |words: &'_ TextPatterns| -> Option<Slot> {
        match words {
            TextPatterns::Hole(slot) => Some(slot.clone()),
            TextPatterns::Literal(_) | TextPatterns::Mixed(_) => None,
        }
    };
    let query = call.query.iter();
    let query = query.filter_map(|item| Some(("query", item.key.as_str(), words(&item.words)?)));
    let headers = call.headers.iter();
    let headers =
        headers.filter_map(|item| Some(("header", item.name.as_str(), words(&item.words)?)));
    let path = path.map(|(place, name, slot)| (place, name, slot.clone()));
    for (place, name, slot) in path.chain(query).chain(headers) {
        let here = |found: &&mut Value| found["in"] == place && found["name"] == name;
        let Some(parameter) = parameters.iter_mut().find(here) else {
            continue;
        };
        if let Some((source, schema)) = of_hole(route, &slot) {
            let mut schema = schemas.embed(source, schema);
            if let Some(text) = schema.get("description").cloned() {
                parameter["description"] = text;
                schema
                    .as_object_mut()
                    .map(|members| members.remove("description"));
            }
            // In a text, the value is a string with JSON.
            parameter["schema"] = match slot.codec {
                Codec::Json => json_in_text(schema),
                Codec::Plain | Codec::Percent => schema,
            };
        }
    }
}

/// Returns the schema of a body: its pattern's, with the schemas of the route for the values of holes.
pub(super) fn body(route: &Route, pattern: &Pattern, plain: Value, schemas: &mut Bundle) -> Value {
    match pattern {
        Pattern::Hole(slot) => match of_hole(route, slot) {
            Some((source, schema)) => schemas.embed(source, schema),
            None => plain,
        },
        Pattern::Object(object) => {
            let mut whole = plain;
            for (name, member) in &object.members {
                let Pattern::Hole(slot) = member else {
                    continue;
                };
                if let Some((source, schema)) = of_hole(route, slot) {
                    whole["properties"][name] = schemas.embed(source, schema);
                }
            }
            whole
        }
        Pattern::Literal(_) | Pattern::Text(_) | Pattern::List(_) | Pattern::Each(_) => plain,
    }
}

/// Returns the schema of the REST body of a success without a row.
pub(super) fn result(route: &Route, schemas: &mut Bundle) -> Value {
    let source = route.docs.result.as_ref();
    source.map_or_else(|| json!({}), |source| schemas.embed(source, &source.schema))
}

/// Returns the schema of the result of an RPC call without a row; that of a tool has another form than its value.
pub(super) fn whole_result(route: &Route, schemas: &mut Bundle) -> Value {
    match route.outcomes.tool_value() {
        ToolValue::Whole => result(route, schemas),
        ToolValue::Open | ToolValue::Wrapped => json!({}),
    }
}

/// Returns the schema of a param by name.
pub(super) fn param(route: &Route, name: &str, plain: Value, schemas: &mut Bundle) -> Value {
    let source = route.docs.params.as_ref();
    let found = source.and_then(|source| Some((source, member(source, &source.schema, name)?)));
    found.map_or(plain, |(source, schema)| schemas.embed(source, schema))
}

/// Finds the schema of a hole's value by the path of the hole in the params.
fn of_hole<'r>(route: &'r Route, slot: &Slot) -> Option<(&'r DescribedSchema, &'r Value)> {
    let source = route.docs.params.as_ref()?;
    let path = route.rpc_call.params.path_of(slot.binds()?)?;
    let mut schema: &Value = &source.schema;
    for name in path.split('/').skip(1) {
        let name = name.replace("~1", "/").replace("~0", "~");
        schema = member(source, schema, &name)?;
    }
    Some((source, schema))
}

/// Returns the schema of a member of an object.
fn member<'s>(source: &'s DescribedSchema, schema: &'s Value, name: &str) -> Option<&'s Value> {
    /// The longest chain of references.
    const LONGEST: usize = 32;
    let mut schema = schema;
    for _ in 0..LONGEST {
        match schema.get("properties") {
            Some(properties) => return properties.get(name),
            None => schema = source.target(schema.get("$ref")?.as_str()?)?,
        }
    }
    None
}
