//! The connection of a client that sends and receives messages of a session: a WebSocket, or an event stream with POSTs.
//!
//! Used by `rpc::event_session` and `rpc::websocket_session`.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::gateway::event_sessions::EventSession;
use dualgauge_model::sse;
use dualgauge_net::{CloseReason, MessageEvent, MessageStream, ReadMode};

/// A comment, which clients ignore (WHATWG HTML §9.2.6).
const PING: &[u8] = b": ping\n\n";

/// The connection of a client's session.
pub(super) trait ClientChannel {
    /// Returns true if a message is being written.
    fn is_writing(&self) -> bool;

    /// Waits for the next event; cancel-safe.
    fn next(&mut self, intake: ReadMode) -> impl Future<Output = MessageEvent>;

    /// Starts to write a message; [`MessageEvent::Written`] follows. Only one message is written at a time.
    fn send(&mut self, message: Bytes);

    /// Asks for a sign of life.
    fn ping(&mut self);

    /// Sets the reason that the client gets at the end.
    fn set_close(&mut self, reason: Option<CloseReason>);

    /// Returns true if the client has sent so many frames without a message that nothing more is read from it.
    fn is_flooded(&self) -> bool;

    /// Closes the connection in good order.
    fn end(self) -> impl Future<Output = ()>;
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientChannel for MessageStream<S> {
    fn is_writing(&self) -> bool {
        MessageStream::is_writing(self)
    }

    fn next(&mut self, intake: ReadMode) -> impl Future<Output = MessageEvent> {
        MessageStream::next(self, intake)
    }

    fn send(&mut self, message: Bytes) {
        MessageStream::send(self, message);
    }

    fn ping(&mut self) {
        MessageStream::ping(self);
    }

    fn set_close(&mut self, reason: Option<CloseReason>) {
        MessageStream::set_close(self, reason);
    }

    fn is_flooded(&self) -> bool {
        MessageStream::is_flooded(self)
    }

    fn end(self) -> impl Future<Output = ()> {
        MessageStream::end(self)
    }
}

/// A part of an event stream that waits to be sent.
#[derive(Debug)]
enum Outgoing {
    Message(Bytes),
    Ping,
}

/// The event stream of a client, and the messages that it posts.
#[derive(Debug)]
pub(super) struct EventChannel {
    session: EventSession,
    /// The body of the stream, which takes a chunk when the one before is on its way.
    body: mpsc::Sender<Bytes>,
    outgoing: Option<Outgoing>,
}

impl EventChannel {
    pub(super) fn new(session: EventSession, body: mpsc::Sender<Bytes>) -> EventChannel {
        EventChannel {
            session,
            body,
            outgoing: None,
        }
    }
}

impl ClientChannel for EventChannel {
    fn is_writing(&self) -> bool {
        matches!(self.outgoing, Some(Outgoing::Message(_)))
    }

    async fn next(&mut self, intake: ReadMode) -> MessageEvent {
        // All branches are cancel-safe: a message stays in its channel until it is received.
        tokio::select! {
            biased;
            permit = self.body.reserve(), if self.outgoing.is_some() => match (permit, self.outgoing.take()) {
                (Ok(permit), Some(Outgoing::Message(message))) => {
                    permit.send(sse::message(&message));
                    MessageEvent::Written
                }
                (Ok(permit), _) => {
                    permit.send(Bytes::from_static(PING));
                    // The client has taken what came before.
                    MessageEvent::SignOfLife
                }
                (Err(_), _) => MessageEvent::Lost(GONE.to_owned()),
            },
            () = self.body.closed() => MessageEvent::Lost(GONE.to_owned()),
            Some(message) = self.session.messages.recv(), if intake == ReadMode::Open => {
                MessageEvent::Message(message)
            }
        }
    }

    fn send(&mut self, message: Bytes) {
        self.outgoing = Some(Outgoing::Message(message));
    }

    fn ping(&mut self) {
        self.outgoing.get_or_insert(Outgoing::Ping);
    }

    /// Does nothing: an event stream has no close reason.
    fn set_close(&mut self, _: Option<CloseReason>) {}

    fn is_flooded(&self) -> bool {
        false
    }

    async fn end(self) {}
}

const GONE: &str = "the client has closed its event stream";
