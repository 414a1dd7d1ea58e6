//! The boundaries of messages on the standard input and output of a child. Used by `stdio`.

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr2;

use dualgauge_model::content_length::{LengthDecoder, LengthFramed, with_length};
use dualgauge_model::plan::Framing;
use dualgauge_net::{DecodedLine, LineDecoder};
use dualgauge_patterns::json::unmarked;

/// A decoder of the messages of a child.
#[derive(Debug)]
pub(super) enum MessageDecoder {
    Lines(LineDecoder),
    Lengths(LengthDecoder),
}

/// A part of the output of a child.
pub(super) enum DecodedMessage {
    Complete(Bytes),
    /// A message that exceeds the limit.
    Overlong,
}

impl MessageDecoder {
    /// Creates a decoder for messages of at most `limit` bytes.
    pub(super) fn new(framing: Framing, limit: usize) -> MessageDecoder {
        match framing {
            Framing::Lines => MessageDecoder::Lines(LineDecoder::new(limit)),
            Framing::ContentLength => MessageDecoder::Lengths(LengthDecoder::new(limit)),
        }
    }

    /// Returns the buffer to read more input into.
    pub(super) fn spare_capacity(&mut self) -> &mut BytesMut {
        match self {
            MessageDecoder::Lines(lines) => lines.spare_capacity(),
            MessageDecoder::Lengths(lengths) => lengths.spare_capacity(),
        }
    }

    /// Returns the next message in the buffer, if it is complete.
    ///
    /// # Errors
    /// Returns the reason why no more messages can be read.
    pub(super) fn next_message(&mut self) -> Result<Option<DecodedMessage>, String> {
        Ok(match self {
            MessageDecoder::Lines(lines) => lines.next_line().map(|line| match line {
                DecodedLine::Complete(line) => {
                    let message = line.slice_ref(line.trim_ascii_start());
                    DecodedMessage::Complete(unmarked(message))
                }
                DecodedLine::Truncated(_) => DecodedMessage::Overlong,
            }),
            MessageDecoder::Lengths(lengths) => {
                let next = lengths.next_message();
                let next = next.map_err(|fault| format!("its output is no message: {fault}"))?;
                next.map(|found| match found {
                    LengthFramed::Message(message) => DecodedMessage::Complete(unmarked(message)),
                    LengthFramed::Overlong => DecodedMessage::Overlong,
                })
            }
        })
    }

    /// Returns a message in the form in which the child reads it.
    pub(super) fn encode(&self, message: &[u8]) -> Bytes {
        match self {
            MessageDecoder::Lines(_) => to_line(message),
            MessageDecoder::Lengths(_) => with_length(message),
        }
    }
}

/// Formats a message as one line. A line end in JSON is white space, so it becomes a space.
fn to_line(message: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(message.len() + 1);
    line.put_slice(message);
    if memchr2(b'\n', b'\r', &line).is_some() {
        for byte in line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
    }
    line.put_u8(b'\n');
    line.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(to_line(b"{\n\"a\":\r\n1}"), "{ \"a\":  1}\n");
        assert_eq!(to_line(b"{}"), "{}\n");
    }

    #[test]
    fn a_message_with_its_length_is_unchanged() {
        let lengths = MessageDecoder::new(Framing::ContentLength, 9);
        assert_eq!(lengths.encode(b"{\n}"), "Content-Length: 3\r\n\r\n{\n}");
    }
}
