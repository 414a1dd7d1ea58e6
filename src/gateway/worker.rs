//! The state of one worker: the current plan, its upstream connections, its metrics.
//!
//! A worker is one thread with its own runtime. Apart from [`Shared`], its state is not shared and needs no locks.
//!
//! Used by `app`, `gateway` and `server`.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::{Notify, watch};

use super::cancellation::CancellationRegistry;
use super::client_requests::ClientRequests;
use super::event_sessions::EventSessions;
use super::log_levels::LogLevels;
use super::offload::Offload;
use super::peers::{Peer, Peers};
use super::recording::call_recorder::CallRecorder;
use super::request_origin::RequestOrigin;
use super::runtime_plan::{InstalledPlan, RuntimePlan};
use super::session_streams::SessionStreams;
use super::session_table::Sessions;
use super::shadow::{ComparePool, ShadowRunner};
use super::shared_state::Shared;
use super::suspended_calls::SuspendedCalls;
use crate::telemetry::metrics::{Shard, Snapshot};
use crate::telemetry::spans::Spans;
use crate::upstream::link::{AuthorizedLinks, Links};
use dualgauge_model::compare::{MismatchDetail, Mismatches, Noise, Salt};
use dualgauge_model::failure::{Advice, Failure, Reason};
use dualgauge_model::plan::Plan;
use dualgauge_model::rollout::{Generation, Glob};
use dualgauge_model::trace::{IdGenerator, Trace};
use dualgauge_net::{CountGuard, MemoryBudget, Tasks};

/// One worker.
#[derive(Debug)]
pub struct Worker {
    runtime_plan: RefCell<Rc<RuntimePlan>>,
    plan_changes: watch::Sender<()>,
    shard: RefCell<Shard>,
    shared: Shared,
    tasks: Tasks,
    shadow_runner: Rc<ShadowRunner>,
    call_recorder: CallRecorder,
    /// Request ids reserved for this worker.
    reserved_ids: RefCell<Range<u64>>,
    in_flight: Cell<usize>,
    connections: Cell<u64>,
    /// The number of open responses that are translated event by event.
    response_streams: Rc<Cell<usize>>,
    peers: Peers,
    drain_mode: Cell<DrainMode>,
    is_ending: Cell<bool>,
    calls_end: Notify,
    draining: watch::Sender<bool>,
    ids: RefCell<IdGenerator>,
    /// The links that belong to one `Authorization` of clients each.
    authorized_links: AuthorizedLinks,
}

/// The treatment of calls in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainMode {
    /// They may complete.
    Graceful,
    /// The drain exceeded its limit: calls dropped now are cut by the proxy.
    Aborting,
}

/// A counted client connection.
#[derive(Debug)]
pub struct ConnectionGuard(Rc<Worker>, Option<Rc<Peer>>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
        if let Some(peer) = &self.1 {
            peer.remove_connection();
        }
    }
}

impl ConnectionGuard {
    /// Counts the connection for its peer, which behind a PROXY header is known only now. Returns `None` when the peer
    /// has used up its share of connections.
    #[must_use]
    pub fn count(&mut self, origin: RequestOrigin) -> Option<RequestOrigin> {
        if self.1.is_none()
            && let Some(peer) = self.0.peer(origin.address())
        {
            let open = usize::try_from(self.0.connections() - 1).unwrap_or(usize::MAX);
            let is_allowed = peer.may_connect(self.0.max_connections(), open);
            peer.add_connection();
            self.1 = Some(peer);
            if !is_allowed {
                return None;
            }
        }
        Some(origin.with_peer(self.1.clone()))
    }
}

