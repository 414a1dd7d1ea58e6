//! HTTP/2 of one client (RFC 9113): what a connection, a stream and a client that resets may cost.
//!
//! The framing leaves nothing to two readings, so the wire inspector does not stand before it; each request is put into
//! the form of HTTP/1.1 and judged by the same words, and goes the same way from there. Laws: a connection has so many
//! streams at a time and no more; one without a stream, or with a client that takes nothing, ends in its time; who resets
//! more than is answered, says more besides calls than may be, or makes faults again and again is cut, and counted.

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

use super::delivery::{AbortReason, DeliveryPace, TrackedBody};
use super::h2_monitor::{MonitoredSocket, SocketObserver};
use super::write_timeout::WriteTimeout;
use crate::domain::plan::Limits;
use crate::domain::wire::{FloodReason, HeadLimits as WireLimits, settle};
use crate::gateway::{RequestOrigin, ResponseBody, Worker, handle};
use crate::telemetry::clock;
use crate::upstream::{IncomingBody, Socket, WriteControl};

/// How many streams a client may have open at a time (RFC 9113 §5.1.2 recommends 100 at least).
const STREAMS: u32 = 100;
/// How many streams may be reset before anybody has looked at them, and how many faults of a client are forgiven.
const RESETS_UNSEEN: usize = 20;
const FAULTS: usize = 100;
/// How many calls a client may reset beyond those that were answered.
const RESETS: u32 = 200;
/// What is taken of a request's body, and of all of a connection, before somebody reads it.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What of an answer may wait to be sent.
const SEND_BUFFER: usize = 128 * 1024;
/// How much larger than it may be a header list is still looked at, so that it is refused, told and counted as any other
/// call; a larger one is answered with 431 by the protocol itself, and nobody hears of it.
const LOOKED_AT: usize = 4;
/// How often a sign of life is asked for, and how long it may take.
const PING: Duration = Duration::from_secs(20);
const PONG: Duration = Duration::from_secs(10);

/// One connection, and the streams on it.
#[derive(Debug)]
struct Http2Connection {
    worker: Rc<Worker>,
    /// How long a client may take nothing of an answer.
    patience: Duration,
    open: Cell<usize>,
    /// Whether the client has yet to take what was sent, of streams that have ended too.
    full: Cell<bool>,
    /// When the last stream ended, or the client had taken what was sent.
    idle_since: Cell<Instant>,
    /// How many calls were reset beyond those that were answered.
    resets: Cell<u32>,
    /// Why the client is to be cut, if it is.
    cut: Cell<Option<FloodReason>>,
    /// Told when it is.
    enough: Notify,
    /// That of the request that was just taken; its task is started next.
    begun: RefCell<Option<Rc<DeliveryPace>>>,
}

impl Http2Connection {
    /// Whether nothing is on its way to the client.
    fn is_idle(&self) -> bool {
        self.open.get() == 0 && !self.full.get()
    }

    fn cuts(&self, why: FloodReason) {
        self.cut.set(Some(why));
        self.enough.notify_one();
    }

    /// Waits until the client is to be cut; cancel-safe.
    async fn is_to_be_cut(&self) -> FloodReason {
        loop {
            if let Some(why) = self.cut.get() {
                return why;
            }
            self.enough.notified().await;
        }
    }
}

impl SocketObserver for Http2Connection {
    fn rings(&self) {
        self.cuts(FloodReason::Chatter);
    }

    fn waits(&self) {
        self.full.set(true);
    }

    fn goes_on(&self) {
        if self.full.replace(false) {
            self.idle_since.set(clock::now());
        }
    }
}

/// Starts the tasks of streams.
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
            let taken = async {
                stream.await;
                pace.is_taken().await;
            };
            // Dropped by the other branch, the stream is reset.
            tokio::select! {
                () = taken => {}
                () = pace.stalls(streams.patience) => tell_cut(&streams.worker, FloodReason::Stalled),
            }
        });
    }
}

/// Counts a stream for as long as its task runs.
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

/// A call that has no answer yet: dropped before it has one, it was reset.
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
            self.0.cuts(FloodReason::Resets);
        }
    }
}

