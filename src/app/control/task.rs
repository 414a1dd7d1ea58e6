//! The control task: it executes commands, checks the files regularly, and installs plans in the workers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{self, MissedTickBehavior};

use super::file_watch::FileChange;
use super::hooks::Hooks;
use super::overview::OverviewCache;
use super::polling::{PollOutcome, SourcePolls};
use super::reading::{Done, Reading, Waiting};
use super::report_counts::ReportCounts;
use super::state::{Control, Facts, Trigger};
use crate::server::admin::{
    AdminCommand, Attribution, ChangeRequest, FlagsView, OfrepCommand, Readiness, Refusal,
    Reloaded, StillMissing, ViewCommand,
};
use crate::telemetry::clock::{millis, now, timestamp, wall};
use crate::telemetry::metrics::CallTable;
use dualgauge_model::compare::{MismatchDetail, Mismatches};
use dualgauge_model::lifecycle::{ReportQuery, UsageReport, report};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::Glob;
use dualgauge_model::rollout::overrides::Change;
use dualgauge_model::time::Timestamp;

/// The interval of file checks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The delay of the next check after a change.
const SETTLE: Duration = Duration::from_millis(100);
/// The interval of polling a shared store for changes by other replicas; well below the second within which a flip must
/// act everywhere.
const SYNC_EVERY: Duration = Duration::from_millis(250);
/// The interval at which guards evaluate the counts.
const OBSERVE_EVERY: Duration = Duration::from_secs(1);
/// The time limit of the workers for a plan or for their counts; shorter than the timeout of the requester.
const WORKERS_TIMEOUT: Duration = Duration::from_secs(3);

/// The phase of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ControlPhase {
    Serving,
    Draining,
    /// Another process has taken over.
    Replaced,
}

struct ControlTask<I, M, C, D, F, N, K> {
    control: Control,
    hooks: Hooks<I, M, C, D, F, N, K>,
    /// The plan that was last given to the workers.
    offered: Arc<Plan>,
    /// True if every worker uses the plan in force.
    is_installed: bool,
    phase: ControlPhase,
    reading: Reading,
    overviews: OverviewCache,
    polls: SourcePolls,
}

/// Executes commands and watches the files until every sender of `commands` is dropped.
///
/// The workers must have [`Control::plan`] before this call. The task compiles between its waits, so it must run on a
/// thread that serves no calls.
pub async fn own<I, M, C, D, F, N, K>(
    control: Control,
    mut commands: mpsc::Receiver<AdminCommand>,
    hooks: Hooks<I, M, C, D, F, N, K>,
) where
    I: AsyncFn(Arc<Plan>),
    M: AsyncFn(Arc<Plan>, Facts) -> String,
    C: AsyncFn(Arc<Plan>, Timestamp) -> ReportCounts,
    D: AsyncFn(MismatchDetail) -> Mismatches,
    F: AsyncFn(&Glob) -> Vec<String>,
    N: AsyncFn(Arc<Plan>) -> Readiness,
    K: AsyncFn() -> CallTable,
{
    let mut owner = ControlTask {
        offered: control.plan(),
        control,
        hooks,
        is_installed: true,
        phase: ControlPhase::Serving,
        reading: Reading::default(),
        overviews: OverviewCache::default(),
        polls: SourcePolls::new(),
    };
    // The guards compare later counts with those at their start.
    owner.observe().await;
    let mut looks = time::interval_at(now() + LOOK_EVERY, LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut syncs = time::interval_at(now() + SYNC_EVERY, SYNC_EVERY);
    syncs.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut observations = time::interval_at(now() + OBSERVE_EVERY, OBSERVE_EVERY);
    observations.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        // All branches are cancel-safe: nothing is taken from the channel, a read or an interval unless it is handled.
        tokio::select! {
            command = commands.recv() => match command {
                Some(command) => owner.obey(command).await,
                None => return,
            },
            done = owner.reading.done() => {
                if owner.take_read(done).await == Some(FileChange::Settling) {
                    looks.reset_after(SETTLE);
                }
            }
            polled = owner.polls.next(owner.control.poll_request()), if owner.phase != ControlPhase::Replaced => {
                owner.take_polled(polled).await;
            }
            _ = looks.tick() => owner.look().await,
            _ = observations.tick(), if owner.phase == ControlPhase::Serving => owner.observe().await,
            _ = syncs.tick(), if owner.follows_store() => owner.sync().await,
        }
    }
}

