//! Where events end: a stream cut into pieces as it comes.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

/// A byte order mark, which may stand at the beginning of a stream (§9.2.5).
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A piece of a stream. What has been read of it so far is all of its pieces, one behind the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
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
pub struct Reader {
    /// What has come and belongs to no piece yet.
    held: BytesMut,
    /// Where the current line begins.
    line: usize,
    /// Up to where the current line was searched for its end.
    searched: usize,
    /// The most bytes of one event.
    limit: usize,
    start: Start,
    event: Event,
    before: Before,
}

/// Whether a mark may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Yes,
    No,
}

/// Whether what is held has lines of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    None,
    Begun,
    /// Too large: its lines are thrown away.
    Lost(Lost),
    /// No event: a comment that is too large to be held.
    Comment,
}

/// Where in a lost event the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    AtStart,
    Within,
    BehindReturn,
}

/// What was handed out last, as far as the next byte depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Any,
    /// An event whose blank line is a carriage return, so that a line feed may belong to it.
    Return,
    /// Something between events that ended so.
    ReturnBetween,
}

impl Reader {
    /// Nothing has come yet; an event may have so many bytes without its blank line.
    #[must_use]
    pub fn new(limit: usize) -> Reader {
        Reader {
            held: BytesMut::new(),
            line: 0,
            searched: 0,
            limit,
            start: Start::Yes,
            event: Event::None,
            before: Before::Any,
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
    pub fn next(&mut self) -> Option<Piece> {
        if let Some(piece) = self.beginning() {
            return piece;
        }
        loop {
            match self.event {
                Event::Lost(at) => return self.lose(at),
                Event::Comment => return self.comment(),
                Event::None | Event::Begun => match self.line() {
                    Step::Piece(piece) => return Some(piece),
                    Step::Again => {}
                    Step::More => return None,
                },
            }
        }
    }

    /// The stream has ended: what is left of it.
    pub fn finish(&mut self) -> Option<Piece> {
        let rest = self.held.split().freeze();
        (self.line, self.searched) = (0, 0);
        match self.event {
            Event::Lost(_) => None,
            Event::None | Event::Begun | Event::Comment => {
                (!rest.is_empty()).then_some(Piece::Unfinished(rest))
            }
        }
    }

    /// Whether what comes belongs to an event that is larger than the limit.
    #[must_use]
    pub fn is_losing(&self) -> bool {
        matches!(self.event, Event::Lost(_))
    }

    /// How many bytes are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The mark, or the line feed that belongs to what came before; `Some(None)` where more must come first.
    fn beginning(&mut self) -> Option<Option<Piece>> {
        if self.start == Start::Yes {
            if self.held.len() < MARK.len() && MARK.starts_with(&self.held) {
                return Some(None);
            }
            self.start = Start::No;
            if self.held.starts_with(MARK) {
                return Some(Some(Piece::Between(self.cut(MARK.len()))));
            }
        }
        let before = self.before;
        if before == Before::Any || self.held.is_empty() {
            return None;
        }
        self.before = Before::Any;
        if self.held.first() != Some(&b'\n') {
            return None;
        }
        let feed = self.cut(1);
        Some(Some(if before == Before::Return {
            Piece::Feed(feed)
        } else {
            Piece::Between(feed)
        }))
    }

    /// Looks at the current line.
    fn line(&mut self) -> Step {
        let Some(at) = memchr2(b'\r', b'\n', &self.held[self.searched..]) else {
            self.searched = self.held.len();
            return self.unended();
        };
        let end = self.searched + at;
        self.searched = end;
        let is_blank = end == self.line;
        let is_between = self.event == Event::None && (is_blank || self.held[self.line] == b':');
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
                self.before = Before::ReturnBetween;
            }
            return Step::Piece(Piece::Between(self.cut(behind)));
        }
        if !is_blank {
            self.event = Event::Begun;
            (self.line, self.searched) = (behind, behind);
            return if self.line > self.limit {
                self.unended()
            } else {
                Step::Again
            };
        }
        if undecided {
            self.before = Before::Return;
        }
        self.event = Event::None;
        Step::Piece(Piece::Event(self.cut(behind)))
    }

    /// What is held has no end yet: it must not grow beyond the limit.
    fn unended(&mut self) -> Step {
        if self.held.len() <= self.limit && self.line <= self.limit {
            return Step::More;
        }
        if self.event == Event::None && self.held.first() == Some(&b':') {
            self.event = Event::Comment;
            return Step::Again;
        }
        let at = if self.searched == self.line {
            Lost::AtStart
        } else {
            Lost::Within
        };
        self.held.advance(self.searched);
        (self.line, self.searched) = (0, 0);
        self.event = Event::Lost(at);
        Step::Again
    }

    /// Throws away what belongs to a lost event.
    fn lose(&mut self, mut at: Lost) -> Option<Piece> {
        while let Some(byte) = self.held.first().copied() {
            at = match (at, byte) {
                (Lost::BehindReturn, b'\n') => {
                    self.held.advance(1);
                    Lost::AtStart
                }
                (Lost::BehindReturn, _) => Lost::AtStart,
                (Lost::AtStart, b'\r' | b'\n') => {
                    self.held.advance(1);
                    self.event = Event::None;
                    if byte == b'\r' {
                        self.before = Before::Return;
                    }
                    return Some(Piece::Oversize);
                }
                (Lost::AtStart | Lost::Within, _) => match memchr2(b'\r', b'\n', &self.held) {
                    None => {
                        self.held.clear();
                        Lost::Within
                    }
                    Some(end) => {
                        let returned = self.held[end] == b'\r';
                        self.held.advance(end + 1);
                        if returned {
                            Lost::BehindReturn
                        } else {
                            Lost::AtStart
                        }
                    }
                },
            };
        }
        self.event = Event::Lost(at);
        None
    }

    /// Hands out what has come of a comment that is too large to be held.
    fn comment(&mut self) -> Option<Piece> {
        if self.held.is_empty() {
            return None;
        }
        let Some(end) = memchr2(b'\r', b'\n', &self.held) else {
            let all = self.held.len();
            return Some(Piece::Between(self.cut(all)));
        };
        self.event = Event::None;
        if self.held[end] == b'\r' {
            self.before = Before::ReturnBetween;
        }
        Some(Piece::Between(self.cut(end + 1)))
    }

    /// Takes the first bytes; a new line begins behind them.
    fn cut(&mut self, length: usize) -> Bytes {
        (self.line, self.searched) = (0, 0);
        self.held.split_to(length).freeze()
    }
}

/// What looking at a line has led to.
enum Step {
    Piece(Piece),
    Again,
    More,
}
