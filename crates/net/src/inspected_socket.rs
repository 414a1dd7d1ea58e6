//! A socket whose input passes the HTTP/1 wire inspector before hyper reads it.
//!
//! It sits between a client's socket and hyper, and knows neither routes nor responses. Bytes are read directly into
//! hyper's buffer. Only these are copied: an incomplete line, the little that is read while a call is served, and a
//! short body that arrived with its head, which bypasses hyper ([`InlineBody`](crate::InlineBody)).
//!
//! Laws: hyper reads only inspected bytes, except for the lines named in this module, a request line whose raw
//! characters are percent-encoded, and zeros for the length of a body that bypasses it. A refused message is still one
//! request to the service, in order, so that it is answered, logged and counted like any other. After a refusal, no
//! further input is read as HTTP. Output is unchanged except for the case of header names: hyper writes lower case,
//! and they go out as the server sent them.
//!
//! Used by `flush_before_error` and `unread_body`.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::clock;
use crate::{HeaderCaseOverlay, Interims};
use dualgauge_transport::wire::{Finding, HeadLimits, RequestInspector, Te, Violation};

mod disconnect_watch;
mod inspection;
mod interims;
mod mode;
mod target;
#[cfg(test)]
mod tests;
mod whole;

pub use disconnect_watch::DisconnectWatch;
use inspection::UpgradeResult;
pub use inspection::{AdmittedRequest, Inspection};
use interims::InterimWriter;
use mode::{Flow, Mode};

const TE_LINE: &[u8] = b"te: TRAILERS\r\n";

/// The free space in hyper's buffer below which a separate buffer is used.
const ROOM: usize = 256;

/// The maximum input held while an upgrade request has no response.
const MAX_WAITING: usize = 8 * 1024;

/// The number of reads of a refused connection before other tasks get their turn.
const DRAIN_READS: usize = 8;

/// A socket whose input is inspected.
#[derive(Debug)]
pub struct Inspected<S> {
    socket: S,
    follower: RequestInspector,
    mode: Mode,
    /// Input that was read and not yet passed on.
    held: Vec<u8>,
    /// Input that was passed on, but did not fit in the reader's buffer.
    ready: BytesMut,
    inspection: Inspection,
    /// The header case of the response head being written.
    overlay: HeaderCaseOverlay,
    interims: InterimWriter,
    /// The reader that waits for the response to an upgrade request.
    reader: Option<Waker>,
    /// The timeout of a head, from its first byte; for the first head, from the start of the connection.
    head_timeout: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The time at which an incomplete head was first seen.
    began: Option<Instant>,
}

impl<S> Inspected<S> {
    /// Inspects a new connection.
    pub fn new(socket: S, limits: HeadLimits, inspection: Inspection) -> Self {
        Inspected {
            socket,
            follower: RequestInspector::new(limits),
            mode: Mode::Following,
            held: Vec::new(),
            ready: BytesMut::new(),
            inspection,
            overlay: HeaderCaseOverlay::default(),
            interims: InterimWriter::default(),
            reader: None,
            head_timeout: None,
            timer: None,
            began: None,
        }
    }

    /// Sets the timeout of a head. A late head is refused; the connection fails if the first one never begins. The
    /// idle time between requests is not limited here.
    #[must_use]
    pub fn head_within(mut self, limit: Duration) -> Self {
        self.head_timeout = Some(limit);
        self
    }

    /// Enables interim responses.
    #[must_use]
    pub fn with_interims(mut self, interims: Interims) -> Self {
        self.interims = InterimWriter::new(interims);
        self
    }

    /// Inspects the reader's buffer from `start` on, and leaves in it the bytes that are passed on.
    fn inspect_in_place(&mut self, buf: &mut ReadBuf<'_>, start: usize) -> Flow {
        let mut passed = start;
        let mut may_insert = true;
        // A head that was partly passed on can no longer be changed.
        let mut begins = self.follower.is_between().then_some(start);
        loop {
            let step = self.follower.feed(&buf.filled()[passed..]);
            passed += step.passed;
            if let Finding::HeadEnd { te } = step.found {
                self.record_header_case();
                if let Some(start) = begins.take()
                    && let Flow::Done = self.extract_inline_body(buf, start, passed, te)
                {
                    return Flow::Done;
                }
                if te == Te::Sent {
                    continue;
                }
                // One insertion moves few bytes; one for each request of a long pipeline would be quadratic.
                if may_insert && buf.remaining() >= TE_LINE.len() {
                    may_insert = false;
                    insert(buf, passed, TE_LINE);
                    passed += TE_LINE.len();
                    continue;
                }
                let rest = buf.filled()[passed..].to_vec();
                self.ready.extend_from_slice(TE_LINE);
                self.inspect(&rest);
            } else if let Finding::RawTarget { line } = step.found {
                let rest = buf.filled()[passed..].to_vec();
                let (line, rest) = rest.split_at(line);
                self.encode(line);
                self.inspect(rest);
            } else {
                self.handle_finding(step.found, &buf.filled()[passed..]);
            }
            buf.set_filled(passed);
            return if passed > start {
                Flow::Done
            } else {
                Flow::Again
            };
        }
    }

