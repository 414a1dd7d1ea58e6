//! The run of one candidate, optionally a repeated control run, and the comparison of the responses.
//!
//! Law: every run is reported exactly once, even if it panics. The run itself never reports.
//!
//! Used by `shadow`.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use http::Method;

use super::comparison::{CompareContext, Compared, NotCompared, ResponsePair};
use super::recorded_response::RecordedResponse;
use super::replay::{ReplayableCall, failure_response, send_and_collect};
use super::runner::{Judgement, LogSubject, RunEnd, ShadowRunner};
use crate::gateway::access_record::{AccessRecord, FailureCause};
use crate::gateway::call_context::CallContext;
use crate::gateway::guard_recorder::GuardRecorder;
use crate::gateway::runtime_plan::RuntimePlan;
use crate::gateway::worker::Worker;
use crate::telemetry::clock;
use crate::telemetry::metrics::VerdictLabels;
use dualgauge_model::compare::{
    CallInfo, Comparison, Confidence, FailedCandidate, RepeatOutcome, RunEnding, STREAM_EVENTS,
    Skip, StreamBound, Terms, Verdict,
};
use dualgauge_model::failure::{Failure, Reason};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{DecisionReason, Stage, Way};
use dualgauge_model::route::Route;
use dualgauge_net::{BodyCopy, CountGuard};
use dualgauge_patterns::side::Side;

/// Largest number of differing pointers in a log line.
const MAX_POINTERS: usize = 5;

/// A candidate with a permit to run.
pub(super) struct RunnableCandidate {
    pub(super) record: AccessRecord,
    pub(super) call: Box<dyn ReplayableCall>,
    pub(super) budget: BodyCopy,
    /// The response that the client received.
    pub(super) control: RecordedResponse,
    pub(super) permit: CountGuard,
    /// The budget of the control's response.
    pub(super) _control_budget: Option<BodyCopy>,
}

/// The call that the candidate belongs to.
pub(super) struct CandidateInfo {
    worker: Rc<Worker>,
    runtime_plan: Rc<RuntimePlan>,
    route: usize,
    client: Option<usize>,
    side: Side,
    stage: Stage,
    why: DecisionReason,
    method: Method,
}

impl RunnableCandidate {
    /// Runs the candidate and reports the verdict.
    pub(super) async fn run(self) {
        let Some(info) = CandidateInfo::new(&self.record.context) else {
            return;
        };
        let Some(way) = info.stage.candidate() else {
            return;
        };
        match catch_panic(self.run_and_compare(&info, way)).await {
            Ok(judgement) => info.report_judgement(&judgement),
            Err(Uncompared { not_compared, why }) => info.report_uncompared(not_compared, &why),
        }
    }

    async fn run_and_compare(
        self,
        info: &CandidateInfo,
        way: Way,
    ) -> Result<Judgement, Uncompared> {
        let RunnableCandidate {
            mut record,
            call,
            budget,
            control,
            permit: _permit,
            _control_budget,
        } = self;
        let noise = record.for_second_run();
        record.start_as_candidate(budget.clone());
        let most_events = info.events_to_read(&control);
        let candidate = info
            .run_candidate(&mut record, &*call, way, most_events)
            .await;
        let Some(candidate) = candidate else {
            record.abandon();
            return Err(Verdict::Skipped(Skip::Drain).into());
        };
        info.count_duration(&record.context);
        let why = record.failure_cause();
        drop(record);
        let candidate = candidate.map_err(Verdict::Skipped)?;
        if call.is_invalid() {
            // Translation rejects the invalid message, so the candidate fails whatever the control returned.
            let endings = (info.describe(&control), info.describe(&candidate));
            let not_compared = NotCompared {
                endings: Some(endings),
                ..Verdict::CandidateFailed.into()
            };
            return Err(Uncompared { not_compared, why });
        }
        // Lets calls that clients wait for run first.
        tokio::task::yield_now().await;
        let pair = ResponsePair { control, candidate };
        let compared = info.compare(pair, &budget).await;
        let Compared {
            control,
            found,
            bound,
            ..
        } = compared.map_err(|not_compared| Uncompared { not_compared, why })?;
        if let Some(bound) = bound {
            info.count_partial(bound);
        }
        let repeat = if info.runner().wants_repeat(&info.route_name(), &found) {
            info.repeat_control(noise, &*call, control, &found).await
        } else {
            RepeatOutcome::NotRepeated
        };
        Ok(info.judge(&found, repeat))
    }
}

