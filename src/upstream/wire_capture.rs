//! What a connection writes, where that is not what it is given: names of a head are written as the client wrote them, and
//! a call without a body is kept as it goes out, so that it can be sent once more, byte for byte. And what it reads: how the
//! names of an answer are written, and the body of one that came whole.
//!
//! Nearly every call is answered at its first attempt. Keeping what was written costs one copy of a head; keeping the
//! request itself would cost each of its fields.

use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite;

use bytes::BytesMut;
use http::Method;

use super::retry::HeaderCasing;
use super::thread_bound::ThreadBound;
use super::{HeaderCaseOverlay, InlineBody, Interims};
use crate::domain::wire::{CompleteMessage, HeaderCase, ResponseCaseReader, interim, is_ready};

/// What a connection keeps of the room of its last call.
const ROOM: usize = 2 * 1024;

/// The tape of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct WireCapture(ThreadBound<CaptureState>);

#[derive(Debug, Default)]
struct CaptureState {
    running: CaptureMode,
    /// How the names of the head are written that comes next.
    spelling: Option<HeaderCase>,
    overlay: HeaderCaseOverlay,
    /// The target of the head that comes next, where it is another one than the connection is given.
    target: Option<TargetOverride>,
    /// Where interim responses go.
    interims: Option<Interims>,
    waker: Option<Waker>,
    answer: ResponseCaseReader,
    next: NextRead,
    /// The body of the answer, where it came at once.
    whole: Option<InlineBody>,
}

/// What is read next.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextRead {
    /// A response, from its first byte on.
    Answer,
    /// A response without a body, from its first byte on.
    Head,
    /// The rest of one, or nothing.
    #[default]
    Other,
}

/// A target that is written in place of another one.
#[derive(Debug)]
enum TargetOverride {
    /// Nothing of it is written.
    Given(Vec<u8>),
    /// So much is written of the method and the target.
    Begun { line: Vec<u8>, gone: usize },
    /// All of it.
    Written(Vec<u8>),
}

#[derive(Debug)]
enum CaptureMode {
    /// What is written passes. The room is that of the calls before.
    Off(Vec<u8>),
    /// What is to be written is kept too; so much of it is written.
    Capturing { bytes: Vec<u8>, gone: usize },
    /// In place of what is written, this goes out.
    Replaying { bytes: Vec<u8>, gone: usize },
}

impl Default for CaptureMode {
    fn default() -> CaptureMode {
        CaptureMode::Off(Vec::new())
    }
}

impl WireCapture {
    /// A call is sent by this method and with such heads.
    pub(super) fn begin(&self, method: &Method, heads: HeaderCasing<'_>) {
        let mut reel = self.0.get();
        reel.whole = None;
        reel.next = match *method {
            Method::HEAD | Method::CONNECT => NextRead::Head,
            _ => NextRead::Answer,
        };
        let HeaderCasing::Passed(passed) = heads else {
            (reel.spelling, reel.target, reel.interims) = (None, None, None);
            return;
        };
        reel.spelling = passed.spelling.cloned();
        reel.target = passed.target.map(|raw| TargetOverride::Given(raw.to_vec()));
        reel.interims = passed.interims.cloned();
        reel.answer.begin();
    }

    /// This is the head of an interim response.
    pub(super) fn expect_interim(&self, head: &[u8]) {
        let mut reel = self.0.get();
        if let Some(interims) = &reel.interims
            && let Some(head) = interim(head)
        {
            interims.add(&head);
            if let Some(waker) = reel.waker.take() {
                waker.wake();
            }
        }
    }

    /// Whoever waits for the answer is told of interim responses by this.
    pub(super) fn set_waker(&self, cx: &Context<'_>) {
        let mut reel = self.0.get();
        if reel.interims.is_some() {
            reel.waker = Some(cx.waker().clone());
        }
    }

    /// This was read.
    pub(super) fn on_read(&self, bytes: &[u8]) {
        let mut reel = self.0.get();
        reel.next = NextRead::Other;
        reel.answer.feed(bytes);
    }

    /// What is read next.
    pub(super) fn next(&self) -> NextRead {
        self.0.get().next
    }

