//! What one worker holds: the plan that new calls begin with, its upstream connections, its metrics.
//!
//! A worker is one thread with a runtime of its own; but for [`Shared`] nothing here is shared, so nothing here is locked.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::RequestOrigin;
use super::cancellation::CancellationRegistry;
use super::header_map_pool::HeaderMapPool;
use super::offload::Offload;
use super::peers::{Peer, Peers};
use super::request_ids::RequestIdAllocator;
use super::runtime_plan::RuntimePlan;
use super::sessions::Sessions;
use super::shadow::{ComparePool, ShadowRunner};
use crate::domain::compare::{Mismatches, Noise, Salt};
use crate::domain::failure::{Advice, Failure, Reason};
use crate::domain::plan::{Plan, WorkerShare};
use crate::domain::rollout::{Generation, Glob};
use crate::domain::trace::{IdGenerator, Trace};
use crate::telemetry::metrics::{LabelNames, Shard, Snapshot};
use crate::telemetry::spans::Spans;
use crate::upstream::link::Links;
use crate::upstream::{MemoryBudget, Tasks};

/// One worker.
#[derive(Debug)]
pub struct Worker {
    installed: RefCell<Rc<RuntimePlan>>,
    shard: RefCell<Shard>,
    common: Shared,
    tasks: Tasks,
    shadow_runner: Rc<ShadowRunner>,
    header_maps: HeaderMapPool,
    /// Ids that are this worker's to give.
    own_ids: RefCell<Range<u64>>,
    in_flight: Cell<usize>,
    connections: Cell<u64>,
    peers: Peers,
    patience: Cell<DrainMode>,
    ends: Cell<bool>,
    ended: Notify,
    leaving: watch::Sender<bool>,
    swapped: Notify,
    ids: RefCell<IdGenerator>,
}

/// What all workers share.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The names of all plans.
    pub names: Arc<LabelNames>,
    /// What hashes of values are salted with.
    pub salt: Salt,
    /// When sessions began.
    pub sessions: Arc<Sessions>,
    /// Calls that their clients may recall.
    pub recalls: Arc<CancellationRegistry>,
    /// Where the ids of calls come from.
    pub call_ids: Arc<RequestIdAllocator>,
    /// Where long comparisons are made.
    pub desk: ComparePool,
    /// Where long texts are read.
    pub offload: Offload,
    /// Where the ids of this worker's spans begin.
    pub ids: IdGenerator,
    /// Where spans are handed over, if anybody wants them.
    pub spans: Option<Spans>,
    /// What all bodies take.
    pub memory: MemoryBudget,
    /// The limit of open files of the process, if there is one.
    pub open_files: Option<u64>,
    /// Which of the workers this is.
    pub share: WorkerShare,
}

#[cfg(test)]
impl Shared {
    /// What one worker alone has.
    pub(super) fn for_tests(plan: &Plan) -> Shared {
        Shared {
            names: Arc::default(),
            salt: Salt([0; 16]),
            sessions: Arc::default(),
            recalls: Arc::default(),
            call_ids: Arc::default(),
            desk: ComparePool::open().0,
            offload: Offload::for_workers(1),
            ids: IdGenerator::new(0),
            spans: None,
            memory: MemoryBudget::new(plan.limits.memory),
            open_files: None,
            share: WorkerShare {
                worker: 0,
                workers: 1,
            },
        }
    }
}

/// Whether calls in progress may come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainMode {
    /// They may.
    Waits,
    /// The drain was longer than its limit: what is dropped now is dropped by the proxy.
    Over,
}

/// A connection of a client.
#[derive(Debug)]
pub struct ConnectionGuard(Rc<Worker>, Option<Rc<Peer>>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
        if let Some(peer) = &self.1 {
            peer.disconnects();
        }
    }
}

impl ConnectionGuard {
    /// Counts the connection for its peer, which is known only now where it comes behind a PROXY header. None where the
    /// peer has its part.
    #[must_use]
    pub fn count(&mut self, arrival: RequestOrigin) -> Option<RequestOrigin> {
        if self.1.is_none()
            && let Some(peer) = self.0.peer(arrival.address())
        {
            let taken = usize::try_from(self.0.connections() - 1).unwrap_or(usize::MAX);
            let has_room = peer.may_connect(self.0.most_connections(), taken);
            peer.connects();
            self.1 = Some(peer);
            if !has_room {
                return None;
            }
        }
        Some(arrival.counted(self.1.clone()))
    }
}

