//! What a peer sends over HTTP/2 besides calls (RFC 9113 §4.1): frames that cost this end work and bring nothing.
//!
//! Of each frame the head is read as the bytes come by, and of padded DATA the length of its padding. Laws: how the bytes are
//! cut into pieces changes nothing; within a while as many of them are borne as there are frames that bring a call further,
//! and so many besides, and one more is a flood. So a peer of many calls may say a little beside each.

use std::time::Duration;

/// How many frames that bring nothing are taken of a peer beyond those that bring something, and within what time.
pub(super) const FRAMES: u32 = 1000;
const WITHIN: Duration = Duration::from_secs(10);

/// What a client says before its first frame (§3.4).
const PREFACE: usize = 24;
/// The head of a frame.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
/// Of DATA, the first of HEADERS too.
const END_STREAM: u8 = 1;
const PADDED: u8 = 8;

/// Why a client of HTTP/2 or of a WebSocket was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloodReason {
    /// It resets more calls than it lets be answered.
    Resets,
    /// It sends frames that bring nothing.
    Chatter,
    /// It makes faults of the protocol: one of the connection, or too many of its streams.
    Faults,
    /// It takes nothing of an answer; the stream alone is cut.
    Stalled,
}

impl FloodReason {
    /// All of them.
    pub const ALL: [FloodReason; 4] = [
        FloodReason::Resets,
        FloodReason::Chatter,
        FloodReason::Faults,
        FloodReason::Stalled,
    ];

    /// The word in metrics.
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

/// Counts the frames of a peer that bring nothing.
#[derive(Debug)]
pub struct FrameCounter {
    chatter: FrameFollower,
    balance: Balance,
}

/// How many frames of either kind there were within a while.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Balance {
    /// Since when they are counted.
    since: Duration,
    idle: u32,
    useful: u32,
}

impl Balance {
    /// How many brought nothing, and how many something.
    #[cfg(test)]
    pub(super) const fn counts(&self) -> (u32, u32) {
        (self.idle, self.useful)
    }

    /// Counts a frame that brings something.
    pub(super) fn useful(&mut self) {
        self.useful = self.useful.saturating_add(1);
    }

    /// Counts one that brings nothing, at a time where it is known; tells whether there are too many by now.
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

/// What a frame does for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameUse {
    /// It brings it further: content of it, or its end.
    Something,
    /// It is no part of a call, or one without anything.
    Nothing,
    /// It steers one, which costs a peer nothing and is no flood: neither counts.
    Else,
}

impl FrameCounter {
    /// Of a client, which begins with its preface.
    #[must_use]
    pub fn of_client() -> FrameCounter {
        FrameCounter::with(PREFACE)
    }

    /// Of a server, which begins with a frame.
    #[must_use]
    pub fn of_server() -> FrameCounter {
        FrameCounter::with(0)
    }

    fn with(skip: usize) -> FrameCounter {
        FrameCounter {
            chatter: FrameFollower::behind(skip),
            balance: Balance::default(),
        }
    }

    /// Reads on, at a time since any beginning; tells whether there are too many by now.
    pub fn counts_frames(&mut self, bytes: &[u8], now: impl FnOnce() -> Duration) -> bool {
        let FrameCounter { chatter, balance } = self;
        let mut now = Some(now);
        let mut is_flood = false;
        chatter.feed(bytes, |brings| match brings {
            FrameUse::Else => {}
            FrameUse::Something => balance.useful(),
            // The time is asked for once, and only then.
            FrameUse::Nothing => is_flood |= balance.idle(now.take().map(|now| now())),
        });
        is_flood
    }
}

/// Follows the frames of a peer.
#[derive(Debug)]
struct FrameFollower {
    /// Bytes to pass over before the next head.
    skip: usize,
    /// The head, and behind that of DATA the length of its padding (§6.1).
    head: [u8; HEAD + 1],
    /// How many bytes of it are there.
    filled: usize,
}

impl FrameFollower {
    /// The frames behind so many bytes.
    fn behind(skip: usize) -> FrameFollower {
        FrameFollower {
            skip,
            head: [0; HEAD + 1],
            filled: 0,
        }
    }

    /// Reads on; tells of each frame what it brings.
    fn feed(&mut self, mut bytes: &[u8], mut tell: impl FnMut(FrameUse)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            let taken = (self.wanted() - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            let wanted = self.wanted();
            if self.filled == wanted {
                self.filled = 0;
                self.skip = self.length().saturating_sub(wanted - HEAD);
                tell(self.brings());
            }
        }
    }

