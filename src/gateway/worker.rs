//! What one worker holds: the plan that new calls begin with, its upstream connections, its metrics.
//!
//! A worker is one thread with a runtime of its own; but for [`Common`] nothing here is shared, so nothing here is locked.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::watch;

use super::caller::Remembered;
use super::candidate::{Bench, Desk};
use super::labels::PlanLabels;
use super::sessions::Sessions;
use crate::domain::compare::{Mismatches, Noise, Salt};
use crate::domain::pending::Rank;
use crate::domain::plan::{Plan, UpstreamPlan};
use crate::domain::rollout::{Digest, Epoch, Past};
use crate::domain::side::Side;
use crate::domain::token::{Claims, TokenFault};
use crate::domain::trace::{Ids, Trace};
use crate::telemetry::metrics::{LabelId, Names, Pool, Shard, Snapshot};
use crate::telemetry::spans::Spans;
use crate::upstream::link::{LinkUpstream, Links, Reach};
use crate::upstream::{HttpUpstream, Tasks, Upstream};

/// One worker.
#[derive(Debug)]
pub struct Worker {
    installed: RefCell<Rc<Installed>>,
    shard: RefCell<Shard>,
    common: Common,
    tasks: Tasks,
    bench: Rc<Bench>,
    next_id: Cell<u64>,
    in_flight: Cell<usize>,
    connections: Cell<u64>,
    patience: Cell<Patience>,
    leaving: watch::Sender<bool>,
    ids: RefCell<Ids>,
}

/// What all workers share.
#[derive(Debug, Clone)]
pub struct Common {
    /// The names of all plans.
    pub names: Arc<Names>,
    /// What hashes of values are salted with.
    pub salt: Salt,
    /// When sessions began.
    pub sessions: Arc<Sessions>,
    /// Where long comparisons are made.
    pub desk: Desk,
    /// Where the ids of this worker's spans begin.
    pub ids: Ids,
    /// Where spans are handed over, if anybody wants them.
    pub spans: Option<Spans>,
}

/// Whether calls in progress may come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// They may.
    Waits,
    /// The drain was longer than its limit: what is dropped now is dropped by the proxy.
    Over,
}

/// A plan with what a worker needs to serve it.
#[derive(Debug)]
pub struct Installed {
    /// The plan.
    pub plan: Arc<Plan>,
    /// In the order of the plan.
    upstreams: Vec<Upstream>,
    /// The same servers, over connections of their own for what is run only to compare.
    beside: Vec<Upstream>,
    labels: PlanLabels,
    /// The number of the plan.
    epoch: Epoch,
    /// What the flags were before, for open sessions.
    past: Past,
    /// Tokens that a key of this plan has signed.
    tokens: RefCell<Remembered>,
}

impl Installed {
    fn new(
        (plan, links, epoch): (Arc<Plan>, &Links, Epoch),
        common: &Common,
        before: Option<&Installed>,
        tasks: &Tasks,
    ) -> Installed {
        let servers = plan.upstreams.all.iter().enumerate();
        let upstreams = servers
            .clone()
            .map(|(place, wanted)| match links.of(place) {
                Some(link) => linked(wanted, link, Rank::Client),
                None => {
                    let before = before.map(|before| &before.upstreams[..]);
                    Upstream::Http(kept_or_opened(wanted, before, tasks))
                }
            })
            .collect();
        let concurrency = plan.candidates.concurrency;
        let beside = servers
            .map(|(place, wanted)| match links.of(place) {
                Some(link) => linked(wanted, link, Rank::Candidate),
                None => {
                    let before = before.map(|before| &before.beside[..]);
                    let mut wanted = wanted.clone();
                    wanted.connections = concurrency;
                    Upstream::Http(kept_or_opened(&wanted, before, tasks))
                }
            })
            .collect();
        let labels = PlanLabels::of(&plan, &common.names);
        let past = before.map_or_else(Past::default, |before| {
            let now = common.sessions.now();
            let flags = before.plan.rollout.flags.as_slice();
            before.past.followed((flags, &plan.rollout), (epoch, now))
        });
        Installed {
            plan,
            upstreams,
            beside,
            labels,
            epoch,
            past,
            tokens: RefCell::default(),
        }
    }

    /// Those that have connections of this worker.
    fn all_upstreams(&self) -> impl Iterator<Item = &Rc<HttpUpstream>> {
        let all = self.upstreams.iter().chain(&self.beside);
        all.filter_map(Upstream::http)
    }

