//! A server that speaks in frames over WebSockets: one of them for each connection of a client, since it keeps state there.
//!
//! Who opens one owns it, and reads and writes it; what the frames say is not known here.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::time::timeout;

use super::link::{LinkStats, Transport};
use super::websocket::WebSocket;
use super::{MessageStream, Socket};
use crate::domain::pending::RequestError;
use crate::domain::plan::{FramesPlan, UpstreamPlan};

/// A server that speaks in frames, as one worker sees it.
#[derive(Debug)]
pub struct LegacySocketUpstream {
    plan: UpstreamPlan,
    frames: FramesPlan,
    server: WebSocket,
    sockets: Rc<OpenSockets>,
    stats: Arc<LinkStats>,
}

/// The sockets of a worker at a server, whatever plans they began with.
#[derive(Debug, Default)]
struct OpenSockets {
    /// How many are open.
    open: Cell<usize>,
    /// Whether no plan means the server any more.
    over: Cell<bool>,
}

/// A place among the sockets that a worker may have open.
#[derive(Debug)]
pub struct SocketPermit(Rc<OpenSockets>);

impl Drop for SocketPermit {
    fn drop(&mut self) {
        let open = &self.0.open;
        open.set(open.get() - 1);
    }
}

impl LegacySocketUpstream {
    /// The server of a plan, whose sockets are counted among those of the process.
    #[must_use]
    pub fn new(
        plan: UpstreamPlan,
        frames: &FramesPlan,
        stats: Arc<LinkStats>,
    ) -> LegacySocketUpstream {
        LegacySocketUpstream {
            server: WebSocket::of_frames(&plan, frames),
            frames: frames.clone(),
            plan,
            sockets: Rc::default(),
            stats,
        }
    }

    /// The same, with the sockets among its own that are open at the server as it was planned before.
    #[must_use]
    pub fn following(self, before: &LegacySocketUpstream) -> LegacySocketUpstream {
        let sockets = before.sockets.clone();
        LegacySocketUpstream { sockets, ..self }
    }

    /// Whether another one is this very server, spoken to by the same rules, whatever else its plan says.
    #[must_use]
    pub fn is_same_server(&self, other: &LegacySocketUpstream) -> bool {
        Rc::ptr_eq(&self.sockets, &other.sockets)
    }

    /// No plan means the server any more, nor will: those who have sockets there are let go.
    pub fn end(&self) {
        self.sockets.over.set(true);
    }

    /// Whether no plan means it any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.sockets.over.get()
    }

    /// What the plan says of it.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// What the plan says of its sockets.
    #[must_use]
    pub fn frames(&self) -> &FramesPlan {
        &self.frames
    }

    /// How the sockets of the process stand.
    #[must_use]
    pub fn stats(&self) -> &Arc<LinkStats> {
        &self.stats
    }

    /// How many sockets are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.sockets.open.get()
    }

    /// Takes a place for one more socket.
    ///
    /// # Errors
    /// [`RequestError::Busy`] where as many as allowed are open.
    pub fn reserve(&self) -> Result<SocketPermit, RequestError> {
        let open = &self.sockets.open;
        if open.get() >= self.plan.connections {
            return Err(RequestError::Busy);
        }
        open.set(open.get() + 1);
        Ok(SocketPermit(self.sockets.clone()))
    }

    /// Opens a socket within the time for it.
    ///
    /// # Errors
    /// Why there is none, for the log.
    pub async fn connect(&self) -> Result<MessageStream<Socket>, String> {
        match timeout(self.plan.connect_timeout, self.server.open()).await {
            Ok(opened) => opened,
            Err(_) => Err(format!(
                "it was not open within {:?}",
                self.plan.connect_timeout
            )),
        }
    }
}
