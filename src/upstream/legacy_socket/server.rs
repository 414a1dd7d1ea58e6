//! A server that exchanges frames, within one worker, and the number of sockets to it.
//!
//! This module does not know the content of frames.
//!
//! Used by `gateway` and `legacy_socket`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;
use tokio::time::timeout;

use crate::upstream::link::{LinkStats, Transport};
use crate::upstream::websocket::WebSocket;
use dualgauge_model::pending::RequestError;
use dualgauge_model::plan::{FramesPlan, UpstreamPlan};
use dualgauge_net::{CountGuard, MessageStream, Socket};

/// A frame server within one worker.
#[derive(Debug)]
pub struct LegacySocketUpstream {
    plan: UpstreamPlan,
    frames: FramesPlan,
    server: WebSocket,
    sockets: Rc<OpenSockets>,
    stats: Arc<LinkStats>,
}

/// The sockets of a worker to a server, across plan changes.
#[derive(Debug, Default)]
struct OpenSockets {
    /// The number of open sockets.
    open: Rc<Cell<usize>>,
    /// Set when no plan contains the server any more.
    over: Cell<bool>,
    /// Notified when `over` is set.
    ended: Notify,
}

impl LegacySocketUpstream {
    /// Creates the upstream of a plan; its sockets are counted in the process-wide `stats`.
    #[must_use]
    pub fn new(
        plan: UpstreamPlan,
        frames: &FramesPlan,
        stats: Arc<LinkStats>,
    ) -> LegacySocketUpstream {
        LegacySocketUpstream {
            server: WebSocket::for_legacy_socket(&plan, frames),
            frames: frames.clone(),
            plan,
            sockets: Rc::default(),
            stats,
        }
    }

    /// Takes over the sockets that were opened under the previous plan of the same server.
    #[must_use]
    pub fn following(self, before: &LegacySocketUpstream) -> LegacySocketUpstream {
        let sockets = before.sockets.clone();
        LegacySocketUpstream { sockets, ..self }
    }

    /// Returns true when `other` is the same server with the same rules, even if other settings of the plan differ.
    #[must_use]
    pub fn is_same_server(&self, other: &LegacySocketUpstream) -> bool {
        Rc::ptr_eq(&self.sockets, &other.sockets)
    }

    /// Marks the server as removed from all plans: the owners of its sockets close them.
    pub fn end(&self) {
        self.sockets.over.set(true);
        self.sockets.ended.notify_waiters();
    }

    /// Waits until the server is removed from all plans; cancel-safe. Pends forever if it is removed already.
    pub(super) async fn wait_for_end(&self) {
        self.sockets.ended.notified().await;
    }

    /// Returns true when no plan contains the server any more.
    pub(super) fn is_over(&self) -> bool {
        self.sockets.over.get()
    }

    /// Returns the plan of the upstream.
    #[must_use]
    pub fn plan(&self) -> &UpstreamPlan {
        &self.plan
    }

    /// Returns the plan of its sockets.
    pub(super) fn frames(&self) -> &FramesPlan {
        &self.frames
    }

    /// Returns the statistics of the process.
    pub(super) fn stats(&self) -> &Arc<LinkStats> {
        &self.stats
    }

    /// Returns the number of open sockets.
    #[must_use]
    pub fn open(&self) -> usize {
        self.sockets.open.get()
    }

    /// Takes a permit for one more socket; returns [`RequestError::Busy`] when the limit is reached.
    pub(super) fn reserve(&self) -> Result<CountGuard, RequestError> {
        CountGuard::below(self.plan.connections, &self.sockets.open).ok_or(RequestError::Busy)
    }

    /// Opens a socket within the connect timeout; returns the reason of a failure, for the log.
    pub(super) async fn connect(&self) -> Result<MessageStream<Socket>, String> {
        match timeout(self.plan.connect_timeout, self.server.open()).await {
            Ok(opened) => opened,
            Err(_) => Err(format!(
                "it did not open within {:?}",
                self.plan.connect_timeout
            )),
        }
    }
}
