//! Rotation of a shared link that reaches its maximum age: the next link is opened before the old one ends.
//!
//! Laws: one link task owns a request, in the order of sending; an old link ends when its last request is answered; if
//! no new link can be opened the old one stays in use; notifications for all clients are taken from the oldest link
//! that is up.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::LinkStats;
use super::handle::{LinkHandle, RequestReceiver, open};
use crate::telemetry::clock;

/// A link task and the time at which its link became ready.
struct CurrentLink {
    link: LinkHandle,
    standing: Arc<LinkStats>,
    ready: Arc<Notify>,
    since: Option<Instant>,
}

/// Forwards requests to one link task after another, each of which `begin` starts.
pub async fn succeed(
    mut inbox: RequestReceiver,
    whole: &Arc<LinkStats>,
    (queue, max_age): (usize, Duration),
    mut begin: impl FnMut(RequestReceiver, Arc<LinkStats>),
) {
    let listeners = inbox.listeners.clone();
    let mut elders: Vec<DrainingLink> = Vec::new();
    let mut launch = |before: &[Arc<LinkStats>]| {
        let (link, own) = open(queue);
        let (ready, standing) = (Arc::default(), Arc::new(LinkStats::part_of(whole)));
        let begun = RequestReceiver {
            ready: Some(Arc::clone(&ready)),
            listeners: listeners.succeeding(before),
            ..own
        };
        begin(begun, standing.clone());
        CurrentLink {
            link,
            standing,
            ready,
            since: None,
        }
    };
    let mut current = launch(&[]);
    let mut heir: Option<CurrentLink> = None;
    loop {
        let end = current.since.map(|since| since + max_age);
        let end = end.filter(|_| heir.is_none());
        // All branches are cancel-safe: nothing is lost before the next iteration.
        tokio::select! {
            asked = inbox.asks.recv() => match asked {
                Some(asked) => {
                    // The link task lives as long as its handle, so the send cannot fail.
                    let _ = current.link.hand_on(asked).await;
                }
                None => return,
            },
            () = inbox.gone.notified() => {
                elders.retain(DrainingLink::is_there);
                elders.iter().for_each(DrainingLink::gone);
                current.link.notify_abandoned();
            }
            () = current.ready.notified() => current.since = Some(clock::now()),
            () = is_ready(heir.as_ref()) => if let Some(mut new) = heir.take() {
                elders.push(DrainingLink(current.link.identity(), current.standing));
                new.since = Some(clock::now());
                current = new;
            },
            () = sleep_until(end.unwrap_or_else(clock::now)), if end.is_some() => {
                elders.retain(DrainingLink::is_there);
                let before = elders.iter().map(|DrainingLink(_, standing)| standing);
                let before: Vec<_> = before.chain([&current.standing]).cloned().collect();
                heir = Some(launch(&before));
            }
        }
    }
}

/// A link task that takes no more requests, and the statistics of its link.
struct DrainingLink(Weak<Notify>, Arc<LinkStats>);

impl DrainingLink {
    fn is_there(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Tells the link task that a caller has gone away.
    fn gone(&self) {
        if let Some(gone) = self.0.upgrade() {
            gone.notify_one();
        }
    }
}

async fn is_ready(heir: Option<&CurrentLink>) {
    match heir {
        Some(heir) => heir.ready.notified().await,
        None => std::future::pending().await,
    }
}
