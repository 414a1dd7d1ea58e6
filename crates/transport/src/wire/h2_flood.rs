//! Detection of HTTP/2 frame floods (RFC 9113 §4.1): frames that cost this end work and carry no part of a call.
//!
//! The module reads the head of each frame as bytes arrive, and the padding length of padded DATA. Laws: the partition
//! of the bytes does not matter; within a time window a peer may send as many useless frames as useful ones, plus
//! `FRAMES`, and one more is a flood. So a peer with many calls may send a few for each.
//!
//! Used by `wire::websocket`.

use std::time::Duration;

/// The number of useless frames allowed beyond the useful ones within a window.
pub(super) const FRAMES: u32 = 1000;
const WITHIN: Duration = Duration::from_secs(10);

/// The length of the client preface (§3.4).
const PREFACE: usize = 24;
/// The length of a frame head.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// The flag of DATA and HEADERS frames.
const END_STREAM: u8 = 1;
const PADDED: u8 = 8;

/// The reason why a client of HTTP/2 or of a WebSocket was disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloodReason {
    /// The client resets more streams than it lets complete.
    Resets,
    /// The client sends useless frames.
    Chatter,
    /// The client makes protocol errors: one of the connection, or too many of its streams.
    Faults,
    /// The client reads nothing of a response; only the stream is reset.
    Stalled,
}

impl FloodReason {
    /// All reasons.
    pub const ALL: [FloodReason; 4] = [
        FloodReason::Resets,
        FloodReason::Chatter,
        FloodReason::Faults,
        FloodReason::Stalled,
    ];

    /// Returns the word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FloodReason::Resets => "resets",
            FloodReason::Chatter => "chatter",
            FloodReason::Faults => "faults",
            FloodReason::Stalled => "stalled",
        }
    }
}

/// A counter of a peer's useless frames.
#[derive(Debug)]
pub struct FrameCounter {
    follower: FrameFollower,
    balance: Balance,
}

/// The numbers of useless and useful frames within a window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Balance {
    /// The start of the window.
    since: Duration,
    idle: u32,
    useful: u32,
}

impl Balance {
    /// Returns the numbers of useless and useful frames.
    #[cfg(test)]
    pub(super) const fn counts(&self) -> (u32, u32) {
        (self.idle, self.useful)
    }

    /// Counts a useful frame.
    pub(super) fn useful(&mut self) {
        self.useful = self.useful.saturating_add(1);
    }

    /// Counts a useless frame, at a time if known; returns whether there are too many now.
    pub(super) fn idle(&mut self, now: Option<Duration>) -> bool {
        if let Some(now) = now
            && now.saturating_sub(self.since) > WITHIN
        {
            *self = Balance {
                since: now,
                ..Balance::default()
            };
        }
        self.idle = self.idle.saturating_add(1);
        self.idle > self.useful.saturating_add(FRAMES)
    }
}

/// The usefulness of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameUse {
    /// Useful: content of a call, or its end.
    Something,
    /// Useless: not part of a call, or empty.
    Nothing,
    /// Control frames of a call, which are no flood; they are not counted.
    Else,
}

impl FrameCounter {
    /// Returns the counter for a client, which begins with its preface.
    #[must_use]
    pub fn of_client() -> FrameCounter {
        FrameCounter::with(PREFACE)
    }

    /// Returns the counter for a server, which begins with a frame.
    #[must_use]
    pub fn of_server() -> FrameCounter {
        FrameCounter::with(0)
    }

    fn with(skip: usize) -> FrameCounter {
        FrameCounter {
            follower: FrameFollower::after(skip),
            balance: Balance::default(),
        }
    }

    /// Reads bytes, at a time since any fixed start; returns whether there are too many useless frames now.
    pub fn is_flooded_by(&mut self, bytes: &[u8], now: impl FnOnce() -> Duration) -> bool {
        let FrameCounter { follower, balance } = self;
        let mut now = Some(now);
        let mut is_flood = false;
        follower.feed(bytes, |frame_use| match frame_use {
            FrameUse::Else => {}
            FrameUse::Something => balance.useful(),
            // The clock is read at most once, and only here.
            FrameUse::Nothing => is_flood |= balance.idle(now.take().map(|now| now())),
        });
        is_flood
    }
}

