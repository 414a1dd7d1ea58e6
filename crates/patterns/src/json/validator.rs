//! A validating scanner: it checks UTF-8, then the grammar, and reports ranges, without building values.
//!
//! Offsets are passed as arguments and never stored; a fault is stored and never passed: so both stay in registers.
//! Law: a text that is not UTF-8 is rejected for that reason, even if it has other faults.

use std::ops::Range;

use super::simd::{ControlCheck, Escapes, StringBlock, plain_length};
use super::{FaultKind, JsonFault};
use crate::simd::{below_space, bits, padded};

/// One member of an object, as ranges of the scanned text, unopened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSpan {
    /// The name without its quotes, escapes unchanged.
    pub name: Range<usize>,
    /// The value, without surrounding white space.
    pub value: Range<usize>,
}

/// Validates one complete JSON text, and returns the range of its value.
///
/// # Errors
/// The first [`JsonFault`].
#[inline]
pub fn scan_value(text: &[u8], depth: u16) -> Result<Range<usize>, JsonFault> {
    scan(text, depth, Scanner::value)
}

/// Validates one complete JSON text like [`scan_value`], and passes the name of each member of an object, without its
/// quotes and with its escapes, to a callback. Only the final result confirms that the names are UTF-8.
///
/// # Errors
/// The first [`JsonFault`].
pub(super) fn scan_value_with_names(
    text: &[u8],
    depth: u16,
    mut visit: impl FnMut(&[u8]),
) -> Result<Range<usize>, JsonFault> {
    scan(text, depth, |scanner, at| match text.get(at) {
        Some(b'{') => scanner.object(at, |member| visit(&text[member.name])),
        _ => scanner.value(at),
    })
}

/// Validates one complete JSON text that must be an object, and passes each of its members to a callback. Only the
/// final result confirms that the text, and so every member, is UTF-8.
///
/// # Errors
/// The first [`JsonFault`]; a value other than an object is [`FaultKind::Expected`].
pub fn scan_object(
    text: &[u8],
    depth: u16,
    visit: impl FnMut(MemberSpan),
) -> Result<Range<usize>, JsonFault> {
    scan(text, depth, |scanner, at| match text.get(at) {
        Some(b'{') => scanner.object(at, visit),
        _ => scanner.fault(at, FaultKind::Expected("an object")),
    })
}

/// Validates one complete JSON text that must be an array, and passes the range of each element to a callback. Only the
/// final result confirms that the text, and so every element, is UTF-8.
///
/// # Errors
/// The first [`JsonFault`]; a value other than an array is [`FaultKind::Expected`].
pub fn scan_array(
    text: &[u8],
    depth: u16,
    visit: impl FnMut(Range<usize>),
) -> Result<Range<usize>, JsonFault> {
    scan(text, depth, |scanner, at| match text.get(at) {
        Some(b'[') => scanner.array(at, visit),
        _ => scanner.fault(at, FaultKind::Expected("an array")),
    })
}

/// Returns whether a whole text is a JSON number.
#[must_use]
#[inline]
pub fn is_number(text: &[u8]) -> bool {
    matches!(Scanner::new(text, 0).number(0), Ok(end) if end == text.len())
}

