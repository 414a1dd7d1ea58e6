//! The failures that an operation declares: responses with a 4xx or 5xx, and the default response.
//!
//! Used by `import`.

use serde_json::{Map, Value, json};

use super::operation::follow;
use super::schema::Schemas;
use super::texts::limited;
use crate::import::reply::is_json;

/// The most declared failures of an operation that are kept.
const MOST: usize = 40;
/// The content type of problem documents (RFC 9457), which the proxy writes itself.
const PROBLEM: &str = "application/problem+json";

/// Returns `schema.failures` of a route: descriptions, content types and schemas by status.
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
            found.insert(status, read(document, response, schemas));
        }
    }
    (!found.is_empty()).then(|| found.into())
}

/// Returns the status of a failure as a key of `schema.failures`.
fn failure(status: &str) -> Option<String> {
    let is_failure = |code: u16| (400..600).contains(&code);
    let upper = status.to_ascii_uppercase();
    match upper.as_str() {
        "4XX" | "5XX" => Some(upper),
        "DEFAULT" => Some("default".to_owned()),
        _ => status
            .parse()
            .is_ok_and(is_failure)
            .then(|| status.to_owned()),
    }
}

fn read(document: &Value, response: &Value, schemas: &mut Schemas<'_>) -> Value {
    let response = follow(document, response);
    let mut failure = Map::new();
    if let Some(text) = limited(response, "description") {
        failure.insert("description".to_owned(), text.into());
    }
    let content = response.get("content").and_then(Value::as_object);
    let media = |is_wanted: &dyn Fn(&str) -> bool| {
        let mut content = content.into_iter().flatten();
        content.find(|(kind, _)| is_wanted(kind))
    };
    let json = media(&|kind| is_json(kind) && kind != PROBLEM).or_else(|| media(&is_json));
    let schema = match json {
        Some((kind, media)) => {
            if !kind.contains('*') && kind != "application/json" {
                failure.insert("content_type".to_owned(), json!(kind));
            }
            follow(document, media).get("schema")
        }
        // Swagger 2.0 has the schema in the response.
        None => response.get("schema"),
    };
    let schema = schema.map(|schema| schemas.convert(schema));
    if let Some(schema) = schema.filter(Value::is_object) {
        failure.insert("schema".to_owned(), schema);
    }
    failure.into()
}
