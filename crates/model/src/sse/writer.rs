//! Server-sent events that the proxy writes for JSON-RPC messages (MCP 2025-11-25, "Sending Messages to the Server").

use bytes::Bytes;

use super::EVENT_STREAM;

/// Writes a message as an event. Line ends in JSON are white space, so they become spaces and the event has one data
/// line.
#[must_use]
pub fn message(text: &[u8]) -> Bytes {
    write(b"event: message\ndata: ", text)
}

/// Writes JSON as an event without a type.
#[must_use]
pub fn untyped(text: &[u8]) -> Bytes {
    write(b"data: ", text)
}

fn write(before: &[u8], text: &[u8]) -> Bytes {
    let mut event = Vec::with_capacity(before.len() + text.len() + 2);
    event.extend_from_slice(before);
    event.extend(text.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    }));
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// Returns whether an `Accept` header names event streams; a media range such as `*/*` does not count.
#[must_use]
pub fn is_accepted(accept: &str) -> bool {
    // Fast path: most clients accept JSON only, which is shorter.
    let may_name = accept.len() >= EVENT_STREAM.len();
    may_name
        && accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts.next().unwrap_or_default();
            let refused = |part: &str| {
                let weight = part.strip_prefix("q=").or(part.strip_prefix("Q="));
                weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32))
            };
            named.eq_ignore_ascii_case(EVENT_STREAM) && !parts.any(refused)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::{RawEvent, SseReader, StreamPiece};

    #[test]
    fn a_message_is_one_event() {
        let event = message(b"{\r\n \"a\": \"\\n\"\n}");
        let mut reader = SseReader::new(100);
        reader.feed(&event);
        let Some(StreamPiece::Event(read)) = reader.next() else {
            panic!("no event: {event:?}");
        };
        assert_eq!(read, event);
        let block = RawEvent::read(&read).unwrap();
        assert_eq!(block.data().unwrap(), "{   \"a\": \"\\n\" }");
        assert_eq!(block.event(), "message");
    }

    #[test]
    fn a_client_says_that_it_reads_events() {
        for accept in [
            "application/json, text/event-stream",
            "Text/Event-Stream;q=0.5",
            "text/event-stream",
        ] {
            assert!(is_accepted(accept), "{accept}");
        }
        for accept in [
            "*/*",
            "text/*",
            "",
            "text/event-stream;q=0, application/json",
        ] {
            assert!(!is_accepted(accept), "{accept}");
        }
    }
}