/// Serves a connection until it ends, or drains.
pub(super) async fn serve(
    worker: Rc<Worker>,
    (socket, arrivals): (Socket, RequestOrigin),
    mut drains: watch::Receiver<()>,
) {
    let limits = worker.installed().plan.limits;
    let streams = Rc::new(Http2Connection {
        worker: worker.clone(),
        patience: limits.write_timeout,
        open: Cell::new(0),
        full: Cell::new(false),
        idle_since: Cell::new(clock::now()),
        resets: Cell::new(0),
        cut: Cell::new(None),
        enough: Notify::new(),
        begun: RefCell::default(),
    });
    let service = service_fn(|request| {
        let pace = Rc::<DeliveryPace>::default();
        streams.begun.replace(Some(pace.clone()));
        let (worker, streams) = (worker.clone(), streams.clone());
        answer((worker, streams, pace), request, arrivals.clone(), limits)
    });
    let socket = MonitoredSocket::new(socket, streams.clone());
    let io = TokioIo::new(WriteTimeout::new(
        socket,
        limits.write_timeout,
        WriteControl::default(),
    ));
    let builder = builder(&streams, limits.head);
    let connection = pin!(builder.serve_connection(io, service));
    let ends = until_end(
        (connection, |connection| connection.graceful_shutdown()),
        (&streams, limits.header_timeout),
        &mut drains,
    );
    // What is cut is dropped with what it has open, whether or not it was told to end.
    let why = tokio::select! {
        ended = ends => ended.is_err_and(|error| is_cut(&error)).then_some(FloodReason::Faults),
        why = streams.is_to_be_cut() => Some(why),
    };
    if let Some(why) = why {
        tell_cut(&worker, why);
    }
}

/// Polls a connection to its end. It is told to come to that where it idles, and when the program drains.
async fn until_end<C: Future<Output = Result<(), hyper::Error>>>(
    (mut connection, tell): (Pin<&mut C>, impl Fn(Pin<&mut C>)),
    (streams, limit): (&Http2Connection, Duration),
    drains: &mut watch::Receiver<()>,
) -> Result<(), hyper::Error> {
    // It is polled on after it was told to end; each branch is cancel-safe.
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = idles(streams, limit) => {}
        _ = drains.changed() => {
            tell(connection.as_mut());
            return connection.await;
        }
    }
    tell(connection.as_mut());
    // One that is silent now has not earned more; one that is slow has its own limit.
    loop {
        match timeout(limit, connection.as_mut()).await {
            Ok(ended) => return ended,
            Err(_) if streams.is_idle() => return Ok(()),
            Err(_) => {}
        }
    }
}

/// Whether this end has ended the connection for a fault of the client, or for too many of them (RFC 9113 §5.4.1).
fn is_cut(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let cause = cause.and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| cause.is_library() && cause.is_go_away())
}

fn tell_cut(worker: &Worker, why: FloodReason) {
    worker.count(|shard| shard.cut_connection(why));
    tracing::debug!(why = why.as_str(), "a client of HTTP/2 was cut");
}

fn builder(streams: &Rc<Http2Connection>, head: usize) -> Builder<TaskExecutor> {
    let mut builder = Builder::new(TaskExecutor(streams.clone()));
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(head.saturating_mul(LOOKED_AT)).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_UNSEEN)
        .max_local_error_reset_streams(FAULTS)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG);
    builder
}

/// Waits until nothing was on its way for so long.
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
    (worker, streams, pace): (Rc<Worker>, Rc<Http2Connection>, Rc<DeliveryPace>),
    request: Request<Incoming>,
    arrivals: RequestOrigin,
    limits: Limits,
) -> Result<Response<TrackedBody<ResponseBody>>, Infallible> {
    let asked = PendingCall(&streams);
    let (mut head, body) = request.into_parts();
    let wire = WireLimits {
        head: limits.head,
        target: limits.target,
    };
    let arrival = arrivals.refused(settle(&mut head, wire));
    let request = Request::from_parts(head, body);
    let request = IncomingBody::from_request(request, None, (None, limits.body_rate));
    let response = handle(worker, request, arrival).await;
    asked.answered();
    Ok(response.map(|body| TrackedBody::new(body, pace)))
}
