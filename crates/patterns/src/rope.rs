//! Outgoing bytes as a few shared chunks: new text is small, and existing values are shared instead of copied.

use std::ops::Range;

use bytes::Bytes;

use super::json::{Json, encode};

/// Smaller values are copied: one write of one buffer is cheaper than a list of them.
const COPY_BELOW: usize = 1024;

/// A message in chunks, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rope {
    chunks: RopeChunks,
    length: usize,
}

/// The chunks; most messages are one chunk and need no list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RopeChunks {
    /// At most one chunk; an empty one counts as none.
    One(Bytes),
    /// Two or more.
    Many(Vec<Bytes>),
}

impl Default for RopeChunks {
    fn default() -> Self {
        RopeChunks::One(Bytes::new())
    }
}

impl Rope {
    /// Returns the length in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there are no bytes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the chunks in order, none of them empty.
    #[must_use]
    #[inline]
    pub fn chunks(&self) -> &[Bytes] {
        match &self.chunks {
            RopeChunks::One(one) if one.is_empty() => &[],
            RopeChunks::One(one) => std::slice::from_ref(one),
            RopeChunks::Many(many) => many,
        }
    }

    /// Returns the number of bytes that are copied when this is appended to a message.
    #[must_use]
    pub fn copied(&self) -> usize {
        let lengths = self.chunks().iter().map(Bytes::len);
        lengths.map(RopeWriter::copied).sum()
    }

    /// Returns everything as one chunk; copies only if there are several.
    #[must_use]
    #[inline]
    pub fn into_bytes(self) -> Bytes {
        match self.chunks {
            RopeChunks::One(one) => one,
            RopeChunks::Many(many) => many.concat().into(),
        }
    }
}

/// An iterator over the chunks.
#[derive(Debug, Clone)]
pub enum Chunks {
    /// At most one more.
    One(Option<Bytes>),
    /// The rest of a list.
    Many(std::vec::IntoIter<Bytes>),
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match self {
            Chunks::One(one) => one.take(),
            Chunks::Many(many) => many.next(),
        }
    }
}

impl IntoIterator for Rope {
    type Item = Bytes;
    type IntoIter = Chunks;

    fn into_iter(self) -> Chunks {
        match self.chunks {
            RopeChunks::One(one) => Chunks::One(Some(one).filter(|one| !one.is_empty())),
            RopeChunks::Many(many) => Chunks::Many(many.into_iter()),
        }
    }
}

impl From<Bytes> for Rope {
    fn from(bytes: Bytes) -> Self {
        Rope {
            length: bytes.len(),
            chunks: RopeChunks::One(bytes),
        }
    }
}

/// A writer of a [`Rope`].
#[derive(Debug)]
pub struct RopeWriter {
    done: Vec<Bytes>,
    open: Vec<u8>,
}

/// A position in a message that is being written.
#[derive(Debug, Clone, Copy)]
pub struct RopePosition(usize);

impl RopeWriter {
    /// Returns a writer that expects about `small` bytes of copied text.
    #[must_use]
    #[inline]
    pub fn with_capacity(small: usize) -> Self {
        RopeWriter {
            done: Vec::new(),
            open: Vec::with_capacity(small),
        }
    }

    /// Returns the number of bytes copied for a value of this length.
    #[inline]
    #[must_use]
    pub const fn copied(length: usize) -> usize {
        if length < COPY_BELOW { length } else { 0 }
    }

    /// Copies a small text.
    #[inline]
    pub fn copy(&mut self, text: &[u8]) {
        self.open.extend_from_slice(text);
    }

    /// Copies one byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        self.open.push(byte);
    }

    /// Writes a text as a JSON string.
    #[inline]
    pub fn string(&mut self, text: &str) {
        encode(text, &mut self.open);
    }

    /// Writes a number.
    pub fn number(&mut self, mut number: u64) {
        let mut digits = [b'0'; 20];
        let mut start = digits.len() - 1;
        while number > 9 {
            digits[start] += (number % 10) as u8;
            number /= 10;
            start -= 1;
        }
        digits[start] += number as u8;
        self.copy(&digits[start..]);
    }

    /// Returns the current position.
    #[inline]
    #[must_use]
    pub fn mark(&self) -> RopePosition {
        RopePosition(self.open.len())
    }

    /// Removes the text copied since a position; only copies may have been written since then.
    pub fn undo(&mut self, mark: RopePosition) {
        self.open.truncate(mark.0);
    }

    /// Appends a value that its owner keeps.
    #[inline(always)]
    pub fn value(&mut self, value: &Json) {
        if value.as_bytes().len() < COPY_BELOW {
            value.copy_to(&mut self.open);
        } else {
            self.append(value.clone().into_bytes());
        }
    }

    /// Appends a part of a value that its owner keeps.
    pub fn part(&mut self, value: &Json, part: Range<usize>) {
        if part.len() < COPY_BELOW {
            self.copy(&value.as_bytes()[part]);
        } else {
            self.append(value.piece(part).into_bytes());
        }
    }

    /// Appends a text: shared if large, copied if that is cheaper.
    #[inline]
    pub fn append(&mut self, text: Bytes) {
        if text.len() < COPY_BELOW {
            return self.copy(&text);
        }
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open).into());
        }
        self.done.push(text);
    }

    /// Appends all chunks of another message.
    #[inline]
    pub fn append_all(&mut self, pieces: Rope) {
        match pieces.chunks {
            RopeChunks::One(one) => self.append(one),
            RopeChunks::Many(many) => {
                for chunk in many {
                    self.append(chunk);
                }
            }
        }
    }

    /// Returns the message.
    #[must_use]
    #[inline]
    pub fn finish(mut self) -> Rope {
        if self.done.is_empty() {
            return Bytes::from(self.open).into();
        }
        if !self.open.is_empty() {
            self.done.push(self.open.into());
        }
        match self.done.len() {
            1 => self.done.swap_remove(0).into(),
            _ => Rope {
                length: self.done.iter().map(Bytes::len).sum(),
                chunks: RopeChunks::Many(self.done),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pieces_are_shared_and_small_ones_become_one() {
        let large = Bytes::from(vec![b'x'; COPY_BELOW]);
        let mut writer = RopeWriter::with_capacity(16);
        writer.copy(b"{\"a\":");
        writer.append(Bytes::from_static(b"1,\"b\":"));
        writer.append(large.clone());
        writer.copy(b"}");
        let pieces = writer.finish();
        assert_eq!(pieces.chunks().len(), 3);
        assert_eq!(
            pieces.chunks()[1].as_ptr(),
            large.as_ptr(),
            "the large piece stays where it is"
        );
        assert_eq!(pieces.len(), pieces.clone().into_bytes().len());
        assert!(pieces.into_bytes().starts_with(b"{\"a\":1,\"b\":xxx"));
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 7, 10, 99, 100, 1 << 53, u64::MAX] {
            let mut writer = RopeWriter::with_capacity(0);
            writer.number(number);
            let written = writer.finish().into_bytes();
            assert_eq!(written, number.to_string().as_bytes());
        }
    }

    #[test]
    fn truncated_text_is_not_sent() {
        let mut writer = RopeWriter::with_capacity(0);
        writer.push(b'{');
        let mark = writer.mark();
        writer.string("a \"b\"");
        writer.undo(mark);
        writer.push(b'}');
        assert_eq!(writer.finish().into_bytes(), "{}");
    }

    #[test]
    fn nothing_written_is_no_piece() {
        assert!(RopeWriter::with_capacity(8).finish().chunks().is_empty());
        assert!(Rope::from(Bytes::new()).is_empty());
    }
}
