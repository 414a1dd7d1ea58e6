//! Bytes to be sent later: small parts joined in one buffer, and at most one large piece that is not copied.
//!
//! One joined part costs the kernel less than a check of each.
//!
//! Used by `coalescing_socket` and `write_state`.

use std::fmt;
use std::io::IoSlice;
use std::ptr;

use bytes::{Buf, Bytes};

/// Deferred bytes in the order of writing.
#[derive(Default)]
pub(super) struct DeferredWrites {
    small: Vec<u8>,
    /// The large piece, and the number of small bytes that precede it.
    piece: Option<(usize, Bytes)>,
}

/// Prints the length only: the bytes may contain credentials.
impl fmt::Debug for DeferredWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredWrites")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl DeferredWrites {
    pub(super) fn len(&self) -> usize {
        self.small.len() + self.piece.as_ref().map_or(0, |(_, piece)| piece.len())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.small.is_empty() && self.piece.is_none()
    }

    /// Returns the number of small bytes after adding these parts: all but the piece, if it is the first one and
    /// among them.
    pub(super) fn small_with(&self, parts: &[IoSlice<'_>], piece: Option<&Bytes>) -> usize {
        let piece = piece.filter(|_| self.piece.is_none());
        let mut small = self.small.len();
        for part in parts {
            small += part.len();
        }
        match piece {
            Some(piece) if parts.iter().any(|part| is_same(part, piece)) => small - piece.len(),
            _ => small,
        }
    }

    /// Appends the parts. The piece is not copied if it is the first one and among them.
    pub(super) fn take(&mut self, parts: &[IoSlice<'_>], mut piece: Option<Bytes>) {
        for part in parts {
            match piece.take_if(|piece| self.piece.is_none() && is_same(part, piece)) {
                Some(piece) => self.piece = Some((self.small.len(), piece)),
                None => self.small.extend_from_slice(part),
            }
        }
    }

    /// Passes the deferred bytes to `to`, as parts of a vectored write.
    pub(super) fn put<T>(&self, to: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let Some((before, piece)) = &self.piece else {
            return to(&[IoSlice::new(&self.small)]);
        };
        let (before, after) = self.small.split_at(*before);
        let parts = [before, piece, after].map(IoSlice::new);
        let first = usize::from(before.is_empty());
        let last = parts.len() - usize::from(after.is_empty());
        to(&parts[first..last])
    }

    /// Removes `count` bytes that were sent.
    pub(super) fn advance(&mut self, mut count: usize) {
        if let Some((before, piece)) = &mut self.piece {
            let small = count.min(*before);
            self.small.drain(..small);
            *before -= small;
            count -= small;
            let large = count.min(piece.len());
            piece.advance(large);
            count -= large;
            if piece.is_empty() {
                self.piece = None;
            }
        }
        if count == self.small.len() {
            self.small.clear();
        } else {
            self.small.drain(..count);
        }
    }

    /// Takes a buffer from `new_buffer` if there is none.
    pub(super) fn make_space(&mut self, new_buffer: impl FnOnce() -> Vec<u8>) {
        if self.small.capacity() == 0 {
            self.small = new_buffer();
        }
    }

    /// Takes the buffer for reuse.
    pub(super) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.small)
    }
}

/// Returns true when `part` is the memory of `piece`.
fn is_same(part: &[u8], piece: &Bytes) -> bool {
    ptr::eq(part, &raw const **piece)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn given(late: &DeferredWrites) -> Vec<u8> {
        late.put(|parts| parts.iter().flat_map(|part| part.to_vec()).collect())
    }

    #[test]
    fn a_piece_is_known_by_its_memory() {
        let piece = Bytes::from(b"piece".to_vec());
        let parts = [b"a", &*piece, b"b"].map(IoSlice::new);
        let mut late = DeferredWrites::default();
        assert_eq!(late.small_with(&parts, None), 7);
        assert_eq!(late.small_with(&parts, Some(&piece.slice(..4))), 7);
        assert_eq!(
            late.small_with(&parts, Some(&Bytes::from_static(b"piece"))),
            7
        );
        assert_eq!(late.small_with(&parts, Some(&piece)), 2);
        late.take(&parts, Some(piece.clone()));
        assert_eq!((late.len(), late.small.len()), (7, 2));
        assert_eq!(given(&late), b"apieceb");
        // At most one piece is kept without a copy.
        assert_eq!(late.small_with(&parts, Some(&piece)), 9);
        late.take(&parts, Some(piece.clone()));
        assert_eq!(given(&late), b"apiecebapieceb");
        assert_eq!(late.small.len(), 9);
    }

    proptest! {
        #[test]
        fn bytes_go_once_each_and_in_order(
            before in "[a-c]{0,9}",
            piece in "[d-f]{1,9}",
            after in "[g-i]{0,9}",
            counts in prop::collection::vec(0..9_usize, 0..9),
        ) {
            let all = format!("{before}{piece}{after}");
            let piece = Bytes::from(piece);
            let mut late = DeferredWrites::default();
            let parts = [before.as_bytes(), &piece, after.as_bytes()].map(IoSlice::new);
            late.take(&parts, Some(piece.clone()));
            let mut written = 0;
            for count in counts {
                let count = count.min(late.len());
                late.advance(count);
                written += count;
                prop_assert_eq!(given(&late), &all.as_bytes()[written..]);
                prop_assert_eq!(late.is_empty(), written == all.len());
            }
        }
    }
}
