//! The addresses of an upstream within one worker: their idle connections, and their health.
//!
//! Decisions are made by [`dualgauge_transport::load_balancing`]; this module reports events to it. An upstream with one
//! address, no breaker and no health check has nothing to decide, so its calls are not tracked.
//!
//! Used by `connection_pool`.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::channel::Channel;
use super::connect::Connector;
use super::error::UpstreamError;
use super::http1::IdleConnection;
use super::http2::Http2Connection;
use super::http2_pool::Http2Pool;
use super::monitored_socket::AbuseCounter;
use super::pool_settings::PoolSettings;
use crate::clock;
use crate::counts::AddressCounts;
use crate::tls_config::Alpn;
use dualgauge_transport::load_balancing::{
    Addresses, CallRole, Choice, End, HealthEvent, HealthSignal, RetryDecision,
};
use dualgauge_transport::multiplexing::Multiplexing;

/// The endpoints of an upstream.
#[derive(Debug)]
pub(super) struct Endpoints {
    all: Vec<Endpoint>,
    core: RefCell<Addresses>,
    /// The start of the time that the load balancer counts.
    began: Instant,
    /// True if calls are tracked for the load balancer.
    is_monitored: bool,
    counts: Cell<AddressCounts>,
    aborts: AbuseCounter,
}

/// The endpoint that the load balancer chose for a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChosenEndpoint {
    pub(super) index: usize,
    role: CallRole,
}

/// One endpoint.
#[derive(Debug)]
struct Endpoint {
    /// The connector that offers HTTP/1.1 alone.
    connector: Connector,
    /// The HTTP/2 connections, unless HTTP/2 is off.
    http2: Option<Box<Http2Pool>>,
    address: String,
    /// The idle connections, ordered by age, the youngest last.
    idle: RefCell<Vec<IdleConnection>>,
    check: Cell<CheckState>,
}

/// The schedule of an endpoint's health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Due(Instant),
    Running,
}

impl Endpoints {
    pub(super) fn new(settings: &PoolSettings) -> Endpoints {
        let now = clock::now();
        let all = settings.addresses.iter().cloned().map(|address| Endpoint {
            connector: Connector::new(&address, settings.tls.as_deref(), Alpn::Http),
            http2: new_http2_pool(settings, &address),
            address,
            idle: RefCell::default(),
            check: Cell::new(CheckState::Due(now)),
        });
        let all: Vec<Endpoint> = all.collect();
        let watch = &settings.load_balancing;
        let is_plain = all.len() == 1 && watch.breaker.is_none() && watch.check.is_none();
        Endpoints {
            core: RefCell::new(Addresses::new(watch.clone(), all.len())),
            all,
            began: now,
            is_monitored: !is_plain,
            counts: Cell::default(),
            aborts: AbuseCounter::new(&settings.name),
        }
    }

    /// Counts a call, which adds to the retry budget.
    pub(super) fn count_call(&self) {
        self.core.borrow_mut().record_call();
    }

    /// Chooses the endpoint of a call; on a retry, another than `tried` if there is one.
    pub(super) fn choose(
        &self,
        settings: &PoolSettings,
        tried: Option<usize>,
    ) -> Result<ChosenEndpoint, UpstreamError> {
        if !self.is_monitored {
            return Ok(ChosenEndpoint {
                index: 0,
                role: CallRole::Usual,
            });
        }
        match self.core.borrow_mut().choose(self.now(), tried) {
            Choice::Address(index, role) => Ok(ChosenEndpoint { index, role }),
            Choice::Unavailable { retry_in } => Err(UpstreamError::CircuitOpen {
                upstream: settings.name.clone(),
                retry_in,
            }),
        }
    }

    /// Returns true when there is more than one endpoint.
    pub(super) fn has_others(&self) -> bool {
        self.all.len() > 1
    }

    /// Returns true when the retry budget allows another attempt. Counts the decision.
    pub(super) fn may_retry(&self) -> bool {
        let decision = self.core.borrow_mut().try_retry(self.now());
        self.count(|counts| match decision {
            RetryDecision::Allowed => counts.repeats += 1,
            RetryDecision::Exhausted => counts.exhausted += 1,
        });
        decision == RetryDecision::Allowed
    }

