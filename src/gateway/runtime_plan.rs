//! A plan with the worker-local state that serves it: upstreams, label handles and caches. Used throughout `gateway`.

mod connections;

use std::cell::{LazyCell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderName, Uri};

use super::labels::PlanLabels;
use super::request_target::parse_target;
use super::shared_state::Shared;
use super::token_cache::TokenCache;
use crate::telemetry::metrics::{LabelId, Pool};
use crate::upstream::link::Links;
use crate::upstream::{HttpUpstream, LegacySocketUpstream, Upstream};
use dualgauge_model::descriptors::{Budget, Descriptors};
use dualgauge_model::failure::Failure;
use dualgauge_model::pending::{LoginTemplate, Priority};
use dualgauge_model::plan::{Plan, Sharing, Transport, Unrouted};
use dualgauge_model::rollout::{Digest, FlagHistory, Generation, PlanStart};
use dualgauge_model::token::{Claims, TokenFault};
use dualgauge_net::Tasks;
use dualgauge_net::{AddressCounts, UpstreamCalls};
use dualgauge_patterns::schema::MemoryShare;
use dualgauge_patterns::side::Side;

use connections::{
    MetadataUpstreams, frames_upstream, limit_connections, link_upstream, metadata_upstreams,
    reuse_or_open, shadow_plan,
};

/// A plan with the state that one worker needs to serve it.
#[derive(Debug)]
pub struct RuntimePlan {
    /// The plan, shared by all workers.
    pub plan: Arc<Plan>,
    /// Connection limits derived from the open-file limit of the process.
    pub(super) budget: Budget,
    /// In the order of the plan.
    upstreams: Vec<Upstream>,
    /// The same servers with separate connections, for second runs.
    shadow_upstreams: Vec<Upstream>,
    /// Connections for the metadata of MCP servers that are reached over links, by the index of the upstream.
    metadata_upstreams: MetadataUpstreams,
    labels: PlanLabels,
    /// Generation of the plan.
    generation: Generation,
    /// Earlier flags, for open sessions.
    flag_history: FlagHistory,
    /// Parsed target of translated calls by route, cached where all calls share one target.
    targets: Vec<OnceCell<PathAndQuery>>,
    /// Verified tokens, by the keys of this plan.
    tokens: RefCell<TokenCache>,
    /// Set if any server may send its caller messages during a call.
    sends_during_calls: bool,
    /// Set if any server has links for each `Authorization` of clients.
    has_authorized_links: bool,
    /// The headers of clients that logins of links take values from.
    login_headers: Vec<HeaderName>,
    /// The plan without its upstreams, for reports.
    for_reports: OnceCell<Rc<RuntimePlan>>,
}

/// Counts the memory of schema validations in the body memory budget.
fn account_validations(plan: &Plan, shared: &Shared) {
    let memory: Arc<dyn MemoryShare> = Arc::new(shared.memory.clone());
    for route in plan.routes.routes() {
        let both = [&route.schema.params, &route.schema.result];
        for schema in both.into_iter().flatten() {
            schema.count_memory_in(&memory);
        }
    }
}

/// A plan to install, with the links of its upstreams.
pub(super) struct InstalledPlan<'a> {
    pub(super) plan: Arc<Plan>,
    pub(super) links: &'a Links,
    pub(super) generation: Generation,
}

