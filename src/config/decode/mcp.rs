//! Keys of an MCP upstream over Streamable HTTP. Used by `decode::stdio` and `decode::upstream`.

use http::Uri;

use super::headers::headers;
use super::link::{LOG_MESSAGES, QUEUE, START_TIMEOUT};
use super::shared::MOST;
use crate::config::key::{Key, key, section};
use crate::config::kind::{SOME_TEXT, other, size, whole, words};
use crate::config::problem::Spanned;
use crate::config::raw::RawMcp;
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, string};
use dualgauge_model::local_reply::{HANDSHAKES, STATELESS};
use dualgauge_model::mcp::Revision;
use dualgauge_model::pending::ServerRequests;
use dualgauge_model::plan::{McpAuthorization, McpTransport};

/// Keys shared with child processes only.
pub(super) const OWN: &[&str] = &["revision"];
/// Keys of MCP servers over HTTP only.
pub(super) const OVER_HTTP: &[&str] = &["transport", "authorization"];
/// Keys shared with other links.
pub(super) const OF_LINK: &[&str] = &[
    "in_flight",
    "queue",
    "start_timeout",
    "log_messages",
    "message_limit",
];
/// HTTP keys that do not apply.
pub(super) const NOT: &[&str] = &["connections", "forward"];

/// Headers that a POST of a message sets itself, or must not have.
const NOT_SENT: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The transports of MCP messages over HTTP.
const TRANSPORTS: &[(&str, McpTransport)] = &[
    ("streamable-http", McpTransport::Streamable),
    ("sse", McpTransport::Sse),
];

/// The owner of the `Authorization` of messages.
const AUTHORIZATIONS: &[(&str, McpAuthorization)] = &[
    ("own", McpAuthorization::Own),
    ("client", McpAuthorization::Client),
];

const REQUEST_WORDS: &[(&str, ServerRequests)] = &[
    ("caller", ServerRequests::Caller),
    ("decline", ServerRequests::Decline),
];

section! {
    /// Keys of an MCP server, or of a child process that speaks MCP.
    pub(super) MCP {
        /// MCP revision, or `auto`
        pub(super) REVISION: Key<Revision> =
            key("revision", other("known MCP revision", SOME_TEXT, revision)).or("auto");
        /// Streamable HTTP, or HTTP with SSE of 2024-11-05
        TRANSPORT: Key<McpTransport> = key("transport", words(TRANSPORTS)).or("streamable-http");
        /// `Authorization` of messages: of `headers`, or of the client, whose calls then have a session of their own
        AUTHORIZATION: Key<McpAuthorization> = key("authorization", words(AUTHORIZATIONS)).or("own");
        /// Concurrent calls of a session
        IN_FLIGHT: Key<usize> = key("in_flight", whole(1, MOST)).or("64");
        /// Receiver of requests of the server
        SERVER_REQUESTS: Key<ServerRequests> = key("server_requests", words(REQUEST_WORDS)).or("caller");
        /// Longest JSON response or stream event
        MESSAGE_LIMIT: Key<usize> = key("message_limit", size(1024)).or("16MiB");
    }
}

pub(super) fn mcp(table: &mut Table<'_>, url: Spanned<Uri>) -> Option<RawMcp> {
    let headers = headers(table, NOT_SENT, "MCP messages");
    let revision = table.get(&REVISION);
    let transport = table.get(&TRANSPORT);
    let authorization = table.get(&AUTHORIZATION);
    let in_flight = table.get(&IN_FLIGHT);
    let queue = table.get(&QUEUE);
    let start_timeout = table.get(&START_TIMEOUT);
    let log_messages = table.get(&LOG_MESSAGES);
    let server_requests = table.get(&SERVER_REQUESTS);
    let message_limit = table.get(&MESSAGE_LIMIT);
    Some(RawMcp {
        url,
        headers: headers?,
        transport: transport?,
        authorization: authorization?,
        revision: revision?,
        in_flight: in_flight?,
        queue: queue?,
        start_timeout: start_timeout?,
        log_messages: log_messages?,
        server_requests: server_requests?,
        message_limit: message_limit?,
    })
}

fn revision(found: RawValue<'_>) -> Result<Revision, ValueError> {
    let name = string(found)?;
    Revision::named(&name).ok_or_else(|| {
        let known: Vec<_> = HANDSHAKES.iter().chain(&STATELESS).copied().collect();
        let wrong = ValueError::new("this is not a known MCP revision");
        wrong.hint(format!("write `auto`, or one of {}", known.join(", ")))
    })
}
