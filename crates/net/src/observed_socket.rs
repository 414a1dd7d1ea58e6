//! A socket of an HTTP/2 client that detects floods of useless frames and a blocked write side.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::clock;
use dualgauge_transport::wire::FrameCounter;

/// An observer of a socket.
pub trait SocketObserver {
    /// Reports too many useless frames.
    fn on_flood(&self);

    /// Reports that the client does not take what was sent, so that writes wait.
    fn on_blocked(&self);

    /// Reports that the client takes data again.
    fn on_unblocked(&self);
}

/// A socket with an observer.
#[derive(Debug)]
pub struct ObservedSocket<S, A> {
    socket: S,
    flood: FrameCounter,
    began: Instant,
    observer: Rc<A>,
}

impl<S, A: SocketObserver> ObservedSocket<S, A> {
    /// Wraps a socket; `observer` is told of floods and blocked writes.
    pub fn new(socket: S, observer: Rc<A>) -> ObservedSocket<S, A> {
        ObservedSocket {
            socket,
            flood: FrameCounter::of_client(),
            began: clock::now(),
            observer,
        }
    }

    fn inspect(&mut self, bytes: &[u8]) {
        let began = self.began;
        if self.flood.is_flooded_by(bytes, || clock::now() - began) {
            self.observer.on_flood();
        }
    }

    /// Reports whether the client takes what is sent.
    fn report<T>(&self, polled: Poll<T>) -> Poll<T> {
        match polled {
            Poll::Pending => self.observer.on_blocked(),
            Poll::Ready(_) => self.observer.on_unblocked(),
        }
        polled
    }
}

impl<S: AsyncRead + Unpin, A: SocketObserver> AsyncRead for ObservedSocket<S, A> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.socket).poll_read(cx, buf);
        if let Some(read) = buf.filled().get(before..) {
            this.inspect(read);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin, A: SocketObserver> AsyncWrite for ObservedSocket<S, A> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_write(cx, buf);
        this.report(polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_write_vectored(cx, bufs);
        this.report(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.socket).poll_flush(cx);
        this.report(polled)
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
    struct RecordedState(Cell<bool>);

    impl SocketObserver for RecordedState {
        fn on_flood(&self) {}

        fn on_blocked(&self) {
            self.0.set(true);
        }

        fn on_unblocked(&self) {
            self.0.set(false);
        }
    }

    #[tokio::test]
    async fn a_blocked_write_is_reported() {
        let (near, mut far) = duplex(16);
        let observer = Rc::<RecordedState>::default();
        let mut socket = ObservedSocket::new(near, observer.clone());
        socket.write_all(&[0; 16]).await.unwrap();
        assert!(!observer.0.get());
        let mut received = [0; 17];
        let (written, read) = tokio::join!(socket.write_all(&[0; 1]), async {
            assert!(observer.0.get());
            far.read_exact(&mut received).await
        });
        written.unwrap();
        read.unwrap();
        assert!(!observer.0.get());
    }
}
