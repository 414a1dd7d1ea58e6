//! `schema.failures` of a route: the failures that API documents list. Used by `compile::routes`.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::config::problem::Problem;
use crate::config::raw::{RawRoute, RawSchema};
use dualgauge_model::document::bundled;
use dualgauge_model::route::{DescribedFailure, DescribedSchema};

/// The most failures of a route.
const MOST: usize = 100;

/// Returns the declared failures of a route. An invalid one is reported and omitted.
pub(super) fn declared_failures(
    raw: &RawRoute,
    shared: &Arc<Map<String, Value>>,
    problems: &mut Vec<Problem>,
) -> Vec<DescribedFailure> {
    let Some(configured) = &raw.schema.failures else {
        return Vec::new();
    };
    // An unreadable file is already reported.
    let RawSchema::Written(declared) = &configured.value else {
        return Vec::new();
    };
    let mut wrong = |message: String| problems.push(configured.problem(message));
    let Some(declared) = declared.as_object() else {
        wrong("it is not a table; write failures by status".to_owned());
        return Vec::new();
    };
    if declared.len() > MOST {
        wrong(format!("it has more than {MOST} failures"));
        return Vec::new();
    }
    let mut found = Vec::with_capacity(declared.len());
    for (status, failure) in declared {
        match read(status, failure, shared) {
            Ok(failure) => found.push(failure),
            Err(message) => wrong(message),
        }
    }
    found
}

fn read(
    status: &str,
    failure: &Value,
    shared: &Arc<Map<String, Value>>,
) -> Result<DescribedFailure, String> {
    if !is_failure(status) {
        return Err(format!(
            "`{status}` is not a failure; write a status from 400 to 599, `4XX`, `5XX` or `default`"
        ));
    }
    let Some(members) = failure.as_object() else {
        return Err(format!(
            "`{status}` is not a table; write `{{ description = \"…\", schema = {{ … }} }}`"
        ));
    };
    let mut found = DescribedFailure {
        status: status.to_owned(),
        description: None,
        content_type: "application/json".to_owned(),
        schema: None,
    };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("description", Value::String(text)) => found.description = Some(text.clone()),
            ("content_type", Value::String(text)) => found.content_type.clone_from(text),
            ("schema", Value::Object(_)) => {
                let schema = DescribedSchema {
                    schema: Arc::new(value.clone()),
                    shared: shared.clone(),
                };
                bundled(&schema).map_err(|message| format!("`{status}`: {message}"))?;
                found.schema = Some(schema);
            }
            ("description" | "content_type", _) => {
                return Err(format!("`{status}.{name}` is not a text"));
            }
            ("schema", _) => return Err(format!("`{status}.schema` is not a table")),
            (name, _) => {
                return Err(format!(
                    "`{status}` has the unknown key `{name}`; known: description, content_type, schema"
                ));
            }
        }
    }
    Ok(found)
}

/// Returns true for a key of `schema.failures`.
fn is_failure(status: &str) -> bool {
    let is_status = || match status.as_bytes() {
        [b'4' | b'5', tens, ones] => tens.is_ascii_digit() && ones.is_ascii_digit(),
        _ => false,
    };
    matches!(status, "4XX" | "5XX" | "default") || is_status()
}
