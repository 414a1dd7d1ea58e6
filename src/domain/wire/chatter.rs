//! What a client sends over HTTP/2 besides calls (RFC 9113 §4.1): frames that cost the other end work and bring nothing.
//!
//! Only the heads of frames are read, as the bytes come by; what they mean is judged elsewhere. Law: how the bytes are cut
//! into pieces changes nothing.

/// What a client says before its first frame (§3.4).
const PREFACE: usize = 24;
/// The head of a frame.
const HEAD: usize = 9;

const DATA: u8 = 0;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// `END_STREAM` of DATA, `ACK` of SETTINGS and PING.
const FIRST_FLAG: u8 = 1;

/// Why a client of HTTP/2 was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It resets more calls than it lets be answered.
    Resets,
    /// It sends frames that bring nothing.
    Chatter,
    /// It makes faults of the protocol: one of the connection, or too many of its streams.
    Faults,
}

impl Cut {
    /// All of them.
    pub const ALL: [Cut; 3] = [Cut::Resets, Cut::Chatter, Cut::Faults];

    /// The word in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Cut::Resets => "resets",
            Cut::Chatter => "chatter",
            Cut::Faults => "faults",
        }
    }
}

/// Follows the frames of a client.
#[derive(Debug)]
pub struct Chatter {
    /// Bytes to pass over before the next head.
    skip: usize,
    head: [u8; HEAD],
    /// How many bytes of the head are there.
    filled: usize,
}

impl Default for Chatter {
    fn default() -> Self {
        Chatter {
            skip: PREFACE,
            head: [0; HEAD],
            filled: 0,
        }
    }
}

impl Chatter {
    /// Reads on; tells how many frames have begun that bring nothing.
    pub fn feed(&mut self, mut bytes: &[u8]) -> u32 {
        let mut found = 0;
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEAD {
                self.filled = 0;
                let [high, middle, low, kind, flags, ..] = self.head;
                let length =
                    (usize::from(high) << 16) | (usize::from(middle) << 8) | usize::from(low);
                self.skip = length;
                found += u32::from(brings_nothing((kind, flags), length));
            }
        }
        found
    }
}

/// A frame that is no part of a call, nor an answer to what this end has sent; and a part of a call without anything.
const fn brings_nothing((kind, flags): (u8, u8), length: usize) -> bool {
    match kind {
        DATA => length == 0 && flags & FIRST_FLAG == 0,
        SETTINGS | PING => flags & FIRST_FLAG == 0,
        PRIORITY => true,
        _ => kind > CONTINUATION,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn count(frames: &[u8]) -> u32 {
        let mut chatter = Chatter::default();
        assert_eq!(chatter.feed(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0);
        chatter.feed(frames)
    }

    #[test]
    fn what_brings_a_call_further_is_no_chatter() {
        for (kind, flags, payload) in [
            (DATA, 0, &b"x"[..]),
            (DATA, FIRST_FLAG, b""),
            (1, 4, b"\x82"),
            (3, 0, b"\0\0\0\0"),
            (SETTINGS, FIRST_FLAG, b""),
            (PING, FIRST_FLAG, b"12345678"),
            (7, 0, b"\0\0\0\0\0\0\0\0"),
            (8, 0, b"\0\0\0\x01"),
            (CONTINUATION, 0, b""),
        ] {
            assert_eq!(count(&frame(kind, flags, payload)), 0, "{kind}");
        }
    }

    #[test]
    fn what_brings_nothing_is() {
        for (kind, flags, payload) in [
            (DATA, 0, &b""[..]),
            (PRIORITY, 0, b"\0\0\0\0\0"),
            (SETTINGS, 0, b""),
            (PING, 0, b"12345678"),
            (10, 0, b"x"),
            (255, 255, b""),
        ] {
            assert_eq!(count(&frame(kind, flags, payload)), 1, "{kind}");
        }
    }

    proptest! {
        #[test]
        fn pieces_are_counted_like_the_whole(
            frames in prop::collection::vec((0u8..12, 0u8..3, 0usize..40), 0..20),
            cuts in prop::collection::vec(0usize..50, 0..40),
        ) {
            let mut bytes = vec![b'p'; PREFACE];
            for (kind, flags, length) in frames {
                bytes.extend(frame(kind, flags, &vec![6; length]));
            }
            let whole = Chatter::default().feed(&bytes);
            let (mut chatter, mut rest, mut sum) = (Chatter::default(), &bytes[..], 0);
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                sum += chatter.feed(piece);
                rest = behind;
            }
            prop_assert_eq!(sum + chatter.feed(rest), whole);
        }
    }
}