    fn now(&self) -> Duration {
        clock::now() - self.began
    }

    fn count(&self, change: impl FnOnce(&mut AddressCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Returns the counters and the current state of the endpoints.
    pub(super) fn counts(&self) -> AddressCounts {
        AddressCounts {
            left_out: self.core.borrow().avoided(self.now()) as u64,
            healthy: self.core.borrow().healthy() as u64,
            cut: self.aborts.count(),
            ..self.counts.get()
        }
    }

    /// Returns the counter of aborted HTTP/2 connections.
    pub(super) fn abuse_counter(&self) -> AbuseCounter {
        self.aborts.clone()
    }

    /// Returns the HTTP/1.1 connector of an endpoint.
    pub(super) fn connector(&self, index: usize) -> Option<&Connector> {
        self.all.get(index).map(|endpoint| &endpoint.connector)
    }

    /// Returns the HTTP/2 pool of an endpoint, unless HTTP/2 is off.
    pub(super) fn http2_pool(&self, index: usize) -> Option<&Http2Pool> {
        self.all.get(index)?.http2.as_deref()
    }

    /// Returns the HTTP/2 pools of all endpoints.
    pub(super) fn all_http2_pools(&self) -> impl Iterator<Item = &Http2Pool> {
        self.all
            .iter()
            .filter_map(|endpoint| endpoint.http2.as_deref())
    }

    /// Returns the idle connections of an endpoint.
    pub(super) fn idle(&self, index: usize) -> Option<&RefCell<Vec<IdleConnection>>> {
        self.all.get(index).map(|endpoint| &endpoint.idle)
    }

    /// Returns the idle connections of all endpoints.
    pub(super) fn all_idle(&self) -> impl Iterator<Item = &RefCell<Vec<IdleConnection>>> {
        self.all.iter().map(|endpoint| &endpoint.idle)
    }

    fn record_end(&self, upstream: &str, chosen: ChosenEndpoint, end: End) {
        let ChosenEndpoint { index, role } = chosen;
        let events = self
            .core
            .borrow_mut()
            .record_end(index, role, end, self.now());
        for event in events {
            self.report(upstream, event);
        }
    }

    fn report(&self, upstream: &str, event: HealthEvent) {
        let address = |index: usize| {
            self.all
                .get(index)
                .map_or("", |endpoint| endpoint.address.as_str())
        };
        match event {
            HealthEvent::Ejected(index, pause) => {
                self.count(|counts| counts.ejections += 1);
                tracing::warn!(
                    upstream,
                    address = address(index),
                    ?pause,
                    "endpoint ejected: it failed too often"
                );
            }
            HealthEvent::Unhealthy(index) => {
                tracing::warn!(
                    upstream,
                    address = address(index),
                    "endpoint failed its health checks"
                );
            }
            HealthEvent::Healthy(index) => {
                tracing::info!(
                    upstream,
                    address = address(index),
                    "endpoint passes its health checks again"
                );
            }
            HealthEvent::Opened(pause) => {
                self.count(|counts| (counts.openings, counts.open) = (counts.openings + 1, 1));
                tracing::warn!(
                    upstream,
                    ?pause,
                    "circuit breaker open: the upstream failed too often; rejecting calls"
                );
            }
            HealthEvent::Closed => {
                self.count(|counts| counts.open = 0);
                tracing::info!(
                    upstream,
                    "circuit breaker closed: the upstream responds again"
                );
            }
        }
    }

    /// Returns the endpoints whose check is due. Each counts as running until [`Endpoints::record_check`] records the
    /// result.
    pub(super) fn start_due_checks(&self) -> Vec<usize> {
        let now = clock::now();
        let all = self.all.iter().enumerate();
        let due = all.filter(
            |(_, endpoint)| matches!(endpoint.check.get(), CheckState::Due(at) if at <= now),
        );
        let due = due.map(|(index, endpoint)| {
            endpoint.check.set(CheckState::Running);
            index
        });
        due.collect()
    }

    /// Records the result of a health check; the next one is due after `every`.
    pub(super) fn record_check(
        &self,
        upstream: &str,
        index: usize,
        signal: HealthSignal,
        every: Duration,
    ) {
        if let Some(endpoint) = self.all.get(index) {
            endpoint.check.set(CheckState::Due(clock::now() + every));
        }
        let event = self.core.borrow_mut().record_check(index, signal);
        if let Some(event) = event {
            self.report(upstream, event);
        }
    }
}

fn new_http2_pool(settings: &PoolSettings, address: &str) -> Option<Box<Http2Pool>> {
    let alpn = match settings.http2 {
        Multiplexing::Off => return None,
        Multiplexing::Offered => Alpn::Http2First,
        Multiplexing::Required => Alpn::Http2,
    };
    let connector = Connector::new(address, settings.tls.as_deref(), alpn);
    Some(Box::new(Http2Pool::new(connector)))
}

/// Tracks one call, with its retry. Dropped, it reports the outcome to its endpoint; without an outcome the call counts
/// as abandoned.
#[derive(Debug)]
pub struct CallTracker<'a> {
    endpoints: &'a Endpoints,
    settings: &'a PoolSettings,
    endpoint: Cell<Option<ChosenEndpoint>>,
    end: Cell<End>,
    began: Instant,
    /// The HTTP/2 connection that the call shares with others.
    http2: RefCell<Weak<Http2Connection>>,
}

impl<'a> CallTracker<'a> {
    pub(super) fn new(
        endpoints: &'a Endpoints,
        settings: &'a PoolSettings,
        now: Instant,
    ) -> CallTracker<'a> {
        CallTracker {
            endpoints,
            settings,
            endpoint: Cell::new(None),
            end: Cell::new(End::Abandoned),
            began: now,
            http2: RefCell::default(),
        }
    }