/// Returns whether a whole text is a JSON number without fraction and exponent.
#[must_use]
#[inline]
pub fn is_integer(text: &[u8]) -> bool {
    match text.strip_prefix(b"-").unwrap_or(text) {
        b"0" => true,
        [b'1'..=b'9', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

fn scan<'a>(
    text: &'a [u8],
    depth: u16,
    value: impl FnOnce(&mut Scanner<'a>, usize) -> ScanResult,
) -> Result<Range<usize>, JsonFault> {
    // A caller learns which members a text has even if it is not UTF-8: that decides which protocol refuses it.
    let utf8 = check_utf8(text);
    let mut scanner = Scanner::new(text, depth);
    let start = scanner.white(0);
    let step = if start == text.len() {
        scanner.fault(start, FaultKind::Empty)
    } else {
        value(&mut scanner, start)
    };
    let step = step.and_then(|end| scanner.finish(end));
    utf8?;
    match step {
        Ok(end) => Ok(start..end),
        Err(Halt) => Err(scanner.fault),
    }
}

fn check_utf8(text: &[u8]) -> Result<(), JsonFault> {
    if simdutf8::basic::from_utf8(text).is_ok() {
        return match text.starts_with(b"\xEF\xBB\xBF") {
            true => Err(JsonFault {
                at: 0,
                kind: FaultKind::ByteOrderMark,
            }),
            false => Ok(()),
        };
    }
    Err(JsonFault {
        at: text
            .utf8_chunks()
            .next()
            .map_or(0, |chunk| chunk.valid().len()),
        kind: FaultKind::NotUtf8,
    })
}

/// The scan has found a fault, which the scanner stores.
struct Halt;

/// The offset after the bytes that were read.
type ScanResult = Result<usize, Halt>;

struct Scanner<'a> {
    text: &'a [u8],
    remaining: u16,
    limit: u16,
    fault: JsonFault,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8], depth: u16) -> Self {
        Scanner {
            text,
            remaining: depth,
            limit: depth,
            fault: JsonFault {
                at: 0,
                kind: FaultKind::Empty,
            },
        }
    }

    fn finish(&mut self, end: usize) -> ScanResult {
        let at = self.white(end);
        if at == self.text.len() {
            Ok(end)
        } else {
            self.fault(at, FaultKind::TrailingText)
        }
    }

    #[inline(always)]
    fn peek(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    #[cold]
    #[inline(never)]
    fn fault(&mut self, at: usize, kind: FaultKind) -> ScanResult {
        self.fault = JsonFault { at, kind };
        Err(Halt)
    }

    #[cold]
    #[inline(never)]
    fn expected(&mut self, at: usize, what: &'static str) -> ScanResult {
        let kind = if at < self.text.len() {
            FaultKind::Expected(what)
        } else {
            FaultKind::Unfinished
        };
        self.fault(at, kind)
    }

    #[inline(always)]
    fn white(&self, mut at: usize) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek(at) {
            at += 1;
        }
        at
    }

    /// Only nested values take a function call: a call for each name and number would cost more than reading it.
    #[inline(always)]
    fn value(&mut self, at: usize) -> ScanResult {
        match self.peek(at) {
            Some(b'"') => self.string(at),
            Some(b'{' | b'[') => self.nested(at),
            Some(b'-' | b'0'..=b'9') => self.number(at),
            _ => self.word(at),
        }
    }

    #[inline(never)]
    fn nested(&mut self, at: usize) -> ScanResult {
        if self.peek(at) == Some(b'{') {
            self.object(at, |_| ())
        } else {
            self.array(at, |_| ())
        }
    }

    #[inline(never)]
    fn word(&mut self, at: usize) -> ScanResult {
        let rest = &self.text[at..];
        let word: &[u8] = match rest.first() {
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return self.expected(at, "a JSON value"),
        };
        if rest.starts_with(word) {
            Ok(at + word.len())
        } else {
            self.expected(at, "`true`, `false` or `null`")
        }
    }

    #[inline]
    fn deeper(&mut self, at: usize) -> ScanResult {
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(self.white(at + 1))
            }
            None => self.fault(at, FaultKind::TooDeep(self.limit)),
        }
    }

    fn object(&mut self, at: usize, mut visit: impl FnMut(MemberSpan)) -> ScanResult {
        let mut at = self.deeper(at)?;
        if self.peek(at) != Some(b'}') {
            loop {
                if self.peek(at) != Some(b'"') {
                    return self.expected(at, "a member name in quotes");
                }
                let end = self.string(at)?;
                let name = at + 1..end - 1;
                let colon = self.white(end);
                if self.peek(colon) != Some(b':') {
                    return self.expected(colon, "`:` after a member name");
                }
                let start = self.white(colon + 1);
                let end = self.value(start)?;
                visit(MemberSpan {
                    name,
                    value: start..end,
                });
                at = self.white(end);
                if self.peek(at) != Some(b',') {
                    break;
                }
                at = self.white(at + 1);
            }
        }
        if self.peek(at) != Some(b'}') {
            return self.expected(at, "`,` or `}` after a member");
        }
        self.remaining += 1;
        Ok(at + 1)
    }

    fn array(&mut self, at: usize, mut visit: impl FnMut(Range<usize>)) -> ScanResult {
        let mut at = self.deeper(at)?;
        if self.peek(at) != Some(b']') {
            loop {
                let end = self.value(at)?;
                visit(at..end);
                at = self.white(end);
                if self.peek(at) != Some(b',') {
                    break;
                }
                at = self.white(at + 1);
            }
        }
        if self.peek(at) != Some(b']') {
            return self.expected(at, "`,` or `]` after an element");
        }
        self.remaining += 1;
        Ok(at + 1)
    }

    /// Reads a string from its opening quote; returns the offset after the closing one.
    #[inline(always)]
    fn string(&mut self, at: usize) -> ScanResult {
        let start = at + 1;
        let end = start + plain_length(&self.text[start..]);
        if self.peek(end) == Some(b'"') {
            return Ok(end + 1);
        }
        self.string_in_blocks(end)
    }

    /// Reads the rest of a string from its first byte that is not plain. Escapes cluster, so a block is examined at once,
    /// without a branch for each. Control characters are searched after the end of the string: all escapes before it are
    /// valid, so the first control character is the first fault.
    #[inline(never)]
    fn string_in_blocks(&mut self, start: usize) -> ScanResult {
        let (mut escapes, mut control_check) = (Escapes::default(), ControlCheck::NONE);
        let mut at = start;
        loop {
            let text = &self.text[at..];
            let last;
            let (block, padding) = match text.first_chunk::<64>() {
                Some(block) => (block, 0),
                None => {
                    last = padded(text);
                    (&last, u64::MAX << text.len())
                }
            };
            let inside = StringBlock::new(block, &mut escapes);
            let mut notable = inside.notable(block) | padding;
            while notable != 0 {
                let index = notable.trailing_zeros();
                notable &= notable - 1;
                let found = at + index as usize;
                let is_escaped = inside.escaped >> index & 1 == 1;
                if is_escaped && self.escape(found - 1) {
                    continue;
                }
                let controls = bits(block, below_space) & !(u64::MAX << index);
                if controls != 0 || control_check.has_control() {
                    return self.control(start);
                }
                return match is_escaped {
                    true => self.fault(found - 1, FaultKind::BadEscape),
                    false => self.end_of_string(found),
                };
            }
            control_check.see(block);
            at += 64;
        }
    }

    /// Finds the first control character in the rest of a string that has one.
    #[cold]
    #[inline(never)]
    fn control(&mut self, start: usize) -> ScanResult {
        let mut rest = self.text[start..].iter();
        let before = rest.position(|byte| *byte < 0x20).unwrap_or(0);
        self.fault(start + before, FaultKind::ControlCharacter)
    }

    /// Reads the closing quote; a fault at the end of the text.
    #[inline(always)]
    fn end_of_string(&mut self, at: usize) -> ScanResult {
        match self.peek(at) {
            Some(_) => Ok(at + 1),
            None => self.fault(at, FaultKind::Unfinished),
        }
    }

    /// Returns whether a valid escape is at `at`.
    #[inline(always)]
    fn escape(&self, at: usize) -> bool {
        match self.peek(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => true,
            Some(b'u') => {
                let digits = self.text.get(at + 2..at + 6);
                digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            }
            _ => false,
        }
    }

    #[inline]
    fn digits(&mut self, start: usize) -> ScanResult {
        let mut at = start;
        while let Some(b'0'..=b'9') = self.peek(at) {
            at += 1;
        }
        if at == start {
            self.expected(at, "a digit")
        } else {
            Ok(at)
        }
    }

    #[inline(always)]
    fn number(&mut self, at: usize) -> ScanResult {
        let start = at + usize::from(self.peek(at) == Some(b'-'));
        let end = if self.peek(start) == Some(b'0') {
            start + 1
        } else {
            self.digits(start)?
        };
        match self.peek(end) {
            Some(b'.' | b'e' | b'E') => self.fraction(end),
            _ => Ok(end),
        }
    }

    /// Reads the fraction of a number, the exponent, or both.
    #[inline(never)]
    fn fraction(&mut self, mut at: usize) -> ScanResult {
        if self.peek(at) == Some(b'.') {
            at = self.digits(at + 1)?;
        }
        if let Some(b'e' | b'E') = self.peek(at) {
            at += 1;
            if let Some(b'+' | b'-') = self.peek(at) {
                at += 1;
            }
            at = self.digits(at)?;
        }
        Ok(at)
    }
}
