//! An HTTP/1.1 connection: it serves one call at a time and is reused.
//!
//! Used by `channel`, `endpoints`, `connection_pool` and `open`.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Context;

use futures_util::FutureExt;
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio::task::unconstrained;
use tokio::time::Instant;

use super::connection_driver::ConnectionDriver;
use super::count_guard::CountGuard;
use super::error::UpstreamError;
use super::header_casing::HeaderCasing;
use super::response_reader::{HeadByteLimit, ResponseReader};
use super::send_error::{RequestDisposition, SendError};
use super::wire_capture::WireCapture;
use super::{
    Body, IncomingBody, OutgoingRequest, ReadinessGate, Socket, Tasks, WriteControl, boxed,
};
use crate::clock;
use dualgauge_transport::wire::HeaderCase;

/// An open connection.
#[derive(Debug)]
pub(super) struct Http1Connection {
    sender: SendRequest<Body>,
    head_limit: HeadByteLimit,
    capture: WireCapture,
    driver: ConnectionDriver,
    write_control: WriteControl,
    /// The header case of the last response, if it was recorded.
    header_case: Option<HeaderCase>,
    opened: Instant,
    _close_on_drop: CloseOnDrop,
}

/// The length in bytes up to which the kernel accepts a body at once, or nearly so.
const MAX_ONE_WRITE: u64 = 64 * 1024;

/// Dropped, it ends the connection's task at once, and with it the body being sent.
type CloseOnDrop = oneshot::Sender<Infallible>;

/// An idle connection in the pool.
#[derive(Debug)]
pub(super) struct IdleConnection {
    pub(super) connection: Box<Http1Connection>,
    pub(super) since: Instant,
}

impl Http1Connection {
    /// Starts HTTP/1.1 on a new socket. The documentation of the crate shows the stack of I/O layers.
    pub(super) async fn handshake(
        socket: Socket,
        open: CountGuard,
        tasks: &Tasks,
    ) -> Result<Box<Http1Connection>, UpstreamError> {
        let mut builder = Builder::new();
        // White space before a colon is removed (RFC 9112 §5.1).
        builder.allow_spaces_after_header_name_in_responses(true);
        let (head_limit, capture) = (HeadByteLimit::new(), WireCapture::default());
        let socket = socket.coalescing(tasks.write_coalescer());
        let write_control = socket.write_control();
        let reader = ResponseReader::new(
            socket,
            head_limit.clone(),
            capture.clone(),
            tasks.read_buffer(),
        );
        let gate = ReadinessGate::new(TokioIo::new(reader));
        let handshake = builder.handshake(gate).await;
        let (sender, connection) = handshake.map_err(UpstreamError::Broken)?;
        let (close_on_drop, mut closed) = oneshot::channel();
        let driver = ConnectionDriver::new(connection.with_upgrades().map(drop));
        let task_driver = driver.clone();
        tasks.start(async move {
            let _open = open;
            // The call that uses the connection gets its error; between calls no one needs it. The second branch
            // drops the first, which closes the connection.
            tokio::select! {
                biased;
                () = poll_fn(|cx| task_driver.poll_in_task(cx)) => {}
                _ = &mut closed => task_driver.close(),
            }
        });
        Ok(Box::new(Http1Connection {
            sender,
            head_limit,
            capture,
            driver,
            write_control,
            header_case: None,
            opened: clock::now(),
            _close_on_drop: close_on_drop,
        }))
    }

    pub(super) fn opened(&self) -> Instant {
        self.opened
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Returns true when the connection can take another call. Waits for its task, which may not have run since the
    /// last response ended.
    pub(super) async fn is_ready(&mut self) -> bool {
        self.sender.is_ready() || self.sender.ready().await.is_ok()
    }

    /// Sends a call and waits for the head of its response.
    pub(super) async fn send(
        &mut self,
        outgoing: OutgoingRequest,
        casing: HeaderCasing<'_>,
    ) -> Result<Box<Response<IncomingBody>>, Box<SendError>> {
        self.head_limit.begin();
        self.capture.begin(&outgoing.head.method, casing);
        let result = self.send_and_poll(outgoing).await;
        self.head_limit.end();
        match result {
            Ok(answer) => {
                self.header_case = self.capture.stop();
                if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                    // A tunnel flushes once after each copy and expects the bytes to be sent.
                    self.write_control.disable_coalescing();
                    self.return_polling_to_task();
                }
                Ok(answer)
            }
            Err(mut failed) => {
                let sent = || RequestDisposition::Sent(self.capture.recorded());
                let disposition = failed
                    .take_message()
                    .map_or_else(sent, RequestDisposition::Unsent);
                let error = failed.into_error();
                Err(Box::new(SendError {
                    error,
                    request: disposition,
                }))
            }
        }
    }

