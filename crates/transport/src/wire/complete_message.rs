//! Detection of messages that arrived at once with their whole body.
//!
//! Law: the body of a detected message is defined by its `Content-Length` alone (RFC 9112 §6.3); with that length
//! blanked, its head is that of the same message without a body. An unusual message is not detected.

use std::ops::Range;

use super::head::decimal;
use dualgauge_patterns::simd::first_bits;

const CONTENT_LENGTH: &[u8; 14] = b"content-length";
const TRANSFER_ENCODING: &[u8; 17] = b"transfer-encoding";

/// The parts of such a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteMessage {
    /// The length of its head, with the empty line. The rest is its body.
    pub head: usize,
    /// The range of the digits of its length.
    pub length: Range<usize>,
}

impl CompleteMessage {
    /// Detects a complete request; its head must be valid.
    #[must_use]
    pub fn request(message: &[u8]) -> Option<CompleteMessage> {
        let mut length = None;
        for block in (0..message.len()).step_by(64) {
            let mut ends = first_bits(&message[block..], |bytes| bytes.simd_eq(b'\n'));
            while ends != 0 {
                let end = block + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                if end == 0 || message[end - 1] != b'\r' {
                    return None;
                }
                match FramingLine::new(message.get(end + 1..)?) {
                    FramingLine::Last => return CompleteMessage::with(message, end + 3, length?),
                    FramingLine::Length if length.is_none() => {
                        length = Some(end + 2 + CONTENT_LENGTH.len())
                    }
                    FramingLine::Length | FramingLine::Unusual => return None,
                    FramingLine::Other => {}
                }
            }
        }
        None
    }

    /// Returns the message with this head, if its length is correct.
    fn with(message: &[u8], head: usize, length: usize) -> Option<CompleteMessage> {
        let rest = &message[length..head];
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        let start = length + spaces.count();
        let digits = message[start..head]
            .iter()
            .take_while(|byte| **byte != b'\r');
        let length = start..start + digits.count();
        let announced = decimal(&message[length.clone()])?;
        let is_all = announced > 0 && announced == (message.len() - head) as u64;
        is_all.then_some(CompleteMessage { head, length })
    }

    /// Detects a complete response, which is not one to `HEAD`.
    #[must_use]
    pub fn answer(message: &[u8]) -> Option<CompleteMessage> {
        let status = message.strip_prefix(b"HTTP/1.1 ")?.first_chunk()?;
        match status {
            // These have no body, regardless of the length that they announce.
            b"204" | b"304" => None,
            [b'2'..=b'5', _, _] => CompleteMessage::request(message),
            _ => None,
        }
    }

    /// Overwrites the body length with zero.
    pub fn blank(&self, message: &mut [u8]) {
        message[self.length.clone()].fill(b'0');
    }
}

/// The effect of a line on the framing of a message.
enum FramingLine {
    /// The end of the head.
    Last,
    /// The length of the body.
    Length,
    /// Another framing, or a continuation of the line before (RFC 9112 §5.2).
    Unusual,
    Other,
}

impl FramingLine {
    /// Classifies the line at the start.
    #[inline(always)]
    fn new(rest: &[u8]) -> FramingLine {
        match rest {
            [b'\r', b'\n', ..] => FramingLine::Last,
            [b' ' | b'\t', ..] => FramingLine::Unusual,
            [b'C' | b'c', ..] if begins(rest, CONTENT_LENGTH) => {
                match rest.get(CONTENT_LENGTH.len()) {
                    Some(b':') => FramingLine::Length,
                    // White space before the colon, or another name.
                    _ => FramingLine::Unusual,
                }
            }
            [b'T' | b't', ..] if begins(rest, TRANSFER_ENCODING) => FramingLine::Unusual,
            _ => FramingLine::Other,
        }
    }
}

