//! The settings of a link. Used by `app`, `config`, `model`, `gateway` and `upstream`.

use std::time::Duration;

use super::login::LoginCall;
use dualgauge_patterns::json::Json;

/// The maximum number of subscriptions of each kind on a link.
pub const SUBSCRIPTIONS: usize = 1024;

/// The settings of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    /// The order in which the server replies.
    pub order: AnswerOrder,
    /// The pause after a message that gets no reply. Some serial servers read two lines at once and process the second
    /// only when a third arrives.
    pub pause: Duration,
    /// The maximum number of queued requests; candidate calls may take half of it.
    pub queue: usize,
    /// The params of the `initialize` request that opens each link, if links have a handshake.
    pub initialize_params: Option<Json>,
    /// The call that follows the handshake of each link, before any other, if links log in.
    pub login: Option<LoginCall>,
    /// The protocol revisions that the server may choose in its response; empty allows any.
    pub revisions: Vec<String>,
    /// The maximum time until a link is open and its handshake is complete.
    pub start_timeout: Duration,
    /// The waits between links.
    pub backoff: Backoff,
    /// The number of consecutive calls without a reply in time after which a link is closed; 0 means never.
    pub max_consecutive_timeouts: usize,
    /// The heartbeat of an idle link.
    pub heartbeat: Option<Heartbeat>,
    /// The recipients of the server's log messages that belong to no call.
    pub log_messages: LogMessages,
    /// The recipients of the server's requests.
    pub server_requests: ServerRequests,
    /// The clients whose calls go over a link.
    pub clients: LinkClients,
    /// The maximum nesting depth of messages from the server.
    pub depth: u16,
}

/// The recipients of the requests of a server: elicitation, sampling and roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerRequests {
    /// The client during whose call the server sends one, if it declared the capability.
    Caller,
    /// No recipient: the link declines them.
    Decline,
}

/// The clients whose calls go over a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkClients {
    /// One client has the link for itself.
    One,
    /// Several clients share the link: a message about a call of one must not reach another.
    Several,
}

/// The recipients of a `notifications/message` that the server sends outside the response stream of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogMessages {
    /// No recipient: the message may be about a call of any client.
    Drop,
    /// The caller of the only call that the server can be working on; without such a call, no recipient. For links
    /// without response streams.
    OnlyCaller,
    /// Every client that subscribes to the link.
    AllSubscribers,
}

/// The order in which a server replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerOrder {
    /// One request at a time: the next one is sent after the reply to the one before.
    Serial,
    /// In any order, with at most this number of requests in flight.
    Pipelined(usize),
}

impl AnswerOrder {
    /// Returns the maximum number of requests in flight.
    #[must_use]
    pub const fn in_flight(self) -> usize {
        match self {
            AnswerOrder::Serial => 1,
            AnswerOrder::Pipelined(most) => most,
        }
    }
}

/// The waits between links: each is twice the one before, less a random part of up to a half.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first wait.
    pub least: Duration,
    /// The longest wait.
    pub most: Duration,
    /// The time that a link must have been ready for the waits to start over.
    pub steady: Duration,
}

impl Backoff {
    /// Returns the wait after `after` earlier ones; `jitter` selects the random part to subtract.
    #[must_use]
    pub fn wait(&self, after: u32, jitter: u16) -> Duration {
        let doubled = self.least.saturating_mul(1 << after.min(20));
        let whole = doubled.min(self.most);
        whole - whole / 2 * u32::from(jitter) / u32::from(u16::MAX)
    }
}

/// The heartbeat of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    /// The idle time after which a ping is sent.
    pub every: Duration,
    /// The time within which a sign of life must follow.
    pub within: Duration,
}

impl Heartbeat {
    /// The heartbeat of WebSockets of clients.
    pub const OF_CLIENTS: Heartbeat = Heartbeat {
        every: Duration::from_secs(30),
        within: Duration::from_secs(30),
    };
}