impl Worker {
    /// Creates a worker that serves `plan` with its share of the links. It keeps no link that its plan does not use.
    #[must_use]
    pub fn new(plan: Arc<Plan>, links: Links, shared: Shared) -> Rc<Worker> {
        shared.memory.set_limit(plan.limits.memory);
        let tasks = Tasks::default();
        let runner = Rc::new(ShadowRunner::new(plan.candidates));
        let runtime_plan = Rc::new(RuntimePlan::new(
            InstalledPlan {
                plan,
                links: &links,
                generation: Generation::default(),
            },
            &shared,
            None,
            &tasks,
        ));
        Rc::new(Worker {
            runtime_plan: RefCell::new(runtime_plan),
            plan_changes: watch::Sender::new(()),
            shard: RefCell::default(),
            ids: RefCell::new(shared.ids.clone()),
            call_recorder: CallRecorder::new(shared.recorder.clone()),
            shared,
            tasks,
            shadow_runner: runner,
            reserved_ids: RefCell::default(),
            in_flight: Cell::new(0),
            connections: Cell::new(0),
            response_streams: Rc::default(),
            peers: Peers::default(),
            drain_mode: Cell::new(DrainMode::Graceful),
            is_ending: Cell::new(false),
            calls_end: Notify::new(),
            draining: watch::Sender::new(false),
            authorized_links: AuthorizedLinks::default(),
        })
    }

    /// Replaces the plan for new calls. Unchanged upstreams keep their connections.
    pub fn install(&self, plan: Arc<Plan>, links: &Links, generation: Generation) {
        self.shared.memory.set_limit(plan.limits.memory);
        let previous = self.runtime_plan();
        let next = Rc::new(RuntimePlan::new(
            InstalledPlan {
                plan,
                links,
                generation,
            },
            &self.shared,
            Some(&previous),
            &self.tasks,
        ));
        previous.retire_in_favour_of(&next);
        self.shadow_runner.allow(next.plan.candidates);
        *self.runtime_plan.borrow_mut() = next.clone();
        self.plan_changes.send_replace(());
        // Mismatches of changed routes refer to rules that no longer apply.
        let is_unchanged = next.unchanged_routes(&previous);
        self.shadow_runner.forget(|route| !is_unchanged(route));
    }

    /// Returns true when the current plan has the route as the earlier plan has it.
    pub(super) fn keeps_route(&self, previous: &RuntimePlan, route: usize) -> bool {
        let now = self.runtime_plan();
        let name = &previous.plan.routes.route(route).name;
        now.unchanged_routes(previous)(name)
    }

    /// Drops the mismatches and failed candidates of the matching routes, and returns the routes' names.
    #[must_use]
    pub fn forget_mismatches(&self, routes: &Glob) -> Vec<Arc<str>> {
        self.shadow_runner.forget(|route| routes.fits(route))
    }

    /// Returns a receiver of the changes of the plan.
    pub(super) fn plan_changes(&self) -> watch::Receiver<()> {
        self.plan_changes.subscribe()
    }

    /// Returns the current plan. A call keeps the plan it starts with.
    #[must_use]
    pub fn runtime_plan(&self) -> Rc<RuntimePlan> {
        self.runtime_plan.borrow().clone()
    }

    /// Returns the tasks of this worker.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Returns the recorder of calls.
    pub(super) fn call_recorder(&self) -> &CallRecorder {
        &self.call_recorder
    }

    /// Returns the runner of candidates.
    pub(super) fn shadow_runner(&self) -> &Rc<ShadowRunner> {
        &self.shadow_runner
    }

    /// Returns the queue of long comparisons.
    pub(super) fn compare_pool(&self) -> &ComparePool {
        &self.shared.compare_pool
    }

    /// Returns the threads that parse large bodies.
    pub(super) fn offload(&self) -> &Offload {
        &self.shared.offload
    }

    /// Returns the salt for hashes of differing values.
    pub(super) fn salt(&self) -> Salt {
        self.shared.salt
    }

    /// Returns this worker's recent mismatches.
    #[must_use]
    pub fn mismatches(&self, detail: MismatchDetail) -> Mismatches {
        self.shadow_runner.mismatches(detail)
    }

    /// Returns this worker's learned noise by route.
    #[must_use]
    pub fn noise(&self) -> BTreeMap<Arc<str>, Noise> {
        self.shadow_runner.noise()
    }

    /// Stops all candidates and starts no more, because the process is shutting down.
    pub fn stop_comparing(&self) {
        self.shadow_runner.close();
    }

    /// Returns an id for a call to an upstream: small, and unique in the process.
    pub(super) fn next_request_id(&self) -> u64 {
        let mut ids = self.reserved_ids.borrow_mut();
        let id = ids.next();
        id.unwrap_or_else(|| {
            *ids = self.shared.request_ids.reserve_block();
            ids.next().unwrap_or(ids.end)
        })
    }

