//! The state machine that is fed with a connection's bytes.

use super::body::{Body, Progress};
use super::class::{self, TOKEN};
use super::field::Field;
use super::head::{Framing, Head, Te, Upgrade, Written};
use super::line::{Lines, Longest};
use super::spelling::{Noted, Read, Spelling};
use super::violation::Violation;

/// How large a request head may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole head, with all line ends.
    pub head: usize,
    /// Bytes of a request target.
    pub target: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head: 64 * 1024,
            target: 8 * 1024,
        }
    }
}

/// What a request line may have beyond its target.
const AROUND_TARGET: usize = 32;
/// Empty lines before a request line.
const MAX_EMPTY_LINES: u8 = 2;

/// How much of its message was passed on before a violation was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing, but for empty lines: the request line itself is refused.
    BeforeMessage,
    /// Complete lines of the head, but not its end.
    InHead,
    /// The whole head, and perhaps some of the body.
    InBody,
}

/// Why [`Follower::feed`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No more can be said: what was not passed is an incomplete line, to be fed again with what follows.
    More,
    /// A request line is complete and valid, was not passed, and has characters that an HTTP library refuses: another line
    /// goes on in its place ([`RawTarget`](super::RawTarget)), and the next feed begins behind it.
    RawTarget {
        /// How long the line is, with its end.
        line: usize,
    },
    /// The head is complete and valid; only its empty line was not passed yet, and begins the next feed.
    HeadEnd {
        /// Whether the client sent a `TE` field.
        te: Te,
    },
    /// The last message is over and asked for an upgrade: until [`Follower::resume`], what follows may
    /// be of another protocol, and is not read.
    Upgrade,
    /// The connection is of no more use.
    Refused {
        /// How much of its message was passed on.
        place: Place,
        /// What is wrong.
        violation: Violation,
    },
}

/// The answer to one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How many bytes of the input may be passed on.
    pub passed: usize,
    /// Why no more of them.
    pub found: Found,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    RequestLine,
    Fields,
    /// The head's empty line is there and valid.
    HeadEnd,
    Body(Body),
    Upgrade,
    Refused(Place, Violation),
}

/// Follows the requests of one connection, pipelined or not.
///
/// ```
/// use dualgauge::domain::wire::{Follower, Found, Limits, Step, Te};
///
/// let mut follower = Follower::new(Limits::default());
/// let request = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
/// let step = follower.feed(request);
/// let te = Te::Absent;
/// assert_eq!(step, Step { passed: 33, found: Found::HeadEnd { te } });
/// assert_eq!(follower.feed(&request[33..]), Step { passed: 2, found: Found::More });
/// ```
#[derive(Debug)]
pub struct Follower {
    limits: Limits,
    state: State,
    head: Head,
    names: Noted,
    lines: Lines,
    /// Bytes of this head that were passed on.
    size: usize,
    /// Empty lines before this request line.
    empty_lines: u8,
    message: u64,
}

