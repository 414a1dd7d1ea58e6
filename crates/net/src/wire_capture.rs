//! Changes to the bytes of a connection, and recordings of them.
//!
//! On write: header names keep the case that the client used, and a call without a body is recorded so that a retry
//! can send the same bytes. On read: the header case of a response is recorded, and a body that came with its head is
//! taken out. Nearly every call succeeds at the first attempt. Recording the bytes costs one copy of a head; keeping
//! the request would cost a copy of each field.
//!
//! Used by `http1` and `response_reader`.

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
use dualgauge_transport::wire::{
    CompleteMessage, HeaderCase, ResponseCaseReader, interim, is_ready,
};

/// The capacity that a connection keeps of its last recording, in bytes.
const MAX_KEPT_BUFFER: usize = 2 * 1024;

/// The capture of one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct WireCapture(ThreadBound<CaptureState>);

#[derive(Debug, Default)]
struct CaptureState {
    running: CaptureMode,
    /// The header case of the next head.
    header_case: Option<HeaderCase>,
    overlay: HeaderCaseOverlay,
    /// The target of the next head, if it differs from the one that hyper writes.
    target: Option<TargetOverride>,
    /// The receiver of interim responses.
    interims: Option<Interims>,
    waker: Option<Waker>,
    answer: ResponseCaseReader,
    next: NextRead,
    /// The body of the response, if it came with the head.
    inline_body: Option<InlineBody>,
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
    Pending(Vec<u8>),
    /// The method and the target, and the number of bytes written.
    Partial { line: Vec<u8>, written: usize },
    /// All of it is written.
    Complete(Vec<u8>),
}

#[derive(Debug)]
enum CaptureMode {
    /// Writes pass unchanged. The buffer is kept for reuse.
    Off(Vec<u8>),
    /// Writes are recorded. `written` counts the bytes written so far.
    Capturing { bytes: Vec<u8>, written: usize },
    /// These bytes are sent in place of writes.
    Replaying { bytes: Vec<u8>, written: usize },
}

impl Default for CaptureMode {
    fn default() -> CaptureMode {
        CaptureMode::Off(Vec::new())
    }
}

impl WireCapture {
    /// Prepares for a call with this method and header case.
    pub(super) fn begin(&self, method: &Method, casing: HeaderCasing<'_>) {
        let mut capture = self.0.get();
        capture.inline_body = None;
        capture.next = match *method {
            Method::HEAD | Method::CONNECT => NextRead::Head,
            _ => NextRead::Answer,
        };
        let HeaderCasing::Passed(passed) = casing else {
            (capture.header_case, capture.target, capture.interims) = (None, None, None);
            return;
        };
        capture.header_case = passed.header_case.cloned();
        capture.target = passed
            .target
            .map(|raw| TargetOverride::Pending(raw.to_vec()));
        capture.interims = passed.interims.cloned();
        capture.answer.begin();
    }

    /// Passes on the head of an interim response, and wakes the task that waits for the response.
    pub(super) fn on_interim(&self, head: &[u8]) {
        let mut capture = self.0.get();
        if let Some(interims) = &capture.interims
            && let Some(head) = interim(head)
        {
            interims.add(&head);
            if let Some(waker) = capture.waker.take() {
                waker.wake();
            }
        }
    }

    /// Sets the task that is woken for interim responses.
    pub(super) fn set_waker(&self, cx: &Context<'_>) {
        let mut capture = self.0.get();
        if capture.interims.is_some() {
            capture.waker = Some(cx.waker().clone());
        }
    }

    /// Records the bytes of a read.
    pub(super) fn on_read(&self, bytes: &[u8]) {
        let mut capture = self.0.get();
        capture.next = NextRead::Other;
        capture.answer.feed(bytes);
    }

    /// Returns the expected content of the next read.
    pub(super) fn next(&self) -> NextRead {
        self.0.get().next
    }

