//! A reader of responses that bounds the bytes before a response head.
//!
//! An HTTP parser skips interim responses (1xx) within a single read of the connection. A server that sends nothing
//! else would block its worker, timeouts included, for as long as it likes. So interim responses are taken out before
//! the parser, and folded fields are unfolded (RFC 9112 §5.2). A head that needs neither passes as it was read.
//!
//! Used by `http1` and `tasks`.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

use super::thread_bound::ThreadBound;
use super::wire_capture::{NextRead, WireCapture};
use dualgauge_transport::wire::{ResponseHead, is_ready, leading, unfold};

/// The bytes that may arrive before the response is known to have begun: interim responses, a head, the start of a
/// body.
const MOST: usize = 1024 * 1024;

/// No response is expected, or its head has arrived.
const UNBOUNDED: usize = usize::MAX;

/// The bytes that may still arrive before the expected response begins.
#[derive(Debug, Clone)]
pub(super) struct HeadByteLimit(ThreadBound<usize>);

impl HeadByteLimit {
    pub(super) fn new() -> HeadByteLimit {
        HeadByteLimit(ThreadBound::new(UNBOUNDED))
    }

    /// Starts the limit: a call is sent, and its response must begin.
    pub(super) fn begin(&self) {
        *self.0.get() = MOST;
    }

    /// Ends the limit: the head of the response has arrived.
    pub(super) fn end(&self) {
        *self.0.get() = UNBOUNDED;
    }

    fn spend(&self, count: usize) -> io::Result<()> {
        let mut left = self.0.get();
        if *left == UNBOUNDED {
            return Ok(());
        }
        *left = left.checked_sub(count).ok_or_else(|| {
            let message = format!("more than {MOST} bytes arrived before the head of the response");
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        Ok(())
    }
}

/// The buffer into which all connections of a worker read the start of their responses, one after another: a buffer
/// that is used each time stays in the CPU caches.
pub(super) type SharedReadBuffer = ThreadBound<BytesMut>;

/// The size of the shared read buffer, in bytes.
const ROOM: usize = 32 * 1024;

/// A socket that fails beyond the head limit, and passes reads and writes to a [`WireCapture`]. Not all that is read
/// is passed on.
pub(super) struct ResponseReader<S> {
    socket: S,
    head_limit: HeadByteLimit,
    capture: WireCapture,
    buffer: SharedReadBuffer,
    /// The bytes of a response that did not fit into the caller's buffer.
    rest: BytesMut,
    /// The first bytes of a response whose head is incomplete.
    part: BytesMut,
    length: ExpectedLength,
}

/// The expected size of the start of a response, from the one before.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ExpectedLength {
    /// The start fits into the shared read buffer.
    #[default]
    Short,
    /// The start does not fit, and is read directly into the caller's buffer to avoid copies.
    Long,
}

impl<S: fmt::Debug> fmt::Debug for ResponseReader<S> {
    /// Prints lengths only, never the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseReader")
            .field("socket", &self.socket)
            .field("patience", &self.head_limit)
            .field("rest", &self.rest.len())
            .finish_non_exhaustive()
    }
}

impl<S> ResponseReader<S> {
    pub(super) fn new(
        socket: S,
        head_limit: HeadByteLimit,
        capture: WireCapture,
        buffer: SharedReadBuffer,
    ) -> ResponseReader<S> {
        ResponseReader {
            socket,
            head_limit,
            capture,
            buffer,
            rest: BytesMut::new(),
            part: BytesMut::new(),
            length: ExpectedLength::default(),
        }
    }
}

impl<S: AsyncRead + Unpin> ResponseReader<S> {
    /// Reads the start of a response; into `part` if the head is incomplete or needs changes.
    fn poll_answer(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let buffer = &mut *self.buffer.get();
        buffer.clear();
        buffer.reserve(ROOM);
        let count = ready!(pin!(self.socket.read_buf(buffer)).poll(cx))?;
        if count >= ROOM {
            self.length = ExpectedLength::Long;
        }
        self.head_limit.spend(count)?;
        if count == 0 || self.capture.on_response(buffer) {
            let fits = buffer.len().min(buf.remaining());
            buf.put_slice(&buffer[..fits]);
            if fits < buffer.len() {
                self.rest = buffer.split_off(fits);
            }
        } else {
            self.part = buffer.split();
        }
        Poll::Ready(Ok(()))
    }

    /// Reads until the response head that begins in `part` is complete.
    fn poll_part(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.prepare_head() {
            self.part.reserve(ROOM);
            let count = ready!(pin!(self.socket.read_buf(&mut self.part)).poll(cx))?;
            if count == 0 {
                break;
            }
            self.head_limit.spend(count)?;
        }
        self.capture.on_read(&self.part);
        self.rest = mem::take(&mut self.part);
        self.take_rest(buf);
        Poll::Ready(Ok(()))
    }