/// A reader of a peer's frame heads.
#[derive(Debug)]
struct FrameFollower {
    /// Bytes to skip before the next head.
    skip: usize,
    /// The head, followed by the padding length of DATA (§6.1).
    head: [u8; HEAD + 1],
    /// The number of bytes read of it.
    filled: usize,
}

impl FrameFollower {
    /// Returns a reader of the frames after this many bytes.
    fn after(skip: usize) -> FrameFollower {
        FrameFollower {
            skip,
            head: [0; HEAD + 1],
            filled: 0,
        }
    }

    /// Reads bytes, and reports the usefulness of each frame.
    fn feed(&mut self, mut bytes: &[u8], mut report: impl FnMut(FrameUse)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let copied = (self.wanted() - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + copied].copy_from_slice(&bytes[..copied]);
            self.filled += copied;
            bytes = &bytes[copied..];
            let wanted = self.wanted();
            if self.filled == wanted {
                self.filled = 0;
                self.skip = self.length().saturating_sub(wanted - HEAD);
                report(self.frame_use());
            }
        }
    }

    /// Returns the number of bytes needed to classify the frame.
    fn wanted(&self) -> usize {
        let is_padded = self.filled >= HEAD && self.is_padded();
        HEAD + usize::from(is_padded)
    }

    /// Returns whether the frame is DATA with a padding length.
    fn is_padded(&self) -> bool {
        let [.., kind, flags, _, _, _, _, _] = self.head;
        kind == DATA && flags & PADDED != 0 && self.length() > 0
    }

    fn length(&self) -> usize {
        let [high, middle, low, ..] = self.head.map(usize::from);
        (high << 16) | (middle << 8) | low
    }

    /// Classifies the frame. Acknowledgements of PING and SETTINGS are useless: this end sends so few of both that many
    /// acknowledgements must be unsolicited.
    fn frame_use(&self) -> FrameUse {
        let [.., kind, flags, _, _, _, _, padding] = self.head;
        let ends = flags & END_STREAM != 0;
        let empty = if self.is_padded() {
            self.length() <= 1 + usize::from(padding)
        } else {
            self.length() == 0
        };
        match kind {
            DATA | HEADERS if ends => FrameUse::Something,
            DATA if empty => FrameUse::Nothing,
            DATA => FrameUse::Something,
            SETTINGS | PING | PRIORITY => FrameUse::Nothing,
            _ if kind > CONTINUATION => FrameUse::Nothing,
            _ => FrameUse::Else,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ACK: u8 = 1;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        [&[0, 0, length, kind, flags, 0, 0, 0, 1], payload].concat()
    }

    fn uses(follower: &mut FrameFollower, bytes: &[u8]) -> Vec<FrameUse> {
        let mut uses = Vec::new();
        follower.feed(bytes, |frame_use| uses.push(frame_use));
        uses
    }

    fn count(frames: &[u8]) -> usize {
        let mut follower = FrameFollower::after(PREFACE);
        assert_eq!(uses(&mut follower, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), []);
        let uses = uses(&mut follower, frames);
        uses.iter()
            .filter(|frame_use| **frame_use == FrameUse::Nothing)
            .count()
    }

    #[test]
    fn frames_that_advance_a_call_are_useful() {
        for (kind, flags, payload) in [
            (DATA, 0, &b"x"[..]),
            (DATA, END_STREAM, b""),
            (DATA, PADDED, b"\x02x\0\0"),
            (DATA, PADDED | END_STREAM, b"\x02\0\0"),
            (1, 4, b"\x82"),
            (3, 0, b"\0\0\0\0"),
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
            (DATA, PADDED, b""),
            (DATA, PADDED, b"\0"),
            (DATA, PADDED, b"\x02\0\0"),
            (PRIORITY, 0, b"\0\0\0\0\0"),
            (SETTINGS, 0, b""),
            (SETTINGS, ACK, b""),
            (PING, 0, b"12345678"),
            (PING, ACK, b"12345678"),
            (10, 0, b"x"),
            (255, 255, b""),
        ] {
            assert_eq!(count(&frame(kind, flags, payload)), 1, "{kind}");
        }
    }

    #[test]
    fn a_flood_is_more_than_so_many_within_a_while() {
        let ping = frame(PING, 0, b"12345678");
        let mut flood = FrameCounter::of_server();
        let at = Duration::from_secs;
        for _ in 0..FRAMES {
            assert!(!flood.is_flooded_by(&ping, || at(20)));
        }
        assert!(flood.is_flooded_by(&ping, || at(30)));
        assert!(
            !flood.is_flooded_by(&ping, || at(31)),
            "they are counted anew"
        );
        assert!(!flood.is_flooded_by(&frame(HEADERS, 4, b"x"), || panic!("nobody asks when")));
    }

    #[test]
    fn a_peer_with_many_calls_may_send_a_useless_frame_with_each() {
        let ping = frame(PING, 0, b"12345678");
        let answers = [
            frame(HEADERS, 4 | END_STREAM, b"x"),
            frame(DATA, 0, b"x"),
            frame(DATA, END_STREAM, b""),
        ];
        for answer in answers {
            let mut flood = FrameCounter::of_server();
            for _ in 0..5 * FRAMES {
                let bytes = [&answer[..], &ping].concat();
                assert!(!flood.is_flooded_by(&bytes, Duration::default));
            }
            // No more than so many besides, however many calls there were.
            assert!(!flood.is_flooded_by(&ping.repeat(FRAMES as usize), Duration::default));
            assert!(flood.is_flooded_by(&ping, Duration::default));
        }
        // What costs a peer nothing earns it nothing.
        for (kind, flags, payload) in [
            (HEADERS, 4, &b"x"[..]),
            (3, 0, b"\0\0\0\0"),
            (8, 0, b"\0\0\0\x01"),
        ] {
            let mut flood = FrameCounter::of_server();
            let bytes = [frame(kind, flags, payload), ping.clone()].concat();
            assert!(!flood.is_flooded_by(&bytes.repeat(FRAMES as usize), Duration::default));
            assert!(flood.is_flooded_by(&bytes, Duration::default), "{kind}");
        }
    }

    #[test]
    fn the_allowance_of_earlier_calls_expires_with_their_frames() {
        let (ping, answer) = (frame(PING, 0, b"12345678"), frame(DATA, END_STREAM, b"x"));
        let mut flood = FrameCounter::of_server();
        assert!(
            !flood.is_flooded_by(&answer.repeat(FRAMES as usize), || panic!(
                "nobody asks when"
            ))
        );
        let later = || Duration::from_secs(11);
        assert!(!flood.is_flooded_by(&ping.repeat(FRAMES as usize), later));
        assert!(flood.is_flooded_by(&ping, later));
    }

    #[test]
    fn a_client_begins_with_its_preface_and_a_server_with_a_frame() {
        let pings = frame(PING, 0, b"12345678").repeat(FRAMES as usize + 1);
        assert!(FrameCounter::of_server().is_flooded_by(&pings, Duration::default));
        let client = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &pings].concat();
        assert!(FrameCounter::of_client().is_flooded_by(&client, Duration::default));
    }

    proptest! {
        #[test]
        fn pieces_are_counted_like_the_whole(
            frames in prop::collection::vec((0u8..12, 0u8..16, 0usize..40), 0..20),
            cuts in prop::collection::vec(0usize..50, 0..40),
        ) {
            let mut bytes = vec![b'p'; PREFACE];
            for (kind, flags, length) in frames {
                bytes.extend(frame(kind, flags, &vec![6; length]));
            }
            let whole = uses(&mut FrameFollower::after(PREFACE), &bytes);
            let mut follower = FrameFollower::after(PREFACE);
            let (mut rest, mut all) = (&bytes[..], Vec::new());
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                all.extend(uses(&mut follower, piece));
                rest = after;
            }
            all.extend(uses(&mut follower, rest));
            prop_assert_eq!(all, whole);
        }
    }
}
