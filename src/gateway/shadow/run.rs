//! The run of one candidate, optionally a repeated control run, and the comparison of the responses.
//!
//! Law: every run is reported exactly once, even if it panics. The run itself never reports.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use http::Method;

use super::comparison::{CompareContext, Compared, NotCompared, ResponsePair};
use super::recorded_response::RecordedResponse;
use super::replay::ReplayableCall;
use super::runner::{ConcurrencyPermit, Judgement, LogSubject, RunEnd, ShadowRunner};
use crate::domain::compare::{
    CallInfo, Comparison, Confidence, FailedCandidate, RepeatOutcome, RunEnding, Skip, Terms,
    Verdict,
};
use crate::domain::failure::{Failure, Reason};
use crate::domain::plan::Plan;
use crate::domain::rollout::{DecisionReason, Path, Stage};
use crate::domain::side::Side;
use crate::gateway::guard_recorder::GuardRecorder;
use crate::gateway::record::{FailureCause, Record};
use crate::gateway::{RuntimePlan, Worker};
use crate::telemetry::clock;
use crate::telemetry::metrics::VerdictLabels;
use crate::upstream::BodyCopy;

/// Largest number of differing pointers in a log line.
const NAMED: usize = 5;

/// A candidate with a permit to run.
pub(super) struct RunnableCandidate {
    pub(super) record: Record,
    pub(super) call: ReplayableCall,
    pub(super) budget: BodyCopy,
    /// The response that the client received.
    pub(super) control: RecordedResponse,
    pub(super) permit: ConcurrencyPermit,
    /// The budget of the control's response.
    pub(super) _held: Option<BodyCopy>,
}

/// The call that the candidate belongs to.
struct CandidateInfo {
    worker: Rc<Worker>,
    installed: Rc<RuntimePlan>,
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
        let Some(subject) = CandidateInfo::new(&self.record) else {
            return;
        };
        let ways = (subject.stage.control(), subject.stage.candidate());
        let (Some(old), Some(new)) = ways else {
            return;
        };
        match caught(self.story(&subject, (old, new))).await {
            Ok(judged) => subject.judged(&judged),
            Err(Uncompared { not, why }) => subject.uncompared(not, &why),
        }
    }

    async fn story(
        self,
        subject: &CandidateInfo,
        (old, new): (Path, Path),
    ) -> Result<Judgement, Uncompared> {
        let RunnableCandidate {
            mut record,
            call,
            budget: purse,
            control,
            permit: _seat,
            _held,
        } = self;
        let noise = record.again();
        record.runs_as_candidate(purse.clone());
        let candidate = subject.candidate(&mut record, &call, new).await;
        let Some(candidate) = candidate else {
            record.give_up();
            return Err(Verdict::Skipped(Skip::Drain).into());
        };
        subject.took(&record);
        let why = record.failure_cause();
        drop(record);
        let candidate = candidate.map_err(Verdict::Skipped)?;
        if call.is_invalid() {
            // Translation rejects the invalid message, so the candidate fails whatever the control returned.
            let endings = (subject.ending(&control), subject.ending(&candidate));
            let not = NotCompared {
                verdict: Verdict::CandidateFailed,
                endings: Some(endings),
            };
            return Err(Uncompared { not, why });
        }
        // Lets calls that clients wait for run first.
        tokio::task::yield_now().await;
        let pair = ResponsePair { control, candidate };
        let compared = subject.compare(pair, &purse).await;
        let Compared { control, found, .. } = compared.map_err(|not| Uncompared { not, why })?;
        let look = if subject.bench().wants_repeat(&subject.route_name(), &found) {
            let again = (noise, &call, old);
            subject.look(again, control, &found).await
        } else {
            RepeatOutcome::NotRepeated
        };
        Ok(subject.judge(&found, look))
    }
}

/// Turns a panic of the run into a result. Its state is dropped with it, so nothing half-written is left.
async fn caught(
    story: impl Future<Output = Result<Judgement, Uncompared>>,
) -> Result<Judgement, Uncompared> {
    let told = AssertUnwindSafe(story).catch_unwind().await;
    told.unwrap_or_else(|_| Err(panicked()))
}

/// Returns the result of a candidate that panicked.
fn panicked() -> Uncompared {
    Uncompared {
        not: Verdict::CandidateFailed.into(),
        why: FailureCause {
            reason: Some(Reason::Internal),
            cause: Some("the candidate panicked".to_owned()),
        },
    }
}

