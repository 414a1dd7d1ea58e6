//! The state of a socket that defers writes: the stream, the bytes that wait, and who sends them.
//!
//! Used by `coalescing_socket` and `write_coalescer`.

use std::fmt;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use super::deferred_writes::DeferredWrites;
use super::thread_bound::ThreadBound;

/// Up to this many bytes of small parts are deferred: they are copied.
pub(super) const FEW: usize = 1024;

/// A stream as its writer and the coalescer share it.
#[derive(Debug, Clone)]
pub(super) struct SocketHandle(pub(super) ThreadBound<WriteState>);

/// A stream, and the bytes that wait to be written to it.
pub(super) struct WriteState {
    pub(super) stream: TcpStream,
    /// The bytes accepted from the writer and not sent yet.
    pub(super) late: DeferredWrites,
    /// A large piece that the next write may contain.
    pub(super) piece: Option<Bytes>,
    pub(super) sending: FlushOwner,
    /// False if each flush is to send.
    pub(super) may_defer: bool,
    /// The waker of the task that wrote last.
    pub(super) owner: Waker,
}

/// The sender of the waiting bytes.
#[derive(Debug)]
pub(super) enum FlushOwner {
    /// The writer's next flush.
    Owner,
    /// The coalescer, at the end of the turn.
    Outbox,
    /// None: sending failed.
    Failed(io::Error),
}

impl SocketHandle {
    /// Sends what the kernel accepts now. Returns the buffer for reuse when all is sent; else wakes the writer.
    pub(super) fn send(&self) -> Option<Vec<u8>> {
        let mut writer = self.0.get();
        if writer.send() {
            return Some(writer.late.take_buffer());
        }
        writer.owner.wake_by_ref();
        None
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
    /// Sends what the kernel accepts now. Returns true if all is sent. Otherwise some is left, or sending failed: the
    /// writer must flush.
    fn send(&mut self) -> bool {
        self.sending = FlushOwner::Owner;
        if self.late.is_empty() {
            return true;
        }
        let tried = self.late.put(|parts| match parts {
            [one] => self.stream.try_write(one),
            parts => self.stream.try_write_vectored(parts),
        });
        match tried {
            Ok(count) => {
                self.late.advance(count);
                if self.late.is_empty() {
                    return true;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.late = DeferredWrites::default();
                self.sending = FlushOwner::Failed(error);
            }
        }
        false
    }

    /// Returns the error of the last sending, if it failed.
    pub(super) fn take_error(&mut self) -> io::Result<()> {
        if let FlushOwner::Failed(_) = self.sending
            && let FlushOwner::Failed(error) = mem::replace(&mut self.sending, FlushOwner::Owner)
        {
            return Err(error);
        }
        Ok(())
    }

    /// Returns true when these parts may be deferred to the end of the turn.
    pub(super) fn may_wait(&self, parts: &[IoSlice<'_>], piece: Option<&Bytes>) -> bool {
        let is_free = self.late.is_empty() || matches!(self.sending, FlushOwner::Outbox);
        is_free && self.may_defer && self.late.small_with(parts, piece) <= FEW
    }

    /// Returns true when the coalescer sends the deferred bytes at the end of the turn, so that a flush need not.
    pub(super) fn is_flushed_by_coalescer(&self) -> bool {
        self.may_defer && matches!(self.sending, FlushOwner::Outbox)
    }

    /// Sends all deferred bytes.
    pub(super) fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
