//! A fast path for URL values that consist of letters, digits, `-` and `_`, which need no encoding in any part.
//!
//! Most values are such words. Laws: a word is read as the same value as any text, and written as the same text.

use super::{BoundValue, Codec, Delimiter, PatternReader, PatternWriter, Scalar, Shape, Slot};
use crate::json::{InlineBuffer, Json, JsonKind, is_integer, is_number, kind_of};
use crate::percent::is_word;

impl Slot {
    /// Reads a text, encoded or not, if it is a word and its value can be bound.
    #[inline]
    pub fn read_word(&self, text: &str, reading: &mut PatternReader) -> Option<()> {
        let hole = self.binds()?;
        if self.codec != Codec::Plain {
            return None;
        }
        if let Shape::Separated(Scalar::String, Delimiter::Comma) = self.shape {
            return reading.bind_value(hole, listed(text)?);
        }
        if text.is_empty() || !is_word(text.as_bytes()) {
            return None;
        }
        let value = match &self.shape {
            Shape::One(Scalar::String) => Json::quoted(text),
            Shape::One(Scalar::Integer) if is_integer(text.as_bytes()) => Json::copied(text),
            Shape::One(Scalar::Number) if is_number(text.as_bytes()) => Json::copied(text),
            Shape::One(Scalar::Boolean) if matches!(text, "true" | "false") => Json::copied(text),
            Shape::Any
            | Shape::One(_)
            | Shape::Repeated(_)
            | Shape::Separated(..)
            | Shape::Object
            | Shape::Array
            | Shape::Null => return None,
        };
        reading.bind_value(hole, value)
    }

    /// Returns the text of a value that is a word.
    #[inline]
    pub fn word<'w>(&self, writing: &PatternWriter<'w>) -> Option<&'w str> {
        let BoundValue::Value(value) = writing.hole(self.written_as_it_is()?) else {
            return None;
        };
        let text = value.as_bytes();
        let inner = match (&self.shape, kind_of(text)) {
            (Shape::One(Scalar::String), JsonKind::String) => &text[1..text.len() - 1],
            (Shape::One(Scalar::Integer), JsonKind::Number) if is_integer(text) => text,
            (Shape::One(Scalar::Number), JsonKind::Number)
            | (Shape::One(Scalar::Boolean), JsonKind::Boolean) => text,
            _ => return None,
        };
        let is_word = !inner.is_empty() && is_word(inner);
        std::str::from_utf8(inner).ok().filter(|_| is_word)
    }
}

/// Returns the array of words in a short text with commas between them.
fn listed(text: &str) -> Option<Json> {
    let mut list = InlineBuffer::default();
    list.push(*b"[\"")?;
    let mut before = b',';
    for byte in text.bytes() {
        match byte {
            b',' if before != b',' => list.push(*b"\",\"")?,
            _ if is_word(&[byte]) => list.push([byte])?,
            _ => return None,
        }
        before = byte;
    }
    list.push(*b"\"]")?;
    (before != b',').then(|| Json::short(list))
}
