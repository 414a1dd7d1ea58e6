//! The operations of an OpenAPI document in a form that can be compared: without references, and without what says nothing
//! about the values. Used by `round_trip`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use dualgauge_patterns::percent::{self, Plus};

/// Members that are schemas themselves, or lists of them.
const PARTS: [&str; 5] = ["$ref", "allOf", "anyOf", "oneOf", "not"];

/// A document whose references can be followed.
pub(super) struct Document<'d>(pub(super) &'d Value);

impl<'d> Document<'d> {
    fn follow(&self, value: &'d Value) -> &'d Value {
        let mut value = value;
        for _ in 0..32 {
            let target = value.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| self.0.pointer(target.strip_prefix('#')?));
            match target {
                Some(target) => value = target,
                None => break,
            }
        }
        value
    }

    /// Returns a schema without references, in the form of JSON Schema.
    fn schema(&self, schema: &'d Value, depth: usize) -> Value {
        let is_nullable = |schema: &Value| {
            let has_parts = PARTS.iter().any(|name| schema.get(name).is_some());
            has_parts && schema.get("nullable") == Some(&Value::Bool(true))
        };
        let schema = match is_nullable(schema) {
            true => schema,
            false => self.follow(schema),
        };
        if !is_nullable(schema) {
            return self.not_null(schema, depth);
        }
        // OpenAPI 3.0: a flag beside the parts, which `null` does not fit.
        let Some(inside) = depth.checked_sub(2) else {
            return if depth == 0 {
                json!({})
            } else {
                json!({ "anyOf": {} })
            };
        };
        let nothing = if inside == 0 {
            json!({})
        } else {
            json!({ "type": "null" })
        };
        json!({ "anyOf": [self.not_null(schema, inside), nothing] })
    }

    /// Returns a schema, without a flag for `null` beside its parts.
    fn not_null(&self, schema: &'d Value, depth: usize) -> Value {
        const SAYS_NOTHING: [&str; 6] = [
            "example",
            "examples",
            "nullable",
            "xml",
            "discriminator",
            "$ref",
        ];
        let Some(depth) = depth.checked_sub(1) else {
            return json!({});
        };
        let schema = self.follow(schema);
        match schema {
            Value::Object(members) => {
                let mut found = Map::new();
                for (name, member) in members {
                    if SAYS_NOTHING.contains(&name.as_str()) || name.starts_with("x-") {
                        continue;
                    }
                    let copy = match name.as_str() {
                        "enum" | "default" | "const" | "required" => member.clone(),
                        "type" if !member.is_object() => member.clone(),
                        // Its members have any names, such as `$ref`.
                        "properties" => self.members(member, depth.saturating_sub(1)),
                        _ => self.schema(member, depth),
                    };
                    found.insert(name.clone(), copy);
                }
                let has_parts = PARTS.iter().any(|name| members.contains_key(*name));
                if members.get("nullable") == Some(&Value::Bool(true)) && !has_parts {
                    accept_null(&mut found);
                }
                // OpenAPI 3.0 has flags beside the bounds.
                for (flag, bound) in [
                    ("exclusiveMinimum", "minimum"),
                    ("exclusiveMaximum", "maximum"),
                ] {
                    match found.get(flag) {
                        Some(Value::Bool(true)) => {
                            let limit = found.remove(bound).unwrap_or_default();
                            found.insert(flag.to_owned(), limit);
                        }
                        Some(Value::Bool(false)) => {
                            found.remove(flag);
                        }
                        Some(_) | None => {}
                    }
                }
                if !found.contains_key("type") && found.contains_key("properties") {
                    found.insert("type".to_owned(), "object".into());
                }
                Value::Object(found)
            }
            Value::Array(items) => items.iter().map(|item| self.schema(item, depth)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => schema.clone(),
        }
    }

    /// Returns the schemas of named members.
    fn members(&self, members: &'d Value, depth: usize) -> Value {
        let members = members.as_object().into_iter().flatten();
        let members = members.map(|(name, member)| (name.clone(), self.schema(member, depth)));
        members.collect()
    }

    /// Returns the operations: method, path without names, path item, operation.
    pub(super) fn operations(&self) -> Vec<(String, String, &'d Value, &'d Value)> {
        const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];
        let paths = self.0["paths"].as_object().into_iter().flatten();
        let mut found = Vec::new();
        for (path, item) in paths {
            let item = self.follow(item);
            for method in METHODS {
                if let Some(operation) = item.get(method) {
                    found.push((method.to_owned(), shape(path), item, operation));
                }
            }
        }
        found
    }

