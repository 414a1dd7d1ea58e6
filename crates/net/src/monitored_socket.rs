//! A socket that notifies of reads, counts as open until it is dropped, and detects floods.
//!
//! A server that floods the connection with useless frames is disconnected, by the same rule as a client, and
//! counted.
//!
//! Used by `endpoints` and `http2`.

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
use super::count_guard::CountGuard;
use crate::clock;
use dualgauge_transport::wire::FrameCounter;

/// A counter of the connections to an upstream that were aborted because the server flooded them or broke the
/// protocol.
#[derive(Debug, Clone)]
pub(super) struct AbuseCounter {
    upstream: Rc<str>,
    count: Rc<Cell<u64>>,
}

impl AbuseCounter {
    pub(super) fn new(upstream: &str) -> AbuseCounter {
        AbuseCounter {
            upstream: upstream.into(),
            count: Rc::default(),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.get()
    }

    pub(super) fn add(&self, why: &dyn Error) {
        self.count.set(self.count.get() + 1);
        let upstream = &*self.upstream;
        let why = chain(why);
        tracing::warn!(
            upstream,
            why,
            "closed an abusive HTTP/2 upstream connection"
        );
    }
}

/// A socket that is monitored for floods.
#[derive(Debug)]
pub(super) struct MonitoredSocket {
    socket: Socket,
    data_received: Rc<Notify>,
    flood: FrameCounter,
    began: Instant,
    aborts: AbuseCounter,
    _open: CountGuard,
}

/// The error that ends a flooded connection.
#[derive(Debug, thiserror::Error)]
#[error("the server sends too many useless frames")]
struct FloodError;

impl MonitoredSocket {
    pub(super) fn new(
        socket: Socket,
        open: CountGuard,
        aborts: AbuseCounter,
        data_received: Rc<Notify>,
    ) -> MonitoredSocket {
        MonitoredSocket {
            socket,
            data_received,
            flood: FrameCounter::of_server(),
            began: clock::now(),
            aborts,
            _open: open,
        }
    }

    fn check_flood(&mut self, bytes: &[u8]) -> io::Result<()> {
        let began = self.began;
        if !self.flood.is_flooded_by(bytes, || clock::now() - began) {
            return Ok(());
        }
        self.aborts.add(&FloodError);
        Err(io::Error::other(FloodError))
    }
}

impl AsyncRead for MonitoredSocket {
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
        self.data_received.notify_one();
        if let Some(read) = buf.filled().get(before..) {
            self.check_flood(read)?;
        }
        polled
    }
}

impl AsyncWrite for MonitoredSocket {
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
