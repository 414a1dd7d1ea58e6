//! Parameters of an OpenAPI operation, in a path, a query or a header.
//!
//! Law: an optional parameter that a route cannot express is left out with a note; a required one leaves out the whole
//! operation.
//!
//! Used by `import::openapi`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::model::{Inside, List, Parameter, ParameterLocation};
use super::refs::{Refs, shown, text};
use super::schema::{self, NamedValue, Schema, Type};
use super::unsupported::{OperationPart, Unsupported};
use crate::route::is_reserved;

/// Headers that a document may not declare (OpenAPI 3.1 §4.8.12.1), or that the proxy forwards anyway. A parameter cannot
/// be reserved ([`is_reserved`]) either.
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
];

/// The parameters of an operation.
#[derive(Debug, Default)]
pub(super) struct Declared {
    pub(super) parameters: Vec<Parameter>,
    /// The query names of the parameters that are left out.
    pub(super) unread: Vec<String>,
}

/// Reads the parameters of a path and of an operation; those of the operation override those of the path.
pub(super) fn read<'v>(
    refs: &Refs<'v>,
    lists: [Option<&'v Value>; 2],
    notes: &mut Vec<String>,
) -> Result<Declared, Unsupported> {
    let mut declared: Vec<(&str, &str, &Value)> = Vec::new();
    let mut indexes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for list in lists.into_iter().flatten() {
        for parameter in list.as_array().into_iter().flatten() {
            let parameter = refs.follow(parameter)?;
            let (Some(name), Some(location)) = (text(parameter, "name"), text(parameter, "in"))
            else {
                continue;
            };
            match indexes.entry((name, location)) {
                Entry::Occupied(known) => declared[*known.get()].2 = parameter,
                Entry::Vacant(free) => {
                    free.insert(declared.len());
                    declared.push((name, location, parameter));
                }
            }
        }
    }
    let mut found = Declared::default();
    for (name, location, parameter) in declared {
        refs.text(name)?;
        let location = match location {
            "path" => ParameterLocation::Path,
            "query" => ParameterLocation::Query,
            "header" if is_not_ours(name) => continue,
            "header" if is_header(name) => ParameterLocation::Header,
            "header" => {
                notes.push(format!("look: `{}` is not a header name", shown(name)));
                continue;
            }
            "querystring" => {
                // OpenAPI 3.2 §4.12.1: the parameter is the whole query.
                let why = "it is the whole query string, which a route cannot name";
                OperationPart::Parameter(name).leave_out(
                    schema::is_required(parameter),
                    why,
                    notes,
                )?;
                found.unread.push("*".to_owned());
                continue;
            }
            _ => {
                notes.push(format!(
                    "the {} parameter `{}` is not part of the route",
                    shown(location),
                    shown(name)
                ));
                continue;
            }
        };
        let read = one(refs, name, location, parameter, notes)?;
        if read.is_empty() && location == ParameterLocation::Query && !name.is_empty() {
            found.unread.push(name.to_owned());
        }
        found.parameters.extend(read);
    }
    drop_repeated_names(&mut found, notes)?;
    Ok(found)
}

/// Leaves out members of objects whose query name another parameter has.
fn drop_repeated_names(found: &mut Declared, notes: &mut Vec<String>) -> Result<(), Unsupported> {
    let mut names = BTreeSet::new();
    let mut stop = Ok(());
    let is_plain_query = |parameter: &Parameter| {
        parameter.location == ParameterLocation::Query && parameter.inside.is_none()
    };
    for parameter in found
        .parameters
        .iter()
        .filter(|parameter| is_plain_query(parameter))
    {
        names.insert(parameter.named.name.clone());
    }
    found.parameters.retain(|parameter| {
        if parameter.inside.is_none() || names.insert(parameter.named.name.clone()) {
            return true;
        }
        let named = &parameter.named;
        let why = "another parameter has its name in the query";
        if let Err(why) =
            OperationPart::Parameter(&named.name).leave_out(named.is_required, why, notes)
        {
            stop = Err(why);
        }
        false
    });
    stop
}

fn is_not_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = name.as_str();
    NOT_OURS.contains(&name) || is_reserved(name)
}

fn is_header(name: &str) -> bool {
    http::HeaderName::from_bytes(name.as_bytes()).is_ok()
}

fn one<'v>(
    refs: &Refs<'v>,
    name: &str,
    location: ParameterLocation,
    parameter: &'v Value,
    notes: &mut Vec<String>,
) -> Result<Vec<Parameter>, Unsupported> {
    let is_required = location == ParameterLocation::Path || schema::is_required(parameter);
    let schema = schema::read(refs, parameter.get("schema"))?;
    if let Some(style) = ObjectStyle::new(&schema, name, location, parameter) {
        let object = QueryObject {
            name,
            style,
            is_required,
        };
        return object.members(refs, &schema, notes);
    }
    let shape = if parameter.get("content").is_some() {
        Err("it is JSON inside a URL")
    } else if name.is_empty() {
        Err("it has no name")
    } else if is_capture(name, location) {
        Err("its name ends in `...`, which captures names in a route")
    } else {
        shape(&schema, location, parameter)
    };
    match shape {
        Ok((kind, list)) => Ok(vec![Parameter {
            location,
            named: NamedValue {
                name: name.to_owned(),
                kind,
                is_required,
                default: schema.default,
            },
            list,
            inside: None,
        }]),
        Err(why) => OperationPart::Parameter(name)
            .leave_out(is_required, why, notes)
            .map(|()| Vec::new()),
    }
}

