//! The decoded values of the files, key by key: typed and in range, but not compiled.
//!
//! A value that a later step may reject is [`Spanned`], so that the problem names its file and line. Values have not
//! been compared with each other, except that names are unique.
//!
//! Used by `app`, `cli`, `config` and `store`.

mod addresses;
mod answers;
mod compare;
mod docs;
mod guard;
mod identity;
mod lifecycle;
mod mcp;
mod metrics;
mod old;
mod outcome_set;
mod record;
mod source;
mod stdio;
mod store;
mod stream;
mod trace;
mod websocket;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Uri};
use serde_json::Value;

use crate::config::problem::{SourceLocation, SourceMap, Spanned};
use dualgauge_model::card_plan::A2aVersion;
use dualgauge_model::client_ip::Network;
use dualgauge_model::event::EventSource;
use dualgauge_model::failure::FailureCodes;
use dualgauge_model::form::BodyFormat;
use dualgauge_model::forwarding::{ForwardingHeader, TrustForwarded};
use dualgauge_model::hosts::HostName;
use dualgauge_model::identity_headers::{HeaderPattern, HeaderTemplate};
use dualgauge_model::log_format::LogFormat;
use dualgauge_model::mcp::PublicUrl;
use dualgauge_model::outcome::{ErrorStatus, RowSource};
use dualgauge_model::plan::{Credentials, Unrouted};
use dualgauge_model::redact::{KeyPattern, PathMask};
use dualgauge_model::rollout::{Arming, Authentication, Stage, WithoutKey};
use dualgauge_model::route::{Effect, Example, Extra, ResultForm};
use dualgauge_model::stream_format::RouteStream;
use dualgauge_model::subscription::SubscriptionSource;
use dualgauge_patterns::pattern::SourceTree;
use dualgauge_patterns::side::Side;
use dualgauge_transport::multiplexing::Multiplexing;
use dualgauge_transport::proxy_protocol::ProxyProtocolUse;

pub use addresses::{RawAddresses, RawBreaker, RawEject, RawHealth, RawRetry};
pub use answers::{
    LocalWord, RawAnswer, RawCors, RawLocal, RawLocalCall, RawOrigin, RawReply, RawServerInfo,
};
pub use compare::RawCompare;
pub use docs::{RawDocs, RawSchema, RawSchemas};
pub use guard::{RawGuard, RawRamp};
pub use identity::{
    RawBearer, RawClient, RawClientTls, RawFile, RawHeaderGlob, RawHeaderValue, RawHeaders,
    RawMatch, RawMcpClient, RawTls, RawTokenKey, RawTokenKeyFile, Secret,
};
pub use lifecycle::{RawDeprecated, RawEnd, RawWindow};
pub use mcp::RawMcp;
pub use metrics::RawMetrics;
pub use old::RawOld;
pub use outcome_set::RawSet;
pub use record::RawRecord;
pub use source::RawSource;
pub use stdio::{ModeWord, RawLogin, RawLoginPart, RawStdio};
pub use store::{RawStore, StoreUrl, StoreUrlError};
pub use stream::RawStream;
pub use trace::RawTrace;
pub use websocket::RawWebSocket;

/// The whole configuration, without the flags.
#[derive(Debug, Clone, PartialEq)]
pub struct RawConfig {
    /// The main file.
    pub file: Option<PathBuf>,
    /// All files read: the main file first, then the included ones in order.
    pub files: Vec<PathBuf>,
    /// `[listen]`
    pub listen: RawListen,
    /// `[admin] address`
    pub admin: Spanned<SocketAddr>,
    /// `[admin] tokens`: the name of each holder, and the SHA-256 of the token.
    pub admin_tokens: Vec<(String, [u8; 32])>,
    /// `[admin] ready_upstreams`
    pub ready: Vec<Spanned<String>>,
    /// The environment variables of the process that child processes inherit.
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
    pub unrouted: Spanned<Unrouted>,
    /// `unrouted_irregular`: true for `reject`, which refuses calls without a route that a lenient server may read as
    /// one with a route.
    pub rejects_irregular: Spanned<bool>,
    /// `ignore_query`: for routes without their own.
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
    /// `[schemas]`: by name, those of the main file and of the included files.
    pub schemas: Vec<(Spanned<String>, Value)>,
    /// `[cors]`
    pub cors: Option<RawCors>,
    /// `[compare]`
    pub compare: RawCompare,
    /// `[deprecated]`: for routes without their own.
    pub deprecated: Option<RawDeprecated>,
    /// `[trace]`
    pub trace: Option<RawTrace>,
    /// `[record]`
    pub record: Option<RawRecord>,
    /// `[metrics]`
    pub metrics: RawMetrics,
    /// The locations of the keys of routes, sets and events.
    pub places: SourceMap,
    /// `[log]`
    pub log: RawLog,
}

