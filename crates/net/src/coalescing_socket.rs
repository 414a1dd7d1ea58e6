//! A socket whose small writes are sent at the end of the turn, together with those of other sockets.
//!
//! A single large piece may be deferred too, if [`WriteControl::offer_shared`] announced it as immutable. Laws: bytes
//! leave in the order of writing, each once, and all before shutdown. Bytes that the kernel did not accept, and
//! errors, are left to the task that wrote last: it is woken and must flush whenever it is polled, as an HTTP library
//! does. Other tasks use [`WriteControl`]. A dropped socket sends what the kernel accepts.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::deferred_writes::DeferredWrites;
use super::thread_bound::{ThreadBound, WeakThreadBound};
use super::write_coalescer::WriteCoalescer;
use super::write_state::{FEW, FlushOwner, SocketHandle, WriteState};

/// The longest piece that is deferred. For a longer one, waking the peer is a small part of the cost.
const LONGEST: usize = 64 * 1024;

/// A socket that defers small writes.
#[derive(Debug)]
pub struct CoalescingSocket {
    end: SocketHandle,
    outbox: WriteCoalescer,
}

/// A weak handle that controls deferral of a socket and reports its buffered bytes.
#[derive(Debug, Clone, Default)]
pub struct WriteControl(WeakThreadBound<WriteState>);

impl CoalescingSocket {
    /// Wraps a stream; small writes are deferred to `outbox`.
    pub(super) fn new(stream: TcpStream, outbox: WriteCoalescer) -> CoalescingSocket {
        let writer = WriteState {
            stream,
            late: DeferredWrites::default(),
            piece: None,
            sending: FlushOwner::Owner,
            may_defer: true,
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
        let _ = self.0.map(|writer| writer.may_defer = false);
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
