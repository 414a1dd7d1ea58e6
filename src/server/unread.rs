//! Whether the answer to a call over HTTP/1.1 leaves some of its body unread.
//!
//! hyper reads of a body that nobody wants what it has of it, as one piece, and ends the connection where that is not the
//! rest. Law: where this may be so the answer says that its connection ends (RFC 9112 §9.6).

use hyper::body::Body;

use super::wire::Inspection;
use crate::upstream::{Inflow, ReadWhole};

/// By what the end of the body of one call is known.
#[derive(Debug)]
pub(super) enum Unread {
    /// It has a length: hyper has the rest of it as one piece once that has come.
    Sized,
    /// It comes in chunks, and each is a piece.
    Chunked(ReadWhole),
}

impl Unread {
    /// Looks at the body of a call that has just begun.
    pub(super) fn of(body: &mut Inflow) -> Unread {
        if body.size_hint().exact().is_some() {
            return Unread::Sized;
        }
        Unread::Chunked(body.tells_end())
    }

    /// Whether some of the body of the call, which has this number, is left where it is if it is answered now.
    pub(super) fn is_left(&self, inspection: &Inspection, number: u64) -> bool {
        match self {
            Unread::Sized => inspection.owes(number),
            Unread::Chunked(read) => !read.is_so(),
        }
    }
}
