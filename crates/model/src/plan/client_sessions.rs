//! Sessions of clients: WebSockets, and event streams with POSTs. Used by `config`, `routing` and `gateway`.

use std::time::Duration;

use super::RpcFace;
use crate::route::without_slash;

/// The settings of client WebSockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientSocketPlan {
    /// Concurrent messages of one socket.
    pub concurrency: usize,
    /// Time without a message after which a socket is closed.
    pub idle_timeout: Duration,
    /// The protocol of the socket.
    pub protocol: SocketProtocol,
}

/// The protocol that clients use over WebSockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketProtocol {
    /// JSON-RPC only.
    Rpc,
    /// JSON-RPC or frames, detected for each message.
    Both,
}

/// The settings of event streams that clients open (MCP 2024-11-05, "HTTP with SSE").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventStreamPlan {
    /// The path of the streams, and of the messages to them.
    pub path: String,
    /// The limits of one session.
    pub session: ClientSocketPlan,
}

impl RpcFace {
    /// Returns the settings of event streams, if a path is theirs.
    #[must_use]
    pub fn event_streams_at(&self, path: &str) -> Option<&EventStreamPlan> {
        let streams = self.event_streams.as_ref()?;
        (without_slash(path) == streams.path).then_some(streams)
    }
}
