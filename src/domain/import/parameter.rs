//! Parameters of an OpenAPI operation: what a URL or a header can say of a value.
//!
//! Law: what has no spelling in a route is left out with a note where it is optional, and leaves out the whole
//! operation where it is required.

use serde_json::Value;

use super::model::{List, Parameter, Place, text};
use super::openapi::Stop;
use super::refs::{Refs, shown};
use super::schema::{self, Named, Need, Schema, Type};

/// Headers that the document does not get to declare (OpenAPI 3.1 §4.8.12.1), those that the proxy takes along
/// anyway, and those of a single connection.
const NOT_OURS: &[&str] = &[
    "accept",
    "content-type",
    "authorization",
    "cookie",
    "accept-language",
    "user-agent",
    "idempotency-key",
    "x-request-id",
    "traceparent",
    "tracestate",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "forwarded",
];

/// The parameters of an operation.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) parameters: Vec<Parameter>,
    /// The names in the query of those that are left out.
    pub(super) unread: Vec<String>,
}

/// Reads the parameters of a path and of an operation; the operation's are over those of the path.
pub(super) fn read<'v>(
    refs: &Refs<'v>,
    lists: [Option<&'v Value>; 2],
    notes: &mut Vec<String>,
) -> Result<Declared, Stop> {
    let mut declared: Vec<(&str, &str, &Value)> = Vec::new();
    for list in lists.into_iter().flatten() {
        for parameter in list.as_array().into_iter().flatten() {
            let parameter = refs.follow(parameter)?;
            let (Some(name), Some(place)) = (text(parameter, "name"), text(parameter, "in")) else {
                continue;
            };
            match declared
                .iter_mut()
                .find(|known| known.0 == name && known.1 == place)
            {
                Some(known) => known.2 = parameter,
                None => declared.push((name, place, parameter)),
            }
        }
    }
    let mut found = Declared::default();
    for (name, place, parameter) in declared {
        let place = match place {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" if is_not_ours(name) => continue,
            "header" if is_header(name) => Place::Header,
            "header" => {
                notes.push(format!("look: `{}` is no name of a header", shown(name)));
                continue;
            }
            "querystring" => {
                // OpenAPI 3.2 §4.12.1: one value is the whole query.
                let why = "it is the whole query string, which no route can name";
                left_out(name, Need::of(parameter.get("required")), why, notes)?;
                found.unread.push("*".to_owned());
                continue;
            }
            _ => {
                notes.push(format!(
                    "the {} parameter `{}` is no part of the route",
                    shown(place),
                    shown(name)
                ));
                continue;
            }
        };
        match one(refs, name, place, parameter, notes)? {
            Some(parameter) => found.parameters.push(parameter),
            None if place == Place::Query && !name.is_empty() => {
                found.unread.push(name.to_owned());
            }
            None => {}
        }
    }
    Ok(found)
}

fn is_not_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NOT_OURS.contains(&name.as_str()) || name.starts_with("proxy-")
}

fn is_header(name: &str) -> bool {
    http::HeaderName::from_bytes(name.as_bytes()).is_ok()
}

fn one<'v>(
    refs: &Refs<'v>,
    name: &str,
    place: Place,
    parameter: &'v Value,
    notes: &mut Vec<String>,
) -> Result<Option<Parameter>, Stop> {
    let need = match place {
        Place::Path => Need::Required,
        Place::Query | Place::Header => Need::of(parameter.get("required")),
    };
    let schema = schema::read(refs, parameter.get("schema"))?;
    let shape = if parameter.get("content").is_some() {
        Err("it is JSON inside a URL")
    } else if name.is_empty() {
        Err("it has no name")
    } else {
        shape(&schema, place, parameter)
    };
    match (shape, need) {
        (Ok((kind, list)), need) => Ok(Some(Parameter {
            place,
            named: Named {
                name: name.to_owned(),
                kind,
                need,
                default: schema.default,
            },
            list,
        })),
        (Err(why), need) => left_out(name, need, why, notes).map(|()| None),
    }
}

/// Leaves out a parameter, or the operation that requires it.
fn left_out(name: &str, need: Need, why: &str, notes: &mut Vec<String>) -> Result<(), Stop> {
    let name = shown(name);
    match need {
        Need::Required => Err(Stop::left_out(format!(
            "its parameter `{name}` is required, and {why}"
        ))),
        Need::Optional => {
            notes.push(format!("look: the parameter `{name}` is left out: {why}"));
            Ok(())
        }
    }
}

/// The type of the hole, and how a list is written.
fn shape(
    schema: &Schema,
    place: Place,
    parameter: &Value,
) -> Result<(Type, Option<List>), &'static str> {
    match (&schema.kind, place) {
        (Type::Object, _) => Err("it is an object, which has no one spelling in a URL"),
        (Type::Array, Place::Query) => {
            let items = schema.items.clone().unwrap_or_default();
            if matches!(items, Type::Object | Type::Array) {
                return Err("it is a list of lists or objects");
            }
            list_style(parameter).map(|list| (scalar(items), Some(list)))
        }
        (Type::Array, Place::Path | Place::Header) => Err("it is a list outside of a query"),
        (kind, _) => Ok((kind.clone(), None)),
    }
}

/// The element of a list always has a type.
fn scalar(kind: Type) -> Type {
    match kind {
        Type::Any => Type::String,
        Type::String
        | Type::Integer
        | Type::Number
        | Type::Boolean
        | Type::Object
        | Type::Array
        | Type::Enum(_) => kind,
    }
}

/// `style` and `explode` of a query parameter; `form` explodes unless told otherwise.
fn list_style(parameter: &Value) -> Result<List, &'static str> {
    let explode = parameter.get("explode").and_then(Value::as_bool);
    match text(parameter, "style").unwrap_or("form") {
        "form" if explode == Some(false) => Ok(List::Commas),
        "form" => Ok(List::Repeated),
        "spaceDelimited" | "pipeDelimited" if explode == Some(true) => Ok(List::Repeated),
        _ => Err("its style of a list is none that a route has"),
    }
}
