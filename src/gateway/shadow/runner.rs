//! The shared state of all candidates of a worker: limits, shutdown, learned noise and recent mismatches.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::domain::compare::{
    CallInfo, Comparison, Confidence, ControlRepeats, FailedCandidate, Mismatches, Noise,
    RepeatOutcome, Verdict,
};
use crate::domain::shadow_limits::ShadowLimits;
use crate::telemetry::clock;
use crate::telemetry::metrics::{CallFields, LabelNames};
use crate::upstream::{BodyCopy, CopyBudget};

/// The candidates of one worker.
#[derive(Debug)]
pub(in crate::gateway) struct ShadowRunner {
    limits: Cell<ShadowLimits>,
    budget: Rc<CopyBudget>,
    running: Cell<usize>,
    calls: Cell<u64>,
    state: Cell<RunnerState>,
    closing: Notify,
    mismatch_log: Cell<LogBudget>,
    failure_log: Cell<LogBudget>,
    known: RefCell<BTreeMap<Arc<str>, RouteStats>>,
    mismatches: RefCell<Mismatches>,
    /// Cached fields of `mismatches`, cleared when these change.
    fields: RefCell<Option<CallFields>>,
}

/// Noise statistics of one route.
#[derive(Debug, Default)]
struct RouteStats {
    noise: Noise,
    repeats: ControlRepeats,
}

/// Log lines per second about mismatches, and as many about failed candidates.
const LINES: u32 = 10;

/// The log lines about one subject in the current second.
#[derive(Debug, Clone, Copy)]
struct LogBudget {
    since: Instant,
    lines: u32,
}

/// The subject of a log line. Each has its own limit, so that neither crowds out the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogSubject {
    Mismatch,
    Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunnerState {
    Open,
    /// The process is shutting down.
    Closed,
}

/// A permit to run one candidate, released on drop.
#[derive(Debug)]
pub(super) struct ConcurrencyPermit(Rc<ShadowRunner>);

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
    }
}

/// The end of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RunEnd<T> {
    /// It completed.
    Done(T),
    /// It exceeded its time limit.
    Late,
    /// It panicked.
    Panicked,
    /// The process is shutting down.
    Closed,
}

impl ShadowRunner {
    pub(in crate::gateway) fn new(limits: ShadowLimits) -> ShadowRunner {
        let said = LogBudget {
            since: clock::now(),
            lines: 0,
        };
        let bench = ShadowRunner {
            limits: Cell::new(limits),
            budget: Rc::default(),
            running: Cell::new(0),
            calls: Cell::new(0),
            state: Cell::new(RunnerState::Open),
            closing: Notify::new(),
            mismatch_log: Cell::new(said),
            failure_log: Cell::new(said),
            known: RefCell::default(),
            mismatches: RefCell::default(),
            fields: RefCell::default(),
        };
        bench.allow(limits);
        bench
    }

    /// Applies new limits.
    pub(in crate::gateway) fn allow(&self, limits: ShadowLimits) {
        self.limits.set(limits);
        self.budget.allow(limits.memory);
    }

    /// Returns the number of running candidates.
    pub(in crate::gateway) fn running(&self) -> usize {
        self.running.get()
    }

    /// Stops all candidates and accepts no more.
    pub(in crate::gateway) fn close(&self) {
        self.state.set(RunnerState::Closed);
        self.closing.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.get() == RunnerState::Closed
    }

    pub(super) fn limits(&self) -> ShadowLimits {
        self.limits.get()
    }

    /// Creates a copy that is charged to the budget of all candidates.
    pub(super) fn tap(&self) -> BodyCopy {
        BodyCopy::new(&self.budget)
    }

    /// Returns true when sampling selects the next eligible call.
    pub(super) fn samples(&self) -> bool {
        let place = self.calls.get();
        self.calls.set(place.wrapping_add(1));
        self.limits.get().samples(place)
    }

    /// Returns a permit if the concurrency limit allows one; never waits.
    pub(super) fn permit(self: &Rc<Self>) -> Option<ConcurrencyPermit> {
        if self.running.get() >= self.limits.get().concurrency {
            return None;
        }
        self.running.set(self.running.get() + 1);
        Some(ConcurrencyPermit(self.clone()))
    }

