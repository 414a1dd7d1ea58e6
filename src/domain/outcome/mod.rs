//! Outcomes: what an answer looks like on the other side.
//!
//! The built-in rows, both ways. Laws: a result stays the bytes it was; an error of either side that goes
//! to the other and comes back keeps its status, code, message and data; so does a failure that the proxy
//! itself wrote. Success has a normal form: 200, or 204 for `null`.

mod builtin;
mod problem;

use bytes::Bytes;

use super::jsonrpc::ErrorObject;
use super::pieces::Pieces;

pub use builtin::{ReplyLimits, kept, rest_to_rpc, rpc_to_rest};
pub use problem::{error_object, problem};

/// An answer of a REST upstream, whole.
#[derive(Debug, Clone, Default)]
pub struct RestReply {
    /// The HTTP status.
    pub status: u16,
    /// `Content-Type`, as it came.
    pub content_type: Option<String>,
    /// `Location`, as it came.
    pub location: Option<String>,
    /// The body.
    pub body: Bytes,
}

/// An answer for an RPC client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcAnswer {
    /// Success.
    Result(Pieces),
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
    /// The body.
    pub body: Pieces,
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
