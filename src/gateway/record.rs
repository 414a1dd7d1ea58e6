//! The record of one call: logged and counted exactly once, when it is dropped.
//!
//! A record that nobody has settled belongs to a client that went away first, or to a proxy that ends.

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
use crate::domain::failure::{Advice, Blame, Failure, Reason};
use crate::domain::plan::Plan;
use crate::domain::rollout::{Decision, DecisionReason, Path, Proof, Stage};
use crate::domain::routing;
use crate::domain::side::Side;
use crate::domain::time::Timestamp;
use crate::domain::trace::Trace;
use crate::telemetry::clock;
use crate::telemetry::metrics::Outcome;
use crate::upstream::link::{ClientLinks, NotificationSender};
use crate::upstream::{BodyCopy, ReusableTimer, Upstream, boxed};

/// What is known of a call so far.
#[derive(Debug)]
pub(super) struct Record {
    worker: Rc<Worker>,
    installed: Rc<RuntimePlan>,
    started: Instant,
    took: ClientTime,
    /// The same moment, by the time of day.
    wall_time: Timestamp,
    side: Side,
    method: Method,
    version: Version,
    target: Target,
    rpc_method: Option<Arc<str>>,
    route: Option<usize>,
    /// The stream that is asked for, where it is one.
    stream: Option<usize>,
    client: Option<usize>,
    proof: Proof,
    keyed: HasKey,
    stage: Option<Stage>,
    why: DecisionReason,
    /// The flags that the call is left out of.
    excluded_by: Vec<usize>,
    upstream: Option<Duration>,
    /// Since when an upstream is waited for.
    upstream_since: Option<Instant>,
    head: Option<Duration>,
    /// How long it took until the answer was there whole, where it waits for its client then.
    completed_at: Option<Duration>,
    dropped: usize,
    /// What is to be told of its message.
    message: message::MessageNote,
    ending: CallOutcome,
    role: RecordRole,
    /// What stands beside the call, once it is answered.
    candidate: Option<Candidate>,
    /// Where it comes from.
    arrival: Option<RequestOrigin>,
    /// With whose calls it counts.
    peer: Option<Rc<CountedPeer>>,
    /// Where what servers tell goes while this call is open, if to this call alone.
    notifications: Option<NotificationSender>,
    /// The trace that the call belongs to.
    trace: Option<Trace>,
}

/// How long the client of a call took for its request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClientTime {
    head: Duration,
    /// As far as the body was waited for before an upstream was asked.
    body: Duration,
}

/// A client that has taken more than one in so many parts of the time of a call may have left too little of it to the server.
const HELD_UP: u32 = 10;

/// What a record is of.
#[derive(Debug)]
enum RecordRole {
    /// A call of a client: it is in progress, and logged and counted at its end.
    Call,
    /// A request that turned out to be other calls: in progress, and nothing else.
    Reading,
    /// A second run of a call, which has not begun. No second run is in progress for a client, nor logged as a call.
    Waiting,
    /// A candidate, and what its answer is charged to.
    Candidate(BodyCopy),
    /// The control once more, to learn what differs by itself.
    Noise(BodyCopy),
}

/// Whether percentages can be applied to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HasKey {
    Yes,
    No,
}

/// How a call ended, as far as it is settled.
#[derive(Debug, Default)]
struct CallOutcome {
    outcome: Option<(Outcome, Option<Blame>)>,
    status: Option<u16>,
    code: Option<i64>,
    reason: Option<Reason>,
    upstream_status: Option<u16>,
    cause: Option<String>,
    /// Whether the result of the RPC server was read.
    result: outcome::ResultRead,
}

impl Record {
    /// The record of a call that begins now.
    pub(super) fn begin(
        worker: &Rc<Worker>,
        installed: &Rc<RuntimePlan>,
        side: Side,
        line: RequestLine,
    ) -> Box<Record> {
        worker.begun(line.peer.as_ref());
        // It passes through many hands, and none of them moves it.
        boxed(|| Record {
            worker: worker.clone(),
            installed: installed.clone(),
            started: clock::now(),
            took: ClientTime {
                head: line.took,
                body: Duration::ZERO,
            },
            wall_time: clock::moment(clock::wall()),
            side,
            method: line.method,
            version: line.version,
            target: line.target,
            rpc_method: None,
            route: None,
            stream: None,
            client: None,
            proof: Proof::None,
            keyed: HasKey::Yes,
            stage: Some(Stage::Passthrough),
            why: DecisionReason::Unrouted,
            excluded_by: Vec::new(),
            upstream: None,
            upstream_since: None,
            head: None,
            completed_at: None,
            dropped: 0,
            message: message::MessageNote::default(),
            ending: CallOutcome::default(),
            role: RecordRole::Call,
            candidate: None,
            arrival: None,
            peer: line.peer,
            notifications: None,
            trace: None,
        })
    }