/// Returns true when a route would take a name for a capture of other names.
fn is_capture(name: &str, location: ParameterLocation) -> bool {
    match location {
        ParameterLocation::Query => name == "...",
        ParameterLocation::Header => name.ends_with("..."),
        ParameterLocation::Path => false,
    }
}

/// The spelling of an object in a query, member by member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectStyle {
    /// `filter[eq]=a`
    Deep,
    /// `eq=a`
    Exploded,
}

impl ObjectStyle {
    /// Returns the spelling of an object with known members (OpenAPI 3.0 §4.7.12.2). A param cannot be named `...`.
    fn new(
        schema: &Schema,
        name: &str,
        location: ParameterLocation,
        parameter: &Value,
    ) -> Option<ObjectStyle> {
        let is_object = schema.kind == Type::Object && !schema.members.is_empty();
        if !is_object
            || location != ParameterLocation::Query
            || matches!(name, "" | "...")
            || parameter.get("content").is_some()
        {
            return None;
        }
        let explode = parameter.get("explode").and_then(Value::as_bool);
        match text(parameter, "style").unwrap_or("form") {
            "deepObject" => Some(ObjectStyle::Deep),
            "form" if explode != Some(false) => Some(ObjectStyle::Exploded),
            _ => None,
        }
    }
}

/// An object in a query, spelled member by member.
struct QueryObject<'n> {
    name: &'n str,
    style: ObjectStyle,
    is_required: bool,
}

impl QueryObject<'_> {
    /// Reads the members of an object in the query, each as a parameter of its own.
    fn members(
        &self,
        refs: &Refs<'_>,
        schema: &Schema,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Parameter>, Unsupported> {
        let mut found = Vec::new();
        for member in &schema.members {
            // The name of the object is repeated in each member, so it counts each time.
            refs.text(self.name)?;
            let name = match self.style {
                ObjectStyle::Deep => format!("{}[{}]", self.name, member.name),
                ObjectStyle::Exploded => member.name.clone(),
            };
            let is_required = self.is_required && member.is_required;
            if matches!(member.kind, Type::Object | Type::Array) || name.is_empty() {
                let why = "it is a list or an object inside an object, which has no standard form in a URL";
                OperationPart::Parameter(&name).leave_out(is_required, why, notes)?;
                continue;
            }
            found.push(Parameter {
                location: ParameterLocation::Query,
                named: NamedValue {
                    name,
                    kind: member.kind.clone(),
                    is_required,
                    default: member.default.clone(),
                },
                list: None,
                inside: Some(Inside {
                    object: self.name.to_owned(),
                    member: member.name.clone(),
                }),
            });
        }
        if schema.has_others {
            notes.push(format!(
                "look: only the named members of `{}` are read from the query",
                shown(self.name)
            ));
        }
        Ok(found)
    }
}

/// Returns the type of the hole and the spelling of a list.
fn shape(
    schema: &Schema,
    location: ParameterLocation,
    parameter: &Value,
) -> Result<(Type, Option<List>), &'static str> {
    match (&schema.kind, location) {
        (Type::Object, _) if !schema.members.is_empty() => {
            Err("it is an object in one text, in which its members may have any order")
        }
        (Type::Object, _) => Err("it is an object, which has no standard form in a URL"),
        (Type::Array, _) => {
            let items = schema.items.clone().unwrap_or_default();
            if matches!(items, Type::Object | Type::Array) {
                return Err("it is a list of lists or objects");
            }
            let list = list_style(location, parameter)?;
            Ok((scalar(items), Some(list)))
        }
        (kind, _) => Ok((kind.clone(), None)),
    }
}

/// Returns the type of a list element: a string where the schema has none.
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

/// Reads `style` and `explode` of a list (OpenAPI 3.0 §4.7.12.1); `form` explodes by default.
fn list_style(location: ParameterLocation, parameter: &Value) -> Result<List, &'static str> {
    let explode = parameter.get("explode").and_then(Value::as_bool);
    let default = match location {
        ParameterLocation::Query => "form",
        ParameterLocation::Path | ParameterLocation::Header => "simple",
    };
    match (location, text(parameter, "style").unwrap_or(default)) {
        (ParameterLocation::Query, "form") if explode == Some(false) => Ok(List::Commas),
        (ParameterLocation::Query, "form") => Ok(List::Repeated),
        (ParameterLocation::Query, "spaceDelimited" | "pipeDelimited") if explode == Some(true) => {
            Ok(List::Repeated)
        }
        (ParameterLocation::Query, "spaceDelimited") => Ok(List::Spaces),
        (ParameterLocation::Query, "pipeDelimited") => Ok(List::Pipes),
        // The spelling is the same with and without `explode`.
        (ParameterLocation::Path | ParameterLocation::Header, "simple") => Ok(List::Commas),
        (_, _) => Err("a route does not support its list style"),
    }
}
