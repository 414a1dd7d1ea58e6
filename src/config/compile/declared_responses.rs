//! `schema.successes` and `schema.failures` of a route: the responses that API documents list. Used by
//! `compile::routes`.

use std::sync::Arc;

use http::HeaderName;
use serde_json::{Map, Value};

use crate::config::problem::{Problem, Spanned};
use crate::config::raw::{RawRoute, RawSchema};
use dualgauge_model::document::{Messages, bundled};
use dualgauge_model::route::{DescribedHeader, DescribedResponse, DescribedSchema};

/// The most successes, and the most failures, of a route; also the most headers of a response.
const MOST: usize = 100;

/// The kinds of declared responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseKind {
    Success,
    Failure,
}

/// The schemas that routes share.
type SharedSchemas = Arc<Map<String, Value>>;

/// Returns the declared successes of a route. An invalid one is reported and omitted.
pub(super) fn declared_successes(
    raw: &RawRoute,
    shared: &SharedSchemas,
    problems: &mut Vec<Problem>,
) -> Vec<DescribedResponse> {
    let configured = raw.schema.successes.as_ref();
    declared(configured, ResponseKind::Success, shared, problems)
}

/// Returns the declared failures of a route. An invalid one is reported and omitted.
pub(super) fn declared_failures(
    raw: &RawRoute,
    shared: &SharedSchemas,
    problems: &mut Vec<Problem>,
) -> Vec<DescribedResponse> {
    let configured = raw.schema.failures.as_ref();
    declared(configured, ResponseKind::Failure, shared, problems)
}

fn declared(
    configured: Option<&Spanned<RawSchema>>,
    kind: ResponseKind,
    shared: &SharedSchemas,
    problems: &mut Vec<Problem>,
) -> Vec<DescribedResponse> {
    let Some(configured) = configured else {
        return Vec::new();
    };
    // An unreadable file is already reported.
    let RawSchema::Written(declared) = &configured.value else {
        return Vec::new();
    };
    let mut wrong = |message: String| problems.push(configured.problem(message));
    let plural = kind.plural();
    let Some(declared) = declared.as_object() else {
        wrong(format!("it is not a table; write {plural} by status"));
        return Vec::new();
    };
    if declared.len() > MOST {
        wrong(format!("it has more than {MOST} {plural}"));
        return Vec::new();
    }
    let mut found = Vec::with_capacity(declared.len());
    for (status, response) in declared {
        let read = match kind.has(status) {
            true => response_of(status, response, shared),
            false => Err(format!("`{status}` is not a {}", kind.statuses())),
        };
        match read {
            Ok(response) => found.push(response),
            Err(message) => wrong(message),
        }
    }
    found
}

impl ResponseKind {
    const fn plural(self) -> &'static str {
        match self {
            ResponseKind::Success => "successes",
            ResponseKind::Failure => "failures",
        }
    }

    /// Returns the name of the kind, and the keys that it allows.
    const fn statuses(self) -> &'static str {
        match self {
            ResponseKind::Success => "success; write a status from 200 to 299",
            ResponseKind::Failure => {
                "failure; write a status from 400 to 599, `4XX`, `5XX` or `default`"
            }
        }
    }

    /// Returns true for a key of this kind.
    fn has(self, status: &str) -> bool {
        let first = match status.as_bytes() {
            [first, tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit() => Some(first),
            _ => None,
        };
        match self {
            ResponseKind::Success => first == Some(&b'2'),
            ResponseKind::Failure => {
                matches!(status, "4XX" | "5XX" | "default") || matches!(first, Some(b'4' | b'5'))
            }
        }
    }
}

fn response_of(
    status: &str,
    response: &Value,
    shared: &SharedSchemas,
) -> Result<DescribedResponse, String> {
    let Some(members) = response.as_object() else {
        return Err(format!(
            "`{status}` is not a table; write `{{ description = \"…\", schema = {{ … }} }}`"
        ));
    };
    let mut found = DescribedResponse {
        status: status.to_owned(),
        description: None,
        content_type: "application/json".to_owned(),
        schema: None,
        headers: Vec::new(),
    };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("description", Value::String(text)) => found.description = Some(text.clone()),
            ("content_type", Value::String(text)) => found.content_type.clone_from(text),
            ("schema", _) => found.schema = Some(schema(status, value, shared)?),
            ("headers", Value::Object(headers)) if headers.len() <= MOST => {
                let headers = headers.iter();
                let headers = headers.map(|(name, value)| header_of(status, name, value, shared));
                found.headers = headers.collect::<Result<_, _>>()?;
            }
            ("description" | "content_type", _) => {
                return Err(format!("`{status}.{name}` is not a text"));
            }
            ("headers", Value::Object(_)) => {
                return Err(format!("`{status}.headers` has more than {MOST} headers"));
            }
            ("headers", _) => return Err(format!("`{status}.headers` is not a table")),
            (name, _) => {
                return Err(format!(
                    "`{status}` has the unknown key `{name}`; known: description, content_type, schema, headers"
                ));
            }
        }
    }
    Ok(found)
}

fn header_of(
    status: &str,
    name: &str,
    header: &Value,
    shared: &SharedSchemas,
) -> Result<DescribedHeader, String> {
    let place = format!("{status}.headers.{name}");
    let Ok(known) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err(format!("`{place}` is not the name of a header"));
    };
    let Some(members) = header.as_object() else {
        return Err(format!(
            "`{place}` is not a table; write `{{ description = \"…\", schema = {{ … }} }}`"
        ));
    };
    let mut found = DescribedHeader {
        name: known.as_str().to_owned(),
        description: None,
        is_required: false,
        schema: None,
    };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("description", Value::String(text)) => found.description = Some(text.clone()),
            ("required", Value::Bool(is_required)) => found.is_required = *is_required,
            ("schema", _) => found.schema = Some(schema(&place, value, shared)?),
            ("description", _) => return Err(format!("`{place}.description` is not a text")),
            ("required", _) => {
                return Err(format!("`{place}.required` is neither true nor false"));
            }
            (name, _) => {
                return Err(format!(
                    "`{place}` has the unknown key `{name}`; known: description, required, schema"
                ));
            }
        }
    }
    Ok(found)
}

/// Reads the schema of a content or of a header.
fn schema(place: &str, value: &Value, shared: &SharedSchemas) -> Result<DescribedSchema, String> {
    if !value.is_object() {
        return Err(format!("`{place}.schema` is not a table"));
    }
    let schema = DescribedSchema {
        schema: Arc::new(value.clone()),
        shared: shared.clone(),
    };
    bundled(&schema, Messages::Responses).map_err(|message| format!("`{place}`: {message}"))?;
    Ok(schema)
}
