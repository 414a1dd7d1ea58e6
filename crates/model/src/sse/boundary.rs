//! Detection of places where a stream may end without an incomplete event, which its reader would discard (WHATWG HTML
//! Living Standard §9.2.6).
//!
//! Used by `gateway::stream_end`.

/// The state of the sent part of a stream, as far as its end depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventBoundary {
    line: LinePosition,
    /// True if lines of an event were sent without their blank line.
    is_in_event: bool,
}

/// The position of the next byte in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePosition {
    Start,
    /// After a carriage return: a line feed still belongs to the line before.
    BehindReturn,
    /// Within a comment, which is no part of an event.
    Comment,
    Field,
}

impl Default for EventBoundary {
    fn default() -> Self {
        EventBoundary {
            line: LinePosition::Start,
            is_in_event: false,
        }
    }
}

impl EventBoundary {
    /// Returns whether the stream may end here.
    #[must_use]
    pub fn is_here(self) -> bool {
        !self.is_in_event && matches!(self.line, LinePosition::Start | LinePosition::BehindReturn)
    }

    /// Follows the next chunk of the stream. Returns the number of bytes up to the last place where the stream may end,
    /// if the chunk has one.
    pub fn pass(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut last = None;
        for (at, byte) in bytes.iter().enumerate() {
            self.step(*byte);
            if self.is_here() {
                last = Some(at + 1);
            }
        }
        last
    }

    fn step(&mut self, byte: u8) {
        let is_end = matches!(byte, b'\r' | b'\n');
        let next = if byte == b'\r' {
            LinePosition::BehindReturn
        } else {
            LinePosition::Start
        };
        self.line = match self.line {
            LinePosition::BehindReturn if byte == b'\n' => next,
            LinePosition::Start | LinePosition::BehindReturn if is_end => {
                // A blank line.
                self.is_in_event = false;
                next
            }
            LinePosition::Start | LinePosition::BehindReturn if byte == b':' => {
                LinePosition::Comment
            }
            LinePosition::Start | LinePosition::BehindReturn => {
                self.is_in_event = true;
                LinePosition::Field
            }
            LinePosition::Comment | LinePosition::Field if is_end => next,
            line @ (LinePosition::Comment | LinePosition::Field) => line,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sse::{SseReader, StreamPiece};

    fn borders(stream: &str) -> Vec<usize> {
        let mut border = EventBoundary::default();
        let bytes = stream.bytes().enumerate();
        let here = bytes.filter_map(|(at, byte)| border.pass(&[byte]).map(|_| at + 1));
        here.collect()
    }

    #[test]
    fn a_stream_may_end_after_blank_lines_and_comments_between_events() {
        assert!(EventBoundary::default().is_here());
        assert_eq!(borders("data: x\n\n"), [9]);
        assert_eq!(borders("data: x\r\n\r\n"), [10, 11]);
        assert_eq!(borders("a\r\rb\r"), [3]);
        assert_eq!(borders(": ping\ndata: x\n: ping\n\n"), [7, 23]);
        let mut border = EventBoundary::default();
        assert_eq!(border.pass(b"data: x\n\ndata: y\n\ndata"), Some(18));
        assert!(!border.is_here());
        assert_eq!(border.pass(b": z\n"), None);
        assert_eq!(border.pass(b"\n"), Some(1));
    }

    proptest! {
        /// The text before a boundary consists of complete events and of text between events.
        #[test]
        fn the_text_before_a_boundary_is_complete(
            parts in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n", ":", "data: x", "id"]), 0..30),
        ) {
            let stream = parts.concat();
            for at in borders(&stream) {
                let mut reader = SseReader::new(1 << 16);
                reader.feed(&stream.as_bytes()[..at]);
                while reader.next().is_some() {}
                let left = reader.finish();
                prop_assert!(!matches!(left, Some(StreamPiece::Unfinished(_))), "{at} of {stream:?}: {left:?}");
            }
        }
    }
}
