//! A connection pool: one worker's keep-alive connections to one server. The pool is a stack: few connections stay warm, and
//! others age out. A call takes one permit and prefers an idle connection, so open connections never exceed the
//! permits. HTTP/2 connections are shared by calls, but never by upgrades.
//!
//! Used by `endpoints` and `open`.

use std::cell::Cell;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::HOST;
use http::{Request, Response, Version};
use tokio::time::{Instant, interval, timeout};

use super::channel::{Channel, LeasedChannel};
use super::count_guard::CountGuard;
use super::endpoints::{ActiveCall, CallTracker, Endpoints};
use super::error::{UpstreamError, classify, is_malformed, is_reset};
use super::http1::{Http1Connection, IdleConnection};
use super::http2_pool::Http2Pool;
use super::permits::{Permit, Permits};
use super::pool_settings::PoolSettings;
use super::retry::{ConnectionNeed, RetryCopy, RetryRequest, SendOptions};
use super::send_error::{RequestDisposition, SendError};
use super::uploads::{CHECK_INTERVAL, Uploads};
use super::{Body, HeaderCasing, IncomingBody, OutgoingRequest, Tasks, pinned};
use crate::clock;
use crate::counts::{AddressCounts, UpstreamCalls};
use dualgauge_transport::load_balancing::HealthSignal;
use dualgauge_transport::wire::{BodyEnd, HeaderCase, has_padded_value, settle_response};

/// The head of a response, and the connection that its body is read from.
#[derive(Debug)]
pub struct Exchange {
    /// The response.
    pub response: Box<Response<IncomingBody>>,
    /// The connection.
    pub lease: Lease,
}

impl Exchange {
    /// Leaves at most one length, none beside a transfer coding; a conflict keeps the connection from reuse.
    fn with_unambiguous_length(mut self) -> Result<Exchange, UpstreamError> {
        let is_http2 = self.response.version() == Version::HTTP_2;
        if is_http2 && has_padded_value(self.response.headers()) {
            return Err(UpstreamError::PaddedHeaderValue);
        }
        if !self.response.body().is_complete() {
            let ending = settle_response(self.response.headers_mut());
            if ending.map_err(UpstreamError::InvalidFraming)? == BodyEnd::Conflicting {
                self.lease.mark_unusable();
            }
        }
        Ok(self)
    }
}

/// A pool of connections to one server, within one worker.
#[derive(Debug)]
pub struct ConnectionPool {
    settings: PoolSettings,
    endpoints: Rc<Endpoints>,
    tasks: Tasks,
    permits: Permits,
    uploads: Uploads,
    open: Rc<Cell<usize>>,
    /// True if connections are kept for other calls. False if the worker drains, or a reload has replaced this
    /// pool.
    is_pooling: Cell<bool>,
}

/// A connection in use, or a stream of one. Dropped, it is closed; released, it returns to the pool.
#[derive(Debug)]
pub struct Lease {
    pool: Rc<ConnectionPool>,
    endpoint: usize,
    channel: Channel,
    is_reused: bool,
    is_unusable: bool,
    permit: Permit,
    _in_use: Option<ActiveCall>,
}

impl Lease {
    fn new(
        pool: &Rc<ConnectionPool>,
        endpoint: usize,
        channel: LeasedChannel,
        permit: Permit,
    ) -> Lease {
        let LeasedChannel { channel, is_reused } = channel;
        Lease {
            pool: pool.clone(),
            endpoint,
            channel,
            is_reused,
            is_unusable: false,
            permit,
            _in_use: ActiveCall::count(&pool.endpoints, endpoint),
        }
    }

    /// Keeps the connection from being reused, because unread bytes may be left in it.
    pub fn mark_unusable(&mut self) {
        self.is_unusable = true;
    }

    /// Takes the header case of the response, if it was recorded.
    pub fn take_header_case(&mut self) -> Option<HeaderCase> {
        self.channel.take_header_case()
    }

