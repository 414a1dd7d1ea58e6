//! What the files say, key by key: decoded and in range, but not yet understood.
//!
//! Whatever a later step may find a fault in is [`Spanned`], so that its problem names file and line. No value
//! here has been compared with another one, except that names are not given twice.

mod addresses;
mod answers;
mod compare;
mod guard;
mod identity;
mod lifecycle;
mod mcp;
mod metrics;
mod stdio;
mod store;
mod stream;
mod trace;
mod websocket;
mod words;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use serde_json::Value;

use crate::config::problem::{SourceLocation, SourceMap, Spanned};
use crate::domain::client_ip::Network;
use crate::domain::event::EventSource;
use crate::domain::failure::FailureCodes;
use crate::domain::forwarding::{ForwardingHeader, TrustForwarded};
use crate::domain::hosts::HostName;
use crate::domain::identity_headers::{HeaderPattern, HeaderTemplate};
use crate::domain::outcome::{ErrorStatus, RowSource};
use crate::domain::pattern::SourceTree;
use crate::domain::plan::Multiplexing;
use crate::domain::proxy_protocol::ProxyProtocolUse;
use crate::domain::redact::{KeyPattern, PathMask};
use crate::domain::rollout::{Arming, Stage};
use crate::domain::route::{Example, Extra, Notify};
use crate::domain::side::Side;

pub use addresses::{RawAddresses, RawBreaker, RawEject, RawHealth, RawRetry};
pub use answers::{
    LocalWord, RawAnswer, RawCors, RawGreeting, RawLocal, RawLocalCall, RawOrigin, RawReply,
};
pub use compare::RawCompare;
pub use guard::{RawGuard, RawRamp};
pub use identity::{
    RawBearer, RawClient, RawClientTls, RawFile, RawHeaderGlob, RawHeaderValue, RawHeaders, RawKey,
    RawMatch, RawTls, RawTokenKey, RawTokenKeyFile, Secret,
};
pub use lifecycle::{RawDeprecated, RawEnd, RawWindow};
pub use mcp::RawMcp;
pub use metrics::RawMetrics;
pub use stdio::{HandshakeWord, ModeWord, RawStdio};
pub use store::{RawStore, StoreUrl, StoreUrlError};
pub use stream::RawStream;
pub use trace::RawTrace;
pub use websocket::RawWebSocket;
pub use words::{
    CredentialsWord, EffectWord, IrregularWord, LogFormatWord, LogLevelWord, SocketsWord,
    UnroutedWord, WithoutKeyWord,
};

/// The whole configuration, without the flags.
#[derive(Debug, Clone, PartialEq)]
pub struct RawConfig {
    /// The main file.
    pub file: Option<PathBuf>,
    /// Every file that was read: the main file first, then the included ones in order.
    pub files: Vec<PathBuf>,
    /// `[listen]`
    pub listen: RawListen,
    /// `[admin] address`
    pub admin: Spanned<SocketAddr>,
    /// `[admin] tokens`: whom they were given to, and their SHA-256.
    pub admin_tokens: Vec<(String, [u8; 32])>,
    /// `[admin] ready_upstreams`
    pub ready: Vec<Spanned<String>>,
    /// Those variables of the process that children get as well.
    pub inherited: Vec<(String, String)>,
    /// `[upstream.NAME]`, sorted by name.
    pub upstreams: Vec<RawUpstream>,
    /// `[rpc]`
    pub rpc: RawRpc,
    /// `[limits]`
    pub limits: RawLimits,
    /// `[rollout]`
    pub rollout: RawRollout,
    /// `unrouted`
    pub unrouted: Spanned<UnroutedWord>,
    /// `unrouted_irregular`
    pub unrouted_irregular: Spanned<IrregularWord>,
    /// `ignore_query`: of the routes that have none of their own.
    pub ignore_query: Vec<Spanned<String>>,
    /// `[[client]]`, in order.
    pub clients: Vec<RawClient>,
    /// `[[route]]`: those of the main file, then those of the included files in order.
    pub routes: Vec<RawRoute>,
    /// `[[outcomes.NAME]]`, sorted by name.
    pub sets: Vec<RawSet>,
    /// `[[local]]`: those of the main file, then those of the included files in order.
    pub locals: Vec<RawLocal>,
    /// `[[stream]]`: those of the main file, then those of the included files in order.
    pub streams: Vec<RawStream>,
    /// `[[event]]`: those of the main file, then those of the included files in order.
    pub events: Vec<EventSource>,
    /// `[cors]`
    pub cors: Option<RawCors>,
    /// `[compare]`
    pub compare: RawCompare,
    /// `[deprecated]`: of the routes that say nothing of their own end.
    pub deprecated: Option<RawDeprecated>,
    /// `[trace]`
    pub trace: Option<RawTrace>,
    /// `[metrics]`
    pub metrics: RawMetrics,
    /// Where the keys of routes, of sets and of events were said.
    pub places: SourceMap,
    /// `[log]`
    pub log: RawLog,
}

