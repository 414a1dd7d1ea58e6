//! A WebSocket: the request for it, and its link.

use std::time::Duration;

use super::headers;
use super::stdio::{BACKOFF, greeting};
use crate::config::problem::Problem;
use crate::config::raw::{RawConfig, RawWebSocket};
use crate::domain::pending::{Heartbeat, Order, Settings};
use crate::domain::plan::{LinkPlan, WebSocketPlan};
use crate::domain::side::Side;

/// What the raw half leaves to check.
pub(super) fn check(socket: &RawWebSocket, side: Side, problems: &mut Vec<Problem>) {
    if side == Side::Rest {
        let message = "a WebSocket of the `rest` side, whose frames are pairs of routes, is not supported in this version";
        let hint = "write `side = \"rpc\"` for one that speaks JSON-RPC";
        problems.push(socket.url.problem(message).hint(hint));
    }
    headers::check(&socket.headers, problems);
}

pub(super) fn plan(socket: &RawWebSocket, config: &RawConfig) -> WebSocketPlan {
    let heartbeat = Heartbeat {
        every: socket.heartbeat.value,
        within: socket.heartbeat_timeout.value,
    };
    let settings = Settings {
        order: Order::Pipelined(socket.in_flight.value),
        pause: Duration::ZERO,
        queue: socket.queue.value,
        greeting: greeting(socket.handshake.value, socket.initialize.as_ref()),
        start_timeout: socket.start_timeout.value,
        backoff: BACKOFF,
        unanswered: socket.unanswered.value,
        heartbeat: (!heartbeat.every.is_zero()).then_some(heartbeat),
        depth: u16::try_from(config.limits.depth.value).unwrap_or(u16::MAX),
    };
    WebSocketPlan {
        headers: headers::plan(&socket.headers),
        sharing: socket.sharing.value,
        message_limit: socket.message_limit.value,
        link: LinkPlan {
            settings,
            withhold: socket.withhold.clone(),
        },
    }
}
