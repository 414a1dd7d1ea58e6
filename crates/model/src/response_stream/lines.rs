//! Splits a body of JSON lines as it arrives.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

/// A reader of lines.
#[derive(Debug)]
pub(super) struct LineReader {
    held: BytesMut,
    /// The offset up to which the buffer was searched for a line feed.
    searched: usize,
    limit: usize,
    /// True within a line larger than the limit, whose bytes are discarded.
    is_losing: bool,
}

/// A piece of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end; never blank.
    Whole(Bytes),
    /// A line larger than the limit, which was discarded.
    Oversize,
    /// The rest of a body without a line feed.
    Unfinished(Bytes),
}

impl LineReader {
    pub(super) fn new(limit: usize) -> LineReader {
        LineReader {
            held: BytesMut::new(),
            searched: 0,
            limit,
            is_losing: false,
        }
    }

    pub(super) fn feed(&mut self, chunk: &[u8]) {
        self.held.extend_from_slice(chunk);
    }

    /// Returns the next line, if one is complete. Blank lines are skipped.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let Some(at) = memchr(b'\n', &self.held[self.searched..]) else {
                self.searched = self.held.len();
                let is_new_loss = !self.is_losing && self.held.len() > self.limit;
                if is_new_loss || self.is_losing {
                    self.held.clear();
                    self.searched = 0;
                    self.is_losing = true;
                }
                return is_new_loss.then_some(Line::Oversize);
            };
            let end = self.searched + at;
            let line = self.held.split_to(end).freeze();
            self.held.advance(1);
            self.searched = 0;
            if std::mem::take(&mut self.is_losing) {
                continue;
            }
            if line.len() > self.limit {
                return Some(Line::Oversize);
            }
            let start = line.len() - line.trim_ascii_start().len();
            let line = line.slice(start..start + line.trim_ascii().len());
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// Ends the body, and returns the rest of it.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let rest = self.held.split().freeze();
        self.searched = 0;
        let start = rest.len() - rest.trim_ascii_start().len();
        let rest = rest.slice(start..start + rest.trim_ascii().len());
        (!self.is_losing && !rest.is_empty()).then_some(Line::Unfinished(rest))
    }

    /// Returns the number of buffered bytes.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(text: &[u8], size: usize, limit: usize) -> Vec<Line> {
        let mut reader = LineReader::new(limit);
        let mut lines = Vec::new();
        for chunk in text.chunks(size) {
            reader.feed(chunk);
            while let Some(line) = reader.next() {
                lines.push(line);
            }
            assert!(reader.held() <= limit, "too much is held");
        }
        lines.extend(reader.finish());
        lines
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_are_split_and_blank_ones_are_skipped() {
        let read = lines(b"1\r\n\n [2, 3] \n{\"a\":4}", 3, 100);
        let rest = Line::Unfinished(Bytes::from_static(b"{\"a\":4}"));
        assert_eq!(read, [whole("1"), whole("[2, 3]"), rest]);
        let long = lines(b"1\n123456789\n2\n", 2, 4);
        assert_eq!(long, [whole("1"), Line::Oversize, whole("2")]);
        assert_eq!(lines(b"123456789", 2, 4), [Line::Oversize]);
    }

    proptest! {
        #[test]
        fn the_lines_do_not_depend_on_the_chunks(
            parts in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "1", "[2]", " "]), 0..30),
            size in 1..9_usize,
            limit in 1..9_usize,
        ) {
            let text = parts.concat();
            let once = lines(text.as_bytes(), usize::MAX, text.len().max(limit));
            let cut = lines(text.as_bytes(), size, text.len().max(limit));
            prop_assert_eq!(once, cut);
            let byte = lines(text.as_bytes(), 1, limit);
            prop_assert_eq!(lines(text.as_bytes(), size.min(limit), limit), byte);
        }
    }
}
