//! A plan with what one worker needs to serve it: its upstreams, and the handles of its labels.

use std::cell::{LazyCell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use http::Uri;
use http::uri::PathAndQuery;

use super::identity::TokenCache;
use super::labels::PlanLabels;
use super::passthrough::parse_target;
use super::worker::Shared;
use crate::domain::descriptors::{Budget, Descriptors};
use crate::domain::failure::Failure;
use crate::domain::pending::Priority;
use crate::domain::plan::{FramesPlan, Plan, Transport, Unrouted, UpstreamPlan};
use crate::domain::rollout::{Digest, FlagHistory, Generation};
use crate::domain::schema::MemoryShare;
use crate::domain::side::Side;
use crate::domain::token::{Claims, TokenFault};
use crate::telemetry::metrics::{AddressCounts, LabelId, Pool, UpstreamCalls};
use crate::upstream::link::{LinkSharing, LinkStats, LinkUpstream, Links};
use crate::upstream::{HttpUpstream, LegacySocketUpstream, Tasks, Upstream};

/// A plan with what a worker needs to serve it.
#[derive(Debug)]
pub struct RuntimePlan {
    /// The plan.
    pub plan: Arc<Plan>,
    /// The connections that the limit of open files allows.
    pub(super) budget: Budget,
    /// In the order of the plan.
    upstreams: Vec<Upstream>,
    /// The same servers, over connections of their own for what is run only to compare.
    shadow_upstreams: Vec<Upstream>,
    labels: PlanLabels,
    /// The number of the plan.
    generation: Generation,
    /// What the flags were before, for open sessions.
    past: FlagHistory,
    /// By route, the target of translated calls where it is the same for all of them: it is parsed once.
    targets: Vec<OnceCell<PathAndQuery>>,
    /// Tokens that a key of this plan has signed.
    tokens: RefCell<TokenCache>,
    /// Whether a server may tell a caller something in the response stream of a call.
    has_response_streams: bool,
}

/// Counts the memory that validations against schemas take, as that of bodies.
fn count_validations(plan: &Plan, common: &Shared) {
    let room: Arc<dyn MemoryShare> = Arc::new(common.memory.clone());
    for route in plan.routes.routes() {
        let both = [&route.schema.params, &route.schema.result];
        for schema in both.into_iter().flatten() {
            schema.count_memory_in(&room);
        }
    }
}

impl RuntimePlan {
    pub(super) fn new(
        (plan, links, generation): (Arc<Plan>, &Links, Generation),
        common: &Shared,
        before: Option<&RuntimePlan>,
        tasks: &Tasks,
    ) -> RuntimePlan {
        let files = Descriptors {
            limit: common.open_files,
            workers: common.share.workers,
        };
        let budget = Budget::from_plan(&plan, files);
        let servers = plan.upstreams.all.iter().enumerate();
        let upstreams = servers
            .clone()
            .map(|(place, wanted)| {
                let before = before.map(|before| &before.upstreams[..]);
                let wanted = &lowered(wanted, wanted.connections, budget);
                match (links.of(place), &wanted.transport) {
                    (Some(link), _) => linked(wanted, link, Priority::Client),
                    (None, Transport::Frames(frames)) => {
                        framed((wanted, frames), links.stats(place), before)
                    }
                    (None, _) => Upstream::Http(kept_or_opened(wanted, before, tasks)),
                }
            })
            .collect();
        let concurrency = plan.candidates.concurrency;
        let shadow_upstreams = servers
            .map(
                |(place, wanted)| match (links.of(place), &wanted.transport) {
                    (Some(link), _) => linked(wanted, link, Priority::Candidate),
                    // Nothing of frames is run only to compare.
                    (None, Transport::Frames(frames)) => {
                        framed((wanted, frames), links.stats(place), None)
                    }
                    (None, _) => {
                        let before = before.map(|before| &before.shadow_upstreams[..]);
                        let mut wanted = lowered(wanted, concurrency, budget);
                        // What is run only to compare is refused by no breaker, and asks for no sign of health.
                        (wanted.watch.breaker, wanted.watch.check) = (None, None);
                        Upstream::Http(kept_or_opened(&wanted, before, tasks))
                    }
                },
            )
            .collect();
        let labels = PlanLabels::new(&plan, &common.names);
        let past = before.map_or_else(FlagHistory::default, |before| {
            let now = common.sessions.now();
            let flags = &*before.plan.rollout.flags;
            before
                .past
                .followed((flags, &plan.rollout), (generation, now))
        });
        count_validations(&plan, common);
        let targets = plan.routes.routes().iter().map(|_| OnceCell::new());
        let mut servers = plan.upstreams.all.iter();
        RuntimePlan {
            targets: targets.collect(),
            has_response_streams: servers.any(|server| server.transport.has_response_streams()),
            plan,
            budget,
            upstreams,
            shadow_upstreams,
            labels,
            generation,
            past,
            tokens: RefCell::default(),
        }
    }

    /// The target of a call that has been written for a route.
    pub(super) fn target(&self, route: usize, written: String) -> Result<Uri, Failure> {
        if !self.plan.routes.route(route).rest_call.has_one_target() {
            return parse_target(written).map(Uri::from);
        }
        let kept = &self.targets[route];
        let target = match kept.get() {
            Some(target) => target,
            None => {
                let target = parse_target(written)?;
                kept.get_or_init(|| target)
            }
        };
        Ok(Uri::from(target.clone()))
    }

    /// Whether a server may tell a caller something in the response stream of a call.
    pub(super) fn has_response_streams(&self) -> bool {
        self.has_response_streams
    }

    /// Those that have connections of this worker.
    pub(super) fn all_upstreams(&self) -> impl Iterator<Item = &Rc<HttpUpstream>> {
        let all = self.upstreams.iter().chain(&self.shadow_upstreams);
        all.filter_map(Upstream::http)
    }

    /// The upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn upstream(&self, route: Option<usize>, side: Side) -> Option<&Upstream> {
        self.upstreams.get(self.plan.upstreams.of(route, side)?)
    }

    /// The upstream at a place of the plan.
    pub(super) fn upstream_at(&self, place: usize) -> Option<&Upstream> {
        self.upstreams.get(place)
    }

    /// What takes frames of no route, where they may pass.
    pub(super) fn default_frames_upstream(&self) -> Option<&Upstream> {
        let place = self.plan.upstreams.frames?;
        let passes = self.plan.unrouted == Unrouted::Passthrough;
        self.upstreams.get(place).filter(|_| passes)
    }

    /// Returns what tells whether a route of some name is translated and compared as an earlier plan does it.
    pub(super) fn routes_kept_from<'i>(
        &'i self,
        before: &'i RuntimePlan,
    ) -> impl Fn(&str) -> bool + use<'i> {
        // Mostly nobody asks, so the names are not sorted before the first question.
        let now = LazyCell::new(|| places(&self.plan));
        let then = LazyCell::new(|| places(&before.plan));
        move |name| match (now.get(name), then.get(name)) {
            (Some(now), Some(then)) => self.plan.compares_like(*now, (&before.plan, *then)),
            (None, _) | (_, None) => false,
        }
    }

    /// Another plan holds in place of this one.
    pub(super) fn retire_in_favour_of(&self, next: &RuntimePlan) {
        let pooled = self.all_upstreams();
        for old in pooled.filter(|old| !next.all_upstreams().any(|new| Rc::ptr_eq(old, new))) {
            old.stop_pooling();
        }
        for old in self.upstreams.iter().filter_map(Upstream::frames) {
            let mut now = next.upstreams.iter().filter_map(Upstream::frames);
            if !now.any(|new| new.is_same_server(old)) {
                old.end();
            }
        }
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
    pub(super) fn shadow_upstream(&self, route: Option<usize>, side: Side) -> Option<&Upstream> {
        self.shadow_upstreams
            .get(self.plan.upstreams.of(route, side)?)
    }

    /// The connections to the servers of each side.
    pub(super) fn pools(&self) -> [Pool; Side::ALL.len()] {
        let mut pools = [Pool::default(); Side::ALL.len()];
        for upstream in self.all_upstreams() {
            pools[upstream.plan().side as usize].add(Pool {
                open: upstream.open() as u64,
                idle: upstream.idle() as u64,
            });
        }
        let framed = self.upstreams.iter().filter_map(Upstream::frames);
        for upstream in framed {
            pools[Side::Rest as usize].add(Pool {
                open: upstream.open() as u64,
                idle: 0,
            });
        }
        pools
    }

    /// The calls of clients at upstreams, by the names of these; what is run only to compare has places of its own.
    pub(super) fn calls(&self) -> BTreeMap<LabelId, UpstreamCalls> {
        let servers = self.labels.upstreams.iter().zip(&self.upstreams);
        let calls = servers.filter_map(|(label, server)| {
            let calls = match (server.http(), server.frames()) {
                (Some(http), _) => http.calls(),
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

    /// How the addresses of HTTP upstreams stand, by the names of these.
    pub(super) fn addresses(&self) -> BTreeMap<LabelId, AddressCounts> {
        let mut all: BTreeMap<LabelId, AddressCounts> = BTreeMap::new();
        for servers in [&self.upstreams, &self.shadow_upstreams] {
            for (label, server) in self.labels.upstreams.iter().zip(servers) {
                if let Some(http) = server.http() {
                    all.entry(*label).or_default().add(http.addresses());
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
    pub(super) fn generation(&self) -> Generation {
        self.generation
    }

    /// What the flags were before.
    pub(super) fn flag_history(&self) -> &FlagHistory {
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

/// Returns the place of each route in the table, by its name.
fn places(plan: &Plan) -> BTreeMap<&str, usize> {
    let routes = plan.routes.routes().iter().enumerate();
    let places = routes.map(|(place, route)| (route.name.as_str(), place));
    places.collect()
}

fn linked(wanted: &UpstreamPlan, link: &LinkSharing, rank: Priority) -> Upstream {
    Upstream::Link(LinkUpstream::new(wanted.clone(), link.clone(), rank))
}

fn framed(
    (wanted, frames): (&UpstreamPlan, &FramesPlan),
    standing: Option<Arc<LinkStats>>,
    before: Option<&[Upstream]>,
) -> Upstream {
    let before = before.into_iter().flatten();
    let mut before = before.filter_map(Upstream::frames);
    let before = before.find(|before| before.plan().is_same_server(wanted));
    Upstream::Frames(match before {
        Some(kept) if kept.plan() == wanted => kept.clone(),
        before => {
            // Nobody looks at sockets whose upstream is no part of what the process follows.
            let standing = standing.unwrap_or_else(|| Arc::new(LinkStats::of_frames()));
            let new = LegacySocketUpstream::new(wanted.clone(), frames, standing);
            Rc::new(match before {
                Some(before) => new.following(before),
                None => new,
            })
        }
    })
}

/// Returns the plan of an upstream with so many `connections`, or with as many of them as the limit of open files allows.
fn lowered(wanted: &UpstreamPlan, connections: usize, budget: Budget) -> UpstreamPlan {
    UpstreamPlan {
        connections: budget.connections(connections),
        ..wanted.clone()
    }
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
