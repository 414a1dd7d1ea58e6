//! Event streams (WHATWG HTML Living Standard §9.2, "Server-sent events"): cut where events end, read, and written
//! anew where a rule says so.
//!
//! What an event means, and which rule there is for it, is not known here. Laws: what is read does not depend on how
//! the stream was cut on its way; the pieces of a stream, one behind the other, are the stream; an event that was
//! written anew reads as what was written. No more is held than one event up to a limit.

mod boundary;
mod law;
mod raw_event;
mod reader;
mod writer;

pub use boundary::EventBoundary;
pub use law::check_any_cut;
pub use raw_event::{EventContent, MESSAGE, RawEvent, Unwritable};
pub use reader::{SseReader, StreamPiece};
pub use writer::{is_accepted, message};

/// The type of a stream (§9.2.5).
pub const EVENT_STREAM: &str = "text/event-stream";

/// Whether a `EventContent-Type` is that of a stream, whatever its parameters say.
#[must_use]
pub fn is_event_stream(kind: &str) -> bool {
    let parts = kind.trim_start().split_at_checked(EVENT_STREAM.len());
    parts.is_some_and(|(essence, rest)| {
        essence.eq_ignore_ascii_case(EVENT_STREAM)
            && matches!(rest.trim_start().bytes().next(), None | Some(b';'))
    })
}

#[cfg(test)]
mod tests;
