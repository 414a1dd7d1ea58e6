//! What servers say unasked to a client on a WebSocket, and what of it stands before an answer.

use tokio::sync::mpsc;

use super::NOTICES;
use super::in_flight::{InFlight, OutboundMessage};
use crate::gateway::RequestOrigin;
use crate::gateway::legacy_socket::ServerNews;
use crate::upstream::CloseReason;
use crate::upstream::link::{LinkLost, LostBy, Notification, NotificationReceiver, channel};

/// Codes of RFC 6455 §7.4.1.
const GOING_AWAY: u16 = 1001;
const POLICY: u16 = 1008;

/// Where what servers say for the client comes in.
pub(super) struct ServerMessages {
    /// From links.
    links: NotificationReceiver,
    /// From sockets of frames.
    news: mpsc::Receiver<ServerNews>,
    /// How many of the latter were taken.
    heard: u64,
}

/// What a server says for the client.
pub(super) enum ServerMessage {
    /// Over a link.
    Link(Notification),
    /// In frames.
    News(ServerNews),
}

/// What there is for the client.
pub(super) enum ClientEvent {
    /// A message is served, and this is its answer, if it has one.
    Answer(Option<OutboundMessage>),
    /// Nobody has asked for it.
    Unsolicited(ServerMessage),
}

/// Whether what nobody has asked for is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listening {
    Listens,
    Busy,
}

impl ServerMessages {
    pub(super) fn new(arrival: &RequestOrigin) -> ServerMessages {
        let (tell, links) = channel();
        arrival.links().notify(tell);
        let (tell, news) = mpsc::channel(NOTICES);
        arrival.sockets().notify(tell);
        ServerMessages {
            links,
            news,
            heard: 0,
        }
    }

    /// What comes next; an answer that is there before anything else, since what came before it is found by
    /// [`ServerMessages::pending_before`]. Cancel-safe.
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

    /// What is said next; cancel-safe, since what is not taken stays where it is.
    async fn next_unsolicited(&mut self) -> ServerMessage {
        tokio::select! {
            tidings = self.links.next() => ServerMessage::Link(tidings),
            // The connection keeps the other end for as long as it lasts.
            Some(news) = self.news.recv() => {
                self.heard += 1;
                ServerMessage::News(news)
            }
        }
    }

    /// What stands before an answer that is served by now: what came before it.
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

/// How a client is told that a link of its own is gone.
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
