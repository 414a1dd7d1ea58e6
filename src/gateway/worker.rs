//! What one worker holds: the plan that new calls begin with, its upstream connections, its metrics.
//!
//! A worker is one thread with a runtime of its own; nothing here is shared, so nothing here is locked.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::domain::plan::{Plan, UpstreamPlan};
use crate::domain::side::Side;
use crate::telemetry::metrics::{LabelId, Names, Shard, Snapshot};
use crate::upstream::{HttpUpstream, Tasks};

/// One worker.
#[derive(Debug)]
pub struct Worker {
    installed: RefCell<Rc<Installed>>,
    shard: RefCell<Shard>,
    names: Arc<Names>,
    tasks: Tasks,
    next_id: Cell<u64>,
    in_flight: Cell<usize>,
    connections: Cell<u64>,
    patience: Cell<Patience>,
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
    upstreams: Vec<Rc<HttpUpstream>>,
    labels: PlanLabels,
}

/// The label handles of a plan, resolved once.
#[derive(Debug)]
struct PlanLabels {
    routes: Vec<LabelId>,
    clients: Vec<LabelId>,
    prefixes: Vec<LabelId>,
    unrouted: LabelId,
    other: LabelId,
}

impl Installed {
    fn new(plan: Arc<Plan>, names: &Names, before: Option<&Installed>, tasks: &Tasks) -> Installed {
        let upstreams = plan.upstreams.all.iter().map(|wanted| {
            let mut kept = before.iter().flat_map(|before| &before.upstreams);
            let kept = kept.find(|kept| kept.plan() == wanted);
            kept.map_or_else(|| open(wanted, tasks), Rc::clone)
        });
        let upstreams = upstreams.collect();
        let labels = PlanLabels {
            routes: plan
                .routes
                .routes()
                .iter()
                .map(|route| names.intern(&route.name))
                .collect(),
            clients: plan
                .rollout
                .clients
                .all()
                .iter()
                .map(|client| names.intern(&client.name))
                .collect(),
            prefixes: plan
                .lifecycle
                .prefixes
                .all()
                .iter()
                .map(|prefix| names.intern(prefix))
                .collect(),
            unrouted: names.intern("unrouted"),
            other: names.intern(crate::domain::rollout::OTHER),
        };
        Installed {
            plan,
            upstreams,
            labels,
        }
    }

    /// The upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn upstream(&self, route: Option<usize>, side: Side) -> Option<&Rc<HttpUpstream>> {
        self.upstreams.get(self.plan.upstreams.of(route, side)?)
    }

    /// How many connections to the servers of a side are open.
    fn open(&self, side: Side) -> u64 {
        let ours = self
            .upstreams
            .iter()
            .filter(|upstream| upstream.plan().side == side);
        ours.map(|upstream| upstream.open() as u64).sum()
    }

    pub(super) fn route_label(&self, route: Option<usize>) -> LabelId {
        route
            .and_then(|index| self.labels.routes.get(index))
            .copied()
            .unwrap_or(self.labels.unrouted)
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

fn open(plan: &UpstreamPlan, tasks: &Tasks) -> Rc<HttpUpstream> {
    Rc::new(HttpUpstream::new(plan.clone(), tasks.clone()))
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
    /// A worker that serves a plan.
    #[must_use]
    pub fn new(plan: Arc<Plan>, names: Arc<Names>) -> Rc<Worker> {
        let tasks = Tasks::default();
        let installed = Rc::new(Installed::new(plan, &names, None, &tasks));
        Rc::new(Worker {
            installed: RefCell::new(installed),
            shard: RefCell::default(),
            names,
            tasks,
            next_id: Cell::new(1),
            in_flight: Cell::new(0),
            connections: Cell::new(0),
            patience: Cell::new(Patience::Waits),
        })
    }

    /// Swaps the plan for calls that begin from now on. Upstreams that did not change keep their connections.
    pub fn install(&self, plan: Arc<Plan>) {
        let before = self.installed();
        let next = Rc::new(Installed::new(
            plan,
            &self.names,
            Some(&before),
            &self.tasks,
        ));
        for old in &before.upstreams {
            if !next.upstreams.iter().any(|new| Rc::ptr_eq(old, new)) {
                old.stop_pooling();
            }
        }
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

    /// An id for a call to an upstream: small, and never used twice by this worker.
    pub(super) fn mint(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
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
        for upstream in &installed.upstreams {
            upstream.forget_idle();
        }
    }

    /// Closes upstream connections as their calls end, before the program ends.
    pub fn stop_pooling(&self) {
        let installed = self.installed();
        for upstream in &installed.upstreams {
            upstream.stop_pooling();
        }
    }

    /// Waits for calls no longer: those in progress are about to be dropped, and it is not their clients' doing.
    pub fn give_up(&self) {
        self.patience.set(Patience::Over);
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
        shard.gauges.rest_upstream_connections = installed.open(Side::Rest);
        shard.gauges.rpc_upstream_connections = installed.open(Side::Rpc);
        shard.snapshot()
    }
}
