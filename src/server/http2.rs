//! HTTP/2 connections of clients (RFC 9113), and the limits on connections, streams and resets.
//!
//! HTTP/2 framing is unambiguous, so the wire inspector is not used. Each request is converted to the form of
//! HTTP/1.1, checked by the same rules, and served in the same way. Laws: a connection has a limited number of
//! streams; an idle connection, and one whose client takes nothing, is closed after its timeout; a client is
//! disconnected, and counted, if it resets too many unanswered calls, sends too many useless frames, or repeats
//! protocol errors.
//!
//! Used by `listen`.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::http2_delivery::{AbortReason, DeliveryPace, TrackedBody};
use crate::gateway::{RequestOrigin, ResponseBody, Worker, handle};
use crate::telemetry::clock;
use dualgauge_model::plan::Limits;
use dualgauge_net::{
    IncomingBody, ObservedSocket, Socket, SocketObserver, WriteControl, WriteTimeout,
};
use dualgauge_transport::wire::{FloodReason, HeadLimits as WireLimits, settle};

/// The maximum number of concurrent streams (RFC 9113 §5.1.2 recommends at least 100).
const STREAMS: u32 = 100;
/// The maximum number of streams reset before they were accepted, and of tolerated protocol errors.
const RESETS_UNSEEN: usize = 20;
const FAULTS: usize = 100;
/// The number of resets allowed beyond the number of answered calls.
const RESETS: u32 = 200;
/// The flow-control windows of a request body and of a connection: the bytes accepted before they are read.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The maximum number of response bytes buffered per stream.
const SEND_BUFFER: usize = 128 * 1024;
/// The factor by which the header limit of h2 exceeds ours. A list in between is refused, logged and counted as a
/// call; h2 answers a larger one with 431 unseen by this proxy.
const HEADER_LIMIT_FACTOR: usize = 4;
/// The ping interval, and the timeout of a ping.
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(10);

/// One connection and its streams.
#[derive(Debug)]
struct Http2Connection {
    worker: Rc<Worker>,
    /// The time for which a client may take nothing of a response.
    write_timeout: Duration,
    open: Cell<usize>,
    /// True while sent data waits for the client, including data of ended streams.
    full: Cell<bool>,
    /// The time at which the last stream ended, or the client had taken all data.
    idle_since: Cell<Instant>,
    /// The number of resets beyond the number of answered calls.
    resets: Cell<u32>,
    /// The reason to disconnect the client, if any.
    cut: Cell<Option<FloodReason>>,
    /// Notified when `cut` is set.
    disconnect_set: Notify,
    /// The delivery of the request accepted last; its task is started next.
    begun: RefCell<Option<Rc<DeliveryPace>>>,
}

impl Http2Connection {
    /// Returns true if no stream is open and no data waits for the client.
    fn is_idle(&self) -> bool {
        self.open.get() == 0 && !self.full.get()
    }

    fn disconnect(&self, why: FloodReason) {
        self.cut.set(Some(why));
        self.disconnect_set.notify_one();
    }

    /// Waits until the client is to be disconnected. Cancel-safe.
    async fn disconnect_reason(&self) -> FloodReason {
        loop {
            if let Some(why) = self.cut.get() {
                return why;
            }
            self.disconnect_set.notified().await;
        }
    }
}

impl SocketObserver for Http2Connection {
    fn on_flood(&self) {
        self.disconnect(FloodReason::Chatter);
    }

    fn on_blocked(&self) {
        self.full.set(true);
    }

    fn on_unblocked(&self) {
        if self.full.replace(false) {
            self.idle_since.set(clock::now());
        }
    }
}

/// Spawns the tasks of streams.
#[derive(Debug, Clone)]
struct TaskExecutor(Rc<Http2Connection>);

impl<F: Future<Output = ()> + 'static> Executor<F> for TaskExecutor {
    fn execute(&self, stream: F) {
        let streams = self.0.clone();
        let pace = streams.begun.take().unwrap_or_default();
        let open = StreamGuard::count(streams.clone());
        let stream = Box::pin(stream);
        streams.worker.clone().tasks().start(async move {
            let _open = open;
            let _ending = AbortReason(pace.clone());
            let delivered = async {
                stream.await;
                pace.wait_for_delivery().await;
            };
            // Dropping `delivered` resets the stream.
            tokio::select! {
                () = delivered => {}
                () = pace.wait_for_stall(streams.write_timeout) => report_disconnect(&streams.worker, FloodReason::Stalled),
            }
        });
    }
}

/// Counts a stream while its task runs.
struct StreamGuard(Rc<Http2Connection>);

impl StreamGuard {
    fn count(streams: Rc<Http2Connection>) -> StreamGuard {
        streams.open.set(streams.open.get() + 1);
        StreamGuard(streams)
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.idle_since.set(clock::now());
    }
}

/// A call without a response; dropping it counts as a reset.
struct PendingCall<'s>(&'s Http2Connection);

