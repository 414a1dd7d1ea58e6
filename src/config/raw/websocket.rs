//! A WebSocket upstream: the keys for a `ws://` or `wss://` url. Used by `compile::websocket` and `decode::websocket`.

use std::time::Duration;

use http::Uri;

use super::identity::RawHeaders;
use super::stdio::RawLogin;
use crate::config::problem::Spanned;
use dualgauge_model::pending::LogMessages;
use dualgauge_model::plan::Sharing;
use dualgauge_patterns::json::Json;

/// The keys of `[upstream.NAME]` with such a url.
#[derive(Debug, Clone, PartialEq)]
pub struct RawWebSocket {
    /// `url`
    pub url: Spanned<Uri>,
    /// `headers`
    pub headers: RawHeaders,
    /// `sharing`
    pub sharing: Spanned<Sharing>,
    /// `sockets`: the number of shared sockets.
    pub sockets: Spanned<usize>,
    /// `in_flight`
    pub in_flight: Spanned<usize>,
    /// `queue`
    pub queue: Spanned<usize>,
    /// `handshake`
    pub has_handshake: Spanned<bool>,
    /// `initialize`: only with a handshake.
    pub initialize: Option<Json>,
    /// `login`
    pub login: Option<RawLogin>,
    /// `start_timeout`: not zero.
    pub start_timeout: Spanned<Duration>,
    /// `log_messages`
    pub log_messages: Spanned<LogMessages>,
    /// `message_limit`: in bytes.
    pub message_limit: Spanned<usize>,
    /// `heartbeat`: zero for none.
    pub heartbeat: Spanned<Duration>,
    /// `heartbeat_timeout`: not zero.
    pub heartbeat_timeout: Spanned<Duration>,
    /// `unanswered`
    pub unanswered: Spanned<usize>,
    /// `withhold`
    pub withhold: Vec<String>,
}
