//! The upstream sockets of one client connection, and the request queue of each.
//!
//! A socket is opened by the first call that needs it. It closes with the client's connection, or after its idle
//! timeout. One task owns it.
//!
//! Used by `gateway`, `legacy_socket` and `rpc`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::client_queue::ClientSender;
use super::connection::{ConnectionTask, serve};
use crate::domain::json::Json;
use crate::domain::outcome::{RpcAnswer, TranslatedReply};
use crate::domain::pending as link;
use crate::domain::route::MatchError;
use crate::gateway::{RuntimePlan, Worker};
use crate::telemetry::clock;
use crate::upstream::LegacySocketUpstream;

/// The capacity of a socket's request queue, and of its write queue.
pub(super) const QUEUE: usize = 64;

/// The extra time that a caller waits beyond its deadline, so that the task can report the timeout itself.
const GRACE: Duration = Duration::from_millis(250);

/// A request over a socket.
#[derive(Debug)]
pub(super) enum SocketRequest {
    /// An RPC call, to be translated to a frame.
    Call {
        method: String,
        params: Option<Json>,
    },
    /// A frame of the client, forwarded unchanged.
    Passed { frame: Json, text: Bytes },
}

/// The reply to a request.
#[derive(Debug)]
pub(super) enum SocketReply {
    /// An answer.
    Answer(TranslatedReply<RpcAnswer>),
    /// The frame was written, and no answer is expected.
    Sent,
}

/// The failure of a request.
#[derive(Debug)]
pub(super) enum SocketCallError {
    /// The socket or the server failed.
    Link(link::RequestError),
    /// The call does not fit its route.
    Misfit(MatchError),
}

/// A server message for the client.
#[derive(Debug)]
pub(in crate::gateway) enum LegacyServerMessage {
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
    pub(super) runtime_plan: Rc<RuntimePlan>,
    pub(super) request: SocketRequest,
    pub(super) deadline: Instant,
    pub(super) reply: SocketReplySender,
}

/// A handle to the task of a socket. Dropping the last handle closes the socket.
#[derive(Debug, Clone)]
struct ConnectionHandle {
    requests: mpsc::Sender<QueuedRequest>,
    caller_gone: Rc<Notify>,
}

/// An open socket, with its upstream.
type OpenConnection = (Rc<LegacySocketUpstream>, ConnectionHandle);

/// The upstream sockets of one client connection.
#[derive(Debug, Default)]
pub(in crate::gateway) struct ClientConnections {
    sockets: RefCell<Vec<OpenConnection>>,
    /// The sender of server messages to the client.
    client_sender: RefCell<ClientSender>,
    /// The number of server messages that precede the last reply delivered to a caller.
    sequence: Rc<Cell<u64>>,
}

/// A request that was queued; any task may wait for its reply.
pub(super) struct PendingReply {
    answer: oneshot::Receiver<SequencedSocketReply>,
    caller_gone: Rc<Notify>,
    sequence: Rc<Cell<u64>>,
    deadline: Instant,
}

impl PendingReply {
    /// Waits for the reply until the deadline; returns `None` if the client's connection has ended.
    pub(super) async fn answer(mut self) -> Option<Result<SocketReply, SocketCallError>> {
        match timeout_at(self.deadline + GRACE, &mut self.answer).await {
            Ok(Ok(reply)) => {
                self.sequence.set(self.sequence.get().max(reply.sequence));
                Some(reply.result)
            }
            Ok(Err(_)) => None,
            Err(_) => Some(Err(SocketCallError::Link(link::RequestError::Late))),
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        self.answer.close();
        self.caller_gone.notify_one();
    }
}

impl ClientConnections {
    /// Sets the receiver for server messages of sockets opened from now on.
    pub(in crate::gateway) fn set_notifications(&self, sender: mpsc::Sender<LegacyServerMessage>) {
        // Sockets opened before have no receiver, so they are closed.
        self.sockets.borrow_mut().clear();
        *self.client_sender.borrow_mut() = ClientSender::new(sender);
    }

    /// Returns the number of server messages that the client must get before the replies delivered so far.
    pub(in crate::gateway) fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// Returns true if a client that receives events has lost a socket, or is about to.
    pub(in crate::gateway) fn has_lost(&self) -> bool {
        let client_sender = self.client_sender.borrow();
        let is_over = |(existing, handle): &OpenConnection| {
            existing.is_over() && !handle.requests.is_closed()
        };
        client_sender.has_lost()
            || client_sender.has_receiver() && self.sockets.borrow().iter().any(is_over)
    }

    /// Opens a socket if none is open, for a client that only listens.
    pub(in crate::gateway) fn subscribe(
        &self,
        worker: &Rc<Worker>,
        runtime_plan: &Rc<RuntimePlan>,
        upstream: &Rc<LegacySocketUpstream>,
    ) {
        // A failure is ignored: the next call tries again, and reports it to its caller.
        let _ = self.connection_to((worker, runtime_plan), upstream);
    }

    /// Queues a request on the socket of this client; requests are written in order.
    pub(super) fn send(
        &self,
        (worker, runtime_plan): (&Rc<Worker>, &Rc<RuntimePlan>),
        upstream: &Rc<LegacySocketUpstream>,
        request: SocketRequest,
        limit: Duration,
    ) -> Result<PendingReply, link::RequestError> {
        let handle = self.connection_to((worker, runtime_plan), upstream)?;
        let (reply, answer) = oneshot::channel();
        let deadline = clock::now() + limit;
        let queued = QueuedRequest {
            runtime_plan: runtime_plan.clone(),
            request,
            deadline,
            reply,
        };
        // A socket that has just closed counts as unreachable.
        handle
            .requests
            .try_send(queued)
            .map_err(|full| match full {
                mpsc::error::TrySendError::Full(_) => link::RequestError::Busy,
                mpsc::error::TrySendError::Closed(_) => link::RequestError::Unreachable,
            })?;
        Ok(PendingReply {
            answer,
            caller_gone: handle.caller_gone,
            sequence: self.sequence.clone(),
            deadline,
        })
    }

    fn connection_to(
        &self,
        (worker, runtime_plan): (&Rc<Worker>, &Rc<RuntimePlan>),
        upstream: &Rc<LegacySocketUpstream>,
    ) -> Result<ConnectionHandle, link::RequestError> {
        if self.has_lost() {
            return Err(link::RequestError::Unreachable);
        }
        let mut sockets = self.sockets.borrow_mut();
        sockets.retain(|(_, handle)| !handle.requests.is_closed());
        // The server ties its state for a client to the socket, so an open one is reused under a new plan too.
        let mut existing = sockets.iter();
        if let Some((_, handle)) = existing.find(|(existing, _)| existing.is_same_server(upstream))
        {
            return Ok(handle.clone());
        }
        let permit = upstream.reserve()?;
        let (requests, inbox) = mpsc::channel(QUEUE);
        let handle = ConnectionHandle {
            requests,
            caller_gone: Rc::default(),
        };
        let task = ConnectionTask::new(
            worker,
            runtime_plan,
            upstream,
            self.client_sender.borrow().clone(),
        );
        let (upstream, caller_gone) = (upstream.clone(), handle.caller_gone.clone());
        let existing = upstream.clone();
        let run = serve(task, (upstream, permit), (inbox, caller_gone));
        worker.tasks().start(run);
        sockets.push((existing, handle.clone()));
        Ok(handle)
    }
}
