//! The documentation of an operation: its texts, and the schemas of its arguments and of its result.
//!
//! Used by `import`.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::schema::Schemas;
use super::texts::limited;
use super::together;
use crate::import::drafted::{Drafted, DraftedDocs, FieldSchemas};
use crate::import::hole::Absence;
use crate::import::media_type::is_json;
use crate::import::model::{CallModel, RestOperation};
use crate::import::refs::shown;
use crate::import::schema::Type;
use crate::import::values::{BoundParameter, RestLocation, RpcLocation};

/// The places of parameters that routes have.
const PLACES: [&str; 4] = ["path", "query", "header", "body"];

/// An operation of a document.
pub(in crate::import) struct OperationDocs<'d> {
    document: &'d Value,
    item: &'d Value,
    operation: &'d Value,
    /// True for a body that is JSON with named members.
    has_members: bool,
    parameters: OnceCell<ParameterIndex<'d>>,
    body_members: OnceCell<BTreeMap<&'d str, &'d Value>>,
}

/// The parameters of an operation, by place and name; headers in lower case.
#[derive(Default)]
struct ParameterIndex<'d> {
    declared: BTreeMap<(&'static str, String), &'d Value>,
    /// The schemas of the members of objects in the query.
    members: BTreeMap<(&'static str, String), &'d Value>,
}

impl<'d> OperationDocs<'d> {
    /// Finds the operation of the document.
    pub(in crate::import) fn read(document: &'d Value, rest: &RestOperation) -> OperationDocs<'d> {
        let item = document
            .get("paths")
            .and_then(|paths| paths.get(&rest.origin));
        let item = item.map_or(&Value::Null, |item| follow(document, item));
        let fixed = item.get(rest.method.to_ascii_lowercase());
        let additional = item.get("additionalOperations");
        let operation = fixed.or_else(|| additional?.get(&rest.method));
        OperationDocs {
            document,
            item,
            operation: operation.unwrap_or(&Value::Null),
            has_members: rest.form.is_none() && rest.has_members(),
            parameters: OnceCell::new(),
            body_members: OnceCell::new(),
        }
    }

    /// Returns the operation itself; null if it is not there.
    pub(in crate::import) fn operation(&self) -> &'d Value {
        self.operation
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &'d str> {
        let tags = self.operation.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns true when a note repeats the documentation.
    pub(in crate::import) fn says(&self, note: &str) -> bool {
        let mut texts = ["summary", "description"].into_iter();
        texts.any(|name| limited(self.operation, name).is_some_and(|text| shown(&text) == note))
    }

    /// Returns the texts, without schemas.
    pub(in crate::import) fn texts(&self) -> DraftedDocs {
        const MOST_TAGS: usize = 20;
        let mut description = limited(self.operation, "description");
        if self.operation.get("deprecated") == Some(&Value::Bool(true)) {
            let text = description.or_else(|| limited(self.operation, "summary"));
            description = Some(
                format!("Deprecated. {}", text.unwrap_or_default())
                    .trim()
                    .to_owned(),
            );
        }
        let tags = self.tags().filter(|tag| is_tag(tag)).take(MOST_TAGS);
        DraftedDocs {
            summary: limited(self.operation, "summary"),
            description,
            tags: tags.map(str::to_owned).collect(),
            body: self.body_text(),
            params: None,
            result: None,
            successes: None,
            failures: None,
        }
    }

    /// Returns the description of the body.
    fn body_text(&self) -> Option<String> {
        limited(
            follow(self.document, self.operation.get("requestBody")?),
            "description",
        )
    }

    /// Returns the schema of the params of a route's RPC calls.
    pub(in crate::import) fn params(
        &self,
        call: CallModel,
        drafted: &Drafted,
        schemas: &mut Schemas<'d>,
    ) -> Value {
        let mut named = Members::default();
        let mut positions: BTreeMap<usize, Value> = BTreeMap::new();
        let mut objects: BTreeMap<&RpcLocation, Members> = BTreeMap::new();
        for bound in &drafted.bounds {
            let file = drafted.files.get(&bound.hole);
            let value = self.value(call, bound, schemas);
            let (value, is_required) = match file {
                Some(file) => (of_file(file, &value), file.is_required),
                None => (value, bound.absence == Absence::Required),
            };
            match &bound.rpc {
                RpcLocation::Named(name) => {
                    named.add(name, value, is_required);
                    let beside = file.map(|file| file.beside.as_slice());
                    for (name, schema) in beside.unwrap_or_default() {
                        named.add(name, schema.clone(), false);
                    }
                }
                RpcLocation::Position(at) => {
                    positions.insert(*at, value);
                }
                RpcLocation::Inside(object, member) => {
                    let members = objects.entry(&**object).or_default();
                    members.add(member, value, is_required);
                }
                RpcLocation::Twin | RpcLocation::Equal => {}
            }
        }
        for (place, members) in objects {
            let is_required = !members.required.is_empty();
            let schema = members.schema(false);
            match place {
                RpcLocation::Named(name) => named.add(name, schema, is_required),
                RpcLocation::Position(at) => {
                    positions.insert(*at, schema);
                }
                RpcLocation::Inside(..) | RpcLocation::Twin | RpcLocation::Equal => {}
            }
        }
        match call {
            CallModel::Tool => {
                let mut arguments = named.schema(drafted.has_others);
                self.constrain(drafted, schemas, &mut arguments);
                json!({ "properties": { "arguments": arguments } })
            }
            CallModel::ByName => named.schema(drafted.has_others),
            CallModel::ByPosition => {
                let positions: Vec<Value> = positions.into_values().collect();
                json!({ "type": "array", "prefixItems": positions })
            }
        }
    }

    /// Adds the demands of the body on its members together. Members of an alternative that refuses others cannot stand
    /// beside parameters.
    fn constrain(&self, drafted: &Drafted, schemas: &mut Schemas<'d>, arguments: &mut Value) {
        let Some(body) = self.body().filter(|_| self.has_members) else {
            return;
        };
        let mut demands = together::demands(self.document, body);
        let is_alone = drafted.bounds.iter().all(BoundParameter::is_in_body);
        demands.retain(|demand| is_alone || !together::is_closed(self.document, demand));
        let demands = demands.iter().map(|demand| schemas.convert(demand));
        let demands: Vec<Value> = demands.collect();
        if !demands.is_empty() {
            arguments["allOf"] = demands.into();
        }
    }

    /// Returns the schema of a value.
    fn value(&self, call: CallModel, bound: &BoundParameter, schemas: &mut Schemas<'d>) -> Value {
        let found = match &bound.rest {
            RestLocation::Path(name) => self.parameter("path", name),
            RestLocation::Query(name) => {
                let found = self.member_of_namesake(name, &bound.rpc);
                let found = found.map(|schema| (schema, None));
                found.or_else(|| self.parameter("query", name))
            }
            RestLocation::Header(name) => self.parameter("header", name),
            RestLocation::Member(name) => {
                let found = self.member_of_body(name);
                let found = found.or_else(|| self.member_of_object(&bound.rpc));
                found.map(|schema| (schema, None))
            }
            RestLocation::Body => self.body().map(|schema| (schema, None)),
        };
        let Some((schema, description)) = found else {
            return of_type(&bound.kind, bound.list.is_some());
        };
        let mut schema = schemas.convert(schema);
        if call == CallModel::Tool && !bound.is_in_body() {
            schema = of_text(bound, schema);
        }
        if let (Some(text), Value::Object(members)) = (description, &mut schema) {
            members.insert("description".to_owned(), text.into());
        }
        schema
    }

    /// Returns the schema of a member of an object in the query that has the name of its object.
    fn member_of_namesake(&self, name: &str, rpc: &RpcLocation) -> Option<&'d Value> {
        let RpcLocation::Inside(_, member) = rpc else {
            return None;
        };
        let key = ("query", name.to_owned());
        let index = self.parameters.get_or_init(|| self.indexed());
        let schema = index.declared.get(&key)?.get("schema")?;
        together::members(self.document, schema).remove(member.as_str())
    }

    /// Returns the schema and the description of a parameter.
    fn parameter(&self, place: &'static str, name: &str) -> Option<(&'d Value, Option<String>)> {
        let index = self.parameters.get_or_init(|| self.indexed());
        let name = match place {
            "header" => name.to_ascii_lowercase(),
            _ => name.to_owned(),
        };
        let key = (place, name);
        let Some(found) = index.declared.get(&key) else {
            let schema = index.members.get(&key)?;
            return Some((schema, None));
        };
        let content = found.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.values().next()?.get("schema"));
        // A parameter of Swagger 2.0 is its own schema.
        let schema = found.get("schema").or(content).unwrap_or(found);
        Some((schema, limited(found, "description")))
    }

    /// Indexes the parameters; those of the operation override those of its path, and the last of
    /// one name the others.
    fn indexed(&self) -> ParameterIndex<'d> {
        let lists = [self.item, self.operation].map(|owner| owner.get("parameters"));
        let lists = lists.into_iter().flatten().filter_map(Value::as_array);
        let mut index = ParameterIndex::default();
        for found in lists.flatten() {
            let found = follow(self.document, found);
            let word = |name: &str| found.get(name).and_then(Value::as_str);
            let (Some(place), Some(name)) = (word("in"), word("name")) else {
                continue;
            };
            let Some(place) = PLACES.iter().find(|known| **known == place) else {
                continue;
            };
            let name = match *place {
                "header" => name.to_ascii_lowercase(),
                _ => name.to_owned(),
            };
            if let Some(schema) = found.get("schema").filter(|_| *place == "query") {
                // An object that the query spells member by member.
                for (member, schema) in together::members(self.document, schema) {
                    for wire in [format!("{name}[{member}]"), member.to_owned()] {
                        index.members.insert((place, wire), schema);
                    }
                }
            }
            index.declared.insert((place, name), found);
        }
        index
    }

    /// Returns the schema of the body.
    fn body(&self) -> Option<&'d Value> {
        let Some(request) = self.operation.get("requestBody") else {
            let (schema, _) = self.parameter("body", "body").or_else(|| {
                let list = self.operation.get("parameters")?.as_array()?;
                let mut list = list.iter().map(|found| follow(self.document, found));
                let found = list.find(|found| found.get("in").is_some_and(|at| at == "body"))?;
                Some((found.get("schema")?, None))
            })?;
            return Some(schema);
        };
        let content = follow(self.document, request).get("content")?.as_object()?;
        let json = content.iter().find(|(kind, _)| is_json(kind));
        let (_, media) = json.or_else(|| content.iter().next())?;
        follow(self.document, media).get("schema")
    }

    /// Returns the schema of a member of the body.
    fn member_of_body(&self, name: &str) -> Option<&'d Value> {
        let members = self.body_members.get_or_init(|| {
            let body = self.body();
            body.map(|body| together::members(self.document, body))
                .unwrap_or_default()
        });
        members.get(name).copied()
    }

    /// Returns the schema of a member of an object of a form, whose members are fields of their own.
    fn member_of_object(&self, param: &RpcLocation) -> Option<&'d Value> {
        let RpcLocation::Inside(object, member) = param else {
            return None;
        };
        let RpcLocation::Named(object) = &**object else {
            return None;
        };
        let members = together::members(self.document, self.member_of_body(object)?);
        members.get(member.as_str()).copied()
    }

    /// Returns the documented result of a success.
    pub(in crate::import) fn result(&self, schemas: &mut Schemas<'d>) -> ResultDocs {
        let responses = self.operation.get("responses").and_then(Value::as_object);
        let successes = responses
            .into_iter()
            .flatten()
            .filter(|(status, _)| status.starts_with('2'));
        let mut found: Vec<Value> = Vec::new();
        let mut docs = ResultDocs::default();
        for (_, response) in successes {
            let response = follow(self.document, response);
            let content = response.get("content").and_then(Value::as_object);
            let json = content.and_then(|content| content.iter().find(|(kind, _)| is_json(kind)));
            let schema = match (json, content) {
                (Some((_, media)), _) => follow(self.document, media).get("schema").map(Some),
                (None, Some(content)) if content.keys().any(|kind| kind.starts_with("text/")) => {
                    Some(None)
                }
                // Bytes are content without a structured value.
                (None, Some(content)) if !content.is_empty() => return ResultDocs::default(),
                // Swagger 2.0 has the schema in the response.
                (None, _) => match response.get("schema") {
                    Some(schema) => Some(Some(schema)),
                    None => {
                        docs.may_be_empty = true;
                        continue;
                    }
                },
            };
            let schema = match schema {
                Some(Some(schema)) => schemas.convert(schema),
                Some(None) => json!({ "type": "string" }),
                None => json!({}),
            };
            if !found.contains(&schema) {
                found.push(schema);
            }
        }
        // A schema that every value fits says nothing, and would only wrap objects.
        if found.contains(&json!({})) || found.contains(&Value::Bool(true)) {
            return ResultDocs::default();
        }
        docs.schema = match found.len() {
            0 | 1 => found.pop(),
            _ => Some(json!({ "anyOf": found })),
        };
        docs
    }
}

