//! An upstream of the plan: its address or child process, its protocol, and its limits.
//!
//! Used by `app`, `config`, `model`, `gateway` and `upstream`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};

use crate::envelope::EnvelopeHeader;
use crate::mcp::Revision;
use crate::pending::{Heartbeat, LinkSettings, LoginTemplate};
use crate::redact::Redaction;
use crate::route::Wire;
use dualgauge_patterns::side::Side;
use dualgauge_transport::load_balancing::AddressPlan;
use dualgauge_transport::multiplexing::Multiplexing;
use dualgauge_transport::tls::ClientTls;

/// An upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamPlan {
    /// Its name in metrics and logs.
    pub name: String,
    /// The side that it serves.
    pub side: Side,
    /// The transport to it.
    pub transport: Transport,
    /// TLS to it; `None` for plain connections.
    pub tls: Option<Arc<ClientTls>>,
    /// Its address; for a child process the program, for display.
    pub authority: Authority,
    /// Further addresses, as `host:port`; requests name the host of the first one everywhere.
    pub more: Vec<String>,
    /// The health checks of its addresses.
    pub watch: AddressPlan,
    /// The use of HTTP/2.
    pub http2: Multiplexing,
    /// The path of its URL; `/` for a child process.
    pub path: PathAndQuery,
    /// Timeout for the response head, or for the whole response when translated.
    pub timeout: Duration,
    /// Timeout for connecting.
    pub connect_timeout: Duration,
    /// Timeout for a slot among `connections`, or for a turn on a link.
    pub queue_timeout: Option<Duration>,
    /// Time that an idle connection is kept. It must be shorter than the server's own, or calls meet closed
    /// connections.
    pub keep_alive: Duration,
    /// Time that a stream or an upgraded connection may be silent.
    pub idle_timeout: Duration,
    /// Maximum age of a connection: it then accepts no new calls, and an upgraded connection is closed.
    pub max_age: Option<Duration>,
    /// Concurrent calls of one worker; over HTTP/1.1 each has a connection of its own.
    pub connections: usize,
    /// Queued calls of one worker when all slots are taken; a link has its own queue.
    pub queue: usize,
    /// Permission to forward the client's credentials.
    pub credentials: Credentials,
    /// Additional headers that a translated call keeps.
    pub forward: Vec<HeaderName>,
    /// Envelope members that it accepts as credentials.
    pub envelope: Vec<EnvelopeHeader>,
}

/// `host:port` as in requests: without the default port of the scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    text: String,
    /// The usual `Host` header value; `None` if the text is not a valid one.
    host: Option<HeaderValue>,
}

impl Authority {
    /// Returns the authority of a server, or the program of a child process.
    #[must_use]
    pub fn new(text: String) -> Authority {
        Authority {
            host: HeaderValue::try_from(&text).ok(),
            text,
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the `Host` header value of an HTTP server.
    #[must_use]
    pub fn host(&self) -> Option<&HeaderValue> {
        self.host.as_ref()
    }
}

impl UpstreamPlan {
    /// Returns the time that a call with this timeout waits for a slot at an HTTP upstream.
    #[must_use]
    pub fn slot_wait(&self, timeout: Duration) -> Duration {
        timeout.min(self.queue_timeout.unwrap_or(timeout))
    }

    /// Returns the time that a call with this timeout waits for its turn on a link, or for the link itself.
    #[must_use]
    pub fn queue_wait(&self, timeout: Duration) -> Duration {
        timeout.min(self.queue_timeout.unwrap_or(self.connect_timeout))
    }

    /// Returns the address to connect to: `host:port`, with the default port of the scheme if the URL names none.
    #[must_use]
    pub fn address(&self) -> String {
        with_port(
            self.authority.as_str(),
            if self.tls.is_some() { 443 } else { 80 },
        )
    }

    /// Returns whether another plan describes the same server with the same transport, so that open connections can be
    /// kept. Timeouts and limits may differ; those of the transport may not.
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
        // Certificates are renewed, like headers from files; connections made with the old ones stay valid.
        let is_there = (name, side) == (&other.name, &other.side)
            && (authority, more, path) == (&other.authority, &other.more, &other.path)
            && tls.is_some() == other.tls.is_some();
        let is_sent_alike = (credentials, envelope) == (&other.credentials, &other.envelope)
            && transport.is_same(&other.transport);
        is_there && is_sent_alike
    }
}

/// Returns `host:port` of an authority, with the given default port if it names none.
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

/// The transport to an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// HTTP: a connection for each call while it lasts.
    Http,
    /// The standard input and output of a child process: one link for all clients.
    Stdio(Box<StdioPlan>),
    /// A WebSocket: one link for all clients, or one for each client connection.
    WebSocket(Box<WebSocketPlan>),
    /// MCP over Streamable HTTP: one session for all clients.
    Mcp(Box<McpPlan>),
    /// A WebSocket with a frame protocol: one for each client connection.
    Frames(Box<FramesPlan>),
}

