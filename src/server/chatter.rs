//! A socket that a client of HTTP/2 speaks over, with an eye on what it says besides calls.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::domain::wire::Chatter;
use crate::telemetry::clock;

/// How many frames that bring nothing are taken of a client, and within what time.
const FRAMES: u32 = 1000;
const WITHIN: Duration = Duration::from_secs(10);

/// Told when there are too many.
pub(super) trait Alarm {
    /// There are.
    fn rings(&self);
}

/// The socket.
#[derive(Debug)]
pub(super) struct Overheard<S, A> {
    socket: S,
    chatter: Chatter,
    /// Since when frames are counted, and how many there were.
    since: Instant,
    frames: u32,
    alarm: Rc<A>,
}

impl<S, A: Alarm> Overheard<S, A> {
    pub(super) fn new(socket: S, alarm: Rc<A>) -> Overheard<S, A> {
        Overheard {
            socket,
            chatter: Chatter::default(),
            since: clock::now(),
            frames: 0,
            alarm,
        }
    }

    fn hears(&mut self, bytes: &[u8]) {
        let found = self.chatter.feed(bytes);
        if found == 0 {
            return;
        }
        let now = clock::now();
        if now - self.since > WITHIN {
            (self.since, self.frames) = (now, 0);
        }
        self.frames += found;
        if self.frames > FRAMES {
            self.alarm.rings();
        }
    }
}

impl<S: AsyncRead + Unpin, A: Alarm> AsyncRead for Overheard<S, A> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut own.socket).poll_read(cx, buf);
        if let Some(read) = buf.filled().get(before..) {
            own.hears(read);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, A> AsyncWrite for Overheard<S, A> {
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
        bufs: &[IoSlice<'_>],
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
