//! The state machine that inspects the bytes of a connection.

use super::body::{BodyFollower, BodyProgress};
use super::class::{self, TOKEN};
use super::field::Field;
use super::head::{HeadParser, MessageFraming, TargetForm, Te};
use super::header_case::{HeaderCase, HeaderCaseReader};
use super::line::{LineFinder, LineLimit};
use super::violation::Violation;

/// The size limits of a request head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of a whole head, including line ends.
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

/// Maximum bytes of a request line in addition to its target.
const AROUND_TARGET: usize = 32;
/// Empty lines before a request line.
const MAX_EMPTY_LINES: u8 = 2;

/// The part of a message that passed before a violation was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessagePosition {
    /// Nothing except empty lines: the request line itself is rejected.
    BeforeMessage,
    /// Complete lines of the head, but not its end.
    InHead,
    /// The whole head, and perhaps some of the body.
    InBody,
}

/// The reason why [`RequestInspector::feed`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// More input is needed: the bytes not passed are an incomplete line, and begin the next input.
    More,
    /// A complete and valid request line with characters that the HTTP library rejects. It was not passed: another line
    /// replaces it ([`RawTarget`](super::RawTarget)), and the next input begins after it.
    RawTarget {
        /// The length of the line, with its end.
        line: usize,
    },
    /// The head is complete and valid. Its empty line was not passed yet, and begins the next input.
    HeadEnd {
        /// The presence of a `TE` field from the client.
        te: Te,
    },
    /// The last message is complete and asked for an upgrade. Until [`RequestInspector::resume`], later bytes may
    /// belong to another protocol and are not read.
    Upgrade,
    /// The connection must be closed.
    Refused {
        /// The part of its message that passed.
        place: MessagePosition,
        /// The violation.
        violation: Violation,
    },
}

/// The result of one feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InspectorStep {
    /// The number of input bytes that may pass.
    pub passed: usize,
    /// The reason why no more bytes pass.
    pub found: Finding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InspectorState {
    RequestLine,
    Fields,
    /// The empty line of the head is present and valid.
    HeadEnd,
    Body(BodyFollower),
    Upgrade,
    Refused(MessagePosition, Violation),
}

/// The inspector of the requests of one connection, pipelined or not.
///
/// ```
/// use dualgauge_transport::wire::{Finding, HeadLimits, InspectorStep, RequestInspector, Te};
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
    /// Bytes of this head that passed.
    size: usize,
    /// Empty lines before this request line.
    empty_lines: u8,
    message: u64,
}

impl RequestInspector {
    /// Returns an inspector at the start of a connection.
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

    /// Returns the number of the message that was begun or rejected last, from 1.
    #[must_use]
    pub fn message(&self) -> u64 {
        self.message
    }

    /// Returns the number of the message with an incomplete body; 0 if there is none.
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

    /// Returns the announced length of the body after the current head.
    #[must_use]
    pub fn announces(&self) -> Option<u64> {
        match (self.state, self.head.framing) {
            (InspectorState::HeadEnd, MessageFraming::Sized(length)) => Some(length),
            _ => None,
        }
    }

    /// Returns whether a head is incomplete, or is the first of its connection. `held` bytes arrived and did not pass.
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

    /// Returns whether a head has begun and not ended. `held` bytes arrived and did not pass.
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

    /// Returns whether the last message is complete and no other has begun.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(
            self.state,
            InspectorState::RequestLine | InspectorState::Upgrade
        ) && self.empty_lines == 0
    }

    /// Returns whether the last message is complete and asked for an upgrade, and [`RequestInspector::resume`] was not
    /// called since.
    #[must_use]
    pub fn is_at_upgrade(&self) -> bool {
        self.state == InspectorState::Upgrade
    }

    /// Returns the case of the last head's names; `None` for lower case.
    #[must_use]
    pub fn header_case(&self) -> Option<HeaderCase> {
        self.names.header_case()
    }

    /// Continues with HTTP after a declined upgrade.
    pub fn resume(&mut self) {
        if self.state == InspectorState::Upgrade {
            self.state = InspectorState::RequestLine;
        }
    }

    /// Reads input. Each input must begin with the bytes that did not pass before.
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
        let is_whole = matches!(found, Finding::HeadEnd { .. });
        self.names.store(&input[..passed], is_whole);
        InspectorStep { passed, found }
    }

    /// Reads one unit at the start of a non-empty input: returns its length, or the reason why it cannot pass.
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
        // Immediately, so that a TLS handshake gets a response instead of a timeout.
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

    /// Returns the smaller limit, or else the verdict would depend on how the line arrives.
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
            && let Some(field) = Field::parse_common(input)
            && field.line_len <= longest.bytes
        {
            return self.read_common_field(input, field);
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

    fn read_common_field(&mut self, input: &[u8], field: Field) -> Result<usize, Finding> {
        let Field {
            name_len,
            line_len,
            classes,
        } = field;
        self.head
            .field(&input[..name_len], &input[name_len + 1..line_len - 2])
            .map_err(|violation| self.refuse(MessagePosition::InHead, violation))?;
        self.names.read_at(classes, name_len, line_len);
        self.size += line_len;
        Ok(line_len)
    }

    /// Passes the empty line, which was checked before.
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
        self.state = match self.head.asks_upgrade {
            true => InspectorState::Upgrade,
            false => InspectorState::RequestLine,
        };
    }

    /// Returns the next line of a head.
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

    /// Rejects a head that will not be completed, if one has begun, and returns the part that passed. `held` bytes
    /// arrived and did not pass.
    pub fn give_up(&mut self, held: usize, violation: Violation) -> Option<MessagePosition> {
        let position = match self.state {
            InspectorState::RequestLine if held > 0 => MessagePosition::BeforeMessage,
            InspectorState::Fields | InspectorState::HeadEnd => MessagePosition::InHead,
            InspectorState::RequestLine
            | InspectorState::Body(_)
            | InspectorState::Upgrade
            | InspectorState::Refused(..) => {
                return None;
            }
        };
        self.refuse(position, violation);
        Some(position)
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
