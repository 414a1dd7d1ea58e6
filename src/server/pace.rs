//! A socket whose peer must take something now and then: a client that stops reading is cut, and what it
//! held is free again.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use crate::telemetry::clock;

/// A socket that fails when nothing could be written to it for too long.
#[derive(Debug)]
pub struct Paced<S> {
    socket: S,
    limit: Duration,
    /// Made when the peer is first waited for; most never are.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    /// A socket whose writes may wait for `limit`.
    pub fn new(socket: S, limit: Duration) -> Paced<S> {
        Paced {
            socket,
            limit,
            alarm: None,
        }
    }

    /// Lets a write that waits fail at its time.
    fn wait<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.alarm = None;
            return polled;
        }
        let limit = self.limit;
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(clock::now() + limit)));
        alarm.as_mut().poll(cx).map(|()| {
            let message = format!("the client took nothing for {limit:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.wait(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.wait(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.socket).poll_flush(cx);
        self.wait(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.wait(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_cut() {
        let (near, _far) = duplex(16);
        let mut paced = Paced::new(near, LIMIT);
        let began = clock::now();
        let error = paced.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(clock::now() - began, LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_that_takes_something_is_not() {
        let (near, mut far) = duplex(16);
        let mut paced = Paced::new(near, LIMIT);
        let slow = async {
            let mut taken = [0; 8];
            for _ in 0..8 {
                tokio::time::advance(LIMIT - Duration::from_secs(1)).await;
                far.read_exact(&mut taken).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(paced.write_all(&[0; 64]), slow);
        written.unwrap();
    }
}
