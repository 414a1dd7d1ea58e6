//! The plan: routes, rollout and limits, compiled and immutable. A call holds the one it began with; a
//! reload swaps it whole.

mod upstream;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, StatusCode};

use super::compare::Rules;
use super::cors::Cors;
use super::envelope::EnvelopeHeader;
use super::event::Events;
use super::failure::FailureCodes;
use super::forwarding::Forwarding;
use super::hosts::{HostName, Reach};
use super::identity_headers::IdentityHeaders;
use super::json::Json;
use super::jsonrpc::MessageLimits;
use super::lenient::LenientPaths;
use super::lifecycle::Lifecycle;
use super::local_reply::LocalReplies;
use super::outcome::{ErrorStatus, ReplyLimits};
use super::proxy_protocol::ProxyProtocolUse;
use super::redact::Redaction;
use super::rollout::Rollout;
use super::route::{AmbiguousPath, RouteTable, Segments, Wire};
use super::series::SeriesRules;
use super::shadow_limits::ShadowLimits;
use super::side::Side;
use super::stream::Streams;
use super::swar;
use super::tls::ServerTls;
use super::trace::TracePlan;
use super::upload_rate::MinimumRate;

pub use upstream::{
    Authority, CANCELLED, Credentials, FramesPlan, LinkPlan, McpPlan, Multiplexing, SecretMap,
    Sharing, StdioPlan, Transport, UpstreamPlan, WebSocketPlan, with_port,
};

/// Everything that a call is served by.
#[derive(Debug)]
pub struct Plan {
    /// TLS of the listener; connections are plain without it.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether a connection begins with a word of the balancer before it.
    pub preface: ProxyProtocolUse,
    /// What servers are told of the hops before this one.
    pub forwarding: Forwarding,
    /// The headers by which servers know who calls.
    pub identity_headers: IdentityHeaders,
    /// The routes.
    pub routes: RouteTable,
    /// Streams of events that both sides have.
    pub streams: Streams,
    /// The events of both sides.
    pub events: Events,
    /// What is done about traces; without it those of callers are passed on.
    pub trace: Option<TracePlan>,
    /// Who gets what.
    pub rollout: Rollout,
    /// What bounds the calls that are run only to compare.
    pub candidates: ShadowLimits,
    /// The servers behind.
    pub upstreams: Upstreams,
    /// The RPC face.
    pub face: RpcFace,
    /// What the proxy itself answers.
    pub locals: LocalReplies,
    /// Which pages of other origins may read answers.
    pub cors: Option<Cors>,
    /// `listen.hosts`: the hosts by which clients may ask for what is not passed through.
    pub hosts: Vec<HostName>,
    /// From where the configured listener is reached. An inherited one may have another reach.
    pub reach: Reach,
    /// How the answers of each route are compared, by its place in the table.
    pub comparing: Vec<Arc<Rules>>,
    /// REST calls of no route.
    pub unrouted: Unrouted,
    /// Refuses REST calls of no route whose path a lenient server may read as one of these; without it they pass.
    pub irregular: Option<LenientPaths>,
    /// The end of routes: what is announced, and where calls of no route are counted.
    pub lifecycle: Lifecycle,
    /// The upstreams without which the process takes no calls, as far as whoever sends them asks.
    pub ready: Vec<String>,
    /// What bounds the series of the metrics.
    pub series: SeriesRules,
    /// What is never shown.
    pub redaction: Arc<Redaction>,
    /// What bounds a call.
    pub limits: Limits,
}

impl Plan {
    /// The upstream of a side that takes what no route has sent elsewhere.
    #[must_use]
    pub fn upstream(&self, side: Side) -> Option<&UpstreamPlan> {
        self.upstream_for(None, side)
    }