/// `[listen]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawListen {
    /// `address`
    pub address: Spanned<SocketAddr>,
    /// `workers`: one thread each; by default the number of cores.
    pub workers: Spanned<usize>,
    /// `hosts`: any host if empty.
    pub hosts: Vec<Spanned<HostName>>,
    /// `public_url`: the URL at which clients reach the proxy.
    pub public_url: Option<Spanned<PublicUrl>>,
    /// `trusted`: the proxies whose forwarding headers are trusted.
    pub trusted: Vec<Spanned<Network>>,
    /// `forwarded`: the forwarding headers that the proxy writes for upstreams.
    pub forwarded: Vec<Spanned<ForwardingHeader>>,
    /// `forwarded_from`: the peers whose forwarding headers pass.
    pub forwarded_from: Spanned<TrustForwarded>,
    /// `remove_headers`: removed from requests of peers that are not trusted.
    pub remove_headers: Vec<Spanned<HeaderPattern>>,
    /// `set_headers`: by name.
    pub set_headers: Vec<(Spanned<HeaderName>, Spanned<HeaderTemplate>)>,
    /// `proxy_protocol`: `off` by default.
    pub proxy_protocol: Option<Spanned<ProxyProtocolUse>>,
    /// `authentication`: `off` by default.
    pub authentication: Option<Spanned<Authentication>>,
    /// `tls`
    pub tls: Option<RawTls>,
}

/// `[upstream.NAME]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawUpstream {
    /// `NAME`, with the location of the table.
    pub name: Spanned<String>,
    /// `side`
    pub side: Spanned<Side>,
    /// `url` or `command`
    pub server: RawServer,
    /// `timeout`: not zero.
    pub timeout: Spanned<Duration>,
    /// `connect_timeout`: not zero.
    pub connect_timeout: Spanned<Duration>,
    /// `queue_timeout`: not zero. By default an HTTP upstream uses the timeout of the call; a link, `connect_timeout`.
    pub queue_timeout: Option<Spanned<Duration>>,
    /// `keep_alive`: the idle time after which a connection is closed; zero closes it at once.
    pub keep_alive: Spanned<Duration>,
    /// `idle_timeout`: of a stream or an upgraded connection.
    pub idle_timeout: Spanned<Duration>,
    /// `http2`: off by default.
    pub http2: Option<Spanned<Multiplexing>>,
    /// `max_age`: not zero; unlimited by default.
    pub max_age: Option<Spanned<Duration>>,
    /// `connections`: concurrent calls of one worker.
    pub connections: Spanned<usize>,
    /// `queue`: only of an HTTP upstream.
    pub queue: Option<Spanned<usize>>,
    /// `credentials`
    pub credentials: Spanned<Credentials>,
    /// `forward`: additional headers of translated calls.
    pub forward: Vec<Spanned<HeaderName>>,
    /// `envelope`, in place of that of `[rpc]`.
    pub envelope: Option<Vec<RawEnvelopeHeader>>,
    /// `tls`: only with an `https` or `wss` url.
    pub tls: Option<RawClientTls>,
    /// `urls` and their load balancing: only of an HTTP upstream.
    pub addresses: RawAddresses,
    /// `default`: whether it receives the calls of routes that name no upstream, if its side has several.
    pub usual: Option<Spanned<bool>>,
    /// `candidate`: the other server of a pair of MCP servers.
    pub candidate: Option<Spanned<String>>,
}

/// The kind of an upstream, with its keys.
#[derive(Debug, Clone, PartialEq)]
pub enum RawServer {
    /// `url`: scheme `http` or `https`, with a host, without user or fragment.
    Url(Spanned<Uri>),
    /// `command`
    Command(Box<RawStdio>),
    /// `url`: scheme `ws` or `wss`, otherwise the same.
    Socket(Box<RawWebSocket>),
    /// `url` with `protocol = "mcp"`
    Mcp(Box<RawMcp>),
}