    /// Returns the start of the call.
    pub(super) fn started_at(&self) -> Instant {
        self.began
    }

    /// Records the chosen endpoint.
    pub(super) fn set_endpoint(&self, chosen: ChosenEndpoint) {
        if self.endpoints.is_monitored {
            self.endpoint.set(Some(chosen));
        }
    }

    /// Records the connection.
    pub(super) fn set_channel(&self, channel: &Channel) {
        if let Channel::Http2(stream) = channel {
            self.http2.replace(Rc::downgrade(stream.connection()));
        }
    }

    /// Records the head of a response. A gateway error counts as a failure of the endpoint (RFC 9110 §15.6.3 to
    /// §15.6.5).
    pub(super) fn record_head(&self, status: StatusCode) {
        let is_gone = matches!(
            status,
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
        );
        self.end
            .set(if is_gone { End::Failed } else { End::Answered });
    }

    /// Records that no response came.
    pub(super) fn failed(&self) {
        self.end.set(End::Failed);
    }

    /// Records a timeout. A shared connection takes no further calls, since it may be dead for all of them.
    pub fn record_timeout(&self) {
        self.failed();
        self.retire();
    }

    fn retire(&self) {
        if let Some(connection) = self.http2.borrow().upgrade() {
            connection.retire();
        }
    }

    /// Reports a failure of this endpoint; the call goes on at another.
    pub(super) fn fail_over(&self) {
        self.failed();
        self.report_end();
        self.end.set(End::Abandoned);
    }

    fn report_end(&self) {
        if let Some(chosen) = self.endpoint.take() {
            let upstream = &self.settings.name;
            self.endpoints.record_end(upstream, chosen, self.end.get());
        }
    }
}

impl Drop for CallTracker<'_> {
    fn drop(&mut self) {
        // The owner of a link measures the time and drops the tracker without calling `record_timeout`.
        let limit = self.settings.timeout;
        if self.end.get() == End::Abandoned && clock::now() - self.began >= limit {
            self.retire();
        }
        self.report_end();
    }
}

/// A connection in use, counted for its endpoint.
#[derive(Debug)]
pub(super) struct ActiveCall {
    endpoints: Rc<Endpoints>,
    index: usize,
}

impl ActiveCall {
    /// Counts a connection if the load balancer uses the count.
    pub(super) fn count(endpoints: &Rc<Endpoints>, index: usize) -> Option<ActiveCall> {
        if !endpoints.is_monitored {
            return None;
        }
        endpoints.core.borrow_mut().acquire(index);
        Some(ActiveCall {
            endpoints: endpoints.clone(),
            index,
        })
    }
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        self.endpoints.core.borrow_mut().release(self.index);
    }
}