    /// Returns the session table.
    pub(super) fn sessions(&self) -> &Sessions {
        &self.shared.sessions
    }

    /// Returns the requests to clients that wait for a response.
    pub(super) fn client_requests(&self) -> &Arc<ClientRequests> {
        &self.shared.client_requests
    }

    /// Returns the links that belong to one `Authorization` of clients each.
    pub(super) fn authorized_links(&self) -> &AuthorizedLinks {
        &self.authorized_links
    }

    /// Returns the sessions of clients over event streams.
    pub(super) fn event_sessions(&self) -> &Arc<EventSessions> {
        &self.shared.event_sessions
    }

    /// Returns the event streams of sessions.
    pub(super) fn session_streams(&self) -> &Arc<SessionStreams> {
        &self.shared.session_streams
    }

    /// Returns the calls that wait for input of their clients.
    pub(super) fn suspended_calls(&self) -> &SuspendedCalls {
        &self.shared.suspended_calls
    }

    /// Returns the log levels of clients' sessions.
    pub(super) fn log_levels(&self) -> &LogLevels {
        &self.shared.log_levels
    }

    /// Returns the calls that clients can cancel.
    pub(super) fn cancellations(&self) -> &Arc<CancellationRegistry> {
        &self.shared.cancellations
    }

    /// Counts a call that starts or resumes, for the worker and its peer.
    pub(super) fn count_call_start(&self, peer: Option<&Rc<Peer>>) {
        self.in_flight.set(self.in_flight.get() + 1);
        if let Some(peer) = peer {
            peer.add_call();
        }
    }

    /// Counts a call that ends, or that only waits for its client.
    pub(super) fn count_call_end(&self, peer: Option<&Rc<Peer>>) {
        self.in_flight.set(self.in_flight.get() - 1);
        if let Some(peer) = peer {
            peer.remove_call();
        }
    }

    /// Counts a response that is translated event by event, until its end.
    pub(super) fn count_response_stream(&self) -> CountGuard {
        CountGuard::new(self.response_streams.clone())
    }

    /// Returns true when a call that has just been counted may proceed.
    pub(super) fn may_call(&self, peer: Option<&Rc<Peer>>) -> bool {
        let limit = self.per_worker(self.runtime_plan.borrow().plan.limits.in_flight);
        let previous = self.in_flight.get() - 1;
        previous < limit && peer.is_none_or(|peer| peer.may_call(limit, previous))
    }

    /// Returns the memory budget of all bodies of the process.
    pub(super) fn memory(&self) -> &MemoryBudget {
        &self.shared.memory
    }

    /// Returns this worker's share of a process-wide limit.
    pub(super) fn per_worker(&self, total: usize) -> usize {
        self.shared.share.of(total)
    }

    /// Returns the limit of open client connections.
    fn max_connections(&self) -> usize {
        self.per_worker(self.runtime_plan().budget.clients())
    }

    /// Returns the peer at an address; `None` for a trusted hop, whose calls belong to its own clients.
    #[must_use]
    pub fn peer(&self, address: IpAddr) -> Option<Rc<Peer>> {
        let runtime_plan = self.runtime_plan();
        let is_hop = runtime_plan.plan.rollout.clients.hops().trusts(address);
        (!is_hop).then(|| self.peers.at(address))
    }

    /// Returns the peer for the client that a trusted hop names in the request head.
    pub(super) fn caller(
        &self,
        plan: &Plan,
        hop: IpAddr,
        headers: &http::HeaderMap,
    ) -> Option<Rc<Peer>> {
        self.peer(plan.rollout.clients.hops().caller(hop, headers))
    }

    /// Returns true when another client connection may be opened, for this peer if it is known.
    #[must_use]
    pub fn has_capacity(&self, peer: Option<&Peer>) -> bool {
        let limit = self.max_connections();
        let open = usize::try_from(self.connections.get()).unwrap_or(usize::MAX);
        open < limit && peer.is_none_or(|peer| peer.may_connect(limit, open))
    }

    /// Counts a client connection until the guard is dropped.
    #[must_use]
    pub fn count_connection(self: &Rc<Self>, peer: Option<Rc<Peer>>) -> ConnectionGuard {
        self.connections.set(self.connections.get() + 1);
        if let Some(peer) = &peer {
            peer.add_connection();
        }
        ConnectionGuard(self.clone(), peer)
    }

