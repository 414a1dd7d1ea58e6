//! An HTTP upstream: a pool of keep-alive connections of one worker.
//!
//! The pool is a stack, so that few connections stay warm and the others age out. One permit stands for
//! one call, and a call takes an idle connection before it opens another, so that open connections never
//! exceed the permits. Where HTTP/2 is spoken, calls share connections; upgrades never do.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, Version};
use tokio::time::{Instant, interval, timeout};

use super::channel::{Channel, RequestDisposition, SendError};
use super::endpoints::{ActiveCall, Attempt, Endpoints};
use super::error::{UpstreamError, classify, is_malformed, is_reset};
use super::http1::{Http1Connection, IdleConnection, OpenCount};
use super::http2_pool::Http2Pool;
use super::local_semaphore::{LocalSemaphore, Permit};
use super::retry::{ConnectionNeed, HeaderCasing, RetryCopy, RetryRequest, SendOptions};
use super::uploads::{LOOK, Uploads};
use super::{Body, IncomingBody, OutgoingRequest, Tasks, pinned};
use crate::domain::load_balancing::Sign;
use crate::domain::plan::UpstreamPlan;
use crate::domain::wire::{BodyEnd, HeaderCase, has_padded_value, settle_response};
use crate::telemetry::clock;
use crate::telemetry::metrics::{AddressCounts, UpstreamCalls};

/// An answer's head, and the connection that its body comes from.
#[derive(Debug)]
pub struct Exchange {
    /// The answer.
    pub response: Box<Response<IncomingBody>>,
    /// The connection.
    pub lease: Lease,
}

impl Exchange {
    /// The same with at most one length, and none beside a transfer coding: then the connection serves no other call.
    fn settled(mut self) -> Result<Exchange, UpstreamError> {
        let is_http2 = self.response.version() == Version::HTTP_2;
        if is_http2 && has_padded_value(self.response.headers()) {
            return Err(UpstreamError::Padded);
        }
        if !self.response.body().is_complete() {
            let ending = settle_response(self.response.headers_mut());
            if ending.map_err(UpstreamError::Unframed)? == BodyEnd::Conflicting {
                self.lease.mark_unusable();
            }
        }
        Ok(self)
    }
}

/// A server behind the proxy, as one worker sees it.
#[derive(Debug)]
pub struct HttpUpstream {
    plan: UpstreamPlan,
    endpoints: Endpoints,
    tasks: Tasks,
    permits: LocalSemaphore,
    uploads: Uploads,
    open: Rc<Cell<usize>>,
    pooling: Cell<PoolMode>,
}

/// Whether connections are kept for other calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolMode {
    On,
    /// The worker drains, or the plan has another upstream now.
    Off,
}

/// A connection in use, or a part of one. Dropped, it is closed; released, it goes back to the pool.
#[derive(Debug)]
pub struct Lease {
    upstream: Rc<HttpUpstream>,
    endpoint: usize,
    channel: Channel,
    reused: ConnectionAge,
    state: LeaseState,
    permit: Permit,
    _in_use: Option<ActiveCall>,
}

/// Whether a connection may serve again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseState {
    Open,
    Closed,
}

/// Whether a connection has served before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionAge {
    Yes,
    No,
}

impl Lease {
    fn new(
        (upstream, endpoint): (&Rc<HttpUpstream>, usize),
        (channel, reused): (Channel, ConnectionAge),
        permit: Permit,
    ) -> Lease {
        Lease {
            upstream: upstream.clone(),
            endpoint,
            channel,
            reused,
            state: LeaseState::Open,
            permit,
            _in_use: ActiveCall::count(upstream, endpoint),
        }
    }

    /// Keeps the connection from serving again, because of what is left in it.
    pub fn mark_unusable(&mut self) {
        self.state = LeaseState::Closed;
    }

    /// How the names of the answer were written that came by it, where that was noted.
    pub fn take_header_case(&mut self) -> Option<HeaderCase> {
        self.channel.take_header_case()
    }

