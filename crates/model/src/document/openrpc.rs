//! OpenRPC 1.3 of the RPC side. Used by `app::control::views`, `cli::routes` and `config::compile::local`.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::api_info::ApiInfo;
use super::bundle::{Bundle, Messages};
use super::described;
use super::route_names::{ROUTE, names};
use super::schema::{SchemaExtras, any_of, of_pattern, value};
use crate::outcome::{NumberPattern, OutcomeRow, RpcReplyPattern};
use crate::route::{Extra, Route};
use dualgauge_patterns::pattern::{Pattern, Scalar, Shape, TextPatterns};
use dualgauge_patterns::side::Side;

/// Returns the OpenRPC document of the routes. Routes that share a method become one method: a param that differs has a
/// schema for each route, and `x-dualgauge-params` says which belong together.
#[must_use]
pub fn openrpc<'r>(routes: impl IntoIterator<Item = &'r Route>, api: &ApiInfo) -> Value {
    let mut methods: BTreeMap<String, Vec<&'r Route>> = BTreeMap::new();
    for route in routes {
        // The servers describe their methods themselves.
        if route.enters_from(Side::Rpc) && !route.is_frame() && !route.is_paired {
            for method in method_names(&route.rpc_call.method) {
                methods.entry(method).or_default().push(route);
            }
        }
    }
    let mut schemas = Bundle::new("#/components/schemas/", Messages::Shared, usize::MAX);
    let methods: Vec<Value> = methods
        .iter()
        .map(|(name, routes)| method(name, routes, &mut schemas))
        .collect();
    let mut document = json!({ "openrpc": "1.3.2", "info": api.info(), "methods": methods });
    let schemas = schemas.finish();
    if !schemas.is_empty() {
        document["components"] = json!({ "schemas": schemas });
    }
    document
}

/// Returns the methods that a pattern matches: one for each word of an `enum`; another hole stays in its braces.
fn method_names(words: &TextPatterns) -> Vec<String> {
    match words {
        TextPatterns::Hole(slot) => match &slot.shape {
            Shape::One(_) if let Some(map) = slot.codec.map() => {
                map.texts().map(str::to_owned).collect()
            }
            Shape::One(Scalar::Enum(words)) => words.clone(),
            Shape::Any
            | Shape::One(Scalar::String | Scalar::Integer | Scalar::Number | Scalar::Boolean)
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Object
            | Shape::Array
            | Shape::Null => vec![words.to_notation()],
        },
        TextPatterns::Literal(_) | TextPatterns::Mixed(_) => vec![words.to_notation()],
    }
}

fn method(name: &str, routes: &[&Route], schemas: &mut Bundle) -> Value {
    let structures: Vec<Params> = routes.iter().map(|route| params(route, schemas)).collect();
    let mut method = json!({
        "name": name,
        "paramStructure": structure(&structures),
        "params": merged(&structures),
        ROUTE: names(routes),
    });
    if routes.len() > 1 {
        let whole = routes
            .iter()
            .map(|route| whole(route))
            .collect::<Vec<Value>>();
        method["x-dualgauge-params"] = json!({ "oneOf": whole });
    }
    if routes.iter().any(|route| route.expects_reply) {
        method["result"] = result(routes, schemas);
    }
    if let [route] = routes {
        described::texts(&route.docs, &mut method);
        // OpenRPC 1.3, Method Object: tags are objects.
        if let Some(tags) = method.get_mut("tags").and_then(Value::as_array_mut) {
            tags.iter_mut()
                .for_each(|tag| *tag = json!({ "name": tag.take() }));
        }
    }
    let errors = errors(routes);
    if !errors.is_empty() {
        method["errors"] = errors.into();
    }
    method
}

/// The params of one route, by name or by position.
struct Params {
    structure: &'static str,
    list: Vec<Param>,
}

struct Param {
    name: String,
    schema: Value,
    is_required: bool,
}

impl Param {
    fn new(name: String, pattern: &Pattern, more: SchemaExtras) -> Param {
        Param {
            name,
            schema: of_pattern(pattern, more),
            is_required: !pattern.may_be_absent(),
        }
    }
}

fn more(route: &Route) -> SchemaExtras {
    if route.extra == Extra::Reject {
        SchemaExtras::Closed
    } else {
        SchemaExtras::Open
    }
}

