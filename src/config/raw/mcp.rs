//! An upstream that is an MCP server at an address: `protocol = "mcp"` and what belongs to it.

use std::time::Duration;

use http::Uri;

use super::RawHeaders;
use crate::config::problem::Located;
use crate::domain::mcp::Revision;
use crate::domain::pending::LogMessages;

/// The keys of `[upstream.NAME]` with `protocol = "mcp"`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawMcp {
    /// `url`: as that of any server.
    pub url: Located<Uri>,
    /// `headers`
    pub headers: RawHeaders,
    /// `revision`
    pub revision: Located<Revision>,
    /// `in_flight`
    pub in_flight: Located<usize>,
    /// `queue`
    pub queue: Located<usize>,
    /// `start_timeout`: not zero.
    pub start_timeout: Located<Duration>,
    /// `log_messages`
    pub log_messages: Located<LogMessages>,
    /// `message_limit`: in bytes.
    pub message_limit: Located<usize>,
}