    /// The record of a second run of the call, which has not begun.
    pub(super) fn again(&self) -> Record {
        Record {
            worker: self.worker.clone(),
            installed: self.installed.clone(),
            started: self.started,
            took: self.took,
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
            keyed: self.keyed,
            stage: self.stage,
            why: self.why,
            excluded_by: self.excluded_by.clone(),
            upstream: None,
            upstream_since: None,
            head: None,
            completed_at: None,
            dropped: 0,
            message: message::MessageNote::default(),
            ending: CallOutcome::default(),
            role: RecordRole::Waiting,
            candidate: None,
            arrival: self.arrival.clone(),
            peer: None,
            // Nobody hears how far a second run is.
            notifications: None,
            trace: self.trace,
        }
    }

    /// The candidate begins now; what it reads is charged to `budget`.
    pub(super) fn runs_as_candidate(&mut self, purse: BodyCopy) {
        self.started = clock::now();
        self.role = RecordRole::Candidate(purse);
    }

    /// The control is run once more, now.
    pub(super) fn runs_as_noise(&mut self, purse: BodyCopy) {
        self.started = clock::now();
        self.role = RecordRole::Noise(purse);
    }

    /// Nothing is to be told of the second run.
    pub(super) fn give_up(&mut self) {
        self.role = RecordRole::Waiting;
    }

    /// What an answer that is read is charged to.
    pub(super) fn budget(&self) -> Option<&BodyCopy> {
        match &self.role {
            RecordRole::Candidate(purse) | RecordRole::Noise(purse) => Some(purse),
            RecordRole::Call | RecordRole::Reading | RecordRole::Waiting => None,
        }
    }

    /// The upstream that serves this run of the call. Second runs have connections of their own, so that they never
    /// keep one from a client.
    pub(super) fn upstream(&self, side: Side) -> Option<&Upstream> {
        match &self.role {
            RecordRole::Call | RecordRole::Reading => self.installed.upstream(self.route, side),
            RecordRole::Candidate(_) | RecordRole::Noise(_) | RecordRole::Waiting => {
                self.installed.shadow_upstream(self.route, side)
            }
        }
    }

    /// What is to stand beside the call, once it is answered.
    pub(super) fn is_followed_by(&mut self, candidate: Candidate) {
        self.candidate = Some(candidate);
    }

    /// What is to stand beside the call, if anything is.
    pub(super) fn candidate(&mut self) -> Option<&mut Candidate> {
        self.candidate.as_mut()
    }

    /// The same, given away.
    pub(super) fn take_candidate(&mut self) -> Option<Candidate> {
        self.candidate.take()
    }

    /// Where the call comes from.
    pub(super) fn received_from(&mut self, arrival: &RequestOrigin) {
        self.arrival = Some(arrival.clone());
    }

    /// The call came with these headers, which may say what trace it belongs to.
    pub(super) fn traces(&mut self, headers: &HeaderMap) {
        self.trace = self.worker.trace(&self.installed.plan, headers);
    }

    /// Adds this hop, and the trace, to a request that goes on.
    pub(super) fn is_passthrough(&self, headers: &mut HeaderMap, from: InboundHop<'_>) {
        add_hop(headers, from, &self.installed.plan);
        if let Some(trace) = &self.trace {
            trace.tell(headers);
        }
    }

    /// The alarm of the caller's connection, while nothing else of it is waited for.
    pub(super) fn take_timer(&self) -> ReusableTimer {
        let own = self.arrival.as_ref();
        own.map(|arrival| arrival.alarm().take())
            .unwrap_or_default()
    }

    /// Gives it back.
    pub(super) fn store_timer(&self, alarm: ReusableTimer) {
        if let Some(arrival) = &self.arrival {
            arrival.alarm().replace(alarm);
        }
    }

    /// The links that the caller's connection has for itself.
    pub(super) fn links(&self) -> Option<&ClientLinks> {
        self.arrival.as_ref().map(|arrival| &**arrival.links())
    }

    /// Whether its client is about to be let go, since what a server has kept for it is lost.
    pub(super) fn is_released(&self) -> bool {
        self.arrival.as_ref().is_some_and(RequestOrigin::has_lost)
    }

    /// What servers tell while this call is open goes here.
    pub(super) fn set_notifications(&mut self, ear: NotificationSender) {
        self.notifications = Some(ear);
    }

    /// Where what servers tell while this call is open goes, and what its answer has its place among. Nobody hears how
    /// far a second run is.
    pub(super) fn notifications(&self) -> Option<NotificationSender> {
        match &self.role {
            RecordRole::Call | RecordRole::Reading => {
                let own = || self.links().and_then(ClientLinks::notifications);
                self.notifications.clone().or_else(own)
            }
            RecordRole::Candidate(_) | RecordRole::Noise(_) | RecordRole::Waiting => None,
        }
    }

    /// The place of the route.
    pub(super) fn route(&self) -> Option<usize> {
        self.route
    }

    /// The stage, unless the proxy itself answers.
    pub(super) fn stage(&self) -> Option<Stage> {
        self.stage
    }

    /// Which rule chose the stage.
    pub(super) fn why(&self) -> DecisionReason {
        self.why
    }