    /// Inspects input outside the reader's buffer.
    fn inspect(&mut self, input: &[u8]) {
        let mut rest = input;
        loop {
            let step = self.follower.feed(rest);
            let (passed, left) = rest.split_at(step.passed);
            self.ready.extend_from_slice(passed);
            rest = left;
            match step.found {
                Finding::HeadEnd { te } => {
                    self.record_header_case();
                    if te == Te::Absent {
                        self.ready.extend_from_slice(TE_LINE);
                    }
                }
                Finding::RawTarget { line } => {
                    let (line, left) = rest.split_at(line);
                    self.encode(line);
                    rest = left;
                }
                Finding::More | Finding::Upgrade | Finding::Refused { .. } => {
                    return self.handle_finding(step.found, rest);
                }
            }
        }
    }

    /// Records the header case of a request before hyper has the end of its head.
    fn record_header_case(&self) {
        if let Some(header_case) = self.follower.header_case() {
            self.inspection
                .record_request_case(self.follower.message(), header_case);
        }
    }

    /// Handles the bytes that are not passed on.
    fn handle_finding(&mut self, found: Finding, rest: &[u8]) {
        match found {
            Finding::More | Finding::HeadEnd { .. } | Finding::RawTarget { .. } => {
                self.held.extend_from_slice(rest);
            }
            Finding::Upgrade => {
                self.held.extend_from_slice(rest);
                self.mode = Mode::Waiting;
            }
            Finding::Refused { place, violation } => self.refuse(place, violation, rest),
        }
    }

    /// Refuses an incomplete head; returns false if there is none.
    fn refuse_incomplete_head(&mut self, violation: Violation) -> bool {
        let Some(place) = self.follower.give_up(self.held.len(), violation) else {
            return false;
        };
        let held = std::mem::take(&mut self.held);
        self.refuse(place, violation, &held);
        true
    }

    fn deliver(&mut self, buf: &mut ReadBuf<'_>) -> Flow {
        if self.ready.is_empty() {
            return Flow::Again;
        }
        let count = self.ready.len().min(buf.remaining());
        buf.put_slice(&self.ready[..count]);
        self.ready.advance(count);
        Flow::Done
    }

    /// Acts on the response to an upgrade request.
    fn resume_after_upgrade(&mut self, answer: UpgradeResult) {
        let held = std::mem::take(&mut self.held);
        match answer {
            UpgradeResult::Switched => {
                self.mode = Mode::Transparent;
                self.ready.extend_from_slice(&held);
            }
            UpgradeResult::Declined => {
                self.mode = Mode::Following;
                self.follower.resume();
                self.inspect(&held);
            }
        }
    }

    fn upgrade_answer(&self) -> Option<UpgradeResult> {
        self.inspection.answer(self.follower.message())
    }

    /// hyper writes after each response, so this is when a waiting reader can be woken.
    fn wake_reader(&mut self) {
        if self.reader.is_some()
            && self.upgrade_answer().is_some()
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
    }
}

fn insert(buf: &mut ReadBuf<'_>, at: usize, line: &[u8]) {
    buf.put_slice(line);
    buf.filled_mut()[at..].rotate_right(line.len());
}

