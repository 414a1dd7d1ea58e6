//! A body received together with its head, which bypasses the HTTP library.
//!
//! Preparing to receive the rest of a body costs more than a copy of a short one. Law: the library parses a message
//! with a length of zero; the receiver of that message gets the body and the original length.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue};

use dualgauge_transport::wire::CompleteMessage;

/// The longest body that is copied, in bytes. A longer one keeps the buffer in which it was read.
const COPIED: usize = 16 * 1024;

/// A complete body, and the value of its `Content-Length`.
pub struct InlineBody {
    body: Bytes,
    length: HeaderValue,
}

impl fmt::Debug for InlineBody {
    /// Prints the length only, never the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = &self.length;
        f.debug_struct("InlineBody")
            .field("length", length)
            .finish_non_exhaustive()
    }
}

impl InlineBody {
    /// Copies a short body and blanks its length, so that the library parses the head alone.
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

    /// Takes the body out of a message, leaving the head with its length blanked.
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

    /// Restores the length in the parsed head and returns the body.
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
