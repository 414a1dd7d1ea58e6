//! Laws of the stream reader, as functions that fuzzing and tests run on any bytes.

use super::{EventContent, RawEvent, SseReader, StreamPiece};

/// The result of reading a stream, independent of its chunks: pieces between events are joined, each event has its
/// whole end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) pieces: Vec<Traced>,
    /// All bytes that were returned.
    pub(super) passed: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Traced {
    Between(Vec<u8>),
    Event(Vec<u8>),
    Oversize,
    Unfinished(Vec<u8>),
}

/// Reads a stream in chunks of the given sizes, the last of which is repeated.
pub(super) fn trace(limit: usize, input: &[u8], sizes: &[usize]) -> Trace {
    let mut reader = SseReader::new(limit);
    let mut trace = Trace::default();
    let mut sizes = sizes.iter().copied();
    let (mut size, mut rest) = (1, input);
    while !rest.is_empty() {
        size = sizes.next().unwrap_or(size).max(1);
        let (chunk, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        reader.feed(chunk);
        while let Some(piece) = reader.next() {
            trace.note(piece);
        }
        assert!(reader.held() <= limit.max(3) + 1, "too much is held");
    }
    if let Some(piece) = reader.finish() {
        trace.note(piece);
    }
    trace
}

impl Trace {
    fn note(&mut self, piece: StreamPiece) {
        match piece {
            StreamPiece::Between(bytes) => {
                self.passed.extend_from_slice(&bytes);
                if let Some(Traced::Between(before)) = self.pieces.last_mut() {
                    before.extend_from_slice(&bytes);
                } else {
                    self.pieces.push(Traced::Between(bytes.to_vec()));
                }
            }
            StreamPiece::Event(bytes) => {
                self.passed.extend_from_slice(&bytes);
                self.pieces.push(Traced::Event(bytes.to_vec()));
            }
            StreamPiece::Feed(feed) => match self.pieces.last_mut() {
                Some(Traced::Event(event)) => {
                    self.passed.extend_from_slice(&feed);
                    event.extend_from_slice(&feed);
                }
                Some(Traced::Oversize) => {}
                last @ (Some(Traced::Between(_) | Traced::Unfinished(_)) | None) => {
                    assert_eq!(last, None, "a line feed belongs to an event");
                }
            },
            StreamPiece::Oversize => self.pieces.push(Traced::Oversize),
            StreamPiece::Unfinished(bytes) => {
                self.passed.extend_from_slice(&bytes);
                self.pieces.push(Traced::Unfinished(bytes.to_vec()));
            }
        }
    }
}

/// Checks that the result does not depend on the chunks of a stream, that only oversized events are lost, and that a
/// rewritten event reads back as written.
///
/// # Panics
///
/// If a check fails: this is the body of a fuzz target.
pub fn check_any_cut(data: &[u8]) {
    // The chunk boundary depends on the input, so that a fuzzer can move it.
    let cut = data.iter().fold(data.len(), |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    for limit in [usize::MAX / 2, 24, 5] {
        let whole = trace(limit, data, &[usize::MAX]);
        for sizes in [&[1][..], &[cut % 16, 1 + cut / 16 % 5], &[cut % 256, 200]] {
            let cut = trace(limit, data, sizes);
            assert_eq!(cut, whole, "cut into pieces of {sizes:?} with {limit}");
        }
        if !whole.pieces.contains(&Traced::Oversize) && limit > data.len() {
            assert_eq!(whole.passed, data, "a stream is its pieces");
        }
        for piece in &whole.pieces {
            if let Traced::Event(event) = piece {
                check_rewriting(event);
            }
        }
    }
}

fn check_rewriting(event: &[u8]) {
    let Some(block) = RawEvent::read(&bytes::Bytes::copy_from_slice(event)) else {
        return;
    };
    let Some(data) = block.data() else { return };
    let same = EventContent {
        event: block.event(),
        data: &data,
        id: None,
    };
    assert!(reads_as(&block, same), "the same content");
    let other = EventContent {
        event: "other",
        data: "{\n}",
        id: Some("7"),
    };
    assert!(reads_as(&block, other), "another content");
    let left = block.emptied();
    let emptied = RawEvent::read(&left.into());
    assert!(emptied.is_some_and(|left| left.data().is_none() && left.id() == block.id()));
}

/// Returns whether the event has a content after it was rewritten with that content.
fn reads_as(block: &RawEvent, content: EventContent<'_>) -> bool {
    let Ok(written) = block.rewritten(content) else {
        return false;
    };
    let Some(read) = RawEvent::read(&written.into()) else {
        return false;
    };
    read.event() == content.event
        && read.data().as_deref() == Some(content.data)
        && read.id() == content.id.or(block.id())
}