    /// The upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn upstream(&self, route: Option<usize>, side: Side) -> Option<&Upstream> {
        self.upstreams.get(self.plan.upstreams.of(route, side)?)
    }

    /// The upstream of a side for those who ask for a stream; only HTTP has streams.
    #[must_use]
    pub fn upstream_of_stream(&self, stream: usize, side: Side) -> Option<&Rc<HttpUpstream>> {
        let place = self.plan.upstreams.of_stream(stream, side)?;
        self.upstreams.get(place)?.http()
    }

    /// The claims of a token by its digest; `read` looks at its signature, where that was not done yet.
    pub(super) fn signed_claims(
        &self,
        token: Digest,
        read: impl FnOnce() -> Result<Claims, TokenFault>,
    ) -> Result<Rc<Claims>, TokenFault> {
        self.tokens.borrow_mut().claims(token, read)
    }

    /// The same for what is run only to compare.
    pub(super) fn upstream_of_candidates(
        &self,
        route: Option<usize>,
        side: Side,
    ) -> Option<&Upstream> {
        self.beside.get(self.plan.upstreams.of(route, side)?)
    }

    /// The connections to the servers of each side.
    fn pools(&self) -> [Pool; Side::ALL.len()] {
        let mut pools = [Pool::default(); Side::ALL.len()];
        for upstream in self.all_upstreams() {
            pools[upstream.plan().side as usize].add(Pool {
                open: upstream.open() as u64,
                idle: upstream.idle() as u64,
                limit: upstream.plan().connections as u64,
            });
        }
        pools
    }

    pub(super) fn route_label(&self, route: Option<usize>) -> LabelId {
        route
            .and_then(|index| self.labels.routes.get(index))
            .copied()
            .unwrap_or(self.labels.unrouted)
    }

    pub(super) fn stream_label(&self, stream: usize) -> LabelId {
        let label = self.labels.streams.get(stream);
        label.copied().unwrap_or(self.labels.unrouted)
    }

    /// Under what the guard of a flag is told of calls, where it has one.
    pub(super) fn guard_label(&self, flag: usize) -> Option<LabelId> {
        let flags = &self.plan.rollout.flags;
        flags.get(flag)?.guard.as_ref()?;
        self.labels.flags.get(flag).copied()
    }

    /// The flag that has decided, or none.
    pub(super) fn flag_label(&self, flag: Option<usize>) -> LabelId {
        flag.and_then(|index| self.labels.flags.get(index))
            .copied()
            .unwrap_or(LabelId::NONE)
    }

    /// The number of the plan.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// What the flags were before.
    pub(super) fn past(&self) -> &Past {
        &self.past
    }

    /// The prefix of routes that a path of no route lies under.
    pub(super) fn prefix_label(&self, path: &str) -> Option<LabelId> {
        let prefix = self.plan.lifecycle.prefixes.find(path)?;
        self.labels.prefixes.get(prefix).copied()
    }

    pub(super) fn client_label(&self, client: Option<usize>) -> LabelId {
        client
            .and_then(|index| self.labels.clients.get(index))
            .copied()
            .unwrap_or(self.labels.other)
    }
}

fn linked(wanted: &UpstreamPlan, link: &Reach, rank: Rank) -> Upstream {
    Upstream::Link(LinkUpstream::new(wanted.clone(), link.clone(), rank))
}

fn kept_or_opened(
    wanted: &UpstreamPlan,
    before: Option<&[Upstream]>,
    tasks: &Tasks,
) -> Rc<HttpUpstream> {
    let before = before.into_iter().flatten();
    let mut before = before.filter_map(Upstream::http);
    let kept = before.find(|kept| kept.plan() == wanted);
    kept.map_or_else(
        || Rc::new(HttpUpstream::new(wanted.clone(), tasks.clone())),
        Rc::clone,
    )
}

/// A connection of a client.
#[derive(Debug)]
pub struct Connected(Rc<Worker>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
    }
}

impl Worker {
    /// A worker that serves a plan, over the links that it has.
    #[must_use]
    pub fn new((plan, links): (Arc<Plan>, Links), common: Common) -> Rc<Worker> {
        let tasks = Tasks::default();
        let bench = Rc::new(Bench::new(plan.candidates));
        let installed = Rc::new(Installed::new(
            (plan, &links, Epoch::default()),
            &common,
            None,
            &tasks,
        ));
        Rc::new(Worker {
            installed: RefCell::new(installed),
            shard: RefCell::default(),
            ids: RefCell::new(common.ids.clone()),
            common,
            tasks,
            bench,
            next_id: Cell::new(1),
            in_flight: Cell::new(0),
            connections: Cell::new(0),
            patience: Cell::new(Patience::Waits),
            leaving: watch::Sender::new(false),
        })
    }

