//! The record of one call: logged and counted exactly once, when it is dropped.
//!
//! A record that nobody has settled belongs to a client that went away first, or to a proxy that ends.

mod beginning;
mod ended;
mod identity;
mod message;
mod request_line;
mod settled;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Version};
use tokio::time::Instant;

use request_line::Target;
pub(super) use {beginning::Beginning, request_line::RequestLine, settled::FailureCause};

use super::Arrival;
use super::candidate::Candidate;
use super::headers::{Hop, add_hop};
use super::{CountedPeer, Installed, Worker};
use crate::domain::calendar::Moment;
use crate::domain::claim;
use crate::domain::failure::{Advice, Blame, Failure, Reason};
use crate::domain::plan::Plan;
use crate::domain::rollout::{Decision, Proof, Stage, Way, Why};
use crate::domain::side::Side;
use crate::domain::trace::Trace;
use crate::telemetry::clock;
use crate::telemetry::metrics::Outcome;
use crate::upstream::link::{Ear, OwnLinks};
use crate::upstream::{Alarm, Tap, Upstream, placed};

/// What is known of a call so far.
#[derive(Debug)]
pub(super) struct Record {
    worker: Rc<Worker>,
    installed: Rc<Installed>,
    started: Instant,
    took: Took,
    /// The same moment, by the time of day.
    at: Moment,
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
    keyed: Keyed,
    stage: Option<Stage>,
    why: Why,
    /// The flags that the call is left out of.
    spared: Vec<usize>,
    upstream: Option<Duration>,
    /// Since when an upstream is waited for.
    asking: Option<Instant>,
    head: Option<Duration>,
    /// How long it took until the answer was there whole, where it waits for its client then.
    whole: Option<Duration>,
    dropped: usize,
    /// What is to be told of its message.
    message: message::Note,
    ending: Ending,
    role: Role,
    /// What stands beside the call, once it is answered.
    candidate: Option<Candidate>,
    /// Where it comes from.
    arrival: Option<Arrival>,
    /// With whose calls it counts.
    peer: Option<Rc<CountedPeer>>,
    /// Where what servers tell goes while this call is open, if to this call alone.
    ear: Option<Ear>,
    /// The trace that the call belongs to.
    trace: Option<Trace>,
}

/// How long the client of a call took for its request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Took {
    head: Duration,
    /// As far as the body was waited for before an upstream was asked.
    body: Duration,
}

/// A client that has taken more than one in so many parts of the time of a call may have left too little of it to the server.
const HELD_UP: u32 = 10;

/// What a record is of.
#[derive(Debug)]
enum Role {
    /// A call of a client: it is in progress, and logged and counted at its end.
    Call,
    /// A request that turned out to be other calls: in progress, and nothing else.
    Reading,
    /// A second run of a call, which has not begun. No second run is in progress for a client, nor logged as a call.
    Waiting,
    /// A candidate, and what its answer is charged to.
    Candidate(Tap),
    /// The control once more, to learn what differs by itself.
    Noise(Tap),
}

/// Whether percentages can be applied to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keyed {
    Yes,
    No,
}

/// How a call ended, as far as it is settled.
#[derive(Debug, Default)]
struct Ending {
    outcome: Option<(Outcome, Option<Blame>)>,
    status: Option<u16>,
    code: Option<i64>,
    reason: Option<Reason>,
    upstream_status: Option<u16>,
    cause: Option<String>,
    /// Whether the result of the RPC server was read.
    result: settled::ResultRead,
}

