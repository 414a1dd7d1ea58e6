//! Unsolicited messages of upstreams to a WebSocket client, and their order relative to answers.

use tokio::sync::mpsc;

use super::NOTICES;
use super::in_flight::{InFlight, OutboundMessage};
use crate::gateway::RequestOrigin;
use crate::gateway::legacy_socket::ServerNews;
use crate::upstream::CloseReason;
use crate::upstream::link::{LinkLost, LostBy, Notification, NotificationReceiver, channel};

/// Close codes of RFC 6455 §7.4.1.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;

/// The receivers of upstream messages for one client.
pub(super) struct ServerMessages {
    /// Messages from links.
    links: NotificationReceiver,
    /// Messages from legacy sockets.
    news: mpsc::Receiver<ServerNews>,
    /// The number of messages received from `news`.
    heard: u64,
}

/// A message of an upstream for the client.
pub(super) enum ServerMessage {
    /// A message over a link.
    Link(Notification),
    /// A message over a legacy socket.
    News(ServerNews),
}

/// An event for the client.
pub(super) enum ClientEvent {
    /// A message was served; holds its answer, if any.
    Answer(Option<OutboundMessage>),
    /// An unsolicited message.
    Unsolicited(ServerMessage),
}

/// Readiness of the client to take unsolicited messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listening {
    Listens,
    Busy,
}

impl ServerMessages {
    pub(super) fn new(arrival: &RequestOrigin) -> ServerMessages {
        let (tell, links) = channel();
        arrival.links().set_notifications(tell);
        let (tell, news) = mpsc::channel(NOTICES);
        arrival.sockets().set_notifications(tell);
        ServerMessages {
            links,
            news,
            heard: 0,
        }
    }

    /// Waits for the next event. An answer takes precedence: [`ServerMessages::pending_before`] then returns the
    /// messages that precede it. Cancel-safe.
    pub(super) async fn next(
        &mut self,
        underway: &mut InFlight,
        attention: Listening,
    ) -> ClientEvent {
        tokio::select! {
            biased;
            reply = underway.served() => ClientEvent::Answer(reply),
            spoken = self.next_unsolicited(), if attention == Listening::Listens => ClientEvent::Unsolicited(spoken),
        }
    }

    /// Waits for the next unsolicited message. Cancel-safe: a message stays in its channel until it is received.
    async fn next_unsolicited(&mut self) -> ServerMessage {
        tokio::select! {
            tidings = self.links.next() => ServerMessage::Link(tidings),
            // The sender lives as long as the client's connection.
            Some(news) = self.news.recv() => {
                self.heard += 1;
                ServerMessage::News(news)
            }
        }
    }

    /// Returns the messages that precede an answer that was just served.
    pub(super) fn pending_before(&mut self, behind: u64) -> Vec<ServerMessage> {
        let mut before = Vec::new();
        while let Some(tidings) = self.links.pending_before() {
            before.push(ServerMessage::Link(tidings));
        }
        while self.heard < behind
            && let Ok(news) = self.news.try_recv()
        {
            self.heard += 1;
            before.push(ServerMessage::News(news));
        }
        before
    }
}

/// Returns the close reason for the loss of a client's own link.
pub(super) fn closing(loss: &LinkLost) -> CloseReason {
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
