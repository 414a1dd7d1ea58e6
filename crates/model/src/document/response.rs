//! OpenAPI responses of a REST call, by status, from the rows of its routes. Used by `document::openapi`.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::bundle::Bundle;
use super::described::{self, SuccessContent};
use super::schema::{SchemaExtras, any_of, of_pattern, of_words};
use crate::outcome::{BodyPattern, Choice, NumberPattern, OutcomeRow, RpcReplyPattern, ToolValue};
use crate::route::{DescribedResponse, Route};
use crate::stream_format::RouteStream;

/// The documented responses with one status.
#[derive(Debug, Default)]
struct ResponseDocs {
    /// The declared description; by default the reason phrase of the status.
    description: Option<String>,
    /// Schemas by content type.
    content: BTreeMap<String, Vec<Value>>,
    headers: Map<String, Value>,
}

/// Returns the responses of one operation.
pub(super) fn responses(routes: &[&Route], schemas: &mut Bundle) -> Value {
    let mut found: BTreeMap<String, ResponseDocs> = BTreeMap::new();
    for route in routes {
        if !route.expects_reply {
            found.entry("202".to_owned()).or_default();
            continue;
        }
        let rows = route.outcomes.rows();
        for row in rows {
            for status in statuses(&row.rest.status) {
                note(found.entry(status).or_default(), route, row, schemas);
            }
        }
        // A tool fails with a result as well.
        let succeeds = |row: &OutcomeRow| {
            let is_success = |status: &String| status.starts_with('2') || status == "default";
            matches!(row.rpc, RpcReplyPattern::Result(_))
                && statuses(&row.rest.status).iter().any(is_success)
        };
        if !rows.iter().any(succeeds) {
            // The built-in table: a result is the body, and `null` is no body.
            let content = described::success_content(route);
            if content != SuccessContent::Never {
                let fine = found.entry("200".to_owned()).or_default();
                fine.content
                    .entry(JSON.to_owned())
                    .or_default()
                    .push(described::result(route, schemas));
                if is_tool(route) && route.docs.result.is_none() {
                    let text = json!({ "type": "string" });
                    fine.content
                        .entry("text/plain".to_owned())
                        .or_default()
                        .push(text);
                }
            }
            if content != SuccessContent::Always {
                found.entry("204".to_owned()).or_default();
            }
        }
        if is_tool(route) {
            let status = route.outcomes.tool_error_status().to_string();
            let failed = found.entry(status).or_default();
            failed.add_problem();
        }
    }
    note_declared(routes, &mut found, schemas);
    for route in routes {
        note_stream(route, &mut found);
    }
    let mut responses: Map<String, Value> = found
        .into_iter()
        .map(|(status, answers)| {
            let rendered = render(&status, answers);
            (status, rendered)
        })
        .collect();
    responses
        .entry("default")
        .or_insert_with(|| json!({ "$ref": "#/components/responses/Problem" }));
    responses.into()
}

const JSON: &str = "application/json";
/// The status with which the proxy refuses calls that do not match the patterns, beside the server.
const REFUSED: &str = "400";

impl ResponseDocs {
    /// Adds the problem document of the proxy.
    fn add_problem(&mut self) {
        let problem = json!({ "$ref": "#/components/schemas/Problem" });
        let problems = self.content.entry("application/problem+json".to_owned());
        problems.or_default().push(problem);
    }

    /// Adds the description and the headers of a declared response.
    fn add_texts(&mut self, declared: &DescribedResponse, schemas: &mut Bundle) {
        if self.description.is_none() {
            self.description.clone_from(&declared.description);
        }
        for header in &declared.headers {
            let known = self.headers.entry(header.name.clone());
            let known = known.or_insert_with(|| json!({ "required": false, "schema": {} }));
            if let Some(text) = &header.description {
                known["description"] = json!(text);
            }
            if header.is_required {
                known["required"] = json!(true);
            }
            if let Some(source) = &header.schema {
                known["schema"] = schemas.embed(source, &source.schema);
            }
        }
    }

    /// Adds the content of a declared response.
    fn add_content(&mut self, declared: &DescribedResponse, schemas: &mut Bundle) {
        if let Some(source) = &declared.schema {
            let schema = schemas.embed(source, &source.schema);
            let content = self.content.entry(declared.content_type.clone());
            content.or_default().push(schema);
        }
    }
}

