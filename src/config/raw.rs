//! What the files say, key by key: decoded and in range, but not yet understood.
//!
//! Whatever a later step may find a fault in is [`Located`], so that its problem names file and line. No value
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

use crate::config::problem::{Located, Place, Places};
use crate::domain::event::EventSource;
use crate::domain::failure::FailureCodes;
use crate::domain::forwarding::{Believed, Told};
use crate::domain::hops::Network;
use crate::domain::hosts::HostName;
use crate::domain::identity_headers::{HeaderPattern, Template};
use crate::domain::outcome::{ErrorStatus, RowSource};
use crate::domain::pattern::Tree;
use crate::domain::plan::Multiplexing;
use crate::domain::preface::PrefaceUse;
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
    pub admin: Located<SocketAddr>,
    /// `[admin] tokens`: whom they were given to, and their SHA-256.
    pub admin_tokens: Vec<(String, [u8; 32])>,
    /// `[admin] ready_upstreams`
    pub ready: Vec<Located<String>>,
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
    pub unrouted: Located<UnroutedWord>,
    /// `unrouted_irregular`
    pub unrouted_irregular: Located<IrregularWord>,
    /// `ignore_query`: of the routes that have none of their own.
    pub ignore_query: Vec<Located<String>>,
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
    pub places: Places,
    /// `[log]`
    pub log: RawLog,
}

/// `[listen]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawListen {
    /// `address`
    pub address: Located<SocketAddr>,
    /// `workers`: one thread each; the number of cores unless said.
    pub workers: Located<usize>,
    /// `hosts`: any where there are none.
    pub hosts: Vec<Located<HostName>>,
    /// `trusted`: the hops whose word is taken for what came before them.
    pub trusted: Vec<Located<Network>>,
    /// `forwarded`: by which fields servers are told of the hop before this one.
    pub forwarded: Vec<Located<Told>>,
    /// `forwarded_from`: whose word on the hops before it goes on.
    pub forwarded_from: Located<Believed>,
    /// `remove_headers`: of those that no trusted hop has sent.
    pub remove_headers: Vec<Located<HeaderPattern>>,
    /// `set_headers`: by name.
    pub set_headers: Vec<(Located<HeaderName>, Located<Template>)>,
    /// `proxy_protocol`: `off` unless said.
    pub proxy_protocol: Option<Located<PrefaceUse>>,
    /// `tls`
    pub tls: Option<RawTls>,
}

/// `[upstream.NAME]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawUpstream {
    /// `NAME`, with the place of the table.
    pub name: Located<String>,
    /// `side`
    pub side: Located<Side>,
    /// `url` or `command`
    pub server: RawServer,
    /// `timeout`: not zero.
    pub timeout: Located<Duration>,
    /// `connect_timeout`: not zero.
    pub connect_timeout: Located<Duration>,
    /// `queue_timeout`: not zero. Without it an upstream over HTTP has the timeout of the call, a link `connect_timeout`.
    pub queue_timeout: Option<Located<Duration>>,
    /// `keep_alive`: how long an unused connection is kept; zero keeps none.
    pub keep_alive: Located<Duration>,
    /// `idle_timeout`: how long a stream or an upgraded connection may be silent.
    pub idle_timeout: Located<Duration>,
    /// `http2`: off unless said.
    pub http2: Option<Located<Multiplexing>>,
    /// `max_age`: not zero; none unless said.
    pub max_age: Option<Located<Duration>>,
    /// `connections`: calls of one worker at a time.
    pub connections: Located<usize>,
    /// `queue`: of a server over HTTP.
    pub queue: Option<Located<usize>>,
    /// `credentials`
    pub credentials: Located<CredentialsWord>,
    /// `forward`: further headers that go along with a translated call.
    pub forward: Vec<Located<HeaderName>>,
    /// `envelope`, in place of that of `[rpc]`.
    pub envelope: Option<Vec<RawPaired>>,
    /// `tls`: only with an `https` or `wss` url.
    pub tls: Option<RawClientTls>,
    /// `urls` and how they are watched: only of an HTTP upstream.
    pub addresses: RawAddresses,
    /// `default`: whether it takes calls whose route names no upstream, where its side has several.
    pub usual: Option<Located<UsualWord>>,
}

