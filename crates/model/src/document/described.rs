//! The documentation of routes in API documents: texts, and the schemas of values. A value without a schema keeps that
//! of its pattern. Used by `document::openapi`, `document::openrpc` and `document::response`.

use serde_json::{Value, json};

use super::bundle::Bundle;
use super::schema::json_in_text;
use crate::outcome::{OutcomeRow, RpcReplyPattern, ToolValue};
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
        // The words of a map are those of its own side.
        let of_other_side = of_hole(route, &slot).filter(|_| !slot.codec.changes_value());
        if let Some((source, schema)) = of_other_side {
            let mut schema = schemas.embed(source, schema);
            if let Some(text) = schema.get("description").cloned() {
                parameter["description"] = text;
                schema
                    .as_object_mut()
                    .map(|members| members.remove("description"));
            }
            // In a text, the value is a string with JSON.
            parameter["schema"] = match slot.codec {
                Codec::Json(encoding) => json_in_text(schema, encoding),
                Codec::Plain | Codec::Percent | Codec::Map(_) | Codec::Keys(_) | Codec::Page(_) => {
                    schema
                }
            };
        }
    }
}

/// Returns the schema of a body: its pattern's, with the schemas of the route for the values of holes and for the members
/// that it carries to the params. Returns true beside it if the schemas of the route require a value in the body.
pub(super) fn body(
    route: &Route,
    pattern: &Pattern,
    plain: Value,
    schemas: &mut Bundle,
) -> (Value, bool) {
    let params = route.docs.params.as_ref();
    let origin = params.map(|source| HoleOrigin {
        source,
        pattern: &route.rpc_call.params,
        schema: &source.schema,
    });
    let mut whole = filled(origin.as_ref(), pattern, plain, schemas);
    let required = match pattern {
        Pattern::Hole(slot) => {
            let schema = origin.as_ref().and_then(|origin| origin.of(slot));
            let source = params.zip(schema);
            source.is_some_and(|(source, schema)| !required(source, schema).is_empty())
        }
        Pattern::Object(_) => add_carried(route, pattern, &mut whole, schemas),
        Pattern::Literal(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => false,
    };
    (whole, required)
}

/// Adds the carried members to the schema of a body; returns true if one of them is required.
fn add_carried(route: &Route, body: &Pattern, schema: &mut Value, schemas: &mut Bundle) -> bool {
    let carried = carried(route, body);
    let mut is_required = false;
    for member in carried {
        let own = schemas.embed(member.source, member.schema);
        schema["properties"][member.name] = own;
        if member.is_required {
            is_required = true;
            match schema.get_mut("required").and_then(Value::as_array_mut) {
                Some(names) => names.push(member.name.into()),
                None => schema["required"] = json!([member.name]),
            }
        }
    }
    is_required
}

/// A documented member of the params that no pattern names.
pub(super) struct CarriedMember<'r> {
    /// The name.
    pub(super) name: &'r str,
    /// True if the schema of the params requires it.
    pub(super) is_required: bool,
    source: &'r DescribedSchema,
    schema: &'r Value,
}

impl CarriedMember<'_> {
    /// Returns its schema.
    pub(super) fn embedded(&self, schemas: &mut Bundle) -> Value {
        schemas.embed(self.source, self.schema)
    }
}

/// Returns the documented members that a body carries to the params, if it does: they are those of the schema of the
/// params that the patterns do not name.
pub(super) fn carried<'r>(route: &'r Route, body: &Pattern) -> Vec<CarriedMember<'r>> {
    let (Some(source), Pattern::Object(body), Pattern::Object(params)) =
        (&route.docs.params, body, &route.rpc_call.params)
    else {
        return Vec::new();
    };
    let rest = body.rest.as_ref().and_then(Slot::binds);
    if rest.is_none() || rest != params.rest.as_ref().and_then(Slot::binds) {
        return Vec::new();
    }
    let required = required(source, &source.schema);
    let documented = part(source, &source.schema, "properties").and_then(Value::as_object);
    let named = |name: &str| {
        let mut all = params.members.iter().chain(&body.members);
        all.any(|(known, _)| known == name)
    };
    let members = documented.into_iter().flatten();
    let members = members.filter(|(name, _)| !named(name));
    let members = members.map(|(name, schema)| CarriedMember {
        name,
        is_required: required.contains(&name.as_str()),
        source,
        schema,
    });
    members.collect()
}

/// Returns the names of the members that a schema requires.
fn required<'s>(source: &'s DescribedSchema, schema: &'s Value) -> Vec<&'s str> {
    let names = part(source, schema, "required").and_then(Value::as_array);
    let names = names.into_iter().flatten();
    names.filter_map(Value::as_str).collect()
}

/// Returns the schema of the body of a success, with the schema of the result for the values of holes.
pub(super) fn success(
    route: &Route,
    row: &OutcomeRow,
    pattern: &Pattern,
    plain: Value,
    schemas: &mut Bundle,
) -> Value {
    let result = route.docs.result.as_ref();
    let pattern_of_result = match (&row.rpc, route.outcomes.tool_value()) {
        (RpcReplyPattern::Result(result), ToolValue::Whole) => Some(result),
        (RpcReplyPattern::Result(Pattern::Object(result)), _) => {
            let mut members = result.members.iter();
            let value = members.find(|(name, _)| name == "structuredContent");
            value.map(|(_, value)| value)
        }
        (RpcReplyPattern::Result(_) | RpcReplyPattern::Error { .. }, _) => None,
    };
    let origin = result.zip(pattern_of_result);
    let origin = origin.map(|(source, pattern)| HoleOrigin {
        source,
        pattern,
        schema: content(&source.schema),
    });
    filled(origin.as_ref(), pattern, plain, schemas)
}

