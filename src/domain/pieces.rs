//! Bytes to be sent, as a few shared pieces: what is written anew is small, what is carried stays where it is.

use bytes::{Bytes, BytesMut};

/// Below this a carried piece is copied: one write of one buffer is cheaper than a list of them.
const COPY_BELOW: usize = 1024;

/// A message in pieces, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    chunks: Vec<Bytes>,
    length: usize,
}

impl Pieces {
    /// The whole length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The pieces in order, none of them empty.
    #[must_use]
    pub fn chunks(&self) -> &[Bytes] {
        &self.chunks
    }

    /// The pieces, given away.
    #[must_use]
    pub fn into_chunks(self) -> Vec<Bytes> {
        self.chunks
    }

    /// Everything as one piece; copies only where there are several.
    #[must_use]
    pub fn into_bytes(mut self) -> Bytes {
        match self.chunks.len() {
            0 => Bytes::new(),
            1 => self.chunks.swap_remove(0),
            _ => self.chunks.concat().into(),
        }
    }
}

impl From<Bytes> for Pieces {
    fn from(bytes: Bytes) -> Self {
        let length = bytes.len();
        Pieces {
            chunks: if length == 0 { Vec::new() } else { vec![bytes] },
            length,
        }
    }
}

/// Writes [`Pieces`].
#[derive(Debug)]
pub struct PiecesWriter {
    done: Vec<Bytes>,
    open: BytesMut,
    length: usize,
}

impl PiecesWriter {
    /// A writer that expects about `small` bytes of copied text.
    #[must_use]
    pub fn with_capacity(small: usize) -> Self {
        PiecesWriter {
            done: Vec::new(),
            open: BytesMut::with_capacity(small),
            length: 0,
        }
    }

    /// Copies a small text.
    #[inline]
    pub fn copy(&mut self, text: &[u8]) {
        self.open.extend_from_slice(text);
        self.length += text.len();
    }

    /// Carries a text: shared where it is large, copied where that is cheaper.
    pub fn carry(&mut self, text: Bytes) {
        if text.len() < COPY_BELOW {
            return self.copy(&text);
        }
        self.length += text.len();
        if !self.open.is_empty() {
            self.done.push(self.open.split().freeze());
        }
        self.done.push(text);
    }

    /// Carries all pieces of another message.
    pub fn carry_all(&mut self, pieces: Pieces) {
        for chunk in pieces.chunks {
            self.carry(chunk);
        }
    }

    /// The message.
    #[must_use]
    pub fn finish(mut self) -> Pieces {
        if !self.open.is_empty() {
            self.done.push(self.open.freeze());
        }
        Pieces {
            chunks: self.done,
            length: self.length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pieces_are_shared_and_small_ones_become_one() {
        let large = Bytes::from(vec![b'x'; COPY_BELOW]);
        let mut writer = PiecesWriter::with_capacity(16);
        writer.copy(b"{\"a\":");
        writer.carry(Bytes::from_static(b"1,\"b\":"));
        writer.carry(large.clone());
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
    fn nothing_written_is_no_piece() {
        assert!(PiecesWriter::with_capacity(8).finish().chunks().is_empty());
        assert!(Pieces::from(Bytes::new()).is_empty());
    }
}