    /// Records a timeout. A shared connection takes no further calls.
    pub fn record_timeout(&self) {
        if let Channel::Http2(stream) = &self.channel {
            stream.connection().retire();
        }
    }

    /// Returns the connection to the pool, after a complete response to a complete request.
    pub fn release(self) {
        let is_reusable = !self.is_unusable && self.pool.is_pooling();
        let Channel::Http1(connection) = self.channel else {
            return;
        };
        if is_reusable
            && !connection.is_closed()
            && !self.pool.is_aged(&connection)
            && let Some(idle) = self.pool.endpoints.idle(self.endpoint)
        {
            connection.return_polling_to_task();
            idle.borrow_mut().push(IdleConnection {
                connection,
                since: clock::now(),
            });
        }
    }
}

impl ConnectionPool {
    /// Creates a pool without connections.
    #[must_use]
    pub fn new(settings: PoolSettings, tasks: Tasks) -> ConnectionPool {
        ConnectionPool {
            endpoints: Rc::new(Endpoints::new(&settings)),
            permits: Permits::new(settings.connections),
            uploads: Uploads::default(),
            settings,
            tasks,
            open: Rc::default(),
            is_pooling: Cell::new(true),
        }
    }

    pub(super) fn settings(&self) -> &PoolSettings {
        &self.settings
    }

    pub(super) fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Returns the counters and the current state of the endpoints.
    #[must_use]
    pub fn addresses(&self) -> AddressCounts {
        self.endpoints.counts()
    }

    /// Returns the number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// Returns the number of idle connections.
    #[must_use]
    pub fn idle(&self) -> usize {
        let http1_idle: usize = self
            .endpoints
            .all_idle()
            .map(|idle| idle.borrow().len())
            .sum();
        let http2_pools = self.endpoints.all_http2_pools();
        http1_idle + http2_pools.map(Http2Pool::idle).sum::<usize>()
    }

