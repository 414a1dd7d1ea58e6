//! The tools that routes publish (MCP, "Tools"). Used by `config`.

use http::Method;
use serde_json::{Map, Value, json};

use super::bundle::{Bundle, MAPS, Messages, OPAQUE};
use super::schema::{SchemaExtras, of_pattern};
use crate::outcome::ToolValue;
use crate::route::{DescribedSchema, Effect, Extra, Route};
use dualgauge_patterns::pattern::{ObjectPattern, Pattern};
use dualgauge_patterns::side::Side;

/// The most bytes of the definitions in one schema of a tool; those beyond accept every value.
const LARGEST: usize = 256 * 1024;
/// The member that marks the schema of a value that is no object, for clients that unwrap it.
pub(super) const WRAPPED: &str = "x-fastmcp-wrap-result";

/// Returns the tools of the routes that RPC clients can call, in the order of the table. Routes with one name are one
/// tool.
#[must_use]
pub fn tools<'r>(routes: impl IntoIterator<Item = &'r Route>) -> Vec<Value> {
    let mut tools: Vec<Value> = Vec::new();
    let mut places: std::collections::BTreeMap<String, usize> = std::collections::BTreeMap::new();
    for route in routes {
        let callable = route.enters_from(Side::Rpc) && route.expects_reply;
        let Some(name) = route.tool_name().filter(|_| callable) else {
            continue;
        };
        match places.get(&name) {
            Some(place) => join(&mut tools[*place], &input_schema(route)),
            None => {
                places.insert(name.clone(), tools.len());
                tools.push(tool(route, &name));
            }
        }
    }
    tools
}

/// Adds the arguments of a further route to a tool.
fn join(tool: &mut Value, further: &Value) {
    let known = tool["inputSchema"].take();
    let mut choices = match known.get("anyOf").and_then(Value::as_array) {
        Some(choices) if known.as_object().is_some_and(|known| known.len() == 2) => choices.clone(),
        Some(_) | None => vec![known],
    };
    if !choices.contains(further) {
        choices.push(further.clone());
    }
    tool["inputSchema"] = json!({ "type": "object", "anyOf": choices });
}

fn tool(route: &Route, name: &str) -> Value {
    let docs = &route.docs;
    let mut tool = json!({ "name": name, "inputSchema": input_schema(route) });
    let title = docs.title.as_deref().or(docs.summary.as_deref());
    if let Some(title) = title {
        tool["title"] = json!(title);
    }
    if let Some(text) = docs.text() {
        tool["description"] = json!(text);
    }
    if let Some(schema) = output_schema(route) {
        tool["outputSchema"] = schema;
    }
    tool["annotations"] = annotations(route);
    tool
}

/// Returns the hints of a tool.
pub(super) fn annotations(route: &Route) -> Value {
    let mut hints = json!({
        "readOnlyHint": route.effect == Effect::Safe,
        "idempotentHint": route.effect.may_repeat(),
    });
    // The default of the hint is true, so only a promise or a certainty is written.
    if route.effect == Effect::Safe {
        hints["destructiveHint"] = json!(false);
    } else if route.method == Method::DELETE {
        hints["destructiveHint"] = json!(true);
    }
    hints
}

fn input_schema(route: &Route) -> Value {
    let described = route.docs.params.as_ref();
    let described = described.and_then(|source| Some((source, member(source, "arguments")?)));
    if let Some((source, arguments)) = described {
        return standalone(source, arguments, Messages::Requests);
    }
    let arguments = match &route.rpc_call.params {
        Pattern::Object(params) => {
            let mut members = params.members.iter();
            members.find(|(name, _)| name == "arguments")
        }
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => None,
    };
    let more = match route.extra {
        Extra::Reject => SchemaExtras::Closed,
        Extra::Drop | Extra::Carry => SchemaExtras::Open,
    };
    let none = Pattern::Object(ObjectPattern::new(Vec::new(), None));
    let pattern = arguments.map_or(&none, |(_, pattern)| pattern);
    with_type(of_pattern(pattern, more))
}

/// Returns the schema of a member of a described object.
fn member<'s>(source: &'s DescribedSchema, name: &str) -> Option<&'s Value> {
    source.schema.get("properties")?.get(name)
}

/// Returns a part of a schema as a document of its own.
fn standalone(source: &DescribedSchema, part: &Value, messages: Messages) -> Value {
    let mut bundle = Bundle::new("#/$defs/", messages, LARGEST);
    let mut schema = with_type(bundle.embed(source, part));
    let definitions = bundle.finish();
    if !definitions.is_empty() {
        // The part's own definitions are copied by reference only.
        schema["$defs"] = definitions.into();
    }
    schema
}

/// Adds the type that clients require at the root of a tool's schema.
fn with_type(schema: Value) -> Value {
    match schema {
        Value::Object(members) if members.contains_key("$ref") => {
            json!({ "type": "object", "allOf": [members] })
        }
        Value::Object(mut members) => {
            members.insert("type".to_owned(), json!("object"));
            members.into()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            json!({ "type": "object" })
        }
    }
}

/// Returns the schema of `structuredContent`; an unknown one is left out.
fn output_schema(route: &Route) -> Option<Value> {
    let source = route.docs.result.as_ref()?;
    match route.outcomes.tool_value() {
        ToolValue::Whole => None,
        ToolValue::Open => {
            let schema = standalone(source, &source.schema, Messages::Responses);
            Some(with_alternatives(schema))
        }
        ToolValue::Wrapped => {
            let mut bundle = Bundle::new("#/$defs/", Messages::Responses, LARGEST);
            let value = bundle.embed(source, &source.schema);
            let mut schema = Map::new();
            schema.insert("type".to_owned(), json!("object"));
            schema.insert("properties".to_owned(), json!({ "result": value }));
            schema.insert("required".to_owned(), json!(["result"]));
            schema.insert(WRAPPED.to_owned(), json!(true));
            let definitions = bundle.finish();
            if !definitions.is_empty() {
                schema.insert("$defs".to_owned(), definitions.into());
            }
            Some(with_alternatives(schema.into()))
        }
    }
}

/// Returns a schema of a result in which `oneOf` is `anyOf`. Many documents list alternatives that a value of the server
/// fits at once; a client that validates would refuse it (MCP, "Output Schema").
fn with_alternatives(schema: Value) -> Value {
    let Value::Object(members) = schema else {
        return match schema {
            Value::Array(items) => items.into_iter().map(with_alternatives).collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_) => schema,
        };
    };
    let is_free = !members.contains_key("anyOf");
    let renamed = members.into_iter().map(|(name, value)| {
        if OPAQUE.contains(&name.as_str()) {
            return (name, value);
        }
        if MAPS.contains(&name.as_str())
            && let Value::Object(named) = value
        {
            let named = named.into_iter();
            let named = named.map(|(name, part)| (name, with_alternatives(part)));
            return (name, Value::Object(named.collect()));
        }
        let name = match name == "oneOf" && is_free {
            true => "anyOf".to_owned(),
            false => name,
        };
        (name, with_alternatives(value))
    });
    Value::Object(renamed.collect())
}
