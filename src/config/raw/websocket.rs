//! An upstream that is a WebSocket: a `ws://` or `wss://` url and what belongs to it.

use std::time::Duration;

use http::Uri;

use super::{HandshakeWord, RawHeaders};
use crate::config::problem::Located;
use crate::domain::json::Json;
use crate::domain::pending::LogMessages;
use crate::domain::plan::Sharing;

/// The keys of `[upstream.NAME]` with such a url.
#[derive(Debug, Clone, PartialEq)]
pub struct RawWebSocket {
    /// `url`
    pub url: Located<Uri>,
    /// `headers`
    pub headers: RawHeaders,
    /// `sharing`
    pub sharing: Located<Sharing>,
    /// `sockets`: how many all clients share.
    pub sockets: Located<usize>,
    /// `in_flight`
    pub in_flight: Located<usize>,
    /// `queue`
    pub queue: Located<usize>,
    /// `handshake`
    pub handshake: Located<HandshakeWord>,
    /// `initialize`: only with a handshake.
    pub initialize: Option<Json>,
    /// `start_timeout`: not zero.
    pub start_timeout: Located<Duration>,
    /// `log_messages`
    pub log_messages: Located<LogMessages>,
    /// `message_limit`: in bytes.
    pub message_limit: Located<usize>,
    /// `heartbeat`: zero for none.
    pub heartbeat: Located<Duration>,
    /// `heartbeat_timeout`: not zero.
    pub heartbeat_timeout: Located<Duration>,
    /// `unanswered`
    pub unanswered: Located<usize>,
    /// `withhold`
    pub withhold: Vec<String>,
}
