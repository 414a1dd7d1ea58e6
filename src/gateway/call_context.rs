//! The context of one call: its request, its caller, its decision and its limits.
//!
//! Functions that only read a call receive its context; those that report on it receive its
//! [`AccessRecord`](super::access_record::AccessRecord).
//!
//! Used throughout `gateway`.

use std::rc::Rc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Version};
use tokio::time::Instant;

use super::peers::Peer as CountedPeer;
use super::request_line::{RequestLine, Target};
use super::request_origin::RequestOrigin;
use super::runtime_plan::RuntimePlan;
use super::worker::Worker;
use crate::telemetry::clock;
use crate::telemetry::metrics::LabelId;
use crate::upstream::Upstream;
use crate::upstream::link::{AuthorizedLinks, ClientLinks, NotificationSender};
use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Caller, DecisionReason, Proof, Stage, Way};
use dualgauge_model::routing;
use dualgauge_model::time::Timestamp;
use dualgauge_model::trace::Trace;
use dualgauge_net::{BodyCopy, ReusableTimer};
use dualgauge_patterns::side::Side;

/// The context of one call.
#[derive(Debug)]
pub(super) struct CallContext {
    pub(super) worker: Rc<Worker>,
    pub(super) runtime_plan: Rc<RuntimePlan>,
    pub(super) start: CallStart,
    pub(super) side: Side,
    pub(super) method: Method,
    pub(super) version: Version,
    pub(super) target: Target,
    pub(super) route: Option<usize>,
    /// Index of the requested event stream, if the request opens one.
    pub(super) stream: Option<usize>,
    pub(super) client: Option<usize>,
    pub(super) proof: Proof,
    pub(super) stage: Option<Stage>,
    pub(super) why: DecisionReason,
    pub(super) role: CallRole,
    /// Connection and request line of the call.
    origin: Option<RequestOrigin>,
    /// Peer whose in-progress limit the call counts towards.
    peer: Option<Rc<CountedPeer>>,
    /// Receiver of server notifications for this call alone; if unset, they go to the connection's receiver.
    notifications: Option<NotificationSender>,
    /// The client's `Authorization`, if an upstream of the plan has links for each. Boxed, because few plans have one.
    authorization: Option<Box<HeaderValue>>,
    /// The headers of the client that logins of links take values from.
    login_headers: Option<Box<HeaderMap>>,
    /// Trace context of the call.
    pub(super) trace: Option<Trace>,
}

/// The start of a call, with the time spent waiting for the client.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallStart {
    pub(super) started: Instant,
    /// Wall-clock time of `started`.
    pub(super) wall_time: Timestamp,
    pub(super) client_time: ClientTime,
}

/// Time that the client took to send its request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClientTime {
    pub(super) head: Duration,
    /// Time spent waiting for the body before the call was sent to an upstream.
    pub(super) body: Duration,
}

/// If the client used more than 1/10 of `total_timeout`, a timeout is reported as 408 (client), not 504 (upstream).
const CLIENT_SHARE: u32 = 10;

/// The role of a call: how it is counted and reported.
#[derive(Debug)]
pub(super) enum CallRole {
    /// A client's call: counted as in progress, then logged and counted at its end.
    Call,
    /// A request that was split into calls with their own records: counted as in progress only.
    SplitRequest,
    /// A second run that has not started. Second runs never count as in progress and are not logged as calls.
    NotStarted,
    /// A candidate run, with the budget that its response body is charged to.
    Candidate(BodyCopy),
    /// A repeated control run that measures noise, with the budget of its response body.
    Noise(BodyCopy),
}

impl CallContext {
    /// Keeps only what the report of the call needs of its plan: a stream that outlives the plan keeps no link open.
    pub(super) fn release_upstreams(&mut self) {
        self.runtime_plan = self.runtime_plan.for_reports().clone();
    }

