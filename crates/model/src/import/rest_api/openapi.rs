//! The OpenAPI 3.1 document of a REST API in front of tools. Used by `rest_api`.
//!
//! The schemas of the tools become components. A reference inside a schema begins at that schema, so it is rewritten to
//! begin at its component.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::query::{QueryArgument, QueryCall, QueryForm};
use super::{RestApiOptions, Tool, empty};
use crate::import::refs::text;

/// Members with a sample value; a `$ref` in it is not a reference.
const OPAQUE: [&str; 5] = ["default", "const", "enum", "example", "examples"];
/// The deepest nesting that is rewritten. A document that is read is not nested deeper.
const DEEPEST: usize = 256;

/// The parts of the document.
#[derive(Debug, Default)]
pub(super) struct ApiDocument {
    paths: BTreeMap<String, Map<String, Value>>,
    schemas: Map<String, Value>,
}

impl ApiDocument {
    /// Adds `POST` with the arguments as the body.
    pub(super) fn add_post(&mut self, tool: &Tool<'_>) {
        let input = tool.value.get("inputSchema");
        let arguments = self.component(tool, "arguments", input);
        if let Some(output) = tool.value.get("outputSchema") {
            self.component(tool, "result", Some(output));
        }
        let required = input.and_then(|input| input.get("required"));
        let is_required = required
            .and_then(Value::as_array)
            .is_some_and(|names| !names.is_empty());
        let mut operation = operation(tool, &tool.route);
        operation.insert(
            "requestBody".to_owned(),
            json!({
                "required": is_required,
                "content": { "application/json": { "schema": { "$ref": arguments } } },
            }),
        );
        self.item(tool).insert("post".to_owned(), operation.into());
    }

    /// Adds `GET` with the arguments in the query.
    pub(super) fn add_get(&mut self, tool: &Tool<'_>, id: &str, call: &QueryCall) {
        let arguments = reference(&component_name(tool, "arguments"));
        let parameters: Vec<Value> = call
            .arguments
            .iter()
            .map(|argument| parameter(tool, argument, &arguments))
            .collect();
        let mut operation = operation(tool, id);
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), parameters.into());
        }
        self.item(tool).insert("get".to_owned(), operation.into());
    }

    fn item(&mut self, tool: &Tool<'_>) -> &mut Map<String, Value> {
        self.paths.entry(tool.path.clone()).or_default()
    }

    /// Adds a schema of a tool and returns a reference to it.
    fn component(&mut self, tool: &Tool<'_>, part: &str, schema: Option<&Value>) -> String {
        let name = component_name(tool, part);
        let reference = reference(&name);
        let mut schema = schema.cloned().unwrap_or_else(|| json!({}));
        rewrite(&mut schema, &reference, 0);
        self.schemas.insert(name, schema);
        reference
    }

    pub(super) fn finish(self, options: &RestApiOptions) -> Value {
        let mut components = json!({
            "schemas": self.schemas,
            "responses": { "Problem": problem() },
        });
        components["schemas"]["Problem"] = crate::document::problem_schema();
        let mut document = json!({
            "openapi": "3.1.0",
            "info": { "title": options.title, "version": "1" },
            "paths": self.paths,
        });
        if let Some(header) = &options.api_key {
            components["securitySchemes"] = json!({
                "apiKey": { "type": "apiKey", "in": "header", "name": header },
                "bearer": { "type": "http", "scheme": "bearer", "description": "The API key as a bearer token" },
            });
            document["security"] = json!([{ "apiKey": [] }, { "bearer": [] }]);
        }
        document["components"] = components;
        document
    }
}

fn component_name(tool: &Tool<'_>, part: &str) -> String {
    format!("{}.{part}", tool.route)
}

fn reference(component: &str) -> String {
    format!("#/components/schemas/{component}")
}

fn operation(tool: &Tool<'_>, id: &str) -> Map<String, Value> {
    let mut operation = empty();
    operation.insert("operationId".to_owned(), json!(id));
    operation.insert("summary".to_owned(), json!(tool.summary()));
    if let Some(description) = text(tool.value, "description") {
        operation.insert("description".to_owned(), json!(description));
    }
    operation.insert("responses".to_owned(), responses(tool));
    operation.insert("x-mcp-tool".to_owned(), json!(tool.name));
    if let Some(annotations) = tool.value.get("annotations") {
        operation.insert("x-mcp-annotations".to_owned(), annotations.clone());
    }
    operation
}

fn responses(tool: &Tool<'_>) -> Value {
    let content = match tool.value.get("outputSchema") {
        Some(_) => {
            let schema = reference(&component_name(tool, "result"));
            json!({ "application/json": { "schema": { "$ref": schema } } })
        }
        None => json!({
            "application/json": { "schema": {} },
            "text/plain": { "schema": { "type": "string" } },
        }),
    };
    json!({
        "200": { "description": "The value that the tool returned", "content": content },
        "204": { "description": "The tool returned nothing" },
        "422": { "description": "The tool failed; `detail` has its words", "content": problem()["content"] },
        "default": { "$ref": "#/components/responses/Problem" },
    })
}

fn problem() -> Value {
    json!({
        "description": "A problem document (RFC 9457)",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    })
}

fn parameter(tool: &Tool<'_>, argument: &QueryArgument, arguments: &str) -> Value {
    let pointer = argument.name.replace('~', "~0").replace('/', "~1");
    let mut encoded = String::new();
    dualgauge_patterns::percent::encode(
        &pointer,
        dualgauge_patterns::percent::Keep::Nothing,
        &mut encoded,
    );
    let schema = json!({ "$ref": format!("{arguments}/properties/{encoded}") });
    let mut parameter = json!({
        "name": argument.name,
        "in": "query",
        "required": argument.is_required,
    });
    let properties = tool.value.get("inputSchema");
    let properties = properties.and_then(|schema| schema.get("properties"));
    let property = properties.and_then(|properties| properties.get(&argument.name));
    if let Some(words) = property.and_then(|property| text(property, "description")) {
        parameter["description"] = json!(words);
    }
    match argument.form {
        QueryForm::Scalar(_) | QueryForm::List(_) => parameter["schema"] = schema,
        QueryForm::Json => {
            parameter["content"] = json!({ "application/json": { "schema": schema } });
        }
    }
    parameter
}

/// Rewrites the references of a schema so that they begin at its component.
fn rewrite(schema: &mut Value, component: &str, depth: usize) {
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
                        *target = format!("{component}{rest}");
                    }
                } else if member.is_object() || !OPAQUE.contains(&name.as_str()) {
                    rewrite(member, component, depth + 1);
                }
            }
        }
        Value::Array(elements) => {
            for element in elements {
                rewrite(element, component, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
