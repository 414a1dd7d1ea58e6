//! Scans of text that is known to be valid JSON: they look only at quotes and brackets, not at grammar or UTF-8.
//!
//! On an invalid text the ranges are meaningless, but lie within it: nothing panics. Law: on every valid text the
//! ranges equal those of the validating scan.
//!
//! Used by `json` and `pattern`.

use std::iter::FusedIterator;
use std::ops::{ControlFlow, Range};

use memchr::memchr2;

use super::simd::{Bracket, Escapes, StringBlock, Structure, bracket, plain_length};

/// A member of a valid object, as ranges of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The name without its quotes, escapes unchanged.
    pub name: Range<usize>,
    /// The spelling of the name.
    pub spelling: StringForm,
    /// The value, without surrounding white space.
    pub value: Range<usize>,
}

/// The spelling of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StringForm {
    /// Without escapes.
    Plain,
    /// With escapes.
    Escaped,
}

/// An iterator over the members of a valid object, in order; empty for another value.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    text: &'a [u8],
    /// The offset after the opening bracket, at a value, or after one.
    at: usize,
}

/// Returns the members of a valid object.
#[inline]
pub(super) fn members(text: &[u8]) -> Members<'_> {
    Members {
        text,
        at: inside(text, b'{'),
    }
}

impl<'a> Members<'a> {
    /// Returns an iterator over the object that begins at `at`, if one does.
    #[inline]
    pub fn new(text: &'a [u8], at: usize) -> Option<Members<'a>> {
        (text.get(at) == Some(&b'{')).then_some(Members { text, at: at + 1 })
    }

    /// Returns an iterator over the object that is the current value, if it is one.
    #[inline]
    pub(crate) fn inside(&self) -> Option<Members<'a>> {
        Members::new(self.text, self.at)
    }

    /// Advances to the value of the next member if its spelling is `key`: a comma, a name and a colon.
    #[inline(always)]
    pub(crate) fn advance_to(&mut self, key: &[u8]) -> bool {
        let near = self.text.get(self.at..).unwrap_or_default();
        let after = if near.first() == Some(&b',') && near.starts_with(key) {
            self.at + key.len()
        } else {
            let name = key.get(1..).unwrap_or_default();
            match next_item(self.text, self.at) {
                Some(open) if self.text[open..].starts_with(name) => open + name.len(),
                Some(_) | None => return false,
            }
        };
        self.at = skip_white(self.text, after);
        true
    }

    /// Advances to the value of the next member, and returns the inside of its name.
    #[inline(always)]
    pub fn name(&mut self) -> Option<(&'a [u8], StringForm)> {
        let (name, spelling) = self.step()?;
        Some((&self.text[name], spelling))
    }

    #[inline(always)]
    fn step(&mut self) -> Option<(Range<usize>, StringForm)> {
        let open = next_item(self.text, self.at)?;
        let (end, spelling) = skip_string(self.text, open);
        let colon = skip_white(self.text, end);
        self.at = skip_white(self.text, colon + 1);
        Some((open + 1..end.saturating_sub(1).max(open + 1), spelling))
    }

    /// Advances past the value, and returns its range.
    #[inline(always)]
    pub fn value(&mut self) -> Range<usize> {
        self.spelled_value().0
    }

    /// Advances past the value, and returns its range, and its spelling if it is a string.
    #[inline(always)]
    pub(crate) fn spelled_value(&mut self) -> (Range<usize>, StringForm) {
        let (end, spelling) = skip_value(self.text, self.at);
        let start = self.at.min(end);
        self.at = end;
        (start..end, spelling)
    }

    /// Advances past the value, an object that another iterator has finished.
    #[inline]
    pub(crate) fn leave(&mut self, inside: &Members<'a>) {
        let bracket = skip_white(self.text, inside.at);
        self.at = (bracket + 1).min(self.text.len());
    }
}

impl Iterator for Members<'_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        let (name, spelling) = self.step()?;
        Some(Span {
            name,
            spelling,
            value: self.value(),
        })
    }
}

/// An iterator over the element ranges of a valid array, in order; empty for another value.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    text: &'a [u8],
    /// The offset after the opening bracket, or after an element.
    at: usize,
}

/// Returns the element ranges of a valid array without surrounding white space.
#[inline]
#[must_use]
pub fn elements(text: &[u8]) -> Elements<'_> {
    Elements {
        text,
        at: inside(text, b'['),
    }
}

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    #[inline(always)]
    fn next(&mut self) -> Option<Range<usize>> {
        let start = next_item(self.text, self.at)?;
        self.at = skip_value(self.text, start).0;
        Some(start..self.at)
    }
}

impl FusedIterator for Elements<'_> {}

/// Returns the offset after the opening bracket of the value, or the end if it is of another kind.
#[inline]
fn inside(text: &[u8], bracket: u8) -> usize {
    if text.first() == Some(&bracket) {
        1
    } else {
        text.len()
    }
}

