//! Where events end: a stream cut into pieces as it comes.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

/// A byte order mark, which may stand at the beginning of a stream (§9.2.5).
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A piece of a stream. What has been read of it so far is all of its pieces, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamPiece {
    /// What belongs to no event: comments between events, blank lines, the mark at the beginning.
    Between(Bytes),
    /// The lines of an event, with the blank line that ends it.
    Event(Bytes),
    /// The line feed of the carriage return that ended the event before. That was handed out when the return came,
    /// for nobody knew whether a line feed would follow.
    Feed(Bytes),
    /// An event was larger than the limit, and is gone.
    Oversize,
    /// What is left where the stream has ended within an event.
    Unfinished(Bytes),
}

/// Cuts a stream.
#[derive(Debug)]
pub struct SseReader {
    /// What has come and belongs to no piece yet.
    held: BytesMut,
    /// Where the current line begins.
    line: usize,
    /// Up to where the current line was searched for its end.
    searched: usize,
    /// The most bytes of one event.
    limit: usize,
    start: MarkPosition,
    event: HeldEvent,
    before: LastPiece,
}

/// Whether a mark may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkPosition {
    Yes,
    No,
}

/// Whether what is held has lines of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldEvent {
    None,
    Begun,
    /// Too large: its lines are thrown away.
    Lost(LostEvent),
    /// No event: a comment that is too large to be held.
    Comment,
}

/// Where in a lost event the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostEvent {
    AtStart,
    Within,
    BehindReturn,
}

/// What was handed out last, as far as the next byte depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastPiece {
    Any,
    /// An event whose blank line is a carriage return, so that a line feed may belong to it.
    Return,
    /// Something between events that ended so.
    ReturnBetween,
}

impl SseReader {
    /// Nothing has come yet; an event may have so many bytes without its blank line.
    #[must_use]
    pub fn new(limit: usize) -> SseReader {
        SseReader {
            held: BytesMut::new(),
            line: 0,
            searched: 0,
            limit,
            start: MarkPosition::Yes,
            event: HeldEvent::None,
            before: LastPiece::Any,
        }
    }

    /// More has come. What was there before must have been read.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.held.extend_from_slice(chunk);
    }

    /// The next piece, if there is one yet.
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

    /// The stream has ended: what is left of it.
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

    /// Whether what comes belongs to an event that is larger than the limit.
    #[must_use]
    pub fn is_losing(&self) -> bool {
        matches!(self.event, HeldEvent::Lost(_))
    }

    /// How many bytes are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The mark, or the line feed that belongs to what came before; `Some(None)` where more must come first.
    fn beginning(&mut self) -> Option<Option<StreamPiece>> {
        if self.start == MarkPosition::Yes {
            if self.held.len() < MARK.len() && MARK.starts_with(&self.held) {
                return Some(None);
            }
            self.start = MarkPosition::No;
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

    /// Looks at the current line.
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
        let behind = match self.held.get(end + 1) {
            Some(b'\n') if returned => end + 2,
            // The lines of an event wait for its end anyhow.
            None if returned && !is_blank && !is_between => return self.unended(),
            Some(_) | None => end + 1,
        };
        let undecided = returned && behind == self.held.len() && behind == end + 1;
        if is_between {
            if undecided {
                self.before = LastPiece::ReturnBetween;
            }
            return ReadStep::Piece(StreamPiece::Between(self.cut(behind)));
        }
        if !is_blank {
            self.event = HeldEvent::Begun;
            (self.line, self.searched) = (behind, behind);
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
        ReadStep::Piece(StreamPiece::Event(self.cut(behind)))
    }

    /// What is held has no end yet: it must not grow beyond the limit.
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

    /// Throws away what belongs to a lost event.
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

    /// Hands out what has come of a comment that is too large to be held.
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

    /// Takes the first bytes; a new line begins behind them.
    fn cut(&mut self, length: usize) -> Bytes {
        (self.line, self.searched) = (0, 0);
        self.held.split_to(length).freeze()
    }
}

/// What looking at a line has led to.
enum ReadStep {
    Piece(StreamPiece),
    Again,
    More,
}
