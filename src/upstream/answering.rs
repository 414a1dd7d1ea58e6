//! A connection whose server must come to the point: what it may send before the head of an answer is bounded.
//!
//! Interim answers (1xx) are skipped within one read of the connection, so that a server which sends nothing else would
//! hold its whole worker, timeouts included, for as long as it likes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::local::Local;
use super::tape::Tape;

/// What may come before an answer is known to have begun: many interim answers, a head, and the first of a body.
const MOST: usize = 1024 * 1024;

/// Nothing is waited for, or its head is there.
const UNBOUNDED: usize = usize::MAX;

/// How much more may come before the answer that is waited for.
#[derive(Debug, Clone)]
pub(super) struct Patience(Local<usize>);

impl Patience {
    pub(super) fn new() -> Patience {
        Patience(Local::new(UNBOUNDED))
    }

    /// A call is sent: its answer must begin.
    pub(super) fn begin(&self) {
        *self.0.get() = MOST;
    }

    /// The head of the answer is there.
    pub(super) fn end(&self) {
        *self.0.get() = UNBOUNDED;
    }

    fn spend(&self, count: usize) -> io::Result<()> {
        let mut left = self.0.get();
        if *left == UNBOUNDED {
            return Ok(());
        }
        *left = left.checked_sub(count).ok_or_else(|| {
            let message = format!("more than {MOST} bytes came before the head of the answer");
            io::Error::new(io::ErrorKind::InvalidData, message)
        })?;
        Ok(())
    }
}

/// A socket that fails when its patience is at an end, and has a tape of what is written and read: not all that is read goes on.
#[derive(Debug)]
pub(super) struct Answering<S> {
    socket: S,
    patience: Patience,
    tape: Tape,
}

impl<S> Answering<S> {
    pub(super) fn new(socket: S, (patience, tape): (Patience, Tape)) -> Answering<S> {
        Answering {
            socket,
            patience,
            tape,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Answering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        let came = buf.filled().len() - before;
        let passed = self.tape.hears(&mut buf.filled_mut()[before..]);
        buf.set_filled(before + passed);
        Poll::Ready(self.patience.spend(came))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Answering<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Answering { socket, tape, .. } = self.get_mut();
        tape.poll_write((socket, cx), &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let Answering { socket, tape, .. } = self.get_mut();
        tape.poll_write((socket, cx), bufs)
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
