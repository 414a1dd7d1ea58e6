//! Splits a stream of server-sent events into pieces as it arrives.
//!
//! Used by `stream::rewrite`, `upstream::mcp::get_stream` and `upstream::mcp::post`.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

/// The byte order mark that may begin a stream (§9.2.5).
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A piece of a stream. The pieces, concatenated, are the stream so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamPiece {
    /// Bytes outside of events: comments between events, blank lines, the byte order mark.
    Between(Bytes),
    /// The lines of an event, with the blank line at its end.
    Event(Bytes),
    /// The line feed after the carriage return that ended the previous event. The event was returned at the carriage
    /// return, since a line feed might not follow.
    Feed(Bytes),
    /// An event larger than the limit, which was discarded.
    Oversize,
    /// The rest of a stream that ended within an event.
    Unfinished(Bytes),
}

/// A splitter of one stream.
#[derive(Debug)]
pub struct SseReader {
    /// Bytes that belong to no piece yet.
    held: BytesMut,
    /// The start of the current line.
    line: usize,
    /// The offset up to which the current line was searched for its end.
    searched: usize,
    /// The maximum size of one event, in bytes.
    limit: usize,
    /// True until the stream is known to begin with a byte order mark or without one.
    may_have_mark: bool,
    event: HeldEvent,
    before: LastPiece,
}

/// The presence of event lines in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldEvent {
    None,
    Begun,
    /// Too large: its lines are discarded.
    Lost(LostEvent),
    /// A comment that is too large to buffer, outside of an event.
    Comment,
}

/// The position of the next byte in a discarded event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostEvent {
    AtStart,
    Within,
    BehindReturn,
}

/// The last piece that was returned, as far as the next byte depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastPiece {
    Any,
    /// An event whose blank line ends in a carriage return, which a line feed may follow.
    Return,
    /// Bytes between events that end in a carriage return.
    ReturnBetween,
}

impl SseReader {
    /// Returns a reader at the start of a stream; `limit` is the maximum size of an event without its blank line, in
    /// bytes.
    #[must_use]
    pub fn new(limit: usize) -> SseReader {
        SseReader {
            held: BytesMut::new(),
            line: 0,
            searched: 0,
            limit,
            may_have_mark: true,
            event: HeldEvent::None,
            before: LastPiece::Any,
        }
    }

