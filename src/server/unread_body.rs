//! Whether the answer to a call over HTTP/1.1 leaves some of its body unread.
//!
//! hyper reads of a body that nobody wants what it has of it, as one piece, and ends the connection where that is not the
//! rest. Law: where this may be so the answer says that its connection ends (RFC 9112 §9.6).

use hyper::body::Body;

use super::inspected_socket::Inspection;
use crate::upstream::{FullyRead, IncomingBody};

/// By what the end of the body of one call is known.
#[derive(Debug)]
pub(super) enum UnreadBody {
    /// It has a length: hyper has the rest of it as one piece once that has come.
    Sized,
    /// It comes in chunks, and each is a piece.
    Chunked(FullyRead),
}

impl UnreadBody {
    /// Looks at the body of a call that has just begun.
    pub(super) fn new(body: &mut IncomingBody) -> UnreadBody {
        if body.size_hint().exact().is_some() {
            return UnreadBody::Sized;
        }
        UnreadBody::Chunked(body.signals_end())
    }

    /// Whether some of the body of the call, which has this number, is left where it is if it is answered now.
    pub(super) fn is_left(&self, inspection: &Inspection, number: u64) -> bool {
        match self {
            UnreadBody::Sized => inspection.owes(number),
            UnreadBody::Chunked(read) => !read.is_so(),
        }
    }
}
