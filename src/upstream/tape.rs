//! What a connection writes, where that is not what it is given: names of a head are written as the client wrote them, and
//! a call without a body is kept as it goes out, so that it can be sent once more, byte for byte. And what it reads: how the
//! names of an answer are written, and the body of one that came whole.
//!
//! Nearly every call is answered at its first attempt. Keeping what was written costs one copy of a head; keeping the
//! request itself would cost each of its fields.

use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use bytes::BytesMut;
use http::Method;

use super::again::Heads;
use super::local::Local;
use super::{Overlay, WholeBody};
use crate::domain::wire::{Reading, Spelling, Whole, is_ready};

/// What a connection keeps of the room of its last call.
const ROOM: usize = 2 * 1024;

/// The tape of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Tape(Local<Reel>);

#[derive(Debug, Default)]
struct Reel {
    running: Running,
    /// How the names of the head are written that comes next.
    spelling: Option<Spelling>,
    overlay: Overlay,
    answer: Reading,
    next: Next,
    /// The body of the answer, where it came at once.
    whole: Option<WholeBody>,
}

/// What is read next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A response, from its first byte on.
    Answer,
    /// A response without a body, from its first byte on.
    Head,
    /// The rest of one, or nothing.
    #[default]
    Other,
}

#[derive(Debug)]
enum Running {
    /// What is written passes. The room is that of the calls before.
    Off(Vec<u8>),
    /// What is to be written is kept too; so much of it is written.
    Records { bytes: Vec<u8>, gone: usize },
    /// In place of what is written, this goes out.
    Plays { bytes: Vec<u8>, gone: usize },
}

impl Default for Running {
    fn default() -> Running {
        Running::Off(Vec::new())
    }
}

impl Tape {
    /// A call is sent by this method and with such heads.
    pub(super) fn begin(&self, method: &Method, heads: Heads<'_>) {
        let mut reel = self.0.get();
        reel.whole = None;
        reel.next = match *method {
            Method::HEAD | Method::CONNECT => Next::Head,
            _ => Next::Answer,
        };
        match heads {
            Heads::Made => reel.spelling = None,
            Heads::Passed(spelling) => {
                reel.spelling = spelling.cloned();
                reel.answer.begin();
            }
        }
    }

    /// This was read.
    pub(super) fn hears(&self, bytes: &[u8]) {
        let mut reel = self.0.get();
        reel.next = Next::Other;
        reel.answer.feed(bytes);
    }

    /// What is read next.
    pub(super) fn next(&self) -> Next {
        self.0.get().next
    }

    /// This was read of a response that may have a body. If it came whole, its head is left, and its body is had by
    /// [`Tape::take_whole`]. False where a parser cannot read it as it is: nothing of it was heard.
    pub(super) fn hears_answer(&self, bytes: &mut BytesMut) -> bool {
        let whole = Whole::answer(bytes);
        if whole.is_none() && !is_ready(bytes) {
            return false;
        }
        let reel = &mut *self.0.get();
        reel.next = Next::Other;
        reel.answer.feed(bytes);
        if let Some(whole) = whole {
            reel.whole = WholeBody::take(bytes, &whole);
        }
        true
    }

    /// The body of the answer that is there, where it came whole.
    pub(super) fn take_whole(&self) -> Option<WholeBody> {
        self.0.get().whole.take()
    }

    /// From now on, what is written is kept.
    pub(super) fn record(&self) {
        let running = &mut self.0.get().running;
        let mut room = running.take();
        room.clear();
        *running = Running::Records {
            bytes: room,
            gone: 0,
        };
    }

    /// What is written next is this, in place of what the connection is given.
    pub(super) fn play(&self, bytes: Vec<u8>) {
        self.0.get().running = Running::Plays { bytes, gone: 0 };
    }

    /// Nothing is to be sent again, since the answer is there: tells how its names were written, where that was noted.
    pub(super) fn stop(&self) -> Option<Spelling> {
        let mut reel = self.0.get();
        if let Running::Records { .. } = reel.running {
            let room = reel.running.take();
            reel.running = Running::Off(if room.capacity() > ROOM {
                Vec::new()
            } else {
                room
            });
        }
        reel.spelling = None;
        reel.answer.take()
    }

    /// What was to be written since [`Tape::record`], if anything was: a connection may have broken under it.
    pub(super) fn recorded(&self) -> Option<Vec<u8>> {
        let running = &mut self.0.get().running;
        match running {
            Running::Records { .. } => Some(running.take()).filter(|bytes| !bytes.is_empty()),
            Running::Off(_) | Running::Plays { .. } => None,
        }
    }

    /// Writes to a socket, or what is played in place of it.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &self,
        (socket, cx): (&mut S, &mut Context<'_>),
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let reel = &mut *self.0.get();
        match &mut reel.running {
            Running::Off(_) => {
                if let Some(spelling) = reel.spelling.take() {
                    reel.overlay.lay(&spelling, given);
                }
                reel.overlay.poll_write((socket, cx), given)
            }
            Running::Records { bytes, gone } => {
                bytes.truncate(*gone);
                given.iter().for_each(|part| bytes.extend_from_slice(part));
                if let Some(spelling) = &reel.spelling {
                    spelling.lay_over(bytes);
                }
                let count = ready!(Pin::new(socket).poll_write(cx, &bytes[*gone..]))?;
                *gone += count;
                Poll::Ready(Ok(count))
            }
            Running::Plays { bytes, gone } => {
                while let Some(rest) = bytes.get(*gone..).filter(|rest| !rest.is_empty()) {
                    match ready!(Pin::new(&mut *socket).poll_write(cx, rest))? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        count => *gone += count,
                    }
                }
                reel.running = Running::default();
                Poll::Ready(Ok(given.iter().map(|part| part.len()).sum()))
            }
        }
    }
}

impl Running {
    fn take(&mut self) -> Vec<u8> {
        match mem::take(self) {
            Running::Off(bytes) | Running::Records { bytes, .. } | Running::Plays { bytes, .. } => {
                bytes
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::narrow::through;

    const HEAD: &str = "GET / HTTP/1.1\r\nhost: a\r\nx-a: 1\r\nx-a: 2\r\n\r\n";
    const SPELLED: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";

    fn spelling() -> Spelling {
        let mut reading = Reading::default();
        reading.begin();
        reading.feed(b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n");
        reading.take().unwrap()
    }

    #[test]
    fn names_of_an_answer_are_noted_where_heads_are_passed() {
        let tape = Tape::default();
        let answered = |heads, answer: &[u8]| {
            tape.begin(&Method::GET, heads);
            tape.hears(answer);
            tape.stop()
        };
        let passed = b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";
        assert_eq!(answered(Heads::Passed(None), passed), Some(spelling()));
        let made = b"HTTP/1.1 200 OK\r\nX-B: 1\r\n\r\n";
        assert_eq!(answered(Heads::Made, made), None);
        assert_eq!(answered(Heads::Passed(None), passed), Some(spelling()));
    }

    #[tokio::test]
    async fn a_call_is_spelled_and_kept_however_it_is_written() {
        for room in [1, 7, 20, 1000] {
            let tape = Tape::default();
            tape.begin(&Method::GET, Heads::Passed(Some(&spelling())));
            tape.record();
            let found = through(room, (HEAD, ""), |socket, parts| {
                tape.poll_write(socket, parts)
            });
            assert_eq!(found.await, SPELLED, "{room}");
            assert_eq!(tape.recorded().as_deref(), Some(SPELLED.as_bytes()));
        }
    }
}
