//! The characters that separate the elements of a list in one text.
//!
//! Laws: a text is decoded before it is cut, as servers do, so that an element with the delimiter in it has no spelling;
//! a text in which the delimiter stands both as itself and percent-encoded is refused, because it may mean either.

use super::{Codec, Delimiter, Shape, Slot};
use crate::domain::percent::cut;

impl Delimiter {
    /// All of them.
    pub const ALL: [Delimiter; 3] = [Delimiter::Comma, Delimiter::Pipe, Delimiter::Space];

    /// The character.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Delimiter::Comma => ',',
            Delimiter::Pipe => '|',
            Delimiter::Space => ' ',
        }
    }

    /// The end of a type: `[,]`.
    #[must_use]
    pub fn spelled(self) -> &'static str {
        match self {
            Delimiter::Comma => "[,]",
            Delimiter::Pipe => "[|]",
            Delimiter::Space => "[ ]",
        }
    }

    /// The name of the character, for messages.
    pub(super) fn named(self) -> &'static str {
        match self {
            Delimiter::Comma => "a comma",
            Delimiter::Pipe => "a `|`",
            Delimiter::Space => "a space",
        }
    }

    /// The percent-encoded character (RFC 3986 §2.1).
    fn encoded(self) -> &'static str {
        match self {
            Delimiter::Comma => "%2C",
            Delimiter::Pipe => "%7C",
            Delimiter::Space => "%20",
        }
    }

    /// Cuts a text at the first delimiter.
    #[inline]
    pub(super) fn cut(self, text: &str) -> (&str, Option<&str>) {
        match self {
            Delimiter::Comma => cut::<b','>(text),
            Delimiter::Pipe => cut::<b'|'>(text),
            Delimiter::Space => cut::<b' '>(text),
        }
    }
}

impl Slot {
    /// Expects that the text of a list, before it is decoded, has its delimiter in one spelling only: a client that
    /// encodes the delimiter inside of elements means another list than one that encodes all of the text.
    ///
    /// # Errors
    /// The two spellings.
    pub(in crate::domain) fn expect_one_spelling(&self, encoded: &str) -> Result<(), String> {
        let Shape::Separated(_, delimiter) = self.shape else {
            return Ok(());
        };
        if self.codec != Codec::Plain || self.binds().is_none() {
            return Ok(());
        }
        let (letter, code) = (delimiter.letter(), delimiter.encoded());
        let has_code = || {
            let mut triples = encoded.as_bytes().windows(code.len());
            triples.any(|triple| triple.eq_ignore_ascii_case(code.as_bytes()))
        };
        if encoded.contains(letter) && has_code() {
            Err(format!(
                "both `{letter}` and `{code}` stand in this list, and either may separate its elements"
            ))
        } else {
            Ok(())
        }
    }
}