    /// The upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn upstream_for(&self, route: Option<usize>, side: Side) -> Option<&UpstreamPlan> {
        let place = self.upstreams.of(route, side)?;
        self.upstreams.all.get(place)
    }

    /// Whether a header bears a credential or another secret: one that is redacted, one with API keys, and one with a
    /// credential of an envelope.
    #[must_use]
    pub fn is_secret(&self, name: &HeaderName) -> bool {
        let of_servers = self.upstreams.all.iter().map(|upstream| &upstream.envelope);
        let mut paired = of_servers.chain([&self.face.envelope]).flatten();
        self.redaction.hides_header(name)
            || self.rollout.clients.api_key() == name
            || paired.any(|paired| paired.header() == name)
    }

    /// The RPC upstream that takes HTTP requests as they came; a link carries messages only.
    #[must_use]
    pub fn rpc_over_http(&self) -> Option<&UpstreamPlan> {
        let upstream = self.upstream(Side::Rpc)?;
        upstream.transport.link().is_none().then_some(upstream)
    }

    /// Finds the route of an RPC call among those of the server that it would be sent to: first of the one that takes
    /// calls of HTTP, then of the one that takes frames. A route that no server is there for, of either side, is none.
    #[must_use]
    pub fn select_rpc(&self, method: &str, params: Option<&Json>) -> Option<usize> {
        let call = (method, params);
        let found = self.routes.select_rpc_to(Wire::Http, call);
        let is_served = |route: &usize| self.upstreams.of(Some(*route), Side::Rest).is_some();
        if found.as_ref().is_some_and(is_served) {
            return found;
        }
        let framed = self.routes.select_rpc_to(Wire::Frame, call);
        let passes = |route: &usize| self.upstreams.of(Some(*route), Side::Rpc).is_some();
        framed.filter(is_served).or(found.filter(passes))
    }

    /// Returns whether calls of a route are translated and compared as those of the route of another plan, and go to
    /// upstreams of the same names.
    #[must_use]
    pub fn compares_like(&self, route: usize, (other, of_other): (&Plan, usize)) -> bool {
        let upstream = |plan: &Plan, route, side| {
            let upstream = plan.upstream_for(Some(route), side);
            upstream.map(|upstream| upstream.name.clone())
        };
        let mut sides = Side::ALL.into_iter();
        let routes = (self.routes.route(route), other.routes.route(of_other));
        routes.0.translates_like(routes.1)
            && self.comparing.get(route) == other.comparing.get(of_other)
            && sides.all(|side| upstream(self, route, side) == upstream(other, of_other, side))
    }

    /// The upstream of a side for those who ask for a stream.
    #[must_use]
    pub fn upstream_of_stream(&self, stream: usize, side: Side) -> Option<&UpstreamPlan> {
        let place = self.upstreams.of_stream(stream, side)?;
        self.upstreams.all.get(place)
    }
}

/// All upstreams, and which one a call goes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upstreams {
    /// All of them, by the names that the file gives them.
    pub all: Vec<UpstreamPlan>,
    /// What takes the calls of a side, REST then RPC, unless their route says otherwise.
    pub defaults: [Option<usize>; 2],
    /// What takes frames, unless their route says otherwise: it is of the REST side, but takes no call of HTTP.
    pub frames: Option<usize>,
    /// Where the calls of each route go, by its place in the table.
    pub of_routes: Vec<[Option<usize>; 2]>,
    /// What each stream says, by its place.
    pub of_streams: Vec<[Option<usize>; 2]>,
}

impl Upstreams {
    /// The place of the upstream of a side for the calls of a route, or of no route.
    #[must_use]
    pub fn of(&self, route: Option<usize>, side: Side) -> Option<usize> {
        let index = index(side);
        let own = route.and_then(|route| self.of_routes.get(route));
        own.map_or(self.defaults[index], |own| own[index])
    }

    /// The place of the upstream of a side for those who ask for a stream.
    #[must_use]
    pub fn of_stream(&self, stream: usize, side: Side) -> Option<usize> {
        let own = self.of_streams.get(stream).and_then(|own| own[index(side)]);
        own.or(self.defaults[index(side)])
    }
}

const fn index(side: Side) -> usize {
    match side {
        Side::Rest => 0,
        Side::Rpc => 1,
    }
}

/// How the RPC face behaves.
#[derive(Debug, Clone, Default)]
pub struct RpcFace {
    /// Paths whose POSTs are JSON-RPC, in normal form.
    pub paths: Vec<String>,
    /// What a notification is answered with.
    pub notification_status: StatusCode,
    /// The codes of the proxy's own failures.
    pub failure_codes: FailureCodes,
    /// Which HTTP status a call has whose REST server asks for credentials or for a pause.
    pub error_status: ErrorStatus,
    /// How many calls of one batch run at a time.
    pub batch_concurrency: usize,
    /// Members beside those of JSON-RPC by which clients send credentials.
    pub envelope: Vec<EnvelopeHeader>,
    /// How WebSockets of clients are served; where they are not, the requests for them pass on.
    pub sockets: Option<ClientSocketPlan>,
}

/// How WebSockets of clients are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSocketPlan {
    /// How many messages of one of them are served at a time.
    pub concurrency: usize,
    /// How long one of them may be without a message.
    pub idle_timeout: Duration,
    /// What is spoken there.
    pub tongue: SocketProtocol,
}

/// What clients speak over WebSockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketProtocol {
    /// JSON-RPC alone.
    Rpc,
    /// JSON-RPC or frames, found out anew for each message.
    Both,
}

/// Whether a path is an RPC path as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathIrregularity {
    /// It is.
    No,
    /// Only for a program that tidies up.
    By(AmbiguousPath),
}

