//! OpenAPI 3.1 documents of the REST side. Used by `app::control::views`, `cli::routes` and `config::compile::local`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::api_info::ApiInfo;
use super::bundle::{Bundle, Messages};
use super::described;
use super::parameter::{PathText, merged, named, path_text};
use super::response::{is_tool, problem, problem_schema, responses};
use super::route_names::{ROUTE, names};
use super::schema::{SchemaExtras, any_of, of_pattern};
use super::tools::annotations;
use crate::route::{Extra, Route};
use dualgauge_patterns::side::Side;

/// The operations of one path, by method; several routes may share one and differ in query or body.
struct OperationItem<'r> {
    path: PathText,
    operations: BTreeMap<String, Vec<&'r Route>>,
}

/// Returns the OpenAPI document of the routes.
#[must_use]
pub fn openapi<'r>(routes: impl IntoIterator<Item = &'r Route>, api: &ApiInfo) -> Value {
    let mut items: BTreeMap<String, OperationItem<'r>> = BTreeMap::new();
    let mut paths = Map::new();
    let mut schemas = Bundle::new("#/components/schemas/", Messages::OpenApi, usize::MAX);
    schemas.reserve("Problem", problem_schema());
    let entered = routes
        .into_iter()
        .filter(|route| route.enters_from(Side::Rest) && !route.is_old());
    for route in entered {
        let path = path_text(&route.rest_call.path);
        let item = items.entry(path.shape()).or_insert_with(|| OperationItem {
            path,
            operations: BTreeMap::new(),
        });
        let method = route.method.as_str().to_ascii_lowercase();
        item.operations.entry(method).or_default().push(route);
    }
    for item in items.values() {
        let mut methods = Map::new();
        for (method, routes) in &item.operations {
            methods.insert(method.clone(), operation(&item.path, routes, &mut schemas));
        }
        paths.insert(item.path.text.clone(), methods.into());
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": api.info(),
        "paths": paths,
        "components": {
            "schemas": schemas.finish(),
            "responses": { "Problem": problem() },
        },
    });
    api.secure(&mut document);
    document
}

fn operation(path: &PathText, routes: &[&Route], schemas: &mut Bundle) -> Value {
    let [first, ..] = routes else {
        return json!({});
    };
    // The names of path parameters are those of the path's first route; the types are each route's own.
    let own = routes.iter().map(|route| {
        let texts = path_text(&route.rest_call.path).parameters;
        let placed = path.parameters.iter().zip(texts);
        let mut parameters: Vec<Value> = placed
            .map(|((name, _), (_, mut parameter))| {
                parameter["name"] = json!(name);
                parameter
            })
            .collect();
        parameters.extend(named(&route.rest_call));
        described::parameters(route, &mut parameters, schemas);
        parameters
    });
    let parameters = merged(own.collect());
    let mut operation = json!({
        "operationId": first.name,
        "responses": responses(routes, schemas),
        ROUTE: names(routes),
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    described::texts(&first.docs, &mut operation);
    if let (true, Some(tool)) = (is_tool(first), first.tool_name()) {
        operation["x-mcp-tool"] = json!(tool);
        operation["x-mcp-annotations"] = annotations(first);
    }
    if let Some(body) = request_body(routes, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

/// Returns the body of an operation; it is required if every route requires it.
fn request_body(routes: &[&Route], schemas: &mut Bundle) -> Option<Value> {
    let bodies = routes.iter().filter_map(|route| {
        let pattern = route.rest_call.body.as_ref()?;
        let more = if route.extra == Extra::Reject {
            SchemaExtras::Closed
        } else {
            SchemaExtras::Open
        };
        let plain = of_pattern(pattern, more);
        let (schema, is_required) = described::body(route, pattern, plain, schemas);
        Some((schema, is_required || !pattern.may_be_absent()))
    });
    let bodies: Vec<(Value, bool)> = bodies.collect();
    if bodies.is_empty() {
        return None;
    }
    let all = bodies.len() == routes.len();
    let required = all && bodies.iter().all(|(_, is_required)| *is_required);
    let schemas = bodies.into_iter().map(|(schema, _)| schema).collect();
    // Routes that share a path have the same format of the body.
    let media_type = routes.first()?.rest_call.format.media_type();
    let mut body = json!({
        "required": required,
        "content": { media_type: { "schema": any_of(schemas) } },
    });
    if let Some(text) = routes.iter().find_map(|route| route.docs.body.as_ref()) {
        body["description"] = json!(text);
    }
    Some(body)
}
