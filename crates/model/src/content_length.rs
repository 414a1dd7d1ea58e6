//! Messages framed by a `Content-Length` header (Language Server Protocol 3.17, "Base Protocol"): a parser and a writer.
//!
//! A header is lines of `name: value`, with one `Content-Length`, up to an empty line. Laws: the messages do not depend
//! on how the input is cut; a message that was written is read again; the header and the message are bounded, and no
//! memory is reserved for a length before the bytes arrive.
//!
//! Used by `config`, `plan` and `upstream::stdio`.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

/// The maximum size of a header, in bytes.
pub const HEADER_LIMIT: usize = 4096;

/// The minimum capacity reserved when the buffer grows.
const CHUNK: usize = 16 * 1024;

const CONTENT_LENGTH: &str = "content-length";

/// A part of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LengthFramed {
    /// A message.
    Message(Bytes),
    /// A message that exceeds the limit; it is skipped.
    Overlong,
}

/// The reason why the input has no further messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LengthFault {
    /// The header exceeds [`HEADER_LIMIT`].
    #[error("a header is longer than {HEADER_LIMIT} bytes")]
    HeaderTooLong,
    /// A line of a header is not a name and a value.
    #[error("a line of a header is not `name: value`")]
    NotAField,
    /// The length is missing, is given twice, or is not a number.
    #[error("a header does not have one `Content-Length` that is a number")]
    NoLength,
}

/// The position in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// In a header of which `read` bytes are consumed.
    Header { read: usize, length: Option<u64> },
    /// In a message with this length, which is in the limit.
    Message(usize),
    /// In a message that is skipped: this number of bytes is left.
    Skipped(u64),
    /// After a fault.
    Broken(LengthFault),
}

const START: Position = Position::Header {
    read: 0,
    length: None,
};

/// A parser with its buffered input.
#[derive(Debug)]
pub struct LengthDecoder {
    buffer: BytesMut,
    /// The length of the buffer's prefix that contains no line break, in a header.
    seen: usize,
    position: Position,
    limit: usize,
}

impl LengthDecoder {
    /// Creates a parser for messages of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> LengthDecoder {
        LengthDecoder {
            buffer: BytesMut::new(),
            seen: 0,
            position: START,
            limit,
        }
    }

    /// Returns the buffer to read more input into.
    pub fn spare_capacity(&mut self) -> &mut BytesMut {
        if self.buffer.capacity() - self.buffer.len() < CHUNK / 4 {
            self.buffer.reserve(CHUNK);
        }
        &mut self.buffer
    }

    /// Returns the next message in the buffer; `None` if more input is needed.
    ///
    /// # Errors
    /// Returns a [`LengthFault`] on this call and all later ones: the start of the next message is unknown.
    pub fn next_message(&mut self) -> Result<Option<LengthFramed>, LengthFault> {
        loop {
            match self.position {
                Position::Broken(fault) => return Err(fault),
                Position::Header { read, length } => {
                    if !self.read_line(read, length)? {
                        return Ok(None);
                    }
                    if let Position::Skipped(_) = self.position {
                        return Ok(Some(LengthFramed::Overlong));
                    }
                }
                Position::Message(length) => {
                    if self.buffer.len() < length {
                        return Ok(None);
                    }
                    self.position = START;
                    let message = self.buffer.split_to(length).freeze();
                    return Ok(Some(LengthFramed::Message(message)));
                }
                Position::Skipped(left) => {
                    let here = usize::try_from(left).unwrap_or(usize::MAX);
                    let here = here.min(self.buffer.len());
                    self.buffer.advance(here);
                    let left = left - here as u64;
                    if left > 0 {
                        self.position = Position::Skipped(left);
                        return Ok(None);
                    }
                    self.position = START;
                }
            }
        }
    }

    /// Reads a line of a header. Returns false if it is not complete.
    fn read_line(&mut self, read: usize, length: Option<u64>) -> Result<bool, LengthFault> {
        let rest = self.buffer.get(self.seen..).unwrap_or_default();
        let end = memchr(b'\n', rest).map(|end| self.seen + end + 1);
        if read + end.unwrap_or(self.buffer.len()) > HEADER_LIMIT {
            return Err(self.fail(LengthFault::HeaderTooLong));
        }
        let Some(end) = end else {
            self.seen = self.buffer.len();
            return Ok(false);
        };
        self.seen = 0;
        let line = self.buffer.split_to(end);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        self.position = match (line.is_empty(), length) {
            (true, None) => return Err(self.fail(LengthFault::NoLength)),
            (true, Some(length)) => match usize::try_from(length) {
                Ok(length) if length <= self.limit => Position::Message(length),
                Ok(_) | Err(_) => Position::Skipped(length),
            },
            (false, length) => {
                let length = field(line, length).map_err(|fault| self.fail(fault))?;
                let read = read + end;
                Position::Header { read, length }
            }
        };
        Ok(true)
    }

    fn fail(&mut self, fault: LengthFault) -> LengthFault {
        self.position = Position::Broken(fault);
        self.buffer = BytesMut::new();
        fault
    }
}

