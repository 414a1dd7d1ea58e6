//! Detection of WebSocket frame floods (RFC 6455 §5.2): control frames and empty fragments, which cost work and carry
//! nothing.
//!
//! The module reads the head of each frame as bytes arrive. Laws: the partition of the bytes does not matter; the limit
//! is that of HTTP/2, and each frame with content allows one without.

use std::time::Duration;

use super::h2_flood::Balance;

/// The maximum length of a head: two bytes, a length of eight and a mask of four.
const LONGEST: usize = 14;

const FIN: u8 = 0x80;
const MASK: u8 = 0x80;
const CLOSE: u8 = 8;

/// A counter of a peer's useless frames.
#[derive(Debug, Default)]
pub struct FrameFlood {
    /// Bytes of content to skip before the next head.
    skip: u64,
    head: [u8; LONGEST],
    /// The number of bytes read of it.
    filled: usize,
    balance: Balance,
}

/// The usefulness of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameUse {
    /// Content, or the end of a message.
    Something,
    Nothing,
    /// The closing frame, which comes once.
    End,
}

impl FrameFlood {
    /// Reads bytes, at a time since any fixed start; returns whether there are too many useless frames now.
    pub fn is_flooded_by(&mut self, mut bytes: &[u8], now: impl FnOnce() -> Duration) -> bool {
        let mut now = Some(now);
        let mut is_flood = false;
        while !bytes.is_empty() {
            let passed =
                usize::try_from(self.skip).map_or(bytes.len(), |skip| skip.min(bytes.len()));
            self.skip -= passed as u64;
            bytes = &bytes[passed..];
            let copied = (self.wanted() - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + copied].copy_from_slice(&bytes[..copied]);
            self.filled += copied;
            bytes = &bytes[copied..];
            if self.filled < self.wanted() {
                continue;
            }
            self.filled = 0;
            self.skip = self.length();
            match self.frame_use() {
                FrameUse::Something => self.balance.useful(),
                // The clock is read at most once, and only here.
                FrameUse::Nothing => is_flood |= self.balance.idle(now.take().map(|now| now())),
                FrameUse::End => {}
            }
        }
        is_flood
    }

    /// Returns the length of the head, as far as known.
    fn wanted(&self) -> usize {
        if self.filled < 2 {
            return 2;
        }
        let mask = if self.head[1] & MASK == 0 { 0 } else { 4 };
        let length = match self.head[1] & !MASK {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + length + mask
    }

    fn length(&self) -> u64 {
        let [_, short, rest @ ..] = self.head;
        match short & !MASK {
            126 => u64::from(u16::from_be_bytes([rest[0], rest[1]])),
            127 => rest[..8]
                .iter()
                .fold(0, |length, byte| length << 8 | u64::from(*byte)),
            length => u64::from(length),
        }
    }

    /// Classifies the frame. A whole message without content counts as useless, since no protocol uses it.
    fn frame_use(&self) -> FrameUse {
        let (is_last, code) = (self.head[0] & FIN != 0, self.head[0] & 0x0f);
        match code {
            CLOSE => FrameUse::End,
            control if control > CLOSE => FrameUse::Nothing,
            0 if is_last => FrameUse::Something,
            _ if self.length() > 0 => FrameUse::Something,
            _ => FrameUse::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::h2_flood::FRAMES;

    const PING: &[u8] = b"\x89\x80abcd";
    const MANY: usize = FRAMES as usize;

    fn never() -> Duration {
        panic!("nobody asks when")
    }

    /// A masked frame with so much content.
    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut frame = vec![first];
        match length {
            0..126 => frame.push(MASK | length as u8),
            126..65_536 => {
                frame.push(MASK | 126);
                frame.extend((length as u16).to_be_bytes());
            }
            _ => {
                frame.push(MASK | 127);
                frame.extend((length as u64).to_be_bytes());
            }
        }
        frame.extend(b"abcd");
        // Content that would be pings if it were heads.
        frame.extend(PING.iter().cycle().take(length));
        frame
    }

    #[test]
    fn a_flood_is_more_than_so_many_within_a_while() {
        // Pings, pongs, unassigned opcodes; fragments and messages without content.
        for first in [0x89, 0x8a, 0x8b, 0x01, 0x02, 0x00, 0x81] {
            let idle = frame(first, 0);
            let mut flood = FrameFlood::default();
            assert!(
                !flood.is_flooded_by(&idle.repeat(MANY), Duration::default),
                "{first}"
            );
            assert!(flood.is_flooded_by(&idle, Duration::default), "{first}");
            let later = || Duration::from_secs(11);
            assert!(!flood.is_flooded_by(&idle, later), "they are counted anew");
        }
    }

    #[test]
    fn what_brings_something_is_none() {
        for (first, length) in [
            (0x81, 2),
            (0x01, 1),
            (0x00, 1),
            (0x80, 0),
            (0x82, 126),
            (0x82, 70_000),
        ] {
            let mut flood = FrameFlood::default();
            for _ in 0..20 {
                assert!(
                    !flood.is_flooded_by(&frame(first, length), never),
                    "{first} {length}"
                );
            }
        }
        assert!(!FrameFlood::default().is_flooded_by(&frame(0x88, 0).repeat(2 * MANY), never));
    }

    #[test]
    fn a_frame_with_content_earns_one_without() {
        let mut flood = FrameFlood::default();
        let both = [frame(0x81, 2), PING.to_vec()].concat();
        assert!(!flood.is_flooded_by(&both.repeat(5 * MANY), Duration::default));
        assert!(!flood.is_flooded_by(&PING.repeat(MANY), Duration::default));
        assert!(flood.is_flooded_by(PING, Duration::default));
    }

    #[test]
    fn a_length_that_no_message_has_is_passed_over() {
        let mut flood = FrameFlood::default();
        let head = b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffabcd";
        assert!(!flood.is_flooded_by(head, never));
        assert!(!flood.is_flooded_by(&PING.repeat(2 * MANY), never));
    }

    proptest! {
        #[test]
        fn pieces_are_counted_like_the_whole(
            frames in prop::collection::vec((any::<u8>(), 0usize..300), 0..20),
            cuts in prop::collection::vec(1usize..50, 0..40),
        ) {
            let bytes: Vec<u8> = frames.iter().flat_map(|(first, length)| frame(*first, *length)).collect();
            let mut whole = FrameFlood::default();
            let mut pieces = FrameFlood::default();
            let _ = whole.is_flooded_by(&bytes, Duration::default);
            let mut rest = &bytes[..];
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                let _ = pieces.is_flooded_by(piece, Duration::default);
                rest = behind;
            }
            let _ = pieces.is_flooded_by(rest, Duration::default);
            prop_assert_eq!(
                (whole.balance.counts(), whole.skip, whole.filled),
                (pieces.balance.counts(), pieces.skip, pieces.filled)
            );
        }
    }
}
