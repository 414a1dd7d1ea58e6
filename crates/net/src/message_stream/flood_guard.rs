//! A WebSocket transport that detects floods of useless frames, which the protocol library accepts silently.
//!
//! Used by `message_stream`.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::clock;
use dualgauge_transport::wire::FrameFlood;

/// The guarded socket. Reads fail once the peer has flooded it.
#[derive(Debug)]
pub(crate) struct FloodGuard<S> {
    socket: S,
    watch: Option<FloodWatch>,
}

#[derive(Debug)]
struct FloodWatch {
    flood: FrameFlood,
    began: Instant,
    is_flooded: bool,
}

impl<S> FloodGuard<S> {
    /// Wraps a socket whose next byte starts a frame.
    pub(super) fn guarded(socket: S) -> FloodGuard<S> {
        FloodGuard {
            socket,
            watch: Some(FloodWatch {
                flood: FrameFlood::default(),
                began: clock::now(),
                is_flooded: false,
            }),
        }
    }

    /// Wraps a socket of a trusted peer, or one whose first bytes are a handshake.
    pub(super) fn unguarded(socket: S) -> FloodGuard<S> {
        FloodGuard {
            socket,
            watch: None,
        }
    }

    /// Returns true if the peer has flooded the socket.
    pub(super) fn is_flooded(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.is_flooded)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FloodGuard<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_flooded() {
            return Poll::Ready(Err(io::Error::other("too many useless frames")));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.socket).poll_read(cx, buf);
        if let (Some(watch), Some(read)) = (&mut this.watch, buf.filled().get(before..)) {
            let began = watch.began;
            watch.is_flooded |= watch.flood.is_flooded_by(read, || clock::now() - began);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FloodGuard<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().socket).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