fn filled(
    origin: Option<&HoleOrigin<'_>>,
    pattern: &Pattern,
    plain: Value,
    schemas: &mut Bundle,
) -> Value {
    let Some(known) = origin else { return plain };
    let mut whole = plain;
    match pattern {
        Pattern::Hole(slot) => {
            return match known.of(slot) {
                Some(schema) => schemas.embed(known.source, schema),
                None => whole,
            };
        }
        Pattern::Object(object) => {
            for (name, member) in &object.members {
                let plain = whole["properties"][name].take();
                whole["properties"][name] = filled(origin, member, plain, schemas);
            }
        }
        Pattern::Each(each) => {
            let plain = whole["items"].take();
            whole["items"] = filled(origin, &each.item, plain, schemas);
        }
        Pattern::Literal(_) | Pattern::Text(_) | Pattern::List(_) | Pattern::Either(_) => {}
    }
    whole
}

/// Returns the schema of the REST body of a success without a row.
pub(super) fn result(route: &Route, schemas: &mut Bundle) -> Value {
    let source = route.docs.result.as_ref();
    source.map_or_else(
        || json!({}),
        |source| schemas.embed(source, content(&source.schema)),
    )
}

/// The contents that a success without a row may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SuccessContent {
    Always,
    Never,
    Unknown,
}

/// Returns the contents that the schema of the result allows: `null` is no content.
pub(super) fn success_content(route: &Route) -> SuccessContent {
    let Some(source) = &route.docs.result else {
        return SuccessContent::Unknown;
    };
    match source.allows_null() {
        Some(false) => SuccessContent::Always,
        Some(true) if source.schema.get("type").is_some_and(|kind| kind == "null") => {
            SuccessContent::Never
        }
        Some(true) | None => SuccessContent::Unknown,
    }
}

/// Returns the schema of the content of a result that may be null: `null` is no content.
fn content(schema: &Value) -> &Value {
    let parts = schema.get("anyOf").and_then(Value::as_array);
    match parts.map(Vec::as_slice) {
        Some([one, null]) if *null == json!({ "type": "null" }) => one,
        Some(_) | None => schema,
    }
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

/// Returns the schema of a param by position.
pub(super) fn param_at(route: &Route, at: usize, plain: Value, schemas: &mut Bundle) -> Value {
    let source = route.docs.params.as_ref();
    let found = source.and_then(|source| {
        let positions = part(source, &source.schema, "prefixItems")?;
        Some((source, positions.get(at)?))
    });
    found.map_or(plain, |(source, schema)| schemas.embed(source, schema))
}

/// The values of one side, from which the holes of the other side have their schemas.
struct HoleOrigin<'r> {
    source: &'r DescribedSchema,
    pattern: &'r Pattern,
    schema: &'r Value,
}

impl<'r> HoleOrigin<'r> {
    /// Returns the schema of a hole's value.
    fn of(&self, slot: &Slot) -> Option<&'r Value> {
        let hole = slot.binds().filter(|_| !slot.codec.changes_value())?;
        self.find(self.pattern, self.schema, hole)
    }

    fn find(&self, pattern: &Pattern, schema: &'r Value, hole: usize) -> Option<&'r Value> {
        match pattern {
            Pattern::Hole(slot) => {
                let is_it = slot.binds() == Some(hole) && !slot.codec.changes_value();
                is_it.then_some(schema)
            }
            Pattern::Object(object) => object.members.iter().find_map(|(name, inner)| {
                self.find(inner, member(self.source, schema, name)?, hole)
            }),
            Pattern::List(list) => list.items.iter().enumerate().find_map(|(index, inner)| {
                let schema = part(self.source, schema, "prefixItems")?.get(index)?;
                self.find(inner, schema, hole)
            }),
            Pattern::Each(each) => self.find(&each.item, part(self.source, schema, "items")?, hole),
            Pattern::Literal(_) | Pattern::Text(_) | Pattern::Either(_) => None,
        }
    }
}

/// Finds the schema of a hole's value by the place of the hole in the params.
fn of_hole<'r>(route: &'r Route, slot: &Slot) -> Option<(&'r DescribedSchema, &'r Value)> {
    let source = route.docs.params.as_ref()?;
    let origin = HoleOrigin {
        source,
        pattern: &route.rpc_call.params,
        schema: &source.schema,
    };
    Some((source, origin.of(slot)?))
}

/// Returns the schema of a member of an object.
fn member<'s>(source: &'s DescribedSchema, schema: &'s Value, name: &str) -> Option<&'s Value> {
    part(source, schema, "properties")?.get(name)
}

/// Returns the value of a keyword, of the schema itself or of the one that it refers to.
fn part<'s>(source: &'s DescribedSchema, schema: &'s Value, keyword: &str) -> Option<&'s Value> {
    /// The longest chain of references.
    const LONGEST: usize = 32;
    let mut schema = schema;
    for _ in 0..LONGEST {
        match schema.get(keyword) {
            Some(found) => return Some(found),
            None => schema = source.target(schema.get("$ref")?.as_str()?)?,
        }
    }
    None
}
