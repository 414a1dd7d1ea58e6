//! Unsolicited messages of upstreams to a WebSocket client, and their order relative to answers.
//!
//! Used by `rpc::websocket_session`.

use tokio::sync::mpsc;

use super::in_flight::{InFlight, OutboundMessage};
use crate::gateway::request_origin::RequestOrigin;
use crate::upstream::LegacyServerMessage;
use crate::upstream::link::{LinkLost, LostBy, Notification, NotificationReceiver, channel};
use dualgauge_net::CloseReason;

/// The maximum number of events from legacy sockets queued for one client; at the limit, the sockets are not read.
const EVENT_CAPACITY: usize = 64;

/// Close codes of RFC 6455 §7.4.1.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;

/// The receivers of upstream messages for one client.
pub(super) struct ServerMessages {
    /// Messages from links.
    links: NotificationReceiver,
    /// Messages from legacy sockets.
    legacy_sockets: mpsc::Receiver<LegacyServerMessage>,
    /// The number of messages received from `legacy_sockets`.
    legacy_received: u64,
}

/// A message of an upstream for the client.
pub(super) enum ServerMessage {
    /// A message over a link.
    Link(Notification),
    /// A message over a legacy socket.
    LegacySocket(LegacyServerMessage),
}

/// An event for the client.
pub(super) enum ClientEvent {
    /// A message was served; holds its answer, if any.
    Answer(Option<OutboundMessage>),
    /// An unsolicited message.
    Unsolicited(ServerMessage),
}

impl ServerMessages {
    pub(super) fn new(origin: &RequestOrigin) -> ServerMessages {
        let (sender, links) = channel();
        origin.links().set_notifications(sender);
        let (sender, legacy_sockets) = mpsc::channel(EVENT_CAPACITY);
        origin.sockets().set_notifications(sender);
        ServerMessages {
            links,
            legacy_sockets,
            legacy_received: 0,
        }
    }

    /// Waits for the next event. An answer takes precedence: [`ServerMessages::pending_before`] then returns the
    /// messages that precede it. Cancel-safe.
    pub(super) async fn next(
        &mut self,
        in_flight: &mut InFlight,
        is_listening: bool,
    ) -> ClientEvent {
        tokio::select! {
            biased;
            reply = in_flight.next_served() => ClientEvent::Answer(reply),
            message = self.next_unsolicited(), if is_listening => ClientEvent::Unsolicited(message),
        }
    }

    /// Waits for the next unsolicited message. Cancel-safe: a message stays in its channel until it is received.
    async fn next_unsolicited(&mut self) -> ServerMessage {
        tokio::select! {
            notification = self.links.next() => ServerMessage::Link(notification),
            // The sender lives as long as the client's connection.
            Some(message) = self.legacy_sockets.recv() => {
                self.legacy_received += 1;
                ServerMessage::LegacySocket(message)
            }
        }
    }

    /// Returns the messages that precede an answer that was just served.
    pub(super) fn pending_before(&mut self, sequence: u64) -> Vec<ServerMessage> {
        let mut messages = Vec::new();
        while let Some(notification) = self.links.pending_before() {
            messages.push(ServerMessage::Link(notification));
        }
        while self.legacy_received < sequence
            && let Ok(message) = self.legacy_sockets.try_recv()
        {
            self.legacy_received += 1;
            messages.push(ServerMessage::LegacySocket(message));
        }
        messages
    }
}

/// Returns the close reason for the loss of a client's own link.
pub(super) fn close_reason(loss: &LinkLost) -> CloseReason {
    let upstream = &loss.upstream;
    match loss.through {
        LostBy::Server => CloseReason {
            code: Some(GOING_AWAY),
            reason: format!("the connection to the upstream `{upstream}` is lost"),
        },
        LostBy::Plan => CloseReason {
            code: Some(GOING_AWAY),
            reason: format!(
                "the upstream `{upstream}` was changed or removed in the configuration"
            ),
        },
        LostBy::Client => CloseReason {
            code: Some(POLICY),
            reason: format!("too slow for what the upstream `{upstream}` tells"),
        },
    }
}
