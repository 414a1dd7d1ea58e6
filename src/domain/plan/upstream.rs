//! A server behind the proxy: its address or its child, how it is spoken to, and what bounds that.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};

use crate::domain::envelope::EnvelopeHeader;
use crate::domain::load_balancing::AddressPlan;
use crate::domain::mcp::Revision;
use crate::domain::pending::{Heartbeat, LinkSettings};
use crate::domain::redact::Redaction;
use crate::domain::route::Wire;
use crate::domain::side::Side;
use crate::domain::tls::ClientTls;

/// A server behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamPlan {
    /// Its name in metrics and logs.
    pub name: String,
    /// The language that it speaks.
    pub side: Side,
    /// How it is spoken to.
    pub transport: Transport,
    /// How connections to it are secured; they are plain without.
    pub tls: Option<Arc<ClientTls>>,
    /// Where it is; of a child its program, for people to read.
    pub authority: Authority,
    /// Its further addresses, as `host:port`; the name of the server is that of the first everywhere.
    pub more: Vec<String>,
    /// How its addresses are watched.
    pub watch: AddressPlan,
    /// Whether HTTP/2 is spoken to it.
    pub http2: Multiplexing,
    /// The path of its url; of a child `/`.
    pub path: PathAndQuery,
    /// Bounds the time to the answer's head, or to the whole answer when translated.
    pub timeout: Duration,
    /// Bounds connecting.
    pub connect_timeout: Duration,
    /// Bounds how long a call waits for a place among `connections`, or for its turn on a link.
    pub queue_timeout: Option<Duration>,
    /// How long an unused connection is kept; shorter than the server keeps it, or calls meet closed doors.
    pub keep_alive: Duration,
    /// How long a stream, or an upgraded connection, may be silent.
    pub idle_timeout: Duration,
    /// How old a connection grows; it takes no new call then, and an upgraded one ends.
    pub max_age: Option<Duration>,
    /// The most calls of one worker at a time, each of which has a connection of its own over HTTP/1.1.
    pub connections: usize,
    /// The most calls of one worker that wait for a place among these; a link has a queue of its own.
    pub queue: usize,
    /// Whether the caller's credentials go there.
    pub credentials: Credentials,
    /// Headers that a translated call takes along beside the usual ones.
    pub forward: Vec<HeaderName>,
    /// Members beside those of JSON-RPC that it takes for credentials.
    pub envelope: Vec<EnvelopeHeader>,
}

/// `host:port`, as requests say it: without the port that the scheme means anyway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    text: String,
    /// The value of `Host` that most calls of a server need; none of a text that no header takes.
    host: Option<HeaderValue>,
}

impl Authority {
    /// That of a server, or the program of a child.
    #[must_use]
    pub fn new(text: String) -> Authority {
        Authority {
            host: HeaderValue::try_from(&text).ok(),
            text,
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The value of `Host`, of a server that is called over HTTP.
    #[must_use]
    pub fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }
}

impl UpstreamPlan {
    /// Returns how long a call with this timeout waits for a place at an upstream over HTTP.
    #[must_use]
    pub fn connect_wait(&self, timeout: Duration) -> Duration {
        timeout.min(self.queue_timeout.unwrap_or(timeout))
    }

    /// Returns how long a call with this timeout waits for its turn on a link, or for the link itself.
    #[must_use]
    pub fn queue_wait(&self, timeout: Duration) -> Duration {
        timeout.min(self.queue_timeout.unwrap_or(self.connect_timeout))
    }

    /// Where to connect: `host:port`, the port of the scheme where the url names none.
    #[must_use]
    pub fn address(&self) -> String {
        with_port(
            self.authority.as_str(),
            if self.tls.is_some() { 443 } else { 80 },
        )
    }