/// Turns a panic of the run into a result. Its state is dropped with it, so nothing half-written is left.
async fn catch_panic(
    run: impl Future<Output = Result<Judgement, Uncompared>>,
) -> Result<Judgement, Uncompared> {
    let result = AssertUnwindSafe(run).catch_unwind().await;
    result.unwrap_or_else(|_| Err(panicked()))
}

/// Returns the result of a candidate that panicked.
fn panicked() -> Uncompared {
    Uncompared {
        not_compared: Verdict::CandidateFailed.into(),
        why: FailureCause {
            reason: Some(Reason::Internal),
            cause: Some("the candidate panicked".to_owned()),
        },
    }
}

/// The reason why a candidate was not compared, and the cause of its failure, if it failed.
#[derive(Debug)]
struct Uncompared {
    not_compared: NotCompared,
    why: FailureCause,
}

impl From<Verdict> for Uncompared {
    fn from(verdict: Verdict) -> Uncompared {
        Uncompared {
            not_compared: verdict.into(),
            why: FailureCause::default(),
        }
    }
}

impl CandidateInfo {
    pub(super) fn new(context: &CallContext) -> Option<CandidateInfo> {
        Some(CandidateInfo {
            worker: context.worker().clone(),
            runtime_plan: context.runtime_plan().clone(),
            route: context.route()?,
            client: context.client(),
            side: context.side(),
            stage: context.stage()?,
            why: context.why(),
            method: context.method().clone(),
        })
    }