/// `[listen]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawListen {
    /// `address`
    pub address: Spanned<SocketAddr>,
    /// `workers`: one thread each; the number of cores unless said.
    pub workers: Spanned<usize>,
    /// `hosts`: any where there are none.
    pub hosts: Vec<Spanned<HostName>>,
    /// `trusted`: the hops whose word is taken for what came before them.
    pub trusted: Vec<Spanned<Network>>,
    /// `forwarded`: by which fields servers are told of the hop before this one.
    pub forwarded: Vec<Spanned<ForwardingHeader>>,
    /// `forwarded_from`: whose word on the hops before it goes on.
    pub forwarded_from: Spanned<TrustForwarded>,
    /// `remove_headers`: of those that no trusted hop has sent.
    pub remove_headers: Vec<Spanned<HeaderPattern>>,
    /// `set_headers`: by name.
    pub set_headers: Vec<(Spanned<HeaderName>, Spanned<HeaderTemplate>)>,
    /// `proxy_protocol`: `off` unless said.
    pub proxy_protocol: Option<Spanned<ProxyProtocolUse>>,
    /// `tls`
    pub tls: Option<RawTls>,
}

/// `[upstream.NAME]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawUpstream {
    /// `NAME`, with the place of the table.
    pub name: Spanned<String>,
    /// `side`
    pub side: Spanned<Side>,
    /// `url` or `command`
    pub server: RawServer,
    /// `timeout`: not zero.
    pub timeout: Spanned<Duration>,
    /// `connect_timeout`: not zero.
    pub connect_timeout: Spanned<Duration>,
    /// `queue_timeout`: not zero. Without it an upstream over HTTP has the timeout of the call, a link `connect_timeout`.
    pub queue_timeout: Option<Spanned<Duration>>,
    /// `keep_alive`: how long an unused connection is kept; zero keeps none.
    pub keep_alive: Spanned<Duration>,
    /// `idle_timeout`: how long a stream or an upgraded connection may be silent.
    pub idle_timeout: Spanned<Duration>,
    /// `http2`: off unless said.
    pub http2: Option<Spanned<Multiplexing>>,
    /// `max_age`: not zero; none unless said.
    pub max_age: Option<Spanned<Duration>>,
    /// `connections`: calls of one worker at a time.
    pub connections: Spanned<usize>,
    /// `queue`: of a server over HTTP.
    pub queue: Option<Spanned<usize>>,
    /// `credentials`
    pub credentials: Spanned<CredentialsWord>,
    /// `forward`: further headers that go along with a translated call.
    pub forward: Vec<Spanned<HeaderName>>,
    /// `envelope`, in place of that of `[rpc]`.
    pub envelope: Option<Vec<RawEnvelopeHeader>>,
    /// `tls`: only with an `https` or `wss` url.
    pub tls: Option<RawClientTls>,
    /// `urls` and how they are watched: only of an HTTP upstream.
    pub addresses: RawAddresses,
    /// `default`: whether it takes calls whose route names no upstream, where its side has several.
    pub usual: Option<Spanned<IsDefault>>,
}

/// What an upstream is.
#[derive(Debug, Clone, PartialEq)]
pub enum RawServer {
    /// `url`: scheme `http` or `https`, with a host, without user or fragment.
    Url(Spanned<Uri>),
    /// `command`
    Command(Box<RawStdio>),
    /// `url`: scheme `ws` or `wss`, and else the same.
    Socket(Box<RawWebSocket>),
    /// `url` with `protocol = "mcp"`
    Mcp(Box<RawMcp>),
}

/// One member of `envelope`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawEnvelopeHeader {
    /// Its name.
    pub member: Spanned<String>,
    /// `header`
    pub header: Spanned<HeaderName>,
    /// `value`: a pattern, not parsed yet.
    pub value: Spanned<String>,
}

/// `default` of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsDefault {
    /// It takes what no route has sent elsewhere.
    Yes,
    /// It takes what a route sends there.
    No,
}

