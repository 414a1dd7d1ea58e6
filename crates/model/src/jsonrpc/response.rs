//! Responses of RPC upstreams. Used by `config`, `model`, `gateway` and `upstream`.

use std::ops::Range;

use bytes::Bytes;

use dualgauge_patterns::json::{
    BYTE_ORDER_MARK, Json, JsonFault, JsonKind, is_integer, scan_object,
};
use dualgauge_patterns::rope::{Rope, RopeWriter};

use super::message::{ERROR, Envelope, ID, JSONRPC, METHOD, RESULT};
use super::{RequestId, write};

/// One response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id as the upstream wrote it, if present.
    pub id: Option<Json>,
    /// The result or error.
    pub reply: ResponseReply,
    whole: Range<usize>,
    id_range: Option<Range<usize>>,
    result_range: Option<Range<usize>>,
}

impl Response {
    /// Returns the response with its ranges shifted by a number of bytes.
    fn shifted(self, by: usize) -> Response {
        let shifted = |range: Range<usize>| range.start + by..range.end + by;
        Response {
            whole: shifted(self.whole),
            id_range: self.id_range.map(shifted),
            result_range: self.result_range.map(shifted),
            ..self
        }
    }

    /// Returns the response with another id; every other byte of its source `body` is unchanged.
    #[must_use]
    pub fn with_id(&self, body: &Bytes, id: &RequestId) -> Rope {
        let Some(range) = self.id_range.clone() else {
            return match &self.reply {
                ResponseReply::Result(result) => {
                    write::result(id, result.clone().into_bytes().into())
                }
                ResponseReply::Error(error) => write::error(id, error),
            };
        };
        let mut writer = RopeWriter::with_capacity(128);
        writer.append(body.slice(self.whole.start..range.start));
        writer.copy(id.as_bytes());
        writer.append(body.slice(range.end..self.whole.end));
        writer.finish()
    }

    /// Returns the response with another id and result; every other byte of its source `body` is unchanged.
    #[must_use]
    pub fn with_result(&self, body: &Bytes, id: &RequestId, result: Rope) -> Rope {
        let ranges = self.id_range.clone().zip(self.result_range.clone());
        let Some((id_range, result_range)) = ranges else {
            return write::result(id, result);
        };
        let id = Bytes::copy_from_slice(id.as_bytes());
        let mut parts = [(id_range, id), (result_range, result.into_bytes())];
        parts.sort_by_key(|(range, _)| range.start);
        let mut writer = RopeWriter::with_capacity(128);
        let mut copied = self.whole.start;
        for (range, written) in parts {
            writer.append(body.slice(copied..range.start));
            writer.append(written);
            copied = range.end;
        }
        writer.append(body.slice(copied..self.whole.end));
        writer.finish()
    }
}

/// The content of a response: a result or an error, never both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseReply {
    /// The call succeeded.
    Result(Json),
    /// The call failed.
    Error(ErrorObject),
}

/// An error (JSON-RPC 2.0 §5.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorObject {
    /// The code.
    pub code: i64,
    /// The message, as the JSON string that was received.
    pub message: Json,
    /// Additional data from the server, unopened.
    pub data: Option<Json>,
}

/// The reason why a body is not one response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseFault {
    /// The body is not JSON, or is nested beyond the limit.
    #[error("the answer is not JSON: {0}")]
    Json(JsonFault),
    /// The body is JSON, but not one response.
    #[error("the answer is not a JSON-RPC 2.0 response: {0}")]
    Protocol(String),
}

fn protocol(what: impl Into<String>) -> ResponseFault {
    ResponseFault::Protocol(what.into())
}

/// The meaning of a response without `result` and `error`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoResult {
    /// It is no response.
    Fault,
    /// With an id and `jsonrpc`, its result is `null`: some servers leave out members that are `null`.
    Null,
}

