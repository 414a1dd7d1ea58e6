//! The inputs and outputs of the state machine of a link, and the requests in them.
//!
//! Used by `pending`, `gateway` and `upstream`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::recipients::Recipients;
use super::ticket::Ticket;
use crate::jsonrpc::{RequestId, RequestTemplate};
use crate::mcp::InputCapabilities;
use crate::route::Effect;
use crate::subscription::SubscriptionRule;

/// A request from a caller.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its identifier.
    pub ticket: Ticket,
    /// The message to send.
    pub message: Outbound,
    /// The time at which it fails if none of it was written by then.
    pub start_by: Duration,
    /// The time at which it fails in any case.
    pub deadline: Duration,
    /// The rule for sending it again.
    pub repeat: RetryRule,
    /// Its rank in the queue.
    pub rank: Priority,
    /// The requests of the server that the caller answers.
    pub input: InputCapabilities,
}

/// A message to send.
#[derive(Debug, Clone)]
pub enum Outbound {
    /// A request, which gets a response.
    Call(RequestTemplate),
    /// A request that opens a subscription, with the id that its client chose. The server sends notifications until
    /// the subscription ends. The deadline applies until the first of them.
    Subscription(RequestTemplate, RequestId),
    /// A request that opens a subscription with an id of the server.
    IdSubscription(RequestTemplate, Arc<SubscriptionRule>),
    /// A notification, which gets no response.
    Notice(Bytes),
    /// No message: the caller wants the server's response to the link's own `initialize`.
    Greeting,
}

/// The rule for sending a request again after the link that it was written to broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryRule {
    /// The request is not sent again: its effect might happen twice.
    Never,
    /// The request is sent again once: its effect allows that.
    Once,
}

impl RetryRule {
    /// Returns the rule for calls with an effect.
    #[must_use]
    pub fn of(effect: Effect) -> RetryRule {
        match effect.may_repeat() {
            true => RetryRule::Once,
            false => RetryRule::Never,
        }
    }
}

/// The rank of a request in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// A client waits for the reply.
    Client,
    /// A candidate call, made only for comparison.
    Candidate,
}

/// An event on a link.
#[derive(Debug, Clone)]
pub enum LinkInput {
    /// A caller sends a request.
    Ask(Request),
    /// A caller has disconnected.
    Cancel(Ticket),
    /// A client has cancelled its request explicitly. The server is sent `notifications/cancelled` even without a
    /// handshake.
    ClientCancel(Ticket),
    /// A client does not read the events of its subscription fast enough: the subscription ends.
    Slow(Ticket),
    /// The link is open, as requested by [`LinkOutput::Open`].
    Opened,
    /// The message of [`LinkOutput::Write`] is written completely.
    Written,
    /// The server sent a message.
    Message(Bytes),
    /// The server sent a message in the response stream of the request with this id.
    InResponseStream(u64, Bytes),
    /// The server sent a message that exceeds the size limit.
    Overlong,
    /// The request with this id failed; the link itself is unaffected.
    Failed(u64, RequestError),
    /// The server ended the response stream of the request with this id without a response.
    Ended(u64),
    /// The server no longer knows the session. If it reported that in reply to a request, it did not accept the
    /// request.
    Forgotten(Option<u64>),
    /// The message of [`LinkOutput::Write`] could not be delivered. Replaces [`LinkInput::Written`].
    Unwritten(RequestError),
    /// A sign of life other than a message, such as a pong.
    Sign,
    /// The link is gone, or could not be opened.
    Lost {
        /// A random number that places the next wait within its range.
        jitter: u16,
    },
    /// A caller answers requests that the server sent during its call.
    Respond(Ticket, Vec<Bytes>),
    /// No other link replaces the one that is gone.
    Over,
    /// No more requests go over this link: its subscriptions end.
    Unsubscribe,
    /// Time has passed.
    Tick,
}

/// An action for the owner of the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkOutput {
    /// Open a link.
    Open,
    /// Close the link, or abort opening it; [`LinkInput::Lost`] must follow.
    Close(LinkFault),
    /// Write one message; [`LinkInput::Written`] must follow before the next.
    Write(Bytes),
    /// Send a ping.
    Ping,
    /// The handshake is complete: calls are sent from now on.
    Ready,
    /// A caller's request got a reply.
    Answer {
        /// The caller's request.
        ticket: Ticket,
        /// The id under which the request was sent.
        id: u64,
        /// The reply as received. It has this id, or it is an error without an id.
        message: Bytes,
    },
    /// A caller's request has opened a subscription with an id of the server. Its notifications follow.
    Subscribed {
        /// The caller's request.
        ticket: Ticket,
        /// The id under which the request was sent.
        id: u64,
        /// The response as received.
        message: Bytes,
    },
    /// Such a subscription ended with its link.
    SubscriptionLost(Ticket),
    /// The server sent a request during the call of a caller, who answers it by [`LinkInput::Respond`]. The call is
    /// suspended until then.
    ServerRequest {
        /// The caller's request.
        ticket: Ticket,
        /// The id of the server's request.
        id: RequestId,
        /// The server's request as received.
        message: Bytes,
    },
    /// A caller's notification is written.
    NoticeSent(Ticket),
    /// A subscription ended normally, without a response from the server.
    Ended(Ticket),
    /// A caller's request failed.
    Failed(Ticket, RequestError),
    /// The server sent a notification that is no reply to a request.
    Notified {
        /// The method of the notification.
        method: String,
        /// The notification as received.
        message: Bytes,
        /// Its recipients among the clients that share the link.
        recipients: Recipients,
    },
}

/// The reason why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestError {
    /// The queue is full, or the request waited too long in it. Nothing was written.
    Busy,
    /// There is no link. Nothing was written.
    Unreachable,
    /// There is no link, because the proxy could not log in. Nothing was written.
    LoginFailed,
    /// There is no link, because the login needs credentials that the caller does not have, or the server refused
    /// them. Nothing was written.
    Unauthenticated,
    /// The link broke after the request was written.
    Cut,
    /// No reply arrived in time.
    Late,
    /// The reply exceeds the size limit. It has this HTTP status, or 0 without HTTP.
    TooLarge(u16),
    /// The reply has a content coding, and the memory budget of the process does not allow decoding it.
    NoMemory,
    /// The reply is an event stream with a content coding.
    CodedStream,
    /// The id of the reply has another type than the id of the request.
    Misnumbered,
    /// The server sent requests during the call that require these capabilities of the caller, which it does not have. The
    /// server then refused the call.
    InputRequired(InputCapabilities),
    /// The server sent something other than a reply, with this HTTP status; 0 without HTTP.
    Unusable(u16),
}

/// The reason why a link is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LinkFault {
    /// The link was not ready in time.
    #[error("it was not ready in time")]
    Slow,
    /// The server refused the handshake.
    #[error("the server refused the handshake: {0}")]
    Refused(String),
    /// The server refused the login.
    #[error("the server refused the login: {0}")]
    LoginRefused(String),
    /// The server did not answer the login in time.
    #[error("the server did not answer the login in time")]
    LoginLate,
    /// The server chose a protocol revision that this proxy does not accept; the text names it.
    #[error("{0}")]
    Foreign(String),
    /// Too many consecutive calls got no reply in time.
    #[error("too many consecutive calls got no reply in time")]
    Stalled,
    /// The server did not answer a ping in time.
    #[error("it did not answer a ping in time")]
    Silent,
    /// The server no longer knows the session.
    #[error("the server no longer knows the session")]
    Forgotten,
}