    /// Returns the number of open client connections.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.connections.get()
    }

    /// Updates the metrics of this worker.
    pub fn count<T>(&self, write: impl FnOnce(&mut Shard) -> T) -> T {
        write(&mut self.shard.borrow_mut())
    }

    /// Closes idle upstream connections and runs the health checks that are due.
    pub fn evict_idle(&self) {
        let runtime_plan = self.runtime_plan();
        for upstream in runtime_plan.all_upstreams() {
            upstream.pool().forget_idle();
            upstream.pool().check_health();
        }
    }

    /// Closes upstream connections as their calls end, because the process is shutting down.
    pub fn stop_pooling(&self) {
        let runtime_plan = self.runtime_plan();
        for upstream in runtime_plan.all_upstreams() {
            upstream.pool().stop_pooling();
        }
    }

    /// Makes upgraded connections accept no more messages.
    pub fn close_upgraded(&self) {
        self.draining.send_replace(true);
    }

    /// Returns a receiver that becomes true when upgraded connections must accept no more messages.
    pub(super) fn drain_signal(&self) -> watch::Receiver<bool> {
        self.draining.subscribe()
    }

    /// Ends the calls whose responses the proxy writes itself: each fails with [`Reason::Draining`].
    pub fn end_calls(&self) {
        self.is_ending.set(true);
        self.calls_end.notify_waiters();
    }

    /// Waits for an upstream; fails once [`Worker::end_calls`] is called.
    pub(super) async fn until_shutdown<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let message =
            "the proxy is shutting down; the server had not answered and may have done the work";
        self.run_until_shutdown(future, message).await
    }

    /// Waits for a request body not yet sent to an upstream; fails once [`Worker::end_calls`] is called.
    pub(super) async fn body_until_shutdown<T>(
        &self,
        future: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        let message =
            "the proxy is shutting down; the request was not complete and reached no server";
        self.run_until_shutdown(future, message).await
    }

    async fn run_until_shutdown<T>(
        &self,
        future: impl Future<Output = T>,
        message: &'static str,
    ) -> Result<T, Failure> {
        let shutdown = async {
            if !self.is_ending.get() {
                self.calls_end.notified().await;
            }
        };
        // Biased, so that a result that is ready is not discarded. A worker is one thread, so `shutdown` cannot change
        // between the check and the wait.
        tokio::select! {
            biased;
            output = future => Ok(output),
            () = shutdown => Err(Failure::new(Reason::Draining, message).advise(Advice::RetryAfter(1))),
        }
    }

    /// Marks the remaining calls as cut by the proxy; the caller drops them next.
    pub fn abort_calls(&self) {
        self.drain_mode.set(DrainMode::Aborting);
    }

    /// Returns the trace context of a call with these headers, if it has one.
    pub(super) fn trace(&self, plan: &Plan, headers: &http::HeaderMap) -> Option<Trace> {
        Trace::new(plan.trace.as_ref(), headers, &mut self.ids.borrow_mut())
    }

    /// Returns the exporter of trace spans, if one is configured.
    pub(super) fn spans(&self) -> Option<&Spans> {
        self.shared.spans.as_ref()
    }

    pub(super) fn drain_mode(&self) -> DrainMode {
        self.drain_mode.get()
    }

    /// Returns a snapshot of this worker's metrics.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let runtime_plan = self.runtime_plan();
        let mut shard = self.shard.borrow_mut();
        shard.gauges.client_connections = self.connections.get();
        shard.gauges.calls_in_flight = self.in_flight.get() as u64;
        shard.gauges.candidates_in_flight = self.shadow_runner.running() as u64;
        shard.gauges.response_streams = self.response_streams.get() as u64;
        shard.gauges.calls_limit = self.per_worker(runtime_plan.plan.limits.in_flight) as u64;
        shard.gauges.connections_limit = self.max_connections() as u64;
        shard.gauges.pools = runtime_plan.pools();
        shard.upstream_calls = runtime_plan.calls();
        shard.addresses = runtime_plan.addresses();
        shard.mismatching = self.shadow_runner.mismatching(&self.shared.names);
        shard.snapshot()
    }
}