    /// Returns the context of a call with this request line; nothing is known of its caller yet.
    pub(super) fn new(
        worker: &Rc<Worker>,
        runtime_plan: &Rc<RuntimePlan>,
        side: Side,
        line: RequestLine,
    ) -> CallContext {
        CallContext {
            worker: worker.clone(),
            runtime_plan: runtime_plan.clone(),
            start: CallStart {
                started: clock::now(),
                wall_time: clock::timestamp(clock::wall()),
                client_time: ClientTime {
                    head: line.head_time,
                    body: Duration::ZERO,
                },
            },
            side,
            method: line.method,
            version: line.version,
            target: line.target,
            route: None,
            stream: None,
            client: None,
            proof: Proof::None,
            stage: Some(Stage::Passthrough),
            why: DecisionReason::Unrouted,
            role: CallRole::Call,
            origin: None,
            peer: line.peer,
            notifications: None,
            authorization: None,
            login_headers: None,
            trace: None,
        }
    }

    /// Returns the context of a second run of the call, which has not started and receives no notifications.
    pub(super) fn for_second_run(&self) -> CallContext {
        CallContext {
            worker: self.worker.clone(),
            runtime_plan: self.runtime_plan.clone(),
            start: self.start,
            side: self.side,
            method: self.method.clone(),
            version: self.version,
            target: self.target.clone(),
            route: self.route,
            stream: self.stream,
            client: self.client,
            proof: self.proof,
            stage: self.stage,
            why: self.why,
            role: CallRole::NotStarted,
            origin: self.second_run_origin(),
            peer: None,
            notifications: None,
            authorization: self.authorization.clone(),
            login_headers: self.login_headers.clone(),
            trace: self.trace,
        }
    }

    /// Returns the origin of a second run. Servers of frames send events to each connection, so a second run that could
    /// reach one has connections of its own.
    fn second_run_origin(&self) -> Option<RequestOrigin> {
        let routes = &self.runtime_plan.plan.routes;
        let is_frame = self
            .route
            .is_some_and(|route| routes.route(route).is_frame());
        match self.role {
            CallRole::Call | CallRole::SplitRequest if is_frame => {
                self.origin.as_ref().map(RequestOrigin::for_second_runs)
            }
            // A repeated control has the connections of its candidate.
            CallRole::Call
            | CallRole::SplitRequest
            | CallRole::NotStarted
            | CallRole::Candidate(_)
            | CallRole::Noise(_) => self.origin.clone(),
        }
    }

    /// Returns the budget of the response body, if this is a second run.
    pub(super) fn second_run_budget(&self) -> Option<&BodyCopy> {
        match &self.role {
            CallRole::Candidate(budget) | CallRole::Noise(budget) => Some(budget),
            CallRole::Call | CallRole::SplitRequest | CallRole::NotStarted => None,
        }
    }

    /// Returns the upstream of this run. Second runs use a separate pool, so that they never take a connection from a
    /// client.
    pub(super) fn upstream(&self, side: Side) -> Option<&Upstream> {
        match &self.role {
            CallRole::Call | CallRole::SplitRequest => self.runtime_plan.upstream(self.route, side),
            CallRole::Candidate(_) | CallRole::Noise(_) | CallRole::NotStarted => {
                self.runtime_plan.shadow_upstream(self.route, side)
            }
        }
    }

    /// Returns the other MCP server of this run, if stages choose between two for the calls of its route.
    pub(super) fn paired_upstream(&self) -> Option<&Upstream> {
        let plan = &self.runtime_plan.plan;
        if self.side != Side::Rpc {
            return None;
        }
        let index = plan.upstreams.candidate_of(self.route)?;
        match &self.role {
            CallRole::Call | CallRole::SplitRequest => self.runtime_plan.upstream_at(index),
            CallRole::Candidate(_) | CallRole::Noise(_) | CallRole::NotStarted => {
                self.runtime_plan.shadow_upstream_at(index)
            }
        }
    }

    /// Sets the connection and request line of the call.
    pub(super) fn set_origin(&mut self, origin: &RequestOrigin) {
        self.origin = Some(origin.clone());
    }

    /// Starts or continues the trace of the call from the request headers.
    pub(super) fn start_trace(&mut self, headers: &HeaderMap) {
        self.trace = self.worker.trace(&self.runtime_plan.plan, headers);
    }

    /// Returns the trace context of the call.
    pub(super) fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Removes and returns the timer of the client's connection; returns a new one if that timer is in use.
    pub(super) fn take_timer(&self) -> ReusableTimer {
        let origin = self.origin.as_ref();
        origin
            .map(|origin| origin.timer().take())
            .unwrap_or_default()
    }

