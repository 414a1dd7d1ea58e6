//! The plan: routes, rollout and limits, compiled and immutable. A call keeps the plan it began with; a reload swaps
//! the whole plan.
//!
//! Used in most modules.

mod base_path;
mod client_sessions;
mod upstream;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, StatusCode};

use super::card_plan::CardPlan;
use super::compare::Rules;
use super::cors::Cors;
use super::envelope::EnvelopeHeader;
use super::event::Events;
use super::failure::FailureCodes;
use super::forwarding::Forwarding;
use super::hosts::{HostName, Reach};
use super::identity_headers::IdentityHeaders;
use super::jsonrpc::MessageLimits;
use super::lenient::LenientPaths;
use super::lifecycle::Lifecycle;
use super::local_reply::LocalReplies;
use super::mcp::PublicUrl;
use super::outcome::{ErrorStatus, ReplyLimits};
use super::record::RecordPlan;
use super::redact::Redaction;
use super::rollout::Rollout;
use super::route::{AmbiguousPath, RouteTable, Segments, Wire, without_slash};
use super::series::SeriesRules;
use super::shadow_limits::ShadowLimits;
use super::stream::Streams;
use super::trace::TracePlan;
use super::translate::MethodCall;
use dualgauge_patterns::json::Json;
use dualgauge_patterns::side::Side;
use dualgauge_patterns::swar;
use dualgauge_transport::proxy_protocol::ProxyProtocolUse;
use dualgauge_transport::tls::ServerTls;
use dualgauge_transport::upload_rate::MinimumRate;

pub use client_sessions::{ClientSocketPlan, EventStreamPlan, SocketProtocol};
pub use upstream::{
    Authority, CANCELLED, Credentials, FramesPlan, Framing, LinkPlan, McpAuthorization, McpPlan,
    McpTransport, SecretMap, Sharing, StdioPlan, Transport, UpstreamPlan, WebSocketPlan, with_port,
};

/// The complete plan that calls are served by.
#[derive(Debug)]
pub struct Plan {
    /// TLS of the listener; connections are plain without it.
    pub tls: Option<Arc<ServerTls>>,
    /// The use of the PROXY protocol on the listener.
    pub proxy_protocol: ProxyProtocolUse,
    /// The forwarding headers for upstreams.
    pub forwarding: Forwarding,
    /// The headers that identify the client to upstreams.
    pub identity_headers: IdentityHeaders,
    /// The routes.
    pub routes: RouteTable,
    /// Event streams that exist on both sides.
    pub streams: Streams,
    /// The event definitions.
    pub events: Events,
    /// Tracing; without it the clients' trace headers pass unchanged.
    pub trace: Option<TracePlan>,
    /// The rollout: flags and stages.
    pub rollout: Rollout,
    /// The limits of shadow calls.
    pub candidates: ShadowLimits,
    /// The upstreams.
    pub upstreams: Upstreams,
    /// The RPC side.
    pub face: RpcFace,
    /// Responses by the proxy itself.
    pub locals: LocalReplies,
    /// The CORS policy.
    pub cors: Option<Cors>,
    /// `listen.hosts`: the hosts that clients may name in calls that are not passed through.
    pub hosts: Vec<HostName>,
    /// `listen.public_url`: the URL at which clients reach the proxy.
    pub public_url: Option<PublicUrl>,
    /// The reach of the configured listener. An inherited one may have another reach.
    pub reach: Reach,
    /// The comparison rules of each route, by its index in the table.
    pub comparing: Vec<Arc<Rules>>,
    /// The treatment of REST calls without a route.
    pub unrouted: Unrouted,
    /// Rejects unrouted REST calls whose path a lenient server may read as one of these; `None` lets them pass.
    pub irregular: Option<LenientPaths>,
    /// The lifecycle of routes: announcements, and the counters of unrouted calls.
    pub lifecycle: Lifecycle,
    /// The upstreams that must be available for the process to be ready.
    pub ready: Vec<String>,
    /// The limits of metric series.
    pub series: SeriesRules,
    /// The redaction rules.
    pub redaction: Arc<Redaction>,
    /// The recording of calls, if it is configured.
    pub record: Option<Arc<RecordPlan>>,
    /// The limits of a call.
    pub limits: Limits,
}

impl Plan {
    /// Returns the default upstream of a side.
    #[must_use]
    pub fn upstream(&self, side: Side) -> Option<&UpstreamPlan> {
        self.upstream_for(None, side)
    }

