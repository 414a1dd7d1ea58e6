//! A validating one-pass scanner: it builds nothing, it checks the grammar and says where things lie.

use std::fmt;
use std::ops::Range;

/// Where a text stops being JSON, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The offset of the offending byte, from 0.
    pub at: usize,
    /// What is wrong there.
    pub kind: FaultKind,
}

/// What is wrong with a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing but white space.
    Empty,
    /// Not UTF-8 (RFC 8259 §8.1).
    NotUtf8,
    /// A byte order mark, which JSON must not begin with (RFC 8259 §8.1).
    ByteOrderMark,
    /// Something else than what the grammar asks for.
    Expected(&'static str),
    /// The text ends inside a value.
    Unfinished,
    /// An unescaped control character in a string.
    ControlCharacter,
    /// An escape that JSON does not have.
    BadEscape,
    /// Something after the value.
    TrailingText,
    /// Arrays and objects nested deeper than the limit.
    TooDeep(u16),
}

impl Fault {
    /// Whether the text was refused for its nesting, not for its grammar.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        matches!(self.kind, FaultKind::TooDeep(_))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FaultKind::Empty => write!(f, "there is no JSON value: the text is empty"),
            FaultKind::NotUtf8 => write!(f, "byte {}: not valid UTF-8", self.at),
            FaultKind::ByteOrderMark => write!(
                f,
                "byte 0: a byte order mark; send the JSON text without it"
            ),
            FaultKind::Expected(what) => write!(f, "byte {}: expected {what}", self.at),
            FaultKind::Unfinished => write!(f, "byte {}: the text ends inside a value", self.at),
            FaultKind::ControlCharacter => {
                write!(
                    f,
                    "byte {}: a control character in a string must be escaped",
                    self.at
                )
            }
            FaultKind::BadEscape => {
                write!(f, "byte {}: an escape that JSON does not have", self.at)
            }
            FaultKind::TrailingText => write!(f, "byte {}: text after the JSON value", self.at),
            FaultKind::TooDeep(limit) => {
                write!(
                    f,
                    "byte {}: arrays and objects are nested deeper than {limit}",
                    self.at
                )
            }
        }
    }
}

impl std::error::Error for Fault {}

/// One member of an object, as places in the scanned text, unopened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The name, without its quotes, escapes untouched.
    pub name: Range<usize>,
    /// The value, without white space around it.
    pub value: Range<usize>,
}

/// Checks one complete JSON text and tells where its value lies.
///
/// # Errors
/// The first [`Fault`].
pub fn scan_value(text: &[u8], depth: u16) -> Result<Range<usize>, Fault> {
    let mut scanner = Scanner::new(text, depth)?;
    let start = scanner.at;
    scanner.value()?;
    scanner.finish(start)
}

/// Checks one complete JSON text that must be an object, and hands over each of its members.
///
/// # Errors
/// The first [`Fault`]; a value that is no object is [`FaultKind::Expected`].
pub fn scan_object(
    text: &[u8],
    depth: u16,
    visit: impl FnMut(Found),
) -> Result<Range<usize>, Fault> {
    let mut scanner = Scanner::new(text, depth)?;
    let start = scanner.at;
    if scanner.peek() != Some(b'{') {
        return Err(scanner.fault(FaultKind::Expected("an object")));
    }
    scanner.object(visit)?;
    scanner.finish(start)
}

/// Checks one complete JSON text that must be an array, and hands over the place of each element.
///
/// # Errors
/// The first [`Fault`]; a value that is no array is [`FaultKind::Expected`].
pub fn scan_array(
    text: &[u8],
    depth: u16,
    visit: impl FnMut(Range<usize>),
) -> Result<Range<usize>, Fault> {
    let mut scanner = Scanner::new(text, depth)?;
    let start = scanner.at;
    if scanner.peek() != Some(b'[') {
        return Err(scanner.fault(FaultKind::Expected("an array")));
    }
    scanner.array(visit)?;
    scanner.finish(start)
}

/// Whether `text` is a JSON number, whole.
#[must_use]
pub fn is_number(text: &[u8]) -> bool {
    let mut scanner = Scanner {
        text,
        at: 0,
        left: 0,
        limit: 0,
    };
    scanner.number().is_ok() && scanner.at == text.len()
}

