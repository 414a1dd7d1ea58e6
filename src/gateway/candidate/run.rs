//! The story of one candidate: it runs, perhaps the control once more, and both answers are compared.
//!
//! Law: whatever becomes of the story, its end is told exactly once, and by nothing within it.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::FutureExt;
use http::Method;

use super::again::Again;
use super::bench::{Bench, Ended, Judged, Matter, Seat};
use super::pair::{By, Compared, NotCompared, Pair};
use super::told::Told;
use crate::domain::compare::{
    Called, Comparison, Ending, FailedCandidate, Footing, Look, Skip, Terms, Verdict,
};
use crate::domain::failure::{Failure, Reason};
use crate::domain::plan::Plan;
use crate::domain::rollout::{Stage, Way, Why};
use crate::domain::side::Side;
use crate::gateway::guarded::Guarded;
use crate::gateway::record::{FailureCause, Record};
use crate::gateway::{Installed, Worker};
use crate::telemetry::clock;
use crate::telemetry::metrics::VerdictLabels;
use crate::upstream::Tap;

/// How many places of a mismatch the log names.
const NAMED: usize = 5;

/// A candidate that may run.
pub(super) struct Ready {
    pub(super) record: Record,
    pub(super) call: Again,
    pub(super) purse: Tap,
    /// What the client was answered.
    pub(super) control: Told,
    pub(super) seat: Seat,
    /// What the control's answer is charged to.
    pub(super) _held: Option<Tap>,
}

/// Whose call it is.
struct Subject {
    worker: Rc<Worker>,
    installed: Rc<Installed>,
    route: usize,
    client: Option<usize>,
    side: Side,
    stage: Stage,
    why: Why,
    method: Method,
}