impl PendingCall<'_> {
    fn answered(self) {
        let resets = &self.0.resets;
        resets.set(resets.get().saturating_sub(1));
        std::mem::forget(self);
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let resets = self.0.resets.get() + 1;
        self.0.resets.set(resets);
        if resets > RESETS {
            self.0.disconnect(FloodReason::Resets);
        }
    }
}

/// Serves a connection until it ends or has drained. [`super`] shows the stack of I/O layers.
pub(super) async fn serve(
    worker: Rc<Worker>,
    socket: Socket,
    origin: RequestOrigin,
    mut drains: watch::Receiver<()>,
) {
    let limits = worker.runtime_plan().plan.limits;
    let streams = Rc::new(Http2Connection {
        worker: worker.clone(),
        write_timeout: limits.write_timeout,
        open: Cell::new(0),
        full: Cell::new(false),
        idle_since: Cell::new(clock::now()),
        resets: Cell::new(0),
        cut: Cell::new(None),
        disconnect_set: Notify::new(),
        begun: RefCell::default(),
    });
    let service = service_fn(|request| {
        let pace = Rc::<DeliveryPace>::default();
        streams.begun.replace(Some(pace.clone()));
        answer(streams.clone(), pace, request, origin.clone(), limits)
    });
    let socket = ObservedSocket::new(socket, streams.clone());
    let io = TokioIo::new(WriteTimeout::new(
        socket,
        limits.write_timeout,
        WriteControl::default(),
    ));
    let builder = builder(&streams, limits.head);
    let connection = pin!(builder.serve_connection(io, service));
    let ends = poll_to_end(
        connection,
        |connection| connection.graceful_shutdown(),
        &streams,
        limits.header_timeout,
        &mut drains,
    );
    // If the client is cut off, the connection is dropped with its open streams, even after a graceful shutdown began.
    let why = tokio::select! {
        ended = ends => ended.is_err_and(|error| is_protocol_error(&error)).then_some(FloodReason::Faults),
        why = streams.disconnect_reason() => Some(why),
    };
    if let Some(why) = why {
        report_disconnect(&worker, why);
    }
}

/// Polls a connection to its end. Starts a graceful shutdown when it is idle, or when a drain begins.
async fn poll_to_end<C: Future<Output = Result<(), hyper::Error>>>(
    mut connection: Pin<&mut C>,
    shut_down: impl Fn(Pin<&mut C>),
    streams: &Http2Connection,
    limit: Duration,
    drains: &mut watch::Receiver<()>,
) -> Result<(), hyper::Error> {
    // The connection is polled on after the shutdown began; each branch is cancel-safe.
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = idles(streams, limit) => {}
        _ = drains.changed() => {
            shut_down(connection.as_mut());
            return connection.await;
        }
    }
    shut_down(connection.as_mut());
    // An idle connection gets no more time; a slow one has its own timeout.
    loop {
        match timeout(limit, connection.as_mut()).await {
            Ok(ended) => return ended,
            Err(_) if streams.is_idle() => return Ok(()),
            Err(_) => {}
        }
    }
}

/// Returns true if this side closed the connection for protocol errors of the client (RFC 9113 §5.4.1).
fn is_protocol_error(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| cause.is_library() && cause.is_go_away())
}

fn report_disconnect(worker: &Worker, why: FloodReason) {
    worker.count(|shard| shard.cut_connection(why));
    tracing::debug!(
        why = why.as_str(),
        "closed an abusive HTTP/2 client connection"
    );
}

fn builder(streams: &Rc<Http2Connection>, head: usize) -> Builder<TaskExecutor> {
    let mut builder = Builder::new(TaskExecutor(streams.clone()));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(
            u32::try_from(head.saturating_mul(HEADER_LIMIT_FACTOR)).unwrap_or(u32::MAX),
        )
        .max_pending_accept_reset_streams(RESETS_UNSEEN)
        .max_local_error_reset_streams(FAULTS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}

/// Waits until the connection was idle for `limit`.
async fn idles(streams: &Http2Connection, limit: Duration) {
    loop {
        let since = if streams.is_idle() {
            streams.idle_since.get()
        } else {
            clock::now()
        };
        sleep_until(since + limit).await;
        if streams.is_idle() && streams.idle_since.get() + limit <= clock::now() {
            return;
        }
    }
}

async fn answer(
    streams: Rc<Http2Connection>,
    pace: Rc<DeliveryPace>,
    request: Request<Incoming>,
    origin: RequestOrigin,
    limits: Limits,
) -> Result<Response<TrackedBody<ResponseBody>>, Infallible> {
    let asked = PendingCall(&streams);
    let (mut head, body) = request.into_parts();
    let wire = WireLimits {
        head: limits.head,
        target: limits.target,
    };
    let request_origin = origin.with_violation(settle(&mut head, wire));
    let request = Request::from_parts(head, body);
    let request = IncomingBody::from_request(request, None, limits.body_rate);
    let response = handle(streams.worker.clone(), request, request_origin).await;
    asked.answered();
    Ok(response.map(|body| TrackedBody::new(body, pace)))
}
