//! Changes to the bytes of a connection, and recordings of them.
//!
//! On write: header names keep the case that the client used, and a call without a body is recorded so that a retry
//! can send the same bytes. On read: the header case of a response is recorded, and a body that came with its head is
//! taken out. Nearly every call succeeds at the first attempt. Recording the bytes costs one copy of a head; keeping
//! the request would cost a copy of each field.

use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::AsyncWrite;

use bytes::BytesMut;
use http::Method;

use super::header_casing::HeaderCasing;
use super::thread_bound::ThreadBound;
use super::{HeaderCaseOverlay, InlineBody, Interims};
use crate::domain::wire::{CompleteMessage, HeaderCase, ResponseCaseReader, interim, is_ready};

/// The capacity that a connection keeps of its last recording, in bytes.
const ROOM: usize = 2 * 1024;

/// The capture of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct WireCapture(ThreadBound<CaptureState>);

#[derive(Debug, Default)]
struct CaptureState {
    running: CaptureMode,
    /// The header case of the next head.
    spelling: Option<HeaderCase>,
    overlay: HeaderCaseOverlay,
    /// The target of the next head, if it differs from the one that hyper writes.
    target: Option<TargetOverride>,
    /// The receiver of interim responses.
    interims: Option<Interims>,
    waker: Option<Waker>,
    answer: ResponseCaseReader,
    next: NextRead,
    /// The body of the response, if it came with the head.
    whole: Option<InlineBody>,
}

/// The expected content of the next read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextRead {
    /// The start of a response.
    Answer,
    /// The start of a response without a body.
    Head,
    /// The rest of a response, or nothing.
    #[default]
    Other,
}

/// A request target that replaces the one that hyper writes.
#[derive(Debug)]
enum TargetOverride {
    /// Nothing is written yet.
    Given(Vec<u8>),
    /// The method and the target, and the number of bytes written.
    Begun { line: Vec<u8>, gone: usize },
    /// All of it is written.
    Written(Vec<u8>),
}

#[derive(Debug)]
enum CaptureMode {
    /// Writes pass unchanged. The buffer is kept for reuse.
    Off(Vec<u8>),
    /// Writes are recorded. `gone` counts the bytes written so far.
    Capturing { bytes: Vec<u8>, gone: usize },
    /// These bytes are sent in place of writes.
    Replaying { bytes: Vec<u8>, gone: usize },
}

impl Default for CaptureMode {
    fn default() -> CaptureMode {
        CaptureMode::Off(Vec::new())
    }
}

impl WireCapture {
    /// Prepares for a call with this method and header case.
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

    /// Passes on the head of an interim response, and wakes the task that waits for the response.
    pub(super) fn on_interim(&self, head: &[u8]) {
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

    /// Sets the task that is woken for interim responses.
    pub(super) fn set_waker(&self, cx: &Context<'_>) {
        let mut reel = self.0.get();
        if reel.interims.is_some() {
            reel.waker = Some(cx.waker().clone());
        }
    }

    /// Records the bytes of a read.
    pub(super) fn on_read(&self, bytes: &[u8]) {
        let mut reel = self.0.get();
        reel.next = NextRead::Other;
        reel.answer.feed(bytes);
    }

    /// Returns the expected content of the next read.
    pub(super) fn next(&self) -> NextRead {
        self.0.get().next
    }

    /// Processes the start of a response that may have a body. If the response is complete, only its head is left in
    /// `bytes`, and [`WireCapture::take_inline_body`] returns the body. Returns false if a parser cannot read the bytes as
    /// they are; then nothing is recorded.
    pub(super) fn on_response(&self, bytes: &mut BytesMut) -> bool {
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

    /// Takes the body of the response, if it came with the head.
    pub(super) fn take_inline_body(&self) -> Option<InlineBody> {
        self.0.get().whole.take()
    }

    /// Starts recording what is written.
    pub(super) fn start_recording(&self) {
        let running = &mut self.0.get().running;
        let mut room = running.take();
        room.clear();
        *running = CaptureMode::Capturing {
            bytes: room,
            gone: 0,
        };
    }

    /// Sends these bytes in place of the next head.
    pub(super) fn replay(&self, bytes: Vec<u8>) {
        self.0.get().running = CaptureMode::Replaying { bytes, gone: 0 };
    }

    /// Stops recording, since the response has arrived. Returns the header case of the response, if it was recorded.
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

    /// Returns the bytes passed to the socket since [`WireCapture::start_recording`], if any. The connection may have broken
    /// before all were sent.
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

    /// Writes `given` to the socket, or the bytes that replace it.
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
    /// Writes the start of a request line with another target. Returns the number of given bytes that it replaces: up
    /// to the end of the target.
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
    use crate::upstream::header_casing::PassedHead;
    use crate::upstream::short_writes::write_through;

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
    fn the_header_case_of_a_response_is_recorded_where_heads_are_passed() {
        let capture = WireCapture::default();
        let answered = |heads, answer: &[u8]| {
            capture.begin(&Method::GET, heads);
            capture.on_read(answer);
            capture.stop()
        };
        let passed = b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";
        assert_eq!(
            answered(HeaderCasing::Passed(PassedHead::default()), passed),
            Some(spelling())
        );
        let made = b"HTTP/1.1 200 OK\r\nX-B: 1\r\n\r\n";
        assert_eq!(answered(HeaderCasing::LowerCase, made), None);
        assert_eq!(
            answered(HeaderCasing::Passed(PassedHead::default()), passed),
            Some(spelling())
        );
    }

    #[tokio::test]
    async fn a_request_is_recased_and_recorded_for_any_write_sizes() {
        for room in [1, 7, 20, 1000] {
            let capture = WireCapture::default();
            capture.begin(&Method::GET, heads(&spelling(), None));
            capture.start_recording();
            let found = write_through(room, (HEAD, ""), |socket, parts| {
                capture.poll_write(socket, parts)
            });
            assert_eq!(found.await, SPELLED, "{room}");
            assert_eq!(capture.recorded().as_deref(), Some(SPELLED.as_bytes()));
        }
    }

    #[tokio::test]
    async fn a_raw_target_is_written_and_recorded_for_any_write_sizes() {
        let raw = SPELLED.replace("GET / ", "GET /<a>?\"b ");
        for room in [1, 7, 20, 1000] {
            let capture = WireCapture::default();
            let spelling = spelling();
            capture.begin(&Method::GET, heads(&spelling, Some(b"/<a>?\"b")));
            capture.start_recording();
            let found = write_through(room, (HEAD, ""), |socket, parts| {
                capture.poll_write(socket, parts)
            });
            assert_eq!(found.await, raw, "{room}");
            assert_eq!(capture.recorded().as_deref(), Some(raw.as_bytes()));
            capture.begin(&Method::GET, heads(&spelling, Some(b"/<a>?\"b")));
            let found = write_through(room, (HEAD, ""), |socket, parts| {
                capture.poll_write(socket, parts)
            });
            assert_eq!(found.await, raw, "{room}");
        }
    }
}