/// The documented result of a success.
#[derive(Debug, Default)]
pub(in crate::import) struct ResultDocs {
    /// The schema of the content.
    pub(in crate::import) schema: Option<Value>,
    /// True if a success without content is documented.
    pub(in crate::import) may_be_empty: bool,
}

/// The members of an object schema.
#[derive(Default)]
struct Members {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Members {
    fn add(&mut self, name: &str, schema: Value, is_required: bool) {
        if self.properties.contains_key(name) {
            return;
        }
        self.properties.insert(name.to_owned(), schema);
        if is_required {
            self.required.push(name.into());
        }
    }

    fn schema(self, has_others: bool) -> Value {
        let mut schema = json!({ "type": "object", "properties": self.properties });
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        if !has_others {
            schema["additionalProperties"] = json!(false);
        }
        schema
    }
}

/// Returns the schema of a file, with the description of its field.
fn of_file(file: &FieldSchemas, field: &Value) -> Value {
    let mut own = file.own.clone();
    if let Some(text) = field.get("description") {
        own["description"] = text.clone();
    }
    own
}

/// Returns the schema of an argument in a path, a query or a header. A hole without a type is a string there, whatever else
/// the document allows.
fn of_text(bound: &BoundParameter, schema: Value) -> Value {
    let is_string = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "string");
    match (&bound.kind, bound.list) {
        (Type::Any, None) if !is_string(&schema) => json!({ "type": "string" }),
        (Type::String, Some(_)) if !schema.get("items").is_some_and(is_string) => {
            json!({ "type": "array", "items": { "type": "string" } })
        }
        (_, _) => schema,
    }
}

