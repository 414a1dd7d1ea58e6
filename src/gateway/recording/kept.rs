//! The parts of messages that are kept until their call ends. Used throughout `recording`.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use dualgauge_net::{BodyCopy, CopyUnavailable};

/// The kind of a request that is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum RequestKind {
    /// A request over HTTP, or a JSON-RPC message.
    Http,
    /// An old message on a socket.
    Frame,
}

/// The body of a request, until the call ends.
#[derive(Debug)]
pub(super) enum KeptContent {
    Whole(Bytes),
    Copied(BodyCopy),
    /// Not recorded, with its length as far as it is known.
    Omitted(u64),
    Empty,
}

/// A body of an ended call.
#[derive(Debug)]
pub(super) enum EndedBody {
    Whole(Bytes),
    /// Not recorded, with its length as far as it is known.
    Omitted(u64),
    /// To be recorded, and too large or broken off.
    Lost,
}

impl EndedBody {
    /// Returns the length, as far as it is known.
    pub(super) fn length(&self) -> u64 {
        match self {
            EndedBody::Whole(whole) => whole.len() as u64,
            EndedBody::Omitted(length) => *length,
            EndedBody::Lost => 0,
        }
    }

    pub(super) fn copied(copy: &BodyCopy) -> EndedBody {
        match copy.whole() {
            Ok(whole) => EndedBody::Whole(whole),
            Err(CopyUnavailable::BudgetExhausted | CopyUnavailable::Unfinished) => EndedBody::Lost,
        }
    }

    pub(super) fn size(&self) -> usize {
        match self {
            EndedBody::Whole(whole) => whole.len(),
            EndedBody::Omitted(_) | EndedBody::Lost => 0,
        }
    }
}

/// Returns the length of a body that its head announces; zero if it does not.
pub(super) fn announced_length(headers: &HeaderMap) -> u64 {
    let length = headers.get(CONTENT_LENGTH);
    length
        .and_then(|length| length.to_str().ok()?.parse().ok())
        .unwrap_or(0)
}

/// Returns the headers that describe the content of a body.
pub(super) fn coding(headers: &HeaderMap) -> HeaderMap {
    picked(headers, &[CONTENT_TYPE, CONTENT_ENCODING])
}

/// Returns the headers with these names.
pub(super) fn picked(headers: &HeaderMap, names: &[HeaderName]) -> HeaderMap {
    let mut found = HeaderMap::new();
    for name in names {
        for value in headers.get_all(name) {
            found.append(name, value.clone());
        }
    }
    found
}