impl RuntimePlan {
    /// Creates the state that serves a plan. Unchanged upstreams keep the connections of the previous plan.
    pub(super) fn new(
        installed: InstalledPlan<'_>,
        shared: &Shared,
        previous: Option<&RuntimePlan>,
        tasks: &Tasks,
    ) -> RuntimePlan {
        let InstalledPlan {
            plan,
            links,
            generation,
        } = installed;
        let files = Descriptors {
            limit: shared.open_files,
            workers: shared.share.workers,
        };
        let budget = Budget::from_plan(&plan, files);
        let servers = plan.upstreams.all.iter().enumerate();
        let upstreams = servers
            .clone()
            .map(|(index, upstream)| {
                let previous = previous.map(|previous| &previous.upstreams[..]);
                let upstream = &limit_connections(upstream, upstream.connections, budget);
                match (links.get(index), &upstream.transport) {
                    (Some(link), _) => link_upstream(upstream, link, Priority::Client),
                    (None, Transport::Frames(frames)) => {
                        frames_upstream(upstream, frames, links.stats(index), previous)
                    }
                    (None, _) => Upstream::Http(reuse_or_open(upstream, previous, tasks)),
                }
            })
            .collect();
        let shadow_upstreams = servers
            .map(|(index, upstream)| {
                let previous = previous.map(|previous| &previous.shadow_upstreams[..]);
                match (links.get(index), &upstream.transport) {
                    (Some(link), _) => link_upstream(upstream, link, Priority::Candidate),
                    // Second runs have sockets of their own, which are not part of the link metrics.
                    (None, Transport::Frames(frames)) => {
                        let upstream = &limit_connections(upstream, upstream.connections, budget);
                        frames_upstream(upstream, frames, None, previous)
                    }
                    (None, _) => {
                        let upstream = shadow_plan(upstream, plan.candidates.concurrency, budget);
                        Upstream::Http(reuse_or_open(&upstream, previous, tasks))
                    }
                }
            })
            .collect();
        let before = previous.map(|previous| &previous.metadata_upstreams);
        let metadata_upstreams = metadata_upstreams(&plan, before, budget, tasks);
        account_validations(&plan, shared);
        RuntimePlan {
            flag_history: flag_history(&plan, generation, shared, previous),
            login_headers: login_headers(&plan),
            labels: PlanLabels::new(&plan, &shared.names),
            has_authorized_links: any_server(&plan, has_authorized_links),
            targets: vec![OnceCell::new(); plan.routes.routes().len()],
            sends_during_calls: any_server(&plan, Transport::sends_during_calls),
            plan,
            budget,
            upstreams,
            shadow_upstreams,
            metadata_upstreams,
            generation,
            tokens: RefCell::default(),
            for_reports: OnceCell::new(),
        }
    }

    /// Returns the same plan without upstreams, which keeps no connection or link open. The record of a stream that
    /// outlives the plan needs only its names.
    pub(super) fn for_reports(&self) -> &Rc<RuntimePlan> {
        self.for_reports.get_or_init(|| {
            Rc::new(RuntimePlan {
                plan: self.plan.clone(),
                budget: self.budget,
                upstreams: Vec::new(),
                shadow_upstreams: Vec::new(),
                metadata_upstreams: MetadataUpstreams::default(),
                labels: self.labels.clone(),
                generation: self.generation,
                flag_history: FlagHistory::default(),
                targets: Vec::new(),
                tokens: RefCell::default(),
                sends_during_calls: self.sends_during_calls,
                has_authorized_links: self.has_authorized_links,
                login_headers: self.login_headers.clone(),
                for_reports: OnceCell::new(),
            })
        })
    }

    /// Returns the target of a translated call, from the cache of the route where possible.
    pub(super) fn target(&self, route: usize, written: String) -> Result<Uri, Failure> {
        if !self.plan.routes.route(route).rest_call.has_one_target() {
            return parse_target(written).map(Uri::from);
        }
        let existing = &self.targets[route];
        let target = match existing.get() {
            Some(target) => target,
            None => {
                let target = parse_target(written)?;
                existing.get_or_init(|| target)
            }
        };
        Ok(Uri::from(target.clone()))
    }

    /// Returns true when a server may send its caller messages during a call.
    pub(super) fn sends_during_calls(&self) -> bool {
        self.sends_during_calls
    }

    /// Returns the headers of clients that logins of links take values from.
    pub(super) fn login_headers(&self) -> &[HeaderName] {
        &self.login_headers
    }

    /// Returns true when a server has links for each `Authorization` of clients.
    pub(super) fn has_authorized_links(&self) -> bool {
        self.has_authorized_links
    }

    /// Returns the upstreams with connections of this worker.
    pub(super) fn all_upstreams(&self) -> impl Iterator<Item = &Rc<HttpUpstream>> {
        let all = self.upstreams.iter().chain(&self.shadow_upstreams);
        all.filter_map(Upstream::http)
            .chain(self.metadata_upstreams.values())
    }