/// Returns the target of local references.
pub(super) fn follow<'v, 'd: 'v>(document: &'d Value, value: &'v Value) -> &'v Value {
    const LONGEST_CHAIN: usize = 32;
    let mut value = value;
    for _ in 0..LONGEST_CHAIN {
        let reference = value.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| super::schema::target(document, reference));
        match target {
            Some(target) => value = target,
            None => break,
        }
    }
    value
}

/// Returns true when a route can have a tag.
fn is_tag(tag: &str) -> bool {
    !tag.is_empty() && tag.len() <= 100 && !tag.contains(char::is_control)
}

/// Returns the schema of a value of which only the type is known.
pub(in crate::import) fn of_type(kind: &Type, is_list: bool) -> Value {
    let word = match kind {
        Type::Any => None,
        Type::String | Type::Enum(_) => Some("string"),
        Type::Integer => Some("integer"),
        Type::Number => Some("number"),
        Type::Boolean => Some("boolean"),
        Type::Object => Some("object"),
        Type::Array => Some("array"),
    };
    let mut schema = word.map_or_else(|| json!({}), |word| json!({ "type": word }));
    if let Type::Enum(words) = kind {
        schema["enum"] = json!(words);
    }
    if is_list {
        schema = json!({ "type": "array", "items": schema });
    }
    schema
}
