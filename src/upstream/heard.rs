//! A socket that tells when something was read from it, and is counted for as long as it is open.
//!
//! A server that floods it with frames that bring no call further is cut, by the rule for clients, and counted.

use std::cell::Cell;
use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Socket;
use super::connect::chain;
use super::connection::Open;
use crate::domain::wire::Flood;
use crate::telemetry::clock;

/// Counts the connections to an upstream that were cut, since the server flooded them or broke the protocol.
#[derive(Debug, Clone)]
pub(super) struct Cuts {
    upstream: Rc<str>,
    count: Rc<Cell<u64>>,
}

impl Cuts {
    pub(super) fn of(upstream: &str) -> Cuts {
        Cuts {
            upstream: upstream.into(),
            count: Rc::default(),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn adds(&self, why: &dyn Error) {
        self.count.set(self.count.get() + 1);
        let upstream = &*self.upstream;
        let why = chain(why);
        tracing::warn!(upstream, why, "a server of HTTP/2 was cut");
    }
}

/// The socket.
#[derive(Debug)]
pub(super) struct Heard {
    socket: Socket,
    heard: Rc<Notify>,
    flood: Flood,
    began: Instant,
    cuts: Cuts,
    _open: Open,
}

/// Why the connection ends.
#[derive(Debug, thiserror::Error)]
#[error("the server sends too many frames that bring no call further")]
struct Flooded;

impl Heard {
    pub(super) fn new(socket: Socket, (open, cuts): (Open, Cuts), heard: Rc<Notify>) -> Heard {
        Heard {
            socket,
            heard,
            flood: Flood::of_server(),
            began: clock::now(),
            cuts,
            _open: open,
        }
    }

    fn hears(&mut self, bytes: &[u8]) -> io::Result<()> {
        let began = self.began;
        if !self.flood.hears(bytes, || clock::now() - began) {
            return Ok(());
        }
        self.cuts.adds(&Flooded);
        Err(io::Error::other(Flooded))
    }
}

impl AsyncRead for Heard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(cx, buf);
        if polled.is_pending() {
            return polled;
        }
        self.heard.notify_one();
        if let Some(read) = buf.filled().get(before..) {
            self.hears(read)?;
        }
        polled
    }
}

impl AsyncWrite for Heard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, bufs)
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
