//! An HTTP/1.1 upstream: a pool of keep-alive connections of one worker.
//!
//! The pool is a stack, so that few connections stay warm and the others age out. One permit stands for
//! one connection in use, and a call takes an idle connection before it opens another, so that open
//! connections never exceed the permits.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use super::answering::{Answering, Patience};
use super::connect::Connector;
use super::{Body, Tasks};
use crate::config::compile::tls::Spoken;
use crate::domain::plan::UpstreamPlan;
use crate::telemetry::clock;

/// Why a call got no answer.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// No connection.
    #[error("no connection to the upstream `{upstream}`")]
    Unreachable {
        /// Which upstream.
        upstream: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// All connections that may be open are in use.
    #[error("all {connections} connections to the upstream `{upstream}` are in use")]
    Busy {
        /// Which upstream.
        upstream: String,
        /// How many a worker may open.
        connections: usize,
    },
    /// The connection broke before the head of the answer was complete.
    #[error("the connection broke before the answer")]
    Broken(#[source] hyper::Error),
    /// The answer is not valid HTTP.
    #[error("the answer is not valid HTTP")]
    Malformed(#[source] hyper::Error),
}

/// Whether a call may be sent a second time on another connection.
#[derive(Debug)]
pub enum Repeat {
    /// Only when nothing of it was sent.
    Unsent,
    /// Also when a kept connection broke before the answer: its effect allows it, and this is the copy.
    Copy(Box<Request<Body>>),
}

/// The right to use one connection.
#[derive(Debug)]
pub struct Permit {
    _held: OwnedSemaphorePermit,
}

impl Permit {
    fn of(held: OwnedSemaphorePermit) -> Permit {
        Permit { _held: held }
    }
}

/// An answer's head, and the connection that its body comes from.
#[derive(Debug)]
pub struct Exchange {
    /// The answer.
    pub response: Response<Incoming>,
    /// The connection.
    pub lease: Lease,
}

/// A server behind the proxy, as one worker sees it.
#[derive(Debug)]
pub struct HttpUpstream {
    plan: UpstreamPlan,
    connector: Connector,
    tasks: Tasks,
    idle: RefCell<Vec<Idle>>,
    permits: std::sync::Arc<Semaphore>,
    open: Rc<Cell<usize>>,
    pooling: Cell<Pooling>,
}

/// Whether connections are kept for other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    On,
    /// The worker drains, or the plan has another upstream now.
    Off,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<Body>,
    patience: Patience,
    alive: Alive,
    since: Instant,
}

/// Keeps a connection open: dropped, the connection's task ends at once, whatever it waits for, and with it
/// the body that it was sending.
type Alive = oneshot::Sender<Infallible>;

/// A connection in use. Dropped, it is closed; released, it goes back to the pool.
#[derive(Debug)]
pub struct Lease {
    upstream: Rc<HttpUpstream>,
    sender: SendRequest<Body>,
    patience: Patience,
    alive: Alive,
    reused: Reused,
    prospect: Prospect,
    permit: Permit,
}

/// Whether a connection may serve again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prospect {
    Open,
    Closed,
}

/// Whether a connection has served before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reused {
    Yes,
    No,
}

impl Lease {
    /// Keeps the connection from serving again, because of what is left in it.
    pub fn spoil(&mut self) {
        self.prospect = Prospect::Closed;
    }

    /// Gives the connection back, after a whole answer to a whole request.
    pub fn release(self) {
        let wanted = self.prospect == Prospect::Open && self.upstream.pooling.get() == Pooling::On;
        if wanted && !self.sender.is_closed() {
            let idle = Idle {
                sender: self.sender,
                patience: self.patience,
                alive: self.alive,
                since: clock::now(),
            };
            self.upstream.idle.borrow_mut().push(idle);
        }
    }
}

impl HttpUpstream {
    /// A pool without connections.
    #[must_use]
    pub fn new(plan: UpstreamPlan, tasks: Tasks) -> HttpUpstream {
        let permits = std::sync::Arc::new(Semaphore::new(plan.connections));
        HttpUpstream {
            connector: Connector::of(&plan, Spoken::Http),
            plan,
            tasks,
            idle: RefCell::default(),
            permits,
            open: Rc::default(),
            pooling: Cell::new(Pooling::On),
        }
    }

