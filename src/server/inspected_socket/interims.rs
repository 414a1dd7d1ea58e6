//! Interim responses go out on the socket of a client: hyper writes none.
//!
//! Law: they go out between two messages of hyper's, and whole.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use super::Inspected;
use crate::upstream::Interims;

/// The interim responses that go out on a socket.
#[derive(Debug, Default)]
pub(super) struct InterimWriter {
    from: Option<Interims>,
    bytes: Vec<u8>,
    /// So much of them is written.
    gone: usize,
}

impl<S> Inspected<S> {
    /// Writes interim responses as well.
    #[must_use]
    pub fn telling(mut self, interims: Interims) -> Self {
        self.interims.from = Some(interims);
        self
    }
}

impl InterimWriter {
    /// Whether one may be written in part.
    pub(super) fn is_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Writes those that wait, and tells whether there were any.
    pub(super) fn poll_write<S: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        if !self.is_begun() {
            match &self.from {
                Some(from) => self.bytes = from.take(),
                None => return Poll::Ready(Ok(false)),
            }
            if !self.is_begun() {
                return Poll::Ready(Ok(false));
            }
        }
        ready!(self.poll_rest(socket, cx))?;
        Poll::Ready(Ok(true))
    }

    /// Writes what is begun.
    #[cold]
    pub(super) fn poll_rest<S: AsyncWrite + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.gone < self.bytes.len() {
            match ready!(Pin::new(&mut *socket).poll_write(cx, &self.bytes[self.gone..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.gone += count,
            }
        }
        (self.bytes, self.gone) = (Vec::new(), 0);
        self.from.iter().for_each(Interims::are_written);
        Poll::Ready(Ok(()))
    }
}
