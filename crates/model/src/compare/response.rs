//! Responses as the client of a call sees them, and the normal form of their bodies. Used by `compare::parts`.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap};

use dualgauge_patterns::json::{Json, JsonIndex};

/// A response, in the form of the side of its call.
#[derive(Debug, Clone, Copy)]
pub enum ComparedResponse<'a> {
    /// The response to a REST call.
    Rest {
        /// The status.
        status: u16,
        /// All headers; the rules select those that are compared.
        headers: &'a HeaderMap,
        /// The decoded body.
        body: &'a Bytes,
    },
    /// The result of an RPC call.
    Result(&'a Json),
    /// The error of an RPC call.
    Error {
        /// The code.
        code: i64,
        /// The message, as received JSON.
        message: &'a Json,
        /// The additional data of the error.
        data: Option<&'a Json>,
    },
}

/// The parsed values of a response.
pub(super) struct ParsedResponse<'a> {
    pub(super) body: ComparedBody<'a>,
    result: Option<&'a Json>,
    message: Option<&'a Json>,
    data: Option<&'a Json>,
}

/// A body in normal form.
pub(super) enum ComparedBody<'a> {
    /// No body, or an empty one.
    Absent,
    /// JSON.
    Json(Json),
    /// Any other content.
    Text(&'a [u8]),
}

/// The indexed values of a response.
pub(super) struct ResponseTrees<'a> {
    pub(super) body: Option<JsonIndex<'a>>,
    pub(super) result: Option<JsonIndex<'a>>,
    pub(super) message: Option<JsonIndex<'a>>,
    pub(super) data: Option<JsonIndex<'a>>,
}

impl<'a> ParsedResponse<'a> {
    pub(super) fn new(answer: &ComparedResponse<'a>, depth: u16) -> ParsedResponse<'a> {
        let mut parsed = ParsedResponse {
            body: ComparedBody::Absent,
            result: None,
            message: None,
            data: None,
        };
        match *answer {
            ComparedResponse::Rest { headers, body, .. } => {
                parsed.body = ComparedBody::read(headers, body, depth)
            }
            ComparedResponse::Result(result) => parsed.result = Some(result),
            ComparedResponse::Error { message, data, .. } => {
                parsed.message = Some(message);
                parsed.data = data;
            }
        }
        parsed
    }

    pub(super) fn trees(&self) -> ResponseTrees<'_> {
        fn tree(json: &Json) -> JsonIndex<'_> {
            JsonIndex::read(json.as_bytes())
        }
        ResponseTrees {
            body: match &self.body {
                ComparedBody::Json(json) => Some(tree(json)),
                ComparedBody::Absent | ComparedBody::Text(_) => None,
            },
            result: self.result.map(tree),
            message: self.message.map(tree),
            data: self.data.map(tree),
        }
    }

    /// Returns the number of bytes of JSON.
    pub(super) fn len(&self) -> usize {
        let body = match &self.body {
            ComparedBody::Json(json) => Some(json),
            ComparedBody::Absent | ComparedBody::Text(_) => None,
        };
        let all = [body, self.result, self.message, self.data];
        all.into_iter()
            .flatten()
            .map(|json| json.as_bytes().len())
            .sum()
    }
}

impl<'a> ComparedBody<'a> {
    pub(super) const JSON: &'static str = "JSON";
    pub(super) const TEXT: &'static str = "text";

    /// Parses a body. It counts as JSON if its media type is JSON, is absent, or it begins like an object or a list,
    /// and if it is valid JSON.
    fn read(headers: &HeaderMap, body: &'a Bytes, depth: u16) -> ComparedBody<'a> {
        if body.is_empty() {
            return ComparedBody::Absent;
        }
        let declared =
            essence(headers).is_none_or(|kind| kind.ends_with("/json") || kind.ends_with("+json"));
        let first = body.trim_ascii_start().first();
        if (declared || matches!(first, Some(b'{' | b'[')))
            && let Ok(json) = Json::read(body.clone(), depth)
        {
            return ComparedBody::Json(json);
        }
        ComparedBody::Text(body)
    }
}

/// Returns the media type without parameters, in lower case.
pub(super) fn essence(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.as_bytes();
    let end = value.iter().position(|byte| *byte == b';');
    let kind = value.get(..end.unwrap_or(value.len()))?.trim_ascii();
    Some(String::from_utf8_lossy(kind).to_ascii_lowercase())
}
