//! The record of one call: what is reported of it, logged and counted exactly once, when it is dropped.
//!
//! The record owns the [`CallContext`] of its call: a report is made when the record is dropped, also by a client that
//! disconnects, and needs the plan, the caller and the decision until then. One box holds both, so that a call allocates
//! once for them. What is only reported is a field of the record; functions that only read the call receive its context.
//!
//! A record dropped without an outcome is reported as cancelled by the client, or as cut if the proxy is shutting down.
//!
//! Used throughout `gateway`.

mod facts;
mod message;
mod outcome;
mod report;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

pub(super) use facts::FailureCause;
use facts::{CallOutcome, MessageNote};

use super::call_context::{CallContext, CallRole};
use super::request_line::RequestLine;
use super::runtime_plan::RuntimePlan;
use super::worker::Worker;
use crate::telemetry::clock;
use dualgauge_model::mcp::{BridgeAction, BridgeActions};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Caller, Decision, Requester, Stage};
use dualgauge_model::routing;
use dualgauge_net::{BodyCopy, boxed};
use dualgauge_patterns::side::Side;

/// The report of one call for metrics, guards, spans and the access log.
#[derive(Debug)]
pub(super) struct AccessRecord {
    pub(super) context: CallContext,
    /// Set if the caller has a key, which percentages need.
    has_key: bool,
    /// Flags in force that exclude the call's client.
    excluded_by: Vec<usize>,
    rpc_method: Option<Arc<str>>,
    upstream: Option<Duration>,
    /// Start of the current wait for an upstream.
    upstream_since: Option<Instant>,
    head: Option<Duration>,
    /// Time until the whole response was ready, if the record is kept until the client has received it.
    completed_at: Option<Duration>,
    dropped: usize,
    /// The number of events of a response that streamed.
    events: Option<u64>,
    /// Facts about the JSON-RPC message of the call.
    message: MessageNote,
    outcome: CallOutcome,
    /// The conversions between the eras of MCP.
    conversions: Cell<BridgeActions>,
}

impl AccessRecord {
    /// Starts the record of a call, and counts the call as in progress.
    pub(super) fn begin(
        worker: &Rc<Worker>,
        runtime_plan: &Rc<RuntimePlan>,
        side: Side,
        line: RequestLine,
    ) -> Box<AccessRecord> {
        worker.count_call_start(line.peer.as_ref());
        // Boxed, so that passing the record from function to function copies a pointer.
        boxed(|| AccessRecord::new(CallContext::new(worker, runtime_plan, side, line)))
    }

    fn new(context: CallContext) -> AccessRecord {
        AccessRecord {
            context,
            has_key: true,
            excluded_by: Vec::new(),
            rpc_method: None,
            upstream: None,
            upstream_since: None,
            head: None,
            completed_at: None,
            dropped: 0,
            events: None,
            message: MessageNote::default(),
            outcome: CallOutcome::default(),
            conversions: Cell::default(),
        }
    }

    /// Returns the record of a second run of the call. The run has not started.
    pub(super) fn for_second_run(&self) -> AccessRecord {
        let mut record = AccessRecord::new(self.context.for_second_run());
        record.rpc_method.clone_from(&self.rpc_method);
        record
    }

    /// Starts the candidate run; its response body is charged to `budget`.
    pub(super) fn start_as_candidate(&mut self, budget: BodyCopy) {
        self.context.start.started = clock::now();
        self.context.role = CallRole::Candidate(budget);
    }

    /// Starts a repeated control run; its response body is charged to `budget`.
    pub(super) fn start_as_noise(&mut self, budget: BodyCopy) {
        self.context.start.started = clock::now();
        self.context.role = CallRole::Noise(budget);
    }

    /// Marks the second run as abandoned, so that nothing is reported of it.
    pub(super) fn abandon(&mut self) {
        self.context.role = CallRole::NotStarted;
    }

    /// Sets the caller.
    pub(super) fn set_client(&mut self, caller: Caller<'_>) {
        self.has_key = caller.key.is_some();
        self.context.set_client(caller);
    }

    /// Decides the stage by flags, and records the decision. Unrouted calls pass through.
    pub(super) fn decide(
        &mut self,
        plan: &Plan,
        requester: Requester<'_>,
        route: Option<usize>,
    ) -> Stage {
        let (side, at) = (self.context.side(), self.context.wall_time());
        let decision = routing::decide(plan, requester, route, side, at);
        let stage = decision.stage;
        self.set_decision(route, decision);
        stage
    }

    /// Sets the route and the decision.
    pub(super) fn set_decision(&mut self, route: Option<usize>, decision: Decision) {
        self.context
            .set_decision(route, decision.stage, decision.why);
        self.excluded_by = decision.excluded_by;
    }

    /// Sets the requested event stream and the decision.
    pub(super) fn set_stream(&mut self, stream: usize, decision: Decision) {
        self.context.set_stream(stream);
        self.set_decision(None, decision);
    }

    /// Sets the RPC method of the call, for the log.
    pub(super) fn set_rpc_method(&mut self, method: &Arc<str>) {
        self.rpc_method = Some(method.clone());
    }

    /// Notes a conversion between the eras of MCP.
    pub(super) fn note_conversion(&self, action: BridgeAction) {
        self.conversions.set(self.conversions.get().with(action));
    }

    /// Adds to the number of members or query parameters that the translation dropped.
    pub(super) fn add_dropped(&mut self, members: usize) {
        self.dropped += members;
    }

    /// Counts an event of a response that streams.
    pub(super) fn add_event(&mut self) {
        self.events = Some(self.events.unwrap_or_default() + 1);
    }

    /// Starts the upstream time. A record dropped before [`AccessRecord::add_upstream_time`] still reports the time
    /// until then.
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
        self.head = Some(clock::now() - self.context.start.started);
    }

    /// Records that the response is complete; the rest of the time is spent on the client or on other calls of a batch.
    pub(super) fn mark_complete(&mut self) {
        self.mark_head_sent();
        self.completed_at = self.head;
    }

    /// Ends the record without a report, because the calls within the request have their own records.
    pub(super) fn discard(mut self: Box<Self>) {
        self.context.role = CallRole::SplitRequest;
    }
}