    /// Adds input. All pieces of the input before must have been read.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.held.extend_from_slice(chunk);
    }

    /// Returns the next piece, if it is complete.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that goes on after its end surprises"
    )]
    pub fn next(&mut self) -> Option<StreamPiece> {
        if let Some(piece) = self.beginning() {
            return piece;
        }
        loop {
            match self.event {
                HeldEvent::Lost(at) => return self.discard_event(at),
                HeldEvent::Comment => return self.comment(),
                HeldEvent::None | HeldEvent::Begun => match self.line() {
                    ReadStep::Piece(piece) => return Some(piece),
                    ReadStep::Again => {}
                    ReadStep::More => return None,
                },
            }
        }
    }

    /// Ends the stream, and returns the rest of it.
    pub fn finish(&mut self) -> Option<StreamPiece> {
        let rest = self.held.split().freeze();
        (self.line, self.searched) = (0, 0);
        match self.event {
            HeldEvent::Lost(_) => None,
            HeldEvent::None | HeldEvent::Begun | HeldEvent::Comment => {
                (!rest.is_empty()).then_some(StreamPiece::Unfinished(rest))
            }
        }
    }

    /// Returns whether the input belongs to an event larger than the limit.
    #[must_use]
    pub fn is_losing(&self) -> bool {
        matches!(self.event, HeldEvent::Lost(_))
    }

    /// Returns the number of buffered bytes.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Reads a byte order mark, or a line feed that belongs to the previous piece; returns `Some(None)` if more input
    /// is needed.
    fn beginning(&mut self) -> Option<Option<StreamPiece>> {
        if self.may_have_mark {
            if self.held.len() < MARK.len() && MARK.starts_with(&self.held) {
                return Some(None);
            }
            self.may_have_mark = false;
            if self.held.starts_with(MARK) {
                return Some(Some(StreamPiece::Between(self.cut(MARK.len()))));
            }
        }
        let before = self.before;
        if before == LastPiece::Any || self.held.is_empty() {
            return None;
        }
        self.before = LastPiece::Any;
        if self.held.first() != Some(&b'\n') {
            return None;
        }
        let feed = self.cut(1);
        Some(Some(if before == LastPiece::Return {
            StreamPiece::Feed(feed)
        } else {
            StreamPiece::Between(feed)
        }))
    }

    /// Processes the current line.
    fn line(&mut self) -> ReadStep {
        let Some(at) = memchr2(b'\r', b'\n', &self.held[self.searched..]) else {
            self.searched = self.held.len();
            return self.unended();
        };
        let end = self.searched + at;
        self.searched = end;
        let is_blank = end == self.line;
        let is_between =
            self.event == HeldEvent::None && (is_blank || self.held[self.line] == b':');
        let returned = self.held[end] == b'\r';
        let next_line = match self.held.get(end + 1) {
            Some(b'\n') if returned => end + 2,
            // The lines of an event wait for its end anyway.
            None if returned && !is_blank && !is_between => return self.unended(),
            Some(_) | None => end + 1,
        };
        let undecided = returned && next_line == self.held.len() && next_line == end + 1;
        if is_between {
            if undecided {
                self.before = LastPiece::ReturnBetween;
            }
            return ReadStep::Piece(StreamPiece::Between(self.cut(next_line)));
        }
        if !is_blank {
            self.event = HeldEvent::Begun;
            (self.line, self.searched) = (next_line, next_line);
            return if self.line > self.limit {
                self.unended()
            } else {
                ReadStep::Again
            };
        }
        if undecided {
            self.before = LastPiece::Return;
        }
        self.event = HeldEvent::None;
        ReadStep::Piece(StreamPiece::Event(self.cut(next_line)))
    }

    /// Checks that the incomplete input in the buffer stays within the limit.
    fn unended(&mut self) -> ReadStep {
        if self.held.len() <= self.limit && self.line <= self.limit {
            return ReadStep::More;
        }
        if self.event == HeldEvent::None && self.held.first() == Some(&b':') {
            self.event = HeldEvent::Comment;
            return ReadStep::Again;
        }
        let at = if self.searched == self.line {
            LostEvent::AtStart
        } else {
            LostEvent::Within
        };
        self.held.advance(self.searched);
        (self.line, self.searched) = (0, 0);
        self.event = HeldEvent::Lost(at);
        ReadStep::Again
    }

    /// Discards the bytes of an event that is too large.
    fn discard_event(&mut self, mut at: LostEvent) -> Option<StreamPiece> {
        while let Some(byte) = self.held.first().copied() {
            at = match (at, byte) {
                (LostEvent::BehindReturn, b'\n') => {
                    self.held.advance(1);
                    LostEvent::AtStart
                }
                (LostEvent::BehindReturn, _) => LostEvent::AtStart,
                (LostEvent::AtStart, b'\r' | b'\n') => {
                    self.held.advance(1);
                    self.event = HeldEvent::None;
                    if byte == b'\r' {
                        self.before = LastPiece::Return;
                    }
                    return Some(StreamPiece::Oversize);
                }
                (LostEvent::AtStart | LostEvent::Within, _) => {
                    match memchr2(b'\r', b'\n', &self.held) {
                        None => {
                            self.held.clear();
                            LostEvent::Within
                        }
                        Some(end) => {
                            let returned = self.held[end] == b'\r';
                            self.held.advance(end + 1);
                            if returned {
                                LostEvent::BehindReturn
                            } else {
                                LostEvent::AtStart
                            }
                        }
                    }
                }
            };
        }
        self.event = HeldEvent::Lost(at);
        None
    }

    /// Returns the available part of a comment that is too large to buffer.
    fn comment(&mut self) -> Option<StreamPiece> {
        if self.held.is_empty() {
            return None;
        }
        let Some(end) = memchr2(b'\r', b'\n', &self.held) else {
            let all = self.held.len();
            return Some(StreamPiece::Between(self.cut(all)));
        };
        self.event = HeldEvent::None;
        if self.held[end] == b'\r' {
            self.before = LastPiece::ReturnBetween;
        }
        Some(StreamPiece::Between(self.cut(end + 1)))
    }

    /// Takes the first bytes; a new line begins after them.
    fn cut(&mut self, length: usize) -> Bytes {
        (self.line, self.searched) = (0, 0);
        self.held.split_to(length).freeze()
    }
}

/// The result of processing a line.
enum ReadStep {
    Piece(StreamPiece),
    Again,
    More,
}