/// What an upstream is.
#[derive(Debug, Clone, PartialEq)]
pub enum RawServer {
    /// `url`: scheme `http` or `https`, with a host, without user or fragment.
    Url(Located<Uri>),
    /// `command`
    Command(Box<RawStdio>),
    /// `url`: scheme `ws` or `wss`, and else the same.
    Socket(Box<RawWebSocket>),
    /// `url` with `protocol = "mcp"`
    Mcp(Box<RawMcp>),
}

/// One member of `envelope`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawPaired {
    /// Its name.
    pub member: Located<String>,
    /// `header`
    pub header: Located<HeaderName>,
    /// `value`: a pattern, not parsed yet.
    pub value: Located<String>,
}

/// `default` of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsualWord {
    /// It takes what no route has sent elsewhere.
    Yes,
    /// It takes what a route sends there.
    No,
}

/// `[rpc]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRpc {
    /// `paths`: at least one, each beginning with `/`, without query or fragment.
    pub paths: Vec<Located<String>>,
    /// `notification_status`: 200, 202 or 204.
    pub notification_status: Located<u16>,
    /// `failure_codes`
    pub failure_codes: FailureCodes,
    /// `error_status`
    pub error_status: ErrorStatus,
    /// `tool_error_status`: from 400 to 599.
    pub tool_error_status: Located<u16>,
    /// `batch_concurrency`
    pub batch_concurrency: Located<usize>,
    /// `websocket`: whether WebSockets of clients are served; as the upstream has it, unless said.
    pub websocket: Option<Located<SocketsWord>>,
    /// `socket_concurrency`
    pub socket_concurrency: Located<usize>,
    /// `socket_idle_timeout`: not zero.
    pub socket_idle_timeout: Located<Duration>,
    /// `envelope`
    pub envelope: Vec<RawPaired>,
}

/// `[limits]`: sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct RawLimits {
    /// `body`: of a request that is read.
    pub body: Located<usize>,
    /// `answer`: of an upstream's answer that is read.
    pub answer: Located<usize>,
    /// `head`: of a request; at least 8 KiB, which is the least that hyper takes.
    pub head: Located<usize>,
    /// `target`: of a request.
    pub target: Located<usize>,
    /// `batch`: calls in one batch.
    pub batch: Located<usize>,
    /// `depth`: nesting of JSON.
    pub depth: Located<usize>,
    /// `in_flight`: calls in the whole process.
    pub in_flight: Located<usize>,
    /// `connections`: of callers, in the whole process.
    pub connections: Located<usize>,
    /// `memory`: of bodies that are held in the whole process.
    pub memory: Located<usize>,
    /// `header_timeout`: not zero.
    pub header_timeout: Located<Duration>,
    /// `idle_timeout`: not zero.
    pub idle_timeout: Located<Duration>,
    /// `body_timeout`: not zero.
    pub body_timeout: Located<Duration>,
    /// `body_rate`: bytes a second that a request body needs; 0 for no minimum.
    pub body_rate: Located<usize>,
    /// `body_grace`: the time that a request body has in any case.
    pub body_grace: Located<Duration>,
    /// `total_timeout`: not zero; none unless said.
    pub total_timeout: Option<Located<Duration>>,
    /// `write_timeout`: how long a client may take nothing of an answer.
    pub write_timeout: Located<Duration>,
    /// `drain`: how long a shutdown waits for calls.
    pub drain: Located<Duration>,
    /// `error_text`: of an upstream's failure, kept for the caller.
    pub error_text: Located<usize>,
}

/// `[rollout]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRollout {
    /// `flags`: the flags file, resolved against the folder of the main file.
    pub flags: Option<Located<PathBuf>>,
    /// `state`: a folder, resolved against the folder of the main file.
    pub state: Located<PathBuf>,
    /// `store`: the server that replicas share, in place of files in `state`.
    pub store: Option<RawStore>,
    /// `default.rest`
    pub default_rest: Option<Located<Stage>>,
    /// `default.rpc`
    pub default_rpc: Option<Located<Stage>>,
    /// `api_key.header`: where a caller's API key is found.
    pub api_key_header: Located<HeaderName>,
    /// `decision_header`: by which an answer tells its decision.
    pub decision_header: Option<Located<HeaderName>>,
    /// `session_grace`: how long a session keeps the decision that it began with after a flag was changed.
    pub session_grace: Located<Duration>,
    /// `bearer`
    pub bearer: Option<RawBearer>,
    /// `candidates`
    pub candidates: RawCandidates,
}

