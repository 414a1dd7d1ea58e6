//! The upstreams of a worker's plan: opened, or kept from the previous plan. Used by `runtime_plan`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::upstream::link::{LinkSharing, LinkStats, LinkUpstream};
use crate::upstream::{HttpUpstream, LegacySocketUpstream, Upstream};
use dualgauge_model::descriptors::Budget;
use dualgauge_model::pending::Priority;
use dualgauge_model::plan::{Credentials, FramesPlan, Plan, Transport, UpstreamPlan};
use dualgauge_net::Tasks;
use dualgauge_patterns::side::Side;

/// Concurrent requests of a worker for the metadata of an MCP server, and waiting ones.
const METADATA_CONNECTIONS: usize = 2;
const METADATA_QUEUE: usize = 64;

/// Connections for the metadata of MCP servers that are reached over links, by the index of the upstream.
pub(super) type MetadataUpstreams = BTreeMap<usize, Rc<HttpUpstream>>;

/// Returns the upstream behind a link, for the calls of a worker.
pub(super) fn link_upstream(
    upstream: &UpstreamPlan,
    link: &LinkSharing,
    priority: Priority,
) -> Upstream {
    Upstream::Link(LinkUpstream::new(upstream.clone(), link.clone(), priority))
}

/// Returns the upstream of legacy frames; that of the previous plan where it is the same server.
pub(super) fn frames_upstream(
    upstream: &UpstreamPlan,
    frames: &FramesPlan,
    stats: Option<Arc<LinkStats>>,
    previous: Option<&[Upstream]>,
) -> Upstream {
    let previous = previous.into_iter().flatten();
    let mut previous = previous.filter_map(Upstream::frames);
    let previous = previous.find(|previous| previous.plan().is_same_server(upstream));
    Upstream::Frames(match previous {
        Some(existing) if existing.plan() == upstream => existing.clone(),
        previous => {
            // An upstream without entry in the process-wide status gets statistics that are not reported.
            let stats = stats.unwrap_or_else(|| Arc::new(LinkStats::for_legacy_sockets()));
            let new = LegacySocketUpstream::new(upstream.clone(), frames, stats);
            Rc::new(match previous {
                Some(previous) => new.following(previous),
                None => new,
            })
        }
    })
}

/// Returns the plan of an upstream with at most `connections`, and no more than the open-file limit allows.
pub(super) fn limit_connections(
    upstream: &UpstreamPlan,
    connections: usize,
    budget: Budget,
) -> UpstreamPlan {
    UpstreamPlan {
        connections: budget.connections(connections),
        ..upstream.clone()
    }
}

/// Returns the plan of an upstream for second runs, which have no circuit breaker and start no health checks.
pub(super) fn shadow_plan(
    upstream: &UpstreamPlan,
    connections: usize,
    budget: Budget,
) -> UpstreamPlan {
    let mut upstream = limit_connections(upstream, connections, budget);
    (upstream.watch.breaker, upstream.watch.check) = (None, None);
    upstream
}

/// Returns connections for the metadata of the MCP server of the RPC side, if it is reached over a link. They are few,
/// and carry no credentials.
pub(super) fn metadata_upstreams(
    plan: &Plan,
    previous: Option<&MetadataUpstreams>,
    budget: Budget,
    tasks: &Tasks,
) -> MetadataUpstreams {
    let index = plan.upstreams.of(None, Side::Rpc);
    let server = index.and_then(|index| Some((index, plan.upstreams.all.get(index)?)));
    let server = server.filter(|(_, server)| matches!(server.transport, Transport::Mcp(_)));
    let opened = server.map(|(index, server)| {
        let server = UpstreamPlan {
            credentials: Credentials::Drop,
            queue: METADATA_QUEUE,
            ..limit_connections(server, METADATA_CONNECTIONS, budget)
        };
        let mut existing = previous.into_iter().flat_map(BTreeMap::values);
        let existing = existing
            .find(|existing| *existing.plan() == server)
            .cloned();
        let open = || Rc::new(HttpUpstream::new(server.clone(), tasks.clone()));
        (index, existing.unwrap_or_else(open))
    });
    opened.into_iter().collect()
}

/// Returns the upstream of the previous plan if it has the same plan, or opens it.
pub(super) fn reuse_or_open(
    upstream: &UpstreamPlan,
    previous: Option<&[Upstream]>,
    tasks: &Tasks,
) -> Rc<HttpUpstream> {
    let previous = previous.into_iter().flatten();
    let mut previous = previous.filter_map(Upstream::http);
    let existing = previous.find(|existing| existing.plan() == upstream);
    existing.map_or_else(
        || Rc::new(HttpUpstream::new(upstream.clone(), tasks.clone())),
        Rc::clone,
    )
}
