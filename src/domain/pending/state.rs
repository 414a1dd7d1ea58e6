//! Where a link stands, and whose turn it is to write.

use std::time::Duration;

use bytes::Bytes;

use super::Ticket;

/// Where a link stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkState {
    /// There is none until then.
    Down(Duration),
    /// One is being opened, and has until then to be ready.
    Opening(Duration),
    /// The greeting with this id is said.
    Greeting { id: u64, by: Duration },
    /// Calls go out, since then.
    Ready(Duration),
    /// The server knows it no longer: what was asked may be answered until then, and nothing more is.
    Leaving(Duration),
    /// It is given up, and not gone yet.
    Closing,
}

/// What is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteState {
    /// Nothing.
    Free,
    /// A call, or what the link itself greets with: it is answered.
    Busy,
    /// What is not answered, and nobody waits for.
    Unanswered,
    /// Nothing, but the next message is not to come right behind the one before.
    Resting(Duration),
    /// What a caller had to tell, who waits until then.
    Notice(Ticket, Duration),
}

/// The answer that a link has got to its greeting.
#[derive(Debug, Clone)]
pub(super) struct Handshake {
    pub(super) id: u64,
    pub(super) message: Bytes,
}
