//! The record of one call, logged and counted exactly once, when it is dropped.
//!
//! A record dropped without an outcome is reported as cancelled by the client, or as cut if the proxy is shutting down.
//!
//! Used throughout `gateway`.

mod identity;
mod message;
mod outcome;
mod report;
mod request_line;
mod start;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Version};
use tokio::time::Instant;

use request_line::Target;
pub(super) use {outcome::FailureCause, request_line::RequestLine, start::CallStart};

use super::RequestOrigin;
use super::headers::{InboundHop, add_hop};
use super::shadow::Candidate;
use super::{CountedPeer, RuntimePlan, Worker};
use crate::telemetry::clock;
use crate::telemetry::metrics::Outcome;
use crate::upstream::link::{ClientLinks, NotificationSender};
use crate::upstream::{BodyCopy, ReusableTimer, Upstream, boxed};
use dualgauge_model::failure::{Advice, Blame, Failure, Reason};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Decision, DecisionReason, Proof, Stage, Way};
use dualgauge_model::routing;
use dualgauge_model::time::Timestamp;
use dualgauge_model::trace::Trace;
use dualgauge_patterns::side::Side;

/// The state of one call that metrics, guards, spans and the access log report.
#[derive(Debug)]
pub(super) struct Record {
    worker: Rc<Worker>,
    runtime_plan: Rc<RuntimePlan>,
    started: Instant,
    client_time: ClientTime,
    /// Wall-clock time of `started`.
    wall_time: Timestamp,
    side: Side,
    method: Method,
    version: Version,
    target: Target,
    rpc_method: Option<Arc<str>>,
    route: Option<usize>,
    /// Index of the requested event stream, if the request opens one.
    stream: Option<usize>,
    client: Option<usize>,
    proof: Proof,
    has_key: HasKey,
    stage: Option<Stage>,
    why: DecisionReason,
    /// Flags in force that exclude the call's client.
    excluded_by: Vec<usize>,
    upstream: Option<Duration>,
    /// Start of the current wait for an upstream.
    upstream_since: Option<Instant>,
    head: Option<Duration>,
    /// Time until the whole response was ready, if the record is kept until the client has received it.
    completed_at: Option<Duration>,
    dropped: usize,
    /// Facts about the JSON-RPC message of the call.
    message: message::MessageNote,
    outcome: CallOutcome,
    role: RecordRole,
    /// The second run, which starts after the response is sent.
    candidate: Option<Candidate>,
    /// Connection and request line of the call.
    origin: Option<RequestOrigin>,
    /// Peer whose in-progress limit the call counts towards.
    peer: Option<Rc<CountedPeer>>,
    /// Receiver of server notifications for this call alone; if unset, they go to the connection's receiver.
    notifications: Option<NotificationSender>,
    /// Trace context of the call.
    trace: Option<Trace>,
}

/// Time that the client took to send its request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClientTime {
    head: Duration,
    /// Time spent waiting for the body before the call was sent to an upstream.
    body: Duration,
}

/// If the client used more than 1/10 of `total_timeout`, a timeout is reported as 408 (client), not 504 (upstream).
const CLIENT_SHARE: u32 = 10;

/// The kind of work that a record covers.
#[derive(Debug)]
enum RecordRole {
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

/// The presence of a caller's key, which percentages need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HasKey {
    Yes,
    No,
}

/// The end of a call, as far as it is known.
#[derive(Debug, Default)]
struct CallOutcome {
    kind: Option<(Outcome, Option<Blame>)>,
    status: Option<u16>,
    code: Option<i64>,
    reason: Option<Reason>,
    upstream_status: Option<u16>,
    cause: Option<String>,
    /// The read state of the RPC server's result.
    result: outcome::ResultRead,
}