impl RpcFace {
    /// Whether a path is an RPC path; paths are compared in normal form.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<PathIrregularity> {
        let knows = |path: &str| self.paths.iter().any(|known| known == path);
        if knows(path) {
            return Some(PathIrregularity::No);
        }
        // Most paths have one spelling only, and need no closer look.
        if !may_be_spelled_otherwise(path.as_bytes()) {
            return None;
        }
        let segments = Segments::split(path);
        match segments.irregular() {
            Some(why) => knows(&segments.tidied()).then_some(PathIrregularity::By(why)),
            None => knows(without_slash(&segments.normal())).then_some(PathIrregularity::No),
        }
    }

    /// The RPC path that a path is with a slash at its end: `/mcp/` works where `/mcp` does.
    #[must_use]
    pub fn slashed<'p>(&self, path: &'p str) -> Option<&'p str> {
        let before = without_slash(path);
        let ends = before.len() < path.len();
        (ends && self.find(path) == Some(PathIrregularity::No)).then_some(before)
    }
}

/// A path without the slash at its end, unless that is all of it.
#[must_use]
pub fn without_slash(path: &str) -> &str {
    let before = path.strip_suffix('/');
    before.filter(|before| !before.is_empty()).unwrap_or(path)
}

/// Whether a path may have other spellings than this one.
fn may_be_spelled_otherwise(path: &[u8]) -> bool {
    let Some(last) = path.last_chunk::<8>() else {
        return path.ends_with(b"/")
            || path.contains(&b'%')
            || path.contains(&b'.')
            || path.windows(2).any(|pair| pair == b"//");
    };
    // Which bytes tell of it; `before` is the slash at the end of the word before.
    let found = |word: &[u8; 8], before: u64| {
        let word = u64::from_le_bytes(*word);
        let slashes = swar::equal::<b'/'>(word);
        let empty = slashes & (slashes << 8 | before);
        let other = swar::equal::<b'%'>(word) | swar::equal::<b'.'>(word);
        (empty | other, slashes >> 56)
    };
    let mut before = 0;
    // The last word overlaps the one before, instead of a look at each byte that is left.
    let mut any = found(last, 0).0;
    for word in path.as_chunks::<8>().0 {
        let (here, slash) = found(word, before);
        any |= here;
        before = slash;
    }
    any != 0 || path.ends_with(b"/")
}

/// What happens to REST calls that belong to no route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unrouted {
    /// They go to the REST upstream as they came.
    Passthrough,
    /// They are refused.
    Reject,
}

/// What bounds a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body that is read whole.
    pub body: usize,
    /// Bytes of an answer that is read whole.
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
    /// Calls in progress in the process; each worker has its [`WorkerShare`].
    pub in_flight: usize,
    /// Connections of callers in the process; each worker has its [`WorkerShare`].
    pub connections: usize,
    /// Bytes of bodies that are held in the process.
    pub memory: usize,
    /// Time for the head of a request.
    pub header_timeout: Duration,
    /// How long a kept connection may be without the next request.
    pub idle_timeout: Duration,
    /// Time for the body of a request that is read whole.
    pub body_timeout: Duration,
    /// How fast the body of a request must come, if it must.
    pub body_rate: Option<MinimumRate>,
    /// Time for a call as a whole, if it has a limit.
    pub total_timeout: Option<Duration>,
    /// How long a client may take nothing of an answer.
    pub write_timeout: Duration,
    /// Time for calls in progress when the program ends.
    pub drain: Duration,
}

/// One worker of all: each has its share of what bounds the process, since none asks another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerShare {
    /// Its place among them.
    pub worker: usize,
    /// How many there are.
    pub workers: usize,
}

impl WorkerShare {
    /// Its part of the whole. Law: the parts of all are the whole, but that none is zero.
    #[must_use]
    pub fn of(self, whole: usize) -> usize {
        let workers = self.workers.max(1);
        let part = whole / workers + usize::from(self.worker < whole % workers);
        part.max(1)
    }
}

impl Limits {
    /// What bounds the reading of an RPC body.
    #[must_use]
    pub fn message(&self) -> MessageLimits {
        MessageLimits {
            depth: self.depth,
            batch: self.batch,
        }
    }

    /// What bounds the reading of an upstream's answer.
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
        fn a_path_may_be_spelled_otherwise_where_a_look_at_each_byte_says_so(path in "(/?[a-z]{0,9}|[a-z/.%]){0,5}") {
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
            notification_status: StatusCode::NO_CONTENT,
            failure_codes: FailureCodes::default(),
            error_status: ErrorStatus::OfServer,
            batch_concurrency: 1,
            envelope: Vec::new(),
            sockets: None,
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
