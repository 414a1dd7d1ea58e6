//! The state machine that is fed with a connection's bytes.

use super::body::{BodyFollower, BodyProgress};
use super::class::{self, TOKEN};
use super::field::Field;
use super::head::{HeadParser, MessageFraming, TargetForm, Te, UpgradeHeader};
use super::header_case::{HeadRead, HeaderCase, HeaderCaseReader};
use super::line::{LineFinder, LineLimit};
use super::violation::Violation;

/// How large a request head may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of a whole head, with all line ends.
    pub head: usize,
    /// Bytes of a request target.
    pub target: usize,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits {
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
pub enum MessagePosition {
    /// Nothing, but for empty lines: the request line itself is refused.
    BeforeMessage,
    /// Complete lines of the head, but not its end.
    InHead,
    /// The whole head, and perhaps some of the body.
    InBody,
}

/// Why [`RequestInspector::feed`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
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
    /// The last message is over and asked for an upgrade: until [`RequestInspector::resume`], what follows may
    /// be of another protocol, and is not read.
    Upgrade,
    /// The connection is of no more use.
    Refused {
        /// How much of its message was passed on.
        place: MessagePosition,
        /// What is wrong.
        violation: Violation,
    },
}

/// The answer to one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InspectorStep {
    /// How many bytes of the input may be passed on.
    pub passed: usize,
    /// Why no more of them.
    pub found: Finding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InspectorState {
    RequestLine,
    Fields,
    /// The head's empty line is there and valid.
    HeadEnd,
    Body(BodyFollower),
    Upgrade,
    Refused(MessagePosition, Violation),
}

/// Follows the requests of one connection, pipelined or not.
///
/// ```
/// use dualgauge::domain::wire::{Finding, HeadLimits, InspectorStep, RequestInspector, Te};
///
/// let mut inspector = RequestInspector::new(HeadLimits::default());
/// let request = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
/// let step = inspector.feed(request);
/// let te = Te::Absent;
/// assert_eq!(step, InspectorStep { passed: 33, found: Finding::HeadEnd { te } });
/// assert_eq!(inspector.feed(&request[33..]), InspectorStep { passed: 2, found: Finding::More });
/// ```
#[derive(Debug)]
pub struct RequestInspector {
    limits: HeadLimits,
    state: InspectorState,
    head: HeadParser,
    names: HeaderCaseReader,
    lines: LineFinder,
    /// Bytes of this head that were passed on.
    size: usize,
    /// Empty lines before this request line.
    empty_lines: u8,
    message: u64,
}

impl RequestInspector {
    /// A follower at the start of a connection.
    #[must_use]
    pub fn new(limits: HeadLimits) -> Self {
        RequestInspector {
            limits,
            state: InspectorState::RequestLine,
            head: HeadParser::default(),
            names: HeaderCaseReader::default(),
            lines: LineFinder::default(),
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
            InspectorState::Body(_) => self.message,
            InspectorState::RequestLine
            | InspectorState::Fields
            | InspectorState::HeadEnd
            | InspectorState::Upgrade
            | InspectorState::Refused(..) => 0,
        }
    }

    /// How long the body is that begins behind the head that has just ended, where that was said.
    #[must_use]
    pub fn announces(&self) -> Option<u64> {
        match (self.state, self.head.framing) {
            (InspectorState::HeadEnd, MessageFraming::Sized(length)) => Some(length),
            _ => None,
        }
    }

    /// Whether a head is awaited that has begun, or that is the first of its connection. `held` bytes came and were not
    /// passed.
    #[must_use]
    pub fn awaits_head(&self, held: usize) -> bool {
        match self.state {
            InspectorState::RequestLine => held > 0 || self.empty_lines > 0 || self.message == 0,
            InspectorState::Fields | InspectorState::HeadEnd => true,
            InspectorState::Body(_) | InspectorState::Upgrade | InspectorState::Refused(..) => {
                false
            }
        }
    }

