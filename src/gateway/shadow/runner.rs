//! The shared state of all candidates of a worker: limits, shutdown, learned noise and recent mismatches.
//!
//! Used by `shadow::run` and `worker`.

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

use crate::telemetry::clock;
use crate::telemetry::metrics::{CallFields, LabelNames};
use dualgauge_model::compare::{
    CallInfo, Comparison, Confidence, ControlRepeats, FailedCandidate, MismatchDetail, Mismatches,
    Noise, RepeatOutcome, ReplyPair, Verdict,
};
use dualgauge_model::shadow_limits::ShadowLimits;
use dualgauge_net::{BodyCopy, CopyBudget, CountGuard};

/// The candidates of one worker.
#[derive(Debug)]
pub(in crate::gateway) struct ShadowRunner {
    limits: Cell<ShadowLimits>,
    budget: Rc<CopyBudget>,
    running: Rc<Cell<usize>>,
    calls: Cell<u64>,
    is_closed: Cell<bool>,
    closing: Notify,
    mismatch_log: Cell<LogBudget>,
    failure_log: Cell<LogBudget>,
    route_stats: RefCell<BTreeMap<Arc<str>, RouteStats>>,
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
const LOG_LINES_PER_SECOND: u32 = 10;

/// The log lines about one subject in the current second.
#[derive(Debug, Clone, Copy)]
struct LogBudget {
    since: Instant,
    lines: u32,
}

/// The subject of a log line. Each subject has its own rate limit, so that neither uses up that of the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogSubject {
    Mismatch,
    Failure,
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
        let budget = LogBudget {
            since: clock::now(),
            lines: 0,
        };
        let runner = ShadowRunner {
            limits: Cell::new(limits),
            budget: Rc::default(),
            running: Rc::default(),
            calls: Cell::new(0),
            is_closed: Cell::new(false),
            closing: Notify::new(),
            mismatch_log: Cell::new(budget),
            failure_log: Cell::new(budget),
            route_stats: RefCell::default(),
            mismatches: RefCell::default(),
            fields: RefCell::default(),
        };
        runner.allow(limits);
        runner
    }

    /// Applies new limits.
    pub(in crate::gateway) fn allow(&self, limits: ShadowLimits) {
        self.limits.set(limits);
        self.budget.set_limit(limits.memory);
    }

    /// Returns the number of running candidates.
    pub(in crate::gateway) fn running(&self) -> usize {
        self.running.get()
    }

    /// Stops all candidates and accepts no more.
    pub(in crate::gateway) fn close(&self) {
        self.is_closed.set(true);
        self.closing.notify_waiters();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(super) fn limits(&self) -> ShadowLimits {
        self.limits.get()
    }

    /// Creates a copy that is charged to the budget of all candidates.
    pub(in crate::gateway) fn new_copy(&self) -> BodyCopy {
        BodyCopy::new(&self.budget)
    }

    /// Returns true when sampling selects the next eligible call.
    pub(super) fn should_sample(&self) -> bool {
        let number = self.calls.get();
        self.calls.set(number.wrapping_add(1));
        self.limits.get().samples(number)
    }

    /// Returns a permit if the concurrency limit allows one; never waits.
    pub(super) fn permit(&self) -> Option<CountGuard> {
        CountGuard::below(self.limits.get().concurrency, &self.running)
    }

    /// Runs a future until it completes, `limit` expires or the process shuts down. A panic ends only this future.
    pub(super) async fn run<T>(&self, limit: Duration, run: impl Future<Output = T>) -> RunEnd<T> {
        // The state of a panicked run is dropped with it, so nothing half-written is left.
        let run = timeout(limit, AssertUnwindSafe(run).catch_unwind());
        // If the process shuts down, the run is dropped and closes its connection.
        tokio::select! {
            biased;
            () = self.wait_closed() => RunEnd::Closed,
            end = run => match end {
                Ok(Ok(done)) => RunEnd::Done(done),
                Ok(Err(_)) => RunEnd::Panicked,
                Err(_) => RunEnd::Late,
            },
        }
    }

    async fn wait_closed(&self) {
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
        let mut route_stats = self.route_stats.borrow_mut();
        let RouteStats { noise, repeats } = route_stats.entry(route.clone()).or_default();
        let limits = self.limits.get();
        let is_scheduled = limits.repeats_control(repeats.next_index());
        is_scheduled || limits.learns_noise() && repeats.needs_repeat(noise, &noise.judge(found))
    }

    /// Learns noise from the comparison `second` of two control responses; `found` compared the first with the
    /// candidate.
    pub(super) fn learn(&self, route: &Arc<str>, found: &Comparison, second: &Comparison) {
        let mut route_stats = self.route_stats.borrow_mut();
        let RouteStats { noise, repeats } = route_stats.entry(route.clone()).or_default();
        noise.feed_noise(second);
        repeats.take(noise, found);
    }

    /// Judges a comparison with the noise of its route. Stores a mismatch if `call_info` is given.
    pub(super) fn judge(
        &self,
        route: &Arc<str>,
        repeat: RepeatOutcome,
        call_info: Option<&CallInfo>,
        found: &Comparison,
    ) -> Judgement {
        let mut route_stats = self.route_stats.borrow_mut();
        let RouteStats { noise, repeats } = route_stats.entry(route.clone()).or_default();
        noise.feed_raw(found);
        let judgement = noise.judge(found);
        let confidence = match judgement.verdict {
            // If noise is not learned, every difference counts.
            Verdict::Mismatch if self.limits.get().learns_noise() => {
                repeats.confidence(noise, &judgement, repeat)
            }
            Verdict::Match
            | Verdict::Mismatch
            | Verdict::ControlFailed
            | Verdict::CandidateFailed
            | Verdict::BothFailed
            | Verdict::Skipped(_) => Confidence::Sure,
        };
        if judgement.verdict == Verdict::Mismatch
            && let Some(call_info) = call_info
        {
            let counted = judgement.counted.iter().copied();
            let mut mismatches = self.mismatches.borrow_mut();
            mismatches.keep(route, call_info, counted);
            if let Some(replies) = &found.replies {
                mismatches.keep_replies(route, call_info, (**replies).clone());
            }
            self.fields.borrow_mut().take();
        }
        let counted = judgement.counted.iter();
        Judgement {
            verdict: judgement.verdict,
            confidence,
            pointers: counted
                .map(|difference| difference.pointer.clone())
                .collect(),
            more: found.more,
        }
    }

    /// Stores a failed candidate of a route, with sketches of the responses.
    pub(super) fn keep_failed(
        &self,
        route: &Arc<str>,
        failed: FailedCandidate,
        replies: Option<Box<ReplyPair>>,
    ) {
        let called = failed.called.clone();
        let mut mismatches = self.mismatches.borrow_mut();
        mismatches.keep_failed(route, failed);
        if let Some(replies) = replies {
            mismatches.keep_replies(route, &called, *replies);
        }
    }

    /// Returns true when the log may take another line about the subject this second.
    pub(super) fn may_log(&self, subject: LogSubject) -> bool {
        let log_budget = match subject {
            LogSubject::Mismatch => &self.mismatch_log,
            LogSubject::Failure => &self.failure_log,
        };
        let (now, budget) = (clock::now(), log_budget.get());
        let fresh = now - budget.since >= Duration::from_secs(1);
        let budget = if fresh {
            LogBudget {
                since: now,
                lines: 0,
            }
        } else {
            budget
        };
        let is_allowed = budget.lines < LOG_LINES_PER_SECOND;
        let lines = budget.lines + u32::from(is_allowed);
        log_budget.set(LogBudget { lines, ..budget });
        is_allowed
    }

    /// Returns the recent mismatches.
    pub(in crate::gateway) fn mismatches(&self, detail: MismatchDetail) -> Mismatches {
        self.mismatches.borrow().copy(detail)
    }

    /// Drops the mismatches and failed candidates of the matching routes, and returns the routes' names. Learned noise
    /// stays, because it describes servers.
    pub(in crate::gateway) fn forget(&self, is_forgotten: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
        self.fields.borrow_mut().take();
        let now_ms = clock::millis(clock::wall());
        self.mismatches.borrow_mut().forget(is_forgotten, now_ms)
    }

    /// Returns hashes of the fields that differed; the field names are server data and stay private.
    pub(in crate::gateway) fn mismatching(&self, names: &LabelNames) -> CallFields {
        let mut fields = self.fields.borrow_mut();
        fields
            .get_or_insert_with(|| self.hash_fields(names))
            .clone()
    }

    fn hash_fields(&self, names: &LabelNames) -> CallFields {
        let mismatches = self.mismatches.borrow();
        let fields = mismatches.routes().flat_map(|route| {
            let label = names.intern(route);
            mismatches
                .fields(route)
                .map(move |(field, _)| (label, field))
        });
        // A fixed hasher, the same in all workers, because their sets are merged.
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let fields = fields.map(|(route, field)| (route, hasher.hash_one(field)));
        Arc::new(fields.collect())
    }

    /// Returns the learned noise of each route.
    pub(in crate::gateway) fn noise(&self) -> BTreeMap<Arc<str>, Noise> {
        let route_stats = self.route_stats.borrow();
        let route_stats = route_stats.iter();
        route_stats
            .map(|(route, route_stats)| (route.clone(), route_stats.noise.clone()))
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
    use dualgauge_model::rollout::Percent;
    use dualgauge_net::Tasks;

    const LONG: Duration = Duration::from_secs(5);

    fn runner(concurrency: usize) -> Rc<ShadowRunner> {
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
    async fn a_panic_ends_only_its_own_run() {
        let runner = runner(1);
        let permit = runner.permit().unwrap();
        assert!(runner.permit().is_none());
        let panicking = async { panic!("on purpose") };
        assert_eq!(runner.run::<()>(LONG, panicking).await, RunEnd::Panicked);
        drop(permit);
        let _permit = runner.permit().unwrap();
        assert_eq!(runner.run(LONG, async { 7 }).await, RunEnd::Done(7));
    }

    #[tokio::test(start_paused = true)]
    async fn log_lines_per_second_are_limited() {
        let runner = runner(1);
        let allowed_lines = |count: usize| {
            let is_allowed_line = |_: &usize| runner.may_log(LogSubject::Mismatch);
            (0..count).filter(is_allowed_line).count()
        };
        assert_eq!(allowed_lines(50), 10);
        assert!(runner.may_log(LogSubject::Failure));
        tokio::time::advance(Duration::from_millis(999)).await;
        assert_eq!(allowed_lines(50), 0);
        tokio::time::advance(Duration::from_millis(1)).await;
        assert_eq!(allowed_lines(50), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_run_ends_at_its_limit() {
        let hanging = std::future::pending::<()>();
        assert_eq!(runner(1).run(LONG, hanging).await, RunEnd::Late);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_ends_every_run_at_once() {
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let (runner, tasks) = (runner(2), Tasks::default());
                for _ in 0..2 {
                    let runner = runner.clone();
                    tasks.start(async move {
                        let _permit = runner.permit().unwrap();
                        let end = runner.run(LONG, std::future::pending::<()>()).await;
                        assert_eq!(end, RunEnd::Closed);
                    });
                }
                while runner.running() < 2 {
                    tokio::task::yield_now().await;
                }
                runner.close();
                // Far below the limit of the runs; the paused clock moves only when all tasks wait.
                let limit = Duration::from_secs(1);
                timeout(limit, tasks.idle())
                    .await
                    .expect("all runs have ended");
                assert_eq!(runner.running(), 0);
                assert_eq!(runner.run(LONG, async { 7 }).await, RunEnd::Closed);
            })
            .await;
    }
}
