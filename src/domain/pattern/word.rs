//! Values of a URL that are words: letters, digits, `-` and `_`, which stand in every part of it as they are.
//!
//! Most values are. Laws: a word is read as the value that any text is read as, and written as its text.

use super::{Bound, Codec, Scalar, Shape, Slot, Writing};
use crate::domain::json::{Json, Kind, is_integer, is_number, kind_of};
use crate::domain::percent::is_word;

impl Slot {
    /// The value that a text stands for, where the text is a word and one will do.
    #[inline]
    pub(in crate::domain) fn read_word(&self, text: &str) -> Option<Json> {
        if self.codec != Codec::Plain || text.is_empty() || !is_word(text.as_bytes()) {
            return None;
        }
        match &self.shape {
            Shape::One(Scalar::String) => Some(Json::quoted(text)),
            Shape::One(Scalar::Integer) if is_integer(text.as_bytes()) => Some(Json::copied(text)),
            Shape::One(Scalar::Number) if is_number(text.as_bytes()) => Some(Json::copied(text)),
            Shape::One(Scalar::Boolean) if matches!(text, "true" | "false") => {
                Some(Json::copied(text))
            }
            _ => None,
        }
    }

    /// The text of a value that is a word.
    #[inline]
    pub(in crate::domain) fn word<'w>(&self, writing: &Writing<'w>) -> Option<&'w str> {
        let Bound::Value(value) = writing.hole(self.written_as_it_is()?) else {
            return None;
        };
        let text = value.as_bytes();
        let inner = match (&self.shape, kind_of(text)) {
            (Shape::One(Scalar::String), Kind::String) => &text[1..text.len() - 1],
            (Shape::One(Scalar::Integer), Kind::Number) if is_integer(text) => text,
            (Shape::One(Scalar::Number), Kind::Number)
            | (Shape::One(Scalar::Boolean), Kind::Boolean) => text,
            _ => return None,
        };
        let is_word = !inner.is_empty() && is_word(inner);
        std::str::from_utf8(inner).ok().filter(|_| is_word)
    }
}