    /// Sends a request and waits for the head of the response. If the body is short, the call polls the connection
    /// itself ([`ConnectionDriver`]). If it is long or streamed, the connection's task does, and sends the rest even
    /// while the response is not read.
    async fn send_and_poll(
        &mut self,
        outgoing: OutgoingRequest,
    ) -> Result<Box<Response<IncomingBody>>, Box<TrySendError<Request<Body>>>> {
        let (driver, capture) = (&self.driver, &self.capture);
        // Boxed here: from here to the client only the pointer moves.
        let wrap = |answer, driver| {
            boxed(|| IncomingBody::from_response(answer, driver, capture.take_inline_body()))
        };
        if outgoing.body.is_streamed() || outgoing.body.size_hint().lower() > MAX_ONE_WRITE {
            let mut sent = pin!(self.sender.try_send_request(outgoing.into()));
            let answered = poll_fn(|cx| {
                capture.set_waker(cx);
                sent.as_mut().poll(cx)
            });
            let answered = answered.await;
            return answered.map(|answer| wrap(answer, None)).map_err(Box::new);
        }
        driver.suppress_wakes();
        let mut sent = pin!(unconstrained(self.sender.try_send_request(outgoing.into())));
        let mut poll = |cx: &mut Context<'_>| {
            let answered = sent.as_mut().poll(cx);
            answered.map(|answered| {
                answered
                    .map(|answer| wrap(answer, Some(driver)))
                    .map_err(Box::new)
            })
        };
        poll_fn(|cx| driver.poll_for_call(cx, &mut poll)).await
    }

    /// Returns polling to the connection's task.
    pub(super) fn return_polling_to_task(&self) {
        self.driver.return_to_task();
    }

    /// Takes the header case of the response, if it was recorded.
    pub(super) fn take_header_case(&mut self) -> Option<HeaderCase> {
        self.header_case.take()
    }

    /// Records the bytes of the next call, which has no body, for a retry.
    pub(super) fn record_next_call(&self) {
        self.capture.start_recording();
    }

    /// Sends these bytes in place of the next call.
    pub(super) fn replay(&self, bytes: Vec<u8>) {
        self.capture.replay(bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::rc::Rc;

    use http::Request;
    use http::header::{CONNECTION, HOST, UPGRADE};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::task::LocalSet;

    use super::*;

    /// Returns both ends of an upgraded connection.
    async fn tunnel(tasks: &Tasks) -> (hyper::upgrade::Upgraded, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await;
        let mut far = listener.accept().await.unwrap().0;
        let (socket, open) = (Socket::Plain(near.unwrap()), CountGuard::new(Rc::default()));
        let mut connection = Http1Connection::handshake(socket, open, tasks)
            .await
            .unwrap();
        let request = Request::get("/")
            .header(HOST, "a.example")
            .header(CONNECTION, "upgrade")
            .header(UPGRADE, "chat")
            .body(Body::empty())
            .unwrap();
        let answer =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: chat\r\n\r\n";
        let answers = async {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(far.read_u8().await.unwrap());
            }
            far.write_all(answer).await.unwrap();
        };
        let (sent, ()) = tokio::join!(
            connection.send(request.into(), HeaderCasing::LowerCase),
            answers
        );
        (hyper::upgrade::on(*sent.unwrap()).await.unwrap(), far)
    }

    #[tokio::test]
    async fn writes_to_a_tunnel_are_not_deferred() {
        LocalSet::new()
            .run_until(async {
                let tasks = Tasks::default();
                let (near, far) = tunnel(&tasks).await;
                let mut near = TokioIo::new(near);
                near.write_all(b"now").await.unwrap();
                near.flush().await.unwrap();
                // The kernel is asked at once: no other task has run that could have sent the bytes.
                let mut found = [0; 8];
                let count = far.into_std().unwrap().read(&mut found);
                assert_eq!(count.unwrap(), 3);
                drop(near);
                tasks.idle().await;
            })
            .await;
    }
}