    /// Returns the timer to the client's connection for reuse.
    pub(super) fn store_timer(&self, timer: ReusableTimer) {
        if let Some(origin) = &self.origin {
            origin.timer().replace(timer);
        }
    }

    /// Returns the connection that the call came from, or that of a second run.
    pub(super) fn origin(&self) -> Option<&RequestOrigin> {
        self.origin.as_ref()
    }

    /// Returns the upstream links that belong to the client's connection.
    pub(super) fn links(&self) -> Option<&ClientLinks> {
        self.origin.as_ref().map(|origin| &**origin.links())
    }

    /// Returns true when the client's connection is about to close because the server state kept for it is lost.
    pub(super) fn has_lost_state(&self) -> bool {
        self.origin.as_ref().is_some_and(RequestOrigin::has_lost)
    }

    /// Sets the receiver of server notifications for the duration of the call.
    pub(super) fn set_notifications(&mut self, notifications: NotificationSender) {
        self.notifications = Some(notifications);
    }

    /// Returns the receiver of server notifications, which also orders the reply among them. Second runs have none.
    pub(super) fn notifications(&self) -> Option<NotificationSender> {
        match &self.role {
            CallRole::Call | CallRole::SplitRequest => {
                let of_connection = || self.links().and_then(ClientLinks::notifications);
                self.notifications.clone().or_else(of_connection)
            }
            CallRole::Candidate(_) | CallRole::Noise(_) | CallRole::NotStarted => None,
        }
    }

    /// Returns the index of the route.
    pub(super) fn route(&self) -> Option<usize> {
        self.route
    }

    /// Returns the stage; `None` if the proxy itself responds.
    pub(super) fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// Returns the rule that chose the stage.
    pub(super) fn why(&self) -> DecisionReason {
        self.why
    }

    /// Returns the path that the client requested.
    pub(super) fn path(&self) -> &str {
        self.target.path()
    }

    /// Returns the HTTP method of the request.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the time since the call started.
    pub(super) fn elapsed(&self) -> Duration {
        clock::now() - self.start.started
    }

    /// Returns the deadline of the call and `limits.total_timeout`, if set. Second runs have none.
    pub(super) fn deadline(&self) -> Option<(Instant, Duration)> {
        let limit = self.runtime_plan.plan.limits.total_timeout?;
        let left = limit.saturating_sub(self.start.client_time.head);
        matches!(self.role, CallRole::Call | CallRole::SplitRequest)
            .then(|| (self.start.started + left, limit))
    }

    /// Returns `limit`, shortened to the time left before the call's deadline.
    pub(super) fn time_left(&self, limit: Duration) -> Duration {
        match self.deadline() {
            None => limit,
            Some((deadline, _)) => limit.min(deadline.saturating_duration_since(clock::now())),
        }
    }

