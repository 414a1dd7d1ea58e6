//! The interface between a link task and the transports that can open links. Used by `gateway` and `upstream`.

use bytes::Bytes;

use dualgauge_model::mcp::ServerEra;
use dualgauge_model::pending::RequestError;
use dualgauge_model::redact::Redaction;

/// A transport on which links can be opened.
pub trait Transport: Clone + 'static {
    /// The type of its links.
    type Link: Link + 'static;

    /// Opens a link. Dropping the future leaves nothing behind.
    fn open(&self) -> impl Future<Output = Result<Self::Link, String>>;

    /// Returns the redaction rules for texts of the server.
    fn redaction(&self) -> &Redaction;

    /// Returns the end of the standard error of the last server that this transport started, by lines.
    fn last_output(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A link that carries messages both ways.
pub trait Link {
    /// Waits for the next event; cancel-safe.
    fn event(&mut self) -> impl Future<Output = Event>;

    /// Waits for the next event without reading messages, if the link can tell them apart; cancel-safe.
    fn event_while_unread(&mut self) -> impl Future<Output = Event> {
        self.event()
    }

    /// Starts to write a message; [`Event::Written`] follows. Only one message is written at a time.
    fn write(&mut self, message: Bytes);

    /// Asks the server for a sign of life; [`Event::SignOfLife`] may follow.
    fn ping(&mut self);

    /// Returns the era of MCP that the server speaks, once the link is ready.
    fn era(&self) -> ServerEra {
        ServerEra::Sessions
    }

    /// Closes the link in good order, within a time limit of its own.
    fn close(self) -> impl Future<Output = ()>;
}

/// An event on a link.
#[derive(Debug)]
pub enum Event {
    /// The server sent a message.
    Message(Bytes),
    /// The server sent a message in the response stream of the request with this id.
    StreamMessage(u64, Bytes),
    /// The server sent a message that exceeds the size limit.
    Overlong,
    /// The request with this id failed, and the link stays up.
    Failed(u64, RequestError),
    /// The server ended the response stream of the request with this id without a response, and the link stays up.
    Ended(u64),
    /// The server no longer knows the session, and did not accept the request with this id, if any.
    SessionLost(Option<u64>),
    /// The message was written completely.
    Written,
    /// The message could not be delivered.
    Undelivered(RequestError),
    /// A sign of life that is not a message.
    SignOfLife,
    /// The server rejected the handshake by its HTTP status; no more events follow. The message is the JSON-RPC error
    /// for callers, with the id 0.
    Rejected(u16, Bytes),
    /// The link is lost for this reason; no more events follow.
    Lost(String),
}