    /// This was read of a response that may have a body. If it came whole, its head is left, and its body is had by
    /// [`WireCapture::take_all`]. False where a parser cannot read it as it is: nothing of it was heard.
    pub(super) fn expect_response(&self, bytes: &mut BytesMut) -> bool {
        let whole = CompleteMessage::answer(bytes);
        if whole.is_none() && !is_ready(bytes) {
            return false;
        }
        let reel = &mut *self.0.get();
        reel.next = NextRead::Other;
        reel.answer.feed(bytes);
        if let Some(whole) = whole {
            reel.whole = InlineBody::take(bytes, &whole);
        }
        true
    }

    /// The body of the answer that is there, where it came whole.
    pub(super) fn take_all(&self) -> Option<InlineBody> {
        self.0.get().whole.take()
    }

    /// From now on, what is written is kept.
    pub(super) fn start(&self) {
        let running = &mut self.0.get().running;
        let mut room = running.take();
        room.clear();
        *running = CaptureMode::Capturing {
            bytes: room,
            gone: 0,
        };
    }

    /// What is written next is this, in place of what the connection is given.
    pub(super) fn replay(&self, bytes: Vec<u8>) {
        self.0.get().running = CaptureMode::Replaying { bytes, gone: 0 };
    }

    /// Nothing is to be sent again, since the answer is there: tells how its names were written, where that was noted.
    pub(super) fn stop(&self) -> Option<HeaderCase> {
        let mut reel = self.0.get();
        if let CaptureMode::Capturing { .. } = reel.running {
            let room = reel.running.take();
            reel.running = CaptureMode::Off(if room.capacity() > ROOM {
                Vec::new()
            } else {
                room
            });
        }
        (reel.spelling, reel.interims, reel.waker) = (None, None, None);
        reel.answer.take()
    }

    /// What was to be written since [`WireCapture::start`], if anything was: a connection may have broken under it.
    pub(super) fn recorded(&self) -> Option<Vec<u8>> {
        let reel = &mut *self.0.get();
        let CaptureMode::Capturing { .. } = reel.running else {
            return None;
        };
        let bytes = Some(reel.running.take()).filter(|bytes| !bytes.is_empty())?;
        match reel.target.take() {
            Some(TargetOverride::Written(line)) => Some([line, bytes].concat()),
            Some(TargetOverride::Given(_) | TargetOverride::Begun { .. }) | None => Some(bytes),
        }
    }

    /// Writes to a socket, or what is played in place of it.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &self,
        (socket, cx): (&mut S, &mut Context<'_>),
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let reel = &mut *self.0.get();
        if let Some(TargetOverride::Given(_) | TargetOverride::Begun { .. }) = reel.target
            && !matches!(reel.running, CaptureMode::Replaying { .. })
        {
            return reel.poll_target((socket, cx), given);
        }
        match &mut reel.running {
            CaptureMode::Off(_) => {
                if let Some(spelling) = reel.spelling.take() {
                    reel.overlay.lay(&spelling, given);
                }
                reel.overlay.poll_write((socket, cx), given)
            }
            CaptureMode::Capturing { bytes, gone } => {
                bytes.truncate(*gone);
                given.iter().for_each(|part| bytes.extend_from_slice(part));
                if let Some(spelling) = &reel.spelling {
                    spelling.apply(bytes);
                }
                let count = ready!(Pin::new(socket).poll_write(cx, &bytes[*gone..]))?;
                *gone += count;
                Poll::Ready(Ok(count))
            }
            CaptureMode::Replaying { bytes, gone } => {
                while let Some(rest) = bytes.get(*gone..).filter(|rest| !rest.is_empty()) {
                    match ready!(Pin::new(&mut *socket).poll_write(cx, rest))? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        count => *gone += count,
                    }
                }
                reel.running = CaptureMode::default();
                Poll::Ready(Ok(given.iter().map(|part| part.len()).sum()))
            }
        }
    }
}

