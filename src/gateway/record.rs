//! The record of one call: logged and counted exactly once, when it is dropped.
//!
//! A record that nobody has settled belongs to a client that went away first, or to a proxy that ends.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Uri};
use tokio::time::Instant;

use super::worker::Patience;
use super::{Installed, Worker};
use crate::domain::calendar::Moment;
use crate::domain::claim;
use crate::domain::failure::{Advice, Blame, Failure, Reason};
use crate::domain::jsonrpc::{Reply, parse_response};
use crate::domain::plan::Plan;
use crate::domain::rollout::{Decision, Stage, Way, Why};
use crate::domain::side::Side;
use crate::telemetry::clock;
use crate::telemetry::log::CallLine;
use crate::telemetry::metrics::{CallLabels, Outcome, Shard, Timing};

/// What is known of a call so far.
#[derive(Debug)]
pub(super) struct Record {
    worker: Rc<Worker>,
    installed: Rc<Installed>,
    started: Instant,
    /// The same moment, by the time of day.
    at: Moment,
    side: Side,
    method: Method,
    uri: Uri,
    rpc_method: Option<String>,
    route: Option<usize>,
    client: Option<usize>,
    stage: Option<Stage>,
    why: Why,
    /// The flags that the call is left out of.
    spared: Vec<usize>,
    upstream: Option<Duration>,
    head: Option<Duration>,
    dropped: usize,
    ending: Ending,
    kept: Kept,
}

/// Whether a record is written at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
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
    cause: Option<String>,
}

impl Record {
    /// The record of a call that begins now.
    pub(super) fn begin<B>(
        worker: &Rc<Worker>,
        installed: &Rc<Installed>,
        side: Side,
        request: &Request<B>,
    ) -> Record {
        worker.begun();
        Record {
            worker: worker.clone(),
            installed: installed.clone(),
            started: clock::now(),
            at: clock::moment(clock::wall()),
            side,
            method: request.method().clone(),
            uri: request.uri().clone(),
            rpc_method: None,
            route: None,
            client: None,
            stage: Some(Stage::Passthrough),
            why: Why::Unrouted,
            spared: Vec::new(),
            upstream: None,
            head: None,
            dropped: 0,
            ending: Ending::default(),
            kept: Kept::Yes,
        }
    }