    /// Returns the parameters of an operation by place and name; those of a path by their order.
    pub(super) fn parameters(&self, item: &'d Value, operation: &'d Value) -> BTreeSet<String> {
        let lists = [item, operation].map(|owner| owner["parameters"].as_array());
        let mut declared = BTreeMap::new();
        for parameter in lists.into_iter().flatten().flatten() {
            let parameter = self.follow(parameter);
            let name = parameter["name"].as_str().unwrap_or_default();
            declared.insert((parameter["in"].to_string(), name), parameter);
        }
        let mut found = BTreeSet::new();
        for ((_, name), parameter) in declared {
            let place = &parameter["in"];
            if place == "path" {
                continue;
            }
            let is_required = parameter["required"] == true;
            let schema = self.schema(&parameter["schema"], 8);
            let described = parameter.get("description").or(schema.get("description"));
            let words = |name: &str, schema: &Value, is_required: bool| {
                let mut schema = schema.clone();
                if let Value::Object(members) = &mut schema {
                    members.remove("description");
                    // In a URL a value without a type is a text.
                    members.entry("type").or_insert_with(|| "string".into());
                }
                format!("{place} {} {is_required} {schema}", name.to_lowercase())
            };
            // The members of an object have parameters of their own.
            let members = schema["properties"]
                .as_object()
                .filter(|_| place == "query");
            for (member, schema) in members.into_iter().flatten() {
                for wire in [member.clone(), format!("{name}[{member}]")] {
                    found.insert(words(&wire, schema, is_required));
                    found.insert(words(&wire, schema, false));
                }
            }
            let described = described.and_then(Value::as_str).unwrap_or_default();
            found.insert(
                format!("{} {described}", words(name, &schema, is_required))
                    .trim()
                    .to_owned(),
            );
        }
        found
    }

    /// Returns the names of the parameters of an operation and of its path.
    pub(super) fn parameter_names(
        &self,
        item: &'d Value,
        operation: &'d Value,
    ) -> BTreeSet<String> {
        let lists = [item, operation].map(|owner| owner["parameters"].as_array());
        let parameters = lists.into_iter().flatten().flatten();
        let names = parameters.filter_map(|one| self.follow(one)["name"].as_str());
        names.map(str::to_owned).collect()
    }

    /// Returns the members of a JSON body.
    pub(super) fn body(&self, operation: &'d Value) -> BodyMembers {
        let Some(request) = operation.get("requestBody") else {
            return BodyMembers::default();
        };
        let request = self.follow(request);
        let content = &request["content"];
        // The generated document writes `*/*` as JSON.
        let media = content.get("application/json").or(content.get("*/*"));
        let Some(schema) = media.and_then(|media| media.get("schema")) else {
            return BodyMembers::default();
        };
        let mut found = BodyMembers::default();
        self.add_members(schema, 8, &mut found);
        found.required.sort_by_key(Value::to_string);
        // OpenAPI 3.1 §4.8.24.3: only responses require such a member.
        let members = found.members.clone().unwrap_or_default();
        let is_read_only = |name: &Value| {
            let member = name.as_str().and_then(|name| members.get(name));
            member.is_some_and(|member| member["readOnly"] == true)
        };
        found.required.retain(|name| !is_read_only(name));
        found.is_required = request["required"] == true && !found.required.is_empty();
        found
    }