/// Adds the responses that routes declare. The content of a status with a row is that of the row; any other failure is
/// that of the REST server, or a problem document.
fn note_declared(
    routes: &[&Route],
    found: &mut BTreeMap<String, ResponseDocs>,
    schemas: &mut Bundle,
) {
    let written: BTreeSet<String> = found.keys().cloned().collect();
    let rows = routes.iter().flat_map(|route| route.outcomes.rows());
    let of_rows: BTreeSet<String> = rows.flat_map(|row| statuses(&row.rest.status)).collect();
    let successes = routes.iter().flat_map(|route| &route.docs.successes);
    for success in successes {
        let response = found.entry(success.status.clone()).or_default();
        response.add_texts(success, schemas);
        if success.schema.is_some() && !of_rows.contains(&success.status) {
            // Without `schema.result`, the content of the built-in table is any JSON.
            let is_any = |_: &String, content: &mut Vec<Value>| *content == [json!({})];
            response
                .content
                .retain(|kind, content| !is_any(kind, content));
            if response.content.is_empty() {
                response.add_content(success, schemas);
            }
        }
    }
    for failure in routes.iter().flat_map(|route| &route.docs.failures) {
        let response = found.entry(failure.status.clone()).or_default();
        response.add_texts(failure, schemas);
        if !written.contains(&failure.status) {
            response.add_content(failure, schemas);
            response.add_problem();
        } else if failure.status == REFUSED {
            response.add_problem();
        }
    }
}

/// Adds the content of a response that streams to the successes of a route that says so. The schema is that of one
/// event.
fn note_stream(route: &Route, found: &mut BTreeMap<String, ResponseDocs>) {
    let RouteStream::Formats { rest, .. } = route.stream else {
        return;
    };
    for (status, response) in found {
        if status.starts_with('2')
            && let Some(schemas) = response.content.get(JSON).cloned()
        {
            let streamed = response.content.entry(rest.content_type().to_owned());
            streamed.or_insert(schemas);
        }
    }
}

/// Returns true for a route whose REST body is the value of a tool.
pub(super) fn is_tool(route: &Route) -> bool {
    route.outcomes.tool_value() != ToolValue::Whole
}

fn note(answers: &mut ResponseDocs, route: &Route, row: &OutcomeRow, schemas: &mut Bundle) {
    let (kind, schema) = match &row.rest.body {
        BodyPattern::Nothing => (None, json!({})),
        BodyPattern::Anything => (Some("*/*"), json!({})),
        BodyPattern::Json(pattern) => {
            let plain = of_pattern(pattern, SchemaExtras::Open);
            let schema = described::success(route, row, pattern, plain, schemas);
            (Some(JSON), schema)
        }
        BodyPattern::Text(words) => (Some("text/plain"), of_words(words)),
    };
    if let Some(kind) = kind {
        let content = answers.content.entry(kind.to_owned());
        content.or_default().push(schema);
    }
    for item in &row.rest.headers {
        let header = json!({
            "required": !item.words.may_be_absent(),
            "schema": of_words(&item.words),
        });
        answers
            .headers
            .insert(item.name.as_str().to_owned(), header);
    }
}

fn statuses(pattern: &NumberPattern) -> Vec<String> {
    match pattern {
        NumberPattern::Hole(slot) if slot.codec.map().is_none() => vec!["default".to_owned()],
        NumberPattern::Hole(_) => pattern.numbers().map(|status| status.to_string()).collect(),
        NumberPattern::Among(first, others) => {
            let others = others.iter().map(|choice| match choice {
                Choice::One(status) => status.to_string(),
                Choice::Class(class) => format!("{class}XX"),
            });
            std::iter::once(first.to_string()).chain(others).collect()
        }
    }
}

fn render(status: &str, answers: ResponseDocs) -> Value {
    let description = answers.description.unwrap_or_else(|| title(status));
    let mut response = json!({ "description": description });
    if !answers.content.is_empty() {
        let content = answers.content.into_iter();
        let content: Map<String, Value> = content
            .map(|(kind, schemas)| (kind, json!({ "schema": any_of(schemas) })))
            .collect();
        response["content"] = content.into();
    }
    if !answers.headers.is_empty() {
        response["headers"] = answers.headers.into();
    }
    response
}

/// Returns the description of a status.
fn title(status: &str) -> String {
    let code = status.parse().ok();
    let code = code.and_then(|code| StatusCode::from_u16(code).ok());
    let reason = code.and_then(|code| code.canonical_reason());
    reason.unwrap_or("Any other answer").to_owned()
}

/// Returns the response for a failure (RFC 9457), which every operation may send.
pub(super) fn problem() -> Value {
    json!({
        "description": "A problem document (RFC 9457) that contains the JSON-RPC error",
        "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
    })
}

/// Returns the schema of a failure.
pub(super) fn problem_schema() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail", "rpc"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string" },
            "reason": { "type": "string" },
            "blame": { "enum": ["client", "upstream", "proxy"] },
            "rpc": {
                "type": "object",
                "required": ["code", "message"],
                "properties": { "code": { "type": "integer" }, "message": { "type": "string" }, "data": {} },
            },
        },
    })
}