/// Returns whether a line has this name.
fn begins<const SIZE: usize>(line: &[u8], name: &[u8; SIZE]) -> bool {
    let start = line.first_chunk::<SIZE>();
    start.is_some_and(|start| start.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANSWER: &str =
        "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 5\r\nTE: b\r\n\r\n{\"a\"}";

    fn found(message: &str) -> Option<(&str, &str, &str)> {
        let whole = CompleteMessage::answer(message.as_bytes())?;
        let (head, body) = message.split_at(whole.head);
        Some((head, &message[whole.length], body))
    }

    #[test]
    fn a_message_with_all_of_its_body_is_found() {
        let (head, digits, body) = found(ANSWER).unwrap();
        assert_eq!((digits, body), ("5", "{\"a\"}"));
        assert!(head.ends_with("TE: b\r\n\r\n"));
        for line in [
            "content-length:5",
            "CONTENT-LENGTH: \t5",
            "cONTENT-lENGTH:05",
        ] {
            let other = ANSWER.replace("Content-Length: 5", line);
            assert_eq!(found(&other).unwrap().2, "{\"a\"}", "{line}");
        }
        let request = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(
            CompleteMessage::request(request).unwrap().head,
            request.len() - 2
        );
    }

    #[test]
    fn without_its_length_its_head_is_that_of_no_body() {
        let mut message = ANSWER.replace("h: 5", "h: 0005").into_bytes();
        let whole = CompleteMessage::answer(&message).unwrap();
        whole.blank(&mut message);
        let expected = ANSWER.replace("h: 5", "h: 0000");
        assert_eq!(String::from_utf8(message).unwrap(), expected);
    }

    #[test]
    fn what_is_unusual_is_not_found() {
        let others = [
            ANSWER.replace("200", "204"),
            ANSWER.replace("200", "304"),
            ANSWER.replace("200", "103"),
            ANSWER.replace("200", "101"),
            ANSWER.replace("/1.1", "/1.0"),
            ANSWER.replace("h: 5", "h: 4"),
            ANSWER.replace("h: 5", "h: 6"),
            ANSWER.replace("h: 5", "h: 5 "),
            ANSWER.replace("h: 5", "h: +5"),
            ANSWER.replace("h: 5", "h: 5, 5"),
            ANSWER.replace("h: 5", "h: "),
            ANSWER.replace("h: 5", "h: 5\r\nContent-Length: 5"),
            ANSWER.replace("h: 5", "h: 5\r\nTransfer-Encoding: chunked"),
            ANSWER.replace("h: 5", "h: 5\r\n 5"),
            ANSWER.replace("h: 5", "h: 5\r\n\t"),
            ANSWER.replace("TE: b\r\n", "TE: b\n"),
            ANSWER.replace("h: 5\r\n", "h: 5\n"),
            ANSWER.replace("Content-Length", "Content-Lengths"),
            ANSWER.replace("Content-Length", "X-Content-Length"),
            ANSWER.replace("Content-Length: 5", "Content-Length : 5"),
            ANSWER.replace("{\"a\"}", "").replace("h: 5", "h: 0"),
            format!("\r\n{ANSWER}"),
            format!("{ANSWER} "),
        ];
        for other in others {
            assert_eq!(found(&other), None, "{other}");
        }
        for size in 0..ANSWER.len() {
            assert_eq!(found(&ANSWER[..size]), None, "{size}");
        }
    }

    proptest! {
        #[test]
        fn the_body_is_what_is_announced(
            before in prop::collection::vec("[A-Za-z-]{1,20}: [ -~]{0,90}", 0..8),
            behind in prop::collection::vec("[A-Za-z-]{1,20}: [ -~]{0,90}", 0..8),
            body in "[\r\n\\PC]{1,80}",
        ) {
            let line = format!("Content-Length: {}", body.len());
            let lines = [before, vec![line], behind].concat().join("\r\n");
            let message = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n{body}");
            prop_assert_eq!(found(&message).unwrap().2, body);
        }
    }
}