    /// Removes interim responses from the start of `part` and unfolds the head behind them. Returns true while that
    /// is incomplete.
    fn prepare_head(&mut self) -> bool {
        loop {
            match leading(&self.part) {
                ResponseHead::Part => return true,
                ResponseHead::Interim(size) => {
                    let head = self.part.split_to(size);
                    self.capture.on_interim(&head);
                }
                ResponseHead::Final(size) => {
                    unfold(&mut self.part[..size]);
                    return false;
                }
                ResponseHead::Other => return false,
            }
        }
    }

    fn take_rest(&mut self, buf: &mut ReadBuf<'_>) {
        let fits = self.rest.len().min(buf.remaining());
        buf.put_slice(&self.rest[..fits]);
        self.rest.advance(fits);
        if self.rest.is_empty() {
            self.rest = BytesMut::new();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ResponseReader<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.rest.is_empty() {
            self.take_rest(buf);
            return Poll::Ready(Ok(()));
        }
        let next = self.capture.next();
        if !self.part.is_empty() {
            return self.poll_part(cx, buf);
        }
        if next == NextRead::Answer && self.length == ExpectedLength::Short {
            ready!(self.poll_answer(cx, buf))?;
            return match self.part.is_empty() {
                true => Poll::Ready(Ok(())),
                false => self.poll_part(cx, buf),
            };
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        let read = &buf.filled()[before..];
        if next == NextRead::Answer && read.len() < ROOM && buf.remaining() > 0 {
            self.length = ExpectedLength::Short;
        }
        self.head_limit.spend(read.len())?;
        if next != NextRead::Other && !read.is_empty() && !is_ready(read) {
            self.part.extend_from_slice(read);
            buf.set_filled(before);
            return self.poll_part(cx, buf);
        }
        self.capture.on_read(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ResponseReader<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let ResponseReader {
            socket, capture, ..
        } = self.get_mut();
        capture.poll_write(socket, cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let ResponseReader {
            socket, capture, ..
        } = self.get_mut();
        capture.poll_write(socket, cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;
    use crate::header_casing::HeaderCasing;

    /// Returns the bytes passed on through buffers of `size` bytes, and the length of the body taken out.
    async fn read(answer: &str, size: usize) -> (String, Option<usize>) {
        let (mut far, near) = duplex(1 << 20);
        let capture = WireCapture::default();
        let mut reader = ResponseReader::new(
            near,
            HeadByteLimit::new(),
            capture.clone(),
            SharedReadBuffer::default(),
        );
        capture.begin(&Method::GET, HeaderCasing::LowerCase);
        far.write_all(answer.as_bytes()).await.unwrap();
        drop(far);
        let (mut found, mut buffer) = (Vec::new(), vec![0; size]);
        loop {
            match reader.read(&mut buffer).await.unwrap() {
                0 => break,
                count => found.extend_from_slice(&buffer[..count]),
            }
        }
        let whole = capture.take_inline_body();
        let whole = whole.map(|whole| whole.restore(&mut http::HeaderMap::new()).len());
        (String::from_utf8(found).unwrap(), whole)
    }

    #[tokio::test]
    async fn a_response_is_read_through_buffers_of_any_size() {
        for length in [0, 100, 20_000, 100_000] {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            let blank = head.replace(&length.to_string(), &"0".repeat(length.to_string().len()));
            for size in [1, 7, 100, 8192, 1 << 17] {
                let whole = read(&format!("{head}{}", "x".repeat(length)), size).await;
                let expected = match length {
                    100 | 20_000 => (blank.clone(), Some(length)),
                    _ => (format!("{head}{}", "x".repeat(length)), None),
                };
                assert_eq!(whole, expected, "{length} {size}");
                let longer = format!("{head}{}HTTP/1.1 ", "x".repeat(length));
                assert_eq!(read(&longer, size).await, (longer, None), "{length} {size}");
            }
        }
    }

    #[tokio::test]
    async fn an_answer_behind_a_long_one_is_read_to_where_it_goes_on() {
        let (mut far, near) = duplex(1 << 20);
        let capture = WireCapture::default();
        let mut reader = ResponseReader::new(
            near,
            HeadByteLimit::new(),
            capture.clone(),
            SharedReadBuffer::default(),
        );
        let mut buffer = vec![0; 1 << 17];
        // The bytes of the first read, and whether the body bypasses the library.
        let found = [
            (90_000, (ROOM, false)),
            (90_000, (90_000, false)),
            (200, (200, false)),
            (200, (41, true)),
        ];
        for (length, expected) in found {
            capture.begin(&Method::GET, HeaderCasing::LowerCase);
            let head = "HTTP/1.1 200 OK\r\nContent-Length: ";
            let digits = format!("{:04}", length - 41);
            let mut answer = format!("{head}{digits}\r\n\r\n").into_bytes();
            answer.resize(length, b'x');
            far.write_all(&answer).await.unwrap();
            let first = reader.read(&mut buffer).await.unwrap();
            let is_whole = capture.take_inline_body().is_some();
            assert_eq!((first, is_whole), expected, "{length}");
            let mut rest = if is_whole { 0 } else { length - first };
            while rest > 0 {
                rest -= reader.read(&mut buffer).await.unwrap();
            }
        }
    }
}
