//! Keys of an MCP upstream over Streamable HTTP. Used by `decode::stdio` and `decode::upstream`.

use std::time::Duration;

use http::Uri;

use super::headers::headers;
use super::link::log_messages;
use super::shared::MOST;
use crate::config::problem::Spanned;
use crate::config::raw::RawMcp;
use crate::config::table_reader::Table;
use crate::config::value::{RawValue, ValueError, size, string, timeout, whole};
use dualgauge_model::local_reply::{HANDSHAKES, STATELESS};
use dualgauge_model::mcp::Revision;

/// Keys shared with child processes only.
pub(super) const OWN: &[&str] = &["revision"];
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

const IN_FLIGHT: usize = 64;
const QUEUE: usize = 256;
const START_TIMEOUT: Duration = Duration::from_secs(30);
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;

pub(super) fn mcp(table: &mut Table<'_>, url: Spanned<Uri>) -> Option<RawMcp> {
    let headers = headers(table, NOT_SENT, "MCP messages");
    let revision = table.get_or("revision", revision, Revision::Auto);
    let in_flight = table.get_or("in_flight", whole(1..=MOST), IN_FLIGHT);
    let queue = table.get_or("queue", whole(1..=MOST), QUEUE);
    let start_timeout = table.get_or("start_timeout", timeout, START_TIMEOUT);
    let log_messages = log_messages(table);
    let message_limit = table.get_or("message_limit", size(1024), MESSAGE_LIMIT);
    Some(RawMcp {
        url,
        headers: headers?,
        revision: revision?,
        in_flight: in_flight?,
        queue: queue?,
        start_timeout: start_timeout?,
        log_messages: log_messages?,
        message_limit: message_limit?,
    })
}

pub(super) fn revision(found: RawValue<'_>) -> Result<Revision, ValueError> {
    let name = string(found)?;
    Revision::named(&name).ok_or_else(|| {
        let known: Vec<_> = HANDSHAKES.iter().chain(&STATELESS).copied().collect();
        let wrong = ValueError::new("this is not a known MCP revision");
        wrong.hint(format!("write `auto`, or one of {}", known.join(", ")))
    })
}
