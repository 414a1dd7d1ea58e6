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
    open: Rc<Cell<usize>>,
    standing: Arc<Standing>,
}

/// A place among the sockets that a worker may have open.
#[derive(Debug)]
pub struct FramesPlace(Rc<Cell<usize>>);

impl Drop for FramesPlace {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
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
            open: Rc::default(),
            standing,
        }
    }

    /// The same, with the sockets among its own that are open at the server as it was planned before.
    #[must_use]
    pub fn following(self, before: &FramesUpstream) -> FramesUpstream {
        let open = before.open.clone();
        FramesUpstream { open, ..self }
    }

    /// Whether another one is this very server, spoken to by the same rules, whatever else its plan says.
    #[must_use]
    pub fn is_same_server(self: &Rc<FramesUpstream>, other: &Rc<FramesUpstream>) -> bool {
        Rc::ptr_eq(self, other) || self.plan.is_same_server(&other.plan)
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
        self.open.get()
    }

    /// Takes a place for one more socket.
    ///
    /// # Errors
    /// [`Unanswered::Busy`] where as many as allowed are open.
    pub fn place(&self) -> Result<FramesPlace, Unanswered> {
        if self.open.get() >= self.plan.connections {
            return Err(Unanswered::Busy);
        }
        self.open.set(self.open.get() + 1);
        Ok(FramesPlace(self.open.clone()))
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