    /// Runs a future until it completes, `limit` expires or the process shuts down. A panic ends only this future.
    pub(super) async fn run<T>(&self, limit: Duration, run: impl Future<Output = T>) -> RunEnd<T> {
        // The state of a panicked run is dropped with it, so nothing half-written is left.
        let run = timeout(limit, AssertUnwindSafe(run).catch_unwind());
        // If the process shuts down, the run is dropped and closes its connection.
        tokio::select! {
            biased;
            () = self.closed() => RunEnd::Closed,
            ended = run => match ended {
                Ok(Ok(done)) => RunEnd::Done(done),
                Ok(Err(_)) => RunEnd::Panicked,
                Err(_) => RunEnd::Late,
            },
        }
    }

    async fn closed(&self) {
        loop {
            // Registered before the state is read, so that a change in between is not missed.
            let mut closing = pin!(self.closing.notified());
            closing.as_mut().enable();
            if self.is_closed() {
                return;
            }
            closing.await;
        }
    }

    /// Returns true when the control should run again for this comparison: periodically, or when a difference may be
    /// noise.
    pub(super) fn wants_repeat(&self, route: &Arc<str>, found: &Comparison) -> bool {
        let mut known = self.known.borrow_mut();
        let RouteStats {
            noise,
            repeats: looked,
        } = known.entry(route.clone()).or_default();
        let limits = self.limits.get();
        let turn = limits.repeats_control(looked.next_index());
        turn || limits.learns_noise() && looked.needs_repeat(noise, &noise.judge(found))
    }

    /// Learns noise from the comparison `second` of two control responses; `found` compared the first with the
    /// candidate.
    pub(super) fn learn(&self, route: &Arc<str>, found: &Comparison, second: &Comparison) {
        let mut known = self.known.borrow_mut();
        let RouteStats {
            noise,
            repeats: looked,
        } = known.entry(route.clone()).or_default();
        noise.feed_noise(second);
        looked.take(noise, found);
    }

    /// Judges a comparison with the noise of its route. Stores a mismatch if `called` is given.
    pub(super) fn judge(
        &self,
        (route, look): (&Arc<str>, RepeatOutcome),
        called: Option<&CallInfo>,
        found: &Comparison,
    ) -> Judgement {
        let mut known = self.known.borrow_mut();
        let RouteStats {
            noise,
            repeats: looked,
        } = known.entry(route.clone()).or_default();
        noise.feed_raw(found);
        let judgement = noise.judge(found);
        let footing = match judgement.verdict {
            // If noise is not learned, every difference counts.
            Verdict::Mismatch if self.limits.get().learns_noise() => {
                looked.confidence(noise, &judgement, look)
            }
            Verdict::Match
            | Verdict::Mismatch
            | Verdict::ControlFailed
            | Verdict::CandidateFailed
            | Verdict::BothFailed
            | Verdict::Skipped(_) => Confidence::Sure,
        };
        if judgement.verdict == Verdict::Mismatch
            && let Some(called) = called
        {
            let counted = judgement.counted.iter().copied();
            self.mismatches.borrow_mut().keep(route, called, counted);
            self.fields.borrow_mut().take();
        }
        let counted = judgement.counted.iter();
        Judgement {
            verdict: judgement.verdict,
            confidence: footing,
            pointers: counted
                .map(|difference| difference.pointer.clone())
                .collect(),
            more: found.more,
        }
    }

    /// Stores a failed candidate of a route.
    pub(super) fn keep_failed(&self, route: &Arc<str>, failed: FailedCandidate) {
        self.mismatches.borrow_mut().keep_failed(route, failed);
    }

    /// Returns true when the log may take another line about the subject this second.
    pub(super) fn may_log(&self, matter: LogSubject) -> bool {
        let lines_of = match matter {
            LogSubject::Mismatch => &self.mismatch_log,
            LogSubject::Failure => &self.failure_log,
        };
        let (now, said) = (clock::now(), lines_of.get());
        let fresh = now - said.since >= Duration::from_secs(1);
        let said = if fresh {
            LogBudget {
                since: now,
                lines: 0,
            }
        } else {
            said
        };
        let room = said.lines < LINES;
        let lines = said.lines + u32::from(room);
        lines_of.set(LogBudget { lines, ..said });
        room
    }

    /// Returns the recent mismatches.
    pub(in crate::gateway) fn mismatches(&self) -> Mismatches {
        self.mismatches.borrow().clone()
    }

