//! Rotation of a shared link that reaches its maximum age: the next link is opened before the old one ends.
//!
//! Laws: one link task owns a request, in the order of sending; an old link ends when its last request is answered; if
//! no new link can be opened the old one stays in use; notifications for all clients are taken from the oldest link
//! that is up.
//!
//! Used by `app::sockets`.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::handle::{LinkHandle, RequestReceiver, open};
use super::stats::LinkStats;
use crate::telemetry::clock;

/// A link task and the time at which its link became ready.
struct CurrentLink {
    link: LinkHandle,
    stats: Arc<LinkStats>,
    ready: Arc<Notify>,
    since: Option<Instant>,
}

/// Forwards requests to one link task after another, each of which `start` starts.
pub async fn rotate(
    mut inbox: RequestReceiver,
    parent_stats: &Arc<LinkStats>,
    queue: usize,
    max_age: Duration,
    mut start: impl FnMut(RequestReceiver, Arc<LinkStats>),
) {
    let subscribers = inbox.subscribers.clone();
    let mut draining: Vec<DrainingLink> = Vec::new();
    let mut launch = |before: &[Arc<LinkStats>]| {
        let (link, receiver) = open(queue);
        let (ready, stats) = (
            Arc::default(),
            Arc::new(LinkStats::with_parent(parent_stats)),
        );
        let receiver = RequestReceiver {
            ready: Some(Arc::clone(&ready)),
            subscribers: subscribers.preceded_by(before),
            ..receiver
        };
        start(receiver, stats.clone());
        CurrentLink {
            link,
            stats,
            ready,
            since: None,
        }
    };
    let mut current = launch(&[]);
    let mut next: Option<CurrentLink> = None;
    loop {
        let end = current.since.map(|since| since + max_age);
        let end = end.filter(|_| next.is_none());
        // All branches are cancel-safe: nothing is lost before the next iteration.
        tokio::select! {
            request = inbox.requests.recv() => match request {
                Some(request) => {
                    // The link task lives as long as its handle, so the send cannot fail.
                    let _ = current.link.forward(request).await;
                }
                None => return,
            },
            () = inbox.caller_gone.notified() => {
                draining.retain(DrainingLink::is_alive);
                draining.iter().for_each(DrainingLink::notify_caller_gone);
                current.link.notify_caller_gone();
            }
            () = current.ready.notified() => current.since = Some(clock::now()),
            () = is_ready(next.as_ref()) => if let Some(mut new) = next.take() {
                draining.push(DrainingLink(current.link.identity(), current.stats));
                new.since = Some(clock::now());
                current = new;
            },
            () = sleep_until(end.unwrap_or_else(clock::now)), if end.is_some() => {
                draining.retain(DrainingLink::is_alive);
                let before = draining.iter().map(|DrainingLink(_, stats)| stats);
                let before: Vec<_> = before.chain([&current.stats]).cloned().collect();
                next = Some(launch(&before));
            }
        }
    }
}

/// A link task that takes no more requests, and the statistics of its link.
struct DrainingLink(Weak<Notify>, Arc<LinkStats>);

impl DrainingLink {
    fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Tells the link task that a caller has gone away.
    fn notify_caller_gone(&self) {
        if let Some(caller_gone) = self.0.upgrade() {
            caller_gone.notify_one();
        }
    }
}

async fn is_ready(next: Option<&CurrentLink>) {
    match next {
        Some(next) => next.ready.notified().await,
        None => std::future::pending().await,
    }
}
