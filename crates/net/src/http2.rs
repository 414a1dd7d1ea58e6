//! An HTTP/2 connection to a server (RFC 9113), shared by calls.
//!
//! A connection counts as open once the server has announced how many concurrent streams it accepts. Laws: no more
//! calls use it than that; a call that is dropped is reset, its upload included; a call that the server refused was
//! not processed and may be retried; a connection that is silent while calls wait gets a PING and ends without a
//! reply; so does one that the server floods. The documentation of the crate shows its I/O layers.
//!
//! Used by `channel`, `endpoints`, `http2_pool` and `open`.

use std::cell::Cell;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING};
use http::uri::{Authority, Parts, Scheme};
use http::{Request, Response, Uri, Version, request};
use http_body::{Frame, SizeHint};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::Instant;

use super::body::AbortedUpload;
use super::count_guard::CountGuard;
use super::error::{ends_connection, is_local_abort, is_refusal};
use super::monitored_socket::{AbuseCounter, MonitoredSocket};
use super::pool_settings::PoolSettings;
use super::send_error::{RequestDisposition, SendError};
use super::{Body, IncomingBody, Socket, Tasks};
use crate::clock;

/// The bytes of one response that a server may send before they are read. The window of the connection is the sum for
/// all calls, so that a slow client does not stall other calls.
const STREAM_WINDOW: u32 = 128 * 1024;
/// The largest flow-control window (RFC 9113 §6.9.1).
const LARGEST_WINDOW: usize = (1 << 31) - 1;
/// The bytes of a request body that may be buffered for sending.
const SEND_BUFFER: usize = 128 * 1024;
/// The limit for the header list of a response, in bytes (RFC 9113 §10.5.1).
const MAX_HEADER_LIST: u32 = 64 * 1024;
/// The number of stream errors of a server that are tolerated.
const MAX_STREAM_ERRORS: usize = 100;
/// The silence before a PING while calls wait, as a multiple of the connect timeout. The reply must come within one
/// connect timeout.
const SILENCE_FACTOR: u32 = 2;

/// A shared connection. Dropped, it is closed at once.
#[derive(Debug)]
pub(super) struct Http2Connection {
    sender: SendRequest<UploadBody>,
    scheme: Scheme,
    /// The `:authority` of calls that name none.
    authority: Option<Authority>,
    streams: Cell<usize>,
    /// The time when the last call on it ended.
    idle_since: Cell<Instant>,
    opened: Instant,
    /// The number of concurrent streams that the server accepts.
    max_streams: Rc<Cell<usize>>,
    /// True if the connection takes no further calls: the server sent `GOAWAY`, the connection is broken, or a call on
    /// it timed out.
    is_draining: Cell<bool>,
    _ends: watch::Sender<()>,
}

/// The reason why HTTP/2 did not start.
#[derive(Debug, thiserror::Error)]
pub(super) enum Http2HandshakeError {
    /// The received bytes are not HTTP/2.
    #[error("the server does not speak HTTP/2")]
    Invalid(#[source] hyper::Error),
    /// The server closed the connection without a preface.
    #[error("the server closed the connection before HTTP/2 began")]
    Closed,
}

impl Http2Connection {
    /// Starts HTTP/2 on a new socket. Cancel-safe: dropping the future leaves nothing behind.
    pub(super) async fn handshake(
        socket: Socket,
        open: CountGuard,
        aborts: AbuseCounter,
        tasks: &Tasks,
        settings: &PoolSettings,
    ) -> Result<Rc<Http2Connection>, Http2HandshakeError> {
        let (ends, ended) = watch::channel(());
        let executor = TaskExecutor {
            tasks: tasks.clone(),
            ended: ended.clone(),
        };
        let data_received = Rc::<Notify>::default();
        let socket = TokioIo::new(MonitoredSocket::new(
            socket,
            open,
            aborts.clone(),
            data_received.clone(),
        ));
        let handshake = builder(executor.clone(), settings).handshake(socket).await;
        let (sender, mut connection) = handshake.map_err(Http2HandshakeError::Invalid)?;
        let max_streams = Rc::new(Cell::new(0));
        while max_streams.get() == 0 {
            // Both branches are cancel-safe: the connection is polled again.
            tokio::select! {
                ended = &mut connection => return Err(match ended {
                    Ok(()) => Http2HandshakeError::Closed,
                    Err(error) => Http2HandshakeError::Invalid(error),
                }),
                () = data_received.notified() => max_streams.set(connection.current_max_send_streams()),
            }
        }
        let task_limit = max_streams.clone();
        executor.execute(async move {
            let mut connection = pin!(connection);
            std::future::poll_fn(|cx| {
                let polled = connection.as_mut().poll(cx);
                task_limit.set(connection.current_max_send_streams());
                polled.map(|ended| {
                    if let Err(error) = ended
                        && is_local_abort(&error)
                    {
                        aborts.add(&error);
                    }
                })
            })
            .await;
        });
        let now = clock::now();
        Ok(Rc::new(Http2Connection {
            sender,
            scheme: match settings.tls {
                Some(_) => Scheme::HTTPS,
                None => Scheme::HTTP,
            },
            authority: settings.authority.parse().ok(),
            streams: Cell::new(0),
            idle_since: Cell::new(now),
            opened: now,
            max_streams,
            is_draining: Cell::new(false),
            _ends: ends,
        }))
    }

    /// Returns true when another call may use the connection.
    pub(super) fn has_capacity(&self) -> bool {
        !self.is_over() && self.streams.get() < self.max_streams.get()
    }

    /// Returns true when the connection takes no further calls.
    pub(super) fn is_over(&self) -> bool {
        self.is_draining.get() || self.sender.is_closed()
    }

