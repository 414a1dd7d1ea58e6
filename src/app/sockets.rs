//! The sockets at a server that all clients share: one or several, each of which may give way to another as it grows old.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::pending::LinkSettings;
use crate::domain::plan::{UpstreamPlan, WebSocketPlan};
use crate::upstream::link::{LinkStats, RequestReceiver, own, spread, succeed};
use crate::upstream::{Tasks, WebSocket};

/// A server that is spoken to over WebSockets.
#[derive(Debug, Clone)]
pub(super) struct Server {
    name: Arc<str>,
    transport: WebSocket,
    settings: LinkSettings,
    /// How old a socket grows that is shared.
    max_age: Option<Duration>,
    /// Those that own its sockets.
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

    /// Owns one socket at a time.
    pub(super) async fn own(self, inbox: RequestReceiver, standing: Arc<LinkStats>) {
        own(
            (&self.name, self.transport),
            self.settings,
            inbox,
            &standing,
        )
        .await;
    }

    /// The same, and opens the next one before the one before is too old.
    pub(super) async fn conduct(self, inbox: RequestReceiver, standing: Arc<LinkStats>) {
        let Some(age) = self.max_age else {
            return self.own(inbox, standing).await;
        };
        let begin = |inbox, own| {
            let one = self.clone().own(inbox, own);
            self.tasks.start(one);
        };
        succeed(inbox, &standing, (self.settings.queue, age), begin).await;
    }

    /// Has several of them at a time.
    pub(super) async fn spread(
        self,
        count: usize,
        inbox: RequestReceiver,
        standing: Arc<LinkStats>,
    ) {
        let begin = |inbox, own| {
            let one = self.clone().conduct(inbox, own);
            self.tasks.start(one);
        };
        spread(inbox, &standing, (count, self.settings.queue), begin).await;
    }
}
