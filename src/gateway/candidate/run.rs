//! The story of one candidate: it runs, perhaps the control once more, and both answers are compared.

use std::rc::Rc;
use std::sync::Arc;

use super::again::Again;
use super::bench::{Bench, Ended, Judged, Seat};
use super::told::{Heard, Told};
use crate::domain::compare::{Called, Comparison, Run, Skip, Terms, Verdict, compare};
use crate::domain::failure::{Failure, Reason};
use crate::domain::plan::Plan;
use crate::domain::rollout::{Stage, Way, Why};
use crate::domain::side::Side;
use crate::gateway::guarded::Guarded;
use crate::gateway::record::Record;
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
}

impl Ready {
    /// Runs from the beginning to the verdict.
    pub(super) async fn run(self) {
        let Ready {
            mut record,
            call,
            purse,
            control,
            seat: _seat,
            _held,
        } = self;
        let Some(subject) = Subject::of(&record) else {
            return;
        };
        let ways = (subject.stage.control(), subject.stage.candidate());
        let (Some(old), Some(new)) = ways else {
            return;
        };
        let method = record.method().clone();
        let mut noise = record.again();
        record.runs_as_candidate(purse.clone());
        let candidate = subject.candidate(&mut record, &call, new).await;
        let Some(candidate) = candidate else {
            record.gives_up();
            return subject.skipped(Skip::Drain);
        };
        subject.took(&record);
        drop(record);
        // Those who wait for an answer come first.
        tokio::task::yield_now().await;
        let heard = |told: Told| {
            let depth = subject.plan().limits.depth;
            let plain = told.plain(&method, &purse)?;
            Ok(plain.read(subject.side, depth))
        };
        let both = candidate.and_then(|candidate| Ok((heard(control)?, heard(candidate)?)));
        let (control, candidate) = match both {
            Ok(both) => both,
            Err(skip) => return subject.skipped(skip),
        };
        if let Some(verdict) = Verdict::of_failures(control.run(), candidate.run()) {
            return subject.verdict(verdict);
        }
        if subject.bench().repeats_control() {
            noise.runs_as_noise(subject.bench().tap());
            let limit = subject.bench().limits().timeout;
            let again = subject.bench().run(limit, call.go(&mut noise, old)).await;
            if let Ended::Done(Ok(again)) = again
                && let Ok(again) = heard(again)
                && again.run() == Run::Answered
                && let Some(found) = subject.compare(&control, &again)
            {
                subject.bench().learn(&subject.route_name(), &found);
            }
        }
        match subject.compare(&control, &candidate) {
            Some(found) => subject.judge(&found),
            None => subject.verdict(Verdict::CandidateFailed),
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

    /// Compares; nothing where that is a fault of this program.
    fn compare(&self, control: &Heard, candidate: &Heard) -> Option<Comparison> {
        let (control, candidate) = (control.answer()?, candidate.answer()?);
        let rules = self.plan().comparing.get(self.route)?;
        let terms = Terms {
            depth: self.plan().limits.depth,
            salt: self.worker.salt(),
        };
        let compared =
            std::panic::AssertUnwindSafe(|| compare(&control, &candidate, rules, &terms));
        std::panic::catch_unwind(compared).ok()
    }

    fn judge(&self, found: &Comparison) {
        let route = self.plan().routes.route(self.route);
        let call = match self.side {
            Side::Rest => &route.rest,
            Side::Rpc => &route.rpc,
        };
        let client = self.plan().rollout.clients.name(self.client);
        let called = Called {
            at_ms: clock::unix_ms(),
            client: Arc::from(client),
            side: self.side,
            stage: self.stage,
            call: Arc::from(call.as_str()),
        };
        let Judged { verdict, pointers } = self.bench().judge(&self.route_name(), &called, found);
        self.verdict(verdict);
        if verdict == Verdict::Mismatch && self.bench().may_say() {
            let places = pointers.get(..NAMED).unwrap_or(&pointers).join(" ");
            tracing::info!(
                target: "dualgauge::mismatch",
                route = %route.name,
                client,
                side = self.side.as_str(),
                stage = self.stage.as_str(),
                differences = pointers.len() + found.more,
                places,
                "the answers differ"
            );
        }
    }

    fn took(&self, record: &Record) {
        let route = self.installed.route_label(Some(self.route));
        let elapsed = record.elapsed();
        self.worker
            .count(|shard| shard.candidate(route, (self.side, self.stage), elapsed));
    }

    fn verdict(&self, verdict: Verdict) {
        let labels = VerdictLabels {
            route: self.installed.route_label(Some(self.route)),
            client: self.installed.client_label(self.client),
            side: self.side,
            stage: self.stage,
            verdict: verdict.as_str(),
        };
        self.worker.count(|shard| {
            shard.verdict(labels);
            self.guarded().verdict(shard, verdict);
        });
    }

    fn skipped(&self, skip: Skip) {
        self.verdict(Verdict::Skipped(skip));
        let route = self.installed.route_label(Some(self.route));
        self.worker.count(|shard| shard.skipped(route, skip));
    }
}

/// Counts what stood beside no call, and why.
pub(super) fn skipped(record: &Record, skip: Skip) {
    if let Some(subject) = Subject::of(record) {
        subject.skipped(skip);
    }
}
