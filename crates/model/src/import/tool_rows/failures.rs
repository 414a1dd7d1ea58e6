//! The declared responses that the failure of a tool can become.
//!
//! A failed tool says a text. The status is the only declared one that describes a failure of the operation itself;
//! those of transport, credentials and rate limits are left out, as the proxy and HTTP servers send them. Arguments that
//! a server refuses (-32602) become the declared 400 or 422.
//!
//! Used by `import::tool_rows`.

use http::StatusCode;
use serde_json::Value;

use super::ToolRows;
use crate::import::drafted::{DraftedOutcome, Pattern, literal, object, text};
use crate::import::hole::{HoleNames, is_plain};
use crate::import::model::{RestOperation, Segment};
use crate::import::refs::shown;
use crate::import::responses::{Content, DeclaredResponse, DeclaredStatus};
use crate::import::shape::{Shape, ShapeMember};

/// Statuses that do not describe a failure of the operation itself.
const OF_HTTP: [u16; 14] = [
    400, 401, 402, 403, 405, 406, 407, 408, 411, 413, 414, 415, 426, 429,
];
/// Members with the words of a failure, the most usual first.
const WORDS: [&str; 12] = [
    "message",
    "detail",
    "error_description",
    "errorMessage",
    "error_message",
    "error",
    "description",
    "reason",
    "msg",
    "text",
    "title",
    "errors",
];
/// Members with the HTTP status.
const STATUSES: [&str; 6] = [
    "status",
    "code",
    "statusCode",
    "status_code",
    "httpStatus",
    "http_status",
];
/// The deepest object in which the words of a failure are looked for.
const DEEPEST: usize = 3;
/// The status of a tool's failure that no document names.
const UNNAMED: u16 = crate::outcome::TOOL_ERROR_STATUS;
const LOSSY: &str = "a failed tool says one text";

/// The failures of an operation.
pub(super) struct Failures<'f> {
    pub(super) rest: &'f RestOperation,
    pub(super) names: &'f HoleNames,
    pub(super) declared: &'f [DeclaredResponse],
}