    /// Adds the time since `since` to the time spent waiting for the body.
    pub(super) fn add_body_time(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            self.start.client_time.body += clock::now() - since;
        }
    }

    /// Returns `limits.total_timeout` if the deadline has passed and the client used more than 1/10 of it. The client's
    /// time is that of its head and body, plus `waited`, the time it took to send or receive since.
    pub(super) fn limit_exceeded_by_client(&self, waited: Duration) -> Option<Duration> {
        let (deadline, limit) = self.deadline()?;
        let client_time = self.start.client_time.head + self.start.client_time.body + waited;
        (deadline <= clock::now() && client_time * CLIENT_SHARE > limit).then_some(limit)
    }

    /// Fails when more calls are in progress than the plan allows; each call of a batch counts as one.
    pub(super) fn admit(&self) -> Result<(), Failure> {
        if self.worker.may_call(self.peer()) {
            return Ok(());
        }
        let message = "concurrency limit of the proxy reached; retry later";
        Err(Failure::new(Reason::Overloaded, message).advise(Advice::RetryAfter(1)))
    }

    /// Returns the peer whose in-progress limit the call counts towards.
    pub(super) fn peer(&self) -> Option<&Rc<CountedPeer>> {
        self.peer.as_ref()
    }

    pub(super) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    pub(super) fn runtime_plan(&self) -> &Rc<RuntimePlan> {
        &self.runtime_plan
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Returns the wall-clock time at which the call started.
    pub(super) fn wall_time(&self) -> Timestamp {
        self.start.wall_time
    }

    /// Returns the failure for a call whose decision has no backend to serve it.
    pub(super) fn unserved_failure(&self, plan: &Plan, route: usize) -> Failure {
        routing::refused(plan, self.why, route, self.side, self.start.wall_time)
    }

    /// Sets the route and the decision.
    pub(super) fn set_decision(&mut self, route: Option<usize>, stage: Stage, why: DecisionReason) {
        self.route = route;
        self.stage = Some(stage);
        self.why = why;
    }

    /// Sets the requested event stream.
    pub(super) fn set_stream(&mut self, stream: usize) {
        self.stream = Some(stream);
    }

    /// Returns the index of the requested event stream.
    pub(super) fn stream(&self) -> Option<usize> {
        self.stream
    }

    /// Records that the proxy itself responds, and why.
    pub(super) fn handle_locally(&mut self, why: DecisionReason) {
        self.stage = None;
        self.why = why;
    }

    /// Returns true when the proxy builds the response, so that it also sets the CORS headers.
    pub(super) fn is_built_by_proxy(&self) -> bool {
        self.why == DecisionReason::Local
            || self
                .stage
                .is_some_and(|stage| stage.control() != Some(Way::Old))
    }

    /// Keeps the client's `Authorization`, if an upstream of the plan has links for each, and the headers that logins take
    /// values from.
    pub(super) fn set_authorization(&mut self, headers: &HeaderMap) {
        if self.runtime_plan.has_authorized_links() {
            self.authorization = headers.get(AUTHORIZATION).map(|value| {
                let mut value = value.clone();
                value.set_sensitive(true);
                Box::new(value)
            });
        }
        let wanted = self.runtime_plan.login_headers();
        if !wanted.is_empty() {
            let wanted = wanted.iter();
            let found = wanted
                .flat_map(|name| headers.get_all(name).iter().map(move |value| (name, value)));
            let mut kept = HeaderMap::new();
            for (name, value) in found {
                let mut value = value.clone();
                value.set_sensitive(true);
                kept.append(name, value);
            }
            self.login_headers = Some(Box::new(kept));
        }
    }

    /// Returns the links that belong to one `Authorization`, and that of the client.
    pub(super) fn authorized_links(&self) -> Option<(&AuthorizedLinks, Option<HeaderValue>)> {
        let links = self.worker.authorized_links();
        Some((links, self.authorization.as_deref().cloned()))
    }

    /// Returns true if the call opens a subscription.
    pub(super) fn opens_subscription(&self) -> bool {
        let routes = &self.runtime_plan.plan.routes;
        let route = self.route.map(|route| routes.route(route));
        route.is_some_and(|route| route.subscription.is_some())
    }

    /// Returns the headers that logins of links take values from, if there are such logins.
    pub(super) fn login_headers(&self) -> Option<&HeaderMap> {
        self.login_headers.as_deref()
    }

    /// Sets the caller.
    pub(super) fn set_client(&mut self, caller: Caller<'_>) {
        self.client = caller.client;
        self.proof = caller.proof;
    }

    /// Returns the index of the client; `None` for unknown callers.
    pub(super) fn client(&self) -> Option<usize> {
        self.client
    }

    /// Returns how far the caller's identity is proven.
    pub(super) fn proof(&self) -> Proof {
        self.proof
    }

    /// Makes the call a REST call, because the body posted to an RPC path is not JSON-RPC.
    pub(super) fn set_side_to_rest(&mut self) {
        self.side = Side::Rest;
    }

    /// Returns true when delivery can be observed: over HTTP/2, where each stream has flow control (RFC 9113 §5.2).
    /// Over HTTP/1.1, written data counts as delivered.
    pub(super) fn observes_delivery(&self) -> bool {
        self.version == Version::HTTP_2 && self.method != Method::HEAD
    }

    /// Returns the start of the call.
    pub(super) fn call_start(&self) -> CallStart {
        self.start
    }

    /// Returns the label that the call is counted under.
    pub(super) fn label(&self) -> LabelId {
        match self.stream {
            Some(stream) => self.runtime_plan.stream_label(stream),
            None => self.runtime_plan.route_label(self.route),
        }
    }
}
