//! A socket whose small writes are sent at the end of the turn, together with those of other sockets.
//!
//! A single large piece may be deferred too, if [`WriteControl::offer_shared`] announced it as immutable. Laws: bytes
//! leave in the order of writing, each once, and all before shutdown. Bytes that the kernel did not accept, and
//! errors, are left to the task that wrote last: it is woken and must flush whenever it is polled, as an HTTP library
//! does. Other tasks use [`WriteControl`]. A dropped socket sends what the kernel accepts.
//!
//! Used by `write_coalescer`.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::deferred_writes::DeferredWrites;
use super::thread_bound::{ThreadBound, WeakThreadBound};
use super::write_coalescer::WriteCoalescer;

/// Up to this many bytes of small parts are deferred: they are copied.
const FEW: usize = 1024;

/// The longest piece that is deferred. For a longer one, waking the peer is a small part of the cost.
const LONGEST: usize = 64 * 1024;

/// A socket that defers small writes.
#[derive(Debug)]
pub struct CoalescingSocket {
    end: SocketHandle,
    outbox: WriteCoalescer,
}

/// The socket, as [`WriteCoalescer`] holds it.
#[derive(Debug, Clone)]
pub(super) struct SocketHandle(ThreadBound<WriteState>);

/// A weak handle that controls deferral of a socket and reports its buffered bytes.
#[derive(Debug, Clone, Default)]
pub struct WriteControl(WeakThreadBound<WriteState>);

struct WriteState {
    stream: TcpStream,
    /// The bytes accepted from the writer and not sent yet.
    late: DeferredWrites,
    /// A large piece that the next write may contain.
    piece: Option<Bytes>,
    sending: FlushOwner,
    waiting: FlushTime,
    /// The waker of the task that wrote last.
    owner: Waker,
}

#[derive(Debug)]
enum FlushOwner {
    /// The writer's next flush.
    Owner,
    /// The coalescer, at the end of the turn.
    Outbox,
    /// None: sending failed.
    Failed(io::Error),
}

enum SendProgress {
    /// All is sent, and the buffer can be reused.
    Whole,
    /// Some is left, or sending failed: the writer must flush.
    Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushTime {
    Turn,
    Never,
}

impl CoalescingSocket {
    /// Wraps a stream; small writes are deferred to `outbox`.
    pub(super) fn new(stream: TcpStream, outbox: WriteCoalescer) -> CoalescingSocket {
        let writer = WriteState {
            stream,
            late: DeferredWrites::default(),
            piece: None,
            sending: FlushOwner::Owner,
            waiting: FlushTime::Turn,
            owner: Waker::noop().clone(),
        };
        CoalescingSocket {
            end: SocketHandle(ThreadBound::new(writer)),
            outbox,
        }
    }

    /// Returns a handle that controls deferral of this socket.
    pub(super) fn write_control(&self) -> WriteControl {
        WriteControl(self.end.0.downgrade())
    }
}

impl WriteControl {
    /// Disables deferral: from now on, each flush sends.
    pub fn disable_coalescing(&self) {
        let _ = self.0.map(|writer| writer.waiting = FlushTime::Never);
    }

    /// Announces a piece that the next write contains, in the same memory. A long piece need not be copied to be
    /// deferred.
    pub fn offer_shared(&self, piece: &Bytes) {
        if (FEW..=LONGEST).contains(&piece.len()) {
            let _ = self.0.map(|writer| writer.piece = Some(piece.clone()));
        }
    }

    /// Returns the bytes accepted from the writer and not yet by the kernel, except those sent at the end of this
    /// turn. Without new writes, the number only falls.
    #[must_use]
    pub fn buffered(&self) -> usize {
        let late = |writer: &mut WriteState| match writer.is_flushed_by_coalescer() {
            true => 0,
            false => writer.late.len(),
        };
        self.0.map(late).unwrap_or_default()
    }
}

impl SocketHandle {
    /// Sends what the kernel accepts now. Returns the buffer for reuse when all is sent; else wakes the writer.
    pub(super) fn send(&self) -> Option<Vec<u8>> {
        let mut writer = self.0.get();
        match writer.send() {
            SendProgress::Whole => Some(writer.late.take_buffer()),
            SendProgress::Part => {
                writer.owner.wake_by_ref();
                None
            }
        }
    }
}

/// Omits the bytes, which may contain credentials.
impl fmt::Debug for WriteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteState")
            .field("late", &self.late)
            .field("sending", &self.sending)
            .finish_non_exhaustive()
    }
}

impl WriteState {
    fn send(&mut self) -> SendProgress {
        self.sending = FlushOwner::Owner;
        if self.late.is_empty() {
            return SendProgress::Whole;
        }
        let tried = self.late.put(|parts| match parts {
            [one] => self.stream.try_write(one),
            parts => self.stream.try_write_vectored(parts),
        });
        match tried {
            Ok(count) => {
                self.late.advance(count);
                if self.late.is_empty() {
                    return SendProgress::Whole;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.late = DeferredWrites::default();
                self.sending = FlushOwner::Failed(error);
            }
        }
        SendProgress::Part
    }

    fn take_error(&mut self) -> io::Result<()> {
        if let FlushOwner::Failed(_) = self.sending
            && let FlushOwner::Failed(error) = mem::replace(&mut self.sending, FlushOwner::Owner)
        {
            return Err(error);
        }
        Ok(())
    }

    /// Returns true when these parts may be deferred to the end of the turn.
    fn may_wait(&self, parts: &[IoSlice<'_>], piece: Option<&Bytes>) -> bool {
        let is_free = self.late.is_empty() || matches!(self.sending, FlushOwner::Outbox);
        is_free && self.waiting == FlushTime::Turn && self.late.small_with(parts, piece) <= FEW
    }

    /// Returns true when the coalescer sends the deferred bytes at the end of the turn, so that a flush need not.
    fn is_flushed_by_coalescer(&self) -> bool {
        self.waiting == FlushTime::Turn && matches!(self.sending, FlushOwner::Outbox)
    }

    /// Sends all deferred bytes.
    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.late.is_empty() {
            let stream = Pin::new(&mut self.stream);
            let polled = self.late.put(|parts| stream.poll_write_vectored(cx, parts));
            match ready!(polled)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.late.advance(count),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for CoalescingSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end.0.get().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for CoalescingSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut writer = self.end.0.get();
        writer.take_error()?;
        let count = bufs.iter().map(|part| part.len()).sum();
        let piece = writer.piece.take();
        if !writer.may_wait(bufs, piece.as_ref()) {
            ready!(writer.poll_deferred(cx))?;
            return Pin::new(&mut writer.stream).poll_write_vectored(cx, bufs);
        }
        writer.late.make_space(|| self.outbox.take_buffer());
        writer.late.take(bufs, piece);
        writer.owner.clone_from(cx.waker());
        let bundle = match writer.sending {
            FlushOwner::Outbox => self.outbox.grow(count),
            FlushOwner::Owner | FlushOwner::Failed(_) => {
                writer.sending = FlushOwner::Outbox;
                self.outbox.add(&self.end, count)
            }
        };
        drop(writer);
        if let Some(bundle) = bundle {
            self.outbox.send(bundle);
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writer = self.end.0.get();
        if writer.is_flushed_by_coalescer() {
            return Poll::Ready(Ok(()));
        }
        writer.take_error()?;
        writer.poll_deferred(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writer = self.end.0.get();
        writer.take_error()?;
        ready!(writer.poll_deferred(cx))?;
        Pin::new(&mut writer.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
