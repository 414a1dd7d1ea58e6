//! `[upstream.NAME]`: a server with an address, or a child process. Used by `decode`.

use std::time::Duration;

use http::{HeaderName, Uri};

use super::addresses::ADDRESSES;
use super::envelope::{ENVELOPE, envelope};
use super::headers::HEADERS as LINK_HEADERS;
use super::link::LINK as LINKS;
use super::mcp::MCP;
use super::shared::{MOST, SIDES};
use super::stdio::STDIO;
use super::websocket::WEBSOCKET;
use super::{addresses, mcp, stdio, tls, websocket};
use crate::config::key::{Key, List, Rule, SubTable, TableShape, key, list, section, table};
use crate::config::kind::{DURATION, HEADER, NAME, TIMEOUT, boolean, other, whole, words};
use crate::config::problem::Spanned;
use crate::config::raw::{RawServer, RawUpstream};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{self, RawValue, ValueError};
use dualgauge_model::plan::Credentials;
use dualgauge_patterns::side::Side;
use dualgauge_transport::multiplexing::Multiplexing;

const CREDENTIAL_WORDS: &[(&str, Credentials)] = &[
    ("forward", Credentials::Forward),
    ("drop", Credentials::Drop),
];

/// Keys of upstreams with an address.
const OF_URL: &[&str] = &[
    "protocol",
    "keep_alive",
    "idle_timeout",
    "max_age",
    "http2",
    "connections",
    "forward",
];
/// Those of them that a WebSocket does not have.
const OF_HTTP: &[&str] = &["keep_alive", "http2", "forward"];
/// Keys of links with an address only.
const HEADERS: &[&str] = &["headers"];
const HEADERS_OF: &str = "a `ws://` url, or with `protocol = \"mcp\"`";
/// Keys of all links.
const LINK: &[&str] = &[
    "in_flight",
    "queue",
    "handshake",
    "initialize",
    "login",
    "start_timeout",
    "log_messages",
    "unanswered",
    "withhold",
];

/// The words of `protocol`: whether it is MCP over Streamable HTTP, or plain JSON-RPC.
const PROTOCOLS: &[(&str, bool)] = &[("jsonrpc", false), ("mcp", true)];

