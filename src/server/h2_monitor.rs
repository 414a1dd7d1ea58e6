//! A socket of an HTTP/2 client that detects floods of useless frames and a blocked write side.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::domain::wire::FrameCounter;
use crate::telemetry::clock;

/// An observer of a socket.
pub(super) trait SocketObserver {
    /// Reports too many useless frames.
    fn rings(&self);

    /// Reports that the client does not take what was sent, so that writes wait.
    fn waits(&self);

    /// Reports that the client takes data again.
    fn goes_on(&self);
}

/// A socket with an observer.
#[derive(Debug)]
pub(super) struct MonitoredSocket<S, A> {
    socket: S,
    flood: FrameCounter,
    began: Instant,
    alarm: Rc<A>,
}

impl<S, A: SocketObserver> MonitoredSocket<S, A> {
    pub(super) fn new(socket: S, alarm: Rc<A>) -> MonitoredSocket<S, A> {
        MonitoredSocket {
            socket,
            flood: FrameCounter::of_client(),
            began: clock::now(),
            alarm,
        }
    }

    fn hears(&mut self, bytes: &[u8]) {
        let began = self.began;
        if self.flood.is_flooded_by(bytes, || clock::now() - began) {
            self.alarm.rings();
        }
    }

    /// Reports whether the client takes what is sent.
    fn tells<T>(&self, polled: Poll<T>) -> Poll<T> {
        match polled {
            Poll::Pending => self.alarm.waits(),
            Poll::Ready(_) => self.alarm.goes_on(),
        }
        polled
    }
}

impl<S: AsyncRead + Unpin, A: SocketObserver> AsyncRead for MonitoredSocket<S, A> {
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

impl<S: AsyncWrite + Unpin, A: SocketObserver> AsyncWrite for MonitoredSocket<S, A> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let polled = Pin::new(&mut own.socket).poll_write(cx, buf);
        own.tells(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        let polled = Pin::new(&mut own.socket).poll_write_vectored(cx, bufs);
        own.tells(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let polled = Pin::new(&mut own.socket).poll_flush(cx);
        own.tells(polled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// True while writes wait for the client.
    #[derive(Debug, Default)]
    struct Noted(Cell<bool>);

    impl SocketObserver for Noted {
        fn rings(&self) {}

        fn waits(&self) {
            self.0.set(true);
        }

        fn goes_on(&self) {
            self.0.set(false);
        }
    }

    #[tokio::test]
    async fn a_client_that_has_yet_to_take_something_is_told_of() {
        let (near, mut far) = duplex(16);
        let noted = Rc::<Noted>::default();
        let mut socket = MonitoredSocket::new(near, noted.clone());
        socket.write_all(&[0; 16]).await.unwrap();
        assert!(!noted.0.get());
        let mut taken = [0; 17];
        let (written, read) = tokio::join!(socket.write_all(&[0; 1]), async {
            assert!(noted.0.get());
            far.read_exact(&mut taken).await
        });
        written.unwrap();
        read.unwrap();
        assert!(!noted.0.get());
    }
}
