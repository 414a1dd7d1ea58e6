//! Outcomes: the translation of responses to the other side.
//!
//! A row is a pair of reply patterns, used in both directions. Of the rows that match a response the most specific is
//! chosen: first the route's own, then those of its sets, then the built-in ones. Laws of the built-in rows: a result
//! keeps its bytes; an error of either side that goes to the other and back keeps its status, code, message and data;
//! so does a failure that the proxy itself wrote. Success has a normal form: 200, or 204 for `null`.

mod builtin;
mod compare;
mod draft;
mod frames;
mod number;
mod problem;
mod refused;
mod row;
mod status;
mod table;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::jsonrpc::ErrorObject;
use super::rope::Rope;
use super::sse;

pub use builtin::{
    EMPTY_TOOL_RESULT, ReplyLimits, blame_behind_tool, envelope_of, redirect, rpc_to_rest,
};
pub use draft::{RestReplySource, RowSource, RpcReplySource};
pub use frames::Correlation;
pub use number::{Choice, NumberPattern};
pub use problem::{error_object, problem};
pub use refused::{Refused, refusal, refuses};
pub use row::{
    BodyPattern, OutcomeRow, RestReplyPattern, RpcReplyPattern, ToolResult, reports_failure,
};
pub use status::ErrorStatus;
pub use table::{Outcomes, TOOL_ERROR_STATUS, TranslatedReply};

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
    pub(in crate::domain) fn content_type_words(&self) -> String {
        let absent = || "without a content type".to_owned();
        self.content_type()
            .map_or_else(absent, |kind| format!("with `{kind}`"))
    }

    /// Returns whether it is an event stream (WHATWG HTML §9.2).
    #[must_use]
    pub fn is_event_stream(&self) -> bool {
        self.content_type().is_some_and(sse::is_event_stream)
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

#[cfg(test)]
mod tests;
