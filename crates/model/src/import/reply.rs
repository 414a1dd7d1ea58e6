//! Responses of an OpenAPI operation: the difference of a successful reply from the built-in table.
//!
//! Failures are left to the built-in table, which keeps status and body; documents rarely relate their statuses to RPC
//! codes.
//!
//! Used by `import`.

use serde_json::{Map, Value};

use super::drafted::{DraftedOutcome, literal, text};
use super::media_type::is_json;
use super::model::ReplyModel;
use super::refs::{Refs, ReplyTypes, shown};
use super::unsupported::Unsupported;
use super::values::Bindings;
use crate::route::Effect;
use crate::stream_format::StreamFormat;

/// Reads the reply to a successful call.
pub(super) fn read<'v>(
    refs: &Refs<'v>,
    effect: Effect,
    responses: &'v Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<ReplyModel, Unsupported> {
    let mut successes = Vec::new();
    for (status, response) in responses {
        if let Some(status) = success(status) {
            successes.push((status, refs.follow(response)?));
        }
    }
    successes.sort_by_key(|(status, _)| *status);
    let Some((status, response)) = successes.first().copied() else {
        return Ok(ReplyModel::Usual);
    };
    if successes.len() > 1 {
        let words: Vec<String> = successes
            .iter()
            .map(|(status, _)| status.to_string())
            .collect();
        notes.push(format!(
            "look: its success statuses are {}; an RPC answer is written as {}",
            words.join(" or "),
            if status == 204 { 200 } else { status },
        ));
    }
    // An absent body is null for an RPC client, and null becomes 204 again.
    let may_be_nothing = successes.iter().any(|(status, _)| *status == 204);
    let members = ["headers", "content"]
        .iter()
        .filter_map(|name| response.get(name)?.as_object());
    refs.steps(members.map(Map::len).sum())?;
    if has_location(response) {
        notes.push(format!(
            "look: its {status} {HAS_LOCATION} where the result has what the URL needs, add \
             `headers = {{ location = \"/path/{{id}}\" }}` to an outcome"
        ));
    }
    match from_content(refs, status, response) {
        Ok(ReplyModel::Json(status)) if may_be_nothing && status != 204 => {
            Ok(ReplyModel::JsonOrNothing(status))
        }
        Ok(_) if status != 200 && may_be_nothing => Ok(ReplyModel::Usual),
        // The built-in table reads both as null, and writes null as the 204.
        Ok(ReplyModel::Empty(_)) if may_be_nothing && effect != Effect::Safe => {
            Ok(ReplyModel::Usual)
        }
        Err(_) if is_tool_value(refs, response) => Ok(ReplyModel::Usual),
        found => found,
    }
}

/// The words of a note on a `Location`.
const HAS_LOCATION: &str = "has the header Location;";

/// Returns true for the note on a `Location`. The outcomes of a tool have a note of their own.
pub(super) fn is_location_note(note: &str) -> bool {
    note.starts_with("look: its ") && note.contains(HAS_LOCATION)
}

/// Returns the format in which a success of an operation streams, if one does.
pub(super) fn stream<'v>(
    refs: &Refs<'v>,
    operation: &'v Value,
    notes: &mut Vec<String>,
) -> Result<Option<StreamFormat>, Unsupported> {
    // The result of a tool is one response.
    let responses = operation.get("responses").and_then(Value::as_object);
    let Some(responses) = responses.filter(|_| refs.reply_types() != ReplyTypes::Any) else {
        return Ok(None);
    };
    for (status, response) in responses {
        if success(status).is_none() {
            continue;
        }
        let content = refs.follow(response)?.get("content");
        let mut kinds = content.and_then(Value::as_object).into_iter().flatten();
        let found = kinds.find_map(|(kind, _)| StreamFormat::of_content_type(kind));
        if let Some(format) = found {
            notes.push(format!(
                "look: its {status} streams as {}; check that the RPC method streams too",
                format.content_type()
            ));
            return Ok(Some(format));
        }
    }
    Ok(None)
}

/// Returns true for content that is no JSON and no text, but may be the value of a tool.
fn is_tool_value(refs: &Refs<'_>, response: &Value) -> bool {
    let content = response.get("content").and_then(Value::as_object);
    let is_stream = |kind: &String| kind.to_ascii_lowercase().starts_with("text/event-stream");
    refs.reply_types() == ReplyTypes::Any
        && content.is_some_and(|content| !content.keys().all(is_stream))
}

/// Parses a success status; `2XX` counts as 200.
fn success(status: &str) -> Option<u16> {
    if status.eq_ignore_ascii_case("2xx") {
        return Some(200);
    }
    let number: u16 = status.parse().ok()?;
    (200..300).contains(&number).then_some(number)
}

fn has_location(response: &Value) -> bool {
    let headers = response.get("headers").and_then(Value::as_object);
    headers
        .into_iter()
        .flatten()
        .any(|(name, _)| name.eq_ignore_ascii_case("location"))
}

fn from_content(refs: &Refs<'_>, status: u16, response: &Value) -> Result<ReplyModel, Unsupported> {
    let content = response.get("content").and_then(Value::as_object);
    let Some(content) = content.filter(|content| !content.is_empty()) else {
        return Ok(match status {
            204 => ReplyModel::Usual,
            // The row reads only responses without a body: JSON that the document does not mention stays the result.
            _ => ReplyModel::Empty(status),
        });
    };
    if content.keys().any(|kind| is_json(kind)) {
        return Ok(match status {
            200 => ReplyModel::Usual,
            _ => ReplyModel::Json(status),
        });
    }
    if content
        .keys()
        .any(|kind| kind.to_ascii_lowercase().starts_with("text/plain"))
    {
        return Ok(ReplyModel::Text(status));
    }
    let streams = |kind: &String| StreamFormat::of_content_type(kind).is_some();
    if refs.reply_types() != ReplyTypes::Any && content.keys().any(streams) {
        // Each event is a success of its own.
        return Ok(ReplyModel::Usual);
    }
    let kinds: Vec<&str> = content.keys().map(String::as_str).collect();
    Err(Unsupported::left_out(format!(
        "its answer is {}; only JSON, text/plain and streams of JSON are translated, other answers pass through",
        shown(&kinds.join(", "))
    )))
}

/// Drafts the row that differs from the built-in table.
pub(super) fn rows(reply: ReplyModel, bindings: &Bindings) -> Vec<DraftedOutcome> {
    let hole = bindings.free("reply");
    let result = vec![("result", text(&format!("{{{hole}}}")))];
    let body = text(&format!("{{{hole}}}"));
    let json = |status: u16, result| {
        DraftedOutcome::new(vec![("status", literal(status)), ("body", body)], result)
    };
    let empty = |status: u16| {
        let result = vec![("result", text("{_:null}"))];
        DraftedOutcome::new(vec![("status", literal(status))], result)
    };
    let row = match reply {
        ReplyModel::Usual => return Vec::new(),
        ReplyModel::Json(status) => json(status, result),
        ReplyModel::JsonOrNothing(status) => {
            let json = DraftedOutcome {
                lossy: Some("a body of null is sent as 204"),
                ..json(status, result)
            };
            return vec![empty(204), json];
        }
        ReplyModel::Empty(status) => empty(status),
        ReplyModel::Text(status) => {
            let words = text(&format!("{{{hole}:string}}"));
            DraftedOutcome::new(vec![("status", literal(status)), ("text", words)], result)
        }
    };
    vec![row]
}
