//! Detection of a client that disconnects while its call is served.
//!
//! hyper could detect this too, but it would allocate a read buffer for each call at once, while the served request
//! still holds the previous one. With half-closed connections enabled, hyper does not read meanwhile, and this module
//! does.
//!
//! Laws: the socket is read only while hyper would not read it; input is inspected as usual, and a small amount of it
//! is kept for hyper.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Flow, Inspected, Mode};
use crate::ReadinessGate;

/// The size of a read of input that is only held or discarded.
const AHEAD: usize = 8 * 1024;

/// An inspected socket for a hyper connection with half-close enabled.
#[derive(Debug)]
pub struct DisconnectWatch<S>(ReadinessGate<TokioIo<Inspected<S>>>);

impl<S> DisconnectWatch<S> {
    /// Watches a socket.
    pub fn new(inspected: Inspected<S>) -> DisconnectWatch<S> {
        DisconnectWatch(ReadinessGate::new(TokioIo::new(inspected)))
    }
}

impl<S: AsyncRead + Unpin> DisconnectWatch<S> {
    /// Fails if the client of a call in progress has disconnected.
    fn look(&mut self, cx: &Context<'_>) -> io::Result<()> {
        if !self.0.is_readable(cx) || !self.0.get().inner().is_unread() {
            return Ok(());
        }
        let polled = self
            .0
            .poll_if_readable(cx, |mut io, own| io.inner_mut().poll_client(own));
        match polled {
            Poll::Ready(polled) => polled,
            Poll::Pending => Ok(()),
        }
    }

    /// Checks the client if it takes no data now.
    fn look_while_pending<T>(
        &mut self,
        cx: &Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_pending() {
            self.look(cx)?;
        }
        written
    }
}

impl<S> Inspected<S> {
    /// Returns true if hyper has all input, and will not read before the call in progress is over.
    fn is_unread(&self) -> bool {
        let has_all = self.ready.is_empty() && self.inspection.begun() == self.follower.message();
        let is_in_hand = self.inspection.is_in_progress();
        has_all
            && match self.mode {
                Mode::Following => is_in_hand && self.held.is_empty() && self.follower.is_between(),
                Mode::Waiting => is_in_hand,
                // Also after the response: unread input would reset the connection before the client has the response.
                Mode::Refused => true,
                Mode::Transparent | Mode::Broken(_) => false,
            }
    }
}

impl<S: AsyncRead + Unpin> Inspected<S> {
    /// Waits until the client sends more; fails if it has disconnected.
    fn poll_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.is_unread() {
            let polled = self.poll_ahead(cx);
            self.note_head(&polled);
            self.inspection.record_incomplete_body(self.follower.owes());
            if let Flow::Done = ready!(polled)? {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads input that hyper does not read.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Flow>> {
        let mut room = [MaybeUninit::uninit(); AHEAD];
        let mut room = ReadBuf::uninit(&mut room);
        if self.mode == Mode::Following && self.follower.is_at_upgrade() {
            // Nothing followed the request, so the inspector has not reported the upgrade.
            self.mode = Mode::Waiting;
        }
        match self.mode {
            Mode::Following => self.poll_follow_apart(cx),
            Mode::Waiting => self.poll_wait(cx, &mut room),
            Mode::Refused => self.poll_drain(cx, &mut room),
            Mode::Transparent | Mode::Broken(_) => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> Read for DisconnectWatch<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Write for DisconnectWatch<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write(cx, buf);
        self.look_while_pending(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.0).poll_write_vectored(cx, bufs);
        self.look_while_pending(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    /// hyper flushes whenever it is polled and has nothing to write.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.0).poll_flush(cx);
        if let Poll::Ready(Ok(())) = flushed {
            return Poll::Ready(self.look(cx));
        }
        self.look_while_pending(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
