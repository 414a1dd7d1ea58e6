//! A socket whose messages go out with those of others, at the end of the turn: small ones, and one large piece of which it
//! is told that nobody will change it ([`WriteControl::offer_shared`]).
//!
//! Laws: bytes go out in the order in which they were written, each of them once, and all of them before the socket is shut
//! down. What the system did not take, and what failed, is for whoever wrote last, which is woken: it flushes whenever it is,
//! as an HTTP library does. For anybody else there are [`WriteControl`]. A socket that is let go sends what the system takes.

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

/// So few bytes are deferred, whoever has them: they are copied.
const FEW: usize = 1024;

/// The longest piece that is deferred. What it costs to wake a peer is little beside a longer one.
const LONGEST: usize = 64 * 1024;

/// The socket.
#[derive(Debug)]
pub struct CoalescingSocket {
    end: SocketHandle,
    outbox: WriteCoalescer,
}

/// The socket as its outbox sees it.
#[derive(Debug, Clone)]
pub(super) struct SocketHandle(ThreadBound<WriteState>);

/// Tells a socket what may wait and what may not, asks it what does, and keeps none open.
#[derive(Debug, Clone, Default)]
pub struct WriteControl(WeakThreadBound<WriteState>);

struct WriteState {
    stream: TcpStream,
    /// Taken from whoever writes, and not sent.
    late: DeferredWrites,
    /// A large piece of what is written next may be this.
    piece: Option<Bytes>,
    sending: FlushOwner,
    waiting: FlushTime,
    /// Who writes.
    owner: Waker,
}

#[derive(Debug)]
enum FlushOwner {
    /// Whoever flushes sends what is late.
    Owner,
    /// The outbox does.
    Outbox,
    /// It failed.
    Failed(io::Error),
}

enum SendProgress {
    /// Nothing is late, and its room is free.
    Whole,
    /// Or nothing, or it failed: the rest is for whoever writes.
    Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FlushTime {
    Turn,
    Never,
}

impl CoalescingSocket {
    /// A socket that defers.
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

    /// For whoever tells it what may wait.
    pub(super) fn write_control(&self) -> WriteControl {
        WriteControl(self.end.0.downgrade())
    }
}

impl WriteControl {
    /// From now on, what is flushed is sent.
    pub fn disable_coalescing(&self) {
        let _ = self.0.map(|writer| writer.waiting = FlushTime::Never);
    }

    /// What is written next has this in it, in this memory: where it is long, it need not be copied to wait.
    pub fn offer_shared(&self, piece: &Bytes) {
        if (FEW..=LONGEST).contains(&piece.len()) {
            let _ = self.0.map(|writer| writer.piece = Some(piece.clone()));
        }
    }

    /// How many bytes it has taken and the system has not, whatever it has said of them, beside those that go out at the end of
    /// this turn. While it takes nothing, they only become fewer.
    #[must_use]
    pub fn buffered(&self) -> usize {
        let late = |writer: &mut WriteState| match writer.register_waker() {
            true => 0,
            false => writer.late.len(),
        };
        self.0.map(late).unwrap_or_default()
    }
}

impl SocketHandle {
    /// Sends what the system takes now. Where it takes all of it, its room is for others.
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

/// What is late may hold credentials.
impl fmt::Debug for WriteState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
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

    /// Whether these parts wait for the end of the turn.
    fn may_wait(&self, parts: &[IoSlice<'_>], piece: Option<&Bytes>) -> bool {
        let is_free = self.late.is_empty() || matches!(self.sending, FlushOwner::Outbox);
        is_free && self.waiting == FlushTime::Turn && self.late.small_with(parts, piece) <= FEW
    }

    /// Whether what is late is sent at the end of the turn, whoever flushes.
    fn register_waker(&self) -> bool {
        self.waiting == FlushTime::Turn && matches!(self.sending, FlushOwner::Outbox)
    }

    /// Sends all that is late.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
            ready!(writer.poll_late(cx))?;
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
        if writer.register_waker() {
            return Poll::Ready(Ok(()));
        }
        writer.take_error()?;
        writer.poll_late(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writer = self.end.0.get();
        writer.take_error()?;
        ready!(writer.poll_late(cx))?;
        Pin::new(&mut writer.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
