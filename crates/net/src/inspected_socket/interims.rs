//! Interim responses, written directly to the client's socket because hyper does not write them.
//!
//! Law: each one is written whole, between two messages of hyper.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::AsyncWrite;

use crate::Interims;

/// The writer of interim responses.
#[derive(Debug, Default)]
pub(super) struct InterimWriter {
    from: Option<Interims>,
    bytes: Vec<u8>,
    /// The number of bytes written.
    gone: usize,
}

impl InterimWriter {
    /// Creates a writer of these interim responses.
    pub(super) fn new(from: Interims) -> InterimWriter {
        InterimWriter {
            from: Some(from),
            ..InterimWriter::default()
        }
    }

    /// Returns true if one may be partly written.
    pub(super) fn is_begun(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// Writes the pending interim responses; returns whether there were any.
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

    /// Writes the rest of what was begun.
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
