//! Opening of objects: each name once, in any letter case, so that no two parsers read different values.
//!
//! The text was validated on receipt, so opening only skips over it.
//!
//! Used by `json::duplicate_names` and `pattern::bindings`.

use std::borrow::Cow;
use std::ops::Range;

use super::duplicate_names::find_duplicate;
use super::trusted_scan::{self, Elements, Span, StringForm};
use super::{Json, decode, same_ignoring_case};

/// A member of an opened object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMember<'a> {
    /// The decoded name; borrowed unless it has escapes.
    pub name: Cow<'a, str>,
    /// The range of the member with its name, in the object's text.
    pub whole: Range<usize>,
    /// The range of the value, in the object's text.
    pub value: Range<usize>,
}

/// The reason why an object cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenFault {
    /// A name that is not Unicode text.
    #[error("a member name: a lone surrogate escape is not Unicode text")]
    NoText,
    /// A repeated name.
    #[error("member `{0}`: it is given twice")]
    Twice(String),
    /// Two names that lenient parsers treat as one.
    #[error("member `{0}`: it differs from `{1}` only in letter case")]
    Twins(String, String),
}

impl Json {
    /// Returns the members of an object, in order; none for other kinds.
    ///
    /// # Errors
    /// [`OpenFault`] if two parsers could read different values.
    pub fn open(&self) -> Result<Vec<OpenMember<'_>>, OpenFault> {
        /// Few objects have more members, and growing a list costs more than unused capacity.
        const USUAL: usize = 16;
        /// The shortest member with its comma: `"":0,`.
        const SHORTEST: usize = 5;
        let text = self.as_bytes();
        let names = NameSource::from_text(text);
        let mut found = Vec::with_capacity((text.len() / SHORTEST).min(USUAL));
        for span in trusted_scan::members(text) {
            found.push(OpenMember {
                name: names.decode(&span).ok_or(OpenFault::NoText)?,
                whole: span.name.start - 1..span.value.end,
                value: span.value,
            });
        }
        match find_duplicate(&found) {
            None => Ok(found),
            Some(fault) => Err(fault),
        }
    }

    /// Returns the number of members of an object, including repeated ones; zero for other kinds.
    #[must_use]
    #[inline]
    pub fn member_count(&self) -> usize {
        trusted_scan::members(self.as_bytes()).count()
    }

    /// Returns the value of one member of an object. Returns `None` if it is absent, repeated, or next to a name that
    /// differs only in letter case. Other members are skipped, and may be repeated themselves.
    #[must_use]
    pub fn member(&self, wanted: &str) -> Option<Json> {
        let text = self.as_bytes();
        let names = NameSource::Bytes(text);
        let mut found = None;
        let mut rivals = 0;
        for span in trusted_scan::members(text) {
            let inner = &text[span.name.clone()];
            // Names of different length are equal only with an escape or a non-ASCII letter.
            let is_distinct = inner.len() != wanted.len()
                && span.spelling == StringForm::Plain
                && inner.is_ascii()
                && wanted.is_ascii();
            if is_distinct {
                continue;
            }
            let Some(name) = names.decode(&span) else {
                continue;
            };
            if name == wanted {
                found = Some(span.value);
                rivals += 1;
            } else if same_ignoring_case(&name, wanted) {
                rivals += 1;
            }
        }
        found.filter(|_| rivals == 1).map(|value| self.piece(value))
    }

    /// Returns whether an object has a member of this name, at least once.
    #[must_use]
    pub fn has(&self, wanted: &str) -> bool {
        let names = NameSource::Bytes(self.as_bytes());
        trusted_scan::members(self.as_bytes())
            .any(|span| names.decode(&span).is_some_and(|name| name == wanted))
    }

    /// Iterates over the ranges of an array's elements, in order; none for other kinds.
    #[must_use]
    #[inline]
    pub fn elements(&self) -> Elements<'_> {
        trusted_scan::elements(self.as_bytes())
    }
}

/// The search strategy for names.
enum NameSource<'a> {
    /// A short text: one scan of the whole text is cheaper than a look at each name.
    Text(&'a str),
    /// A long text: each name is inspected.
    Bytes(&'a [u8]),
}

impl<'a> NameSource<'a> {
    /// The longest text that is scanned as a whole.
    const SHORT: usize = 512;

    fn from_text(text: &'a [u8]) -> NameSource<'a> {
        if text.len() > Self::SHORT {
            return NameSource::Bytes(text);
        }
        std::str::from_utf8(text).map_or(NameSource::Bytes(text), NameSource::Text)
    }

    /// Decodes the name of a member; returns `None` if it is not Unicode text.
    #[inline]
    fn decode(&self, span: &Span) -> Option<Cow<'a, str>> {
        let inner = span.name.clone();
        match (self, span.spelling) {
            (NameSource::Text(text), StringForm::Plain) => text.get(inner).map(Cow::Borrowed),
            (NameSource::Text(text), StringForm::Escaped) => decode(&text.as_bytes()[inner]).ok(),
            (NameSource::Bytes(text), StringForm::Plain) => {
                std::str::from_utf8(&text[inner]).ok().map(Cow::Borrowed)
            }
            (NameSource::Bytes(text), StringForm::Escaped) => decode(&text[inner]).ok(),
        }
    }
}