/// Reads a field. Returns the length, if it is known by now.
fn field(line: &[u8], known: Option<u64>) -> Result<Option<u64>, LengthFault> {
    let line = std::str::from_utf8(line).map_err(|_| LengthFault::NotAField)?;
    let (name, value) = line.split_once(':').ok_or(LengthFault::NotAField)?;
    if name.is_empty() || name.contains(|char: char| char.is_whitespace()) {
        return Err(LengthFault::NotAField);
    }
    if !name.eq_ignore_ascii_case(CONTENT_LENGTH) {
        return Ok(known);
    }
    let digits = value.trim_matches([' ', '\t']);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match (digits.parse(), known) {
        (Ok(length), None) if is_number => Ok(Some(length)),
        (Ok(_) | Err(_), _) => Err(LengthFault::NoLength),
    }
}

/// Returns a message with its header.
#[must_use]
pub fn with_length(message: &[u8]) -> Bytes {
    let header = format!("Content-Length: {}\r\n\r\n", message.len());
    [header.as_bytes(), message].concat().into()
}

/// Panics if the messages in `data` depend on how it is cut, or are not read again after they were written. The first
/// byte selects the limit.
pub fn check_any_cut(data: &[u8]) {
    let (Some(&limit), rest) = (data.first(), data.get(1..).unwrap_or_default()) else {
        return;
    };
    let limit = usize::from(limit);
    let whole = read(limit, [rest]);
    for size in [1, 2, 7] {
        assert_eq!(read(limit, rest.chunks(size)), whole, "pieces of {size}");
    }
    for part in &whole.0 {
        if let LengthFramed::Message(message) = part {
            assert!(message.len() <= limit, "the limit holds");
            let again = read(limit, [&*with_length(message)]);
            assert_eq!(again, (vec![part.clone()], None), "it is read again");
        }
    }
}

type Read = (Vec<LengthFramed>, Option<LengthFault>);

fn read<'d>(limit: usize, pieces: impl IntoIterator<Item = &'d [u8]>) -> Read {
    let mut decoder = LengthDecoder::new(limit);
    let mut found = Vec::new();
    for piece in pieces {
        decoder.spare_capacity().extend_from_slice(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(part)) => found.push(part),
                Ok(None) => break,
                Err(fault) => return (found, Some(fault)),
            }
        }
        assert!(
            decoder.buffer.len() <= limit.max(HEADER_LIMIT),
            "the buffer is bounded"
        );
    }
    (found, None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(text: &str) -> LengthFramed {
        LengthFramed::Message(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn read_text(limit: usize, text: &str) -> Read {
        read(limit, [text.as_bytes()])
    }

    #[test]
    fn headers_may_have_other_fields_and_letter_cases() {
        let text = "Content-Length: 2\r\n\r\n{}Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n\
            content-length:3 \r\n\r\n[1]Content-Length: 0\n\n";
        let wanted = vec![message("{}"), message("[1]"), message("")];
        assert_eq!(read_text(9, text), (wanted, None));
    }

    #[test]
    fn an_overlong_message_is_skipped() {
        let text = "Content-Length: 10\r\n\r\n0123456789Content-Length: 2\r\n\r\n{}";
        assert_eq!(
            read_text(9, text),
            (vec![LengthFramed::Overlong, message("{}")], None)
        );
        let text = format!("Content-Length: {}\r\n\r\nx", u64::MAX);
        assert_eq!(read_text(9, &text), (vec![LengthFramed::Overlong], None));
    }

    #[test]
    fn what_is_no_header_is_a_fault_for_good() {
        let long = format!("X: {}", "y".repeat(HEADER_LIMIT));
        for (text, fault) in [
            ("\r\n", LengthFault::NoLength),
            ("X: 1\r\n\r\n", LengthFault::NoLength),
            ("Content-Length: \r\n\r\n", LengthFault::NoLength),
            ("Content-Length: +1\r\n\r\n", LengthFault::NoLength),
            (
                "Content-Length: 99999999999999999999\r\n\r\n",
                LengthFault::NoLength,
            ),
            (
                "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
                LengthFault::NoLength,
            ),
            ("starting up\r\n", LengthFault::NotAField),
            ("Content-Length : 1\r\n\r\n", LengthFault::NotAField),
            (&long, LengthFault::HeaderTooLong),
        ] {
            assert_eq!(read_text(9, text), (Vec::new(), Some(fault)), "{text}");
        }
        let mut decoder = LengthDecoder::new(9);
        decoder.spare_capacity().extend_from_slice(b"\n");
        assert!(decoder.next_message().is_err());
        decoder
            .spare_capacity()
            .extend_from_slice(&with_length(b"{}"));
        assert_eq!(decoder.next_message(), Err(LengthFault::NoLength));
    }

    proptest! {
        #[test]
        fn messages_do_not_depend_on_how_they_are_cut(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
            tail in prop::collection::vec(any::<u8>(), 0..40),
            limit in any::<u8>(),
        ) {
            let mut data = vec![limit];
            for message in &messages {
                data.extend_from_slice(&with_length(message));
            }
            data.extend_from_slice(&tail);
            check_any_cut(&data);
        }

        #[test]
        fn written_messages_are_read_again(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
            size in 1_usize..50,
        ) {
            let data: Vec<u8> = messages.iter().flat_map(|message| with_length(message)).collect();
            let wanted: Vec<_> = messages.into_iter().map(|message| LengthFramed::Message(message.into())).collect();
            prop_assert_eq!(read(300, data.chunks(size)), (wanted, None));
        }
    }
}
