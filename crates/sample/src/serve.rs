//! The thin shell: sockets, limits, and an end that leaves no task behind.
//!
//! Used by `cli::demo`, `cli::demo::clients` and `cli::sample`.

use std::cell::RefCell;
use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{self, Interval};

use crate::reply::{self, Content, Reply};
use crate::{Database, Release, Sample};

/// One more waits in the backlog of the listener.
const MAX_CONNECTIONS: usize = 1024;

const MAX_BODY: usize = 5 * 1024 * 1024;

/// For a whole request head, and so also for the pause between two requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long calls under way may take once the end is asked for.
const GRACE: Duration = Duration::from_secs(5);

/// An open stream says so often that it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A call that cannot be answered, because its body never comes: the connection is closed.
type Broken = Box<dyn Error + Send + Sync>;

/// The pause after the system has refused a connection.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Never carries a value: that its sender is gone is the message.
type Closing = watch::Receiver<()>;

/// Serves the sample until `shutdown` is ready; then ends streams and idle connections at once, gives calls
/// under way five seconds, and returns when every connection is closed.
///
/// Works on any runtime; all connections share the thread that polls this future. What happens to one connection ends
/// that connection only, and a listener that cannot accept tries again.
pub async fn serve(listener: TcpListener, database: Database, shutdown: impl Future<Output = ()>) {
    let server = Server::new(database);
    // A set of its own, so that the caller's runtime need not be a local one.
    let local = LocalSet::new();
    local.run_until(accept(listener, server, shutdown)).await
}

/// Serves both releases of the sample over one database, as [`serve`] does. While `outage` says so, the rewrite
/// closes its connections without a response.
pub async fn serve_both(
    [current, rewrite]: [TcpListener; 2],
    database: Database,
    outage: watch::Receiver<Outage>,
    shutdown: impl Future<Output = ()>,
) {
    let server = Server::new(database);
    let rewritten = Server {
        release: Release::Rewrite,
        outage: Some(outage),
        ..server.clone()
    };
    let (stop, stopped) = watch::channel(());
    let stopping = async || {
        let mut stopped = stopped.clone();
        // The sender is dropped when the server is to stop.
        while stopped.changed().await.is_ok() {}
    };
    let local = LocalSet::new();
    let both = async {
        let shutdown = async {
            shutdown.await;
            drop(stop);
        };
        tokio::join!(
            accept(current, server, stopping()),
            accept(rewrite, rewritten, stopping()),
            shutdown
        )
    };
    local.run_until(both).await;
}

/// Whether the rewrite is out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// It answers.
    Over,
    /// It closes each connection without a response.
    On,
}

/// A server as its connections share it.
#[derive(Clone)]
struct Server {
    sample: Rc<RefCell<Sample>>,
    release: Release,
    outage: Option<watch::Receiver<Outage>>,
}

impl Server {
    fn new(database: Database) -> Server {
        Server {
            sample: Rc::new(RefCell::new(Sample::new(database))),
            release: Release::Current,
            outage: None,
        }
    }

    fn is_down(&self) -> bool {
        let outage = self.outage.as_ref();
        outage.is_some_and(|outage| *outage.borrow() == Outage::On)
    }

    fn answer(&self, request: &Request<Bytes>) -> Reply {
        self.sample.borrow_mut().answer_as(self.release, request)
    }
}

async fn accept(listener: TcpListener, server: Server, shutdown: impl Future<Output = ()>) {
    let (open, closing) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    // Every branch is cancel-safe: a connection is either still in the backlog or already spawned.
    loop {
        tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn_local(converse(stream, server.clone(), closing.clone()));
                }
                Err(error) if left_early(&error) => {}
                // Such as where the process has no file descriptor left: the client waits.
                Err(_) => time::sleep(NO_ROOM).await,
            },
        }
    }
    drop(listener);
    drop(open);
    let all_closed = async { while connections.join_next().await.is_some() {} };
    if time::timeout(GRACE, all_closed).await.is_err() {
        connections.shutdown().await;
    }
}

/// Whether a client was gone before its connection was accepted, which is no fault of the listener.
fn left_early(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

/// One connection, from its first request to its last.
async fn converse(stream: TcpStream, server: Server, mut closing: Closing) {
    let until = closing.clone();
    let service = service_fn(|request| respond(request, &server, until.clone()));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service)
    );
    // After a connection error there is no client to report to.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = closing.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}

async fn respond(
    request: Request<Incoming>,
    server: &Server,
    closing: Closing,
) -> Result<Response<Outgoing>, Broken> {
    if server.is_down() {
        return Err("the server is out of order".into());
    }
    let (head, body) = request.into_parts();
    let reply = match read(body).await? {
        Some(body) => server.answer(&Request::from_parts(head, body)),
        None => {
            let refusal = "Request Entity Too Large".into();
            reply::detail(StatusCode::PAYLOAD_TOO_LARGE, refusal)
        }
    };
    Ok(outgoing(reply, closing))
}

/// The whole body, or nothing if it is too large: a length that says so is refused before a byte is read.
async fn read(body: Incoming) -> Result<Option<Bytes>, Broken> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Ok(None);
    }
    let whole = Limited::new(body, MAX_BODY).collect();
    match time::timeout(BODY_TIMEOUT, whole).await? {
        Ok(body) => Ok(Some(body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(error) => Err(error),
    }
}

fn outgoing(reply: Reply, closing: Closing) -> Response<Outgoing> {
    reply.map(|content| {
        let bytes = content.bytes().clone();
        let rest = match content {
            Content::Whole(_) => Rest::Nothing,
            Content::Ended(_) => Rest::End,
            Content::Open(_) => {
                let mut keepalive = time::interval(KEEPALIVE);
                keepalive.reset();
                Rest::Stream { keepalive, closing }
            }
        };
        let first = (!bytes.is_empty()).then_some(bytes);
        Outgoing { first, rest }
    })
}

/// A body on its way out.
struct Outgoing {
    first: Option<Bytes>,
    rest: Rest,
}

/// The part of a body after its first bytes.
enum Rest {
    /// Nothing, and the length says so.
    Nothing,
    /// The end of a body whose length was not told.
    End,
    /// A comment now and then, until the server closes.
    Stream {
        keepalive: Interval,
        closing: Closing,
    },
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(bytes) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.rest {
            Rest::Nothing | Rest::End => Poll::Ready(None),
            // No waker is needed for the closing: `converse` polls the connection, and so this, after it.
            Rest::Stream { closing, .. } if closing.has_changed().is_err() => Poll::Ready(None),
            Rest::Stream { keepalive, .. } => {
                ready!(keepalive.poll_tick(context));
                let comment = Bytes::from_static(b": keepalive\r\n\r\n");
                Poll::Ready(Some(Ok(Frame::data(comment))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && matches!(self.rest, Rest::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.rest, &self.first) {
            (Rest::Nothing, Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            (Rest::Nothing, None) => SizeHint::with_exact(0),
            (Rest::End | Rest::Stream { .. }, _) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests;