/// Returns whether two logins differ only in secrets from files.
fn is_renewed_by(one: Option<&LoginTemplate>, other: Option<&LoginTemplate>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_renewed_by(other),
        (one, other) => one == other,
    }
}

impl Transport {
    /// Returns the settings of the link, if the transport has one.
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
    /// Returns the sharing of the link.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        match self {
            Transport::WebSocket(socket) => socket.sharing,
            Transport::Frames(_) => Sharing::Client,
            Transport::Mcp(server) if server.authorization == McpAuthorization::Client => {
                Sharing::Authorization
            }
            Transport::Http | Transport::Stdio(_) | Transport::Mcp(_) => Sharing::Shared,
        }
    }

    /// Returns whether the server may send its caller log messages and requests during a call: an MCP server, which has
    /// a handshake.
    #[must_use]
    pub fn sends_during_calls(&self) -> bool {
        let link = self.link();
        link.is_some_and(|link| link.settings.initialize_params.is_some())
    }

    /// Returns whether open connections of one transport can be kept under another.
    fn is_same(&self, other: &Transport) -> bool {
        match (self, other) {
            (Transport::WebSocket(one), Transport::WebSocket(other)) => {
                let mut other = other.clone();
                // The maximum depth of messages is not visible to the peer.
                other.link.settings.depth = one.link.settings.depth;
                let renewed = one.headers.are_renewed_by(&other.headers)
                    && is_renewed_by(one.link.login.as_ref(), other.link.login.as_ref());
                other.headers = one.headers.clone();
                other.link.login.clone_from(&one.link.login);
                let login = &one.link.settings.login;
                other.link.settings.login.clone_from(login);
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

    /// Returns the wire protocol of the REST side.
    #[must_use]
    pub fn rest_protocol(&self) -> Wire {
        match self {
            Transport::Frames(_) => Wire::Frame,
            Transport::Http | Transport::Stdio(_) | Transport::WebSocket(_) | Transport::Mcp(_) => {
                Wire::Http
            }
        }
    }
}

/// An MCP server over Streamable HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpPlan {
    /// Additional headers of each request.
    pub headers: SecretMap,
    /// The transport of its messages.
    pub transport: McpTransport,
    /// The credentials of its messages.
    pub authorization: McpAuthorization,
    /// The MCP revision to use.
    pub revision: Revision,
    /// The maximum size of a message from it, in bytes.
    pub message_limit: usize,
    /// The link settings.
    pub link: LinkPlan,
}

/// The `Authorization` of the messages to an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpAuthorization {
    /// That of the plan's headers, if they have one.
    Own,
    /// That of the client: its calls have a session of their own.
    Client,
}

/// The transport of MCP messages over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpTransport {
    /// Streamable HTTP: each response comes in that of a POST.
    Streamable,
    /// HTTP with SSE of 2024-11-05: all responses come on one event stream.
    Sse,
}

/// A child process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StdioPlan {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The complete environment.
    pub env: SecretMap,
    /// The working directory; that of the proxy if `None`.
    pub directory: Option<PathBuf>,
    /// The MCP revision, if the proxy detects or chooses it.
    pub revision: Option<Revision>,
    /// The boundaries of messages.
    pub framing: Framing,
    /// The maximum length of an output line or message, in bytes.
    pub line_limit: usize,
    /// The link settings.
    pub link: LinkPlan,
}