/// One member of `envelope`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawEnvelopeHeader {
    /// The name of the member.
    pub member: Spanned<String>,
    /// `header`
    pub header: Spanned<HeaderName>,
    /// `value`: a pattern, not parsed yet.
    pub value: Spanned<String>,
}

/// `[rpc]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRpc {
    /// `paths`: at least one, each beginning with `/`, without query or fragment.
    pub paths: Vec<Spanned<String>>,
    /// `notification_status`: 200, 202 or 204.
    pub notification_status: Option<Spanned<u16>>,
    /// `failure_codes`
    pub failure_codes: FailureCodes,
    /// `error_status`
    pub error_status: ErrorStatus,
    /// `tool_error_status`: from 400 to 599.
    pub tool_error_status: Spanned<u16>,
    /// `batch_concurrency`
    pub batch_concurrency: Spanned<usize>,
    /// `websocket`: whether the proxy serves WebSockets of clients.
    pub websocket: Option<Spanned<bool>>,
    /// `sse_path`
    pub sse_path: Option<Spanned<String>>,
    /// `agent_card`
    pub agent_card: Option<Spanned<String>>,
    /// `agent_card_versions`
    pub agent_card_versions: Vec<Spanned<A2aVersion>>,
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
    /// `body`: of a buffered request.
    pub body: Spanned<usize>,
    /// `answer`: of a buffered upstream response.
    pub answer: Spanned<usize>,
    /// `head`: of a request; at least 8 KiB, the minimum of hyper.
    pub head: Spanned<usize>,
    /// `target`: of a request.
    pub target: Spanned<usize>,
    /// `batch`: calls in one batch.
    pub batch: Spanned<usize>,
    /// `depth`: nesting of JSON.
    pub depth: Spanned<usize>,
    /// `in_flight`: calls in the whole process.
    pub in_flight: Spanned<usize>,
    /// `connections`: of clients, in the whole process.
    pub connections: Spanned<usize>,
    /// `memory`: of buffered bodies in the whole process.
    pub memory: Spanned<usize>,
    /// `header_timeout`: not zero.
    pub header_timeout: Spanned<Duration>,
    /// `idle_timeout`: not zero.
    pub idle_timeout: Spanned<Duration>,
    /// `body_timeout`: not zero.
    pub body_timeout: Spanned<Duration>,
    /// `body_rate`: the minimum rate of a request body, in bytes per second; 0 for none.
    pub body_rate: Spanned<usize>,
    /// `body_grace`: the time before `body_rate` applies.
    pub body_grace: Spanned<Duration>,
    /// `total_timeout`: not zero; none by default.
    pub total_timeout: Option<Spanned<Duration>>,
    /// `write_timeout`: the longest time without progress in writing a response.
    pub write_timeout: Spanned<Duration>,
    /// `drain`: the longest time that a shutdown waits for calls.
    pub drain: Spanned<Duration>,
    /// `error_text`: of an upstream's error text that is passed to the client.
    pub error_text: Spanned<usize>,
}