impl Ready {
    /// Runs from the beginning to the verdict.
    pub(super) async fn run(self) {
        let Some(subject) = Subject::of(&self.record) else {
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

    async fn story(self, subject: &Subject, (old, new): (Way, Way)) -> Result<Judged, Uncompared> {
        let Ready {
            mut record,
            call,
            purse,
            control,
            seat: _seat,
            _held,
        } = self;
        let noise = record.again();
        record.runs_as_candidate(purse.clone());
        let candidate = subject.candidate(&mut record, &call, new).await;
        let Some(candidate) = candidate else {
            record.gives_up();
            return Err(Verdict::Skipped(Skip::Drain).into());
        };
        subject.took(&record);
        let why = record.failure_cause();
        drop(record);
        let candidate = candidate.map_err(Verdict::Skipped)?;
        if call.is_invalid() {
            // It has failed whatever the control was answered: another dialect is no answer to compare with.
            let endings = (subject.ending(&control), subject.ending(&candidate));
            let not = NotCompared {
                verdict: Verdict::CandidateFailed,
                endings: Some(endings),
            };
            return Err(Uncompared { not, why });
        }
        // Those who wait for an answer come first.
        tokio::task::yield_now().await;
        let pair = Pair { control, candidate };
        let compared = subject.compare(pair, &purse).await;
        let Compared { control, found, .. } = compared.map_err(|not| Uncompared { not, why })?;
        let look = if subject.bench().asks_for_look(&subject.route_name(), &found) {
            let again = (noise, &call, old);
            subject.look(again, control, &found).await
        } else {
            Look::None
        };
        Ok(subject.judge(&found, look))
    }
}

/// How a story ends, though it panics: what it leaves behind is dropped with it, and nobody else sees it half done.
async fn caught(
    story: impl Future<Output = Result<Judged, Uncompared>>,
) -> Result<Judged, Uncompared> {
    let told = AssertUnwindSafe(story).catch_unwind().await;
    told.unwrap_or_else(|_| Err(panicked()))
}

/// Returns the end of a candidate whose code panicked.
fn panicked() -> Uncompared {
    Uncompared {
        not: Verdict::CandidateFailed.into(),
        why: FailureCause {
            reason: Some(Reason::Internal),
            cause: Some("the candidate panicked".to_owned()),
        },
    }
}

/// Why a candidate was not compared, and why it failed, if it did.
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

impl Subject {
    fn of(record: &Record) -> Option<Subject> {
        Some(Subject {
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

    fn guarded(&self) -> Guarded<'_> {
        Guarded {
            installed: &self.installed,
            why: self.why,
            spared: &[],
        }
    }

    fn plan(&self) -> &Plan {
        &self.installed.plan
    }

    fn bench(&self) -> &Rc<Bench> {
        self.worker.bench()
    }

    fn route_name(&self) -> Arc<str> {
        Arc::from(self.plan().routes.route(self.route).name.as_str())
    }

    /// What the candidate was answered; nothing where the program ends.
    async fn candidate(
        &self,
        record: &mut Record,
        call: &Again,
        way: Way,
    ) -> Option<Result<Told, Skip>> {
        let limit = self.plan().candidates.timeout;
        let failure = match self.bench().run(limit, call.go(record, way)).await {
            Ended::Done(came) => return Some(came),
            Ended::Closed => return None,
            Ended::Late => Failure::new(
                Reason::UpstreamTimeout,
                format!("the candidate did not end within {limit:?}"),
            ),
            Ended::Panicked => Failure::new(Reason::Internal, "the candidate panicked"),
        };
        Some(Ok(call.refused(record, &failure)))
    }

    /// Compares two answers, or says what came of them without that. What is decoded is charged to `purse`.
    async fn compare(&self, pair: Pair, purse: &Tap) -> Result<Compared, NotCompared> {
        let rules = self.plan().comparing.get(self.route).cloned();
        let by = By {
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
        let comparing = pair.compare(by, self.worker.desk());
        let compared = match self.bench().run(limit, comparing).await {
            Ended::Done(compared) => compared?,
            Ended::Closed => return Err(Verdict::Skipped(Skip::Drain).into()),
            Ended::Late => return Err(Verdict::Skipped(Skip::Busy).into()),
            Ended::Panicked => return Err(Verdict::CandidateFailed.into()),
        };
        if purse.charge(compared.decoded) {
            Ok(compared)
        } else {
            Err(Verdict::Skipped(Skip::Large).into())
        }
    }

    /// Runs the control once more, and learns what differs by itself.
    async fn look(
        &self,
        (mut noise, call, way): (Record, &Again, Way),
        control: Told,
        found: &Comparison,
    ) -> Look {
        let purse = self.bench().tap();
        noise.runs_as_noise(purse.clone());
        let limit = self.bench().limits().timeout;
        let again = self.bench().run(limit, call.go(&mut noise, way)).await;
        let Ended::Done(Ok(candidate)) = again else {
            return Look::None;
        };
        let pair = Pair { control, candidate };
        match self.compare(pair, &purse).await {
            Ok(second) => {
                let route = self.route_name();
                self.bench().learn(&route, found, &second.found);
                Look::Taken
            }
            Err(_) => Look::None,
        }
    }

    /// Returns a response in a few words. A long or coded one is known by its status only.
    fn ending(&self, told: &Told) -> Ending {
        if !told.is_short() {
            return Ending::Status(told.status.as_u16());
        }
        let depth = self.plan().limits.depth;
        told.clone().read(self.side, depth).ending()
    }

    fn called(&self) -> Called {
        let route = self.plan().routes.route(self.route);
        let call = match self.side {
            Side::Rest => &route.rest,
            Side::Rpc => &route.rpc,
        };
        Called {
            at_ms: clock::unix_ms(),
            client: Arc::from(self.client_name()),
            side: self.side,
            stage: self.stage,
            call: Arc::from(call.as_str()),
        }
    }

    fn judge(&self, found: &Comparison, look: Look) -> Judged {
        let called = self.is_current().then(|| self.called());
        self.bench()
            .judge((&self.route_name(), look), called.as_ref(), found)
    }

    /// Returns whether the plan in force has the route as it was when the call began. A sample of another one would tell
    /// of rules that are gone.
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

    /// Tells a verdict on what was compared.
    fn judged(&self, judged: &Judged) {
        self.count(judged.verdict);
        match judged.footing {
            Footing::Sure => self.guard(judged.verdict),
            // A guard takes nothing back for what may be noise.
            Footing::Unsure => {}
        }
        if judged.verdict == Verdict::Mismatch && self.bench().may_say(Matter::Mismatch) {
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

    /// Reports a candidate that was not compared; one that failed is kept and logged.
    fn uncompared(&self, not: NotCompared, why: &FailureCause) {
        if not.verdict == Verdict::CandidateFailed {
            let endings = not.endings.unwrap_or((Ending::NotRead, Ending::NotRead));
            let cause = why.cause.as_deref();
            let cause = cause.map(|cause| self.plan().redaction.text(cause));
            let reason = why.reason.map(|reason| reason.row().label);
            let failed = FailedCandidate::new(self.called(), endings, reason, cause.as_deref());
            if self.bench().may_say(Matter::Failure) {
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

    /// Tells a verdict without a comparison.
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

/// Counts what stood beside no call, and why.
pub(super) fn skipped(record: &Record, skip: Skip) {
    if let Some(subject) = Subject::of(record) {
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
