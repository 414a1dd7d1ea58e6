//! A socket with a write timeout: a client that stops reading is disconnected, and its resources are freed.
//!
//! Law: the timeout restarts whenever the peer takes any data, even data that was written long before.
//!
//! Law: a peer that has received any byte gets the full time limit again, even if that byte was written long before.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use crate::WriteControl;
use crate::clock;

/// A socket that fails if no data could be written to it for too long.
#[derive(Debug)]
pub struct WriteTimeout<S> {
    socket: S,
    limit: Duration,
    /// Reports the number of buffered bytes.
    write_control: WriteControl,
    /// The pending timeout; created on the first wait, which most connections never have.
    wait: Option<WriteWait>,
}

#[derive(Debug)]
struct WriteWait {
    timer: Pin<Box<Sleep>>,
    /// The number of bytes buffered when the wait began.
    late: usize,
}

impl<S> WriteTimeout<S> {
    /// Creates a socket whose writes may wait for `limit`; `write_control` is the write control of the socket.
    pub fn new(socket: S, limit: Duration, write_control: WriteControl) -> WriteTimeout<S> {
        WriteTimeout {
            socket,
            limit,
            write_control,
            wait: None,
        }
    }

    /// Fails a pending write when the timeout has passed.
    fn wait<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.wait = None;
            return polled;
        }
        let (limit, late) = (self.limit, self.write_control.buffered());
        let _ = self.wait.take_if(|wait| late < wait.late);
        let wait = self.wait.get_or_insert_with(|| WriteWait {
            timer: Box::pin(sleep_until(clock::now() + limit)),
            late,
        });
        wait.timer.as_mut().poll(cx).map(|()| {
            let message = format!("the client read nothing for {limit:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
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
    use std::future::poll_fn;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use socket2::SockRef;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::yield_now;

    use super::*;
    use crate::{Socket, WriteCoalescer};

    const LIMIT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_cut() {
        let (near, _far) = duplex(16);
        let mut paced = WriteTimeout::new(near, LIMIT, WriteControl::default());
        let began = clock::now();
        let error = paced.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(clock::now() - began, LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_that_takes_something_is_not() {
        let (near, mut far) = duplex(16);
        let mut paced = WriteTimeout::new(near, LIMIT, WriteControl::default());
        let slow = async {
            let mut received = [0; 8];
            for _ in 0..8 {
                tokio::time::advance(LIMIT - Duration::from_secs(1)).await;
                far.read_exact(&mut received).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(paced.write_all(&[0; 64]), slow);
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_that_takes_something_of_what_waited_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // With little room at both ends, little of it goes at a time.
        let listens = SockRef::from(&listener);
        listens.set_recv_buffer_size(4 * 1024).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap());
        let near = near.await.unwrap();
        let far = listener.accept().await.unwrap().0;
        SockRef::from(&near).set_send_buffer_size(8 * 1024).unwrap();
        near.writable().await.unwrap();
        while near.try_write(&[b'-'; 1024]).is_ok() {}
        // The buffer is never read.
        let socket = Socket::Plain(near).coalescing(WriteCoalescer::default());
        let write_control = socket.write_control();
        let mut paced = WriteTimeout::new(socket, LIMIT, write_control.clone());
        let piece = Bytes::from(vec![b'x'; 64 * 1024]);
        write_control.offer_shared(&piece);
        let parts = [b"head", &*piece].map(IoSlice::new);
        let write = poll_fn(|cx| Pin::new(&mut paced).poll_write_vectored(cx, &parts));
        assert_eq!(write.await.unwrap(), 4 + piece.len());
        assert_eq!(write_control.buffered(), 0);
        write_control.disable_coalescing();
        let (mut times, mut late) = (0, write_control.buffered());
        assert_eq!(late, 4 + piece.len());
        while late > 0 {
            times += 1;
            // Until some of it has gone; the clock stands still meanwhile.
            while write_control.buffered() == late {
                let _ = far.try_read(&mut [0; 1024]);
                if let Some(flushed) = paced.flush().now_or_never() {
                    flushed.unwrap();
                }
                yield_now().await;
            }
            late = write_control.buffered();
            tokio::time::advance(LIMIT / 2).await;
        }
        assert!(times > 3, "{times}");
    }
}