/// `[rollout]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRollout {
    /// `flags`: the flags file, resolved against the folder of the main file.
    pub flags: Option<Spanned<PathBuf>>,
    /// `state`: a folder, resolved against the folder of the main file.
    pub state: Spanned<PathBuf>,
    /// `store`: the shared server of replicas, instead of files in `state`.
    pub store: Option<RawStore>,
    /// `source`: the server with the values of flags.
    pub source: Option<RawSource>,
    /// `default.rest`
    pub default_rest: Option<Spanned<Stage>>,
    /// `default.rpc`
    pub default_rpc: Option<Spanned<Stage>>,
    /// `api_key.header`: the header with the caller's API key.
    pub api_key_header: Spanned<HeaderName>,
    /// `api_key.authorization`: the key may also be a bearer token.
    pub api_key_as_bearer: Option<Spanned<bool>>,
    /// `rollout.api_key.basic`
    pub api_key_as_password: Option<Spanned<bool>>,
    /// `decision_header`: the response header with the decision.
    pub decision_header: Option<Spanned<HeaderName>>,
    /// `session_grace`: after a flag change, the time that a session keeps its first decision.
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
    /// The location of the table.
    pub place: SourceLocation,
    /// `route[3]`
    pub key: String,
    /// True for a method of two MCP servers between which flags choose.
    pub is_paired: bool,
    /// `name`
    pub name: Spanned<String>,
    /// `rest`: an HTTP method and a URL pattern, not parsed yet; or a line that represents a message on a socket.
    pub rest: Spanned<String>,
    /// `old` or `frame`, apart from the patterns of its messages.
    pub old: Option<RawOld>,
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
    /// `rpc_headers`, in order.
    pub rpc_headers: Vec<(String, SourceTree)>,
    /// `body_format`
    pub body_format: Option<Spanned<BodyFormat>>,
    /// `extra`
    pub extra: Option<Spanned<Extra>>,
    /// `ignore_query`
    pub ignore_query: Option<Vec<Spanned<String>>>,
    /// `after`: names of other routes.
    pub after: Vec<Spanned<String>>,
    /// `from`
    pub from: Option<Spanned<Side>>,
    /// `stage`
    pub stage: Option<Spanned<()>>,
    /// `notify`
    pub notify: Option<Spanned<bool>>,
    /// `effect`
    pub effect: Option<Spanned<Effect>>,
    /// `timeout`: not zero.
    pub timeout: Option<Spanned<Duration>>,
    /// `stream`
    pub stream: Option<Spanned<RouteStream>>,
    /// `stream_timeout`: not zero.
    pub stream_timeout: Option<Spanned<Duration>>,
    /// `subscription`
    pub subscription: Option<Spanned<SubscriptionSource>>,
    /// `affinity`: the hole whose value identifies a session.
    pub affinity: Option<Spanned<String>>,
    /// `successor`: the replacement of the route once it is retired.
    pub successor: Option<Spanned<String>>,
    /// `deprecated`
    pub deprecated: Option<RawEnd>,
    /// `lossy`: the reason why the route may lose data.
    pub lossy: Option<Spanned<String>>,
    /// `upstream`: one name, for the side of that upstream, or one for each side.
    pub upstreams: Vec<(Option<Side>, Spanned<String>)>,
    /// `[[route.outcome]]`, in order.
    pub rows: Vec<RowSource>,
    /// `outcomes`: the names of sets, in order.
    pub sets: Vec<Spanned<String>>,
    /// `[[route.example]]`, in order.
    pub examples: Vec<Example>,
    /// `schema`
    pub schema: RawSchemas,
    /// `title`, `summary`, `description` and `tags`
    pub docs: RawDocs,
    /// `result`
    pub result: Option<Spanned<ResultForm>>,
    /// `compare`, in addition to the global one.
    pub compare: RawCompare,
}

/// `[log]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawLog {
    /// `format`
    pub format: Spanned<LogFormat>,
    /// `level`
    pub level: Spanned<&'static str>,
    /// `redact`
    pub redact: RawRedact,
}

/// `[log.redact]`: redaction rules in addition to the built-in ones.
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
    /// The location of the table.
    pub place: SourceLocation,
    /// `flag[3]`
    pub key: String,
    /// `name`
    pub name: Spanned<String>,
    /// `client`: a glob.
    pub client: Spanned<String>,
    /// `route`: a glob.
    pub route: Spanned<String>,
    /// `side`: both by default.
    pub side: Option<Spanned<Side>>,
    /// `header`: all must match.
    pub headers: Vec<RawHeaderGlob>,
    /// `stage`
    pub stage: Spanned<Stage>,
    /// `percent`, in thousandths: 0 to 100 000.
    pub percent: Spanned<u32>,
    /// `without_key`
    pub without_key: Spanned<WithoutKey>,
    /// `holdback`, in thousandths of a percent.
    pub holdback: Spanned<u32>,
    /// `guard`
    pub guard: Option<Box<RawGuard>>,
    /// `ramp`
    pub ramp: Option<Box<RawRamp>>,
    /// Whether its guard has tripped. Not from a file.
    pub arming: Arming,
    /// A hash of the flag's meaning, independent of its spelling, comments, location and order.
    pub text_hash: String,
}
