//! A TCP socket, with or without TLS. The layers above read and write plain bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::{CoalescingSocket, WriteCoalescer, WriteControl};
use crate::tls_config::HTTP_2;

/// A socket, at either end of a connection.
#[derive(Debug)]
pub enum Socket {
    /// Plain TCP.
    Plain(TcpStream),
    /// Plain TCP whose small writes are sent together with those of other sockets.
    Deferring(CoalescingSocket),
    /// TLS over TCP.
    Secured(Box<TlsStream<TcpStream>>),
}

impl Socket {
    /// Returns true when both ends agreed on HTTP/2 (ALPN, RFC 7301).
    #[must_use]
    pub fn has_chosen_http2(&self) -> bool {
        match self {
            Socket::Plain(_) | Socket::Deferring(_) => false,
            Socket::Secured(stream) => stream.get_ref().1.alpn_protocol() == Some(HTTP_2),
        }
    }

    /// Defers small writes to `outbox`, unless the socket uses TLS.
    #[must_use]
    pub fn coalescing(self, outbox: WriteCoalescer) -> Socket {
        match self {
            Socket::Plain(stream) => Socket::Deferring(CoalescingSocket::new(stream, outbox)),
            Socket::Deferring(_) | Socket::Secured(_) => self,
        }
    }

    /// Returns a handle that controls deferral; it has no effect on a socket that does not defer.
    #[must_use]
    pub fn write_control(&self) -> WriteControl {
        match self {
            Socket::Plain(_) | Socket::Secured(_) => WriteControl::default(),
            Socket::Deferring(stream) => stream.write_control(),
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Deferring(stream) => Pin::new(stream).poll_read(cx, buf),
            Socket::Secured(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Socket::Deferring(stream) => Pin::new(stream).poll_write(cx, buf),
            Socket::Secured(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Socket::Deferring(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Socket::Secured(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Socket::Plain(stream) => stream.is_write_vectored(),
            Socket::Deferring(stream) => stream.is_write_vectored(),
            Socket::Secured(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Deferring(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Secured(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Deferring(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Secured(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