    /// Swaps the plan for calls that begin from now on. Upstreams that did not change keep their connections.
    pub fn install(&self, plan: Arc<Plan>, links: &Links, epoch: Epoch) {
        let before = self.installed();
        let next = Rc::new(Installed::new(
            (plan, links, epoch),
            &self.common,
            Some(&before),
            &self.tasks,
        ));
        for old in before.all_upstreams() {
            if !next.all_upstreams().any(|new| Rc::ptr_eq(old, new)) {
                old.stop_pooling();
            }
        }
        self.bench.allow(next.plan.candidates);
        *self.installed.borrow_mut() = next;
    }

    /// The plan that a call begins with, and keeps.
    #[must_use]
    pub fn installed(&self) -> Rc<Installed> {
        self.installed.borrow().clone()
    }

    /// The tasks of this worker.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Where candidates run.
    pub(super) fn bench(&self) -> &Rc<Bench> {
        &self.bench
    }

    /// Where long comparisons are made.
    pub(super) fn desk(&self) -> &Desk {
        &self.common.desk
    }

    /// What hashes of values that differ are salted with.
    pub(super) fn salt(&self) -> Salt {
        self.common.salt
    }

    /// The last mismatches that this worker has met.
    #[must_use]
    pub fn mismatches(&self) -> Mismatches {
        self.bench.mismatches()
    }

    /// What this worker knows of fields that differ by themselves, by route.
    #[must_use]
    pub fn noise(&self) -> BTreeMap<Arc<str>, Noise> {
        self.bench.noise()
    }

    /// Drops what runs only to compare, and starts no more of it: the program ends, and nobody waits for that.
    pub fn stop_comparing(&self) {
        self.bench.close();
    }

    /// An id for a call to an upstream: small, and never used twice by this worker.
    pub(super) fn mint(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }

    /// When sessions began.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.common.sessions
    }

    /// Counts a call that begins, or ends.
    pub(super) fn begun(&self) {
        self.in_flight.set(self.in_flight.get() + 1);
    }

    pub(super) fn ended(&self) {
        self.in_flight.set(self.in_flight.get() - 1);
    }

    /// How many calls are in progress.
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// Counts a connection of a client for as long as the value lives.
    #[must_use]
    pub fn connected(self: &Rc<Self>) -> Connected {
        self.connections.set(self.connections.get() + 1);
        Connected(self.clone())
    }

    /// How many connections of clients are open.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.get()
    }

    /// Writes to the metrics of this worker.
    pub fn count<T>(&self, write: impl FnOnce(&mut Shard) -> T) -> T {
        write(&mut self.shard.borrow_mut())
    }

    /// Closes upstream connections that nobody has used for too long.
    pub fn tidy(&self) {
        let installed = self.installed();
        for upstream in installed.all_upstreams() {
            upstream.forget_idle();
        }
    }

    /// Closes upstream connections as their calls end, before the program ends.
    pub fn stop_pooling(&self) {
        let installed = self.installed();
        for upstream in installed.all_upstreams() {
            upstream.stop_pooling();
        }
    }

    /// Takes no more messages over connections that have changed their protocol.
    pub fn leave(&self) {
        self.leaving.send_replace(true);
    }

    /// Tells when no more messages are taken.
    pub(super) fn leaving(&self) -> watch::Receiver<bool> {
        self.leaving.subscribe()
    }

    /// Waits for calls no longer: those in progress are about to be dropped, and it is not their clients' doing.
    pub fn give_up(&self) {
        self.patience.set(Patience::Over);
    }

    /// The trace of a call with these headers, if it has one.
    pub(super) fn trace(&self, plan: &Plan, headers: &http::HeaderMap) -> Option<Trace> {
        Trace::of(plan.trace.as_ref(), headers, &mut self.ids.borrow_mut())
    }

    /// Where spans are handed over, if anybody wants them.
    pub(super) fn spans(&self) -> Option<&Spans> {
        self.common.spans.as_ref()
    }

    pub(super) fn patience(&self) -> Patience {
        self.patience.get()
    }

    /// The metrics of this worker, as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let installed = self.installed();
        let mut shard = self.shard.borrow_mut();
        shard.gauges.client_connections = self.connections.get();
        shard.gauges.calls_in_flight = self.in_flight.get() as u64;
        shard.gauges.candidates_in_flight = self.bench.running() as u64;
        shard.gauges.calls_limit = installed.plan.limits.in_flight as u64;
        shard.gauges.connections_limit = installed.plan.limits.connections as u64;
        shard.gauges.pools = installed.pools();
        shard.mismatching = self.bench.mismatching(&self.common.names);
        shard.snapshot()
    }
}