impl Record {
    /// Starts the record of a call, and counts the call as in progress.
    pub(super) fn begin(
        worker: &Rc<Worker>,
        runtime_plan: &Rc<RuntimePlan>,
        side: Side,
        line: RequestLine,
    ) -> Box<Record> {
        worker.count_call_start(line.peer.as_ref());
        // Boxed, so that passing the record from function to function copies a pointer.
        boxed(|| Record {
            worker: worker.clone(),
            runtime_plan: runtime_plan.clone(),
            started: clock::now(),
            client_time: ClientTime {
                head: line.head_time,
                body: Duration::ZERO,
            },
            wall_time: clock::timestamp(clock::wall()),
            side,
            method: line.method,
            version: line.version,
            target: line.target,
            rpc_method: None,
            route: None,
            stream: None,
            client: None,
            proof: Proof::None,
            has_key: HasKey::Yes,
            stage: Some(Stage::Passthrough),
            why: DecisionReason::Unrouted,
            excluded_by: Vec::new(),
            upstream: None,
            upstream_since: None,
            head: None,
            completed_at: None,
            dropped: 0,
            message: message::MessageNote::default(),
            outcome: CallOutcome::default(),
            role: RecordRole::Call,
            candidate: None,
            origin: None,
            peer: line.peer,
            notifications: None,
            trace: None,
        })
    }

    /// Returns the record of a second run of the call. The run has not started.
    pub(super) fn for_second_run(&self) -> Record {
        Record {
            worker: self.worker.clone(),
            runtime_plan: self.runtime_plan.clone(),
            started: self.started,
            client_time: self.client_time,
            wall_time: self.wall_time,
            side: self.side,
            method: self.method.clone(),
            version: self.version,
            target: self.target.clone(),
            rpc_method: self.rpc_method.clone(),
            route: self.route,
            stream: self.stream,
            client: self.client,
            proof: self.proof,
            has_key: self.has_key,
            stage: self.stage,
            why: self.why,
            excluded_by: self.excluded_by.clone(),
            upstream: None,
            upstream_since: None,
            head: None,
            completed_at: None,
            dropped: 0,
            message: message::MessageNote::default(),
            outcome: CallOutcome::default(),
            role: RecordRole::NotStarted,
            candidate: None,
            origin: self.origin.clone(),
            peer: None,
            // A second run receives no notifications.
            notifications: None,
            trace: self.trace,
        }
    }

    /// Starts the candidate run; its response body is charged to `budget`.
    pub(super) fn start_as_candidate(&mut self, budget: BodyCopy) {
        self.started = clock::now();
        self.role = RecordRole::Candidate(budget);
    }

    /// Starts a repeated control run; its response body is charged to `budget`.
    pub(super) fn start_as_noise(&mut self, budget: BodyCopy) {
        self.started = clock::now();
        self.role = RecordRole::Noise(budget);
    }

    /// Marks the second run as abandoned, so that nothing is reported of it.
    pub(super) fn abandon(&mut self) {
        self.role = RecordRole::NotStarted;
    }

    /// Returns the budget of the response body, if this is a second run.
    pub(super) fn second_run_budget(&self) -> Option<&BodyCopy> {
        match &self.role {
            RecordRole::Candidate(budget) | RecordRole::Noise(budget) => Some(budget),
            RecordRole::Call | RecordRole::SplitRequest | RecordRole::NotStarted => None,
        }
    }

    /// Returns the upstream of this run. Second runs use a separate pool, so that they never take a connection from a
    /// client.
    pub(super) fn upstream(&self, side: Side) -> Option<&Upstream> {
        match &self.role {
            RecordRole::Call | RecordRole::SplitRequest => {
                self.runtime_plan.upstream(self.route, side)
            }
            RecordRole::Candidate(_) | RecordRole::Noise(_) | RecordRole::NotStarted => {
                self.runtime_plan.shadow_upstream(self.route, side)
            }
        }
    }

    /// Sets the second run, which starts after the response is sent.
    pub(super) fn set_candidate(&mut self, candidate: Candidate) {
        self.candidate = Some(candidate);
    }

    /// Returns the second run of the call, if there is one.
    pub(super) fn candidate(&mut self) -> Option<&mut Candidate> {
        self.candidate.as_mut()
    }

    /// Removes and returns the second run of the call, if there is one.
    pub(super) fn take_candidate(&mut self) -> Option<Candidate> {
        self.candidate.take()
    }

    /// Sets the connection and request line of the call.
    pub(super) fn set_origin(&mut self, origin: &RequestOrigin) {
        self.origin = Some(origin.clone());
    }