section! {
    /// `[upstream.NAME]`
    pub(super) UPSTREAM + ADDRESSES + LINK_HEADERS + LINKS + STDIO + WEBSOCKET + MCP {
        /// Side of the server
        SIDE: Key<Side> = key("side", words(SIDES)).required();
        /// JSON-RPC over HTTP, or MCP over Streamable HTTP
        PROTOCOL: Key<bool> = key("protocol", words(PROTOCOLS)).or("jsonrpc");
        /// Until the response head; if translated, until the whole response
        CALL_TIMEOUT: Key<Duration> = key("timeout", TIMEOUT).or("30s");
        /// Until a connection is open
        CONNECT_TIMEOUT: Key<Duration> = key("connect_timeout", TIMEOUT).or("5s");
        /// Wait for a connection or a turn; that of the call, or of a link `connect_timeout`, by default
        QUEUE_TIMEOUT: Key<Duration> = key("queue_timeout", TIMEOUT);
        /// Lifetime of an idle connection, below that of common servers (5 s)
        KEEP_ALIVE: Key<Duration> = key("keep_alive", DURATION).or("4s");
        /// Longest silence of a streamed response or upgraded connection
        IDLE_TIMEOUT: Key<Duration> = key("idle_timeout", TIMEOUT).or("5m");
        /// Age limit of connections
        MAX_AGE: Key<Duration> = key("max_age", TIMEOUT);
        /// HTTP/2 to the server; `false` by default
        HTTP2: Key<Multiplexing> =
            key("http2", other("`true`, `false` or `auto`", r#"{ "enum": [true, false, "auto"] }"#, http2));
        /// Concurrent calls per worker
        CONNECTIONS: Key<usize> = key("connections", whole(1, MOST)).or("256");
        /// Queued calls per worker over HTTP; more get `upstream_busy`
        HTTP_QUEUE: Key<usize> = key("queue", whole(0, MOST)).or("1024");
        /// Handling of `authorization` and `cookie` of callers
        CREDENTIALS: Key<Credentials> = key("credentials", words(CREDENTIAL_WORDS)).or("forward");
        /// Further headers that translation forwards
        FORWARD: List<HeaderName> = list("forward", HEADER);
        /// Members of a message that carry credentials, each with its header; those of `rpc` by default
        OF_UPSTREAM: SubTable = table("envelope", &ENVELOPE).of(TableShape::Named);
        /// TLS to the server
        TLS: SubTable = table("tls", &tls::CLIENT);
        /// Serves calls of routes without `upstream`; `false` by default
        DEFAULT: Key<bool> = key("default", boolean(&[false, true]));
        /// Other MCP server: stages choose between the two, with this one as the control
        CANDIDATE: Key<String> = key("candidate", NAME);
    }
    rules [
        Rule::ExactlyOne(&["url", "urls", "command"]),
        Rule::Excludes("command", OF_URL),
        Rule::Excludes("command", addresses::OWN),
        Rule::Excludes("command", websocket::OWN),
        Rule::Excludes("command", HEADERS),
        Rule::Excludes("command", mcp::OVER_HTTP),
        Rule::Excludes("url", stdio::OWN),
        Rule::Excludes("urls", stdio::OWN),
    ]
}

pub(super) fn upstream(table: &mut Table<'_>, chosen: &str) -> Option<RawUpstream> {
    let name = table.named(chosen, &NAME);
    let side = table.get(&SIDE);
    let is_rest = side.as_ref().is_some_and(|side| side.value == Side::Rest);
    let own_side = if is_rest { Side::Rest } else { Side::Rpc };
    let (server, more) = server(table, own_side).unzip();
    let addresses = addresses::addresses(table, more.unwrap_or_default());
    let timeout = table.get(&CALL_TIMEOUT);
    let connect_timeout = table.get(&CONNECT_TIMEOUT);
    let queue_timeout = table.get(&QUEUE_TIMEOUT);
    let keep_alive = table.get(&KEEP_ALIVE);
    let idle_timeout = table.get(&IDLE_TIMEOUT);
    let max_age = table.get(&MAX_AGE);
    let http2 = table.get(&HTTP2);
    let connections = table.get(&CONNECTIONS);
    let queue = match &server {
        Some(RawServer::Url(_)) => table.get(&HTTP_QUEUE),
        // A link has decoded its own `queue`.
        Some(RawServer::Mcp(_) | RawServer::Socket(_) | RawServer::Command(_)) | None => None,
    };
    let credentials = table.get(&CREDENTIALS);
    let forward = table.list(&FORWARD);
    let envelope = envelope(table, &OF_UPSTREAM);
    let tls = table.table(&TLS, tls::client);
    let is_plain = server.as_ref().is_some_and(|server| !is_secured(server));
    if let (true, Some(tls)) = (is_plain, &tls) {
        let message = "`tls` belongs to an upstream with an `https://` or `wss://` url; remove it";
        table.add(tls.place.problem(message));
    }
    let usual = table.get(&DEFAULT);
    let candidate = table.get(&CANDIDATE);
    Some(RawUpstream {
        name: name?,
        side: side?,
        server: server?,
        timeout: timeout?,
        connect_timeout: connect_timeout?,
        queue_timeout,
        keep_alive: keep_alive?,
        idle_timeout: idle_timeout?,
        http2,
        max_age,
        connections: connections?,
        queue,
        credentials: credentials?,
        forward: forward?,
        envelope,
        tls,
        addresses,
        usual,
        candidate,
    })
}

/// Decodes `http2`: a boolean, or a word.
fn http2(found: RawValue<'_>) -> Result<Multiplexing, ValueError> {
    if found.is_text("auto") {
        return Ok(Multiplexing::Offered);
    }
    let truth = value::boolean(Multiplexing::Off, Multiplexing::Required)(found);
    truth.map_err(|_| {
        let message = format!(
            "{} is not allowed here; write `true`, `false` or `auto`",
            found.describe()
        );
        ValueError::new(message)
            .hint("`auto` negotiates the version over TLS; `true` uses only HTTP/2")
    })
}

/// Decodes the address of a server or the command of a child process: exactly one, without keys of the other.
fn server(table: &mut Table<'_>, side: Side) -> Option<(RawServer, Vec<Spanned<Uri>>)> {
    if table.shape("command") == Shape::Absent {
        return address(table, side);
    }
    if table.shape("url") != Shape::Absent {
        let both = ValueError::new("`url` and `command` exclude each other")
            .hint("keep `url` for a server with an address, `command` for a child process");
        table.report("command", both);
    }
    foreign(table, OF_URL, "`url`");
    foreign(table, addresses::OWN, "an `http://` url");
    foreign(table, websocket::OWN, "a `ws://` url");
    foreign(table, HEADERS, HEADERS_OF);
    foreign(table, mcp::OVER_HTTP, "`protocol = \"mcp\"`");
    let child = stdio::stdio(table)?;
    Some((RawServer::Command(Box::new(child)), Vec::new()))
}

/// Decodes a server with an address, by its protocol.
fn address(table: &mut Table<'_>, side: Side) -> Option<(RawServer, Vec<Spanned<Uri>>)> {
    foreign(table, stdio::OWN, "`command`");
    let protocol = table.get(&PROTOCOL);
    let is_mcp = protocol.is_some_and(|is_mcp| is_mcp.value);
    let (url, more) = addresses::urls(table)?;
    if !is_mcp {
        foreign(table, mcp::OVER_HTTP, "`protocol = \"mcp\"`");
    }
    match (matches!(url.value.scheme_str(), Some("ws" | "wss")), is_mcp) {
        (true, is_mcp) => {
            foreign(table, OF_HTTP, "an `http://` url");
            foreign(table, addresses::OWN, "an `http://` url");
            foreign(table, mcp::OWN, "`protocol = \"mcp\"`");
            if is_mcp {
                let wrong = "`protocol = \"mcp\"` needs an `http://` url; remove `protocol`, and write `handshake = \"mcp\"`";
                table.report("protocol", ValueError::new(wrong));
            }
            let socket = websocket::websocket(table, url, side)?;
            Some((RawServer::Socket(Box::new(socket)), Vec::new()))
        }
        (false, true) => {
            let is_foreign = |key: &&&str| !mcp::OF_LINK.contains(key);
            let links: Vec<_> = LINK.iter().filter(is_foreign).copied().collect();
            foreign(table, &links, "`command`, or with a `ws://` url");
            let sockets: Vec<_> = websocket::OWN.iter().filter(is_foreign).copied().collect();
            foreign(table, &sockets, "a `ws://` url");
            for key in mcp::NOT.iter().chain(addresses::OWN) {
                if table.shape(key) != Shape::Absent {
                    let message =
                        format!("`{key}` is not allowed with `protocol = \"mcp\"`; remove it");
                    table.report(key, ValueError::new(message));
                }
            }
            let server = mcp::mcp(table, url)?;
            Some((RawServer::Mcp(Box::new(server)), Vec::new()))
        }
        (false, false) => {
            foreign(table, websocket::OWN, "a `ws://` url");
            foreign(table, HEADERS, HEADERS_OF);
            let links: Vec<_> = LINK
                .iter()
                .filter(|key| **key != "queue")
                .copied()
                .collect();
            foreign(table, &links, "`command`, or with a `ws://` url");
            foreign(table, mcp::OWN, "`protocol = \"mcp\"`");
            Some((RawServer::Url(url), more))
        }
    }
}

/// Returns whether the server is reached over TLS.
fn is_secured(server: &RawServer) -> bool {
    match server {
        RawServer::Url(url) => url.value.scheme_str() == Some("https"),
        RawServer::Mcp(server) => server.url.value.scheme_str() == Some("https"),
        RawServer::Socket(socket) => socket.url.value.scheme_str() == Some("wss"),
        RawServer::Command(_) => false,
    }
}

fn foreign(table: &mut Table<'_>, keys: &[&'static str], of: &str) {
    for key in keys {
        if table.shape(key) != Shape::Absent {
            let message = format!("`{key}` belongs to an upstream with {of}; remove it");
            table.report(key, ValueError::new(message));
        }
    }
}