    /// Refuses the call where more are in progress than the plan allows; each call of a batch is one.
    pub(super) fn admit(&self) -> Result<(), Failure> {
        if self.worker.in_flight() <= self.installed.plan.limits.in_flight {
            return Ok(());
        }
        let message = "more calls are in progress than this proxy takes at a time; try again later";
        Err(Failure::new(Reason::Overloaded, message).advise(Advice::RetryAfter(1)))
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

    /// The route that the call has taken.
    pub(super) fn route(&self) -> Option<usize> {
        self.route
    }

    /// What the call is refused with where its decision leads nowhere.
    pub(super) fn refused(&self, plan: &Plan, route: usize) -> Failure {
        claim::refused(plan, self.why, (route, self.side), self.at)
    }

    /// The RPC method of the call, for the log.
    pub(super) fn names_method(&mut self, method: &str) {
        self.rpc_method = Some(method.to_owned());
    }

    /// Who calls.
    pub(super) fn names_client(&mut self, client: Option<usize>) {
        self.client = client;
    }

    /// The route and the decision.
    pub(super) fn decided(&mut self, route: Option<usize>, decision: Decision) {
        self.route = route;
        self.stage = Some(decision.stage);
        self.why = decision.why;
        self.spared = decision.spared;
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

    /// Time that an upstream took.
    pub(super) fn spent(&mut self, since: Instant) {
        let more = clock::now() - since;
        self.upstream = Some(self.upstream.unwrap_or_default() + more);
    }

    /// The head of a streamed answer goes out now; what follows is the pace of the stream, not of this proxy.
    pub(super) fn head_is_out(&mut self) {
        self.head = Some(clock::now() - self.started);
    }

    /// The call began with the request that brought it, whose body had to be read first.
    pub(super) fn since(mut self, started: Instant) -> Record {
        self.started = started;
        self
    }

    /// What the record stands for has records of its own from here on; tells when it began.
    pub(super) fn discard(mut self) -> Instant {
        self.kept = Kept::No;
        self.started
    }

    /// The call has this HTTP answer: an upstream's own, or one translated from it.
    pub(super) fn answered(&mut self, status: u16) {
        let blame = Blame::of_status(status);
        self.ending.outcome = Some((
            if blame.is_some() {
                Outcome::Error
            } else {
                Outcome::Success
            },
            blame,
        ));
        self.ending.status = Some(status);
    }

    /// The call has an error of the upstream as its answer, as an RPC error on one of the two sides.
    pub(super) fn answered_error(&mut self, status: u16, code: i64, blame: Blame) {
        self.ending.outcome = Some((Outcome::Error, Some(blame)));
        self.ending.status = Some(status);
        self.ending.code = Some(code);
    }

    /// The call has an answer of the proxy's own, which is no failure.
    pub(super) fn answered_here(&mut self, status: u16, error: Option<(Blame, Option<i64>)>) {
        self.ending.outcome = Some(match error {
            None => (Outcome::Success, None),
            Some((blame, _)) => (Outcome::Error, Some(blame)),
        });
        self.ending.status = Some(status);
        self.ending.code = error.and_then(|(_, code)| code);
    }

    /// The status that the client gets, where it is not the upstream's.
    pub(super) fn sent(&mut self, status: u16) {
        self.ending.status = Some(status);
    }

    /// A whole answer passes by. On the RPC side its status says nothing of the call, so a small one is
    /// looked into: an error counts as one, however the call was served.
    pub(super) fn passed(&mut self, body: &Bytes) {
        const SMALL: usize = 64 * 1024;
        if self.side != Side::Rpc || body.len() > SMALL {
            return;
        }
        let depth = self.installed.plan.limits.depth;
        if let (Some(status), Ok(response)) = (self.ending.status, parse_response(body, depth))
            && let Reply::Error(error) = response.reply
        {
            self.answered_error(status, error.code, Blame::of_code(error.code));
        }
    }

    /// The proxy itself answers, with a failure.
    pub(super) fn failed(&mut self, status: u16, failure: &Failure) {
        let row = failure.reason.row();
        self.ending = Ending {
            outcome: Some((Outcome::Failed, Some(row.blame))),
            status: Some(status),
            code: (self.side == Side::Rpc).then_some(row.code.into()),
            reason: Some(failure.reason),
            cause: failure.cause.clone(),
        };
    }

    /// The answer broke off after its head was out.
    pub(super) fn cut(&mut self, cause: impl ToString) {
        self.ending.outcome = Some((Outcome::Cut, Some(Blame::Upstream)));
        self.ending.reason = Some(Reason::UpstreamCut);
        self.ending.cause = Some(cause.to_string());
    }

    /// The client went away before the answer was complete.
    pub(super) fn cancelled(&mut self) {
        self.ending.outcome = None;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        self.worker.ended();
        if self.kept == Kept::No {
            return;
        }
        let total = clock::now() - self.started;
        let unsettled = match self.worker.patience() {
            Patience::Waits => (Outcome::Cancelled, Some(Blame::Client)),
            Patience::Over => (Outcome::Cut, Some(Blame::Proxy)),
        };
        if std::thread::panicking() {
            // A fault of this program, which has cost the client its answer.
            self.ending.outcome = Some((Outcome::Failed, Some(Blame::Proxy)));
            self.ending.reason = Some(Reason::Internal);
        }
        let (outcome, blame) = self.ending.outcome.unwrap_or(unsettled);
        let labels = CallLabels {
            route: self.installed.route_label(self.route),
            client: self.installed.client_label(self.client),
            side: self.side,
            stage: self.stage,
            outcome,
            blame,
        };
        self.worker.count(|shard| {
            shard.record(
                labels,
                Timing {
                    total,
                    upstream: self.upstream,
                    head: self.head.unwrap_or(total),
                },
                self.ending.reason,
            );
            if self.dropped > 0 {
                shard.dropped(labels.route, self.dropped as u64);
            }
            self.count_usage(shard, labels);
        });
        if CallLine::is_wanted() {
            self.log(labels, total);
        }
    }
}

impl Record {
    /// Who has called what, for whoever wants to delete it.
    fn count_usage(&self, shard: &mut Shard, labels: CallLabels) {
        let Some(stage) = labels.stage else {
            // The proxy itself has answered.
            return;
        };
        if self.route.is_some() {
            shard.seen(labels, stage.control(), self.at);
        } else if self.side == Side::Rest
            && self.ending.reason != Some(Reason::MalformedHttp)
            && let Some(prefix) = self.installed.prefix_label(self.uri.path())
        {
            shard.unrouted(prefix, self.at);
        }
    }

    fn log(&self, labels: CallLabels, duration: Duration) {
        let plan = &self.installed.plan;
        CallLine {
            side: self.side,
            method: self.method.as_str(),
            path: self.uri.path(),
            rpc_method: self.rpc_method.as_deref(),
            route: self
                .route
                .map(|route| plan.routes.route(route).name.as_str()),
            client: plan.rollout.clients.name(self.client),
            stage: labels.stage,
            decision: &plan.rollout.describe(self.why),
            outcome: labels.outcome,
            blame: labels.blame,
            status: self.ending.status,
            code: self.ending.code,
            reason: self.ending.reason,
            cause: self.ending.cause.as_deref(),
            duration,
            upstream: self.upstream,
            dropped: (self.dropped > 0).then_some(self.dropped as u64),
        }
        .emit();
    }
}
