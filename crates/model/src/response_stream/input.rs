//! The events of an upstream's response, whatever its format.

use bytes::Bytes;

use super::lines::{Line, LineReader};
use crate::sse::{MESSAGE, RawEvent, SseReader, StreamPiece};
use crate::stream_format::StreamFormat;
use dualgauge_patterns::json::Json;

/// A reader of one response.
#[derive(Debug)]
pub(super) enum InputReader {
    Events(SseReader),
    Lines(LineReader),
}

/// A piece of a response, not parsed yet.
#[derive(Debug)]
pub(super) enum RawPiece {
    Sse(StreamPiece),
    Line(Line),
}

/// A piece of a response.
#[derive(Debug)]
pub(super) enum InputPiece {
    /// Bytes outside of events.
    Between(Bytes),
    /// A line feed that belongs to the end of the previous event.
    Feed(Bytes),
    Event(InputEvent),
    /// An event larger than the limit.
    Oversize,
    /// An event that is not UTF-8.
    Unreadable,
    /// The response ended within an event.
    Unfinished,
}

/// One event.
#[derive(Debug)]
pub(super) enum InputEvent {
    Event {
        text: Bytes,
        block: RawEvent,
    },
    /// A line of JSON, checked to be UTF-8.
    Line(Bytes),
}

impl InputReader {
    pub(super) fn new(format: StreamFormat, limit: usize) -> InputReader {
        match format {
            StreamFormat::EventStream => InputReader::Events(SseReader::new(limit)),
            StreamFormat::JsonLines => InputReader::Lines(LineReader::new(limit)),
        }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        match self {
            InputReader::Events(reader) => reader.feed(chunk),
            InputReader::Lines(reader) => reader.feed(chunk),
        }
    }

    pub(super) fn next(&mut self) -> Option<RawPiece> {
        match self {
            InputReader::Events(reader) => reader.next().map(RawPiece::Sse),
            InputReader::Lines(reader) => reader.next().map(RawPiece::Line),
        }
    }

    /// Ends the response, and returns the rest of it.
    pub(super) fn finish(&mut self) -> Option<RawPiece> {
        match self {
            // The end of a stream discards an incomplete event (§9.2.6).
            InputReader::Events(reader) => {
                let rest = reader.finish()?;
                let is_comment =
                    matches!(&rest, StreamPiece::Unfinished(text) if text.starts_with(b":"));
                (!is_comment).then_some(RawPiece::Sse(rest))
            }
            InputReader::Lines(reader) => reader.finish().map(RawPiece::Line),
        }
    }

    /// Drops the buffered bytes.
    pub(super) fn clear(&mut self) {
        *self = match self {
            InputReader::Events(_) => InputReader::Events(SseReader::new(0)),
            InputReader::Lines(_) => InputReader::Lines(LineReader::new(0)),
        };
    }

    /// Returns the number of buffered bytes.
    pub(super) fn held(&self) -> usize {
        match self {
            InputReader::Events(reader) => reader.held(),
            InputReader::Lines(reader) => reader.held(),
        }
    }
}

impl RawPiece {
    /// Returns its length in bytes.
    pub(super) fn len(&self) -> usize {
        match self {
            RawPiece::Sse(
                StreamPiece::Between(bytes)
                | StreamPiece::Event(bytes)
                | StreamPiece::Feed(bytes)
                | StreamPiece::Unfinished(bytes),
            )
            | RawPiece::Line(Line::Whole(bytes) | Line::Unfinished(bytes)) => bytes.len(),
            RawPiece::Sse(StreamPiece::Oversize) | RawPiece::Line(Line::Oversize) => 0,
        }
    }

    /// Parses the piece.
    pub(super) fn read(self) -> InputPiece {
        match self {
            RawPiece::Sse(sse) => piece(sse),
            RawPiece::Line(read) => line(read),
        }
    }
}

fn piece(piece: StreamPiece) -> InputPiece {
    match piece {
        StreamPiece::Between(bytes) => InputPiece::Between(bytes),
        StreamPiece::Feed(bytes) => InputPiece::Feed(bytes),
        StreamPiece::Oversize => InputPiece::Oversize,
        StreamPiece::Unfinished(_) => InputPiece::Unfinished,
        StreamPiece::Event(text) => match RawEvent::read(&text) {
            Some(block) => InputPiece::Event(InputEvent::Event { text, block }),
            None => InputPiece::Unreadable,
        },
    }
}

fn line(line: Line) -> InputPiece {
    match line {
        Line::Oversize => InputPiece::Oversize,
        Line::Unfinished(text) if !ends_itself(&text) => InputPiece::Unfinished,
        Line::Whole(text) | Line::Unfinished(text) => match std::str::from_utf8(&text) {
            Ok(_) => InputPiece::Event(InputEvent::Line(text)),
            Err(_) => InputPiece::Unreadable,
        },
    }
}

/// Returns whether the last line of a body is complete without its line feed, which many servers omit. The beginning of
/// an object, a list or a string is never a complete value; that of a number may be one.
fn ends_itself(text: &Bytes) -> bool {
    matches!(text.first(), Some(b'{' | b'[' | b'"')) && Json::read(text.clone(), u16::MAX).is_ok()
}

impl InputEvent {
    /// Returns the type.
    pub(super) fn event(&self) -> &str {
        match self {
            InputEvent::Event { block, .. } => block.event(),
            InputEvent::Line(_) => MESSAGE,
        }
    }

    /// Returns the id that the event sets.
    pub(super) fn id(&self) -> Option<&str> {
        match self {
            InputEvent::Event { block, .. } => block.id(),
            InputEvent::Line(_) => None,
        }
    }

    /// Returns the data as UTF-8, if there is any.
    pub(super) fn data(&self) -> Option<Bytes> {
        match self {
            InputEvent::Event { block, .. } => block.dispatched_data(),
            InputEvent::Line(text) => Some(text.clone()),
        }
    }

    /// Returns the event as it came, for a client that reads the same format.
    pub(super) fn unchanged(&self, output: StreamFormat) -> Bytes {
        match (self, output) {
            (InputEvent::Event { text, .. }, StreamFormat::EventStream) => text.clone(),
            (InputEvent::Event { .. } | InputEvent::Line(_), _) => Bytes::new(),
        }
    }

    /// Returns the part of a dropped event that must still be sent: its id, retry and comments.
    pub(super) fn emptied(&self, output: StreamFormat) -> Bytes {
        match (self, output) {
            (InputEvent::Event { block, .. }, StreamFormat::EventStream) => block.emptied().into(),
            (InputEvent::Event { .. } | InputEvent::Line(_), _) => Bytes::new(),
        }
    }
}
