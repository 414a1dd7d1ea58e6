//! An HTTP/1.1 upstream: a pool of keep-alive connections of one worker.
//!
//! The pool is a stack, so that few connections stay warm and the others age out. One permit stands for
//! one connection in use, and a call takes an idle connection before it opens another, so that open
//! connections never exceed the permits.

use std::cell::Cell;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use super::answering::{Answering, Patience};
use super::places::{Attempt, InUse, Places};
use super::{Body, Tasks};
use crate::domain::addresses::Sign;
use crate::domain::plan::UpstreamPlan;
use crate::telemetry::clock;
use crate::telemetry::metrics::AddressCounts;

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
    /// It has failed too often, and is left alone for a while.
    #[error("the breaker of the upstream `{upstream}` is open")]
    Resting {
        /// Which upstream.
        upstream: String,
        /// For how long.
        again_in: Duration,
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
    places: Places,
    tasks: Tasks,
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

/// A connection that waits for its next call.
#[derive(Debug)]
pub(super) struct Idle {
    sender: SendRequest<Body>,
    alive: Alive,
    since: Instant,
}

/// Keeps a connection open: dropped, the connection's task ends at once, whatever it waits for, and with it
/// the body that it was sending.
#[derive(Debug)]
struct Alive {
    /// What the server may send before it comes to the point.
    patience: Patience,
    _until: oneshot::Sender<Infallible>,
}

/// A connection in use. Dropped, it is closed; released, it goes back to the pool.
#[derive(Debug)]
pub struct Lease {
    upstream: Rc<HttpUpstream>,
    place: usize,
    sender: SendRequest<Body>,
    alive: Alive,
    reused: Reused,
    prospect: Prospect,
    permit: Permit,
    _in_use: Option<InUse>,
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
    fn of(
        (upstream, place): (&Rc<HttpUpstream>, usize),
        (sender, alive): (SendRequest<Body>, Alive),
        reused: Reused,
        permit: Permit,
    ) -> Lease {
        Lease {
            upstream: upstream.clone(),
            place,
            sender,
            alive,
            reused,
            prospect: Prospect::Open,
            permit,
            _in_use: InUse::count(upstream, place),
        }
    }

    /// Keeps the connection from serving again, because of what is left in it.
    pub fn spoil(&mut self) {
        self.prospect = Prospect::Closed;
    }

    /// Gives the connection back, after a whole answer to a whole request.
    pub fn release(self) {
        let wanted = self.prospect == Prospect::Open && self.upstream.pooling.get() == Pooling::On;
        if wanted
            && !self.sender.is_closed()
            && let Some(idle) = self.upstream.places.idle(self.place)
        {
            idle.borrow_mut().push(Idle {
                sender: self.sender,
                alive: self.alive,
                since: clock::now(),
            });
        }
    }
}

impl HttpUpstream {
    /// A pool without connections.
    #[must_use]
    pub fn new(plan: UpstreamPlan, tasks: Tasks) -> HttpUpstream {
        let permits = std::sync::Arc::new(Semaphore::new(plan.connections));
        HttpUpstream {
            places: Places::of(&plan),
            plan,
            tasks,
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

    pub(super) fn places(&self) -> &Places {
        &self.places
    }

    /// What has happened with its addresses, and how they stand.
    #[must_use]
    pub fn addresses(&self) -> AddressCounts {
        self.places.counts()
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// How many of them wait for their next call.
    #[must_use]
    pub fn idle(&self) -> usize {
        self.places.all_idle().map(|idle| idle.borrow().len()).sum()
    }

    /// Closes connections that have been idle for too long.
    pub fn forget_idle(&self) {
        let now = clock::now();
        for idle in self.places.all_idle() {
            idle.borrow_mut()
                .retain(|idle| !idle.sender.is_closed() && now - idle.since < self.plan.keep_alive);
        }
    }

    /// Closes all connections that are not in use, and each other one when its call is over.
    pub fn stop_pooling(&self) {
        self.pooling.set(Pooling::Off);
        for idle in self.places.all_idle() {
            idle.borrow_mut().clear();
        }
    }

    /// Asks the addresses that are due whether they are well.
    pub fn check_health(self: &Rc<Self>) {
        let Some(check) = self.plan.watch.check.clone() else {
            return;
        };
        if self.pooling.get() == Pooling::Off {
            return;
        }
        for place in self.places.due() {
            let (own, check) = (self.clone(), check.clone());
            self.tasks.start(async move {
                let asked = timeout(check.timeout, own.is_well(place, &check.path)).await;
                let sign = match asked {
                    Ok(true) => Sign::Well,
                    Ok(false) | Err(_) => Sign::Ill,
                };
                own.places
                    .checked(&own.plan.name, (place, sign), check.every);
            });
        }
    }

    /// Whether an address answers a check with success.
    async fn is_well(self: &Rc<Self>, place: usize, path: &str) -> bool {
        let mut request = Request::new(Body::Empty);
        let (Ok(target), Ok(host)) = (path.parse(), HeaderValue::from_str(&self.plan.authority))
        else {
            return false;
        };
        *request.uri_mut() = target;
        request.headers_mut().insert(HOST, host);
        // A connection of its own: calls never wait for a check, nor a check for calls.
        let Ok((mut sender, alive)) = self.connect(place).await else {
            return false;
        };
        let answer = sender.send_request(request).await;
        drop(alive);
        answer.is_ok_and(|answer| answer.status().is_success())
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

    /// A call that is to be sent: its address is told how it ended.
    #[must_use]
    pub fn attempt(&self) -> Attempt<'_> {
        Attempt::new(self)
    }

    /// Sends a call and waits for the head of its answer. The caller bounds the time; dropped, the call's
    /// connection is closed.
    ///
    /// # Errors
    /// [`UpstreamError`] after at most two attempts.
    pub async fn send(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (permit, request): (Permit, Request<Body>),
        repeat: Repeat,
    ) -> Result<Exchange, UpstreamError> {
        self.places.called();
        let sent = self.sent(attempt, (permit, request), repeat).await;
        match &sent {
            Ok(exchange) => attempt.answered(exchange.response.status()),
            Err(_) => attempt.failed(),
        }
        sent
    }

    async fn sent(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (permit, request): (Permit, Request<Body>),
        repeat: Repeat,
    ) -> Result<Exchange, UpstreamError> {
        let lease = self.lease(attempt, permit).await?;
        let (reused, place) = (lease.reused, lease.place);
        let Failed {
            error,
            unsent,
            permit,
        } = match offer(lease, request).await {
            Ok(exchange) => return Ok(exchange),
            Err(failed) => *failed,
        };
        // A kept connection may have been closed by the server at the very moment it was taken.
        let again = match (reused, unsent, repeat) {
            (Reused::Yes, Some(unsent), _) => unsent,
            (Reused::Yes, None, Repeat::Copy(copy))
                if !is_malformed(&error) && self.places.may_repeat() =>
            {
                *copy
            }
            (Reused::Yes | Reused::No, _, _) => return Err(classify(error)),
        };
        let fresh = self.connect(place).await?;
        let lease = Lease::of((self, place), fresh, Reused::No, permit);
        offer(lease, again)
            .await
            .map_err(|failed| classify(failed.error))
    }

    /// A connection to the address that the call goes to; to another one where that cannot be reached, since nothing of
    /// the call was sent.
    async fn lease(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        permit: Permit,
    ) -> Result<Lease, UpstreamError> {
        let place = self.places.choose(&self.plan, None)?;
        attempt.goes_to(place);
        while let Some((mut sender, alive)) = self.take_idle(place) {
            // The connection's task may not have run since the last answer's end.
            if sender.is_ready() || sender.ready().await.is_ok() {
                let kept = (sender, alive);
                return Ok(Lease::of((self, place), kept, Reused::Yes, permit));
            }
        }
        let fault = match self.connect(place).await {
            Ok(fresh) => return Ok(Lease::of((self, place), fresh, Reused::No, permit)),
            Err(fault) => fault,
        };
        if !self.places.has_others() || !self.places.may_repeat() {
            return Err(fault);
        }
        attempt.moves_on();
        let other = self.places.choose(&self.plan, Some(place))?;
        attempt.goes_to(other);
        let fresh = self.connect(other).await?;
        Ok(Lease::of((self, other), fresh, Reused::No, permit))
    }

    fn take_idle(&self, place: usize) -> Option<(SendRequest<Body>, Alive)> {
        let now = clock::now();
        let mut idle = self.places.idle(place)?.borrow_mut();
        while let Some(last) = idle.pop() {
            if now - last.since >= self.plan.keep_alive {
                // The stack is ordered by age: what lies below is older still.
                idle.clear();
                return None;
            }
            if !last.sender.is_closed() {
                return Some((last.sender, last.alive));
            }
        }
        None
    }

    async fn connect(
        self: &Rc<Self>,
        place: usize,
    ) -> Result<(SendRequest<Body>, Alive), UpstreamError> {
        let unreachable = |source| UpstreamError::Unreachable {
            upstream: self.plan.name.clone(),
            source,
        };
        let nowhere = || unreachable(std::io::Error::other("it has no such address"));
        let connector = self.places.connector(place).ok_or_else(nowhere)?;
        let stream = connector.connect_within(self.plan.connect_timeout).await;
        let stream = stream.map_err(unreachable)?;
        let mut builder = Builder::new();
        builder.preserve_header_case(true);
        let patience = Patience::new();
        let stream = TokioIo::new(Answering::new(stream, patience.clone()));
        let handshake = builder.handshake(stream).await;
        let (sender, connection) = handshake.map_err(UpstreamError::Broken)?;
        let open = Open::count(self.open.clone());
        let (until, mut ended) = oneshot::channel();
        self.tasks.start(async move {
            let _open = open;
            // How it ends is told to the call that uses it; between calls nobody needs to know. Dropped by
            // the other branch, the connection is closed where it stands.
            tokio::select! {
                _ = connection.with_upgrades() => {}
                _ = &mut ended => {}
            }
        });
        let alive = Alive {
            patience,
            _until: until,
        };
        Ok((sender, alive))
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

async fn offer(mut lease: Lease, request: Request<Body>) -> Result<Exchange, Box<Failed>> {
    lease.alive.patience.begin();
    let answered = lease.sender.try_send_request(request).await;
    lease.alive.patience.end();
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