impl Follower {
    /// A follower at the start of a connection.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Follower {
            limits,
            state: State::RequestLine,
            head: Head::default(),
            names: Noted::default(),
            lines: Lines::default(),
            size: 0,
            empty_lines: 0,
            message: 0,
        }
    }

    /// The number of the message that was begun or refused last; the first has number 1.
    #[must_use]
    pub fn message(&self) -> u64 {
        self.message
    }

    /// The number of the message of whose body some has yet to come; 0 if there is none.
    #[must_use]
    pub fn owes(&self) -> u64 {
        match self.state {
            State::Body(_) => self.message,
            State::RequestLine
            | State::Fields
            | State::HeadEnd
            | State::Upgrade
            | State::Refused(..) => 0,
        }
    }

    /// How long the body is that begins behind the head that has just ended, where that was said.
    #[must_use]
    pub fn announces(&self) -> Option<u64> {
        match (self.state, self.head.framing) {
            (State::HeadEnd, Framing::Sized(length)) => Some(length),
            _ => None,
        }
    }

    /// Whether a head is awaited that has begun, or that is the first of its connection. `held` bytes came and were not
    /// passed.
    #[must_use]
    pub fn awaits_head(&self, held: usize) -> bool {
        match self.state {
            State::RequestLine => held > 0 || self.empty_lines > 0 || self.message == 0,
            State::Fields | State::HeadEnd => true,
            State::Body(_) | State::Upgrade | State::Refused(..) => false,
        }
    }

    /// Whether a head has begun and not ended. `held` bytes came and were not passed.
    #[must_use]
    pub fn is_within_head(&self, held: usize) -> bool {
        match self.state {
            State::RequestLine => held > 0 || self.empty_lines > 0,
            State::Fields | State::HeadEnd => true,
            State::Body(_) | State::Upgrade | State::Refused(..) => false,
        }
    }

    /// Whether the last message has come whole, and nothing of a further one.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::RequestLine | State::Upgrade) && self.empty_lines == 0
    }

    /// Whether the last message has come whole and asked for an upgrade, and [`Follower::resume`] was not called since.
    #[must_use]
    pub fn is_at_upgrade(&self) -> bool {
        self.state == State::Upgrade
    }

    /// How the names of the last head were written, unless in lower case.
    #[must_use]
    pub fn spelling(&self) -> Option<Spelling> {
        self.names.spelling()
    }

    /// The request for an upgrade was declined: what follows is HTTP.
    pub fn resume(&mut self) {
        if self.state == State::Upgrade {
            self.state = State::RequestLine;
        }
    }

    /// Reads what came in. Each input must begin with what the feed before did not pass.
    pub fn feed(&mut self, input: &[u8]) -> Step {
        let mut passed = 0;
        let mut found = Found::More;
        while passed < input.len() {
            match self.advance(&input[passed..]) {
                Ok(count) => passed += count,
                Err(other) => {
                    found = other;
                    break;
                }
            }
        }
        let read = match found {
            Found::HeadEnd { .. } => Read::Whole,
            Found::More | Found::RawTarget { .. } | Found::Upgrade | Found::Refused { .. } => {
                Read::Part
            }
        };
        self.names.keep(&input[..passed], read);
        Step { passed, found }
    }

    /// One unit at the start of an input that is not empty: its length, or why it cannot be passed.
    fn advance(&mut self, input: &[u8]) -> Result<usize, Found> {
        match self.state {
            State::RequestLine => self.request_line(input),
            State::Fields => self.field(input),
            State::HeadEnd => Ok(self.end_head()),
            State::Body(body) => self.body(body, input),
            State::Upgrade => Err(Found::Upgrade),
            State::Refused(place, violation) => Err(Found::Refused { place, violation }),
        }
    }

    fn request_line(&mut self, input: &[u8]) -> Result<usize, Found> {
        // At once, so that a TLS handshake gets an answer instead of a timeout.
        if !class::is(input[0], TOKEN) && !matches!(input[0], b'\r' | b'\n') {
            return Err(self.refuse(Place::BeforeMessage, Violation::Method));
        }
        let line = self.line(input, self.longest_request_line(), Place::BeforeMessage)?;
        let length = line.len() + 2;
        if line.is_empty() {
            self.empty_lines += 1;
            if self.empty_lines > MAX_EMPTY_LINES {
                return Err(self.refuse(Place::BeforeMessage, Violation::EmptyLines));
            }
            return Ok(length);
        }
        self.head = Head::default();
        self.names.begin();
        let written = self
            .head
            .request_line(line, self.limits.target)
            .map_err(|violation| self.refuse(Place::BeforeMessage, violation))?;
        self.message += 1;
        self.size = length;
        self.empty_lines = 0;
        self.state = State::Fields;
        match written {
            Written::Usual => Ok(length),
            Written::Raw => Err(Found::RawTarget { line: length }),
        }
    }

    /// The smaller limit speaks first, or the verdict would depend on how the line arrives.
    fn longest_request_line(&self) -> Longest {
        let with_target = self.limits.target.saturating_add(AROUND_TARGET);
        if with_target < self.limits.head {
            Longest {
                bytes: with_target,
                otherwise: Violation::TargetTooLong,
            }
        } else {
            Longest {
                bytes: self.limits.head.saturating_sub(1),
                otherwise: Violation::HeadTooLarge,
            }
        }
    }

    fn field(&mut self, input: &[u8]) -> Result<usize, Found> {
        let longest = Longest {
            bytes: self.limits.head.saturating_sub(self.size + 1),
            otherwise: Violation::HeadTooLarge,
        };
        if self.lines.is_at_start()
            && let Some(field) = Field::at_once(input)
            && field.size <= longest.bytes
        {
            return self.field_at_once(input, field);
        }
        let line = self.line(input, longest, Place::InHead)?;
        if line.is_empty() {
            self.head
                .end()
                .map_err(|violation| self.refuse(Place::InHead, violation))?;
            self.state = State::HeadEnd;
            return Err(Found::HeadEnd { te: self.head.te });
        }
        let name = self
            .head
            .field_line(line)
            .map_err(|violation| self.refuse(Place::InHead, violation))?;
        let size = line.len() + 2;
        self.names.look(input, name, size);
        self.size += size;
        Ok(size)
    }

    fn field_at_once(&mut self, input: &[u8], field: Field) -> Result<usize, Found> {
        let Field {
            name,
            size,
            letters,
        } = field;
        self.head
            .field(&input[..name], &input[name + 1..size - 2])
            .map_err(|violation| self.refuse(Place::InHead, violation))?;
        self.names.look_at(letters, name, size);
        self.size += size;
        Ok(size)
    }

    /// Passes the empty line, which was checked when it was found.
    fn end_head(&mut self) -> usize {
        match Body::of(self.head.framing) {
            Some(body) => self.state = State::Body(body),
            None => self.end_message(),
        }
        2
    }

    fn body(&mut self, mut body: Body, input: &[u8]) -> Result<usize, Found> {
        let progress = body
            .advance(&mut self.lines, input)
            .map_err(|violation| self.refuse(Place::InBody, violation))?;
        match progress {
            Progress::Incomplete => Err(Found::More),
            Progress::Passed(count) => {
                self.state = State::Body(body);
                Ok(count)
            }
            Progress::Ended(count) => {
                self.end_message();
                Ok(count)
            }
        }
    }

    fn end_message(&mut self) {
        self.state = match self.head.upgrade {
            Upgrade::Asked => State::Upgrade,
            Upgrade::No => State::RequestLine,
        };
    }

    /// The next line of a head.
    fn line<'a>(
        &mut self,
        input: &'a [u8],
        longest: Longest,
        place: Place,
    ) -> Result<&'a [u8], Found> {
        match self.lines.next(input, longest) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(Found::More),
            Err(violation) => Err(self.refuse(place, violation)),
        }
    }

    /// Refuses a head that has begun and will not end, if there is one: tells how much of it was passed. `held` bytes came and
    /// were not passed.
    pub fn give_up(&mut self, held: usize, violation: Violation) -> Option<Place> {
        let place = match self.state {
            State::RequestLine if held > 0 => Place::BeforeMessage,
            State::Fields | State::HeadEnd => Place::InHead,
            State::RequestLine | State::Body(_) | State::Upgrade | State::Refused(..) => {
                return None;
            }
        };
        self.refuse(place, violation);
        Some(place)
    }

    #[cold]
    fn refuse(&mut self, place: Place, violation: Violation) -> Found {
        if place == Place::BeforeMessage {
            self.message += 1;
        }
        self.state = State::Refused(place, violation);
        Found::Refused { place, violation }
    }
}