    /// Returns the upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn upstream_for(&self, route: Option<usize>, side: Side) -> Option<&UpstreamPlan> {
        let index = self.upstreams.of(route, side)?;
        self.upstreams.all.get(index)
    }

    /// Returns whether the value of a header is secret: a redacted header, an API key, or a credential of an envelope or a
    /// login.
    #[must_use]
    pub fn is_secret(&self, name: &HeaderName) -> bool {
        let of_servers = self.upstreams.all.iter().map(|upstream| &upstream.envelope);
        let mut paired = of_servers.chain([&self.face.envelope]).flatten();
        self.redaction.hides_header(name)
            || self.rollout.clients.api_key() == name
            || paired.any(|paired| paired.header() == name)
            || self
                .upstreams
                .all
                .iter()
                .any(|upstream| upstream.logs_in_with(name))
    }

    /// Returns the RPC upstream that accepts unchanged HTTP requests; a link carries messages only.
    #[must_use]
    pub fn rpc_over_http(&self) -> Option<&UpstreamPlan> {
        let upstream = self.upstream(Side::Rpc)?;
        upstream.transport.link().is_none().then_some(upstream)
    }

    /// Returns the index of [`Plan::rpc_over_http`].
    #[must_use]
    pub fn rpc_over_http_index(&self) -> Option<usize> {
        self.rpc_over_http()?;
        self.upstreams.of(None, Side::Rpc)
    }

    /// Finds the route of an RPC call among those with an upstream: first on the upstream for HTTP calls, then on the
    /// one for frames. A route without an upstream on either side is skipped.
    #[must_use]
    pub fn select_rpc(&self, method: &str, params: Option<&Json>) -> Option<usize> {
        let call = MethodCall::new(method, params);
        let found = self.routes.select_rpc_to(Wire::Http, call);
        let is_served = |route: &usize| self.upstreams.of(Some(*route), Side::Rest).is_some();
        if found.as_ref().is_some_and(is_served) {
            return found;
        }
        let framed = self.routes.select_rpc_to(Wire::Frame, call);
        let passes = |route: &usize| self.upstreams.of(Some(*route), Side::Rpc).is_some();
        framed.filter(is_served).or(found.filter(passes))
    }

    /// Returns whether calls of a route are translated and compared as those of a route of another plan, and go to
    /// upstreams of the same names.
    #[must_use]
    pub fn compares_like(&self, route: usize, other: &Plan, of_other: usize) -> bool {
        let upstream = |plan: &Plan, route, side| {
            let upstream = plan.upstream_for(Some(route), side);
            upstream.map(|upstream| upstream.name.clone())
        };
        let candidate = |plan: &Plan, route| {
            let candidate = plan.candidate_for(Some(route));
            candidate.map(|candidate| candidate.name.clone())
        };
        let mut sides = Side::ALL.into_iter();
        let routes = (self.routes.route(route), other.routes.route(of_other));
        routes.0.translates_like(routes.1)
            && self.comparing.get(route) == other.comparing.get(of_other)
            && sides.all(|side| upstream(self, route, side) == upstream(other, of_other, side))
            && candidate(self, route) == candidate(other, of_other)
    }

    /// Returns the other MCP server for JSON-RPC calls of a route, if stages choose between two.
    #[must_use]
    pub fn candidate_for(&self, route: Option<usize>) -> Option<&UpstreamPlan> {
        self.upstreams.all.get(self.upstreams.candidate_of(route)?)
    }

    /// Returns the upstream of a side for a stream.
    #[must_use]
    pub fn upstream_of_stream(&self, stream: usize, side: Side) -> Option<&UpstreamPlan> {
        let index = self.upstreams.of_stream(stream, side)?;
        self.upstreams.all.get(index)
    }
}

/// All upstreams, and the assignment of calls to them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upstreams {
    /// All upstreams, sorted by name.
    pub all: Vec<UpstreamPlan>,
    /// The default upstreams, REST then RPC.
    pub defaults: [Option<usize>; 2],
    /// The default upstream for frames: it is on the REST side, but accepts no HTTP calls.
    pub frames: Option<usize>,
    /// The two MCP servers between which stages choose, if there are two.
    pub pair: Option<UpstreamPair>,
    /// The upstreams of each route, by its index in the table.
    pub of_routes: Vec<[Option<usize>; 2]>,
    /// The upstreams of each stream, by its index.
    pub of_streams: Vec<[Option<usize>; 2]>,
}

/// Two MCP servers: calls of JSON-RPC clients go to one of them, by their stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamPair {
    /// The index of the server on the old way.
    pub control: usize,
    /// The index of the server on the new way.
    pub candidate: usize,
}