    /// Processes the start of a response that may have a body. If the response is complete, only its head is left in
    /// `bytes`, and [`WireCapture::take_inline_body`] returns the body. Returns false if a parser cannot read the bytes
    /// as they are; then nothing is recorded.
    pub(super) fn on_response(&self, bytes: &mut BytesMut) -> bool {
        let message = CompleteMessage::answer(bytes);
        if message.is_none() && !is_ready(bytes) {
            return false;
        }
        let capture = &mut *self.0.get();
        capture.next = NextRead::Other;
        capture.answer.feed(bytes);
        if let Some(message) = message {
            capture.inline_body = InlineBody::take(bytes, &message);
        }
        true
    }

    /// Takes the body of the response, if it came with the head.
    pub(super) fn take_inline_body(&self) -> Option<InlineBody> {
        self.0.get().inline_body.take()
    }

    /// Starts recording what is written.
    pub(super) fn start_recording(&self) {
        let running = &mut self.0.get().running;
        let mut buffer = running.take();
        buffer.clear();
        *running = CaptureMode::Capturing {
            bytes: buffer,
            written: 0,
        };
    }

    /// Sends these bytes in place of the next head.
    pub(super) fn replay(&self, bytes: Vec<u8>) {
        self.0.get().running = CaptureMode::Replaying { bytes, written: 0 };
    }

    /// Stops recording, since the response has arrived. Returns the header case of the response, if it was recorded.
    pub(super) fn stop(&self) -> Option<HeaderCase> {
        let mut capture = self.0.get();
        if let CaptureMode::Capturing { .. } = capture.running {
            let buffer = capture.running.take();
            capture.running = CaptureMode::Off(if buffer.capacity() > MAX_KEPT_BUFFER {
                Vec::new()
            } else {
                buffer
            });
        }
        (capture.header_case, capture.interims, capture.waker) = (None, None, None);
        capture.answer.take()
    }

    /// Returns the bytes passed to the socket since [`WireCapture::start_recording`], if any. The connection may have
    /// broken before all were sent.
    pub(super) fn recorded(&self) -> Option<Vec<u8>> {
        let capture = &mut *self.0.get();
        let CaptureMode::Capturing { .. } = capture.running else {
            return None;
        };
        let bytes = Some(capture.running.take()).filter(|bytes| !bytes.is_empty())?;
        match capture.target.take() {
            Some(TargetOverride::Complete(line)) => Some([line, bytes].concat()),
            Some(TargetOverride::Pending(_) | TargetOverride::Partial { .. }) | None => Some(bytes),
        }
    }

