//! The upstream sockets of one client connection, and the request queue of each.
//!
//! A socket is opened by the first call that needs it. It closes with the client's connection, or after its idle
//! timeout. One task owns it.
//!
//! Used by `gateway`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::client_queue::ClientSender;
use super::connection::{ConnectionTask, QUEUE, SocketContext, serve};
use super::request::{
    LegacyServerMessage, QueuedRequest, SequencedSocketReply, SocketCall, SocketCallError,
    SocketReply,
};
use super::server::LegacySocketUpstream;
use crate::telemetry::clock;
use dualgauge_model::pending::RequestError;

/// The extra time that a caller waits beyond its deadline, so that the task can report the timeout itself.
const GRACE: Duration = Duration::from_millis(250);

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
pub struct ClientConnections {
    sockets: RefCell<Vec<OpenConnection>>,
    /// The sender of server messages to the client.
    client_sender: RefCell<ClientSender>,
    /// The number of server messages that precede the last reply delivered to a caller.
    sequence: Rc<Cell<u64>>,
}

/// A request that was queued; any task may wait for its reply.
#[derive(Debug)]
pub struct PendingReply {
    answer: oneshot::Receiver<SequencedSocketReply>,
    caller_gone: Rc<Notify>,
    sequence: Rc<Cell<u64>>,
    deadline: Instant,
}

impl PendingReply {
    /// Waits for the reply until the deadline; returns `None` if the client's connection has ended.
    pub async fn answer(mut self) -> Option<Result<SocketReply, SocketCallError>> {
        match timeout_at(self.deadline + GRACE, &mut self.answer).await {
            Ok(Ok(reply)) => {
                self.sequence.set(self.sequence.get().max(reply.sequence));
                Some(reply.result)
            }
            Ok(Err(_)) => None,
            Err(_) => Some(Err(SocketCallError::Link(RequestError::Late))),
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
    pub fn set_notifications(&self, sender: mpsc::Sender<LegacyServerMessage>) {
        // Sockets opened before have no receiver, so they are closed.
        self.sockets.borrow_mut().clear();
        *self.client_sender.borrow_mut() = ClientSender::new(sender);
    }

    /// Returns the number of server messages that the client must get before the replies delivered so far.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// Returns true if a client that receives events has lost a socket, or is about to.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        let client_sender = self.client_sender.borrow();
        let is_over = |(existing, handle): &OpenConnection| {
            existing.is_over() && !handle.requests.is_closed()
        };
        client_sender.has_lost()
            || client_sender.has_receiver() && self.sockets.borrow().iter().any(is_over)
    }

    /// Opens a socket if none is open, for a client that only listens. Only a socket that is opened needs a context.
    pub fn subscribe(
        &self,
        context: impl FnOnce() -> SocketContext,
        upstream: &Rc<LegacySocketUpstream>,
    ) {
        // A failure is ignored: the next call tries again, and reports it to its caller.
        let _ = self.connection_to(context, upstream);
    }

    /// Queues a request on the socket of this client; requests are written in order. Only a socket that is opened needs
    /// a context.
    ///
    /// # Errors
    /// Returns [`RequestError::Busy`] if there are too many sockets or queued requests, and
    /// [`RequestError::Unreachable`] if the socket was lost.
    pub fn send(
        &self,
        context: impl FnOnce() -> SocketContext,
        upstream: &Rc<LegacySocketUpstream>,
        call: SocketCall,
    ) -> Result<PendingReply, RequestError> {
        let SocketCall {
            plan,
            request,
            limit,
        } = call;
        let handle = self.connection_to(context, upstream)?;
        let (reply, answer) = oneshot::channel();
        let deadline = clock::now() + limit;
        let queued = QueuedRequest {
            plan,
            request,
            deadline,
            reply,
        };
        // A socket that has just closed counts as unreachable.
        handle
            .requests
            .try_send(queued)
            .map_err(|full| match full {
                mpsc::error::TrySendError::Full(_) => RequestError::Busy,
                mpsc::error::TrySendError::Closed(_) => RequestError::Unreachable,
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
        context: impl FnOnce() -> SocketContext,
        upstream: &Rc<LegacySocketUpstream>,
    ) -> Result<ConnectionHandle, RequestError> {
        if self.has_lost() {
            return Err(RequestError::Unreachable);
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
        let client_sender = self.client_sender.borrow().clone();
        let context = context();
        let tasks = context.tasks.clone();
        let task = ConnectionTask::new(context, upstream, client_sender);
        tasks.start(serve(task, permit, inbox, handle.caller_gone.clone()));
        sockets.push((upstream.clone(), handle.clone()));
        Ok(handle)
    }
}
