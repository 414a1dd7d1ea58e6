//! A POST, and its outcome. Used by `mcp`.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use dualgauge_model::outcome::RestReply;
use dualgauge_model::pending::RequestError;

/// A message to post.
#[derive(Debug)]
pub(super) struct OutboundPost {
    pub(super) id: Option<u64>,
    pub(super) body: Bytes,
    pub(super) headers: HeaderMap,
}

/// The POSTs of the link itself, which no caller waits for.
#[derive(Debug, Default)]
pub(super) struct OwnPosts {
    /// The number of running ones.
    pub(super) running: usize,
    /// The queued ones.
    pub(super) waiting: VecDeque<OutboundPost>,
}

/// The result of a POST.
#[derive(Debug)]
pub(super) struct PostResult {
    pub(super) outcome: PostOutcome,
    pub(super) session: Option<HeaderValue>,
}

/// The outcome of a POST.
#[derive(Debug)]
pub(super) enum PostOutcome {
    /// The response, with the id of the request.
    Answered(Bytes),
    /// The server accepted the message and returned nothing.
    Accepted,
    /// The server does not know the session, and did not process the message.
    SessionLost,
    /// The server rejected the request by its HTTP status, regardless of the body.
    Refused(RestReply),
    /// The server ended the response stream without a response.
    Ended,
    Failed(RequestError),
}