impl<I, M, C, D, F, N, K> ControlTask<I, M, C, D, F, N, K>
where
    I: AsyncFn(Arc<Plan>),
    M: AsyncFn(Arc<Plan>, Facts) -> String,
    C: AsyncFn(Arc<Plan>, Timestamp) -> ReportCounts,
    D: AsyncFn(MismatchDetail) -> Mismatches,
    F: AsyncFn(&Glob) -> Vec<String>,
    N: AsyncFn(Arc<Plan>) -> Readiness,
    K: AsyncFn() -> CallTable,
{
    /// Returns true if the store must be polled. A process that has handed over takes nothing back.
    fn follows_store(&self) -> bool {
        match self.phase {
            ControlPhase::Serving | ControlPhase::Draining => self.control.follows_store(),
            ControlPhase::Replaced => false,
        }
    }

    async fn obey(&mut self, command: AdminCommand) {
        match command {
            AdminCommand::Flags(reply) => tell(reply, self.control.flags()),
            AdminCommand::Flag { name, reply } => tell(reply, self.control.flag(&name)),
            AdminCommand::Plan(reply) => tell(reply, self.control.plan_view()),
            AdminCommand::Document { side, reply } => tell(reply, self.control.document(side)),
            AdminCommand::Ready(reply) => tell(reply, self.readiness().await),
            AdminCommand::Change { asked, reply } => self.change(&asked, reply).await,
            AdminCommand::Explain { call, reply } => {
                tell(reply, self.control.explained(&call));
            }
            AdminCommand::Ofrep(command) => self.evaluate(command),
            AdminCommand::History(reply) => tell(reply, self.control.history()),
            AdminCommand::Metrics(reply) => self.metrics(reply).await,
            AdminCommand::Usage { route, idle, reply } => self.usage(route, idle, reply).await,
            AdminCommand::View(command) => self.show(command).await,
            AdminCommand::Recording(command) => self.hooks.recordings.obey(command).await,
            AdminCommand::Mismatches(reply) => self.mismatches(reply).await,
            AdminCommand::ForgetMismatches {
                routes,
                attribution,
                reply,
            } => self.forget(&routes, attribution, reply).await,
            AdminCommand::Reload(reply) => self.reload(Waiting::Process(reply)),
            AdminCommand::ReloadForApi {
                attribution: Attribution { who, why },
                reply,
            } => {
                tracing::info!(who, why, "the files are read again for the admin API");
                self.reload(Waiting::Api(reply));
            }
            AdminCommand::Drain(reply) => {
                self.phase = ControlPhase::Draining;
                // The process may be killed during the drain.
                self.leave().await;
                tell(reply, ());
            }
            AdminCommand::Drained(reply) => {
                self.leave().await;
                tell(reply, ());
            }
            AdminCommand::HandOver(reply) => {
                self.phase = ControlPhase::Replaced;
                self.leave().await;
                self.control.hand_over();
                tell(reply, ());
            }
        }
    }

    /// Changes the overrides, if the requester still waits: one that has timed out must not be surprised by a later
    /// change. The kill switch acts in any case, and before it is stored.
    async fn change(
        &mut self,
        asked: &ChangeRequest,
        reply: oneshot::Sender<Result<FlagsView, Refusal>>,
    ) {
        let kills = asked.change == Change::Kill;
        if reply.is_closed() && !kills {
            return;
        }
        if kills {
            if let Err(refusal) = self.control.throw(asked, wall()) {
                return tell(reply, Err(refusal));
            }
            self.install_if_new().await;
        }
        let changed = self.control.change(asked, wall()).await;
        // Even if the change was refused, another replica may have changed the plan.
        self.install_if_new().await;
        let answer = match (changed, self.is_installed) {
            (Err(refusal), _) => Err(refusal),
            (Ok(_), false) if self.control.kill_unstored().is_some() => {
                Err(Refusal::PendingKill(StillMissing))
            }
            (Ok(_), false) => Err(Refusal::Pending(StillMissing)),
            (Ok(_), true) => Ok(self.control.flags()),
        };
        tell(reply, answer);
    }

    /// Evaluates flags for an application.
    fn evaluate(&mut self, command: OfrepCommand) {
        let at = timestamp(wall());
        match command {
            OfrepCommand::One { key, body, reply } => {
                tell(reply, self.control.evaluated(&key, &body, at));
            }
            OfrepCommand::All { body, reply } => tell(reply, self.control.all_evaluated(&body, at)),
        }
    }

    /// Reloads the files for a requester, who gets the result.
    fn reload(&mut self, who: Waiting) {
        self.reading.ask(who, self.control.sources());
    }

    /// Processes what was read. Returns the result of a file check.
    async fn take_read(&mut self, done: Option<Done>) -> Option<FileChange> {
        let look = match done {
            Some(Done::Looked(contents)) => Some(self.control.looked(contents)),
            Some(Done::Read(said, trigger)) => {
                let reloaded = self.control.take_files(*said, trigger, wall()).await;
                self.follow(reloaded).await;
                for who in self.reading.answered() {
                    self.answer(who, reloaded);
                }
                None
            }
            None => {
                // The dropped reply channels tell the requesters that there is no answer.
                self.reading.answered().clear();
                None
            }
        };
        let due = (look == Some(FileChange::Due)).then_some(Trigger::Watched);
        self.reading.read(self.control.sources(), due);
        look
    }

    fn answer(&self, who: Waiting, reloaded: Reloaded) {
        match who {
            Waiting::Process(reply) => tell(reply, reloaded),
            Waiting::Api(reply) => {
                let result = match self.control.reloaded(reloaded) {
                    Ok(_) if !self.is_installed => Err(Refusal::Pending(StillMissing)),
                    result => result,
                };
                tell(reply, result);
            }
        }
    }

    /// Processes a poll of the source of flags.
    async fn take_polled(&mut self, polled: PollOutcome) {
        let delay = self.control.take_polled(polled, wall());
        self.polls.wait(delay);
        self.install_if_new().await;
    }

    /// Checks the store for changes by other replicas.
    async fn sync(&mut self) {
        self.control.sync().await;
        self.install_if_new().await;
    }

    /// Stores the counts and the flag changes.
    async fn leave(&mut self) {
        self.take_counts().await;
        self.control.leave(millis(wall())).await;
        self.control.flush().await;
    }

    /// Takes the counts of the workers. Counts that are not reported in time are part of the next ones.
    async fn take_counts(&mut self) {
        let at = wall();
        let counts = (self.hooks.counts)(self.control.plan(), timestamp(at));
        if let Ok(counts) = time::timeout(WORKERS_TIMEOUT, counts).await {
            self.control.report(counts, at).await;
        }
    }

    /// Takes the counts and acts on the decisions of the guards.
    async fn observe(&mut self) {
        self.take_counts().await;
        self.control.observe(wall()).await;
        // The plan may also be new because another replica was faster.
        self.install_if_new().await;
    }

    async fn install_if_new(&mut self) {
        if !Arc::ptr_eq(&self.offered, &self.control.plan()) {
            self.install().await;
        }
    }

    /// Starts a file check, unless a read is running.
    async fn look(&mut self) {
        self.reading.check();
        self.reading.look(self.control.watched());
        if !self.is_installed {
            self.install().await;
        }
    }

    async fn follow(&mut self, reloaded: Reloaded) {
        match reloaded {
            Reloaded::Swapped => self.install().await,
            // The recording may have failed to start.
            Reloaded::Unchanged => self.hooks.recordings.follow(&self.control.plan()).await,
            Reloaded::Refused => {}
        }
    }

    async fn install(&mut self) {
        self.offered = self.control.plan();
        let install = (self.hooks.install)(self.offered.clone());
        self.is_installed = time::timeout(WORKERS_TIMEOUT, install).await.is_ok();
        if !self.is_installed {
            tracing::error!("some workers have not applied the new plan; it is sent again");
        }
    }

    async fn metrics(&self, reply: oneshot::Sender<String>) {
        let page = (self.hooks.metrics)(self.control.plan(), self.control.facts());
        match time::timeout(WORKERS_TIMEOUT, page).await {
            Ok(page) => tell(reply, page),
            // The dropped reply channel tells the requester.
            Err(_) => tracing::error!("not every worker has reported its counts"),
        }
    }

    /// Reports the usage of routes by client on all replicas, including the latest counts.
    async fn usage(&mut self, route: Glob, idle: u64, reply: oneshot::Sender<UsageReport>) {
        self.take_counts().await;
        let (plan, at) = (self.control.plan(), timestamp(wall()));
        let mut usage = self.control.usage_of(&route);
        usage.keep(&plan);
        tell(
            reply,
            report(&plan, &usage, &ReportQuery { route, idle, at }),
        );
    }

    async fn mismatches(&self, reply: oneshot::Sender<Mismatches>) {
        let mismatches = (self.hooks.mismatches)(MismatchDetail::Samples);
        match time::timeout(WORKERS_TIMEOUT, mismatches).await {
            Ok(found) => tell(reply, found),
            // The dropped reply channel tells the requester.
            Err(_) => tracing::error!("not every worker has reported its mismatches"),
        }
    }

    async fn forget(
        &self,
        routes: &Glob,
        Attribution { who, why }: Attribution,
        reply: oneshot::Sender<Vec<String>>,
    ) {
        match time::timeout(WORKERS_TIMEOUT, (self.hooks.forget)(routes)).await {
            Ok(forgotten) => {
                tracing::info!(
                    who,
                    why,
                    routes = routes.as_str(),
                    forgotten = forgotten.len(),
                    "the mismatches were reset"
                );
                tell(reply, forgotten);
            }
            // The dropped reply channel tells the requester.
            Err(_) => tracing::error!("not every worker has reset its mismatches"),
        }
    }

    /// Answers a request of the console. A dropped reply channel tells the requester that a worker did not report.
    async fn show(&mut self, command: ViewCommand) {
        let at = timestamp(wall());
        match command {
            ViewCommand::Overview(reply) => self.overview(reply).await,
            ViewCommand::Status(reply) => {
                let readiness = self.readiness().await;
                tell(reply, self.control.status(readiness));
            }
            ViewCommand::Clients { query, reply } => {
                if let Some(calls) = self.calls().await {
                    tell(reply, self.control.clients(&query, &calls, at));
                }
            }
            ViewCommand::Routes { query, reply } => {
                if let Some(calls) = self.calls().await {
                    tell(reply, self.control.routes(&query, &calls));
                }
            }
            ViewCommand::Performance { query, reply } => {
                if let Some(calls) = self.calls().await {
                    tell(reply, self.control.performance(&query, &calls));
                }
            }
            ViewCommand::Route { name, reply } => {
                if let Some(calls) = self.calls().await {
                    tell(reply, self.control.route(&name, &calls, at));
                }
            }
            ViewCommand::Unrouted(reply) => {
                if let Some(calls) = self.calls().await {
                    tell(reply, calls.unrouted());
                }
            }
            ViewCommand::FindRoute { name, reply } => tell(reply, self.control.find_route(&name)),
            ViewCommand::Preview {
                name,
                values,
                reply,
            } => tell(reply, self.control.preview(&name, values)),
        }
    }

    async fn overview(&mut self, reply: oneshot::Sender<Bytes>) {
        let at = wall();
        if let Some(page) = self.overviews.fresh(&self.control, at) {
            return tell(reply, page);
        }
        let mismatches = (self.hooks.mismatches)(MismatchDetail::Tallies);
        let mismatches = time::timeout(WORKERS_TIMEOUT, mismatches);
        let Ok(mismatches) = mismatches.await else {
            return tracing::error!("not every worker has reported its mismatches");
        };
        let view = self.control.overview(self.readiness().await, &mismatches);
        tell(reply, self.overviews.keep(&self.control, &view, at));
    }

    async fn calls(&self) -> Option<CallTable> {
        let calls = time::timeout(WORKERS_TIMEOUT, (self.hooks.calls)()).await;
        if calls.is_err() {
            tracing::error!("not every worker has reported its calls");
        }
        calls.ok()
    }

    async fn readiness(&self) -> Readiness {
        let mut readiness = self.control.readiness();
        if self.phase != ControlPhase::Serving {
            readiness.obstacles.push("draining".to_owned());
        }
        if !self.is_installed {
            let behind = "not every worker has the plan in force".to_owned();
            readiness.obstacles.push(behind);
        }
        readiness.notes.extend(self.reading.note());
        let upstreams = (self.hooks.upstreams)(self.control.plan());
        match time::timeout(WORKERS_TIMEOUT, upstreams).await {
            Ok(upstreams) => {
                readiness.obstacles.extend(upstreams.obstacles);
                readiness.notes.extend(upstreams.notes);
            }
            Err(_) => readiness
                .obstacles
                .push("not every worker has reported the state of its upstreams".to_owned()),
        }
        readiness
    }
}

/// Sends a reply; a requester that no longer waits needs none.
fn tell<T>(reply: oneshot::Sender<T>, answer: T) {
    drop(reply.send(answer));
}