    /// Adds the members of an object, and of the parts of `allOf`. Each has the same depth, wherever it is declared.
    fn add_members(&self, schema: &'d Value, parts: usize, found: &mut BodyMembers) {
        let Some(parts) = parts.checked_sub(1) else {
            return;
        };
        let schema = self.follow(schema);
        // A body that may be `null`.
        if let Some([own, null]) = schema["anyOf"].as_array().map(Vec::as_slice)
            && *null == json!({ "type": "null" })
        {
            return self.add_members(own, parts, found);
        }
        if let Some(members) = schema["properties"].as_object() {
            let known = found.members.get_or_insert_default();
            let members = members.iter();
            known.extend(members.map(|(name, member)| (name.clone(), self.schema(member, 7))));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if !found.required.contains(name) {
                found.required.push(name.clone());
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.add_members(part, parts, found);
        }
    }

    /// Returns the schema of the first success with JSON, and its status.
    pub(super) fn success(&self, operation: &'d Value) -> Option<(String, Value)> {
        let responses = operation["responses"].as_object()?;
        let (status, response) = responses
            .iter()
            .find(|(status, _)| status.starts_with('2'))?;
        let content = self.follow(response).get("content")?;
        let schema = content.get("application/json")?.get("schema")?;
        Some((status.clone(), self.schema(schema, 8)))
    }

    /// Returns the descriptions of the body, and of successes and their headers.
    pub(super) fn texts(&self, operation: &'d Value) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut add = |place: String, described: &Value| {
            let text = described["description"].as_str().unwrap_or_default().trim();
            found.insert(place, text.to_owned());
        };
        if let Some(request) = operation.get("requestBody") {
            add("body".to_owned(), self.follow(request));
        }
        let responses = operation["responses"].as_object().into_iter().flatten();
        let has_ok = operation["responses"].get("200").is_some();
        for (status, response) in responses.filter(|(status, _)| status.starts_with('2')) {
            let response = self.follow(response);
            // Any success is 200, unless that is declared as well.
            let status = match status.to_uppercase().as_str() {
                "2XX" if has_ok => continue,
                "2XX" => "200".to_owned(),
                _ => status.clone(),
            };
            add(status.clone(), response);
            for (name, header) in response["headers"].as_object().into_iter().flatten() {
                let name = name.to_lowercase();
                let header = self.follow(header);
                let schema = self.schema(&header["schema"], 8);
                // OpenAPI 3.1, Response Object: `Content-Type` is declared by the content.
                if name != "content-type" {
                    add(format!("{status} {name} {schema}"), header);
                }
            }
        }
        found
    }

    /// Returns the declared failures: their descriptions, and the schemas of their JSON.
    pub(super) fn failures(&self, operation: &'d Value) -> Failures {
        let responses = operation["responses"].as_object().into_iter().flatten();
        let mut found = BTreeMap::new();
        let is_failure = |status: &str| !status.starts_with(['1', '2', '3']);
        for (status, response) in responses.filter(|(status, _)| is_failure(status)) {
            let response = self.follow(response);
            let text = response["description"].as_str().unwrap_or_default().trim();
            let content = response["content"].as_object().into_iter().flatten();
            let is_json = |kind: &str| kind == "application/json" || kind.ends_with("+json");
            let json = content.filter(|(kind, _)| is_json(kind));
            // The content of the proxy itself comes last.
            let json = json.min_by_key(|(kind, _)| kind.contains("problem"));
            let schema = json.and_then(|(_, media)| media.get("schema"));
            let schema = schema.map(
                |schema| match schema["anyOf"].as_array().map(Vec::as_slice) {
                    Some([own, problem]) if problem["$ref"] == PROBLEM => self.schema(own, 8),
                    _ => self.schema(schema, 8),
                },
            );
            found.insert(status.to_uppercase(), (text.to_owned(), schema));
        }
        found
    }
}

/// Adds `null` to the types and values of a schema of OpenAPI 3.0.
fn accept_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(values)) = schema.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    if let Some(kind @ Value::String(_)) = schema.get("type") {
        let kinds = json!([kind, "null"]);
        schema.insert("type".to_owned(), kinds);
    }
}

/// The members of a JSON body that is an object.
#[derive(Debug, Default)]
pub(super) struct BodyMembers {
    /// Their schemas; none if the schema names no members.
    pub(super) members: Option<Map<String, Value>>,
    /// The names of required members.
    pub(super) required: Vec<Value>,
    /// True if there is always a body, because a member is required.
    pub(super) is_required: bool,
}

/// The reference to the problem document of the proxy.
pub(super) const PROBLEM: &str = "#/components/schemas/Problem";

/// Returns a path without the names of its parameters.
fn shape(path: &str) -> String {
    let mut shape = String::new();
    let mut is_inside = false;
    for character in path.chars() {
        match character {
            '{' => {
                is_inside = true;
                shape.push_str("{}");
            }
            '}' => is_inside = false,
            other if !is_inside => shape.push(other),
            _ => {}
        }
    }
    let decoded = percent::decode(&shape, Plus::Literal);
    decoded.map_or_else(|_| shape.clone(), Cow::into_owned)
}

/// The text and the schema of each declared failure, by status.
pub(super) type Failures = BTreeMap<String, (String, Option<Value>)>;