/// The content of a failure, as keys of the REST side of an outcome.
type FailureContent = Vec<(&'static str, Pattern)>;

impl Failures<'_> {
    /// Adds the rows of failures.
    pub(super) fn add_to(&self, found: &mut ToolRows) {
        self.add_failed_tool(found);
        self.add_refused_arguments(found);
    }

    fn add_failed_tool(&self, found: &mut ToolRows) {
        let statuses = self.statuses();
        let Some(first) = statuses.first().copied() else {
            self.add_default(found);
            return;
        };
        let Some(content) = self.content(self.declared_as(first), first, found) else {
            return;
        };
        // Others with the same content are read as the first one.
        let others = statuses[1..].iter().filter(|status| {
            let own = self.content(self.declared_as(**status), first, &mut ToolRows::default());
            own.as_ref() == Some(&content)
        });
        let others: Vec<String> = others.map(u16::to_string).collect();
        if statuses.len() > 1 {
            let words: Vec<String> = statuses.iter().map(u16::to_string).collect();
            found.note(&format!(
                "its failures are {}, and the tool's document does not say which one its text is: all become {first}; \
                 rows with the words of the tool, such as `text = \"not found: {{message}}\"`, tell them apart",
                words.join(", ")
            ));
        }
        let status = match others.is_empty() {
            true => literal(first),
            false => Pattern::Literal(format!("[{first}, {}]", others.join(", "))),
        };
        found.rows.push(self.failed_tool(status, content));
    }

    /// Adds the row of a failure for which the document has no status.
    fn add_default(&self, found: &mut ToolRows) {
        let unnamed = self.declared.iter();
        let mut unnamed = unnamed.filter(|response| response.status == DeclaredStatus::Any);
        let unnamed = unnamed.next().map(|response| &response.content);
        found.note(&format!(
            "the REST document has no status for a failure of the operation; a failed tool is a {UNNAMED}"
        ));
        let Some(declared) = unnamed else { return };
        if let Some(content) = self.content(Some(declared), UNNAMED, found) {
            found.rows.push(self.failed_tool(literal(UNNAMED), content));
        }
    }

    fn failed_tool(&self, status: Pattern, content: FailureContent) -> DraftedOutcome {
        let words = match content.is_empty() {
            true => "{_=failed}".to_owned(),
            false => self.hole(),
        };
        let block = object(vec![("type", text("text")), ("text", text(&words))]);
        let result = object(vec![
            ("isError", literal(true)),
            ("content", Pattern::List(vec![block, text("{_...}")])),
        ]);
        let mut rest = vec![("status", status)];
        rest.extend(content);
        DraftedOutcome {
            lossy: Some(LOSSY),
            ..DraftedOutcome::new(rest, vec![("result", result)])
        }
    }

    /// Adds the row of arguments that the server refuses.
    fn add_refused_arguments(&self, found: &mut ToolRows) {
        let declared = [400, 422].into_iter().find_map(|status| {
            let content = self.declared_as(status)?;
            let content = self.content(Some(content), status, &mut ToolRows::default())?;
            (!content.is_empty()).then_some((status, content))
        });
        let Some((status, content)) = declared else {
            return;
        };
        let mut rest = vec![("status", literal(status))];
        rest.extend(content);
        let error = object(vec![
            ("code", literal(-32602)),
            ("message", text(&self.hole())),
        ]);
        let row = DraftedOutcome {
            lossy: Some(LOSSY),
            ..DraftedOutcome::new(rest, vec![("error", error)])
        };
        found.rows.push(row);
    }

    /// Returns the declared statuses of a failure of the operation, the most probable first.
    fn statuses(&self) -> Vec<u16> {
        let numbers = self.declared.iter().filter_map(|response| {
            let DeclaredStatus::Number(status @ 400..=499) = response.status else {
                return None;
            };
            let content = self.content(Some(&response.content), status, &mut ToolRows::default());
            content.is_some().then_some(status)
        });
        let (of_http, mut found): (Vec<u16>, Vec<u16>) =
            numbers.partition(|status| OF_HTTP.contains(status));
        if found.is_empty() && of_http.contains(&400) {
            found.push(400);
        }
        let has_hole = self.rest.segments.iter().any(Segment::has_hole);
        // A resource that is named in the path may be absent; without a name, the call conflicts or is invalid.
        found.sort_by_key(|status| (*status == 404 && !has_hole, *status));
        found
    }

    fn declared_as(&self, status: u16) -> Option<&Content> {
        let mut declared = self.declared.iter();
        let found = declared.find(|response| response.status == DeclaredStatus::Number(status));
        found.map(|response| &response.content)
    }

    fn hole(&self) -> String {
        format!("{{{}}}", self.names.clone().unique("message"))
    }

    /// Returns the content of a failure; `None` if the document does not say where its words are.
    fn content(
        &self,
        declared: Option<&Content>,
        status: u16,
        found: &mut ToolRows,
    ) -> Option<FailureContent> {
        let body = |shape: &Shape, found: &mut ToolRows| {
            let mut unknown = Vec::new();
            let body = self.body(shape, status, DEEPEST, &mut unknown)?;
            if !unknown.is_empty() {
                found.note(&format!(
                    "the body of the {status} has {}; a failed tool does not say it",
                    unknown.join(", ")
                ));
            }
            Some(("body", body))
        };
        match declared? {
            Content::Nothing => Some(Vec::new()),
            Content::Json(shape) => Some(vec![body(shape, found)?]),
            Content::Problem(shape) => {
                let kind = object(vec![("content-type", text("application/problem+json"))]);
                Some(vec![("headers", kind), body(shape, found)?])
            }
            Content::Text => Some(vec![("text", text(&self.hole()))]),
            Content::Other => None,
        }
    }

    /// Returns the pattern of a body with the words of the failure, and the names of the members without a value.
    fn body(
        &self,
        shape: &Shape,
        status: u16,
        depth: usize,
        unknown: &mut Vec<String>,
    ) -> Option<Pattern> {
        let depth = depth.checked_sub(1)?;
        let members = match shape {
            Shape::Scalar("string") => return Some(text(&self.hole())),
            Shape::Any | Shape::Scalar(_) => return None,
            Shape::List(element) => {
                let element = self.body(element, status, depth, unknown)?;
                return Some(Pattern::List(vec![element]));
            }
            Shape::Object(members) => members,
        };
        let mut named = WORDS
            .iter()
            .filter_map(|name| members.iter().find(|member| member.name == *name));
        let (carrier, words) = named.find_map(|member| {
            let words = self.body(&member.shape, status, depth, unknown)?;
            Some((member.name.as_str(), words))
        })?;
        let mut found = Vec::new();
        for member in members {
            let pattern = match member.name == carrier {
                true => Some(words.clone()),
                false => known(member, status),
            };
            match pattern {
                Some(pattern) => found.push((member.name.clone(), pattern)),
                None if member.is_required => {
                    unknown.push(format!("`{}`", shown(&member.name)));
                }
                None => {}
            }
        }
        Some(Pattern::Object(found))
    }
}

/// Returns the pattern of a member that every failure of this status has.
fn known(member: &ShapeMember, status: u16) -> Option<Pattern> {
    let is_number = matches!(member.shape, Shape::Scalar("integer" | "number"));
    let is_text = matches!(member.shape, Shape::Scalar("string"));
    let spelled = match (&member.fixed, member.name.as_str()) {
        (Some(Value::Bool(value)), _) => value.to_string(),
        (Some(Value::Number(value)), _) => value.to_string(),
        (Some(Value::String(word)), _) if is_plain(word) => word.clone(),
        (Some(_), _) => return None,
        (None, name) if is_number && STATUSES.contains(&name) => status.to_string(),
        (None, "success" | "ok") if member.shape == Shape::Scalar("boolean") => "false".to_owned(),
        (None, "type") if is_text && !member.is_required => return None,
        (None, "title") if is_text => StatusCode::from_u16(status)
            .ok()?
            .canonical_reason()?
            .to_owned(),
        (None, "type") if is_text => "about:blank".to_owned(),
        (None, _) => return None,
    };
    Some(text(&format!("{{_={spelled}}}")))
}