    /// Writes `given` to the socket, or the bytes that replace it.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &self,
        socket: &mut S,
        cx: &mut Context<'_>,
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let capture = &mut *self.0.get();
        if let Some(TargetOverride::Pending(_) | TargetOverride::Partial { .. }) = capture.target
            && !matches!(capture.running, CaptureMode::Replaying { .. })
        {
            return capture.poll_target(socket, cx, given);
        }
        match &mut capture.running {
            CaptureMode::Off(_) => {
                if let Some(header_case) = capture.header_case.take() {
                    capture.overlay.lay(&header_case, given);
                }
                capture.overlay.poll_write(socket, cx, given)
            }
            CaptureMode::Capturing { bytes, written } => {
                bytes.truncate(*written);
                given.iter().for_each(|part| bytes.extend_from_slice(part));
                if let Some(header_case) = &capture.header_case {
                    header_case.apply(bytes);
                }
                let count = ready!(Pin::new(socket).poll_write(cx, &bytes[*written..]))?;
                *written += count;
                Poll::Ready(Ok(count))
            }
            CaptureMode::Replaying { bytes, written } => {
                while let Some(rest) = bytes.get(*written..).filter(|rest| !rest.is_empty()) {
                    match ready!(Pin::new(&mut *socket).poll_write(cx, rest))? {
                        0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        count => *written += count,
                    }
                }
                capture.running = CaptureMode::default();
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
        socket: &mut S,
        cx: &mut Context<'_>,
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = given.iter().find(|part| !part.is_empty());
        let mut parts = first
            .map_or(&[][..], |part| part)
            .split(|byte| *byte == b' ');
        let (method, target) = (parts.next(), parts.next());
        let (method, target) = (method.unwrap_or_default(), target.unwrap_or_default());
        if let Some(TargetOverride::Pending(raw)) = &self.target {
            let line = [method, b" ", raw].concat();
            self.target = Some(TargetOverride::Partial { line, written: 0 });
        }
        if let Some(TargetOverride::Partial { line, written }) = &mut self.target {
            while *written < line.len() {
                match ready!(Pin::new(&mut *socket).poll_write(cx, &line[*written..]))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => *written += count,
                }
            }
            self.target = Some(TargetOverride::Complete(mem::take(line)));
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
    use crate::header_casing::PassedHead;
    use crate::short_writes::write_through;

    const HEAD: &str = "GET / HTTP/1.1\r\nhost: a\r\nx-a: 1\r\nx-a: 2\r\n\r\n";
    const SPELLED: &str = "GET / HTTP/1.1\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";

    fn header_case() -> HeaderCase {
        let mut reading = ResponseCaseReader::default();
        reading.begin();
        reading.feed(b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n");
        reading.take().unwrap()
    }

    fn casing<'a>(header_case: &'a HeaderCase, target: Option<&'a [u8]>) -> HeaderCasing<'a> {
        HeaderCasing::Passed(PassedHead {
            header_case: Some(header_case),
            target,
            interims: None,
        })
    }

    #[test]
    fn the_header_case_of_a_response_is_recorded_where_heads_are_passed() {
        let capture = WireCapture::default();
        let answered = |casing, answer: &[u8]| {
            capture.begin(&Method::GET, casing);
            capture.on_read(answer);
            capture.stop()
        };
        let passed = b"HTTP/1.1 200 OK\r\nHost: a\r\nX-a: 1\r\nX-A: 2\r\n\r\n";
        assert_eq!(
            answered(HeaderCasing::Passed(PassedHead::default()), passed),
            Some(header_case())
        );
        let made = b"HTTP/1.1 200 OK\r\nX-B: 1\r\n\r\n";
        assert_eq!(answered(HeaderCasing::LowerCase, made), None);
        assert_eq!(
            answered(HeaderCasing::Passed(PassedHead::default()), passed),
            Some(header_case())
        );
    }

    #[tokio::test]
    async fn a_request_is_recased_and_recorded_for_any_write_sizes() {
        for capacity in [1, 7, 20, 1000] {
            let capture = WireCapture::default();
            capture.begin(&Method::GET, casing(&header_case(), None));
            capture.start_recording();
            let found = write_through(capacity, HEAD, "", |socket, cx, parts| {
                capture.poll_write(socket, cx, parts)
            });
            assert_eq!(found.await, SPELLED, "{capacity}");
            assert_eq!(capture.recorded().as_deref(), Some(SPELLED.as_bytes()));
        }
    }

    #[tokio::test]
    async fn a_raw_target_is_written_and_recorded_for_any_write_sizes() {
        let raw = SPELLED.replace("GET / ", "GET /<a>?\"b ");
        for capacity in [1, 7, 20, 1000] {
            let capture = WireCapture::default();
            let header_case = header_case();
            capture.begin(&Method::GET, casing(&header_case, Some(b"/<a>?\"b")));
            capture.start_recording();
            let found = write_through(capacity, HEAD, "", |socket, cx, parts| {
                capture.poll_write(socket, cx, parts)
            });
            assert_eq!(found.await, raw, "{capacity}");
            assert_eq!(capture.recorded().as_deref(), Some(raw.as_bytes()));
            capture.begin(&Method::GET, casing(&header_case, Some(b"/<a>?\"b")));
            let found = write_through(capacity, HEAD, "", |socket, cx, parts| {
                capture.poll_write(socket, cx, parts)
            });
            assert_eq!(found.await, raw, "{capacity}");
        }
    }
}