    /// What was to come by it has not come in time: where calls share the connection, it takes no further ones.
    pub fn late(&self) {
        if let Channel::Http2(ride) = &self.channel {
            ride.trunk().retire();
        }
    }

    /// Gives the connection back, after a whole answer to a whole request.
    pub fn release(self) {
        let wanted = self.state == LeaseState::Open && self.upstream.pooling.get() == PoolMode::On;
        let Channel::Http1(connection) = self.channel else {
            return;
        };
        if wanted
            && !connection.is_closed()
            && !self.upstream.is_aged(&connection)
            && let Some(idle) = self.upstream.endpoints.idle(self.endpoint)
        {
            connection.release();
            idle.borrow_mut().push(IdleConnection {
                connection,
                since: clock::now(),
            });
        }
    }
}

impl HttpUpstream {
    /// A pool without connections.
    #[must_use]
    pub fn new(plan: UpstreamPlan, tasks: Tasks) -> HttpUpstream {
        HttpUpstream {
            endpoints: Endpoints::from_plan(&plan),
            permits: LocalSemaphore::new(plan.connections),
            uploads: Uploads::default(),
            plan,
            tasks,
            open: Rc::default(),
            pooling: Cell::new(PoolMode::On),
        }
    }

    /// What the plan says of it.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    pub(super) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// What has happened with its addresses, and how they stand.
    #[must_use]
    pub fn addresses(&self) -> AddressCounts {
        self.endpoints.counts()
    }

    /// How many connections are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// How many of them wait for their next call.
    #[must_use]
    pub fn idle(&self) -> usize {
        let own: usize = self
            .endpoints
            .all_idle()
            .map(|idle| idle.borrow().len())
            .sum();
        own + self
            .endpoints
            .all_http2_pools()
            .map(Http2Pool::idle)
            .sum::<usize>()
    }

    /// The calls that are here, against what may be.
    #[must_use]
    pub fn calls(&self) -> UpstreamCalls {
        let limit = self.plan.connections;
        UpstreamCalls {
            sent: (limit - self.permits.free()) as u64,
            waiting: self.permits.waiting() as u64,
            limit: limit as u64,
        }
    }

    /// Closes connections that have been idle for too long.
    pub fn forget_idle(&self) {
        let now = clock::now();
        for idle in self.endpoints.all_idle() {
            idle.borrow_mut().retain(|idle| {
                !idle.connection.is_closed() && now - idle.since < self.plan.keep_alive
            });
        }
        for trunks in self.endpoints.all_http2_pools() {
            trunks.forget_idle(&self.plan);
        }
    }

    /// Whether a connection is too old for another call.
    fn is_aged(&self, connection: &Http1Connection) -> bool {
        let max_age = self.plan.max_age;
        max_age.is_some_and(|age| clock::now() - connection.opened() >= age)
    }

    /// Closes all connections that are not in use, and each other one when its call is over.
    pub fn stop_pooling(&self) {
        self.pooling.set(PoolMode::Off);
        for idle in self.endpoints.all_idle() {
            idle.borrow_mut().clear();
        }
        for trunks in self.endpoints.all_http2_pools() {
            trunks.clear();
        }
    }