/// Returns the start of the next member or element, after the one that ended at `at`.
#[inline(always)]
fn next_item(text: &[u8], at: usize) -> Option<usize> {
    let at = skip_white(text, at);
    match text.get(at)? {
        b',' => {
            let at = skip_white(text, at + 1);
            (at < text.len()).then_some(at)
        }
        b']' | b'}' => None,
        _ => Some(at),
    }
}

/// Returns the end of the white space at `at`.
#[inline(always)]
pub(super) fn skip_white(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

/// Returns the end of the value at `at`, and its spelling if it is a string.
#[inline(always)]
fn skip_value(text: &[u8], at: usize) -> (usize, StringForm) {
    match text.get(at) {
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => (skip_nested(text, at), StringForm::Plain),
        _ => (skip_scalar(text, at), StringForm::Plain),
    }
}

/// Returns the end of the number or word at `at`; it advances by at least one byte, so that every scan ends.
#[inline(always)]
pub(super) fn skip_scalar(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = text.get(end)
        && !matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t')
    {
        end += 1;
    }
    end.min(text.len())
}

/// Returns the offset after the closing quote of the string at `at`.
#[inline(always)]
pub(super) fn skip_string(text: &[u8], at: usize) -> (usize, StringForm) {
    /// Most strings are shorter; a longer one is worth a vector search.
    const NEAR: usize = 32;
    let start = at + 1;
    let near = text.get(start..).unwrap_or_default();
    let length = plain_length(&near[..near.len().min(NEAR)]);
    match near.get(length) {
        Some(b'"') => (start + length + 1, StringForm::Plain),
        Some(_) => skip_far(text, start + length, StringForm::Plain),
        None => (text.len(), StringForm::Plain),
    }
}

#[inline(never)]
fn skip_far(text: &[u8], mut at: usize, mut spelling: StringForm) -> (usize, StringForm) {
    while let Some(rest) = text.get(at..)
        && let Some(found) = memchr2(b'"', b'\\', rest)
    {
        at += found;
        if text[at] == b'"' {
            return (at + 1, spelling);
        }
        spelling = StringForm::Escaped;
        at = match skip_escapes(text, at) {
            ControlFlow::Break(end) => return (end, spelling),
            ControlFlow::Continue(next) => next,
        };
    }
    (text.len(), spelling)
}

/// Skips the escape at `at` and those near it. Breaks with the end of the string, or continues if no further escape is
/// near.
#[inline(always)]
fn skip_escapes(text: &[u8], mut at: usize) -> ControlFlow<usize, usize> {
    let mut escapes = Escapes::default();
    while let Some(block) = text[at..].first_chunk() {
        let inside = StringBlock::new(block, &mut escapes);
        let ends = inside.ends(block);
        if ends != 0 {
            return ControlFlow::Break(at + ends.trailing_zeros() as usize + 1);
        }
        at += 64;
        if inside.escaped == 0 && escapes.carried == 0 {
            return ControlFlow::Continue(at);
        }
    }
    // The backslash of an escape that spans both blocks.
    at -= escapes.carried as usize;
    let is_escape = text.get(at) == Some(&b'\\');
    ControlFlow::Continue(at + if is_escape { 2 } else { 0 })
}

/// Returns the end of the object or array at `at`.
fn skip_nested(text: &[u8], mut at: usize) -> usize {
    /// Many values are this small; a larger one is worth the setup of block scans.
    const NEAR: usize = 16;
    let near = at.saturating_add(NEAR);
    let mut depth = 0_usize;
    while at < near
        && let Some(byte) = text.get(at)
    {
        if *byte == b'"' {
            at = skip_string(text, at).0;
            continue;
        }
        at += 1;
        match bracket(*byte) {
            None => {}
            Some(Bracket::Opens) => depth += 1,
            Some(Bracket::Closes) if depth <= 1 => return at,
            Some(Bracket::Closes) => depth -= 1,
        }
    }
    skip_far_nested(text, at, depth)
}

/// Returns the end of an object or array with `depth` open brackets at `at`, outside of strings; 64 bytes at a time.
#[inline(never)]
fn skip_far_nested(text: &[u8], at: usize, mut depth: usize) -> usize {
    let mut block = Structure::default();
    let mut start = at;
    let rest = text.get(at..).unwrap_or_default();
    let (whole, last) = rest.as_chunks::<64>();
    let mut padded = [b' '; 64];
    padded[..last.len()].copy_from_slice(last);
    for bytes in whole.iter().chain(std::iter::once(&padded)) {
        let mut brackets = block.brackets(bytes);
        while brackets != 0 {
            let index = brackets.trailing_zeros() as usize;
            match bracket(bytes[index]) {
                None => {}
                Some(Bracket::Opens) => depth += 1,
                Some(Bracket::Closes) if depth <= 1 => return (start + index + 1).min(text.len()),
                Some(Bracket::Closes) => depth -= 1,
            }
            brackets &= brackets - 1;
        }
        start += 64;
    }
    text.len()
}