/// Returns the form that is written, which documents all forms of a value.
fn first_form(pattern: &Pattern) -> &Pattern {
    match pattern {
        Pattern::Either(either) if either.choice.is_none() => {
            either.alternatives.first().unwrap_or(pattern)
        }
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::Object(_)
        | Pattern::List(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => pattern,
    }
}

fn params(route: &Route, schemas: &mut Bundle) -> Params {
    let more = more(route);
    match first_form(&route.rpc_call.params) {
        Pattern::Object(object) => {
            let members = object.members.iter();
            let list = members.map(|(name, pattern)| {
                let mut param = Param::new(name.clone(), pattern, more);
                param.schema = described::param(route, name, param.schema, schemas);
                param
            });
            let mut list: Vec<Param> = list.collect();
            let body = route.rest_call.body.as_ref();
            let carried = body.map(|body| described::carried(route, body));
            list.extend(carried.into_iter().flatten().map(|member| Param {
                name: member.name.to_owned(),
                schema: member.embedded(schemas),
                is_required: member.is_required,
            }));
            Params {
                structure: "by-name",
                list,
            }
        }
        Pattern::List(list) => {
            let items = list.items.iter().enumerate();
            let list = items.map(|(index, pattern)| {
                let name = match pattern {
                    Pattern::Hole(slot) => slot.name.clone(),
                    Pattern::Literal(_)
                    | Pattern::Text(_)
                    | Pattern::Object(_)
                    | Pattern::List(_)
                    | Pattern::Each(_)
                    | Pattern::Either(_) => format!("param{}", index + 1),
                };
                let mut param = Param::new(name, pattern, more);
                param.schema = described::param_at(route, index, param.schema, schemas);
                param
            });
            Params {
                structure: "by-position",
                list: list.collect(),
            }
        }
        // The params are one value without known names.
        Pattern::Literal(_)
        | Pattern::Hole(_)
        | Pattern::Text(_)
        | Pattern::Each(_)
        | Pattern::Either(_) => Params {
            structure: "either",
            list: Vec::new(),
        },
    }
}

fn structure(all: &[Params]) -> &'static str {
    let mut structures = all.iter().map(|params| params.structure);
    let first = structures.next().unwrap_or("either");
    if structures.all(|structure| structure == first) {
        first
    } else {
        "either"
    }
}

/// Returns the schema of all params of a route.
fn whole(route: &Route) -> Value {
    let mut schema = of_pattern(&route.rpc_call.params, more(route));
    schema[ROUTE] = json!(route.name);
    schema
}

/// Merges the params of all routes of a method; a param is required if every route requires it.
fn merged(all: &[Params]) -> Vec<Value> {
    let mut names: Vec<&str> = Vec::new();
    for param in all.iter().flat_map(|params| &params.list) {
        if !names.contains(&param.name.as_str()) {
            names.push(&param.name);
        }
    }
    let params = names.into_iter().map(|name| {
        let bearing = all
            .iter()
            .map(|params| params.list.iter().find(|param| param.name == name));
        let bearing: Vec<_> = bearing.collect();
        let required = bearing
            .iter()
            .all(|found| found.is_some_and(|param| param.is_required));
        let schemas = bearing.into_iter().flatten();
        let schemas = schemas.map(|param| param.schema.clone()).collect();
        json!({ "name": name, "required": required, "schema": any_of(schemas) })
    });
    params.collect()
}

/// Returns the result: that of the rows, or any value the server sends.
fn result(routes: &[&Route], schemas: &mut Bundle) -> Value {
    let mut found = Vec::new();
    for route in routes {
        let rows = route.outcomes.rows().iter();
        let results: Vec<Value> = rows
            .filter_map(|row| match &row.rpc {
                RpcReplyPattern::Result(pattern) => Some(of_pattern(pattern, SchemaExtras::Open)),
                RpcReplyPattern::Error { .. } => None,
            })
            .collect();
        if results.is_empty() {
            found.push(described::whole_result(route, schemas));
        }
        found.extend(results);
    }
    json!({ "name": "result", "schema": any_of(found) })
}

/// Returns the errors of the rows, each code and message once.
fn errors(routes: &[&Route]) -> Vec<Value> {
    let mut errors = Vec::new();
    for row in routes.iter().flat_map(|route| route.outcomes.rows()) {
        for error in errors_of(row) {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
    }
    errors
}

fn errors_of(row: &OutcomeRow) -> Vec<Value> {
    let RpcReplyPattern::Error {
        code,
        message,
        data,
    } = &row.rpc
    else {
        return Vec::new();
    };
    let title = match message {
        Some(Pattern::Literal(literal)) => value(literal),
        Some(pattern) => json!(pattern.to_notation().trim_matches('"')),
        None => json!(title(&row.rest.status)),
    };
    let error = |code: i64| {
        let mut error = json!({ "code": code, "message": title });
        if let Some(data) = data {
            // `data` holds one value in OpenRPC, so variants go into an extension.
            match data {
                Pattern::Literal(literal) => error["data"] = value(literal),
                Pattern::Hole(_)
                | Pattern::Text(_)
                | Pattern::Object(_)
                | Pattern::List(_)
                | Pattern::Each(_)
                | Pattern::Either(_) => {
                    error["x-dualgauge-data"] = of_pattern(data, SchemaExtras::Open)
                }
            }
        }
        error
    };
    // A document cannot describe a code that differs for each response.
    match code {
        NumberPattern::Hole(_) | NumberPattern::Among(..) => code.numbers().map(error).collect(),
    }
}

/// Returns the message of an error whose row has none.
fn title(status: &NumberPattern) -> &'static str {
    let status = status.written();
    let status = status.and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
    status
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Error")
}
