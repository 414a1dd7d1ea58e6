//! The sockets that one connection of a client has at servers that speak in frames, and the way to each of them.
//!
//! A socket is opened with the first call that needs it, and ends with the client's connection, or when it was not used
//! for too long; one task owns it.

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
use crate::domain::route::BindError;
use crate::gateway::{RuntimePlan, Worker};
use crate::telemetry::clock;
use crate::upstream::LegacySocketUpstream;

/// How many questions may wait to be taken, and how many frames to be written.
pub(super) const QUEUE: usize = 64;

/// How much longer than its time a question waits to hear that its time is over.
const GRACE: Duration = Duration::from_millis(250);

/// What is asked over a socket.
#[derive(Debug)]
pub(super) enum SocketRequest {
    /// An RPC call, which a frame says.
    Call {
        method: String,
        params: Option<Json>,
    },
    /// A frame of the client's own, as it came.
    Passed { frame: Json, text: Bytes },
}

/// What a caller is told.
#[derive(Debug)]
pub(super) enum SocketReply {
    /// The answer.
    Answer(TranslatedReply<RpcAnswer>),
    /// What is not answered is written.
    Told,
}

/// Why a caller is told nothing.
#[derive(Debug)]
pub(super) enum SocketCallError {
    /// The socket, or the server.
    Link(link::RequestError),
    /// The call does not fit its route.
    Misfit(BindError),
}

/// What a client hears of a server that speaks in frames.
#[derive(Debug)]
pub(in crate::gateway) enum ServerNews {
    /// What answers the client itself, or may.
    Answer(Bytes),
    /// An event.
    Event(Bytes),
    /// The socket is gone, and what the server kept for it.
    Gone,
}

/// What a caller is told, and when.
#[derive(Debug)]
pub(super) struct SequencedSocketReply {
    pub(super) said: Result<SocketReply, SocketCallError>,
    /// How many news had gone to the client before.
    pub(super) behind: u64,
}

/// Where a caller is told.
pub(super) type SocketReplySender = oneshot::Sender<SequencedSocketReply>;

/// One question on its way to the owner of a socket.
#[derive(Debug)]
pub(super) struct QueuedRequest {
    pub(super) installed: Rc<RuntimePlan>,
    pub(super) question: SocketRequest,
    pub(super) deadline: Instant,
    pub(super) reply: SocketReplySender,
}

/// Where the questions to one socket go. Dropped, it ends the socket.
#[derive(Debug, Clone)]
struct ConnectionHandle {
    asks: mpsc::Sender<QueuedRequest>,
    gone: Rc<Notify>,
}

/// A socket that is open, by the server that it was opened at.
type OpenConnection = (Rc<LegacySocketUpstream>, ConnectionHandle);

/// The sockets of one connection of a client.
#[derive(Debug, Default)]
pub(in crate::gateway) struct ClientConnections {
    sockets: RefCell<Vec<OpenConnection>>,
    /// Where what servers say goes.
    way: RefCell<ClientSender>,
    /// How many news came before the last answer that a caller has.
    behind: Rc<Cell<u64>>,
}

/// A question that is taken; it may be waited for elsewhere.
pub(super) struct PendingReply {
    answer: oneshot::Receiver<SequencedSocketReply>,
    gone: Rc<Notify>,
    behind: Rc<Cell<u64>>,
    deadline: Instant,
}

impl PendingReply {
    /// The answer, within its time; none where the client's connection has ended.
    pub(super) async fn answer(mut self) -> Option<Result<SocketReply, SocketCallError>> {
        match timeout_at(self.deadline + GRACE, &mut self.answer).await {
            Ok(Ok(told)) => {
                self.behind.set(self.behind.get().max(told.behind));
                Some(told.said)
            }
            Ok(Err(_)) => None,
            Err(_) => Some(Err(SocketCallError::Link(link::RequestError::Late))),
        }
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        self.answer.close();
        self.gone.notify_one();
    }
}

impl ClientConnections {
    /// What servers say over sockets that are opened from now on goes here.
    pub(in crate::gateway) fn notify(&self, news: mpsc::Sender<ServerNews>) {
        // One that was opened before would tell nobody.
        self.sockets.borrow_mut().clear();
        *self.way.borrow_mut() = ClientSender::to(news);
    }

    /// How many news the client is to hear before the answers that its calls have by now.
    pub(in crate::gateway) fn sequence(&self) -> u64 {
        self.behind.get()
    }

    /// Whether a client that hears events has lost a socket, or is about to.
    pub(in crate::gateway) fn has_lost(&self) -> bool {
        let way = self.way.borrow();
        let is_over =
            |(known, handle): &OpenConnection| known.is_over() && !handle.asks.is_closed();
        way.has_lost() || way.has_receiver() && self.sockets.borrow().iter().any(is_over)
    }

    /// Opens a socket where none is open, for a client that only listens.
    pub(in crate::gateway) fn subscribe(
        &self,
        worker: &Rc<Worker>,
        installed: &Rc<RuntimePlan>,
        upstream: &Rc<LegacySocketUpstream>,
    ) {
        // One that cannot be opened is opened by the first call that needs it, which is told why not.
        let _ = self.of((worker, installed), upstream);
    }

    /// Asks over the socket of this connection, in the order of asking.
    pub(super) fn send(
        &self,
        (worker, installed): (&Rc<Worker>, &Rc<RuntimePlan>),
        upstream: &Rc<LegacySocketUpstream>,
        question: SocketRequest,
        limit: Duration,
    ) -> Result<PendingReply, link::RequestError> {
        let handle = self.of((worker, installed), upstream)?;
        let (reply, answer) = oneshot::channel();
        let deadline = clock::now() + limit;
        let asked = QueuedRequest {
            installed: installed.clone(),
            question,
            deadline,
            reply,
        };
        // One that ended just now is as good as one that is not there.
        handle.asks.try_send(asked).map_err(|full| match full {
            mpsc::error::TrySendError::Full(_) => link::RequestError::Busy,
            mpsc::error::TrySendError::Closed(_) => link::RequestError::Unreachable,
        })?;
        Ok(PendingReply {
            answer,
            gone: handle.gone,
            behind: self.behind.clone(),
            deadline,
        })
    }

    fn of(
        &self,
        (worker, installed): (&Rc<Worker>, &Rc<RuntimePlan>),
        upstream: &Rc<LegacySocketUpstream>,
    ) -> Result<ConnectionHandle, link::RequestError> {
        if self.has_lost() {
            return Err(link::RequestError::Unreachable);
        }
        let mut sockets = self.sockets.borrow_mut();
        sockets.retain(|(_, handle)| !handle.asks.is_closed());
        // What the server keeps for a client is on the socket that it has, whenever that began.
        let mut known = sockets.iter();
        if let Some((_, handle)) = known.find(|(known, _)| known.is_same_server(upstream)) {
            return Ok(handle.clone());
        }
        let place = upstream.reserve()?;
        let (asks, inbox) = mpsc::channel(QUEUE);
        let handle = ConnectionHandle {
            asks,
            gone: Rc::default(),
        };
        let owner = ConnectionTask::new(worker, installed, upstream, self.way.borrow().clone());
        let (upstream, gone) = (upstream.clone(), handle.gone.clone());
        let known = upstream.clone();
        let serves = serve(owner, (upstream, place), (inbox, gone));
        worker.tasks().start(serves);
        sockets.push((known, handle.clone()));
        Ok(handle)
    }
}
