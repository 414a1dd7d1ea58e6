//! Keys of a WebSocket upstream. Used by `decode::upstream`.

use std::time::Duration;

use http::Uri;

use super::headers::headers;
use super::link::{
    HANDSHAKES, LOG_MESSAGES, OF_LOGIN, QUEUE, START_TIMEOUT, UNANSWERED, initialize, withhold,
};
use super::login::login;
use super::shared::MOST;
use crate::config::key::{Key, key, section};
use crate::config::kind::{DURATION, TIMEOUT, size, whole, words};
use crate::config::problem::Spanned;
use crate::config::raw::RawWebSocket;
use crate::config::table_reader::{Shape, Table};
use crate::config::value::ValueError;
use dualgauge_model::plan::Sharing;
use dualgauge_patterns::side::Side;

/// Keys of WebSockets only.
pub(super) const OWN: &[&str] = &[
    "sharing",
    "sockets",
    "message_limit",
    "heartbeat",
    "heartbeat_timeout",
];

/// Headers that the opening handshake sets itself, or must not have (RFC 6455 §4.1).
const NOT_SENT: &[&str] = &[
    "connection",
    "content-length",
    "host",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-key",
    "sec-websocket-version",
    "transfer-encoding",
    "upgrade",
];

const SHARINGS: &[(&str, Sharing)] = &[("shared", Sharing::Shared), ("client", Sharing::Client)];

/// Limits of per-client sockets.
const OF_CLIENTS: [&str; 2] = ["connections", "idle_timeout"];

/// Keys of JSON-RPC servers only.
const OF_RPC: [&str; 11] = [
    "sharing",
    "sockets",
    "queue",
    "queue_timeout",
    "handshake",
    "initialize",
    "login",
    "start_timeout",
    "log_messages",
    "unanswered",
    "withhold",
];

/// The largest number of shared sockets: each has its own health check and reconnects separately.
const MOST_SOCKETS: i64 = 64;

section! {
    /// Keys of a WebSocket.
    pub(super) WEBSOCKET {
        /// Sharing of a socket by clients; by default `shared`, for frames `client`
        SHARING: Key<Sharing> = key("sharing", words(SHARINGS));
        /// Number of shared sockets
        SOCKETS: Key<usize> = key("sockets", whole(1, MOST_SOCKETS)).or("1");
        /// Concurrent calls on a socket
        IN_FLIGHT: Key<usize> = key("in_flight", whole(1, MOST)).or("256");
        /// Handshake before the first call
        HANDSHAKE: Key<bool> = key("handshake", words(HANDSHAKES)).or("none");
        /// Longest message or frame read
        MESSAGE_LIMIT: Key<usize> = key("message_limit", size(1024)).or("16MiB");
        /// Silence after which the proxy pings the server; zero for never
        HEARTBEAT: Key<Duration> = key("heartbeat", DURATION).or("30s");
        /// Wait for a pong or any other data
        HEARTBEAT_TIMEOUT: Key<Duration> = key("heartbeat_timeout", TIMEOUT).or("10s");
    }
}

pub(super) fn websocket(
    table: &mut Table<'_>,
    url: Spanned<Uri>,
    side: Side,
) -> Option<RawWebSocket> {
    let headers = headers(table, NOT_SENT, "WebSocket requests");
    let usual = match side {
        Side::Rest => Sharing::Client,
        Side::Rpc => Sharing::Shared,
    };
    if side == Side::Rest {
        refuse_of_rpc(table);
    }
    let sharing = table.get_or(&SHARING, usual);
    let shared = sharing
        .as_ref()
        .is_none_or(|word| word.value == Sharing::Shared);
    refuse_of_other_sharing(table, side, shared);
    let sockets = table.get(&SOCKETS);
    let in_flight = table.get(&IN_FLIGHT);
    let queue = table.get(&QUEUE);
    let has_handshake = table.get(&HANDSHAKE);
    let initialize = initialize(table, has_handshake.as_ref());
    let login = table.table(&OF_LOGIN, login);
    let start_timeout = table.get(&START_TIMEOUT);
    let log_messages = table.get(&LOG_MESSAGES);
    let message_limit = table.get(&MESSAGE_LIMIT);
    let heartbeat = table.get(&HEARTBEAT);
    let heartbeat_timeout = table.get(&HEARTBEAT_TIMEOUT);
    let unanswered = table.get(&UNANSWERED);
    let withhold = withhold(table);
    Some(RawWebSocket {
        url,
        headers: headers?,
        sharing: sharing?,
        sockets: sockets?,
        in_flight: in_flight?,
        queue: queue?,
        has_handshake: has_handshake?,
        initialize,
        login,
        start_timeout: start_timeout?,
        log_messages: log_messages?,
        message_limit: message_limit?,
        heartbeat: heartbeat?,
        heartbeat_timeout: heartbeat_timeout?,
        unanswered: unanswered?,
        withhold: withhold?,
    })
}

/// Rejects keys of shared sockets where each client has its own, and the other way round.
fn refuse_of_other_sharing(table: &mut Table<'_>, side: Side, shared: bool) {
    for key in OF_CLIENTS {
        if shared && table.shape(key) != Shape::Absent {
            let message =
                format!("`{key}` limits the sockets of single clients, but all clients share one");
            let hint = "write `sharing = \"client\"`, or remove it";
            table.report(key, ValueError::new(message).hint(hint));
        }
    }
    if side == Side::Rpc && !shared && table.shape(SOCKETS.name) != Shape::Absent {
        let message = "`sockets` is the number of shared sockets, but each client has its own";
        let hint =
            "write `sharing = \"shared\"`, or remove it; `connections` limits those of clients";
        table.report(SOCKETS.name, ValueError::new(message).hint(hint));
    }
    if side == Side::Rpc && !shared && table.shape(LOG_MESSAGES.name) != Shape::Absent {
        let message = "`log_messages` selects recipients among the clients of a shared socket, but each client has its own";
        let hint = "remove it: each client receives every message of its socket";
        table.report(LOG_MESSAGES.name, ValueError::new(message).hint(hint));
    }
}

/// Rejects JSON-RPC keys for a frame server: it keeps state per connection, and has no handshake and no methods to
/// withhold.
fn refuse_of_rpc(table: &mut Table<'_>) {
    for key in OF_RPC {
        if table.shape(key) != Shape::Absent {
            let message = format!(
                "`{key}` needs a JSON-RPC server, but a `rest` upstream with a `ws://` url uses frames"
            );
            let hint = "remove it, or write `side = \"rpc\"`";
            table.report(key, ValueError::new(message).hint(hint));
        }
    }
}