    /// Returns the servers of frames, with the sockets of clients and those of second runs.
    fn all_frames(&self) -> impl Iterator<Item = &Rc<LegacySocketUpstream>> {
        let all = self.upstreams.iter().chain(&self.shadow_upstreams);
        all.filter_map(Upstream::frames)
    }

    /// Returns the upstream of a side for calls of a route, or for unrouted calls.
    #[must_use]
    pub fn upstream(&self, route: Option<usize>, side: Side) -> Option<&Upstream> {
        self.upstreams.get(self.plan.upstreams.of(route, side)?)
    }

    /// Returns the upstream at an index of the plan.
    pub(super) fn upstream_at(&self, index: usize) -> Option<&Upstream> {
        self.upstreams.get(index)
    }

    /// Returns the connections for the protected resource metadata of an upstream.
    pub(super) fn metadata_upstream(&self, index: usize) -> Option<&Rc<HttpUpstream>> {
        let own = self.upstreams.get(index).and_then(Upstream::http);
        own.or_else(|| self.metadata_upstreams.get(&index))
    }

    /// Returns the upstream of unrouted legacy frames, if the plan passes them through.
    pub(super) fn default_frames_upstream(&self) -> Option<&Upstream> {
        let index = self.plan.upstreams.frames?;
        let passes = self.plan.unrouted == Unrouted::Passthrough;
        self.upstreams.get(index).filter(|_| passes)
    }