/// `[rpc]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRpc {
    /// `paths`: at least one, each beginning with `/`, without query or fragment.
    pub paths: Vec<Spanned<String>>,
    /// `notification_status`: 200, 202 or 204.
    pub notification_status: Spanned<u16>,
    /// `failure_codes`
    pub failure_codes: FailureCodes,
    /// `error_status`
    pub error_status: ErrorStatus,
    /// `tool_error_status`: from 400 to 599.
    pub tool_error_status: Spanned<u16>,
    /// `batch_concurrency`
    pub batch_concurrency: Spanned<usize>,
    /// `websocket`: whether WebSockets of clients are served; as the upstream has it, unless said.
    pub websocket: Option<Spanned<SocketsWord>>,
    /// `socket_concurrency`
    pub socket_concurrency: Spanned<usize>,
    /// `socket_idle_timeout`: not zero.
    pub socket_idle_timeout: Spanned<Duration>,
    /// `envelope`
    pub envelope: Vec<RawEnvelopeHeader>,
}

/// `[limits]`: sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RawLimits {
    /// `body`: of a request that is read.
    pub body: Spanned<usize>,
    /// `answer`: of an upstream's answer that is read.
    pub answer: Spanned<usize>,
    /// `head`: of a request; at least 8 KiB, which is the least that hyper takes.
    pub head: Spanned<usize>,
    /// `target`: of a request.
    pub target: Spanned<usize>,
    /// `batch`: calls in one batch.
    pub batch: Spanned<usize>,
    /// `depth`: nesting of JSON.
    pub depth: Spanned<usize>,
    /// `in_flight`: calls in the whole process.
    pub in_flight: Spanned<usize>,
    /// `connections`: of callers, in the whole process.
    pub connections: Spanned<usize>,
    /// `memory`: of bodies that are held in the whole process.
    pub memory: Spanned<usize>,
    /// `header_timeout`: not zero.
    pub header_timeout: Spanned<Duration>,
    /// `idle_timeout`: not zero.
    pub idle_timeout: Spanned<Duration>,
    /// `body_timeout`: not zero.
    pub body_timeout: Spanned<Duration>,
    /// `body_rate`: bytes a second that a request body needs; 0 for no minimum.
    pub body_rate: Spanned<usize>,
    /// `body_grace`: the time that a request body has in any case.
    pub body_grace: Spanned<Duration>,
    /// `total_timeout`: not zero; none unless said.
    pub total_timeout: Option<Spanned<Duration>>,
    /// `write_timeout`: how long a client may take nothing of an answer.
    pub write_timeout: Spanned<Duration>,
    /// `drain`: how long a shutdown waits for calls.
    pub drain: Spanned<Duration>,
    /// `error_text`: of an upstream's failure, kept for the caller.
    pub error_text: Spanned<usize>,
}

/// `[rollout]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRollout {
    /// `flags`: the flags file, resolved against the folder of the main file.
    pub flags: Option<Spanned<PathBuf>>,
    /// `state`: a folder, resolved against the folder of the main file.
    pub state: Spanned<PathBuf>,
    /// `store`: the server that replicas share, in place of files in `state`.
    pub store: Option<RawStore>,
    /// `default.rest`
    pub default_rest: Option<Spanned<Stage>>,
    /// `default.rpc`
    pub default_rpc: Option<Spanned<Stage>>,
    /// `api_key.header`: where a caller's API key is found.
    pub api_key_header: Spanned<HeaderName>,
    /// `decision_header`: by which an answer tells its decision.
    pub decision_header: Option<Spanned<HeaderName>>,
    /// `session_grace`: how long a session keeps the decision that it began with after a flag was changed.
    pub session_grace: Spanned<Duration>,
    /// `bearer`
    pub bearer: Option<RawBearer>,
    /// `candidates`
    pub candidates: RawCandidates,
}

/// `[rollout.candidates]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawCandidates {
    /// `concurrency`: in the whole process.
    pub concurrency: Spanned<usize>,
    /// `memory`: in the whole process.
    pub memory: Spanned<usize>,
    /// `timeout`: not zero.
    pub timeout: Spanned<Duration>,
    /// `sample`: in thousandths of a percent.
    pub sample: Spanned<u32>,
    /// `per_request`
    pub per_request: Spanned<usize>,
    /// `noise`: in thousandths of a percent.
    pub noise: Spanned<u32>,
}