    /// How many bytes tell what the frame brings.
    fn wanted(&self) -> usize {
        let is_padded = self.filled >= HEAD && self.is_padded();
        HEAD + usize::from(is_padded)
    }

    /// Whether the frame is DATA with a length of padding.
    fn is_padded(&self) -> bool {
        let [.., kind, flags, _, _, _, _, _] = self.head;
        kind == DATA && flags & PADDED != 0 && self.length() > 0
    }

    fn length(&self) -> usize {
        let [high, middle, low, ..] = self.head.map(usize::from);
        (high << 16) | (middle << 8) | low
    }

    /// What the frame brings. Nothing does one that says that a ping or settings have come: so little of both is sent from
    /// here that whoever says it often was not asked.
    fn brings(&self) -> FrameUse {
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

    fn told(chatter: &mut FrameFollower, bytes: &[u8]) -> Vec<FrameUse> {
        let mut told = Vec::new();
        chatter.feed(bytes, |brings| told.push(brings));
        told
    }

    fn count(frames: &[u8]) -> usize {
        let mut chatter = FrameFollower::behind(PREFACE);
        assert_eq!(told(&mut chatter, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), []);
        let told = told(&mut chatter, frames);
        told.iter()
            .filter(|brings| **brings == FrameUse::Nothing)
            .count()
    }

    #[test]
    fn what_brings_a_call_further_is_no_chatter() {
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
            assert!(!flood.counts_frames(&ping, || at(20)));
        }
        assert!(flood.counts_frames(&ping, || at(30)));
        assert!(
            !flood.counts_frames(&ping, || at(31)),
            "they are counted anew"
        );
        assert!(!flood.counts_frames(&frame(HEADERS, 4, b"x"), || panic!("nobody asks when")));
    }

    #[test]
    fn a_peer_of_many_calls_may_say_something_beside_each() {
        let ping = frame(PING, 0, b"12345678");
        let answers = [
            frame(HEADERS, 4 | END_STREAM, b"x"),
            frame(DATA, 0, b"x"),
            frame(DATA, END_STREAM, b""),
        ];
        for answer in answers {
            let mut flood = FrameCounter::of_server();
            for _ in 0..5 * FRAMES {
                let said = [&answer[..], &ping].concat();
                assert!(!flood.counts_frames(&said, Duration::default));
            }
            // No more than so many besides, however many calls there were.
            assert!(!flood.counts_frames(&ping.repeat(FRAMES as usize), Duration::default));
            assert!(flood.counts_frames(&ping, Duration::default));
        }
        // What costs a peer nothing earns it nothing.
        for (kind, flags, payload) in [
            (HEADERS, 4, &b"x"[..]),
            (3, 0, b"\0\0\0\0"),
            (8, 0, b"\0\0\0\x01"),
        ] {
            let mut flood = FrameCounter::of_server();
            let said = [frame(kind, flags, payload), ping.clone()].concat();
            assert!(!flood.counts_frames(&said.repeat(FRAMES as usize), Duration::default));
            assert!(flood.counts_frames(&said, Duration::default), "{kind}");
        }
    }

    #[test]
    fn what_earlier_calls_have_earned_is_forgotten_with_what_was_said() {
        let (ping, answer) = (frame(PING, 0, b"12345678"), frame(DATA, END_STREAM, b"x"));
        let mut flood = FrameCounter::of_server();
        assert!(
            !flood.counts_frames(&answer.repeat(FRAMES as usize), || panic!(
                "nobody asks when"
            ))
        );
        let later = || Duration::from_secs(11);
        assert!(!flood.counts_frames(&ping.repeat(FRAMES as usize), later));
        assert!(flood.counts_frames(&ping, later));
    }

    #[test]
    fn a_client_begins_with_its_preface_and_a_server_with_a_frame() {
        let pings = frame(PING, 0, b"12345678").repeat(FRAMES as usize + 1);
        assert!(FrameCounter::of_server().counts_frames(&pings, Duration::default));
        let client = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &pings].concat();
        assert!(FrameCounter::of_client().counts_frames(&client, Duration::default));
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
            let whole = told(&mut FrameFollower::behind(PREFACE), &bytes);
            let mut chatter = FrameFollower::behind(PREFACE);
            let (mut rest, mut all) = (&bytes[..], Vec::new());
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                all.extend(told(&mut chatter, piece));
                rest = behind;
            }
            all.extend(told(&mut chatter, rest));
            prop_assert_eq!(all, whole);
        }
    }
}
