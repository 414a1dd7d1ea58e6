//! A Swagger 2.0 document → the members that [`super::openapi`] reads, with the same meaning.
//!
//! Only parameters, bodies, responses and the base path differ. Schemas stay where they are: references to
//! `definitions`, `parameters` and `responses` keep their targets, so nothing is copied more than once.
//!
//! Used by `import::openapi`.

use serde_json::{Map, Value, json};

use super::media_type::is_json;
use super::refs::{DocumentFault, shown, text};

const METHODS: &[&str] = &["get", "head", "post", "put", "patch", "delete", "options"];
const JSON: &str = "application/json";
const MULTIPART: &str = "multipart/form-data";
const URLENCODED: &str = "application/x-www-form-urlencoded";
/// Members of a parameter that OpenAPI 3 has in its schema.
const OF_SCHEMA: &[&str] = &["type", "format", "items", "enum", "default", "x-nullable"];

/// Converts a document.
///
/// # Errors
/// [`DocumentFault::Kind`] for another version.
pub fn upgrade(document: &Value) -> Result<Value, DocumentFault> {
    let version = document.get("swagger").map(super::openapi::plain);
    let version = version.unwrap_or_default();
    if version != "2.0" && version != "2" {
        return Err(DocumentFault::Kind(format!(
            "`swagger: {}` is not supported, only 2.0, and OpenAPI 3.0 to 3.2",
            shown(&version)
        )));
    }
    let mut upgraded = document.clone();
    let Some(root) = upgraded.as_object_mut() else {
        return Ok(upgraded);
    };
    let consumes = types(document.get("consumes"));
    let produces = types(document.get("produces"));
    if let Some(base) = text(document, "basePath") {
        root.insert("servers".to_owned(), json!([{ "url": base }]));
    }
    for (_, parameter) in members(root.get_mut("parameters")) {
        upgrade_parameter(parameter);
    }
    for (_, response) in members(root.get_mut("responses")) {
        upgrade_response(response, &produces);
    }
    for (path, item) in members(root.get_mut("paths")) {
        let Some(item) = item.as_object_mut() else {
            continue;
        };
        let place = format!(
            "#/paths/{}/parameters",
            path.replace('~', "~0").replace('/', "~1")
        );
        let shared = BodyParts::collect(document, item.get("parameters"), &place);
        for parameter in list(item.get_mut("parameters")) {
            upgrade_parameter(parameter);
        }
        keep_outside_bodies(document, item);
        for method in METHODS {
            let Some(operation) = item.get_mut(*method).and_then(Value::as_object_mut) else {
                continue;
            };
            let place = format!(
                "#/paths/{}/{method}/body-parameters",
                path.replace('~', "~0").replace('/', "~1")
            );
            upgrade_operation(document, operation, &shared, [&consumes, &produces], &place);
        }
    }
    Ok(upgraded)
}

fn upgrade_operation(
    document: &Value,
    operation: &mut Map<String, Value>,
    shared: &BodyParts,
    [consumes, produces]: [&Vec<String>; 2],
    place: &str,
) {
    let own = BodyParts::collect(document, operation.get("parameters"), place);
    for parameter in list(operation.get_mut("parameters")) {
        upgrade_parameter(parameter);
    }
    // The schemas of bodies stay at a place of their own, to which the body refers.
    let kept = operation.get("parameters").cloned();
    keep_outside_bodies(document, operation);
    let parts = own.over(shared);
    let consumes = match operation.get("consumes") {
        Some(own) => &types(Some(own)),
        None => consumes,
    };
    if let Some(body) = parts.request_body(consumes) {
        operation.insert("requestBody".to_owned(), body);
        operation.extend(kept.map(|kept| ("body-parameters".to_owned(), kept)));
    }
    let produces = match operation.get("produces") {
        Some(own) => &types(Some(own)),
        None => produces,
    };
    for (_, response) in members(operation.get_mut("responses")) {
        upgrade_response(response, produces);
    }
}