    /// Whether another plan means this very server, spoken to by the same rules: a connection that one of them began may
    /// go on under the other. Its own times and numbers may differ; those of its transport may not.
    #[must_use]
    pub fn is_same_server(&self, other: &UpstreamPlan) -> bool {
        let UpstreamPlan {
            name,
            side,
            transport,
            tls,
            authority,
            more,
            path,
            credentials,
            envelope,
            watch: _,
            http2: _,
            timeout: _,
            connect_timeout: _,
            queue_timeout: _,
            keep_alive: _,
            idle_timeout: _,
            max_age: _,
            connections: _,
            queue: _,
            forward: _,
        } = self;
        // Certificates are renewed, as headers in files are, and what they had secured stays so.
        let is_there = (name, side) == (&other.name, &other.side)
            && (authority, more, path) == (&other.authority, &other.more, &other.path)
            && tls.is_some() == other.tls.is_some();
        let is_spoken_to = (credentials, envelope) == (&other.credentials, &other.envelope)
            && transport.is_same(&other.transport);
        is_there && is_spoken_to
    }
}

/// `host:port` of an authority, with the port of its scheme where it names none.
#[must_use]
pub fn with_port(authority: &str, usual: u16) -> String {
    let port = authority
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    match port {
        Some(_) => authority.to_owned(),
        None => format!("{authority}:{usual}"),
    }
}

/// Whether HTTP/2 is spoken to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Multiplexing {
    /// HTTP/1.1 is.
    Off,
    /// It is offered by TLS, and the server chooses.
    Offered,
    /// It is, and nothing else; without TLS both ends know it beforehand (RFC 9113 §3.3).
    Required,
}

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// A connection for each call, as long as it lasts.
    Http,
    /// The standard input and output of a child: one link for all callers.
    Stdio(Box<StdioPlan>),
    /// A WebSocket: one link for all callers, or one for each of their connections.
    WebSocket(Box<WebSocketPlan>),
    /// MCP over Streamable HTTP: one session for all callers.
    Mcp(Box<McpPlan>),
    /// A WebSocket whose server speaks in frames: one for each connection of a client.
    Frames(Box<FramesPlan>),
}

impl Transport {
    /// How the link is conducted, where there is one.
    #[must_use]
    pub fn link(&self) -> Option<&LinkPlan> {
        match self {
            Transport::Http | Transport::Frames(_) => None,
            Transport::Stdio(child) => Some(&child.link),
            Transport::WebSocket(socket) => Some(&socket.link),
            Transport::Mcp(server) => Some(&server.link),
        }
    }
}

impl Transport {
    /// Who shares a link, where there is one.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        match self {
            Transport::WebSocket(socket) => socket.sharing,
            Transport::Frames(_) => Sharing::Client,
            Transport::Http | Transport::Stdio(_) | Transport::Mcp(_) => Sharing::Shared,
        }
    }

    /// Whether the link brings what a server says in the response stream of a call as something of that call.
    #[must_use]
    pub fn has_response_streams(&self) -> bool {
        matches!(self, Transport::Mcp(_))
    }

    /// Whether another one goes on with what this one has begun.
    fn is_same(&self, other: &Transport) -> bool {
        match (self, other) {
            (Transport::WebSocket(one), Transport::WebSocket(other)) => {
                let mut other = other.clone();
                // How deep a message may be is no word between the two ends.
                other.link.settings.depth = one.link.settings.depth;
                let renewed = one.headers.are_renewed_by(&other.headers);
                other.headers = one.headers.clone();
                renewed && *one == other
            }
            (Transport::Frames(one), Transport::Frames(other)) => {
                let renewed = one.headers.are_renewed_by(&other.headers);
                let mut other = other.clone();
                other.headers = one.headers.clone();
                renewed && *one == other
            }
            (one, other) => one == other,
        }
    }

    /// How the other side of it is spoken.
    #[must_use]
    pub fn speech(&self) -> Wire {
        match self {
            Transport::Frames(_) => Wire::Frame,
            Transport::Http | Transport::Stdio(_) | Transport::WebSocket(_) | Transport::Mcp(_) => {
                Wire::Http
            }
        }
    }
}

/// An MCP server at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpPlan {
    /// Headers of each request beside those of MCP.
    pub headers: SecretMap,
    /// Which revision is spoken.
    pub revision: Revision,
    /// The most bytes of a message that it says.
    pub message_limit: usize,
    /// How it is spoken to.
    pub link: LinkPlan,
}

/// A child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioPlan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// All variables that it gets.
    pub env: SecretMap,
    /// Where it runs; where this program runs unless said.
    pub directory: Option<PathBuf>,
    /// Which revision of MCP is spoken, where that is for the proxy to find out or to choose.
    pub revision: Option<Revision>,
    /// The most bytes of a line that it writes.
    pub line_limit: usize,
    /// What is hidden of what it says on standard error.
    pub redaction: Arc<Redaction>,
    /// How it is spoken to.
    pub link: LinkPlan,
}