    /// Starts or continues the trace of the call from the request headers.
    pub(super) fn start_trace(&mut self, headers: &HeaderMap) {
        self.trace = self.worker.trace(&self.runtime_plan.plan, headers);
    }

    /// Adds this proxy's hop headers and the trace context to a forwarded request.
    pub(super) fn add_forwarding_headers(&self, headers: &mut HeaderMap, from: InboundHop<'_>) {
        add_hop(headers, from, &self.runtime_plan.plan);
        if let Some(trace) = &self.trace {
            trace.propagate(headers);
        }
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
            RecordRole::Call | RecordRole::SplitRequest => {
                let of_connection = || self.links().and_then(ClientLinks::notifications);
                self.notifications.clone().or_else(of_connection)
            }
            RecordRole::Candidate(_) | RecordRole::Noise(_) | RecordRole::NotStarted => None,
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

    /// Returns the HTTP method of the request.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// Returns the time since the call started.
    pub(super) fn elapsed(&self) -> Duration {
        clock::now() - self.started
    }

    /// Returns the deadline of the call and `limits.total_timeout`, if set. Second runs have none.
    pub(super) fn deadline(&self) -> Option<(Instant, Duration)> {
        let limit = self.runtime_plan.plan.limits.total_timeout?;
        let left = limit.saturating_sub(self.client_time.head);
        matches!(self.role, RecordRole::Call | RecordRole::SplitRequest)
            .then(|| (self.started + left, limit))
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
            self.client_time.body += clock::now() - since;
        }
    }

    /// Returns `limits.total_timeout` if the deadline has passed and the client used more than 1/10 of it. The client's
    /// time is that of its head and body, plus `waited`, the time it took to send or receive since.
    pub(super) fn limit_exceeded_by_client(&self, waited: Duration) -> Option<Duration> {
        let (deadline, limit) = self.deadline()?;
        let client_time = self.client_time.head + self.client_time.body + waited;
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
        self.wall_time
    }

    /// Returns the failure for a call whose decision has no backend to serve it.
    pub(super) fn unserved_failure(&self, plan: &Plan, route: usize) -> Failure {
        routing::refused(plan, self.why, route, self.side, self.wall_time)
    }

    /// Sets the RPC method of the call, for the log.
    pub(super) fn set_rpc_method(&mut self, method: &Arc<str>) {
        self.rpc_method = Some(method.clone());
    }

    /// Sets the route and the decision.
    pub(super) fn set_decision(&mut self, route: Option<usize>, decision: Decision) {
        self.route = route;
        self.stage = Some(decision.stage);
        self.why = decision.why;
        self.excluded_by = decision.excluded_by;
    }

    /// Sets the requested event stream and the decision.
    pub(super) fn set_stream(&mut self, stream: usize, decision: Decision) {
        self.stream = Some(stream);
        self.set_decision(None, decision);
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

    /// Adds to the number of members or query parameters that the translation dropped.
    pub(super) fn add_dropped(&mut self, members: usize) {
        self.dropped += members;
    }

    /// Starts the upstream time. A record dropped before [`Record::add_upstream_time`] still reports the time until then.
    pub(super) fn start_upstream_time(&mut self, since: Instant) {
        self.upstream_since = Some(since);
    }

    /// Stops the upstream time without reporting any, because no request was sent.
    pub(super) fn discard_upstream_time(&mut self) {
        self.upstream_since = None;
    }

    /// Adds the time since `since` to the upstream time.
    pub(super) fn add_upstream_time(&mut self, since: Instant) {
        self.upstream_since = None;
        let more = clock::now() - since;
        self.upstream = Some(self.upstream.unwrap_or_default() + more);
    }

    /// Records that the head of a streamed response is sent; the rest of the time is the pace of the stream.
    pub(super) fn mark_head_sent(&mut self) {
        self.head = Some(clock::now() - self.started);
    }

    /// Records that the response is complete; the rest of the time is spent on the client or on other calls of a batch.
    pub(super) fn mark_complete(&mut self) {
        self.mark_head_sent();
        self.completed_at = self.head;
    }

    /// Ends the record without a report, because the calls within the request have their own records.
    pub(super) fn discard(mut self: Box<Self>) {
        self.role = RecordRole::SplitRequest;
    }
}