/// The reason why a candidate was not compared, and the cause of its failure, if it failed.
#[derive(Debug)]
struct Uncompared {
    not: NotCompared,
    why: FailureCause,
}

impl From<Verdict> for Uncompared {
    fn from(verdict: Verdict) -> Uncompared {
        Uncompared {
            not: verdict.into(),
            why: FailureCause::default(),
        }
    }
}

impl CandidateInfo {
    fn new(record: &Record) -> Option<CandidateInfo> {
        Some(CandidateInfo {
            worker: record.worker().clone(),
            installed: record.installed().clone(),
            route: record.route()?,
            client: record.client(),
            side: record.side(),
            stage: record.stage()?,
            why: record.why(),
            method: record.method().clone(),
        })
    }

    fn guarded(&self) -> GuardRecorder<'_> {
        GuardRecorder {
            installed: &self.installed,
            why: self.why,
            spared: &[],
        }
    }

    fn plan(&self) -> &Plan {
        &self.installed.plan
    }

    fn bench(&self) -> &Rc<ShadowRunner> {
        self.worker.shadow_runner()
    }

    fn route_name(&self) -> Arc<str> {
        Arc::from(self.plan().routes.route(self.route).name.as_str())
    }

    /// Returns the candidate's response; `None` when the process shuts down.
    async fn candidate(
        &self,
        record: &mut Record,
        call: &ReplayableCall,
        way: Path,
    ) -> Option<Result<RecordedResponse, Skip>> {
        let limit = self.plan().candidates.timeout;
        let failure = match self.bench().run(limit, call.go(record, way)).await {
            RunEnd::Done(came) => return Some(came),
            RunEnd::Closed => return None,
            RunEnd::Late => Failure::new(
                Reason::UpstreamTimeout,
                format!("the candidate did not end within {limit:?}"),
            ),
            RunEnd::Panicked => Failure::new(Reason::Internal, "the candidate panicked"),
        };
        Some(Ok(call.refused(record, &failure)))
    }

    /// Compares two responses. Decoded bytes are charged to `purse`.
    async fn compare(&self, pair: ResponsePair, purse: &BodyCopy) -> Result<Compared, NotCompared> {
        let rules = self.plan().comparing.get(self.route).cloned();
        let by = CompareContext {
            rules: rules.ok_or(Verdict::CandidateFailed)?,
            side: self.side,
            method: self.method.clone(),
            terms: Terms {
                depth: self.plan().limits.depth,
                salt: self.worker.salt(),
            },
            room: purse.left(),
        };
        let limit = self.plan().candidates.timeout;
        let comparing = pair.compare(by, self.worker.compare_pool());
        let compared = match self.bench().run(limit, comparing).await {
            RunEnd::Done(compared) => compared?,
            RunEnd::Closed => return Err(Verdict::Skipped(Skip::Drain).into()),
            RunEnd::Late => return Err(Verdict::Skipped(Skip::Busy).into()),
            RunEnd::Panicked => return Err(Verdict::CandidateFailed.into()),
        };
        if purse.charge(compared.decoded) {
            Ok(compared)
        } else {
            Err(Verdict::Skipped(Skip::Large).into())
        }
    }

    /// Repeats the control call, and learns which fields differ between two control responses.
    async fn look(
        &self,
        (mut noise, call, way): (Record, &ReplayableCall, Path),
        control: RecordedResponse,
        found: &Comparison,
    ) -> RepeatOutcome {
        let purse = self.bench().tap();
        noise.runs_as_noise(purse.clone());
        let limit = self.bench().limits().timeout;
        let again = self.bench().run(limit, call.go(&mut noise, way)).await;
        let RunEnd::Done(Ok(candidate)) = again else {
            return RepeatOutcome::NotRepeated;
        };
        let pair = ResponsePair { control, candidate };
        match self.compare(pair, &purse).await {
            Ok(second) => {
                let route = self.route_name();
                self.bench().learn(&route, found, &second.found);
                RepeatOutcome::Repeated
            }
            Err(_) => RepeatOutcome::NotRepeated,
        }
    }

    /// Returns a short description of a response; only the status if it is long or has a content coding.
    fn ending(&self, told: &RecordedResponse) -> RunEnding {
        if !told.is_short() {
            return RunEnding::Status(told.status.as_u16());
        }
        let depth = self.plan().limits.depth;
        told.clone().read(self.side, depth).ending()
    }

    fn called(&self) -> CallInfo {
        let route = self.plan().routes.route(self.route);
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

    fn judge(&self, found: &Comparison, look: RepeatOutcome) -> Judgement {
        let called = self.is_current().then(|| self.called());
        self.bench()
            .judge((&self.route_name(), look), called.as_ref(), found)
    }

    /// Returns true when the current plan has the same route as the plan of the call. Samples of changed routes are not
    /// kept.
    fn is_current(&self) -> bool {
        let now = self.worker.installed();
        Rc::ptr_eq(&now, &self.installed) || self.worker.keeps_route(&self.installed, self.route)
    }

    fn client_name(&self) -> &str {
        self.plan().rollout.clients.name(self.client)
    }

    fn took(&self, record: &Record) {
        let route = self.installed.route_label(Some(self.route));
        let elapsed = record.elapsed();
        self.worker
            .count(|shard| shard.candidate(route, (self.side, self.stage), elapsed));
    }

    /// Reports the verdict of a comparison.
    fn judged(&self, judged: &Judgement) {
        self.count(judged.verdict);
        match judged.confidence {
            Confidence::Sure => self.guard(judged.verdict),
            // A difference that may be noise must not trigger a guard.
            Confidence::Unsure => {}
        }
        if judged.verdict == Verdict::Mismatch && self.bench().may_log(LogSubject::Mismatch) {
            let pointers = &judged.pointers;
            let places = pointers.get(..NAMED).unwrap_or(pointers).join(" ");
            tracing::info!(
                target: "dualgauge::mismatch",
                route = %self.plan().routes.route(self.route).name,
                client = self.client_name(),
                side = self.side.as_str(),
                stage = self.stage.as_str(),
                differences = pointers.len() + judged.more,
                places,
                "the answers differ"
            );
        }
    }

    /// Reports a candidate that was not compared; stores and logs one that failed.
    fn uncompared(&self, not: NotCompared, why: &FailureCause) {
        if not.verdict == Verdict::CandidateFailed {
            let endings = not
                .endings
                .unwrap_or((RunEnding::NotRead, RunEnding::NotRead));
            let cause = why.cause.as_deref();
            let cause = cause.map(|cause| self.plan().redaction.text(cause));
            let reason = why.reason.map(|reason| reason.row().label);
            let failed = FailedCandidate::new(self.called(), endings, reason, cause.as_deref());
            if self.bench().may_log(LogSubject::Failure) {
                self.log_failed(&failed);
            }
            if self.is_current() {
                self.bench().keep_failed(&self.route_name(), failed);
            }
        }
        self.verdict(not.verdict);
    }

    fn log_failed(&self, failed: &FailedCandidate) {
        tracing::info!(
            target: "dualgauge::mismatch",
            route = %self.plan().routes.route(self.route).name,
            client = self.client_name(),
            side = self.side.as_str(),
            stage = self.stage.as_str(),
            control = %failed.control,
            candidate = %failed.candidate,
            reason = failed.reason,
            cause = failed.cause(),
            "the candidate failed"
        );
    }

    /// Reports a verdict reached without a comparison.
    fn verdict(&self, verdict: Verdict) {
        self.count(verdict);
        self.guard(verdict);
        if let Verdict::Skipped(skip) = verdict {
            let route = self.installed.route_label(Some(self.route));
            self.worker.count(|shard| shard.skipped(route, skip));
        }
    }

    fn count(&self, verdict: Verdict) {
        let labels = VerdictLabels {
            route: self.installed.route_label(Some(self.route)),
            client: self.installed.client_label(self.client),
            side: self.side,
            stage: self.stage,
            verdict: verdict.as_str(),
        };
        self.worker.count(|shard| shard.verdict(labels));
    }

    fn guard(&self, verdict: Verdict) {
        self.worker
            .count(|shard| self.guarded().verdict(shard, verdict));
    }
}

/// Counts a skipped candidate with its reason.
pub(super) fn skipped(record: &Record, skip: Skip) {
    if let Some(subject) = CandidateInfo::new(record) {
        subject.verdict(Verdict::Skipped(skip));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_story_that_panics_anywhere_has_an_end_to_tell() {
        let panicking = async { panic!("on purpose") };
        let told = caught(panicking).await;
        let Uncompared { not, why } = told.unwrap_err();
        assert_eq!(not.verdict, Verdict::CandidateFailed);
        assert_eq!(why.reason, Some(Reason::Internal));
        let skipped = Verdict::Skipped(Skip::Large);
        let told = caught(async { Err(skipped.into()) }).await;
        assert_eq!(told.unwrap_err().not.verdict, skipped);
    }
}
