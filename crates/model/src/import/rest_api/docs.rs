//! The documentation of the routes of a tool: its texts, and the schemas of its arguments and of its value.
//!
//! A reference inside a schema of a tool begins at that schema, so it is rewritten to begin at the schema of the route.
//! References are never followed, so that a looping one does no harm. Used by `rest_api`.

use serde_json::{Map, Value, json};

use super::tool::Tool;
use crate::import::refs::text;
use crate::import::write::{json_text, quoted};

/// Members with a sample value; a `$ref` in it is not a reference.
const OPAQUE: [&str; 5] = ["default", "const", "enum", "example", "examples"];
/// The deepest nesting that is rewritten. A document that is read is not nested deeper.
const DEEPEST: usize = 256;
/// The longest description of a route, in bytes.
const LONGEST_TEXT: usize = 16 * 1024;
/// The member of a wrapped value.
const RESULT: &str = "result";

/// Returns the keys of the documentation of each route of a tool.
pub(super) fn keys(tool: &Tool<'_>) -> Vec<(&'static str, String)> {
    let mut keys = vec![("summary", quoted(&tool.summary()))];
    if let Some(description) = text(tool.value, "description") {
        let kept = &description[..description.floor_char_boundary(LONGEST_TEXT)];
        keys.push(("description", quoted(kept)));
    }
    // The server checks the arguments of its tools itself.
    keys.push(("schema.validate", "false".to_owned()));
    if let Some(input) = tool.value.get("inputSchema") {
        let mut arguments = input.clone();
        rewrite(&mut arguments, "#/properties/arguments", 0);
        let params = json!({ "properties": { "arguments": arguments } });
        keys.push(("schema.params", json_text(&params)));
    }
    if let Some(output) = tool
        .value
        .get("outputSchema")
        .filter(|output| output.is_object())
    {
        let mut value = value_schema(output);
        rewrite(&mut value, "#", 0);
        keys.push(("schema.result", json_text(&value)));
    }
    keys
}

/// Returns the schema of the value of a tool. Servers wrap a value that is no object: fastmcp marks the schema, and the
/// Python SDK generates one that is named after the function and has nothing but the value.
fn value_schema(output: &Value) -> Value {
    let is_marked = output.get("x-fastmcp-wrap-result") == Some(&Value::Bool(true));
    let properties = output.get("properties").and_then(Value::as_object);
    let only = properties.filter(|properties| properties.len() == 1);
    let is_generated = text(output, "title").is_some_and(|title| title.ends_with("Output"))
        && output.get("required") == Some(&json!([RESULT]));
    let value = only.and_then(|properties| properties.get(RESULT));
    let Some(value) = value.filter(|value| value.is_object() && (is_marked || is_generated)) else {
        return output.clone();
    };
    let mut schema: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    for name in ["$defs", "definitions"] {
        if let Some(definitions) = output.get(name) {
            schema.insert(name.to_owned(), definitions.clone());
        }
    }
    schema.into()
}

/// Rewrites the references of a schema so that they begin at its place in another one.
fn rewrite(schema: &mut Value, place: &str, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    match schema {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if name == "$ref"
                    && let Value::String(target) = member
                {
                    if let Some(rest) = target.strip_prefix('#')
                        && (rest.is_empty() || rest.starts_with('/'))
                    {
                        // `#/schemas/NAME` leads to a shared schema; the same pointer in other letters does not.
                        *target = match rest.strip_prefix("/schemas/") {
                            Some(name) => format!("{place}/%73chemas/{name}"),
                            None => format!("{place}{rest}"),
                        };
                    }
                } else if member.is_object() || !OPAQUE.contains(&name.as_str()) {
                    rewrite(member, place, depth + 1);
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                rewrite(element, place, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
