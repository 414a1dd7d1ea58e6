//! Detects HTTP/1.1 responses that leave some of the request body unread.
//!
//! hyper drains the buffered part of an unread body as one chunk, and closes the connection if that is not the rest.
//! Law: if this can happen, the response announces the close (RFC 9112 §9.6).

use hyper::body::Body;

use super::inspected_socket::Inspection;
use crate::{FullyRead, IncomingBody};

/// The way in which the end of a request body is detected.
#[derive(Debug)]
pub enum UnreadBody {
    /// The body has a length; hyper holds the rest of it as one chunk once that has arrived.
    Sized,
    /// The body is chunked, and each chunk is read separately.
    Chunked(FullyRead),
}

impl UnreadBody {
    /// Creates the detector for the body of a new call.
    pub fn new(body: &mut IncomingBody) -> UnreadBody {
        if body.size_hint().exact().is_some() {
            return UnreadBody::Sized;
        }
        UnreadBody::Chunked(body.end_flag())
    }

    /// Returns true if a response now would leave some of the body of call `number` unread.
    pub fn is_left(&self, inspection: &Inspection, number: u64) -> bool {
        match self {
            UnreadBody::Sized => inspection.has_incomplete_body(number),
            UnreadBody::Chunked(read) => !read.is_set(),
        }
    }
}
