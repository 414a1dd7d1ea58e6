//! The documentation of an operation: its texts, and the schemas of its arguments and of its result.
//!
//! Used by `import::tools`.

use serde_json::{Map, Value, json};

use super::schema::Schemas;
use super::texts::limited;
use crate::import::drafted::DraftedDocs;
use crate::import::form::{self, FieldSchemas};
use crate::import::hole::Absence;
use crate::import::model::{BodyModel, RestOperation};
use crate::import::refs::shown;
use crate::import::reply::is_json;
use crate::import::schema::Type;
use crate::import::values::{Bindings, BoundParameter, RestLocation, RpcLocation};

/// The most `allOf` parts and references in which a member of a body is looked for.
const DEEPEST: usize = 16;

/// An operation of a document.
pub(super) struct OperationDocs<'d> {
    document: &'d Value,
    item: &'d Value,
    operation: &'d Value,
}

impl<'d> OperationDocs<'d> {
    /// Finds the operation of the document.
    pub(super) fn read(document: &'d Value, rest: &RestOperation) -> OperationDocs<'d> {
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
        }
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &'d str> {
        let tags = self.operation.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    /// Returns true when a note repeats the documentation.
    pub(super) fn says(&self, note: &str) -> bool {
        let mut texts = ["summary", "description"].into_iter();
        texts.any(|name| limited(self.operation, name).is_some_and(|text| shown(&text) == note))
    }

    /// Returns the texts, without schemas.
    pub(super) fn texts(&self) -> DraftedDocs {
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
        let tags = self.tags().filter(|tag| is_name(tag)).take(MOST_TAGS);
        DraftedDocs {
            summary: limited(self.operation, "summary"),
            description,
            tags: tags.map(str::to_owned).collect(),
            params: None,
            result: None,
        }
    }

    /// Returns the schema of the params of `tools/call`.
    pub(super) fn params(
        &self,
        rest: &RestOperation,
        bindings: &Bindings,
        schemas: &mut Schemas,
    ) -> Value {
        let mut arguments = Members::default();
        let mut objects: Vec<(String, Members)> = Vec::new();
        for bound in &bindings.bounds {
            let is_required = bound.absence == Absence::Required;
            match &bound.rpc {
                RpcLocation::Named(name) => match file_schemas(rest, bound, bindings) {
                    Some(file) => {
                        let description = self.value(bound, schemas).get("description").cloned();
                        let mut own = file.own;
                        if let Some(text) = description {
                            own["description"] = text;
                        }
                        arguments.add(name, own, file.is_required);
                        for (name, schema) in file.beside {
                            arguments.add(&name, schema, false);
                        }
                    }
                    None => arguments.add(name, self.value(bound, schemas), is_required),
                },
                RpcLocation::Inside(object, member) => {
                    let RpcLocation::Named(object) = &**object else {
                        continue;
                    };
                    let at = objects.iter().position(|(name, _)| name == object);
                    let at = at.unwrap_or_else(|| {
                        objects.push((object.clone(), Members::default()));
                        objects.len() - 1
                    });
                    objects[at]
                        .1
                        .add(member, self.value(bound, schemas), is_required);
                }
                RpcLocation::Position(_) | RpcLocation::Twin | RpcLocation::Equal => {}
            }
        }
        for (name, members) in objects {
            let is_required = !members.required.is_empty();
            arguments.add(&name, members.schema(false), is_required);
        }
        let mut schema = arguments.schema(bindings.has_others);
        if rest.form.is_none() && matches!(rest.body, BodyModel::Members { .. }) {
            self.constrain(bindings, schemas, &mut schema);
        }
        json!({ "properties": { "arguments": schema } })
    }

    /// Adds what the schema of the body says of its members together. Members of an alternative that refuses others
    /// cannot stand beside parameters.
    fn constrain(&self, bindings: &Bindings, schemas: &mut Schemas, arguments: &mut Value) {
        let Some(body) = self.body() else {
            return;
        };
        let mut parts = Vec::new();
        self.alternatives(body, DEEPEST, &mut parts);
        let is_alone = bindings.bounds.iter().all(BoundParameter::is_in_body);
        parts.retain(|part| is_alone || !self.is_closed(part, DEEPEST));
        let parts: Vec<Value> = parts.iter().map(|part| schemas.convert(part)).collect();
        if !parts.is_empty() {
            arguments["allOf"] = parts.into();
        }
    }

    /// Collects the alternatives and the unnamed required members of an object schema, also in `allOf`.
    fn alternatives(&self, schema: &Value, depth: usize, parts: &mut Vec<Value>) {
        let Some(depth) = depth.checked_sub(1) else {
            return;
        };
        let schema = follow(self.document, schema);
        for name in ["anyOf", "oneOf", "not"] {
            if let Some(alternatives) = schema.get(name) {
                parts.push(json!({ name: alternatives }));
            }
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_named = |name: &Value| {
            let name = name.as_str().unwrap_or_default();
            self.member(schema, name, DEEPEST).is_some()
        };
        let unnamed = required.into_iter().flatten();
        let unnamed: Vec<&Value> = unnamed.filter(|name| !is_named(name)).collect();
        if !unnamed.is_empty() {
            parts.push(json!({ "required": unnamed }));
        }
        let all = schema.get("allOf").and_then(Value::as_array);
        for part in all.into_iter().flatten().take(DEEPEST) {
            self.alternatives(part, depth, parts);
        }
    }

    /// Returns true when a schema refuses members that it does not name.
    fn is_closed(&self, schema: &Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else {
            return true;
        };
        let schema = follow(self.document, schema);
        let refuses = |name: &str| schema.get(name) == Some(&Value::Bool(false));
        let has_part = |name: &str| match schema.get(name) {
            Some(Value::Array(parts)) => parts.iter().any(|part| self.is_closed(part, depth)),
            Some(part) => self.is_closed(part, depth),
            None => false,
        };
        refuses("additionalProperties")
            || refuses("unevaluatedProperties")
            || schema.get("maxProperties").is_some()
            || ["allOf", "anyOf", "oneOf", "not"].into_iter().any(has_part)
    }

    /// Returns the schema of a value.
    fn value(&self, bound: &BoundParameter, schemas: &mut Schemas) -> Value {
        let found = match &bound.rest {
            RestLocation::Path(name) => self.parameter("path", name),
            RestLocation::Query(name) => self.parameter("query", name),
            RestLocation::Header(name) => self.parameter("header", name),
            RestLocation::Member(name) => self
                .body()
                .and_then(|body| self.member(body, name, DEEPEST))
                .map(|schema| (schema, None)),
            RestLocation::Body => self.body().map(|schema| (schema, None)),
        };
        let Some((schema, description)) = found else {
            return of_type(&bound.kind, bound.list.is_some());
        };
        let mut schema = schemas.convert(schema);
        if !bound.is_in_body() {
            schema = of_text(bound, schema);
        }
        if let (Some(text), Value::Object(members)) = (description, &mut schema) {
            members.insert("description".to_owned(), text.into());
        }
        schema
    }

    /// Returns the schema and the description of a parameter.
    fn parameter(&self, place: &str, name: &str) -> Option<(&'d Value, Option<String>)> {
        let lists = [self.operation, self.item].map(|owner| owner.get("parameters"));
        let lists = lists.into_iter().flatten().filter_map(Value::as_array);
        let all = lists.flatten().map(|found| follow(self.document, found));
        let mut here = all.filter(|found| found.get("in").is_some_and(|found| found == place));
        let named = |found: &&Value| {
            let found = found
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            found == name || place == "header" && found.eq_ignore_ascii_case(name)
        };
        let object = name.split(['[', '.']).next().unwrap_or_default();
        let whole = here.clone().find(named);
        let found = match whole {
            Some(found) => found,
            // A member of an object that the query spells member by member.
            None => {
                let parameter = here.find_map(|found| {
                    let schema = found.get("schema")?;
                    let is_object = found.get("name").is_some_and(|found| found == object);
                    let member = name.strip_prefix(object).unwrap_or(name);
                    let member = member.trim_matches(['[', ']', '.']);
                    let member = if is_object { member } else { name };
                    self.member(schema, member, DEEPEST)
                });
                return parameter.map(|schema| (schema, None));
            }
        };
        let content = found.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.values().next()?.get("schema"));
        // A parameter of Swagger 2.0 is its own schema.
        let schema = found.get("schema").or(content).unwrap_or(found);
        Some((schema, limited(found, "description")))
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

    /// Finds a member of an object schema, also in `allOf`.
    fn member(&self, schema: &'d Value, name: &str, depth: usize) -> Option<&'d Value> {
        let depth = depth.checked_sub(1)?;
        let schema = follow(self.document, schema);
        let own = schema.get("properties").and_then(|all| all.get(name));
        own.or_else(|| {
            let parts = schema.get("allOf")?.as_array()?;
            let mut parts = parts.iter().take(DEEPEST);
            parts.find_map(|part| self.member(part, name, depth))
        })
    }

    /// Returns the schema of the result; `None` if there may be no content, or its form is unknown.
    pub(super) fn result(&self, schemas: &mut Schemas) -> Option<Value> {
        let responses = self.operation.get("responses")?.as_object()?;
        let successes = responses
            .iter()
            .filter(|(status, _)| status.starts_with('2'));
        let mut found: Vec<Value> = Vec::new();
        for (_, response) in successes {
            let response = follow(self.document, response);
            let content = response.get("content").and_then(Value::as_object);
            let schema = match content {
                Some(content) => {
                    let json = content.iter().find(|(kind, _)| is_json(kind));
                    match json {
                        Some((_, media)) => {
                            schemas.convert(follow(self.document, media).get("schema")?)
                        }
                        None if content.keys().any(|kind| kind.starts_with("text/")) => {
                            json!({ "type": "string" })
                        }
                        // Bytes are content without a structured value.
                        None => return None,
                    }
                }
                None => schemas.convert(response.get("schema")?),
            };
            if !found.contains(&schema) {
                found.push(schema);
            }
        }
        // A schema that every value fits says nothing, and would only wrap objects.
        if found.contains(&json!({})) || found.contains(&Value::Bool(true)) {
            return None;
        }
        match found.len() {
            0 | 1 => found.pop(),
            _ => Some(json!({ "anyOf": found })),
        }
    }
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

fn file_schemas(
    rest: &RestOperation,
    bound: &BoundParameter,
    bindings: &Bindings,
) -> Option<FieldSchemas> {
    let RestLocation::Member(name) = &bound.rest else {
        return None;
    };
    form::file_schemas(rest.field(name), bound, bindings)
}

/// Returns the schema of a value in a path, a query or a header. A hole without a type is a string there, whatever else
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
fn follow<'v, 'd: 'v>(document: &'d Value, value: &'v Value) -> &'v Value {
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

/// Returns true when a tag can be a name in the configuration.
fn is_name(tag: &str) -> bool {
    !tag.is_empty()
        && tag.len() <= 100
        && !tag.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn of_type(kind: &Type, is_list: bool) -> Value {
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