    /// Whether connections are kept for other calls.
    pub(super) fn is_pooling(&self) -> bool {
        self.pooling.get() == PoolMode::On
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Counts a connection as open.
    pub(super) fn opens(&self) -> OpenCount {
        OpenCount::count(self.open.clone())
    }

    /// Asks the addresses that are due whether they are well.
    pub fn check_health(self: &Rc<Self>) {
        let Some(check) = self.plan.watch.check.clone() else {
            return;
        };
        if self.pooling.get() == PoolMode::Off {
            return;
        }
        for place in self.endpoints.due() {
            let (own, check) = (self.clone(), check.clone());
            self.tasks.start(async move {
                let asked = timeout(check.timeout, own.is_healthy(place, &check.path)).await;
                let sign = match asked {
                    Ok(true) => Sign::Well,
                    Ok(false) | Err(_) => Sign::Ill,
                };
                own.endpoints
                    .checked(&own.plan.name, (place, sign), check.every);
            });
        }
    }

    /// Whether an address answers a check with success.
    async fn is_healthy(self: &Rc<Self>, place: usize, path: &str) -> bool {
        let mut request = Request::new(Body::empty());
        let (Ok(target), Some(host)) = (path.parse(), self.plan.authority.host()) else {
            return false;
        };
        *request.uri_mut() = target;
        request.headers_mut().insert(HOST, host.clone());
        // A connection of its own: calls never wait for a check, nor a check for calls.
        let Ok(mut line) = self.open_channel(place).await else {
            return false;
        };
        let answer = line.send(request.into(), HeaderCasing::Made).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Waits for the right to use a connection, in the order of asking.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] where none has come free within `limit`, and where as many wait already as may.
    pub async fn reserve(&self, limit: Duration) -> Result<Permit, UpstreamError> {
        if let Some(permit) = self.permits.take() {
            return Ok(permit);
        }
        let busy = |waiting| UpstreamError::Busy {
            upstream: self.plan.name.clone(),
            connections: self.plan.connections,
            waiting,
        };
        if self.permits.waiting() >= self.plan.queue {
            return Err(busy(self.permits.waiting()));
        }
        // Apart, so that a call that need not wait does not carry the room for it.
        let waited = Box::pin(self.wait(limit)).await;
        // It was among those that wait.
        waited.ok_or_else(|| busy(self.permits.waiting() + 1))
    }

    /// Waits for a permit, and meanwhile gives up uploads that are slow.
    async fn wait(&self, limit: Duration) -> Option<Permit> {
        let mut waits = pin!(self.permits.wait(limit));
        let mut looks = interval(LOOK);
        loop {
            // Both branches are cancel-safe; the first one has its place in the queue from its first poll.
            tokio::select! {
                biased;
                permit = waits.as_mut() => return permit,
                _ = looks.tick() => self.uploads.give_up_slow(self.permits.waiting()),
            }
        }
    }

    /// A call that is to be sent now: its address is told how it ended.
    #[must_use]
    pub fn attempt(&self, now: Instant) -> Attempt<'_> {
        Attempt::new(self, now)
    }

    /// Sends a call and waits for the head of its answer. The caller bounds the time; dropped, the call's
    /// connection is closed.
    ///
    /// # Errors
    /// [`UpstreamError`] after at most two attempts.
    pub async fn send(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (permit, outgoing): (Permit, OutgoingRequest),
        manner: SendOptions<'_>,
    ) -> Result<Exchange, UpstreamError> {
        self.endpoints.called();
        let progress = outgoing.body.progress();
        let _listed = progress.clone().map(|own| self.uploads.list(own));
        let sent = self.sent(attempt, (permit, outgoing), manner).await;
        let sent = sent.and_then(Exchange::settled);
        match &sent {
            Ok(exchange) => {
                attempt.answered(exchange.response.status());
                if let Some(progress) = progress {
                    progress.answered();
                }
            }
            // The client's doing says nothing of the server.
            Err(_) if progress.is_some_and(|progress| progress.is_broken()) => {}
            Err(_) => attempt.failed(),
        }
        sent
    }