    fn guard_recorder(&self) -> GuardRecorder<'_> {
        GuardRecorder {
            runtime_plan: &self.runtime_plan,
            why: self.why,
            excluded_by: &[],
        }
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.runtime_plan.plan
    }

    pub(super) fn runner(&self) -> &Rc<ShadowRunner> {
        self.worker.shadow_runner()
    }

    /// Returns the route of the call.
    pub(super) fn route(&self) -> &Route {
        self.plan().routes.route(self.route)
    }

    /// Returns the side of the call.
    pub(super) fn side(&self) -> Side {
        self.side
    }

    /// Returns the way of the candidate.
    pub(super) fn candidate_way(&self) -> Option<Way> {
        self.stage.candidate()
    }

    pub(super) fn route_name(&self) -> Arc<str> {
        Arc::from(self.route().name.as_str())
    }

    /// Returns the candidate's response; `None` when the process shuts down.
    pub(super) async fn run_candidate(
        &self,
        record: &mut AccessRecord,
        call: &dyn ReplayableCall,
        way: Way,
        most_events: usize,
    ) -> Option<Result<RecordedResponse, Skip>> {
        let limit = self.plan().candidates.timeout;
        let failure = match self
            .runner()
            .run(limit, send_and_collect(call, record, way, most_events))
            .await
        {
            RunEnd::Done(result) => return Some(result),
            RunEnd::Closed => return None,
            RunEnd::Late => Failure::new(
                Reason::UpstreamTimeout,
                format!("the candidate did not end within {limit:?}"),
            ),
            RunEnd::Panicked => Failure::new(Reason::Internal, "the candidate panicked"),
        };
        Some(Ok(failure_response(call, record, &failure)))
    }

    /// Returns the rules and limits of a comparison.
    pub(super) fn compare_context(&self, budget: &BodyCopy) -> Result<CompareContext, NotCompared> {
        let rules = self.plan().comparing.get(self.route).cloned();
        Ok(CompareContext {
            rules: rules.ok_or(Verdict::CandidateFailed)?,
            side: self.side,
            method: self.method.clone(),
            terms: Terms {
                depth: self.plan().limits.depth,
                salt: self.worker.salt(),
            },
            decode_budget: budget.left(),
        })
    }

    /// Compares two responses. Decoded bytes are charged to `budget`.
    pub(super) async fn compare(
        &self,
        pair: ResponsePair,
        budget: &BodyCopy,
    ) -> Result<Compared, NotCompared> {
        let context = self.compare_context(budget)?;
        let limit = self.plan().candidates.timeout;
        let comparison = pair.compare(context, self.worker.compare_pool());
        let compared = match self.runner().run(limit, comparison).await {
            RunEnd::Done(compared) => compared?,
            RunEnd::Closed => return Err(Verdict::Skipped(Skip::Drain).into()),
            RunEnd::Late => return Err(Verdict::Skipped(Skip::Busy).into()),
            RunEnd::Panicked => return Err(Verdict::CandidateFailed.into()),
        };
        if budget.charge(compared.decoded) {
            Ok(compared)
        } else {
            Err(Verdict::Skipped(Skip::Large).into())
        }
    }

    /// Repeats the control call, and learns which fields differ between two control responses.
    pub(super) async fn repeat_control(
        &self,
        noise: AccessRecord,
        call: &dyn ReplayableCall,
        control: RecordedResponse,
        found: &Comparison,
    ) -> RepeatOutcome {
        let Some(way) = self.stage.control() else {
            return RepeatOutcome::NotRepeated;
        };
        let Some(second) = self.compare_repeat(noise, call, way, control).await else {
            return RepeatOutcome::NotRepeated;
        };
        self.runner().learn(&self.route_name(), found, &second);
        RepeatOutcome::Repeated
    }

    /// Sends the call on `way` once more, and compares the response with the first one on this way.
    pub(super) async fn compare_repeat(
        &self,
        mut noise: AccessRecord,
        call: &dyn ReplayableCall,
        way: Way,
        first: RecordedResponse,
    ) -> Option<Comparison> {
        let budget = self.runner().new_copy();
        noise.start_as_noise(budget.clone());
        let limit = self.runner().limits().timeout;
        let repeat = send_and_collect(call, &mut noise, way, self.events_to_read(&first));
        let RunEnd::Done(Ok(candidate)) = self.runner().run(limit, repeat).await else {
            return None;
        };
        let pair = ResponsePair {
            control: first,
            candidate,
        };
        let second = self.compare(pair, &budget).await.ok()?;
        Some(second.found)
    }

    /// Returns a short description of a response; only the status if it is long or has a content coding.
    pub(super) fn describe(&self, response: &RecordedResponse) -> RunEnding {
        if !response.is_short() {
            return RunEnding::Status(response.status.as_u16());
        }
        let depth = self.plan().limits.depth;
        response.clone().parse(self.side, depth).describe()
    }

    fn call_info(&self) -> CallInfo {
        let route = self.route();
        let call = match self.side {
            Side::Rest => &route.rest,
            Side::Rpc => &route.rpc,
        };
        CallInfo {
            at_ms: clock::unix_ms(),
            client: Arc::from(self.client_name()),
            side: self.side,
            stage: self.stage,
            call: Arc::from(call.as_str()),
        }
    }

    fn judge(&self, found: &Comparison, repeat: RepeatOutcome) -> Judgement {
        let call_info = self.is_current().then(|| self.call_info());
        self.runner()
            .judge(&self.route_name(), repeat, call_info.as_ref(), found)
    }

    /// Returns true when the current plan has the same route as the plan of the call. Samples of changed routes are not
    /// kept.
    fn is_current(&self) -> bool {
        let now = self.worker.runtime_plan();
        Rc::ptr_eq(&now, &self.runtime_plan)
            || self.worker.keeps_route(&self.runtime_plan, self.route)
    }

    fn client_name(&self) -> &str {
        self.plan().rollout.clients.name(self.client)
    }

    fn count_duration(&self, context: &CallContext) {
        let route = self.runtime_plan.route_label(Some(self.route));
        let elapsed = context.elapsed();
        self.worker
            .count(|shard| shard.candidate(route, self.side, self.stage, elapsed));
    }

    /// Reports the verdict of a comparison.
    fn report_judgement(&self, judgement: &Judgement) {
        self.count(judgement.verdict);
        match judgement.confidence {
            Confidence::Sure => self.guard(judgement.verdict),
            // A difference that may be noise must not trigger a guard.
            Confidence::Unsure => {}
        }
        if judgement.verdict == Verdict::Mismatch && self.runner().may_log(LogSubject::Mismatch) {
            let pointers = &judgement.pointers;
            let places = pointers.get(..MAX_POINTERS).unwrap_or(pointers).join(" ");
            tracing::info!(
                target: "dualgauge::mismatch",
                route = %self.route().name,
                client = self.client_name(),
                side = self.side.as_str(),
                stage = self.stage.as_str(),
                differences = pointers.len() + judgement.more,
                places,
                "responses differ"
            );
        }
    }

    /// Reports a candidate that was not compared; stores and logs one that failed.
    fn report_uncompared(&self, not_compared: NotCompared, why: &FailureCause) {
        if not_compared.verdict == Verdict::CandidateFailed {
            let (control, candidate) = not_compared
                .endings
                .unwrap_or((RunEnding::NotRead, RunEnding::NotRead));
            let cause = why.cause.as_deref();
            let cause = cause.map(|cause| self.plan().redaction.text(cause));
            let reason = why.reason.map(|reason| reason.row().label);
            let (called, cause) = (self.call_info(), cause.as_deref());
            let failed = FailedCandidate::new(called, control, candidate, reason, cause);
            if self.runner().may_log(LogSubject::Failure) {
                self.log_failed(&failed);
            }
            if self.is_current() {
                let (route, replies) = (self.route_name(), not_compared.replies);
                self.runner().keep_failed(&route, failed, replies);
            }
        }
        self.report_verdict(not_compared.verdict);
    }

    fn log_failed(&self, failed: &FailedCandidate) {
        tracing::info!(
            target: "dualgauge::mismatch",
            route = %self.route().name,
            client = self.client_name(),
            side = self.side.as_str(),
            stage = self.stage.as_str(),
            control = %failed.control,
            candidate = %failed.candidate,
            reason = failed.reason,
            cause = failed.cause(),
            "candidate failed"
        );
    }

    /// Reports a verdict reached without a comparison.
    fn report_verdict(&self, verdict: Verdict) {
        self.count(verdict);
        self.guard(verdict);
        if let Verdict::Skipped(skip) = verdict {
            let route = self.runtime_plan.route_label(Some(self.route));
            self.worker.count(|shard| shard.skipped(route, skip));
        }
    }

    /// Returns the number of events of a second response that are read: as many as the control has, and one more if the
    /// control is complete.
    pub(super) fn events_to_read(&self, control: &RecordedResponse) -> usize {
        let events = control.events(self.side, self.plan().limits.depth);
        let Some(events) = events else {
            return STREAM_EVENTS;
        };
        let more = usize::from(events.is_whole());
        (events.len() + more).clamp(1, STREAM_EVENTS)
    }

    fn count_partial(&self, bound: StreamBound) {
        self.worker.count(|shard| shard.partial_comparison(bound));
    }

    fn count(&self, verdict: Verdict) {
        let labels = VerdictLabels {
            route: self.runtime_plan.route_label(Some(self.route)),
            client: self.runtime_plan.client_label(self.client),
            side: self.side,
            stage: self.stage,
            verdict: verdict.as_str(),
        };
        self.worker.count(|shard| shard.verdict(labels));
    }

    fn guard(&self, verdict: Verdict) {
        self.worker
            .count(|shard| self.guard_recorder().count_verdict(shard, verdict));
    }
}

/// Counts a skipped candidate with its reason.
pub(super) fn count_skip(context: &CallContext, skip: Skip) {
    if let Some(info) = CandidateInfo::new(context) {
        info.report_verdict(Verdict::Skipped(skip));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_run_is_reported_as_failed() {
        let panicking = async { panic!("on purpose") };
        let result = catch_panic(panicking).await;
        let Uncompared { not_compared, why } = result.unwrap_err();
        assert_eq!(not_compared.verdict, Verdict::CandidateFailed);
        assert_eq!(why.reason, Some(Reason::Internal));
        let skipped = Verdict::Skipped(Skip::Large);
        let result = catch_panic(async { Err(skipped.into()) }).await;
        assert_eq!(result.unwrap_err().not_compared.verdict, skipped);
    }
}
