//! The connection state and the write state of a link. Used by `pending`.

use std::time::Duration;

use bytes::Bytes;

use super::Ticket;

/// The connection state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkState {
    /// No link; the next attempt is at this time.
    Down(Duration),
    /// A link is being opened; it must be ready by this time.
    Opening(Duration),
    /// The `initialize` request with this id is sent; the link must be ready by `by`.
    Greeting { id: u64, by: Duration },
    /// The login call with this id is sent, or waits for the messages of the handshake to be written; the link must be
    /// ready by `by`.
    LoggingIn { id: Option<u64>, by: Duration },
    /// Calls are sent; ready since this time.
    Ready(Duration),
    /// The server no longer knows the session: pending requests may finish until this time, and no more are sent.
    Leaving(Duration),
    /// The link is being closed.
    Closing,
}

/// The state of writing to a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteState {
    /// Nothing is being written.
    Free,
    /// A call or the `initialize` request is being written; it gets a reply.
    Busy,
    /// A message without a reply is being written, and no caller waits for the write.
    Unanswered,
    /// Nothing is being written, but the next message must wait until this time.
    Resting(Duration),
    /// A notification of this caller is being written; it must be written by this time.
    Notice(Ticket, Duration),
}

/// The server's response to `initialize`.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    pub(super) id: u64,
    pub(super) message: Bytes,
}
