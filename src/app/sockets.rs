//! The WebSockets to a server that all clients share: one or several, each of which may be replaced when it reaches its
//! maximum age.
//!
//! Used by `link_thread`.

use std::sync::Arc;
use std::time::Duration;

use crate::upstream::WebSocket;
use crate::upstream::link::{LinkStats, RequestReceiver, balance, rotate, run_link};
use dualgauge_model::pending::LinkSettings;
use dualgauge_model::plan::{UpstreamPlan, WebSocketPlan};
use dualgauge_net::Tasks;

/// A server that is reached over WebSockets.
#[derive(Debug, Clone)]
pub(super) struct Server {
    name: Arc<str>,
    transport: WebSocket,
    settings: LinkSettings,
    /// The maximum age of a shared socket.
    max_age: Option<Duration>,
    /// The tasks that own the sockets.
    tasks: Tasks,
}

impl Server {
    pub(super) fn new(plan: &UpstreamPlan, socket: &WebSocketPlan, tasks: Tasks) -> Server {
        Server {
            name: plan.name.as_str().into(),
            transport: WebSocket::new(plan, socket),
            settings: socket.link.settings.clone(),
            max_age: plan.max_age,
            tasks,
        }
    }

    /// Runs one socket at a time.
    pub(super) async fn own(self, inbox: RequestReceiver, stats: Arc<LinkStats>) {
        run_link(&self.name, self.transport, self.settings, inbox, &stats).await;
    }

    /// Runs one socket, and opens the next one when it reaches its maximum age.
    pub(super) async fn conduct(self, inbox: RequestReceiver, stats: Arc<LinkStats>) {
        let Some(age) = self.max_age else {
            return self.own(inbox, stats).await;
        };
        let begin = |inbox, own| {
            let one = self.clone().own(inbox, own);
            self.tasks.start(one);
        };
        rotate(inbox, &stats, self.settings.queue, age, begin).await;
    }

    /// Runs `count` sockets.
    pub(super) async fn spread(self, count: usize, inbox: RequestReceiver, stats: Arc<LinkStats>) {
        let begin = |inbox, own| {
            let one = self.clone().conduct(inbox, own);
            self.tasks.start(one);
        };
        balance(inbox, &stats, count, self.settings.queue, begin).await;
    }
}
