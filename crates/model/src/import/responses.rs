//! The responses that an OpenAPI operation declares, with their schemas.
//!
//! Used by `import::tool_rows`.

use serde_json::Value;

use super::media_type::is_json;
use super::refs::{DocumentFault, Refs};
use super::shape::{self, Shape};

/// The most responses of an operation, and headers of a response, that are read.
const MOST: usize = 40;
/// Headers that the proxy and HTTP servers send by themselves.
const OF_HTTP: [&str; 4] = ["content-type", "content-length", "date", "server"];

/// A declared response.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DeclaredResponse {
    pub(super) status: DeclaredStatus,
    pub(super) content: Content,
    /// The names of its headers, in lower case, without those that HTTP itself needs.
    pub(super) headers: Vec<String>,
}

/// The status of a declared response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeclaredStatus {
    Number(u16),
    /// `default`, or a class such as `4XX`.
    Any,
}

/// The content of a declared response.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Nothing,
    Json(Shape),
    /// JSON as `application/problem+json` (RFC 9457).
    Problem(Shape),
    Text,
    Other,
}

/// Reads the responses of an operation in the order of their statuses.
///
/// # Errors
/// The fault of a reference or of a schema.
pub(super) fn read<'v>(
    refs: &Refs<'v>,
    operation: &'v Value,
) -> Result<Vec<DeclaredResponse>, DocumentFault> {
    let responses = operation.get("responses").and_then(Value::as_object);
    let mut found = Vec::new();
    for (status, response) in responses.into_iter().flatten().take(MOST) {
        let status = match status.to_ascii_lowercase().as_str() {
            "2xx" => DeclaredStatus::Number(200),
            "default" | "4xx" | "5xx" => DeclaredStatus::Any,
            word => match word.parse() {
                Ok(number) => DeclaredStatus::Number(number),
                Err(_) => continue,
            },
        };
        let response = refs.follow(response)?;
        found.push(DeclaredResponse {
            status,
            content: content(refs, response)?,
            headers: headers(response),
        });
    }
    found.sort_by_key(|response| response.status);
    Ok(found)
}

/// Returns the names of the headers that a response declares.
fn headers(response: &Value) -> Vec<String> {
    let declared = response.get("headers").and_then(Value::as_object);
    let names = declared.into_iter().flat_map(|headers| headers.keys());
    let names = names.map(|name| name.to_ascii_lowercase());
    names
        .filter(|name| !OF_HTTP.contains(&name.as_str()))
        .take(MOST)
        .collect()
}

fn content<'v>(refs: &Refs<'v>, response: &'v Value) -> Result<Content, DocumentFault> {
    let content = response.get("content").and_then(Value::as_object);
    let Some(content) = content.filter(|content| !content.is_empty()) else {
        return Ok(Content::Nothing);
    };
    let is_problem = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        kind.starts_with("application/problem+json")
    };
    let json = content
        .iter()
        .find(|(kind, _)| is_json(kind) && !is_problem(kind));
    let json = json.or_else(|| content.iter().find(|(kind, _)| is_json(kind)));
    let Some((kind, media)) = json else {
        let is_text = content
            .keys()
            .any(|kind| kind.to_ascii_lowercase().starts_with("text/plain"));
        return Ok(if is_text {
            Content::Text
        } else {
            Content::Other
        });
    };
    let schema = refs.follow(media)?.get("schema");
    let shape = schema.map_or(Ok(Shape::Any), |schema| shape::read(refs, schema))?;
    Ok(match is_problem(kind) {
        true => Content::Problem(shape),
        false => Content::Json(shape),
    })
}