impl<S: AsyncRead + Unpin> Inspected<S> {
    /// Reads from the socket behind the filled part of the buffer; returns the number of bytes.
    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        Poll::Ready(Ok(buf.filled().len() - before))
    }

    fn poll_follow(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Flow>> {
        if buf.remaining() < self.held.len() + ROOM {
            return self.poll_follow_apart(cx);
        }
        let start = buf.filled().len();
        buf.put_slice(&self.held);
        let polled = self.poll_socket(cx, buf);
        if let Poll::Ready(Ok(1..)) = polled {
            self.held.clear();
            return Poll::Ready(Ok(self.inspect_in_place(buf, start)));
        }
        buf.set_filled(start);
        polled.map_ok(|_| self.handle_end())
    }

    /// Handles the end of the client's input; an incomplete head is refused, so that it is answered.
    fn handle_end(&mut self) -> Flow {
        match self.refuse_incomplete_head(Violation::HeadCut) {
            true => Flow::Again,
            false => Flow::Done,
        }
    }

    /// Reads into a separate buffer, for a reader with little free space.
    fn poll_follow_apart(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Flow>> {
        let mut space = [0; ROOM];
        let mut part = ReadBuf::new(&mut space);
        if ready!(self.poll_socket(cx, &mut part))? == 0 {
            return Poll::Ready(Ok(self.handle_end()));
        }
        let mut input = std::mem::take(&mut self.held);
        input.extend_from_slice(part.filled());
        self.inspect(&input);
        Poll::Ready(Ok(Flow::Again))
    }

    /// Holds input that precedes the response to an upgrade request, and detects that the client leaves.
    fn poll_wait(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<Flow>> {
        if let Some(answer) = self.upgrade_answer() {
            self.resume_after_upgrade(answer);
            return Poll::Ready(Ok(Flow::Again));
        }
        self.reader = Some(cx.waker().clone());
        let start = buf.filled().len();
        while self.held.len() < MAX_WAITING {
            if ready!(self.poll_socket(cx, buf))? == 0 {
                return Poll::Ready(Ok(Flow::Done));
            }
            self.held.extend_from_slice(&buf.filled()[start..]);
            buf.set_filled(start);
        }
        Poll::Pending
    }

    /// Discards input after a refusal, so that closing with unread bytes does not reset the connection before the
    /// response is read. The end of the input is not reported: hyper would treat the client as gone, and not respond.
    fn poll_drain(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Flow>> {
        let start = buf.filled().len();
        for _ in 0..DRAIN_READS {
            let count = ready!(self.poll_socket(cx, buf))?;
            buf.set_filled(start);
            if count == 0 {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Inspected<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = this.poll_inspected(cx, buf);
        this.note_head(&polled);
        this.inspection.record_incomplete_body(this.follower.owes());
        if this.mode != Mode::Following || !this.follower.awaits_head(this.held.len()) {
            this.timer = None;
            return polled;
        }
        match (polled.is_ready(), this.head_timeout) {
            (false, Some(limit)) => {
                let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(limit)));
                ready!(timer.as_mut().poll(cx));
                this.timer = None;
                if this.refuse_incomplete_head(Violation::HeadTooSlow) {
                    return this.poll_inspected(cx, buf);
                }
                let message = format!("no request began within {limit:?}");
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, message)))
            }
            (true, _) | (false, None) => polled,
        }
    }
}

impl<S> Inspected<S> {
    /// Records the time of a head that did not arrive in one read.
    fn note_head<T>(&mut self, polled: &Poll<T>) {
        let is_within = self.follower.is_within_head(self.held.len());
        if is_within && polled.is_pending() {
            self.began.get_or_insert_with(clock::now);
        } else if !is_within && let Some(began) = self.began.take() {
            self.inspection.record_head_time(clock::now() - began);
        }
    }
}

impl<S: AsyncRead + Unpin> Inspected<S> {
    fn poll_inspected(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self;
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        loop {
            if let Flow::Done = this.deliver(buf) {
                return Poll::Ready(Ok(()));
            }
            let flow = match this.mode {
                Mode::Following => ready!(this.poll_follow(cx, buf))?,
                Mode::Waiting => ready!(this.poll_wait(cx, buf))?,
                Mode::Refused => ready!(this.poll_drain(cx, buf))?,
                Mode::Transparent => return Pin::new(&mut this.socket).poll_read(cx, buf),
                Mode::Broken(violation) => {
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, violation)));
                }
            };
            if let Flow::Done = flow {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Inspected<S> {
    /// Writes hyper's output; the names of a head get the case that the server used.
    fn poll_spelled(
        &mut self,
        cx: &mut Context<'_>,
        given: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.wake_reader();
        if self.interims.is_begun() {
            ready!(self.interims.poll_rest(&mut self.socket, cx))?;
        }
        // The header case belongs to the next head; if the output is anything else, it is dropped.
        if let Some(header_case) = self.inspection.take_answer()
            && !self.overlay.is_laid()
            && given
                .first()
                .is_some_and(|first| first.starts_with(b"HTTP/1."))
        {
            self.overlay.lay(&header_case, given);
        }
        self.overlay.poll_write(&mut self.socket, cx, given)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Inspected<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_spelled(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_spelled(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.wake_reader();
        // At this point hyper has written everything that precedes the interim responses.
        if ready!(this.interims.poll_write(&mut this.socket, cx))? {
            this.inspection.disable_coalescing();
        }
        ready!(Pin::new(&mut this.socket).poll_flush(cx))?;
        // hyper flushes only after it has written all of its buffer.
        this.inspection.is_flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