    /// What the plan says of it.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// How many of them wait in the pool.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.idle.borrow().len()
    }

    /// Closes connections that have been idle for too long.
    pub fn forget_idle(&self) {
        let now = clock::now();
        self.idle
            .borrow_mut()
            .retain(|idle| !idle.sender.is_closed() && now - idle.since < self.plan.keep_alive);
    }

    /// Closes all connections that are not in use, and each other one when its call is over.
    pub fn stop_pooling(&self) {
        self.pooling.set(Pooling::Off);
        self.idle.borrow_mut().clear();
    }

    /// Waits for the right to use a connection, in the order of asking.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] where none has come free within `limit`.
    pub async fn reserve(&self, limit: Duration) -> Result<Permit, UpstreamError> {
        let busy = || UpstreamError::Busy {
            upstream: self.plan.name.clone(),
            connections: self.plan.connections,
        };
        match self.permits.clone().try_acquire_owned() {
            Ok(permit) => Ok(Permit::of(permit)),
            Err(_) => {
                let permit = timeout(limit, self.permits.clone().acquire_owned()).await;
                permit
                    .ok()
                    .and_then(Result::ok)
                    .map(Permit::of)
                    .ok_or_else(busy)
            }
        }
    }

    /// Sends a call and waits for the head of its answer. The caller bounds the time; dropped, the call's
    /// connection is closed.
    ///
    /// # Errors
    /// [`UpstreamError`] after at most two attempts.
    pub async fn send(
        self: &Rc<Self>,
        permit: Permit,
        request: Request<Body>,
        repeat: Repeat,
    ) -> Result<Exchange, UpstreamError> {
        let lease = self.lease(permit).await?;
        let reused = lease.reused;
        let Failed {
            error,
            unsent,
            permit,
        } = match attempt(lease, request).await {
            Ok(exchange) => return Ok(exchange),
            Err(failed) => *failed,
        };
        // A kept connection may have been closed by the server at the very moment it was taken.
        let again = match (reused, unsent, repeat) {
            (Reused::Yes, Some(unsent), _) => unsent,
            (Reused::Yes, None, Repeat::Copy(copy)) if !is_malformed(&error) => *copy,
            (Reused::Yes | Reused::No, _, _) => return Err(classify(error)),
        };
        let lease = self.connect(permit).await?;
        attempt(lease, again)
            .await
            .map_err(|failed| classify(failed.error))
    }

    async fn lease(self: &Rc<Self>, permit: Permit) -> Result<Lease, UpstreamError> {
        while let Some(idle) = self.take_idle() {
            let Idle {
                mut sender,
                patience,
                alive,
                ..
            } = idle;
            // The connection's task may not have run since the last answer's end.
            if sender.is_ready() || sender.ready().await.is_ok() {
                return Ok(Lease {
                    upstream: self.clone(),
                    sender,
                    patience,
                    alive,
                    reused: Reused::Yes,
                    prospect: Prospect::Open,
                    permit,
                });
            }
        }
        self.connect(permit).await
    }

    fn take_idle(&self) -> Option<Idle> {
        let now = clock::now();
        let mut idle = self.idle.borrow_mut();
        while let Some(last) = idle.pop() {
            if now - last.since >= self.plan.keep_alive {
                // The stack is ordered by age: what lies below is older still.
                idle.clear();
                return None;
            }
            if !last.sender.is_closed() {
                return Some(last);
            }
        }
        None
    }

    async fn connect(self: &Rc<Self>, permit: Permit) -> Result<Lease, UpstreamError> {
        let unreachable = |source| UpstreamError::Unreachable {
            upstream: self.plan.name.clone(),
            source,
        };
        let limit = self.plan.connect_timeout;
        let stream = self.connector.connect_within(limit).await;
        let stream = stream.map_err(unreachable)?;
        let mut builder = Builder::new();
        builder.preserve_header_case(true);
        let patience = Patience::new();
        let stream = TokioIo::new(Answering::new(stream, patience.clone()));
        let handshake = builder.handshake(stream).await;
        let (sender, connection) = handshake.map_err(UpstreamError::Broken)?;
        let open = Open::count(self.open.clone());
        let (alive, mut ended) = oneshot::channel();
        self.tasks.start(async move {
            let _open = open;
            // How it ends is told to the call that uses it; between calls nobody needs to know. Dropped by
            // the other branch, the connection is closed where it stands.
            tokio::select! {
                _ = connection.with_upgrades() => {}
                _ = &mut ended => {}
            }
        });
        Ok(Lease {
            upstream: self.clone(),
            sender,
            patience,
            alive,
            reused: Reused::No,
            prospect: Prospect::Open,
            permit,
        })
    }
}

/// Counts an open connection for as long as its task runs.
struct Open(Rc<Cell<usize>>);

impl Open {
    fn count(open: Rc<Cell<usize>>) -> Open {
        open.set(open.get() + 1);
        Open(open)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// An attempt without an answer, and what is left of it.
struct Failed {
    error: hyper::Error,
    unsent: Option<Request<Body>>,
    permit: Permit,
}

async fn attempt(mut lease: Lease, request: Request<Body>) -> Result<Exchange, Box<Failed>> {
    lease.patience.begin();
    let answered = lease.sender.try_send_request(request).await;
    lease.patience.end();
    match answered {
        Ok(response) => Ok(Exchange { response, lease }),
        Err(mut failed) => {
            let unsent = failed.take_message();
            Err(Box::new(Failed {
                error: failed.into_error(),
                unsent,
                permit: lease.permit,
            }))
        }
    }
}

fn classify(error: hyper::Error) -> UpstreamError {
    if is_malformed(&error) {
        UpstreamError::Malformed(error)
    } else {
        UpstreamError::Broken(error)
    }
}

/// Whether the server has said what is no answer, rather than nothing.
fn is_malformed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    error.is_parse() || io.is_some_and(|io| io.kind() == std::io::ErrorKind::InvalidData)
}