/// Parses one response.
///
/// Accepts unambiguous deviations of real servers: a missing `jsonrpc`, and JSON-RPC 1.0's `"error": null` next to a
/// result.
///
/// # Errors
/// [`ResponseFault`] describes the content.
pub fn parse_response(body: &Bytes, depth: u16) -> Result<Response, ResponseFault> {
    parse_response_with(body, depth, NoResult::Fault)
}

/// Parses one response as [`parse_response`] does, with a meaning of a response without `result` and `error`.
///
/// # Errors
/// [`ResponseFault`] describes the content.
pub fn parse_response_with(
    body: &Bytes,
    depth: u16,
    no_result: NoResult,
) -> Result<Response, ResponseFault> {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => {}
        _ if body.starts_with(BYTE_ORDER_MARK) => {
            let offset = BYTE_ORDER_MARK.len();
            let text = body.slice(offset..);
            // Only one byte order mark is ignored.
            if text.starts_with(BYTE_ORDER_MARK) {
                Json::parse(text.clone(), depth).map_err(ResponseFault::Json)?;
            }
            let response = parse_response_with(&text, depth, no_result)?;
            return Ok(response.shifted(offset));
        }
        _ => {
            let value = Json::parse(body.clone(), depth).map_err(ResponseFault::Json)?;
            return Err(protocol(format!(
                "it is {}, not one object",
                value.kind().described()
            )));
        }
    }
    let mut envelope = Envelope::default();
    let whole = scan_object(body, depth, |member| envelope.note(body, member))
        .map_err(ResponseFault::Json)?;
    if let Some(fault) = envelope.fault.take() {
        return Err(protocol(fault));
    }
    let value = |index: usize| {
        envelope.ranges[index]
            .clone()
            .map(|range| Json::scanned(body, range))
    };
    if value(JSONRPC).is_some_and(|version| version.as_bytes() != b"\"2.0\"") {
        return Err(protocol("`jsonrpc` is not \"2.0\""));
    }
    let set = |index: usize| value(index).filter(|value| value.kind() != JsonKind::Null);
    let reply = match (set(RESULT), set(ERROR)) {
        (Some(_), Some(_)) => return Err(protocol("it has both `result` and `error`")),
        (Some(result), None) => ResponseReply::Result(result),
        (None, Some(error)) => ResponseReply::Error(parse_error(&error)?),
        (None, None) if value(RESULT).is_some() => ResponseReply::Result(Json::literal("null")),
        (None, None) if value(METHOD).is_some() => {
            return Err(protocol("it is a request or a notification of the server"));
        }
        (None, None) if no_result == NoResult::Null && has_all([JSONRPC, ID], &envelope) => {
            ResponseReply::Result(Json::literal("null"))
        }
        (None, None) => return Err(protocol("it has neither `result` nor `error`")),
    };
    Ok(Response {
        id: value(ID),
        reply,
        whole,
        id_range: envelope.ranges[ID].clone(),
        result_range: envelope.ranges[RESULT].clone(),
    })
}

fn has_all(members: [usize; 2], envelope: &Envelope) -> bool {
    let mut members = members.iter();
    members.all(|index| envelope.ranges[*index].is_some())
}

fn parse_error(error: &Json) -> Result<ErrorObject, ResponseFault> {
    if error.kind() != JsonKind::Object {
        return Err(protocol(format!(
            "`error` is {}, not an object",
            error.kind().described()
        )));
    }
    let members = error
        .open()
        .map_err(|fault| protocol(format!("`error`: {fault}")))?;
    let member = |name: &str| {
        let found = members.iter().find(|member| member.name == name)?;
        Some(error.piece(found.value.clone()))
    };
    let (code, message, data) = (member("code"), member("message"), member("data"));
    let code = code.filter(|code| is_integer(code.as_bytes()));
    let code = code.and_then(|code| std::str::from_utf8(code.as_bytes()).ok()?.parse().ok());
    let Some(code) = code else {
        return Err(protocol("`error.code` is not an integer"));
    };
    let message = message.filter(|message| message.kind() == JsonKind::String);
    Ok(ErrorObject {
        code,
        message: message.unwrap_or(Json::literal("\"\"")),
        data,
    })
}
