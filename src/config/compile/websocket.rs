//! A WebSocket upstream: its handshake headers, and its link. Used by `compile::upstreams`.

use std::sync::Arc;
use std::time::Duration;

use super::redaction::redaction;
use super::stdio::{BACKOFF, attributed, initialize_params};
use super::{headers, login};
use crate::config::raw::{RawConfig, RawWebSocket};
use dualgauge_model::mcp::accepted_revisions;
use dualgauge_model::pending::{
    AnswerOrder, Heartbeat, LinkClients, LinkSettings, LogMessages, ServerRequests,
};
use dualgauge_model::plan::{FramesPlan, LinkPlan, Sharing, Transport, WebSocketPlan};
use dualgauge_patterns::side::Side;

/// Compiles the transport. On the RPC side the socket carries JSON-RPC; on the REST side, frames of a legacy protocol.
pub(super) fn transport(socket: &RawWebSocket, side: Side, config: &RawConfig) -> Transport {
    match side {
        Side::Rpc => Transport::WebSocket(Box::new(plan(socket, config))),
        Side::Rest => Transport::Frames(Box::new(FramesPlan {
            headers: headers::plan(&socket.headers),
            message_limit: socket.message_limit.value,
            in_flight: socket.in_flight.value,
            heartbeat: heartbeat(socket),
        })),
    }
}

fn heartbeat(socket: &RawWebSocket) -> Option<Heartbeat> {
    let heartbeat = Heartbeat {
        every: socket.heartbeat.value,
        within: socket.heartbeat_timeout.value,
    };
    (!heartbeat.every.is_zero()).then_some(heartbeat)
}

/// Returns the recipients of log messages. A private socket has one subscriber, so only that client gets them. A server
/// without a handshake is no MCP server, so its messages may be about any client.
fn log_messages(socket: &RawWebSocket) -> LogMessages {
    match (socket.sharing.value, socket.has_handshake.value) {
        (Sharing::Client, _) => LogMessages::AllSubscribers,
        (Sharing::Shared | Sharing::Authorization, true) => attributed(socket.log_messages.value),
        (Sharing::Shared | Sharing::Authorization, false) => socket.log_messages.value,
    }
}

fn clients(socket: &RawWebSocket) -> LinkClients {
    match socket.sharing.value {
        Sharing::Client => LinkClients::One,
        // Several clients may have the same `Authorization`.
        Sharing::Shared | Sharing::Authorization => LinkClients::Several,
    }
}

fn plan(socket: &RawWebSocket, config: &RawConfig) -> WebSocketPlan {
    let initialize_params =
        initialize_params(socket.has_handshake.value, socket.initialize.as_ref());
    let login = socket.login.as_ref();
    let login = login.map(|login| login::plan(login, config));
    let settings = LinkSettings {
        login: login::own_login(login.as_ref()),
        order: AnswerOrder::Pipelined(socket.in_flight.value),
        pause: Duration::ZERO,
        queue: socket.queue.value,
        revisions: initialize_params
            .as_ref()
            .map_or_else(Vec::new, accepted_revisions),
        initialize_params,
        start_timeout: socket.start_timeout.value,
        backoff: BACKOFF,
        max_consecutive_timeouts: socket.unanswered.value,
        heartbeat: heartbeat(socket),
        log_messages: log_messages(socket),
        server_requests: ServerRequests::Caller,
        clients: clients(socket),
        depth: u16::try_from(config.limits.depth.value).unwrap_or(u16::MAX),
    };
    WebSocketPlan {
        headers: headers::plan(&socket.headers),
        sharing: socket.sharing.value,
        sockets: socket.sockets.value,
        message_limit: socket.message_limit.value,
        link: LinkPlan {
            redaction: Arc::new(redaction(config)),
            settings,
            login,
            blocked_methods: socket.withhold.clone(),
        },
    }
}