impl Worker {
    /// A worker that serves a plan, over the links that it has.
    #[must_use]
    pub fn new((plan, links): (Arc<Plan>, Links), common: Shared) -> Rc<Worker> {
        common.memory.allow(plan.limits.memory);
        let tasks = Tasks::default();
        let bench = Rc::new(ShadowRunner::new(plan.candidates));
        let installed = Rc::new(RuntimePlan::new(
            (plan, &links, Generation::default()),
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
            shadow_runner: bench,
            header_maps: HeaderMapPool::default(),
            own_ids: RefCell::default(),
            in_flight: Cell::new(0),
            connections: Cell::new(0),
            peers: Peers::default(),
            patience: Cell::new(DrainMode::Waits),
            ends: Cell::new(false),
            ended: Notify::new(),
            leaving: watch::Sender::new(false),
            swapped: Notify::new(),
        })
    }

    /// Swaps the plan for calls that begin from now on. Upstreams that did not change keep their connections.
    pub fn install(&self, plan: Arc<Plan>, links: &Links, epoch: Generation) {
        self.common.memory.allow(plan.limits.memory);
        let before = self.installed();
        let next = Rc::new(RuntimePlan::new(
            (plan, links, epoch),
            &self.common,
            Some(&before),
            &self.tasks,
        ));
        before.retire_in_favour_of(&next);
        self.shadow_runner.allow(next.plan.candidates);
        *self.installed.borrow_mut() = next.clone();
        self.swapped.notify_waiters();
        // They tell of rules that hold no longer.
        let kept = next.routes_kept_from(&before);
        self.shadow_runner.forget(|route| !kept(route));
    }

    /// Returns whether the plan in force has a route as an earlier one has it.
    pub(super) fn keeps_route(&self, before: &RuntimePlan, route: usize) -> bool {
        let now = self.installed();
        let name = &before.plan.routes.route(route).name;
        now.routes_kept_from(before)(name)
    }

    /// Forgets the mismatches and failed candidates of routes, and returns the names of these.
    #[must_use]
    pub fn forget_mismatches(&self, routes: &Glob) -> Vec<Arc<str>> {
        self.shadow_runner.forget(|route| routes.fits(route))
    }

    /// The plan that a call begins with, and keeps.
    #[must_use]
    pub fn installed(&self) -> Rc<RuntimePlan> {
        self.installed.borrow().clone()
    }

    /// Waits until another plan holds; cancel-safe for whoever looks at the plan before each waiting.
    pub(super) async fn swapped(&self) {
        self.swapped.notified().await;
    }

    /// The tasks of this worker.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Where header maps find room.
    pub(super) fn header_maps(&self) -> &HeaderMapPool {
        &self.header_maps
    }

    /// Where candidates run.
    pub(super) fn shadow_runner(&self) -> &Rc<ShadowRunner> {
        &self.shadow_runner
    }

    /// Where long comparisons are made.
    pub(super) fn compare_pool(&self) -> &ComparePool {
        &self.common.desk
    }

    /// Where long texts are read.
    pub(super) fn offload(&self) -> &Offload {
        &self.common.offload
    }

    /// What hashes of values that differ are salted with.
    pub(super) fn salt(&self) -> Salt {
        self.common.salt
    }

    /// The last mismatches that this worker has met.
    #[must_use]
    pub fn mismatches(&self) -> Mismatches {
        self.shadow_runner.mismatches()
    }

    /// What this worker knows of fields that differ by themselves, by route.
    #[must_use]
    pub fn noise(&self) -> BTreeMap<Arc<str>, Noise> {
        self.shadow_runner.noise()
    }

    /// Drops what runs only to compare, and starts no more of it: the program ends, and nobody waits for that.
    pub fn stop_comparing(&self) {
        self.shadow_runner.close();
    }

    /// An id for a call to an upstream: small, and never used twice.
    pub(super) fn next_request_id(&self) -> u64 {
        let mut own = self.own_ids.borrow_mut();
        let id = own.next();
        id.unwrap_or_else(|| {
            *own = self.common.call_ids.block();
            own.next().unwrap_or(own.end)
        })
    }