    async fn sent(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (permit, outgoing): (Permit, OutgoingRequest),
        SendOptions {
            retry: repeat,
            heads,
            need: wants,
        }: SendOptions<'_>,
    ) -> Result<Exchange, UpstreamError> {
        let lease = self.lease(attempt, permit, wants).await?;
        let (reused, place) = (lease.reused, lease.endpoint);
        let spare = match lease.reused {
            ConnectionAge::Yes => RetryCopy::new(&outgoing, repeat, &lease.channel),
            // It was not closed while it waited.
            ConnectionAge::No => RetryCopy::Nothing,
        };
        let FailedAttempt {
            unanswered:
                SendError {
                    error,
                    request: left,
                },
            permit,
        } = match offer(attempt, lease, (outgoing, heads)).await {
            Ok(exchange) => return Ok(exchange),
            Err(failed) => *failed,
        };
        let again = match (reused, left) {
            // A kept connection may have been closed by the server at the very moment it was taken.
            (ConnectionAge::Yes, RequestDisposition::Unsent(unsent)) => {
                Some(RetryRequest::Outgoing(unsent.into()))
            }
            (_, RequestDisposition::Refused(refused)) if self.endpoints.may_retry() => {
                Some(RetryRequest::Outgoing(refused.into()))
            }
            (ConnectionAge::Yes, RequestDisposition::Sent(bytes))
                if !is_malformed(&error) && !is_reset(&error) =>
            {
                let again = spare.retry_request(bytes);
                again.filter(|_| self.endpoints.may_retry())
            }
            (ConnectionAge::Yes | ConnectionAge::No, _) => None,
        };
        let Some(again) = again else {
            return Err(classify(error));
        };
        let lease = pinned(|| self.fresh(attempt, (place, permit), wants)).await?;
        let Some(outgoing) = again.on(&lease.channel) else {
            return Err(classify(error));
        };
        offer(attempt, lease, (outgoing, heads))
            .await
            .map_err(|failed| classify(failed.unanswered.error))
    }

    /// A connection to the address that the call goes to.
    async fn lease(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        permit: Permit,
        wants: ConnectionNeed,
    ) -> Result<Lease, UpstreamError> {
        let choice = self.endpoints.choose(&self.plan, None)?;
        attempt.set_endpoint(choice);
        let (place, _) = choice;
        while let Some(mut kept) = self.take_idle(place, attempt.began()) {
            if kept.is_ready().await {
                let kept = (Channel::Http1(kept), ConnectionAge::Yes);
                return Ok(Lease::new((self, place), kept, permit));
            }
        }
        // Apart, so that a call on a kept connection does not carry the room for it.
        pinned(|| self.fresh(attempt, (place, permit), wants)).await
    }

    /// A connection that is opened for the call, or shared with others; to another address where this one cannot be
    /// reached, since nothing was sent there.
    async fn fresh(
        self: &Rc<Self>,
        attempt: &Attempt<'_>,
        (place, permit): (usize, Permit),
        wants: ConnectionNeed,
    ) -> Result<Lease, UpstreamError> {
        let fault = match self.channel(place, wants).await {
            Ok(line) => return Ok(Lease::new((self, place), line, permit)),
            Err(fault) => fault,
        };
        if !self.endpoints.has_others() || !self.endpoints.may_retry() {
            return Err(fault);
        }
        attempt.fail_over();
        let choice = self.endpoints.choose(&self.plan, Some(place))?;
        attempt.set_endpoint(choice);
        let (other, _) = choice;
        let line = self.channel(other, wants).await?;
        Ok(Lease::new((self, other), line, permit))
    }

    fn take_idle(&self, place: usize, now: Instant) -> Option<Box<Http1Connection>> {
        let mut idle = self.endpoints.idle(place)?.borrow_mut();
        while let Some(last) = idle.pop() {
            if now - last.since >= self.plan.keep_alive {
                // The stack is ordered by age: what lies below is older still.
                idle.clear();
                return None;
            }
            if !last.connection.is_closed() && !self.is_aged(&last.connection) {
                return Some(last.connection);
            }
        }
        None
    }
}

/// An attempt without an answer, and the permit that it had.
struct FailedAttempt {
    unanswered: SendError,
    permit: Permit,
}

async fn offer(
    attempt: &Attempt<'_>,
    mut lease: Lease,
    (outgoing, heads): (OutgoingRequest, HeaderCasing<'_>),
) -> Result<Exchange, Box<FailedAttempt>> {
    attempt.set_channel(&lease.channel);
    match lease.channel.send(outgoing, heads).await {
        Ok(response) => Ok(Exchange { response, lease }),
        Err(unanswered) => Err(Box::new(FailedAttempt {
            unanswered: *unanswered,
            permit: lease.permit,
        })),
    }
}