/// Returns the media types of `consumes` or `produces`.
fn types(value: Option<&Value>) -> Vec<String> {
    /// More are of no use.
    const MOST: usize = 32;
    let types = value.and_then(Value::as_array).into_iter().flatten();
    let types = types.filter_map(Value::as_str).take(MOST);
    types.map(str::to_owned).collect()
}

fn members(value: Option<&mut Value>) -> impl Iterator<Item = (&String, &mut Value)> {
    value
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(Map::iter_mut)
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns a parameter, or the target of its reference to `#/parameters/…`.
fn target<'v>(document: &'v Value, parameter: &'v Value) -> &'v Value {
    let reference = text(parameter, "$ref");
    let target = reference.and_then(|reference| document.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(parameter)
}

/// Removes the parameters of a body from a list of parameters.
fn keep_outside_bodies(document: &Value, owner: &mut Map<String, Value>) {
    if let Some(parameters) = owner.get_mut("parameters").and_then(Value::as_array_mut) {
        parameters.retain(|parameter| {
            !matches!(
                text(target(document, parameter), "in"),
                Some("body" | "formData")
            )
        });
    }
}

/// Moves the type of a parameter into a schema, and spells its list style.
fn upgrade_parameter(parameter: &mut Value) {
    let Some(members) = parameter.as_object_mut() else {
        return;
    };
    let location = members
        .get("in")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if members.contains_key("$ref") || location == "body" {
        return;
    }
    let is_in_query = matches!(location, "query" | "formData");
    let mut schema = Map::new();
    for name in OF_SCHEMA {
        if let Some(value) = members.remove(*name) {
            schema.insert((*name).to_owned(), value);
        }
    }
    if schema.get("type").and_then(Value::as_str) == Some("file") {
        schema.insert("type".to_owned(), "string".into());
        schema.insert("format".to_owned(), "binary".into());
    }
    if schema.get("type").and_then(Value::as_str) == Some("array") {
        let format = members.get("collectionFormat").and_then(Value::as_str);
        let (style, explode) = match (format.unwrap_or("csv"), is_in_query) {
            ("csv", true) => ("form", false),
            ("multi", true) => ("form", true),
            ("ssv", true) => ("spaceDelimited", false),
            ("pipes", true) => ("pipeDelimited", false),
            ("csv", false) => ("simple", false),
            // No style of OpenAPI 3, so the parameter is left out.
            _ => ("tabDelimited", false),
        };
        members.insert("style".to_owned(), style.into());
        members.insert("explode".to_owned(), explode.into());
    }
    members.insert("schema".to_owned(), schema.into());
}

/// Moves the schema of a response under its media types.
fn upgrade_response(response: &mut Value, produces: &[String]) {
    let Some(members) = response.as_object_mut() else {
        return;
    };
    for (_, header) in self::members(members.get_mut("headers")) {
        upgrade_header(header);
    }
    let Some(mut schema) = members.remove("schema") else {
        return;
    };
    let is_file = text(&schema, "type") == Some("file");
    let usual = [if is_file {
        "application/octet-stream"
    } else {
        JSON
    }
    .to_owned()];
    let produces = if produces.is_empty() {
        &usual
    } else {
        produces
    };
    if is_file {
        schema = json!({ "type": "string", "format": "binary" });
    }
    // The first media type that is translated is enough, and the schema is not copied.
    let kind = produces.iter().find(|kind| is_json(kind));
    let kind = kind.or(produces.first());
    let content = kind.map(|kind| (kind.clone(), json!({ "schema": schema })));
    members.insert(
        "content".to_owned(),
        Value::Object(content.into_iter().collect()),
    );
}

/// Moves the type of a header of a response into a schema.
fn upgrade_header(header: &mut Value) {
    let Some(members) = header.as_object_mut() else {
        return;
    };
    let mut schema = Map::new();
    for name in OF_SCHEMA {
        if let Some(value) = members.remove(*name) {
            schema.insert((*name).to_owned(), value);
        }
    }
    if !schema.is_empty() {
        members.insert("schema".to_owned(), schema.into());
    }
}

/// The parameters of an operation that are its body.
#[derive(Debug, Clone, Default)]
struct BodyParts {
    body: Option<BodyPart>,
    fields: Vec<FormPart>,
}

/// The parameter that is the whole body.
#[derive(Debug, Clone)]
struct BodyPart {
    /// A reference to its schema.
    reference: String,
    description: Option<String>,
    is_required: bool,
}

/// A field of a form.
#[derive(Debug, Clone)]
struct FormPart {
    name: String,
    reference: String,
    is_required: bool,
    is_file: bool,
    /// `style` and `explode` of a list.
    encoding: Option<Value>,
}

impl BodyParts {
    /// Collects the parts of a list of parameters, which is at `place` after the conversion.
    fn collect(document: &Value, parameters: Option<&Value>, place: &str) -> BodyParts {
        let mut found = BodyParts::default();
        let parameters = parameters.and_then(Value::as_array).into_iter().flatten();
        for (index, parameter) in parameters.enumerate() {
            let whole = target(document, parameter);
            let reference = match text(parameter, "$ref") {
                Some(reference) => format!("{reference}/schema"),
                None => format!("{place}/{index}/schema"),
            };
            let is_required = super::schema::is_required(whole);
            match text(whole, "in") {
                Some("body") => {
                    found.body = Some(BodyPart {
                        reference,
                        description: text(whole, "description").map(str::to_owned),
                        is_required,
                    });
                }
                Some("formData") => {
                    let mut converted = Map::new();
                    for name in ["in", "type", "collectionFormat"] {
                        let value = whole.get(name).cloned();
                        converted.extend(value.map(|value| (name.to_owned(), value)));
                    }
                    let mut converted = Value::Object(converted);
                    upgrade_parameter(&mut converted);
                    found.fields.push(FormPart {
                        name: text(whole, "name").unwrap_or_default().to_owned(),
                        reference,
                        is_required,
                        is_file: text(whole, "type") == Some("file"),
                        encoding: converted.get("style").map(
                            |style| json!({ "style": style, "explode": converted["explode"] }),
                        ),
                    });
                }
                _ => {}
            }
        }
        found
    }

    /// Returns these parts with the shared ones of the path below them.
    fn over(mut self, shared: &BodyParts) -> BodyParts {
        self.body = self.body.or_else(|| shared.body.clone());
        for field in &shared.fields {
            if self.fields.iter().all(|own| own.name != field.name) {
                self.fields.push(field.clone());
            }
        }
        self
    }

    fn request_body(&self, consumes: &[String]) -> Option<Value> {
        if let Some(part) = &self.body {
            let usual = [JSON.to_owned()];
            let consumes = if consumes.is_empty() {
                &usual
            } else {
                consumes
            };
            let media = json!({ "schema": { "$ref": part.reference } });
            let content = consumes.iter().map(|kind| (kind.clone(), media.clone()));
            let content: Map<String, Value> = content.collect();
            let mut body = json!({ "content": content, "required": part.is_required });
            if let Some(text) = &part.description {
                body["description"] = json!(text);
            }
            return Some(body);
        }
        if self.fields.is_empty() {
            return None;
        }
        let is_multipart = self.fields.iter().any(|field| field.is_file)
            || (consumes.iter().any(|kind| kind == MULTIPART)
                && !consumes.iter().any(|kind| kind == URLENCODED));
        let (mut properties, mut encoding) = (Map::new(), Map::new());
        let mut required = Vec::new();
        for field in &self.fields {
            properties.insert(field.name.clone(), json!({ "$ref": field.reference }));
            if field.is_required {
                required.push(field.name.clone());
            }
            let style = field.encoding.clone();
            encoding.extend(style.map(|style| (field.name.clone(), style)));
        }
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        let kind = if is_multipart { MULTIPART } else { URLENCODED };
        Some(json!({
            "content": { kind: { "schema": schema, "encoding": encoding } },
            "required": !required.is_empty(),
        }))
    }
}