    /// The HTTP method of the request.
    pub(super) fn method(&self) -> &Method {
        &self.method
    }

    /// How long it has lasted.
    pub(super) fn elapsed(&self) -> Duration {
        clock::now() - self.started
    }

    /// When the call must have ended, and after how much time that is, where it has such a limit.
    pub(super) fn due(&self) -> Option<(Instant, Duration)> {
        let limit = self.installed.plan.limits.total_timeout?;
        let left = limit.saturating_sub(self.took.head);
        matches!(self.role, RecordRole::Call | RecordRole::Reading)
            .then(|| (self.started + left, limit))
    }

    /// What of a limit is left to the call as a whole.
    pub(super) fn left(&self, limit: Duration) -> Duration {
        match self.due() {
            None => limit,
            Some((end, _)) => limit.min(end.saturating_duration_since(clock::now())),
        }
    }

    /// The body was waited for since then, if it was.
    pub(super) fn body_received(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            self.took.body += clock::now() - since;
        }
    }

    /// The time of the call as a whole, where it is over and its client has taken so much of it, `waited` besides for what
    /// it sends or takes, that a server which has not answered yet is not to blame.
    pub(super) fn is_slow_client(&self, waited: Duration) -> Option<Duration> {
        let (end, limit) = self.due()?;
        let took = self.took.head + self.took.body + waited;
        (end <= clock::now() && took * HELD_UP > limit).then_some(limit)
    }

    /// Refuses the call where more are in progress than the plan allows; each call of a batch is one.
    pub(super) fn admit(&self) -> Result<(), Failure> {
        if self.worker.may_call(self.peer()) {
            return Ok(());
        }
        let message = "more calls are in progress than this proxy takes at a time; try again later";
        Err(Failure::new(Reason::Overloaded, message).advise(Advice::RetryAfter(1)))
    }

    /// With whose calls it counts.
    pub(super) fn peer(&self) -> Option<&Rc<CountedPeer>> {
        self.peer.as_ref()
    }

    pub(super) fn worker(&self) -> &Rc<Worker> {
        &self.worker
    }

    pub(super) fn installed(&self) -> &Rc<RuntimePlan> {
        &self.installed
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// When the call began.
    pub(super) fn at(&self) -> Timestamp {
        self.wall_time
    }

    /// What the call is refused with where its decision leads nowhere.
    pub(super) fn is_refused(&self, plan: &Plan, route: usize) -> Failure {
        routing::refused(plan, self.why, (route, self.side), self.wall_time)
    }

    /// The RPC method of the call, for the log.
    pub(super) fn names_method(&mut self, method: &Arc<str>) {
        self.rpc_method = Some(method.clone());
    }

    /// The route and the decision.
    pub(super) fn decided(&mut self, route: Option<usize>, decision: Decision) {
        self.route = route;
        self.stage = Some(decision.stage);
        self.why = decision.why;
        self.excluded_by = decision.spared;
    }

    /// The stream that is asked for, and the decision.
    pub(super) fn set_stream(&mut self, stream: usize, decision: Decision) {
        self.stream = Some(stream);
        self.decided(None, decision);
    }

    /// The stream that is asked for.
    pub(super) fn stream(&self) -> Option<usize> {
        self.stream
    }

    /// The proxy itself answers, for this reason.
    pub(super) fn handle_locally(&mut self, why: DecisionReason) {
        self.stage = None;
        self.why = why;
    }

    /// Whether the proxy itself makes the answer that a page of another origin may read.
    pub(super) fn is_ours(&self) -> bool {
        self.why == DecisionReason::Local
            || self
                .stage
                .is_some_and(|stage| stage.control() != Some(Path::Old))
    }

    /// Members or query parameters that the route had no place for.
    pub(super) fn dropped(&mut self, members: usize) {
        self.dropped += members;
    }

    /// An upstream is asked now; whoever leaves before [`LegacyRecord::client_time`] has kept it busy all the same.
    pub(super) fn set_request(&mut self, since: Instant) {
        self.upstream_since = Some(since);
    }

    /// No upstream was asked, although one was to be.
    pub(super) fn unsolicited(&mut self) {
        self.upstream_since = None;
    }

    /// Time that an upstream took.
    pub(super) fn client_time(&mut self, since: Instant) {
        self.upstream_since = None;
        let more = clock::now() - since;
        self.upstream = Some(self.upstream.unwrap_or_default() + more);
    }

    /// The head of a streamed answer goes out now; what follows is the pace of the stream, not of this proxy.
    pub(super) fn head_sent(&mut self) {
        self.head = Some(clock::now() - self.started);
    }

    /// The answer is there whole now; what follows is the pace of its client, or of other calls.
    pub(super) fn is_whole(&mut self) {
        self.head_sent();
        self.completed_at = self.head;
    }

    /// What the record stands for has records of its own from here on.
    pub(super) fn discard(mut self: Box<Self>) {
        self.role = RecordRole::Reading;
    }
}
