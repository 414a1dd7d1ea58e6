//! The responses that an operation declares: successes by status, and failures with the default response.
//!
//! Used by `import`.

use http::{HeaderName, StatusCode};
use serde_json::{Map, Value, json};

use super::operation::follow;
use super::schema::Schemas;
use super::texts::limited;
use crate::import::media_type::is_json;

/// The most declared successes, and the most declared failures, of an operation that are kept; also the most headers of
/// a response.
const MOST: usize = 40;
/// The content type of problem documents (RFC 9457), which the proxy writes itself.
const PROBLEM: &str = "application/problem+json";

/// Returns `schema.successes` of a route: by status, the descriptions that say more than the status, the headers, and
/// the contents of all successes but the one with the lowest status, which `schema.result` describes.
pub(in crate::import) fn declared_successes(
    document: &Value,
    operation: &Value,
    schemas: &mut Schemas<'_>,
) -> Option<Value> {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut found = Map::new();
    let successes = responses.into_iter().flatten();
    let successes = successes.filter_map(|(status, response)| Some((success(status)?, response)));
    let mut successes: Vec<(String, &Value)> = successes.take(MOST).collect();
    successes.sort_by(|one, other| one.0.cmp(&other.0));
    let is_only = successes.len() == 1;
    for (index, (status, response)) in successes.into_iter().enumerate() {
        let response = follow(document, response);
        let mut read = texts(document, response, schemas);
        if index > 0 {
            add_content(document, response, schemas, &mut read);
        }
        if read.get("description").and_then(Value::as_str) == reason(&status) {
            read.remove("description");
        }
        // A route without a row for a status would not list it.
        if !is_only || !read.is_empty() {
            found.entry(status).or_insert(read.into());
        }
    }
    (!found.is_empty()).then(|| found.into())
}

/// Returns `schema.failures` of a route: descriptions, content types, schemas and headers by status.
pub(in crate::import) fn declared_failures(
    document: &Value,
    operation: &Value,
    schemas: &mut Schemas<'_>,
) -> Option<Value> {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut found = Map::new();
    for (status, response) in responses.into_iter().flatten() {
        if let Some(status) = failure(status)
            && found.len() < MOST
        {
            let response = follow(document, response);
            let mut read = texts(document, response, schemas);
            add_content(document, response, schemas, &mut read);
            found.insert(status, read.into());
        }
    }
    (!found.is_empty()).then(|| found.into())
}

/// Returns the status of a success as a key of `schema.successes`; any success is 200, as in the outcome rows.
fn success(status: &str) -> Option<String> {
    if status.eq_ignore_ascii_case("2xx") {
        return Some("200".to_owned());
    }
    // Parsed, since a document may write `+200`.
    let code: u16 = status.parse().ok()?;
    (200..300).contains(&code).then(|| code.to_string())
}

/// Returns the reason phrase of a status, which generated documents have without a description.
fn reason(status: &str) -> Option<&'static str> {
    let code = status.parse().ok()?;
    StatusCode::from_u16(code).ok()?.canonical_reason()
}

/// Returns the status of a failure as a key of `schema.failures`.
fn failure(status: &str) -> Option<String> {
    let upper = status.to_ascii_uppercase();
    match upper.as_str() {
        "4XX" | "5XX" => Some(upper),
        "DEFAULT" => Some("default".to_owned()),
        _ => {
            let code: u16 = status.parse().ok()?;
            (400..600).contains(&code).then(|| code.to_string())
        }
    }
}

/// Returns the description and the headers of a response.
fn texts(document: &Value, response: &Value, schemas: &mut Schemas<'_>) -> Map<String, Value> {
    let mut found = Map::new();
    if let Some(text) = limited(response, "description") {
        found.insert("description".to_owned(), text.into());
    }
    if let Some(headers) = headers(document, response, schemas) {
        found.insert("headers".to_owned(), headers);
    }
    found
}

/// Adds the type and the schema of the JSON of a response.
fn add_content(
    document: &Value,
    response: &Value,
    schemas: &mut Schemas<'_>,
    found: &mut Map<String, Value>,
) {
    let content = response.get("content").and_then(Value::as_object);
    let media = |is_wanted: &dyn Fn(&str) -> bool| {
        let mut content = content.into_iter().flatten();
        content.find(|(kind, _)| is_wanted(kind))
    };
    let json = media(&|kind| is_json(kind) && kind != PROBLEM).or_else(|| media(&is_json));
    let schema = match json {
        Some((kind, media)) => {
            if !kind.contains('*') && kind != "application/json" {
                found.insert("content_type".to_owned(), json!(kind));
            }
            follow(document, media).get("schema")
        }
        // Swagger 2.0 has the schema in the response.
        None => response.get("schema"),
    };
    let schema = schema.map(|schema| schemas.convert(schema));
    if let Some(schema) = schema.filter(Value::is_object) {
        found.insert("schema".to_owned(), schema);
    }
}

/// Returns the declared headers of a response, by name in lower case.
fn headers(document: &Value, response: &Value, schemas: &mut Schemas<'_>) -> Option<Value> {
    let declared = response.get("headers").and_then(Value::as_object)?;
    let mut found = Map::new();
    for (name, header) in declared.iter().take(MOST) {
        // OpenAPI 3.1, Response Object: `Content-Type` is not declared as a header.
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        if name == http::header::CONTENT_TYPE {
            continue;
        }
        let header = follow(document, header);
        let mut read = Map::new();
        if let Some(text) = limited(header, "description") {
            read.insert("description".to_owned(), text.into());
        }
        if header.get("required") == Some(&Value::Bool(true)) {
            read.insert("required".to_owned(), true.into());
        }
        let schema = header.get("schema").map(|schema| schemas.convert(schema));
        if let Some(schema) = schema.filter(Value::is_object) {
            read.insert("schema".to_owned(), schema);
        }
        found.insert(name.as_str().to_owned(), read.into());
    }
    (!found.is_empty()).then(|| found.into())
}
