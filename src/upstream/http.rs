//! An HTTP/1.1 upstream: a pool of keep-alive connections of one worker.
//!
//! The pool is a stack, so that few connections stay warm and the others age out. One permit stands for
//! one connection in use, and a call takes an idle connection before it opens another, so that open
//! connections never exceed the permits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::{Body, Tasks};
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
    since: Instant,
}

/// A connection in use. Dropped, it is closed; released, it goes back to the pool.
#[derive(Debug)]
pub struct Lease {
    upstream: Rc<HttpUpstream>,
    sender: SendRequest<Body>,
    reused: Reused,
    prospect: Prospect,
    _permit: OwnedSemaphorePermit,
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

    /// Sends a call and waits for the head of its answer. The caller bounds the time; dropped, the call's
    /// connection is closed.
    ///
    /// # Errors
    /// [`UpstreamError`] after at most two attempts.
    pub async fn send(
        self: &Rc<Self>,
        request: Request<Body>,
        repeat: Repeat,
    ) -> Result<Exchange, UpstreamError> {
        let lease = self.lease().await?;
        let reused = lease.reused;
        let (error, unsent) = match attempt(lease, request).await {
            Ok(exchange) => return Ok(exchange),
            Err(failed) => failed,
        };
        // A kept connection may have been closed by the server at the very moment it was taken.
        let again = match (reused, unsent, repeat) {
            (Reused::Yes, Some(unsent), _) => unsent,
            (Reused::Yes, None, Repeat::Copy(copy)) if !error.is_parse() => *copy,
            (Reused::Yes | Reused::No, _, _) => return Err(classify(error)),
        };
        let lease = self.connect(self.permit().await).await?;
        attempt(lease, again)
            .await
            .map_err(|(error, _)| classify(error))
    }

    async fn permit(&self) -> OwnedSemaphorePermit {
        // The semaphore is never closed, so the wait ends with a permit.
        loop {
            if let Ok(permit) = self.permits.clone().acquire_owned().await {
                return permit;
            }
        }
    }

    async fn lease(self: &Rc<Self>) -> Result<Lease, UpstreamError> {
        let permit = self.permit().await;
        while let Some(mut sender) = self.take_idle() {
            // The connection's task may not have run since the last answer's end.
            if sender.is_ready() || sender.ready().await.is_ok() {
                return Ok(Lease {
                    upstream: self.clone(),
                    sender,
                    reused: Reused::Yes,
                    prospect: Prospect::Open,
                    _permit: permit,
                });
            }
        }
        self.connect(permit).await
    }

    fn take_idle(&self) -> Option<SendRequest<Body>> {
        let now = clock::now();
        let mut idle = self.idle.borrow_mut();
        while let Some(last) = idle.pop() {
            if now - last.since >= self.plan.keep_alive {
                // The stack is ordered by age: what lies below is older still.
                idle.clear();
                return None;
            }
            if !last.sender.is_closed() {
                return Some(last.sender);
            }
        }
        None
    }

    async fn connect(
        self: &Rc<Self>,
        permit: OwnedSemaphorePermit,
    ) -> Result<Lease, UpstreamError> {
        let unreachable = |source| UpstreamError::Unreachable {
            upstream: self.plan.name.clone(),
            source,
        };
        let limit = self.plan.connect_timeout;
        let connected = timeout(limit, TcpStream::connect(self.plan.address())).await;
        let late = |_| {
            std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!("no connection within {limit:?}"),
            )
        };
        let stream = connected.map_err(late).flatten().map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let mut builder = Builder::new();
        builder.preserve_header_case(true);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = handshake.map_err(UpstreamError::Broken)?;
        let open = Open::count(self.open.clone());
        self.tasks.start(async move {
            let _open = open;
            // How it ends is told to the call that uses it; between calls nobody needs to know.
            let _ = connection.with_upgrades().await;
        });
        Ok(Lease {
            upstream: self.clone(),
            sender,
            reused: Reused::No,
            prospect: Prospect::Open,
            _permit: permit,
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

async fn attempt(
    mut lease: Lease,
    request: Request<Body>,
) -> Result<Exchange, (hyper::Error, Option<Request<Body>>)> {
    match lease.sender.try_send_request(request).await {
        Ok(response) => Ok(Exchange { response, lease }),
        Err(mut failed) => {
            let unsent = failed.take_message();
            Err((failed.into_error(), unsent))
        }
    }
}

fn classify(error: hyper::Error) -> UpstreamError {
    if error.is_parse() {
        UpstreamError::Malformed(error)
    } else {
        UpstreamError::Broken(error)
    }
}