impl CaptureState {
    /// Writes the start of a request line with another target: as much as is given up to the end of the target.
    #[cold]
    fn poll_target<S: AsyncWrite + Unpin>(
        &mut self,
        (socket, cx): (&mut S, &mut Context<'_>),
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = given.iter().find(|part| !part.is_empty());
        let mut parts = first
            .map_or(&[][..], |part| part)
            .split(|byte| *byte == b' ');
        let (method, target) = (parts.next(), parts.next());
        let (method, target) = (method.unwrap_or_default(), target.unwrap_or_default());
        if let Some(TargetOverride::Given(raw)) = &self.target {
            let line = [method, b" ", raw].concat();
            self.target = Some(TargetOverride::Begun { line, gone: 0 });
        }
        if let Some(TargetOverride::Begun { line, gone }) = &mut self.target {
            while *gone < line.len() {
                match ready!(Pin::new(&mut *socket).poll_write(cx, &line[*gone..]))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => *gone += count,
                }
            }
            self.target = Some(TargetOverride::Written(mem::take(line)));
        }
        Poll::Ready(Ok(method.len() + 1 + target.len()))
    }
}

impl CaptureMode {
    fn take(&mut self) -> Vec<u8> {
        match mem::take(self) {
            CaptureMode::Off(bytes)
            | CaptureMode::Capturing { bytes, .. }
            | CaptureMode::Replaying { bytes, .. } => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::retry::PassedHead;
    use crate::upstream::short_writes::through;

    const HEAD: &str = "GET / HTTP/1.1\r\nhost: a\r\nx-a: 1\r\nx-a: 2\r\n\r\n";
    const SPELLED: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";

    fn spelling() -> HeaderCase {
        let mut reading = ResponseCaseReader::default();
        reading.begin();
        reading.feed(b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n");
        reading.take().unwrap()
    }

    fn heads<'a>(spelling: &'a HeaderCase, target: Option<&'a [u8]>) -> HeaderCasing<'a> {
        HeaderCasing::Passed(PassedHead {
            spelling: Some(spelling),
            target,
            interims: None,
        })
    }

    #[test]
    fn names_of_an_answer_are_noted_where_heads_are_passed() {
        let tape = WireCapture::default();
        let answered = |heads, answer: &[u8]| {
            tape.begin(&Method::GET, heads);
            tape.on_read(answer);
            tape.stop()
        };
        let passed = b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";
        assert_eq!(
            answered(HeaderCasing::Passed(PassedHead::default()), passed),
            Some(spelling())
        );
        let made = b"HTTP/1.1 200 OK\r\nX-B: 1\r\n\r\n";
        assert_eq!(answered(HeaderCasing::Made, made), None);
        assert_eq!(
            answered(HeaderCasing::Passed(PassedHead::default()), passed),
            Some(spelling())
        );
    }

    #[tokio::test]
    async fn a_call_is_spelled_and_kept_however_it_is_written() {
        for room in [1, 7, 20, 1000] {
            let tape = WireCapture::default();
            tape.begin(&Method::GET, heads(&spelling(), None));
            tape.start();
            let found = through(room, (HEAD, ""), |socket, parts| {
                tape.poll_write(socket, parts)
            });
            assert_eq!(found.await, SPELLED, "{room}");
            assert_eq!(tape.recorded().as_deref(), Some(SPELLED.as_bytes()));
        }
    }

    #[tokio::test]
    async fn a_raw_target_is_written_and_kept_however_it_is_written() {
        let raw = SPELLED.replace("GET / ", "GET /<a>?\"b ");
        for room in [1, 7, 20, 1000] {
            let tape = WireCapture::default();
            let spelling = spelling();
            tape.begin(&Method::GET, heads(&spelling, Some(b"/<a>?\"b")));
            tape.start();
            let found = through(room, (HEAD, ""), |socket, parts| {
                tape.poll_write(socket, parts)
            });
            assert_eq!(found.await, raw, "{room}");
            assert_eq!(tape.recorded().as_deref(), Some(raw.as_bytes()));
            tape.begin(&Method::GET, heads(&spelling, Some(b"/<a>?\"b")));
            let found = through(room, (HEAD, ""), |socket, parts| {
                tape.poll_write(socket, parts)
            });
            assert_eq!(found.await, raw, "{room}");
        }
    }
}
