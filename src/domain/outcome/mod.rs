//! Outcomes: what an answer looks like on the other side.
//!
//! A row is a pair of reply patterns, used in both directions; of the rows that fit an answer the most
//! specific is taken: the route's own, those of the sets that it names, the built-in ones last. Laws of those: a result stays the bytes it was; an error of either side that goes
//! to the other and comes back keeps its status, code, message and data; so does a failure that the proxy
//! itself wrote. Success has a normal form: 200, or 204 for `null`.

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
    BodyPattern, OutcomeRow, RestReplyPattern, RpcReplyPattern, ToolResult, says_failure,
};
pub use status::ErrorStatus;
pub use table::{Outcomes, TOOL_ERROR_STATUS, TranslatedReply};

/// An answer of a REST upstream, whole.
#[derive(Debug, Clone, Default)]
pub struct RestReply {
    /// The HTTP status.
    pub status: u16,
    /// The headers, as they came.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl RestReply {
    /// `Content-Type`, where it is text.
    #[must_use]
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get(CONTENT_TYPE)?.to_str().ok()
    }

    /// Returns words on its `Content-Type`, for messages.
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

    /// `Location`, where it is text.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        self.headers.get(LOCATION)?.to_str().ok()
    }
}

/// An answer for an RPC client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcAnswer {
    /// Success.
    Result(Rope),
    /// Failure.
    Error(ErrorObject),
}

/// An answer for a REST client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestAnswer {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`; absent where there is no body.
    pub content_type: Option<String>,
    /// Further headers that the outcome names.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Rope,
}

/// `application/json` and every `+json` (RFC 6839 §3.1), parameters aside.
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