/// A WebSocket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketPlan {
    /// Headers of the request for it beside those of RFC 6455 §4.1.
    pub headers: SecretMap,
    /// Who shares one.
    pub sharing: Sharing,
    /// How many all share, where they do.
    pub sockets: usize,
    /// The most bytes of a message that the server sends, and of each of its frames.
    pub message_limit: usize,
    /// How it is spoken to.
    pub link: LinkPlan,
}

/// A WebSocket whose server speaks in frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramesPlan {
    /// Headers of the request for it beside those of RFC 6455 §4.1.
    pub headers: SecretMap,
    /// The most bytes of a message that the server sends, and of each of its frames.
    pub message_limit: usize,
    /// How many calls may wait for their answers on one of them.
    pub in_flight: usize,
    /// How a silent one is asked for a sign of life, if it is.
    pub heartbeat: Option<Heartbeat>,
}

/// Who shares a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// All callers of the process.
    Shared,
    /// The calls that come over one connection of a client.
    Client,
}

/// How a link is spoken to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPlan {
    /// How it is conducted.
    pub settings: LinkSettings,
    /// Methods that no caller may use, since they concern the link itself.
    pub withhold: Vec<String>,
}

/// Variables of a child's environment, or headers of a request. Their values may be secrets, and are not printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretMap(BTreeMap<String, SecretVariable>);

/// A value, and the file that it was read from, if it was.
#[derive(Clone, PartialEq, Eq)]
struct SecretVariable {
    text: String,
    file: Option<PathBuf>,
}

impl SecretMap {
    /// Variables by name; the last value of a name holds.
    #[must_use]
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> SecretMap {
        SecretMap::from_files(pairs.into_iter().map(|(name, text)| (name, text, None)))
    }

    /// The same, with the files that values were read from.
    #[must_use]
    pub fn from_files(
        all: impl IntoIterator<Item = (String, String, Option<PathBuf>)>,
    ) -> SecretMap {
        let all = all.into_iter();
        SecretMap(
            all.map(|(name, text, file)| (name, SecretVariable { text, file }))
                .collect(),
        )
    }

    /// Each name with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_str(), value.text.as_str()))
    }

    /// Whether others are the same but for what files say now: secrets are renewed there.
    #[must_use]
    pub fn are_renewed_by(&self, others: &SecretMap) -> bool {
        let same = |(one, other): ((&String, &SecretVariable), (&String, &SecretVariable))| {
            one.0 == other.0
                && one.1.file == other.1.file
                && (one.1.file.is_some() || one.1.text == other.1.text)
        };
        self.0.len() == others.0.len() && self.0.iter().zip(&others.0).all(same)
    }
}

impl fmt::Debug for SecretMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl UpstreamPlan {
    /// Whether its links begin with a handshake of their own.
    #[must_use]
    pub fn sends_initialize(&self) -> bool {
        let link = self.transport.link();
        link.is_some_and(|link| link.settings.greeting.is_some())
    }

    /// Whether a server behind a link speaks MCP: a revision of it is agreed on there.
    #[must_use]
    pub fn speaks_mcp(&self) -> bool {
        match &self.transport {
            Transport::Mcp(_) => true,
            Transport::Stdio(_) | Transport::WebSocket(_) => {
                let link = self.transport.link();
                link.is_some_and(|link| !link.settings.revisions.is_empty())
            }
            Transport::Http | Transport::Frames(_) => false,
        }
    }

    /// Whether the handshake of its links takes this revision, beside those that are known here.
    #[must_use]
    pub fn agrees_on(&self, revision: &str) -> bool {
        let link = self.transport.link();
        link.is_some_and(|link| link.settings.revisions.iter().any(|own| own == revision))
    }
}

/// The notification by which a client recalls a call (MCP, "Cancellation").
pub const CANCELLED: &str = "notifications/cancelled";

impl UpstreamPlan {
    /// Whether a notification of a client stays here. What names a call by an id that only its own session has never goes
    /// over a link as it came, for calls have other ids there; what ends a handshake says nothing on a link that has its
    /// own.
    #[must_use]
    pub fn keeps(&self, method: &str) -> bool {
        let greets = method == "notifications/initialized" && self.sends_initialize();
        greets || (method == CANCELLED && self.transport.link().is_some())
    }
}

/// Whether the caller's credentials go to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// `Authorization`, `Cookie` and the like go along.
    Forward,
    /// They stay here.
    Drop,
}
