//! An MCP upstream over Streamable HTTP: the keys for `protocol = "mcp"`. Used by `compile::mcp` and `decode::mcp`.

use std::time::Duration;

use http::Uri;

use super::identity::RawHeaders;
use crate::config::problem::Spanned;
use dualgauge_model::mcp::Revision;
use dualgauge_model::pending::{LogMessages, ServerRequests};
use dualgauge_model::plan::{McpAuthorization, McpTransport};

/// The keys of `[upstream.NAME]` with `protocol = "mcp"`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawMcp {
    /// `url`: as of any HTTP upstream.
    pub url: Spanned<Uri>,
    /// `headers`
    pub headers: RawHeaders,
    /// `transport`
    pub transport: Spanned<McpTransport>,
    /// `authorization`
    pub authorization: Spanned<McpAuthorization>,
    /// `revision`
    pub revision: Spanned<Revision>,
    /// `in_flight`
    pub in_flight: Spanned<usize>,
    /// `queue`
    pub queue: Spanned<usize>,
    /// `start_timeout`: not zero.
    pub start_timeout: Spanned<Duration>,
    /// `log_messages`
    pub log_messages: Spanned<LogMessages>,
    /// `server_requests`
    pub server_requests: Spanned<ServerRequests>,
    /// `message_limit`: in bytes.
    pub message_limit: Spanned<usize>,
}
