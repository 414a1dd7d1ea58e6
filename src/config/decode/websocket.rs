//! Keys of a WebSocket upstream. Used by `decode::upstream`.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::Uri;

use super::headers::headers;
use super::link::{
    HANDSHAKES, QUEUE, START_TIMEOUT, UNANSWERED, initialize, log_messages, withhold,
};
use super::shared::MOST;
use crate::config::problem::Spanned;
use crate::config::raw::{HandshakeWord, RawWebSocket};
use crate::config::table_reader::{Shape, Table};
use crate::config::value::{ValueError, duration, size, timeout, whole, word};
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
const OF_RPC: [&str; 10] = [
    "sharing",
    "sockets",
    "queue",
    "queue_timeout",
    "handshake",
    "initialize",
    "start_timeout",
    "log_messages",
    "unanswered",
    "withhold",
];

/// Allowed number of shared sockets: each has its own health check and reconnects separately.
const SOCKETS: RangeInclusive<usize> = 1..=64;
const IN_FLIGHT: usize = 256;
const MESSAGE_LIMIT: usize = 16 * 1024 * 1024;
const HEARTBEAT: Duration = Duration::from_secs(30);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(10);

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
    let sharing = table.get_or("sharing", word(SHARINGS, &[]), usual);
    let shared = sharing
        .as_ref()
        .is_none_or(|word| word.value == Sharing::Shared);
    for key in OF_CLIENTS {
        if shared && table.shape(key) != Shape::Absent {
            let message =
                format!("`{key}` limits the sockets of single clients, but all clients share one");
            let hint = "write `sharing = \"client\"`, or remove it";
            table.report(key, ValueError::new(message).hint(hint));
        }
    }
    if side == Side::Rpc && !shared && table.shape("sockets") != Shape::Absent {
        let message = "`sockets` is the number of shared sockets, but each client has its own";
        let hint =
            "write `sharing = \"shared\"`, or remove it; `connections` limits those of clients";
        table.report("sockets", ValueError::new(message).hint(hint));
    }
    if side == Side::Rpc && !shared && table.shape("log_messages") != Shape::Absent {
        let message = "`log_messages` selects recipients among the clients of a shared socket, but each client has its own";
        let hint = "remove it: each client receives every message of its socket";
        table.report("log_messages", ValueError::new(message).hint(hint));
    }
    let sockets = table.get_or("sockets", whole(SOCKETS), 1);
    let in_flight = table.get_or("in_flight", whole(1..=MOST), IN_FLIGHT);
    let queue = table.get_or("queue", whole(1..=MOST), QUEUE);
    let handshake = table.get_or("handshake", word(HANDSHAKES, &[]), HandshakeWord::None);
    let initialize = initialize(table, handshake.as_ref());
    let start_timeout = table.get_or("start_timeout", timeout, START_TIMEOUT);
    let log_messages = log_messages(table);
    let message_limit = table.get_or("message_limit", size(1024), MESSAGE_LIMIT);
    let heartbeat = table.get_or("heartbeat", duration, HEARTBEAT);
    let heartbeat_timeout = table.get_or("heartbeat_timeout", timeout, HEARTBEAT_TIMEOUT);
    let unanswered = table.get_or("unanswered", whole(0..=MOST), UNANSWERED);
    let withhold = withhold(table);
    Some(RawWebSocket {
        url,
        headers: headers?,
        sharing: sharing?,
        sockets: sockets?,
        in_flight: in_flight?,
        queue: queue?,
        handshake: handshake?,
        initialize,
        start_timeout: start_timeout?,
        log_messages: log_messages?,
        message_limit: message_limit?,
        heartbeat: heartbeat?,
        heartbeat_timeout: heartbeat_timeout?,
        unanswered: unanswered?,
        withhold: withhold?,
    })
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