impl Upstreams {
    /// Returns the index of the upstream on the new way of JSON-RPC calls of a route, if it is the other MCP server.
    #[must_use]
    pub fn candidate_of(&self, route: Option<usize>) -> Option<usize> {
        let pair = self.pair.filter(|_| route.is_some())?;
        (self.of(route, Side::Rpc) == Some(pair.control)).then_some(pair.candidate)
    }

    /// Returns the index of the upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn of(&self, route: Option<usize>, side: Side) -> Option<usize> {
        let index = index(side);
        let pair = route.and_then(|route| self.of_routes.get(route));
        pair.map_or(self.defaults[index], |pair| pair[index])
    }

    /// Returns the index of the upstream of a side for a stream.
    #[must_use]
    pub fn of_stream(&self, stream: usize, side: Side) -> Option<usize> {
        let upstream = self
            .of_streams
            .get(stream)
            .and_then(|pair| pair[index(side)]);
        upstream.or(self.defaults[index(side)])
    }
}

const fn index(side: Side) -> usize {
    match side {
        Side::Rest => 0,
        Side::Rpc => 1,
    }
}

/// The settings of the RPC side.
#[derive(Debug, Clone, Default)]
pub struct RpcFace {
    /// Paths that accept JSON-RPC by POST, in normal form.
    pub paths: Vec<String>,
    /// The HTTP status for an accepted notification, if it is configured.
    pub notification_status: Option<StatusCode>,
    /// The codes of the proxy's own failures.
    pub failure_codes: FailureCodes,
    /// The HTTP status of an RPC response when the REST upstream asks for credentials or for a pause.
    pub error_status: ErrorStatus,
    /// Concurrent calls of one batch.
    pub batch_concurrency: usize,
    /// Envelope members in which clients send credentials.
    pub envelope: Vec<EnvelopeHeader>,
    /// WebSockets of clients; without it, upgrade requests pass through.
    pub sockets: Option<ClientSocketPlan>,
    /// Event streams of clients over HTTP with SSE.
    pub event_streams: Option<EventStreamPlan>,
    /// The agent card that names the proxy (A2A).
    pub agent_card: Option<CardPlan>,
}

/// The kind of match between a path and an RPC path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathIrregularity {
    /// An exact match.
    No,
    /// A match only for a server that normalises the path.
    By(AmbiguousPath),
}

impl RpcFace {
    /// Returns the kind of match with an RPC path; paths are compared in normal form.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<PathIrregularity> {
        let knows = |path: &str| self.paths.iter().any(|known| known == path);
        if knows(path) {
            return Some(PathIrregularity::No);
        }
        // Fast path: most paths have one spelling only.
        if !may_be_spelled_otherwise(path.as_bytes()) {
            return None;
        }
        let segments = Segments::split(path);
        match segments.irregular() {
            Some(why) => knows(&segments.tidied()).then_some(PathIrregularity::By(why)),
            None => knows(without_slash(&segments.normal())).then_some(PathIrregularity::No),
        }
    }

    /// Returns the RPC path that equals a path but for a trailing slash: `/mcp/` works where `/mcp` does.
    #[must_use]
    pub fn slashed<'p>(&self, path: &'p str) -> Option<&'p str> {
        let before = without_slash(path);
        let ends = before.len() < path.len();
        (ends && self.find(path) == Some(PathIrregularity::No)).then_some(before)
    }
}

/// Returns whether a path may have other spellings.
fn may_be_spelled_otherwise(path: &[u8]) -> bool {
    let Some(last) = path.last_chunk::<8>() else {
        return path.ends_with(b"/")
            || path.contains(&b'%')
            || path.contains(&b'.')
            || path.windows(2).any(|pair| pair == b"//");
    };
    // Marks the bytes that suggest another spelling; `before` is the trailing slash of the previous word.
    let found = |word: &[u8; 8], before: u64| {
        let word = u64::from_le_bytes(*word);
        let slashes = swar::equal::<b'/'>(word);
        let empty = slashes & (slashes << 8 | before);
        let other = swar::equal::<b'%'>(word) | swar::equal::<b'.'>(word);
        (empty | other, slashes >> 56)
    };
    let mut before = 0;
    // The last word overlaps the one before; that is faster than a loop over the remaining bytes.
    let mut any = found(last, 0).0;
    for word in path.as_chunks::<8>().0 {
        let (here, slash) = found(word, before);
        any |= here;
        before = slash;
    }
    any != 0 || path.ends_with(b"/")
}