    /// Returns a predicate for route names: true when the route translates and compares as in the earlier plan.
    pub(super) fn unchanged_routes<'i>(
        &'i self,
        previous: &'i RuntimePlan,
    ) -> impl Fn(&str) -> bool + use<'i> {
        // Lazy, because the predicate is rarely called.
        let now = LazyCell::new(|| route_indexes(&self.plan));
        let then = LazyCell::new(|| route_indexes(&previous.plan));
        move |name| match (now.get(name), then.get(name)) {
            (Some(now), Some(then)) => self.plan.compares_like(*now, &previous.plan, *then),
            (None, _) | (_, None) => false,
        }
    }

    /// Retires this plan's upstreams that `next` does not use: stops their pools and closes their legacy sockets.
    pub(super) fn retire_in_favour_of(&self, next: &RuntimePlan) {
        let upstreams = self.all_upstreams();
        for old in upstreams.filter(|old| !next.all_upstreams().any(|new| Rc::ptr_eq(old, new))) {
            old.pool().stop_pooling();
        }
        for old in self.all_frames() {
            if !next.all_frames().any(|new| new.is_same_server(old)) {
                old.end();
            }
        }
    }

    /// Returns the upstream of an event stream; only HTTP upstreams have streams.
    #[must_use]
    pub fn upstream_of_stream(&self, stream: usize, side: Side) -> Option<&Rc<HttpUpstream>> {
        let index = self.plan.upstreams.of_stream(stream, side)?;
        self.upstreams.get(index)?.http()
    }

    /// Returns the claims of a token by its digest; calls `read` to verify the signature if they are not cached.
    pub(super) fn signed_claims(
        &self,
        token: Digest,
        read: impl FnOnce() -> Result<Claims, TokenFault>,
    ) -> Result<Rc<Claims>, TokenFault> {
        self.tokens.borrow_mut().claims(token, read)
    }

    /// Returns the upstream of a side for second runs.
    pub(super) fn shadow_upstream(&self, route: Option<usize>, side: Side) -> Option<&Upstream> {
        self.shadow_upstreams
            .get(self.plan.upstreams.of(route, side)?)
    }

    /// Returns the upstream at an index of the plan for second runs.
    pub(super) fn shadow_upstream_at(&self, index: usize) -> Option<&Upstream> {
        self.shadow_upstreams.get(index)
    }

    /// Returns the connection counts of each side.
    pub(super) fn pools(&self) -> [Pool; Side::ALL.len()] {
        let mut pools = [Pool::default(); Side::ALL.len()];
        for upstream in self.all_upstreams() {
            pools[upstream.plan().side as usize].add(Pool {
                open: upstream.pool().open() as u64,
                idle: upstream.pool().idle() as u64,
            });
        }
        for upstream in self.all_frames() {
            pools[Side::Rest as usize].add(Pool {
                open: upstream.open() as u64,
                idle: 0,
            });
        }
        pools
    }

    /// Returns the calls of clients by upstream; second runs have separate limits and are not included.
    pub(super) fn calls(&self) -> BTreeMap<LabelId, UpstreamCalls> {
        let servers = self.labels.upstreams.iter().zip(&self.upstreams);
        let calls = servers.filter_map(|(label, server)| {
            let calls = match (server.http(), server.frames()) {
                (Some(http), _) => http.pool().calls(),
                (None, Some(frames)) => UpstreamCalls {
                    sent: frames.open() as u64,
                    waiting: 0,
                    limit: frames.plan().connections as u64,
                },
                (None, None) => return None,
            };
            Some((*label, calls))
        });
        calls.collect()
    }

    /// Returns the address counts of HTTP upstreams by name.
    pub(super) fn addresses(&self) -> BTreeMap<LabelId, AddressCounts> {
        let mut all: BTreeMap<LabelId, AddressCounts> = BTreeMap::new();
        for servers in [&self.upstreams, &self.shadow_upstreams] {
            for (label, server) in self.labels.upstreams.iter().zip(servers) {
                if let Some(http) = server.http() {
                    all.entry(*label).or_default().add(http.pool().addresses());
                }
            }
        }
        all
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

    /// Returns the label of a flag's guard, if it has one.
    pub(super) fn guard_label(&self, flag: usize) -> Option<LabelId> {
        let flags = &self.plan.rollout.flags;
        flags.get(flag)?.guard.as_ref()?;
        self.labels.flags.get(flag).copied()
    }

    /// Returns the label of the flag that decided; `LabelId::NONE` for none.
    pub(super) fn flag_label(&self, flag: Option<usize>) -> LabelId {
        flag.and_then(|index| self.labels.flags.get(index))
            .copied()
            .unwrap_or(LabelId::NONE)
    }

    /// Returns the generation of the plan.
    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the earlier flags.
    pub(super) fn flag_history(&self) -> &FlagHistory {
        &self.flag_history
    }

    /// Returns the label of the route prefix that contains an unrouted path.
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

/// Returns true if a transport has a link for each `Authorization` of clients.
fn has_authorized_links(transport: &Transport) -> bool {
    transport.sharing() == Sharing::Authorization
}

/// Returns the headers of clients that logins of links take values from, each once.
fn login_headers(plan: &Plan) -> Vec<HeaderName> {
    let links = plan.upstreams.all.iter();
    let links = links.filter_map(|server| server.transport.link());
    let logins = links.filter_map(|link| link.login.as_ref());
    let names: BTreeSet<&str> = logins
        .flat_map(LoginTemplate::headers)
        .map(HeaderName::as_str)
        .collect();
    let names = names.into_iter();
    names
        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
        .collect()
}

/// Returns true if a server of the plan has such a transport.
fn any_server(plan: &Plan, is_wanted: impl Fn(&Transport) -> bool) -> bool {
    let mut servers = plan.upstreams.all.iter();
    servers.any(|server| is_wanted(&server.transport))
}

/// Returns the index of each route by its name.
fn route_indexes(plan: &Plan) -> BTreeMap<&str, usize> {
    let routes = plan.routes.routes().iter().enumerate();
    let indexes = routes.map(|(index, route)| (route.name.as_str(), index));
    indexes.collect()
}

/// Returns the flags of earlier plans, for the sessions that started with them.
fn flag_history(
    plan: &Plan,
    generation: Generation,
    shared: &Shared,
    previous: Option<&RuntimePlan>,
) -> FlagHistory {
    let Some(previous) = previous else {
        return FlagHistory::default();
    };
    let at = shared.sessions.now();
    let start = PlanStart { generation, at };
    let flags = &previous.plan.rollout.flags;
    let history = &previous.flag_history;
    plan.rollout.history_after(history, flags, start)
}
