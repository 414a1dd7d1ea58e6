//! A body that came at once with its head, and goes past the HTTP library: what a library does for a body that may still
//! come costs more than a copy of a short one that is there.
//!
//! Law: the library reads a message that says it has no body; whoever is given that message has the body, and the length
//! that was said.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};

use crate::domain::wire::CompleteMessage;

/// The longest body that is copied. A longer one keeps the room in which it came.
const COPIED: usize = 16 * 1024;

/// The body.
pub struct InlineBody {
    body: Bytes,
    length: HeaderValue,
}

impl fmt::Debug for InlineBody {
    /// What it says is nobody's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = &self.length;
        f.debug_struct("WholeBody")
            .field("length", length)
            .finish_non_exhaustive()
    }
}

impl InlineBody {
    /// Copies a short body, and blanks its length. Of the message, the head is to be read.
    pub fn copy(message: &mut [u8], whole: &CompleteMessage) -> Option<InlineBody> {
        let body = &message[whole.head..];
        if body.len() > COPIED {
            return None;
        }
        let copied = InlineBody {
            body: Bytes::copy_from_slice(body),
            length: length(message, whole)?,
        };
        whole.blank(message);
        Some(copied)
    }

    /// Takes the body out of a message, of which the head is left with its length blanked.
    pub(super) fn take(message: &mut BytesMut, whole: &CompleteMessage) -> Option<InlineBody> {
        if message.len() - whole.head <= COPIED {
            let copied = InlineBody::copy(message, whole)?;
            message.truncate(whole.head);
            return Some(copied);
        }
        let length = length(message, whole)?;
        whole.blank(message);
        let body = message.split_off(whole.head).freeze();
        Some(InlineBody { body, length })
    }

    /// Gives the head its length back, which has been read as if there was no body, and gives the body.
    pub fn restore(self, headers: &mut HeaderMap) -> Bytes {
        if let Some(length) = headers.get_mut(CONTENT_LENGTH) {
            *length = self.length;
        }
        self.body
    }
}

fn length(message: &[u8], whole: &CompleteMessage) -> Option<HeaderValue> {
    HeaderValue::from_bytes(&message[whole.length.clone()]).ok()
}
