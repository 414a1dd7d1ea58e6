//! One JSON value as validated text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;

use super::fault::JsonFault;
use super::inline_bytes::{InlineBuffer, InlineBytes};
use super::kind::{JsonKind, kind_of};
use super::simd::all_plain;
use super::string::{LoneSurrogate, decode, encode};
use super::trusted_scan::{skip_string, skip_white};
use super::validator::{scan_value, scan_value_with_names};
use crate::rope::Rope;

/// One valid JSON value in its original text, without surrounding white space.
#[derive(Clone)]
pub struct Json(pub(super) InlineBytes);

impl Json {
    /// Validates a whole text: UTF-8, grammar, nesting up to `depth`, nothing after the value.
    ///
    /// # Errors
    /// [`JsonFault`] names the offset and what was expected there.
    pub fn parse(text: Bytes, depth: u16) -> Result<Json, JsonFault> {
        let range = scan_value(&text, depth)?;
        Ok(Json::from_range(text, range))
    }

    /// Returns a part of `text` that a scan found to be a value, without a copy of a whole text.
    fn from_range(text: Bytes, range: Range<usize>) -> Json {
        if range.len() == text.len() {
            return Json(InlineBytes::Shared(text));
        }
        Json::scanned(&text, range)
    }

    /// Validates a text from another program like [`Json::parse`], but ignores a byte order mark before the value (RFC
    /// 8259 §8.1).
    ///
    /// # Errors
    /// [`JsonFault`] names the offset and what was expected there.
    pub fn read(text: Bytes, depth: u16) -> Result<Json, JsonFault> {
        Json::parse(unmarked(text), depth)
    }

    /// Validates a text like [`Json::read`], and passes the name of each member of an object, without its quotes and
    /// with its escapes, to a callback.
    ///
    /// # Errors
    /// [`JsonFault`] names the offset and what was expected there.
    pub fn read_with_names(
        text: Bytes,
        depth: u16,
        visit: impl FnMut(&[u8]),
    ) -> Result<Json, JsonFault> {
        let text = unmarked(text);
        let range = scan_value_with_names(&text, depth, visit)?;
        Ok(Json::from_range(text, range))
    }

    /// Returns a literal of the source code, such as `{}`.
    #[must_use]
    pub const fn literal(text: &'static str) -> Json {
        Json(InlineBytes::Shared(Bytes::from_static(text.as_bytes())))
    }

    /// Returns the JSON string for a text.
    #[must_use]
    pub fn string(text: &str) -> Json {
        if all_plain(text.as_bytes()) {
            return Json::quoted(text);
        }
        let mut out = Vec::with_capacity(text.len() + 2);
        encode(text, &mut out);
        Json::written(out)
    }

    /// Returns the JSON string for a text that needs no escapes.
    #[inline]
    pub(crate) fn quoted(text: &str) -> Json {
        match InlineBytes::quoted(text.as_bytes()) {
            Some(short) => Json(short),
            None => Json::written(["\"", text, "\""].concat()),
        }
    }

    /// Returns a number, or one of the JSON words.
    #[inline]
    pub(crate) fn copied(text: &str) -> Json {
        match InlineBytes::short(text.as_bytes()) {
            Some(short) => Json(short),
            None => Json::written(text.to_owned()),
        }
    }

    /// Returns a value that the caller wrote from literals and valid values.
    ///
    /// The text is trusted: a release build passes an invalid one on unchecked. Use [`Json::parse`] for texts of others.
    ///
    /// # Panics
    ///
    /// A debug build panics if the text is not one JSON value.
    pub fn written(text: impl AsRef<[u8]> + Into<Bytes>) -> Json {
        let json = match InlineBytes::short(text.as_ref()) {
            Some(short) => Json(short),
            None => Json(InlineBytes::Shared(text.into())),
        };
        json.checked_in_debug()
    }

    /// Returns a short value that this crate wrote.
    #[inline(always)]
    pub(crate) fn short(text: InlineBuffer) -> Json {
        Json(text.finish()).checked_in_debug()
    }

    /// Returns a message that the caller wrote from literals and valid values. It is trusted as in [`Json::written`].
    #[must_use]
    pub fn sent(pieces: Rope) -> Json {
        Json::written(pieces.into_bytes())
    }

    /// Returns a part of this value that a scan found to be a value. It is trusted as in [`Json::written`].
    ///
    /// # Panics
    ///
    /// Panics if the text has no such range.
    #[must_use]
    #[inline(always)]
    pub fn piece(&self, range: Range<usize>) -> Json {
        Json(self.0.piece(range))
    }

    /// Returns a part of `text` that a scan found to be a value. It is trusted as in [`Json::written`].
    ///
    /// # Panics
    ///
    /// Panics if the text has no such range, and in a debug build if the part is not one JSON value.
    #[inline]
    pub fn scanned(text: &Bytes, range: Range<usize>) -> Json {
        Json(InlineBytes::part(text, range)).checked_in_debug()
    }

    /// Checks in a debug build that a trusted text is one JSON value.
    #[inline(always)]
    fn checked_in_debug(self) -> Json {
        let length = self.as_bytes().len();
        debug_assert_eq!(scan_value(self.as_bytes(), u16::MAX), Ok(0..length));
        self
    }

    /// Returns the text.
    #[must_use]
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Appends the text to another.
    #[inline(always)]
    pub(crate) fn copy_to(&self, out: &mut Vec<u8>) {
        self.0.copy_to(out);
    }

    /// Returns the text; shared unless it is short.
    #[must_use]
    #[inline]
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Returns the kind.
    #[must_use]
    #[inline]
    pub fn kind(&self) -> JsonKind {
        kind_of(self.as_bytes())
    }

    /// Returns the decoded text of a string; `None` for other kinds.
    ///
    /// # Errors
    /// [`LoneSurrogate`] if the string is not Unicode text.
    pub fn text(&self) -> Option<Result<String, LoneSurrogate>> {
        let text = text_of(self.as_bytes())?;
        Some(text.map(Cow::into_owned))
    }

    /// Returns the value without white space outside of strings, otherwise unchanged.
    #[must_use]
    pub fn compact(&self) -> Json {
        let text = self.as_bytes();
        let mut out = Vec::new();
        let mut copied = 0;
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match byte {
                b'"' => at = skip_string(text, at).0,
                b' ' | b'\n' | b'\r' | b'\t' => {
                    out.extend_from_slice(&text[copied..at]);
                    copied = skip_white(text, at);
                    at = copied;
                }
                _ => at += 1,
            }
        }
        if copied == 0 {
            // A value does not start with white space, so it has none at all.
            return self.clone();
        }
        out.extend_from_slice(&text[copied..]);
        Json::written(out)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Json) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({})", String::from_utf8_lossy(self.as_bytes()))
    }
}

/// The byte order mark in UTF-8.
pub const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns a text without a leading byte order mark.
#[must_use]
#[inline]
pub fn unmarked(text: Bytes) -> Bytes {
    match text.starts_with(BYTE_ORDER_MARK) {
        true => text.slice(BYTE_ORDER_MARK.len()..),
        false => text,
    }
}

/// Returns the decoded text of a valid string; `None` for other kinds.
#[inline]
pub fn text_of(value: &[u8]) -> Option<Result<Cow<'_, str>, LoneSurrogate>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(decode(inner))
}