/// The treatment of REST calls without a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrouted {
    /// They are passed to the REST upstream unchanged.
    Passthrough,
    /// They are rejected.
    Reject,
    /// They are rejected with a status that says to retry: the routes are still to come.
    Unavailable,
}

/// The limits of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a buffered request body.
    pub body: usize,
    /// Bytes of a buffered response.
    pub answer: usize,
    /// Bytes of a request head.
    pub head: usize,
    /// Bytes of a request target.
    pub target: usize,
    /// Messages of one batch.
    pub batch: usize,
    /// Nesting of arrays and objects.
    pub depth: u16,
    /// Bytes of an upstream's text in `error.data`.
    pub error_text: usize,
    /// Calls in flight in the process; each worker has its [`WorkerShare`].
    pub in_flight: usize,
    /// Client connections of the process; each worker has its [`WorkerShare`].
    pub connections: usize,
    /// Bytes of buffered bodies in the process.
    pub memory: usize,
    /// Time to receive a request head.
    pub header_timeout: Duration,
    /// Time that a kept-alive connection may be idle.
    pub idle_timeout: Duration,
    /// Time to receive a buffered request body.
    pub body_timeout: Duration,
    /// Minimum upload rate of a request body, if any.
    pub body_rate: Option<MinimumRate>,
    /// Total time of a call, if limited.
    pub total_timeout: Option<Duration>,
    /// Time that a client may leave response data unread.
    pub write_timeout: Duration,
    /// Time for calls in flight when the process stops.
    pub drain: Duration,
}

/// A worker's share of process limits. Each worker enforces its share alone, without asking the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerShare {
    /// The index of the worker.
    pub worker: usize,
    /// The number of workers.
    pub workers: usize,
}

impl WorkerShare {
    /// Returns this worker's part of a limit. Law: the parts add up to the limit, except that none is zero.
    #[must_use]
    pub fn of(self, whole: usize) -> usize {
        let workers = self.workers.max(1);
        let part = whole / workers + usize::from(self.worker < whole % workers);
        part.max(1)
    }
}

impl Limits {
    /// Returns the limits for reading an RPC body.
    #[must_use]
    pub fn message(&self) -> MessageLimits {
        MessageLimits {
            depth: self.depth,
            batch: self.batch,
        }
    }

    /// Returns the limits for reading an upstream response.
    #[must_use]
    pub fn reply(&self) -> ReplyLimits {
        ReplyLimits {
            depth: self.depth,
            error_text: self.error_text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn the_shares_of_all_workers_are_the_whole(whole in 1usize..10_000, workers in 1usize..300) {
            let parts = (0..workers).map(|worker| WorkerShare { worker, workers }.of(whole));
            let parts: Vec<usize> = parts.collect();
            proptest::prop_assert_eq!(parts.iter().sum::<usize>(), whole.max(workers));
            let (most, least) = (parts.iter().max(), parts.iter().min());
            proptest::prop_assert!(most.unwrap() - least.unwrap() <= 1);
        }
    }

    proptest::proptest! {
        #[test]
        fn the_fast_check_of_a_path_agrees_with_a_check_of_each_byte(path in "(/?[a-z]{0,9}|[a-z/.%]){0,5}") {
            let bytes = path.as_bytes();
            let expected = path.ends_with('/') || path.contains(['%', '.']) || path.contains("//");
            proptest::prop_assert_eq!(may_be_spelled_otherwise(bytes), expected, "{}", path);
        }
    }

    #[test]
    fn an_rpc_path_is_found_in_every_spelling() {
        let paths = ["/", "/rpc", "/a/b"].map(str::to_owned).to_vec();
        let face = RpcFace {
            paths,
            notification_status: None,
            failure_codes: FailureCodes::default(),
            error_status: ErrorStatus::OfServer,
            batch_concurrency: 1,
            envelope: Vec::new(),
            sockets: None,
            event_streams: None,
            agent_card: None,
        };
        for path in ["/", "/rpc", "/%72pc", "/a/%62", "/rpc/", "/%72pc/", "/a/b/"] {
            assert_eq!(face.find(path), Some(PathIrregularity::No), "{path}");
        }
        for path in [
            "//",
            "//rpc",
            "/rpc//",
            "/./rpc",
            "/./rpc/",
            "/x/../rpc",
            "/%2e/rpc",
            "/a//b",
        ] {
            assert!(
                matches!(face.find(path), Some(PathIrregularity::By(_))),
                "{path}"
            );
        }
        for path in ["/rpcs", "/a", "/a.b", "/a/b/c", "/x%2Frpc", "/RPC"] {
            assert_eq!(face.find(path), None, "{path}");
        }
    }
}
