//! Responses: those that an upstream sends, and those that a client gets.
//!
//! Used by `cli`, `model`, `gateway` and `upstream`.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::jsonrpc::ErrorObject;
use crate::mcp::ResultType;
use crate::stream_format::{StreamFormat, StreamHead};
use dualgauge_patterns::rope::Rope;

/// A complete response of a REST upstream.
#[derive(Debug, Clone, Default)]
pub struct RestReply {
    /// The HTTP status.
    pub status: u16,
    /// The headers as received.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl RestReply {
    /// Returns `Content-Type`, if it is text.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get(CONTENT_TYPE)?.to_str().ok()
    }

    /// Returns a description of its `Content-Type`, for messages.
    pub(crate) fn content_type_words(&self) -> String {
        let absent = || "without a content type".to_owned();
        self.content_type()
            .map_or_else(absent, |kind| format!("with `{kind}`"))
    }

    /// Returns whether it is an event stream (WHATWG HTML §9.2).
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        StreamFormat::of_head(&self.headers).is_some_and(StreamHead::is_event_stream)
    }

    /// Returns `Location`, if it is text.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// A response for an RPC client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcAnswer {
    /// Success.
    Result(Rope),
    /// Failure.
    Error(ErrorObject),
}

/// A response for a REST client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestAnswer {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`; absent without a body.
    pub content_type: Option<String>,
    /// Further headers from the outcome.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Rope,
}

/// A response translated for the other side.
#[derive(Debug)]
pub struct TranslatedReply<A> {
    /// The response.
    pub answer: A,
    /// Members that no pattern named.
    pub dropped: usize,
    /// The index of the row that it matched; `None` for the built-in table.
    pub row: Option<usize>,
    /// True for a tool error: the result of a tool with `isError: true`. For a REST client, only if no row matches it.
    pub tool_error: bool,
    /// Whether a result for an RPC client may have the member `resultType`.
    pub result_type: ResultType,
}

/// Returns whether a content type is `application/json` or `+json` (RFC 6839 §3.1), ignoring parameters.
#[must_use]
pub fn is_json(content_type: &str) -> bool {
    let essence = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .as_bytes();
    let structured = essence.len().checked_sub(5).map(|at| &essence[at..]);
    essence.eq_ignore_ascii_case(b"application/json")
        || structured
            .is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json") && essence.contains(&b'/'))
}
