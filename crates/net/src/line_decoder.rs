//! A decoder that splits bytes into lines of limited length.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// The minimum capacity reserved when the buffer grows.
const CHUNK: usize = 16 * 1024;

/// A line decoder with its buffered input.
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// The length of the buffer's prefix that contains no line break.
    seen: usize,
    limit: usize,
    /// True while the rest of an oversize line is skipped.
    is_skipping: bool,
}

/// One line, without its line break and white space at its end.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodedLine {
    /// A complete line that is not empty.
    Complete(Bytes),
    /// The beginning of a line that exceeds the limit.
    Truncated(Bytes),
}

impl LineDecoder {
    /// Creates a decoder for lines of at most `limit` bytes.
    pub fn new(limit: usize) -> LineDecoder {
        LineDecoder {
            buffer: BytesMut::new(),
            seen: 0,
            limit,
            is_skipping: false,
        }
    }

    /// Returns the buffer to read more input into.
    pub fn spare_capacity(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            self.buffer.reserve(CHUNK);
        }
        &mut self.buffer
    }

    /// Returns the next line in the buffer.
    pub fn next_line(&mut self) -> Option<DecodedLine> {
        loop {
            let end = memchr(b'\n', &self.buffer[self.seen..]).map(|end| self.seen + end);
            let Some(end) = end else {
                self.seen = self.buffer.len();
                return self.cut();
            };
            let line = self.buffer.split_to(end + 1).freeze();
            self.seen = 0;
            if std::mem::take(&mut self.is_skipping) {
                continue;
            }
            let line = line.slice_ref(line.trim_ascii_end());
            if line.len() > self.limit {
                return Some(DecodedLine::Truncated(line.slice(..self.limit)));
            }
            if !line.is_empty() {
                return Some(DecodedLine::Complete(line));
            }
        }
    }

    /// Returns the beginning of an unfinished line that already exceeds the limit.
    fn cut(&mut self) -> Option<DecodedLine> {
        if self.is_skipping {
            self.buffer.clear();
            self.seen = 0;
        }
        if self.buffer.len() <= self.limit {
            return None;
        }
        self.is_skipping = true;
        let whole = std::mem::take(&mut self.buffer).freeze();
        self.seen = 0;
        Some(DecodedLine::Truncated(whole.slice(..self.limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(limit: usize, pieces: &[&str]) -> Vec<(char, String)> {
        let mut lines = LineDecoder::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            lines.spare_capacity().extend_from_slice(piece.as_bytes());
            while let Some(line) = lines.next_line() {
                let (kind, line) = match line {
                    DecodedLine::Complete(line) => ('w', line),
                    DecodedLine::Truncated(line) => ('c', line),
                };
                found.push((kind, String::from_utf8(line.to_vec()).unwrap()));
            }
        }
        assert!(lines.buffer.len() <= limit);
        found
    }

    fn whole(lines: &[&str]) -> Vec<(char, String)> {
        lines.iter().map(|line| ('w', (*line).to_owned())).collect()
    }

    #[test]
    fn lines_are_whole_however_they_come() {
        assert_eq!(
            read(9, &["a\nbc\r\n\n \nd", "e", "\n"]),
            whole(&["a", "bc", "de"])
        );
        assert_eq!(read(9, &["  a \t\n \n"]), whole(&["  a"]));
        assert_eq!(read(9, &["", "a", "b\n\n"]), whole(&["ab"]));
    }

    #[test]
    fn an_overlong_line_is_reported_once() {
        let cut = ('c', "abcd".to_owned());
        let then = |text: &str| vec![cut.clone(), ('w', text.to_owned())];
        assert_eq!(read(4, &["abcdef\nxy\n"]), then("xy"));
        assert_eq!(read(4, &["abc", "def", "ghi", "j\nxy\n"]), then("xy"));
        assert_eq!(read(4, &["abcd", "\nefgh\n"]), whole(&["abcd", "efgh"]));
    }
}