    /// Returns the number of sent and waiting calls, and the limit.
    #[must_use]
    pub fn calls(&self) -> UpstreamCalls {
        let limit = self.settings.connections;
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
                !idle.connection.is_closed() && now - idle.since < self.settings.keep_alive
            });
        }
        for pool in self.endpoints.all_http2_pools() {
            pool.forget_idle(&self.settings);
        }
    }

    /// Returns true when a connection is too old for another call.
    fn is_aged(&self, connection: &Http1Connection) -> bool {
        let max_age = self.settings.max_age;
        max_age.is_some_and(|age| clock::now() - connection.opened() >= age)
    }

    /// Closes all idle connections, and each other one when its call ends.
    pub fn stop_pooling(&self) {
        self.is_pooling.set(false);
        for idle in self.endpoints.all_idle() {
            idle.borrow_mut().clear();
        }
        for pool in self.endpoints.all_http2_pools() {
            pool.clear();
        }
    }

    /// Returns true when connections are kept for other calls.
    pub(super) fn is_pooling(&self) -> bool {
        self.is_pooling.get()
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Counts a connection as open.
    pub(super) fn opens(&self) -> CountGuard {
        CountGuard::new(self.open.clone())
    }

    /// Starts a health check of each endpoint that is due.
    pub fn check_health(self: &Rc<Self>) {
        let Some(check) = self.settings.load_balancing.check.clone() else {
            return;
        };
        if !self.is_pooling() {
            return;
        }
        for index in self.endpoints.start_due_checks() {
            let (this, check) = (self.clone(), check.clone());
            self.tasks.start(async move {
                let result = timeout(check.timeout, this.is_healthy(index, &check.path)).await;
                let signal = match result {
                    Ok(true) => HealthSignal::Healthy,
                    Ok(false) | Err(_) => HealthSignal::Unhealthy,
                };
                this.endpoints
                    .record_check(&this.settings.name, index, signal, check.every);
            });
        }
    }

    /// Returns true when an endpoint answers a check with success. A new connection keeps checks and calls
    /// independent.
    async fn is_healthy(self: &Rc<Self>, index: usize, path: &str) -> bool {
        let mut request = Request::new(Body::empty());
        let (Ok(target), Some(host)) = (path.parse(), &self.settings.host) else {
            return false;
        };
        *request.uri_mut() = target;
        request.headers_mut().insert(HOST, host.clone());
        let Ok(mut channel) = self.open_channel(index).await else {
            return false;
        };
        let answer = channel.send(request.into(), HeaderCasing::LowerCase).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Waits for a permit, in the order of asking.
    ///
    /// # Errors
    /// [`UpstreamError::Busy`] when none is free within `limit`, or when the queue is full.
    pub async fn reserve(&self, limit: Duration) -> Result<Permit, UpstreamError> {
        if let Some(permit) = self.permits.take() {
            return Ok(permit);
        }
        let busy = |waiting| UpstreamError::Busy {
            upstream: self.settings.name.clone(),
            limit: self.settings.connections,
            waiting,
        };
        if self.permits.waiting() >= self.settings.queue {
            return Err(busy(self.permits.waiting()));
        }
        let waited = Box::pin(self.wait(limit)).await;
        waited.ok_or_else(|| busy(self.permits.waiting() + 1))
    }

    /// Waits for a permit, and aborts slow uploads meanwhile. Boxed by the caller to keep the call's future small.
    async fn wait(&self, limit: Duration) -> Option<Permit> {
        let mut permit_wait = pin!(self.permits.wait(limit));
        let mut checks = interval(CHECK_INTERVAL);
        loop {
            // Both branches are cancel-safe; the first one takes its place in the queue on its first poll.
            tokio::select! {
                biased;
                permit = permit_wait.as_mut() => return permit,
                _ = checks.tick() => self.uploads.abort_slow(self.permits.waiting()),
            }
        }
    }

    /// Starts to track a call; the tracker reports its outcome to the endpoint.
    #[must_use]
    pub fn track_call(&self, now: Instant) -> CallTracker<'_> {
        CallTracker::new(&self.endpoints, &self.settings, now)
    }

    /// Sends a call and waits for the response head. The caller bounds the time; dropping it closes the connection.
    ///
    /// # Errors
    /// [`UpstreamError`] after at most two attempts.
    pub async fn send(
        self: &Rc<Self>,
        tracker: &CallTracker<'_>,
        permit: Permit,
        outgoing: OutgoingRequest,
        options: SendOptions<'_>,
    ) -> Result<Exchange, UpstreamError> {
        self.endpoints.count_call();
        let progress = outgoing.body.progress();
        let _listed = progress.clone().map(|upload| self.uploads.list(upload));
        let sent = self
            .send_with_retry(tracker, permit, outgoing, options)
            .await;
        let sent = sent.and_then(Exchange::with_unambiguous_length);
        match &sent {
            Ok(exchange) => {
                tracker.record_head(exchange.response.status());
                if let Some(progress) = progress {
                    progress.answered();
                }
            }
            // An error of the client says nothing about the server.
            Err(_) if progress.is_some_and(|progress| progress.is_broken()) => {}
            Err(_) => tracker.failed(),
        }
        sent
    }

    async fn send_with_retry(
        self: &Rc<Self>,
        tracker: &CallTracker<'_>,
        permit: Permit,
        outgoing: OutgoingRequest,
        options: SendOptions<'_>,
    ) -> Result<Exchange, UpstreamError> {
        let lease = self.acquire(tracker, permit, options.need).await?;
        let (is_reused, index) = (lease.is_reused, lease.endpoint);
        let copy = if is_reused {
            RetryCopy::new(&outgoing, options.retry, &lease.channel)
        } else {
            RetryCopy::NotKept
        };
        let FailedAttempt { unanswered, permit } =
            match send_on(tracker, lease, outgoing, options.casing).await {
                Ok(exchange) => return Ok(exchange),
                Err(failed) => *failed,
            };
        let SendError {
            error,
            request: disposition,
        } = unanswered;
        let retry_request = match disposition {
            // The server may have closed a kept connection at the moment it was taken.
            RequestDisposition::Unsent(unsent) if is_reused => {
                Some(RetryRequest::Outgoing(unsent.into()))
            }
            RequestDisposition::Refused(refused) if self.endpoints.may_retry() => {
                Some(RetryRequest::Outgoing(refused.into()))
            }
            RequestDisposition::Sent(bytes)
                if is_reused && !is_malformed(&error) && !is_reset(&error) =>
            {
                let request = copy.retry_request(bytes);
                request.filter(|_| self.endpoints.may_retry())
            }
            RequestDisposition::Unsent(_)
            | RequestDisposition::Refused(_)
            | RequestDisposition::Sent(_) => None,
        };
        let Some(retry_request) = retry_request else {
            return Err(classify(error));
        };
        let lease = pinned(|| self.open_lease(tracker, index, permit, options.need)).await?;
        let Some(outgoing) = retry_request.for_channel(&lease.channel) else {
            return Err(classify(error));
        };
        send_on(tracker, lease, outgoing, options.casing)
            .await
            .map_err(|failed| classify(failed.unanswered.error))
    }

    /// Returns a connection to the endpoint that the load balancer chooses.
    async fn acquire(
        self: &Rc<Self>,
        tracker: &CallTracker<'_>,
        permit: Permit,
        need: ConnectionNeed,
    ) -> Result<Lease, UpstreamError> {
        let choice = self.endpoints.choose(&self.settings, None)?;
        tracker.set_endpoint(choice);
        let index = choice.index;
        while let Some(mut connection) = self.take_idle(index, tracker.started_at()) {
            if connection.is_ready().await {
                let channel = LeasedChannel::reused(Channel::Http1(connection));
                return Ok(Lease::new(self, index, channel, permit));
            }
        }
        pinned(|| self.open_lease(tracker, index, permit, need)).await
    }

    /// Opens or shares a connection; fails over to another endpoint if this one is unreachable, as nothing was sent.
    async fn open_lease(
        self: &Rc<Self>,
        tracker: &CallTracker<'_>,
        index: usize,
        permit: Permit,
        need: ConnectionNeed,
    ) -> Result<Lease, UpstreamError> {
        let error = match self.channel(index, need).await {
            Ok(channel) => return Ok(Lease::new(self, index, channel, permit)),
            Err(error) => error,
        };
        if !self.endpoints.has_others() || !self.endpoints.may_retry() {
            return Err(error);
        }
        tracker.fail_over();
        let choice = self.endpoints.choose(&self.settings, Some(index))?;
        tracker.set_endpoint(choice);
        let channel = self.channel(choice.index, need).await?;
        Ok(Lease::new(self, choice.index, channel, permit))
    }

    fn take_idle(&self, index: usize, now: Instant) -> Option<Box<Http1Connection>> {
        let mut idle = self.endpoints.idle(index)?.borrow_mut();
        while let Some(last) = idle.pop() {
            if now - last.since >= self.settings.keep_alive {
                // The stack is ordered by age: those below are older still.
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

/// A call that was sent without getting a response, and its permit.
struct FailedAttempt {
    unanswered: SendError,
    permit: Permit,
}

async fn send_on(
    tracker: &CallTracker<'_>,
    mut lease: Lease,
    outgoing: OutgoingRequest,
    casing: HeaderCasing<'_>,
) -> Result<Exchange, Box<FailedAttempt>> {
    tracker.set_channel(&lease.channel);
    match lease.channel.send(outgoing, casing).await {
        Ok(response) => Ok(Exchange { response, lease }),
        Err(unanswered) => Err(Box::new(FailedAttempt {
            unanswered: *unanswered,
            permit: lease.permit,
        })),
    }
}