    /// Stops taking calls. Those in progress go on, and the connection ends with the last of them.
    pub(super) fn retire(&self) {
        self.is_draining.set(true);
    }

    /// Returns true when no call uses the connection.
    pub(super) fn is_idle(&self) -> bool {
        self.streams.get() == 0
    }

    /// Returns the time since when no call uses the connection; `None` while one does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.is_idle().then(|| self.idle_since.get())
    }

    pub(super) fn opened(&self) -> Instant {
        self.opened
    }
}

fn builder(executor: TaskExecutor, settings: &PoolSettings) -> Builder<TaskExecutor> {
    let connection_window = (STREAM_WINDOW as usize).saturating_mul(settings.connections);
    let connection_window =
        u32::try_from(connection_window.min(LARGEST_WINDOW)).unwrap_or(STREAM_WINDOW);
    let mut builder = Builder::new(executor);
    builder
        .timer(TokioTimer::new())
        // No streams until the server has announced its limit.
        .initial_max_send_streams(0)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(connection_window)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_local_error_reset_streams(MAX_STREAM_ERRORS)
        .keep_alive_interval(settings.connect_timeout.saturating_mul(SILENCE_FACTOR))
        .keep_alive_timeout(settings.connect_timeout);
    builder
}

/// An executor for the tasks of a connection, which end with it.
#[derive(Debug, Clone)]
struct TaskExecutor {
    tasks: Tasks,
    ended: watch::Receiver<()>,
}

impl<F: Future<Output = ()> + 'static> Executor<F> for TaskExecutor {
    fn execute(&self, task: F) {
        let mut ended = self.ended.clone();
        self.tasks.start(async move {
            // Nothing is ever sent on `ended`: a change means that the sender was dropped. Both branches are
            // cancel-safe.
            tokio::select! {
                () = task => {}
                _ = ended.changed() => {}
            }
        });
    }
}

/// A call on a connection. Dropped, its upload ends.
#[derive(Debug)]
pub(super) struct Http2Stream {
    connection: Rc<Http2Connection>,
    _upload: Option<oneshot::Sender<Infallible>>,
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.connection
            .streams
            .set(self.connection.streams.get() - 1);
        self.connection.idle_since.set(clock::now());
    }
}

impl Http2Stream {
    /// Reserves a stream on a connection that has capacity.
    pub(super) fn open_on(connection: &Rc<Http2Connection>) -> Http2Stream {
        connection.streams.set(connection.streams.get() + 1);
        Http2Stream {
            connection: connection.clone(),
            _upload: None,
        }
    }

    pub(super) fn connection(&self) -> &Rc<Http2Connection> {
        &self.connection
    }

    /// Sends a call and waits for the head of its response.
    pub(super) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<IncomingBody>, Box<SendError>> {
        let (head, body) = request.into_parts();
        let (original_head, body_copy) = (head.clone(), body.copy());
        let (body, upload) = UploadBody::new(body);
        self._upload = upload;
        let request = Request::from_parts(self.conform(head), body);
        let mut sender = self.connection.sender.clone();
        let mut failed = match sender.try_send_request(request).await {
            Ok(response) => return Ok(IncomingBody::from_response(response, None, None)),
            Err(failed) => failed,
        };
        let unsent = failed.take_message();
        let error = failed.into_error();
        if unsent.is_some() || ends_connection(&error) {
            self.connection.retire();
        }
        let disposition = match (unsent, body_copy) {
            (Some(unsent), _) => RequestDisposition::Unsent(Request::from_parts(
                original_head,
                unsent.into_body().body,
            )),
            (None, Some(body_copy)) if is_refusal(&error) => {
                RequestDisposition::Refused(Request::from_parts(original_head, body_copy))
            }
            (None, _) => RequestDisposition::Sent(None),
        };
        Err(Box::new(SendError {
            error,
            request: disposition,
        }))
    }

    /// Converts an HTTP/1.1 request head to HTTP/2: removes connection-specific fields (RFC 9113 §8.2.2) and replaces
    /// `Host` by `:authority` (§8.3.1).
    fn conform(&self, mut head: request::Parts) -> request::Parts {
        for name in [CONNECTION, TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        if head.headers.get(TE).is_some_and(|te| te != "trailers") {
            head.headers.remove(TE);
        }
        let host = head.headers.remove(HOST);
        let authority = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut parts = Parts::default();
        parts.scheme = Some(self.connection.scheme.clone());
        parts.authority = authority.or_else(|| self.connection.authority.clone());
        parts.path_and_query = head.uri.path_and_query().cloned();
        if let Ok(uri) = Uri::from_parts(parts) {
            head.uri = uri;
        }
        head.version = Version::HTTP_2;
        head
    }
}

/// The body of a request. It ends with an error when its call is dropped.
#[derive(Debug)]
struct UploadBody {
    body: Body,
    /// Closed when the call is dropped; set for streamed bodies only, which may last.
    wanted: Option<oneshot::Receiver<Infallible>>,
}

impl UploadBody {
    fn new(body: Body) -> (UploadBody, Option<oneshot::Sender<Infallible>>) {
        if !body.is_streamed() {
            return (UploadBody { body, wanted: None }, None);
        }
        let (upload, wanted) = oneshot::channel();
        let wanted = Some(wanted);
        (UploadBody { body, wanted }, Some(upload))
    }
}

impl http_body::Body for UploadBody {
    type Data = Bytes;
    type Error = AbortedUpload;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AbortedUpload>>> {
        let UploadBody { body, wanted } = self.get_mut();
        if let Some(wanted) = wanted
            && Pin::new(wanted).poll(cx).is_ready()
        {
            return Poll::Ready(Some(Err(AbortedUpload)));
        }
        Pin::new(body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
