//! A socket whose small messages go out with those of others, at the end of the turn.
//!
//! Laws: bytes go out in the order in which they were written, each of them once, and all of them before the socket is shut
//! down. What the system did not take, and what failed, is for whoever wrote last, which is woken: it flushes whenever it is,
//! as an HTTP library does. For anybody else there is [`Haste`]. A socket that is let go sends what the system takes.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::rc::Weak;
use std::task::{Context, Poll, Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::local::Local;
use super::outbox::Outbox;

/// Messages of so few bytes are deferred, as one piece: to copy them costs less than the system's look at each part of them.
const FEW: usize = 1024;

/// The socket.
#[derive(Debug)]
pub struct Deferring {
    end: End,
    outbox: Outbox,
}

/// The socket as its outbox sees it.
#[derive(Debug, Clone)]
pub(super) struct End(Local<Writer>);

/// Lets what a socket has to send wait no longer, and keeps no socket open.
#[derive(Debug, Clone, Default)]
pub struct Haste(Weak<RefCell<Writer>>);

struct Writer {
    stream: TcpStream,
    /// Taken from whoever writes, and not sent.
    late: Vec<u8>,
    sending: Sending,
    waiting: Waiting,
    /// Who writes.
    owner: Waker,
}

#[derive(Debug)]
enum Sending {
    /// Whoever flushes sends what is late.
    Owner,
    /// The outbox does.
    Outbox,
    /// It failed.
    Failed(io::Error),
}

enum Sent {
    /// Nothing is late, and its room is free.
    Whole,
    /// Or nothing, or it failed: the rest is for whoever writes.
    Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Turn,
    Never,
}

impl Deferring {
    /// A socket that defers.
    pub(super) fn new(stream: TcpStream, outbox: Outbox) -> Deferring {
        let writer = Writer {
            stream,
            late: Vec::new(),
            sending: Sending::Owner,
            waiting: Waiting::Turn,
            owner: Waker::noop().clone(),
        };
        Deferring {
            end: End(Local::new(writer)),
            outbox,
        }
    }

    /// Who can hasten it.
    pub(super) fn haste(&self) -> Haste {
        Haste(self.end.0.downgrade())
    }
}

impl Haste {
    /// From now on, what is flushed is sent.
    pub fn begin(&self) {
        if let Some(writer) = self.0.upgrade() {
            writer.borrow_mut().waiting = Waiting::Never;
        }
    }
}

impl End {
    /// Sends what the system takes now. Where it takes all of it, its room is for others.
    pub(super) fn send(&self) -> Option<Vec<u8>> {
        let mut writer = self.0.get();
        match writer.send() {
            Sent::Whole => Some(mem::take(&mut writer.late)),
            Sent::Part => {
                writer.owner.wake_by_ref();
                None
            }
        }
    }
}

/// What is late may hold credentials.
impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("late", &self.late.len())
            .field("sending", &self.sending)
            .finish_non_exhaustive()
    }
}

impl Writer {
    fn send(&mut self) -> Sent {
        self.sending = Sending::Owner;
        if self.late.is_empty() {
            return Sent::Whole;
        }
        match self.stream.try_write(&self.late) {
            Ok(count) if count == self.late.len() => {
                self.late.clear();
                return Sent::Whole;
            }
            Ok(count) => drop(self.late.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                self.late = Vec::new();
                self.sending = Sending::Failed(error);
            }
        }
        Sent::Part
    }

    fn take_fault(&mut self) -> io::Result<()> {
        if let Sending::Failed(_) = self.sending
            && let Sending::Failed(error) = mem::replace(&mut self.sending, Sending::Owner)
        {
            return Err(error);
        }
        Ok(())
    }

    /// Whether a message of so many bytes waits for the end of the turn.
    fn may_wait(&self, count: usize) -> bool {
        let is_free = self.late.is_empty() || matches!(self.sending, Sending::Outbox);
        is_free && self.waiting == Waiting::Turn && self.late.len() + count <= FEW
    }

    /// Whether what is late is sent at the end of the turn, whoever flushes.
    fn waits(&self) -> bool {
        self.waiting == Waiting::Turn && matches!(self.sending, Sending::Outbox)
    }

    fn take(&mut self, parts: &[IoSlice<'_>]) {
        for part in parts {
            self.late.extend_from_slice(part);
        }
    }

    /// Sends all that is late.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.late.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(cx, &self.late))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => drop(self.late.drain(..count)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Deferring {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.end.0.get().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Deferring {
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
        writer.take_fault()?;
        let count = bufs.iter().map(|part| part.len()).sum();
        if !writer.may_wait(count) {
            ready!(writer.poll_late(cx))?;
            return Pin::new(&mut writer.stream).poll_write_vectored(cx, bufs);
        }
        if writer.late.capacity() == 0 {
            writer.late = self.outbox.room();
        }
        writer.take(bufs);
        writer.owner.clone_from(cx.waker());
        if let Sending::Owner = writer.sending {
            writer.sending = Sending::Outbox;
            let bundle = self.outbox.add(&self.end);
            drop(writer);
            if let Some(bundle) = bundle {
                self.outbox.send(bundle);
            }
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writer = self.end.0.get();
        if writer.waits() {
            return Poll::Ready(Ok(()));
        }
        writer.take_fault()?;
        writer.poll_late(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writer = self.end.0.get();
        writer.take_fault()?;
        ready!(writer.poll_late(cx))?;
        Pin::new(&mut writer.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