/// Whether `text` is a JSON number without fraction and exponent, whole.
#[must_use]
pub fn is_integer(text: &[u8]) -> bool {
    is_number(text) && !text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    left: u16,
    limit: u16,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8], depth: u16) -> Result<Self, Fault> {
        if let Err(error) = std::str::from_utf8(text) {
            return Err(Fault {
                at: error.valid_up_to(),
                kind: FaultKind::NotUtf8,
            });
        }
        if text.starts_with(b"\xEF\xBB\xBF") {
            return Err(Fault {
                at: 0,
                kind: FaultKind::ByteOrderMark,
            });
        }
        let mut scanner = Scanner {
            text,
            at: 0,
            left: depth,
            limit: depth,
        };
        scanner.white();
        match scanner.peek() {
            Some(_) => Ok(scanner),
            None => Err(scanner.fault(FaultKind::Empty)),
        }
    }

    fn finish(mut self, start: usize) -> Result<Range<usize>, Fault> {
        let end = self.at;
        self.white();
        match self.peek() {
            None => Ok(start..end),
            Some(_) => Err(self.fault(FaultKind::TrailingText)),
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[cold]
    fn fault(&self, kind: FaultKind) -> Fault {
        Fault { at: self.at, kind }
    }

    #[cold]
    fn expected(&self, what: &'static str) -> Fault {
        self.fault(if self.at < self.text.len() {
            FaultKind::Expected(what)
        } else {
            FaultKind::Unfinished
        })
    }

    #[inline]
    fn white(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn take(&mut self, byte: u8, what: &'static str) -> Result<(), Fault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.expected(what))
        }
    }

    fn value(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{') => self.object(|_| ()),
            Some(b'[') => self.array(|_| ()),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.expected("`true`, `false` or `null`"))
        }
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.at += 1;
                self.white();
                Ok(())
            }
            None => Err(self.fault(FaultKind::TooDeep(self.limit))),
        }
    }

    fn object(&mut self, mut visit: impl FnMut(Found)) -> Result<(), Fault> {
        self.deeper()?;
        if self.peek() != Some(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.expected("a member name in quotes"));
                }
                let name = self.at + 1;
                self.string()?;
                let name = name..self.at - 1;
                self.white();
                self.take(b':', "`:` after a member name")?;
                self.white();
                let value = self.at;
                self.value()?;
                visit(Found {
                    name,
                    value: value..self.at,
                });
                self.white();
                if self.peek() != Some(b',') {
                    break;
                }
                self.at += 1;
                self.white();
            }
        }
        self.take(b'}', "`,` or `}` after a member")?;
        self.left += 1;
        Ok(())
    }

    fn array(&mut self, mut visit: impl FnMut(Range<usize>)) -> Result<(), Fault> {
        self.deeper()?;
        if self.peek() != Some(b']') {
            loop {
                let element = self.at;
                self.value()?;
                visit(element..self.at);
                self.white();
                if self.peek() != Some(b',') {
                    break;
                }
                self.at += 1;
                self.white();
            }
        }
        self.take(b']', "`,` or `]` after an element")?;
        self.left += 1;
        Ok(())
    }

    /// Stands on the opening quote; ends behind the closing one.
    #[inline]
    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            self.at += plain_length(&self.text[self.at..]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.fault(FaultKind::ControlCharacter)),
                None => return Err(self.fault(FaultKind::Unfinished)),
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let length = match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => 2,
            Some(b'u') => {
                let digits = self.text.get(self.at + 2..self.at + 6);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.fault(FaultKind::BadEscape));
                }
                6
            }
            _ => return Err(self.fault(FaultKind::BadEscape)),
        };
        self.at += length;
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.expected("a digit"))
        } else {
            Ok(())
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }
}

/// How many bytes of a string's inside come before the next quote, backslash or control character.
///
/// Eight bytes at a time: a lane of the mask is set where the byte is one of them. A borrow may set
/// lanes above the first true one as well, so only the lowest counts.
#[inline]
fn plain_length(text: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let zero_lanes = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let mut at = 0;
    while let Some(chunk) = text[at..].first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let special = controls
            | zero_lanes(word ^ (ONES * u64::from(b'"')))
            | zero_lanes(word ^ (ONES * u64::from(b'\\')));
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text
        .get(at)
        .is_some_and(|byte| *byte >= 0x20 && *byte != b'"' && *byte != b'\\')
    {
        at += 1;
    }
    at
}
