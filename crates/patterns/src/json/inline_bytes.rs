//! Storage of a value's bytes: short ones are stored inline, which is cheaper than sharing.
//!
//! Used by `json::value` and `pattern::token`.

use std::ops::Range;

use bytes::Bytes;

/// The capacity that fits into the size of a shared text.
const SHORT: usize = 23;

/// The bytes of a value.
#[derive(Clone)]
pub(super) enum InlineBytes {
    /// A part of a buffer that others may share.
    Shared(Bytes),
    /// The length, and that many of these bytes.
    Short(u8, [u8; SHORT]),
}

impl InlineBytes {
    /// Stores a text inline, if it is short enough.
    #[inline]
    pub(super) fn short(text: &[u8]) -> Option<InlineBytes> {
        let mut bytes = [0; SHORT];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(InlineBytes::Short(text.len() as u8, bytes))
    }

    /// Stores a plain text with quotes inline, if it is short enough.
    #[inline]
    pub(super) fn quoted(text: &[u8]) -> Option<InlineBytes> {
        let mut bytes = [b'"'; SHORT];
        let end = text.len() + 1;
        bytes.get(end)?;
        bytes.get_mut(1..end)?.copy_from_slice(text);
        Some(InlineBytes::Short(end as u8 + 1, bytes))
    }

    /// Returns a part of a text. For a short part a fixed number of bytes is copied, which needs few instructions.
    #[inline(always)]
    pub(super) fn part(text: &Bytes, range: Range<usize>) -> InlineBytes {
        let length = range.len();
        match text.get(range.start..).and_then(|from| from.first_chunk()) {
            Some(bytes) if length <= SHORT => InlineBytes::Short(length as u8, *bytes),
            _ => InlineBytes::Shared(text.slice(range)),
        }
    }

    /// Returns a part of this.
    #[inline(always)]
    pub(super) fn piece(&self, range: Range<usize>) -> InlineBytes {
        match self {
            InlineBytes::Shared(text) => InlineBytes::part(text, range),
            InlineBytes::Short(..) => match InlineBytes::short(&self.as_bytes()[range]) {
                Some(short) => short,
                None => self.clone(),
            },
        }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            InlineBytes::Shared(text) => text,
            InlineBytes::Short(length, bytes) => {
                bytes.get(..usize::from(*length)).unwrap_or_default()
            }
        }
    }

    /// Appends it to a text. For a short one a fixed number of bytes is copied, which needs few instructions.
    #[inline(always)]
    pub(super) fn copy_to(&self, out: &mut Vec<u8>) {
        match self {
            InlineBytes::Shared(text) => out.extend_from_slice(text),
            InlineBytes::Short(length, bytes) => {
                let end = out.len() + usize::from(*length);
                out.extend_from_slice(bytes);
                out.truncate(end);
            }
        }
    }

    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            InlineBytes::Shared(text) => text,
            InlineBytes::Short(..) => Bytes::copy_from_slice(self.as_bytes()),
        }
    }
}

/// A buffer for a short text.
#[derive(Default)]
pub(crate) struct InlineBuffer {
    length: usize,
    bytes: [u8; SHORT],
}

impl InlineBuffer {
    /// Appends bytes, if there is capacity.
    #[inline(always)]
    pub(crate) fn push<const COUNT: usize>(&mut self, bytes: [u8; COUNT]) -> Option<()> {
        let free = self.bytes.get_mut(self.length..)?;
        *free.first_chunk_mut()? = bytes;
        self.length += COUNT;
        Some(())
    }

    #[inline(always)]
    pub(super) fn finish(self) -> InlineBytes {
        InlineBytes::Short(self.length as u8, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_not_larger_than_a_shared_one() {
        assert_eq!(size_of::<InlineBytes>(), size_of::<Bytes>());
    }

    #[test]
    fn a_text_is_the_same_inline_and_shared() {
        for length in 0..2 * SHORT {
            let text: Bytes = (0..length).map(|at| b'a' + at as u8 % 26).collect();
            let short = InlineBytes::short(&text);
            assert_eq!(short.is_some(), length <= SHORT);
            let shared = InlineBytes::Shared(text.clone());
            for whole in std::iter::once(shared).chain(short) {
                assert_eq!(whole.as_bytes(), text);
                let half = 0..length / 2;
                assert_eq!(whole.piece(half.clone()).as_bytes(), &text[half]);
                assert_eq!(whole.into_bytes(), text);
            }
            if let Some(quoted) = InlineBytes::quoted(&text) {
                let text = std::str::from_utf8(&text).unwrap();
                assert_eq!(quoted.as_bytes(), format!("\"{text}\"").as_bytes());
            }
        }
    }
}