/// `[[route]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRoute {
    /// Where the table begins.
    pub place: SourceLocation,
    /// `route[3]`
    pub key: String,
    /// `name`
    pub name: Spanned<String>,
    /// `rest`: an HTTP method and a URL pattern, not parsed yet; or a line that stands for `frame`.
    pub rest: Spanned<String>,
    /// `frame`: a pattern, not parsed yet.
    pub frame: Option<SourceTree>,
    /// `silence`: not zero.
    pub silence: Option<Spanned<Duration>>,
    /// `rpc`: a method pattern, not parsed yet.
    pub rpc: Spanned<String>,
    /// `params`: a pattern, not parsed yet, like those below.
    pub params: Option<SourceTree>,
    /// `body`
    pub body: Option<SourceTree>,
    /// `query`, in order.
    pub query: Vec<(String, SourceTree)>,
    /// `headers`, in order.
    pub headers: Vec<(String, SourceTree)>,
    /// `extra`
    pub extra: Option<Spanned<Extra>>,
    /// `ignore_query`
    pub ignore_query: Option<Vec<Spanned<String>>>,
    /// `from`
    pub from: Option<Spanned<Side>>,
    /// `notify`
    pub notify: Option<Spanned<Notify>>,
    /// `effect`
    pub effect: Option<Spanned<EffectWord>>,
    /// `timeout`: not zero.
    pub timeout: Option<Spanned<Duration>>,
    /// `affinity`: the hole whose value tells sessions apart.
    pub affinity: Option<Spanned<String>>,
    /// `successor`: what to call instead once the route is retired.
    pub successor: Option<Spanned<String>>,
    /// `deprecated`
    pub deprecated: Option<RawEnd>,
    /// `lossy`: why the route may lose something.
    pub lossy: Option<Spanned<String>>,
    /// `upstream`: a name for the side that it is of, or one for each side.
    pub upstreams: Vec<(Option<Side>, Spanned<String>)>,
    /// `[[route.outcome]]`, in order.
    pub rows: Vec<RowSource>,
    /// `outcomes`: the names of sets, in order.
    pub sets: Vec<Spanned<String>>,
    /// `[[route.example]]`, in order.
    pub examples: Vec<Example>,
    /// `schema`
    pub schema: RawSchemas,
    /// `compare`, over that of all routes.
    pub compare: RawCompare,
}

/// `schema` of a route.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawSchemas {
    /// `params`
    pub params: Option<Spanned<RawSchema>>,
    /// `result`
    pub result: Option<Spanned<RawSchema>>,
}

/// A JSON Schema, not compiled yet.
#[derive(Debug, Clone, PartialEq)]
pub enum RawSchema {
    /// As it is written.
    Written(Value),
    /// The file that holds it, relative to the file that names it; it is read when all is decoded.
    File(PathBuf),
}

/// `[[outcomes.NAME]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawSet {
    /// `NAME`, with the place of its first row.
    pub name: Spanned<String>,
    /// Its rows, in order.
    pub rows: Vec<RowSource>,
}

/// `[log]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawLog {
    /// `format`
    pub format: Spanned<LogFormatWord>,
    /// `level`
    pub level: Spanned<LogLevelWord>,
    /// `redact`
    pub redact: RawRedact,
}

/// `[log.redact]`: what is hidden beside that which always is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawRedact {
    /// `headers`
    pub headers: Vec<Spanned<HeaderName>>,
    /// `keys`
    pub keys: Vec<Spanned<KeyPattern>>,
    /// `paths`
    pub paths: Vec<Spanned<PathMask>>,
}

/// `[[flag]]` of the flags file.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFlag {
    /// Where the table begins.
    pub place: SourceLocation,
    /// `flag[3]`
    pub key: String,
    /// `name`
    pub name: Spanned<String>,
    /// `client`: a glob.
    pub client: Spanned<String>,
    /// `route`: a glob.
    pub route: Spanned<String>,
    /// `side`: both unless said.
    pub side: Option<Spanned<Side>>,
    /// `header`: each one named must fit.
    pub headers: Vec<RawHeaderGlob>,
    /// `stage`
    pub stage: Spanned<Stage>,
    /// `percent`, in thousandths: 0 to 100 000.
    pub percent: Spanned<u32>,
    /// `without_key`
    pub without_key: Spanned<WithoutKeyWord>,
    /// `holdback`, in thousandths of a percent.
    pub holdback: Spanned<u32>,
    /// `guard`
    pub guard: Option<Box<RawGuard>>,
    /// `ramp`
    pub ramp: Option<Box<RawRamp>>,
    /// Whether its guard has taken it back. No file says so.
    pub arming: Arming,
    /// The same text as long as the flag means the same, whatever its spelling, comments, place and order.
    pub text_hash: String,
}
