//! The letter case of a response's header names, recorded from its bytes.

use std::mem;

use memchr::memchr;

use super::class::trimmed;
use super::field::Field;
use super::header_case::{HeaderCase, HeaderCaseReader};
use super::response::is_interim;

/// A recorder of header case in responses. It does not check that the bytes are a valid response.
#[derive(Debug, Default)]
pub struct ResponseCaseReader {
    names: HeaderCaseReader,
    part: HeadPart,
    /// The incomplete line.
    held: Vec<u8>,
}

/// The part of the head that the next line belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum HeadPart {
    Start,
    /// An interim response, which another one follows (RFC 9110 §15.2).
    Interim,
    Fields,
    /// The rest, which is not read.
    #[default]
    Over,
}

impl ResponseCaseReader {
    /// Begins a response.
    pub fn begin(&mut self) {
        self.names.begin();
        self.part = HeadPart::Start;
    }

    /// Reads bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        // `consumed` bytes have been read. The names before `fields_end` are stored before this call returns: its bytes
        // are gone at the next one.
        let (mut consumed, mut fields_end) = (0, 0);
        while self.part != HeadPart::Over {
            if self.part == HeadPart::Fields
                && self.held.is_empty()
                && let Some(field) = Field::parse_common(&bytes[consumed..])
            {
                self.names
                    .read_at(field.classes, field.name_len, field.line_len);
                consumed += field.line_len;
                fields_end = consumed;
                continue;
            }
            let Some(length) = memchr(b'\n', &bytes[consumed..]) else {
                break;
            };
            let end = consumed + length + 1;
            if self.held.is_empty() {
                self.read_line(&bytes[consumed..], length);
            } else {
                let mut whole = mem::take(&mut self.held);
                whole.extend_from_slice(&bytes[consumed..end]);
                self.read_line(&whole, whole.len() - 1);
                self.names.store(&whole, false);
            }
            if self.names.has_names_to_keep() && self.part == HeadPart::Fields {
                fields_end = end;
            }
            consumed = end;
        }
        let is_whole = self.part == HeadPart::Over;
        self.names.store(&bytes[..fields_end], is_whole);
        if !is_whole {
            self.held.extend_from_slice(&bytes[consumed..]);
        }
    }

    /// Reads the next line: the first `length` bytes of `rest`.
    fn read_line(&mut self, rest: &[u8], length: usize) {
        let line = &rest[..length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.part = match (self.part, line) {
            (HeadPart::Start | HeadPart::Interim, []) => HeadPart::Start,
            (HeadPart::Start, first) if is_interim(first) => HeadPart::Interim,
            (HeadPart::Start, _) => HeadPart::Fields,
            (HeadPart::Fields, []) => HeadPart::Over,
            (HeadPart::Fields, line) => {
                let name = memchr(b':', line).unwrap_or(0);
                // Parsers remove white space before the colon (RFC 9112 §5.1).
                let name = trimmed(&line[..name]).len();
                self.names.read(rest, name, length + 1);
                HeadPart::Fields
            }
            (part @ (HeadPart::Interim | HeadPart::Over), _) => part,
        };
    }

    /// Takes the case of the names once the head is complete; `None` if all are in lower case.
    pub fn take(&mut self) -> Option<HeaderCase> {
        self.part = HeadPart::Over;
        self.held = Vec::new();
        let header_case = self.names.header_case();
        self.names.begin();
        header_case
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::header_case::tests::spelled;

    /// Returns `head` with the letter case of the names in `answer`, which is read in chunks of `size` bytes.
    fn answered(answer: &str, size: usize, head: &str) -> String {
        let mut reading = ResponseCaseReader::default();
        reading.feed(b"HTTP/1.1 200 OK\r\nB: not recorded\r\n\r\n");
        reading.begin();
        answer
            .as_bytes()
            .chunks(size)
            .for_each(|piece| reading.feed(piece));
        let mut head = head.as_bytes().to_vec();
        if let Some(header_case) = reading.take() {
            header_case.apply(&mut head);
        }
        String::from_utf8(head).unwrap()
    }

    #[test]
    fn an_answer_is_reported_once() {
        let mut reading = ResponseCaseReader::default();
        reading.begin();
        reading.feed(b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\n");
        assert_eq!(reading.take(), spelled(&["A"]));
        // The next response is not recorded.
        reading.feed(b"HTTP/1.1 200 OK\r\nB: 1\r\n\r\n");
        assert_eq!(reading.take(), None);
    }

    #[test]
    fn an_answer_is_read_in_any_pieces_and_its_body_is_not() {
        let answer = "\r\nHTTP/1.1 103 Early Hints\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\nb: 2\nA: 3\r\n\r\nC: 4\r\n\r\n";
        let head = "HTTP/1.1 200 OK\r\na: 1\r\na: 2\r\nb: 3\r\nc: 4\r\n\r\n";
        let expected = "HTTP/1.1 200 OK\r\nA: 1\r\na: 2\r\nb: 3\r\nc: 4\r\n\r\n";
        for size in 1..answer.len() {
            assert_eq!(answered(answer, size, head), expected, "{size}");
        }
        let switched = "HTTP/1.1 101 Switching Protocols\r\nb: 0\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\r\nB: 1\r\n\r\n";
        assert_eq!(answered(switched, 100, head), expected);
    }
}