/// The boundaries of the messages of a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One message a line.
    Lines,
    /// A header with the length before each message (Language Server Protocol, "Base Protocol").
    ContentLength,
}

/// A WebSocket upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocketPlan {
    /// Additional headers of the opening handshake (RFC 6455 §4.1).
    pub headers: SecretMap,
    /// The sharing of a socket.
    pub sharing: Sharing,
    /// The number of shared sockets.
    pub sockets: usize,
    /// The maximum size of a message from the server, and of each of its frames, in bytes.
    pub message_limit: usize,
    /// The link settings.
    pub link: LinkPlan,
}

/// A WebSocket upstream with a frame protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramesPlan {
    /// Additional headers of the opening handshake (RFC 6455 §4.1).
    pub headers: SecretMap,
    /// The maximum size of a message from the server, and of each of its frames, in bytes.
    pub message_limit: usize,
    /// Calls in flight on one socket.
    pub in_flight: usize,
    /// Pings on an idle socket, if enabled.
    pub heartbeat: Option<Heartbeat>,
}

/// The sharing of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One link for all clients of the process.
    Shared,
    /// One link for each client connection.
    Client,
    /// One link for each `Authorization` of clients, and worker.
    Authorization,
}

/// The plan of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkPlan {
    /// The settings of the link's state machine. The login is in them, unless it takes values from the caller.
    pub settings: LinkSettings,
    /// The login of each link.
    pub login: Option<LoginTemplate>,
    /// Methods that clients may not call, since they concern the link itself.
    pub blocked_methods: Vec<String>,
    /// The redaction rules for texts of the server in logs and errors.
    pub redaction: Arc<Redaction>,
}

/// Environment variables of a child process, or request headers. Values may be secrets and are not printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretMap(BTreeMap<String, SecretVariable>);

/// A value, and the file it was read from, if any.
#[derive(Clone, PartialEq, Eq)]
struct SecretVariable {
    text: String,
    file: Option<PathBuf>,
}

impl SecretMap {
    /// Returns a map from names to values; the last value of a name wins.
    #[must_use]
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> SecretMap {
        SecretMap::from_files(pairs.into_iter().map(|(name, text)| (name, text, None)))
    }

    /// Returns a map with the files that values were read from.
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

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.0.iter();
        pairs.map(|(name, value)| (name.as_str(), value.text.as_str()))
    }

    /// Returns whether the maps differ only in values that were read from files: secrets are rotated there.
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
    /// Returns whether the login of a link takes a value from this header of the caller.
    #[must_use]
    pub fn logs_in_with(&self, header: &HeaderName) -> bool {
        let login = self.transport.link().and_then(|link| link.login.as_ref());
        login.is_some_and(|login| login.headers().any(|name| name == header))
    }

    /// Returns whether the proxy sends `initialize` on its links.
    #[must_use]
    pub fn sends_initialize(&self) -> bool {
        let link = self.transport.link();
        link.is_some_and(|link| link.settings.initialize_params.is_some())
    }

    /// Returns whether an upstream with a link speaks MCP, and so negotiates a revision.
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

    /// Returns whether the link accepts this revision in addition to the built-in ones.
    #[must_use]
    pub fn agrees_on(&self, revision: &str) -> bool {
        let link = self.transport.link();
        link.is_some_and(|link| {
            link.settings
                .revisions
                .iter()
                .any(|accepted| accepted == revision)
        })
    }
}

/// The notification by which a client cancels a call (MCP, "Cancellation").
pub const CANCELLED: &str = "notifications/cancelled";

impl UpstreamPlan {
    /// Returns whether the proxy consumes a client's notification. A cancellation names an id of the client's session,
    /// while calls have other ids on a link. The end of a handshake is meaningless on a link that has made its own.
    #[must_use]
    pub fn keeps(&self, method: &str) -> bool {
        let greets = method == "notifications/initialized" && self.sends_initialize();
        greets || (method == CANCELLED && self.transport.link().is_some())
    }
}

/// Permission to forward the client's credentials to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials {
    /// `Authorization`, `Cookie` and other credentials are forwarded.
    Forward,
    /// They are removed.
    Drop,
}