/// `[rollout.candidates]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawCandidates {
    /// `concurrency`: in the whole process.
    pub concurrency: Located<usize>,
    /// `memory`: in the whole process.
    pub memory: Located<usize>,
    /// `timeout`: not zero.
    pub timeout: Located<Duration>,
    /// `sample`: in thousandths of a percent.
    pub sample: Located<u32>,
    /// `per_request`
    pub per_request: Located<usize>,
    /// `noise`: in thousandths of a percent.
    pub noise: Located<u32>,
}

/// `[[route]]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawRoute {
    /// Where the table begins.
    pub place: Place,
    /// `route[3]`
    pub key: String,
    /// `name`
    pub name: Located<String>,
    /// `rest`: an HTTP method and a URL pattern, not parsed yet; or a line that stands for `frame`.
    pub rest: Located<String>,
    /// `frame`: a pattern, not parsed yet.
    pub frame: Option<Tree>,
    /// `silence`: not zero.
    pub silence: Option<Located<Duration>>,
    /// `rpc`: a method pattern, not parsed yet.
    pub rpc: Located<String>,
    /// `params`: a pattern, not parsed yet, like those below.
    pub params: Option<Tree>,
    /// `body`
    pub body: Option<Tree>,
    /// `query`, in order.
    pub query: Vec<(String, Tree)>,
    /// `headers`, in order.
    pub headers: Vec<(String, Tree)>,
    /// `extra`
    pub extra: Option<Located<Extra>>,
    /// `ignore_query`
    pub ignore_query: Option<Vec<Located<String>>>,
    /// `from`
    pub from: Option<Located<Side>>,
    /// `notify`
    pub notify: Option<Located<Notify>>,
    /// `effect`
    pub effect: Option<Located<EffectWord>>,
    /// `timeout`: not zero.
    pub timeout: Option<Located<Duration>>,
    /// `affinity`: the hole whose value tells sessions apart.
    pub affinity: Option<Located<String>>,
    /// `successor`: what to call instead once the route is retired.
    pub successor: Option<Located<String>>,
    /// `deprecated`
    pub deprecated: Option<RawEnd>,
    /// `lossy`: why the route may lose something.
    pub lossy: Option<Located<String>>,
    /// `upstream`: a name for the side that it is of, or one for each side.
    pub upstreams: Vec<(Option<Side>, Located<String>)>,
    /// `[[route.outcome]]`, in order.
    pub rows: Vec<RowSource>,
    /// `outcomes`: the names of sets, in order.
    pub sets: Vec<Located<String>>,
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
    pub params: Option<Located<RawSchema>>,
    /// `result`
    pub result: Option<Located<RawSchema>>,
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
    pub name: Located<String>,
    /// Its rows, in order.
    pub rows: Vec<RowSource>,
}

/// `[log]`
#[derive(Debug, Clone, PartialEq)]
pub struct RawLog {
    /// `format`
    pub format: Located<LogFormatWord>,
    /// `level`
    pub level: Located<LogLevelWord>,
    /// `redact`
    pub redact: RawRedact,
}

/// `[log.redact]`: what is hidden beside that which always is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RawRedact {
    /// `headers`
    pub headers: Vec<Located<HeaderName>>,
    /// `keys`
    pub keys: Vec<Located<KeyPattern>>,
    /// `paths`
    pub paths: Vec<Located<PathMask>>,
}

/// `[[flag]]` of the flags file.
#[derive(Debug, Clone, PartialEq)]
pub struct RawFlag {
    /// Where the table begins.
    pub place: Place,
    /// `flag[3]`
    pub key: String,
    /// `name`
    pub name: Located<String>,
    /// `client`: a glob.
    pub client: Located<String>,
    /// `route`: a glob.
    pub route: Located<String>,
    /// `side`: both unless said.
    pub side: Option<Located<Side>>,
    /// `header`: each one named must fit.
    pub headers: Vec<RawHeaderGlob>,
    /// `stage`
    pub stage: Located<Stage>,
    /// `percent`, in thousandths: 0 to 100 000.
    pub percent: Located<u32>,
    /// `without_key`
    pub without_key: Located<WithoutKeyWord>,
    /// `holdback`, in thousandths of a percent.
    pub holdback: Located<u32>,
    /// `guard`
    pub guard: Option<Box<RawGuard>>,
    /// `ramp`
    pub ramp: Option<Box<RawRamp>>,
    /// Whether its guard has taken it back. No file says so.
    pub arming: Arming,
    /// The same text as long as the flag means the same, whatever its spelling, comments, place and order.
    pub text_hash: String,
}