    /// Drops the mismatches and failed candidates of the matching routes, and returns the routes' names. Learned noise
    /// stays, because it describes servers.
    pub(in crate::gateway) fn forget(&self, is_forgotten: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        self.fields.borrow_mut().take();
        self.mismatches.borrow_mut().forget(is_forgotten)
    }

    /// Returns hashes of the fields that differed; the field names are server data and stay private.
    pub(in crate::gateway) fn mismatching(&self, names: &LabelNames) -> CallFields {
        let mut fields = self.fields.borrow_mut();
        fields.get_or_insert_with(|| self.fields_of(names)).clone()
    }

    fn fields_of(&self, names: &LabelNames) -> CallFields {
        let known = self.mismatches.borrow();
        let fields = known.routes().flat_map(|route| {
            let label = names.intern(route);
            known.fields(route).map(move |(field, _)| (label, field))
        });
        // A fixed hasher, the same in all workers, because their sets are merged.
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let fields = fields.map(|(route, field)| (route, hasher.hash_one(field)));
        Arc::new(fields.collect())
    }

    /// Returns the learned noise of each route.
    pub(in crate::gateway) fn noise(&self) -> BTreeMap<Arc<str>, Noise> {
        let known = self.known.borrow();
        let known = known.iter();
        known
            .map(|(route, known)| (route.clone(), known.noise.clone()))
            .collect()
    }
}

/// The result of a comparison after noise is removed.
#[derive(Debug)]
pub(super) struct Judgement {
    pub(super) verdict: Verdict,
    /// The confidence, which must be sure for a guard to act on the verdict.
    pub(super) confidence: Confidence,
    /// JSON pointers of the differences that count.
    pub(super) pointers: Vec<String>,
    /// Number of further differences, which were not stored.
    pub(super) more: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::rollout::Percent;
    use crate::upstream::Tasks;

    const LONG: Duration = Duration::from_secs(5);

    fn bench(concurrency: usize) -> Rc<ShadowRunner> {
        Rc::new(ShadowRunner::new(ShadowLimits {
            concurrency,
            memory: 1024,
            timeout: LONG,
            sample: Percent::ALL,
            per_request: 1,
            noise: Percent::NONE,
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_panics_ends_alone_and_the_next_one_runs() {
        let bench = bench(1);
        let seat = bench.permit().unwrap();
        assert!(bench.permit().is_none());
        let panicking = async { panic!("on purpose") };
        assert_eq!(bench.run::<()>(LONG, panicking).await, RunEnd::Panicked);
        drop(seat);
        let _seat = bench.permit().unwrap();
        assert_eq!(bench.run(LONG, async { 7 }).await, RunEnd::Done(7));
    }

    #[tokio::test(start_paused = true)]
    async fn the_log_takes_so_many_lines_a_second() {
        let bench = bench(1);
        let said = |of: usize| {
            let one = |_: &usize| bench.may_log(LogSubject::Mismatch);
            (0..of).filter(one).count()
        };
        assert_eq!(said(50), 10);
        assert!(bench.may_log(LogSubject::Failure));
        tokio::time::advance(Duration::from_millis(999)).await;
        assert_eq!(said(50), 0);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(said(50), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_that_hangs_ends_at_its_limit() {
        let hanging = std::future::pending::<()>();
        assert_eq!(bench(1).run(LONG, hanging).await, RunEnd::Late);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_program_ends_every_run_at_once() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let (bench, tasks) = (bench(2), Tasks::default());
                for _ in 0..2 {
                    let bench = bench.clone();
                    tasks.start(async move {
                        let _seat = bench.permit().unwrap();
                        let ended = bench.run(LONG, std::future::pending::<()>()).await;
                        assert_eq!(ended, RunEnd::Closed);
                    });
                }
                while bench.running() < 2 {
                    tokio::task::yield_now().await;
                }
                bench.close();
                // Far less than their own limit, and the clock only moves when nothing else does.
                let soon = Duration::from_secs(1);
                timeout(soon, tasks.idle())
                    .await
                    .expect("all runs have ended");
                assert_eq!(bench.running(), 0);
                assert_eq!(bench.run(LONG, async { 7 }).await, RunEnd::Closed);
            })
            .await;
    }
}
