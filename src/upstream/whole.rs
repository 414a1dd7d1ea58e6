//! A body that came at once with its head, and goes past the HTTP library: what a library does for a body that may still
//! come costs more than a copy of a short one that is there.
//!
//! Law: the library reads a message that says it has no body; whoever is given that message has the body, and the length
//! that was said.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};

use crate::domain::wire::Whole;

/// The longest body that does so.
const MOST: usize = 4 * 1024;

/// The body.
#[derive(Debug)]
pub struct WholeBody {
    body: Bytes,
    length: HeaderValue,
}

impl WholeBody {
    /// Takes the body of a message, and blanks its length. What is left to read is the head.
    pub fn take(message: &mut [u8], whole: &Whole) -> Option<WholeBody> {
        let body = &message[whole.head..];
        if body.len() > MOST {
            return None;
        }
        let taken = WholeBody {
            body: Bytes::copy_from_slice(body),
            length: HeaderValue::from_bytes(&message[whole.length.clone()]).ok()?,
        };
        whole.blank(message);
        Some(taken)
    }

    /// The body, with whose length its head has been read as if there was none.
    pub fn belongs_to(self, headers: &mut HeaderMap) -> Bytes {
        if let Some(length) = headers.get_mut(CONTENT_LENGTH) {
            *length = self.length;
        }
        self.body
    }
}