impl Record {
    /// The record of a call that begins now.
    pub(super) fn begin(
        worker: &Rc<Worker>,
        installed: &Rc<Installed>,
        side: Side,
        line: RequestLine,
    ) -> Box<Record> {
        worker.begun(line.peer.as_ref());
        // It passes through many hands, and none of them moves it.
        placed(|| Record {
            worker: worker.clone(),
            installed: installed.clone(),
            started: clock::now(),
            took: Took {
                head: line.took,
                body: Duration::ZERO,
            },
            at: clock::moment(clock::wall()),
            side,
            method: line.method,
            version: line.version,
            target: line.target,
            rpc_method: None,
            route: None,
            stream: None,
            client: None,
            proof: Proof::None,
            keyed: Keyed::Yes,
            stage: Some(Stage::Passthrough),
            why: Why::Unrouted,
            spared: Vec::new(),
            upstream: None,
            asking: None,
            head: None,
            whole: None,
            dropped: 0,
            message: message::Note::default(),
            ending: Ending::default(),
            role: Role::Call,
            candidate: None,
            arrival: None,
            peer: line.peer,
            ear: None,
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
            at: self.at,
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
            spared: self.spared.clone(),
            upstream: None,
            asking: None,
            head: None,
            whole: None,
            dropped: 0,
            message: message::Note::default(),
            ending: Ending::default(),
            role: Role::Waiting,
            candidate: None,
            arrival: self.arrival.clone(),
            peer: None,
            // Nobody hears how far a second run is.
            ear: None,
            trace: self.trace,
        }
    }

    /// The candidate begins now; what it reads is charged to `purse`.
    pub(super) fn runs_as_candidate(&mut self, purse: Tap) {
        self.started = clock::now();
        self.role = Role::Candidate(purse);
    }

    /// The control is run once more, now.
    pub(super) fn runs_as_noise(&mut self, purse: Tap) {
        self.started = clock::now();
        self.role = Role::Noise(purse);
    }

    /// Nothing is to be told of the second run.
    pub(super) fn gives_up(&mut self) {
        self.role = Role::Waiting;
    }

    /// What an answer that is read is charged to.
    pub(super) fn purse(&self) -> Option<&Tap> {
        match &self.role {
            Role::Candidate(purse) | Role::Noise(purse) => Some(purse),
            Role::Call | Role::Reading | Role::Waiting => None,
        }
    }

    /// The upstream that serves this run of the call. Second runs have connections of their own, so that they never
    /// keep one from a client.
    pub(super) fn upstream(&self, side: Side) -> Option<&Upstream> {
        match &self.role {
            Role::Call | Role::Reading => self.installed.upstream(self.route, side),
            Role::Candidate(_) | Role::Noise(_) | Role::Waiting => {
                self.installed.upstream_of_candidates(self.route, side)
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
    pub(super) fn comes_from(&mut self, arrival: &Arrival) {
        self.arrival = Some(arrival.clone());
    }

    /// The call came with these headers, which may say what trace it belongs to.
    pub(super) fn traces(&mut self, headers: &HeaderMap) {
        self.trace = self.worker.trace(&self.installed.plan, headers);
    }

    /// Adds this hop, and the trace, to a request that goes on.
    pub(super) fn passes_on(&self, headers: &mut HeaderMap, from: Hop<'_>) {
        add_hop(headers, from, &self.installed.plan);
        if let Some(trace) = &self.trace {
            trace.tell(headers);
        }
    }

    /// The alarm of the caller's connection, while nothing else of it is waited for.
    pub(super) fn take_alarm(&self) -> Alarm {
        let own = self.arrival.as_ref();
        own.map(|arrival| arrival.alarm().take())
            .unwrap_or_default()
    }

    /// Gives it back.
    pub(super) fn keep_alarm(&self, alarm: Alarm) {
        if let Some(arrival) = &self.arrival {
            arrival.alarm().replace(alarm);
        }
    }

    /// The links that the caller's connection has for itself.
    pub(super) fn links(&self) -> Option<&OwnLinks> {
        self.arrival.as_ref().map(|arrival| &**arrival.links())
    }

    /// Whether its client is about to be let go, since what a server has kept for it is lost.
    pub(super) fn is_let_go(&self) -> bool {
        self.arrival.as_ref().is_some_and(Arrival::has_lost)
    }

    /// What servers tell while this call is open goes here.
    pub(super) fn hears(&mut self, ear: Ear) {
        self.ear = Some(ear);
    }

    /// Where what servers tell while this call is open goes, and what its answer has its place among. Nobody hears how
    /// far a second run is.
    pub(super) fn ear(&self) -> Option<Ear> {
        match &self.role {
            Role::Call | Role::Reading => {
                let own = || self.links().and_then(OwnLinks::ear);
                self.ear.clone().or_else(own)
            }
            Role::Candidate(_) | Role::Noise(_) | Role::Waiting => None,
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
    pub(super) fn why(&self) -> Why {
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
        matches!(self.role, Role::Call | Role::Reading).then(|| (self.started + left, limit))
    }

    /// What of a limit is left to the call as a whole.
    pub(super) fn left(&self, limit: Duration) -> Duration {
        match self.due() {
            None => limit,
            Some((end, _)) => limit.min(end.saturating_duration_since(clock::now())),
        }
    }

    /// The body was waited for since then, if it was.
    pub(super) fn body_came(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            self.took.body += clock::now() - since;
        }
    }

    /// The time of the call as a whole, where it is over and its client has taken so much of it, `waited` besides for what
    /// it sends or takes, that a server which has not answered yet is not to blame.
    pub(super) fn held_up(&self, waited: Duration) -> Option<Duration> {
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

    pub(super) fn installed(&self) -> &Rc<Installed> {
        &self.installed
    }

    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// When the call began.
    pub(super) fn at(&self) -> Moment {
        self.at
    }

    /// What the call is refused with where its decision leads nowhere.
    pub(super) fn refused(&self, plan: &Plan, route: usize) -> Failure {
        claim::refused(plan, self.why, (route, self.side), self.at)
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
        self.spared = decision.spared;
    }

    /// The stream that is asked for, and the decision.
    pub(super) fn follows(&mut self, stream: usize, decision: Decision) {
        self.stream = Some(stream);
        self.decided(None, decision);
    }

    /// The stream that is asked for.
    pub(super) fn stream(&self) -> Option<usize> {
        self.stream
    }

    /// The proxy itself answers, for this reason.
    pub(super) fn stays_here(&mut self, why: Why) {
        self.stage = None;
        self.why = why;
    }

    /// Whether the proxy itself makes the answer that a page of another origin may read.
    pub(super) fn is_ours(&self) -> bool {
        self.why == Why::Local
            || self
                .stage
                .is_some_and(|stage| stage.control() != Some(Way::Old))
    }

    /// Members or query parameters that the route had no place for.
    pub(super) fn dropped(&mut self, members: usize) {
        self.dropped += members;
    }

    /// An upstream is asked now; whoever leaves before [`Record::spent`] has kept it busy all the same.
    pub(super) fn asks(&mut self, since: Instant) {
        self.asking = Some(since);
    }

    /// No upstream was asked, although one was to be.
    pub(super) fn unasked(&mut self) {
        self.asking = None;
    }

    /// Time that an upstream took.
    pub(super) fn spent(&mut self, since: Instant) {
        self.asking = None;
        let more = clock::now() - since;
        self.upstream = Some(self.upstream.unwrap_or_default() + more);
    }

    /// The head of a streamed answer goes out now; what follows is the pace of the stream, not of this proxy.
    pub(super) fn head_is_out(&mut self) {
        self.head = Some(clock::now() - self.started);
    }

    /// The answer is there whole now; what follows is the pace of its client, or of other calls.
    pub(super) fn is_whole(&mut self) {
        self.head_is_out();
        self.whole = self.head;
    }

    /// What the record stands for has records of its own from here on.
    pub(super) fn discard(mut self: Box<Self>) {
        self.role = Role::Reading;
    }
}
