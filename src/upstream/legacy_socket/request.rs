//! Requests over a legacy socket, their replies, and the messages of the server.
//!
//! Used by `gateway` and `legacy_socket`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;

use dualgauge_model::outcome::{RpcAnswer, TranslatedReply};
use dualgauge_model::pending::RequestError;
use dualgauge_model::plan::Plan;
use dualgauge_model::route::MatchError;
use dualgauge_patterns::json::Json;

/// A request over a socket.
#[derive(Debug)]
pub enum SocketRequest {
    /// An RPC call, to be translated to a frame.
    Call {
        /// The method.
        method: String,
        /// The params, if the call has any.
        params: Option<Json>,
    },
    /// A frame of the client, forwarded unchanged.
    Passed {
        /// The frame as read.
        frame: Json,
        /// The frame as received.
        text: Bytes,
    },
}

/// A request to queue.
#[derive(Debug)]
pub struct SocketCall {
    /// The plan that the request is served under.
    pub plan: Arc<Plan>,
    /// The request.
    pub request: SocketRequest,
    /// The maximum time until the reply.
    pub limit: Duration,
}

/// The reply to a request.
#[derive(Debug)]
pub enum SocketReply {
    /// An answer, and the frame that it came in; silence has none.
    Answer(TranslatedReply<RpcAnswer>, Option<Bytes>),
    /// The frame was written, and no answer is expected.
    Sent,
}

/// The failure of a request.
#[derive(Debug)]
pub enum SocketCallError {
    /// The socket or the server failed.
    Link(RequestError),
    /// The call does not fit its route.
    Misfit(MatchError),
}

/// A server message for the client.
#[derive(Debug)]
pub enum LegacyServerMessage {
    /// A message that is, or may be, the answer to a frame of the client.
    Answer(Bytes),
    /// An event.
    Event(Bytes),
    /// The socket was lost, and with it the server's state for the client.
    Gone,
}

/// A reply with its position among the server messages.
#[derive(Debug)]
pub(super) struct SequencedSocketReply {
    pub(super) result: Result<SocketReply, SocketCallError>,
    /// The number of server messages sent to the client before the reply.
    pub(super) sequence: u64,
}

/// The sender of a reply.
pub(super) type SocketReplySender = oneshot::Sender<SequencedSocketReply>;

/// A request in the queue of a socket's task.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    /// The plan under which it was queued.
    pub(super) plan: Arc<Plan>,
    pub(super) request: SocketRequest,
    pub(super) deadline: Instant,
    pub(super) reply: SocketReplySender,
}
