//! A server that speaks in frames over WebSockets: one of them for each connection of a client, since it keeps state there.
//!
//! Who opens one owns it, and reads and writes it; what the frames say is not known here.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::time::timeout;

use super::link::{Standing, Transport};
use super::websocket::WebSocket;
use super::{Frames, Socket};
use crate::domain::pending::Unanswered;
use crate::domain::plan::{FramesPlan, UpstreamPlan};

/// A server that speaks in frames, as one worker sees it.
#[derive(Debug)]
pub struct FramesUpstream {
    plan: UpstreamPlan,
    frames: FramesPlan,
    server: WebSocket,
    sockets: Rc<Sockets>,
    standing: Arc<Standing>,
}

/// The sockets of a worker at a server, whatever plans they began with.
#[derive(Debug, Default)]
struct Sockets {
    /// How many are open.
    open: Cell<usize>,
    /// Whether no plan means the server any more.
    over: Cell<bool>,
}

/// A place among the sockets that a worker may have open.
#[derive(Debug)]
pub struct FramesPlace(Rc<Sockets>);

impl Drop for FramesPlace {
    fn drop(&mut self) {
        let open = &self.0.open;
        open.set(open.get() - 1);
    }
}

impl FramesUpstream {
    /// The server of a plan, whose sockets are counted among those of the process.
    #[must_use]
    pub fn new(plan: UpstreamPlan, frames: &FramesPlan, standing: Arc<Standing>) -> FramesUpstream {
        FramesUpstream {
            server: WebSocket::of_frames(&plan, frames),
            frames: frames.clone(),
            plan,
            sockets: Rc::default(),
            standing,
        }
    }

    /// The same, with the sockets among its own that are open at the server as it was planned before.
    #[must_use]
    pub fn following(self, before: &FramesUpstream) -> FramesUpstream {
        let sockets = before.sockets.clone();
        FramesUpstream { sockets, ..self }
    }

    /// Whether another one is this very server, spoken to by the same rules, whatever else its plan says.
    #[must_use]
    pub fn is_same_server(&self, other: &FramesUpstream) -> bool {
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
    pub fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// How many sockets are open.
    #[must_use]
    pub fn open(&self) -> usize {
        self.sockets.open.get()
    }

    /// Takes a place for one more socket.
    ///
    /// # Errors
    /// [`Unanswered::Busy`] where as many as allowed are open.
    pub fn place(&self) -> Result<FramesPlace, Unanswered> {
        let open = &self.sockets.open;
        if open.get() >= self.plan.connections {
            return Err(Unanswered::Busy);
        }
        open.set(open.get() + 1);
        Ok(FramesPlace(self.sockets.clone()))
    }

    /// Opens a socket within the time for it.
    ///
    /// # Errors
    /// Why there is none, for the log.
    pub async fn connect(&self) -> Result<Frames<Socket>, String> {
        match timeout(self.plan.connect_timeout, self.server.open()).await {
            Ok(opened) => opened,
            Err(_) => Err(format!(
                "it was not open within {:?}",
                self.plan.connect_timeout
            )),
        }
    }
}
