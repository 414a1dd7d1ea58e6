//! Delivery of the written part of a failed HTTP/1.1 response.
//!
//! If a response body fails, hyper closes the connection and drops its write buffer, which may hold the head of that
//! response and earlier ones. Law: a failed response breaks off only after everything before the failure was written
//! to the socket. The write timeout bounds the wait.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::inspected_socket::Inspection;

/// A body whose error is delayed until the connection has been flushed.
#[derive(Debug)]
pub struct FlushBeforeError<B: Body> {
    body: B,
    fault: Option<B::Error>,
    inspection: Inspection,
}

impl<B: Body> FlushBeforeError<B> {
    /// Wraps a body that is sent over the connection of this inspection.
    pub fn new(body: B, inspection: Inspection) -> FlushBeforeError<B> {
        let fault = None;
        FlushBeforeError {
            body,
            fault,
            inspection,
        }
    }
}

impl<B: Body> Drop for FlushBeforeError<B> {
    fn drop(&mut self) {
        // hyper drops the body once it has all of it.
        self.inspection.record_answered();
    }
}

impl<B: Body<Data = Bytes, Error: Unpin> + Unpin> Body for FlushBeforeError<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if this.fault.is_none() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Err(fault)) => this.fault = Some(fault),
                frame => {
                    if let Some(Ok(frame)) = &frame
                        && let Some(piece) = frame.data_ref()
                    {
                        this.inspection.offer_shared(piece);
                    }
                    return Poll::Ready(frame);
                }
            }
            this.inspection.must_flush();
        }
        ready!(this.inspection.poll_flushed(cx));
        Poll::Ready(this.fault.take().map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.fault.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::ready;
    use std::time::Duration;

    use http::{Request, Response};
    use http_body_util::combinators::BoxBody;
    use http_body_util::{BodyExt as _, Full, StreamBody};
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, duplex};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::LocalSet;

    use super::*;
    use crate::clock;
    use crate::inspected_socket::{DisconnectWatch, Inspected};
    use crate::shared_timer::SharedTimer;
    use crate::{Socket, Tasks, WriteCoalescer};
    use dualgauge_transport::wire::HeadLimits;

    const LONG: usize = 64 * 1024;

    /// Serves a long response, and at `/cut` one that fails at once.
    fn answer(request: &Request<Incoming>) -> BoxBody<Bytes, &'static str> {
        if request.uri().path() == "/cut" {
            let fault = futures_util::stream::iter([Err("cut")]);
            return StreamBody::new(fault).boxed();
        }
        Full::new(Bytes::from(vec![b'x'; LONG]))
            .map_err(|never: Infallible| match never {})
            .boxed()
    }

    /// Two ends of a connection.
    async fn connected() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap());
        let far = far.await.unwrap();
        (far, listener.accept().await.unwrap().0)
    }

    fn builder() -> http1::Builder {
        let mut builder = http1::Builder::new();
        builder.half_close(true);
        builder
    }

    /// Serves a connection until it ends.
    async fn served<S>(
        socket: S,
        inspection: Inspection,
        builder: http1::Builder,
    ) -> hyper::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let inspected = Inspected::new(socket, HeadLimits::default(), inspection.clone());
        let service = service_fn(|request| {
            let _ = inspection.begin();
            let body = FlushBeforeError::new(answer(&request), inspection.clone());
            ready(Ok::<_, Infallible>(Response::new(body)))
        });
        let connection = builder.serve_connection(DisconnectWatch::new(inspected), service);
        connection.await
    }

    #[tokio::test]
    async fn earlier_responses_reach_a_slow_client() {
        for width in [1, 1024, 1 << 20] {
            let (mut far, near) = duplex(width);
            let served = served(near, Inspection::default(), builder());
            let (mut from, mut to) = tokio::io::split(&mut far);
            let asks = async {
                for target in ["/long", "/cut"] {
                    let request = format!("GET {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
                    to.write_all(request.as_bytes()).await.unwrap();
                }
            };
            let mut received = String::new();
            let (served, (), read) = tokio::join!(served, asks, from.read_to_string(&mut received));
            read.unwrap();
            assert!(served.unwrap_err().is_user());
            assert_eq!(
                received.matches("HTTP/1.1 200 OK\r\n").count(),
                2,
                "{width}"
            );
            assert_eq!(received.matches('x').count(), LONG, "{width}");
        }
    }

    #[tokio::test]
    async fn a_client_that_closes_behind_its_answer_ends_the_connection_in_good_order() {
        let (mut far, near) = duplex(1 << 20);
        let served = served(near, Inspection::default(), builder());
        let talk = async {
            let request = b"GET /long HTTP/1.1\r\nHost: a.example\r\n\r\n";
            far.write_all(request).await.unwrap();
            let mut received = Vec::new();
            while !received.ends_with(&[b'x'; LONG]) {
                far.read_buf(&mut received).await.unwrap();
            }
            far.shutdown().await.unwrap();
            // The end is signalled too; over TLS that is more than the end of the socket.
            far.read_to_end(&mut received).await.unwrap();
        };
        let (served, ()) = tokio::join!(served, talk);
        served.unwrap();
    }

    #[tokio::test]
    async fn deferred_writes_are_sent_before_the_connection_breaks_off() {
        let (mut far, near) = connected().await;
        // The buffer is never read.
        let socket = Socket::Plain(near).coalescing(WriteCoalescer::default());
        let inspection = Inspection::with_write_control(socket.write_control());
        let served = served(socket, inspection, builder());
        far.write_all(b"GET /cut HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .await
            .unwrap();
        assert!(served.await.unwrap_err().is_user());
        let mut received = String::new();
        far.read_to_string(&mut received).await.unwrap();
        assert!(received.starts_with("HTTP/1.1 200 OK\r\n"), "{received}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_idle_time_starts_when_all_buffered_data_is_sent() {
        const IDLE: Duration = Duration::from_secs(1);
        let tasks = Tasks::default();
        let (mut far, near) = connected().await;
        far.write_all(b"GET /long HTTP/1.1\r\nHost: a.example\r\n\r\n")
            .await
            .unwrap();
        near.readable().await.unwrap();
        near.writable().await.unwrap();
        let mut before = 0;
        while let Ok(count) = near.try_write(&[b'-'; LONG]) {
            before += count;
        }
        let began = clock::now();
        let talk = async {
            let socket = Socket::Plain(near).coalescing(tasks.write_coalescer());
            let write_control = socket.write_control();
            let mut builder = builder();
            builder
                .timer(SharedTimer::new(write_control.clone(), IDLE))
                .header_read_timeout(IDLE);
            let served = served(
                socket,
                Inspection::with_write_control(write_control.clone()),
                builder,
            );
            let reads = async {
                tokio::time::sleep(5 * IDLE / 2).await;
                assert!(write_control.buffered() > LONG);
                let mut received = Vec::new();
                far.read_to_end(&mut received).await.unwrap();
                received
            };
            let (served, received) = tokio::join!(served, reads);
            assert!(served.unwrap_err().is_timeout());
            assert_eq!((clock::now() - began).as_millis(), 3500);
            let received = &received[before..];
            assert!(received.starts_with(b"HTTP/1.1 200 OK\r\n"));
            assert!(received.ends_with(&[b'x'; LONG]));
        };
        LocalSet::new().run_until(talk).await;
    }
}
