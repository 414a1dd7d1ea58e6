//! The delimiters between the elements of a list in one text.
//!
//! Laws: a text is decoded before it is split, as servers do, so an element that contains the delimiter cannot be
//! written. A text that contains the delimiter both plain and percent-encoded is rejected, because it is ambiguous.

use super::{Delimiter, Shape, Slot};
use crate::percent::cut;

impl Delimiter {
    /// All delimiters.
    pub const ALL: [Delimiter; 3] = [Delimiter::Comma, Delimiter::Pipe, Delimiter::Space];

    /// Returns the character.
    #[must_use]
    pub fn as_char(self) -> char {
        match self {
            Delimiter::Comma => ',',
            Delimiter::Pipe => '|',
            Delimiter::Space => ' ',
        }
    }

    /// Returns the suffix of the type: `[,]`.
    #[must_use]
    pub fn to_notation(self) -> &'static str {
        match self {
            Delimiter::Comma => "[,]",
            Delimiter::Pipe => "[|]",
            Delimiter::Space => "[ ]",
        }
    }

    /// Returns the name of the character, for messages.
    pub(super) fn named(self) -> &'static str {
        match self {
            Delimiter::Comma => "a comma",
            Delimiter::Pipe => "a `|`",
            Delimiter::Space => "a space",
        }
    }

    /// Returns the percent-encoded character (RFC 3986 §2.1).
    fn encoded(self) -> &'static str {
        match self {
            Delimiter::Comma => "%2C",
            Delimiter::Pipe => "%7C",
            Delimiter::Space => "%20",
        }
    }

    /// Splits a text at the first delimiter.
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
    /// Checks that the text of a list, before decoding, spells its delimiter in one way only: a client that encodes
    /// the delimiter within elements means another list than one that encodes the whole text.
    ///
    /// # Errors
    ///
    /// Fails with the two spellings.
    pub fn expect_one_spelling(&self, encoded: &str) -> Result<(), String> {
        let Shape::Separated(_, delimiter) = self.shape else {
            return Ok(());
        };
        if !self.codec.keeps_elements() || self.binds().is_none() {
            return Ok(());
        }
        let (character, code) = (delimiter.as_char(), delimiter.encoded());
        let has_code = || {
            let mut triples = encoded.as_bytes().windows(code.len());
            triples.any(|triple| triple.eq_ignore_ascii_case(code.as_bytes()))
        };
        if encoded.contains(character) && has_code() {
            Err(format!(
                "this list contains both `{character}` and `{code}`, and either may separate its elements"
            ))
        } else {
            Ok(())
        }
    }
}