    /// When sessions began.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.common.sessions
    }

    /// Calls that their clients may recall.
    pub(super) fn cancellations(&self) -> &Arc<CancellationRegistry> {
        &self.common.recalls
    }

    /// Counts a call of a peer that begins, or goes on.
    pub(super) fn begun(&self, peer: Option<&Rc<Peer>>) {
        self.in_flight.set(self.in_flight.get() + 1);
        if let Some(peer) = peer {
            peer.call_begins();
        }
    }

    /// Counts a call of a peer that ends, or waits for nothing but its client.
    pub(super) fn ended(&self, peer: Option<&Rc<Peer>>) {
        self.in_flight.set(self.in_flight.get() - 1);
        if let Some(peer) = peer {
            peer.call_ends();
        }
    }

    /// Returns whether a call that has just begun may go on.
    pub(super) fn may_call(&self, peer: Option<&Rc<Peer>>) -> bool {
        let most = self.per_worker(self.installed().plan.limits.in_flight);
        let before = self.in_flight.get() - 1;
        before < most && peer.is_none_or(|peer| peer.may_call(most, before))
    }

    /// What all bodies of the process take.
    pub(super) fn memory(&self) -> &MemoryBudget {
        &self.common.memory
    }

    /// What this worker has of a limit of the process.
    pub(super) fn per_worker(&self, whole: usize) -> usize {
        self.common.share.of(whole)
    }

    /// Returns how many connections of clients may be open.
    fn most_connections(&self) -> usize {
        self.per_worker(self.installed().budget.clients())
    }

    /// Returns the peer at an address, unless it is a trusted hop, which brings the calls of others.
    #[must_use]
    pub fn peer(&self, address: IpAddr) -> Option<Rc<Peer>> {
        let is_hop = self.installed().plan.rollout.clients.hops().trusts(address);
        (!is_hop).then(|| self.peers.at(address))
    }

    /// Returns the client that a trusted hop names in the head of a request.
    pub(super) fn caller(
        &self,
        plan: &Plan,
        (hop, headers): (IpAddr, &http::HeaderMap),
    ) -> Option<Rc<Peer>> {
        self.peer(plan.rollout.clients.hops().caller(hop, headers))
    }

    /// Whether one connection of a client more may be open, of this peer if it is known.
    #[must_use]
    pub fn has_capacity(&self, peer: Option<&Peer>) -> bool {
        let most = self.most_connections();
        let taken = usize::try_from(self.connections.get()).unwrap_or(usize::MAX);
        taken < most && peer.is_none_or(|peer| peer.may_connect(most, taken))
    }

    /// Counts a connection of a client for as long as the value lives.
    #[must_use]
    pub fn connected(self: &Rc<Self>, peer: Option<Rc<Peer>>) -> ConnectionGuard {
        self.connections.set(self.connections.get() + 1);
        if let Some(peer) = &peer {
            peer.connects();
        }
        ConnectionGuard(self.clone(), peer)
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
    pub fn evict_idle(&self) {
        let installed = self.installed();
        for upstream in installed.all_upstreams() {
            upstream.forget_idle();
            upstream.check_health();
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
    pub fn close_upgraded(&self) {
        self.leaving.send_replace(true);
    }

    /// Tells when no more messages are taken.
    pub(super) fn leaving(&self) -> watch::Receiver<bool> {
        self.leaving.subscribe()
    }

    /// Ends the calls whose answers this proxy writes: each fails with [`Reason::Draining`].
    pub fn end_calls(&self) {
        self.ends.set(true);
        self.ended.notify_waiters();
    }

    /// Waits for an upstream until [`Worker::end_calls`].
    pub(super) async fn until_shutdown<T>(
        &self,
        waiting: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let message =
            "this proxy ends, and the server had not answered yet; it may have done its work";
        self.wait(waiting, message).await
    }

    /// Waits until then for the body of a request that no upstream has got yet.
    pub(super) async fn body_unless_it_ends<T>(
        &self,
        reading: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let message =
            "this proxy ends, and the request was not complete yet; it was sent to no server";
        self.wait(reading, message).await
    }

    async fn wait<T>(
        &self,
        waiting: impl Future<Output = T>,
        message: &'static str,
    ) -> Result<T, Failure> {
        let ends = async {
            if !self.ends.get() {
                self.ended.notified().await;
            }
        };
        // What is there by now is not thrown away. A worker is one thread: nothing ends calls between the look and the wait.
        tokio::select! {
            biased;
            came = waiting => Ok(came),
            () = ends => Err(Failure::new(Reason::Draining, message).advise(Advice::RetryAfter(1))),
        }
    }

    /// Waits for calls no longer: those in progress are about to be dropped, and it is not their clients' doing.
    pub fn abort_calls(&self) {
        self.patience.set(DrainMode::Over);
    }

    /// The trace of a call with these headers, if it has one.
    pub(super) fn trace(&self, plan: &Plan, headers: &http::HeaderMap) -> Option<Trace> {
        Trace::new(plan.trace.as_ref(), headers, &mut self.ids.borrow_mut())
    }

    /// Where spans are handed over, if anybody wants them.
    pub(super) fn spans(&self) -> Option<&Spans> {
        self.common.spans.as_ref()
    }

    pub(super) fn drain_mode(&self) -> DrainMode {
        self.patience.get()
    }

    /// The metrics of this worker, as they are now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let installed = self.installed();
        let mut shard = self.shard.borrow_mut();
        shard.gauges.client_connections = self.connections.get();
        shard.gauges.calls_in_flight = self.in_flight.get() as u64;
        shard.gauges.candidates_in_flight = self.shadow_runner.running() as u64;
        shard.gauges.calls_limit = self.per_worker(installed.plan.limits.in_flight) as u64;
        shard.gauges.connections_limit = self.most_connections() as u64;
        shard.gauges.pools = installed.pools();
        shard.upstream_calls = installed.calls();
        shard.addresses = installed.addresses();
        shard.mismatching = self.shadow_runner.mismatching(&self.common.names);
        shard.snapshot()
    }
}
