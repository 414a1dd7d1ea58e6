//! JSON syntax errors: the offset, and what was expected there.

use std::fmt;

/// A syntax error with its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonFault {
    /// The offset of the offending byte, from 0.
    pub at: usize,
    /// The kind of error.
    pub kind: FaultKind,
}

/// The kind of a syntax error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing but white space.
    Empty,
    /// Not UTF-8 (RFC 8259 §8.1).
    NotUtf8,
    /// A byte order mark, which JSON must not begin with (RFC 8259 §8.1).
    ByteOrderMark,
    /// Another byte than the grammar expects.
    Expected(&'static str),
    /// The text ends inside a value.
    Unfinished,
    /// An unescaped control character in a string.
    ControlCharacter,
    /// An escape that JSON does not have.
    BadEscape,
    /// Text after the value.
    TrailingText,
    /// Arrays and objects nested deeper than the limit.
    TooDeep(u16),
}

impl JsonFault {
    /// Returns whether the text was rejected for its nesting, not for its grammar.
    #[must_use]
    pub fn is_too_deep(&self) -> bool {
        matches!(self.kind, FaultKind::TooDeep(_))
    }
}

impl fmt::Display for JsonFault {
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

impl std::error::Error for JsonFault {}