    /// Whether a head has begun and not ended. `held` bytes came and were not passed.
    #[must_use]
    pub fn is_within_head(&self, held: usize) -> bool {
        match self.state {
            InspectorState::RequestLine => held > 0 || self.empty_lines > 0,
            InspectorState::Fields | InspectorState::HeadEnd => true,
            InspectorState::Body(_) | InspectorState::Upgrade | InspectorState::Refused(..) => {
                false
            }
        }
    }

    /// Whether the last message has come whole, and nothing of a further one.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(
            self.state,
            InspectorState::RequestLine | InspectorState::Upgrade
        ) && self.empty_lines == 0
    }

    /// Whether the last message has come whole and asked for an upgrade, and [`RequestInspector::resume`] was not called since.
    #[must_use]
    pub fn is_at_upgrade(&self) -> bool {
        self.state == InspectorState::Upgrade
    }

    /// How the names of the last head were written, unless in lower case.
    #[must_use]
    pub fn spelling(&self) -> Option<HeaderCase> {
        self.names.spelling()
    }

    /// The request for an upgrade was declined: what follows is HTTP.
    pub fn resume(&mut self) {
        if self.state == InspectorState::Upgrade {
            self.state = InspectorState::RequestLine;
        }
    }

    /// Reads what came in. Each input must begin with what the feed before did not pass.
    pub fn feed(&mut self, input: &[u8]) -> InspectorStep {
        let mut passed = 0;
        let mut found = Finding::More;
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
            Finding::HeadEnd { .. } => HeadRead::Whole,
            Finding::More
            | Finding::RawTarget { .. }
            | Finding::Upgrade
            | Finding::Refused { .. } => HeadRead::Part,
        };
        self.names.store(&input[..passed], read);
        InspectorStep { passed, found }
    }

    /// One unit at the start of an input that is not empty: its length, or why it cannot be passed.
    fn advance(&mut self, input: &[u8]) -> Result<usize, Finding> {
        match self.state {
            InspectorState::RequestLine => self.request_line(input),
            InspectorState::Fields => self.field(input),
            InspectorState::HeadEnd => Ok(self.end_head()),
            InspectorState::Body(body) => self.body(body, input),
            InspectorState::Upgrade => Err(Finding::Upgrade),
            InspectorState::Refused(place, violation) => Err(Finding::Refused { place, violation }),
        }
    }

    fn request_line(&mut self, input: &[u8]) -> Result<usize, Finding> {
        // At once, so that a TLS handshake gets an answer instead of a timeout.
        if !class::is(input[0], TOKEN) && !matches!(input[0], b'\r' | b'\n') {
            return Err(self.refuse(MessagePosition::BeforeMessage, Violation::Method));
        }
        let line = self.line(
            input,
            self.longest_request_line(),
            MessagePosition::BeforeMessage,
        )?;
        let length = line.len() + 2;
        if line.is_empty() {
            self.empty_lines += 1;
            if self.empty_lines > MAX_EMPTY_LINES {
                return Err(self.refuse(MessagePosition::BeforeMessage, Violation::EmptyLines));
            }
            return Ok(length);
        }
        self.head = HeadParser::default();
        self.names.begin();
        let written = self
            .head
            .request_line(line, self.limits.target)
            .map_err(|violation| self.refuse(MessagePosition::BeforeMessage, violation))?;
        self.message += 1;
        self.size = length;
        self.empty_lines = 0;
        self.state = InspectorState::Fields;
        match written {
            TargetForm::Usual => Ok(length),
            TargetForm::Raw => Err(Finding::RawTarget { line: length }),
        }
    }

    /// The smaller limit speaks first, or the verdict would depend on how the line arrives.
    fn longest_request_line(&self) -> LineLimit {
        let with_target = self.limits.target.saturating_add(AROUND_TARGET);
        if with_target < self.limits.head {
            LineLimit {
                bytes: with_target,
                otherwise: Violation::TargetTooLong,
            }
        } else {
            LineLimit {
                bytes: self.limits.head.saturating_sub(1),
                otherwise: Violation::HeadTooLarge,
            }
        }
    }

    fn field(&mut self, input: &[u8]) -> Result<usize, Finding> {
        let longest = LineLimit {
            bytes: self.limits.head.saturating_sub(self.size + 1),
            otherwise: Violation::HeadTooLarge,
        };
        if self.lines.is_at_start()
            && let Some(field) = Field::at_once(input)
            && field.size <= longest.bytes
        {
            return self.field_at_once(input, field);
        }
        let line = self.line(input, longest, MessagePosition::InHead)?;
        if line.is_empty() {
            self.head
                .end()
                .map_err(|violation| self.refuse(MessagePosition::InHead, violation))?;
            self.state = InspectorState::HeadEnd;
            return Err(Finding::HeadEnd { te: self.head.te });
        }
        let name = self
            .head
            .field_line(line)
            .map_err(|violation| self.refuse(MessagePosition::InHead, violation))?;
        let size = line.len() + 2;
        self.names.read(input, name, size);
        self.size += size;
        Ok(size)
    }

    fn field_at_once(&mut self, input: &[u8], field: Field) -> Result<usize, Finding> {
        let Field {
            name,
            size,
            letters,
        } = field;
        self.head
            .field(&input[..name], &input[name + 1..size - 2])
            .map_err(|violation| self.refuse(MessagePosition::InHead, violation))?;
        self.names.read_at(letters, name, size);
        self.size += size;
        Ok(size)
    }

    /// Passes the empty line, which was checked when it was found.
    fn end_head(&mut self) -> usize {
        match BodyFollower::new(self.head.framing) {
            Some(body) => self.state = InspectorState::Body(body),
            None => self.end_message(),
        }
        2
    }

    fn body(&mut self, mut body: BodyFollower, input: &[u8]) -> Result<usize, Finding> {
        let progress = body
            .advance(&mut self.lines, input)
            .map_err(|violation| self.refuse(MessagePosition::InBody, violation))?;
        match progress {
            BodyProgress::Incomplete => Err(Finding::More),
            BodyProgress::Passed(count) => {
                self.state = InspectorState::Body(body);
                Ok(count)
            }
            BodyProgress::Ended(count) => {
                self.end_message();
                Ok(count)
            }
        }
    }

    fn end_message(&mut self) {
        self.state = match self.head.upgrade {
            UpgradeHeader::Asked => InspectorState::Upgrade,
            UpgradeHeader::No => InspectorState::RequestLine,
        };
    }

    /// The next line of a head.
    fn line<'a>(
        &mut self,
        input: &'a [u8],
        longest: LineLimit,
        place: MessagePosition,
    ) -> Result<&'a [u8], Finding> {
        match self.lines.next(input, longest) {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(Finding::More),
            Err(violation) => Err(self.refuse(place, violation)),
        }
    }

    /// Refuses a head that has begun and will not end, if there is one: tells how much of it was passed. `held` bytes came and
    /// were not passed.
    pub fn give_up(&mut self, held: usize, violation: Violation) -> Option<MessagePosition> {
        let place = match self.state {
            InspectorState::RequestLine if held > 0 => MessagePosition::BeforeMessage,
            InspectorState::Fields | InspectorState::HeadEnd => MessagePosition::InHead,
            InspectorState::RequestLine
            | InspectorState::Body(_)
            | InspectorState::Upgrade
            | InspectorState::Refused(..) => {
                return None;
            }
        };
        self.refuse(place, violation);
        Some(place)
    }

    #[cold]
    fn refuse(&mut self, place: MessagePosition, violation: Violation) -> Finding {
        if place == MessagePosition::BeforeMessage {
            self.message += 1;
        }
        self.state = InspectorState::Refused(place, violation);
        Finding::Refused { place, violation }
    }
}
