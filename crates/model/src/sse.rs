//! Event streams (WHATWG HTML Living Standard §9.2, "Server-sent events"): splitting into events, parsing and
//! rewriting.
//!
//! The meaning of events and the rules for them belong to other modules. Laws: the events do not depend on how the
//! stream was split into chunks; the concatenated pieces of a stream are the stream; a rewritten event reads back as
//! written. At most one event, up to a limit, is buffered.
//!
//! Used by `model`, `gateway` and `upstream`.

mod boundary;
mod law;
mod raw_event;
mod reader;
mod writer;

pub use boundary::EventBoundary;
pub use law::check_any_cut;
pub use raw_event::{EventContent, MESSAGE, RawEvent, Unwritable};
pub use reader::{SseReader, StreamPiece};
pub use writer::{is_accepted, message, untyped};

/// The content type of a stream (§9.2.5).
pub const EVENT_STREAM: &str = "text/event-stream";

/// Returns whether a `Content-Type` is that of a stream, ignoring parameters.
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
