//! A link that all share and that grows old: another one is opened before it ends, and calls go there from then on.
//!
//! Laws: every question goes to one owner, in the order of asking; an old link ends when its last question is answered;
//! where no new one can be opened the old one serves on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::ask::{Inbox, LinkHandle, open};
use super::listeners::Listeners;
use crate::telemetry::clock;

/// An owner and when its link became ready.
struct Current {
    link: LinkHandle,
    ready: Arc<Notify>,
    since: Option<Instant>,
}

/// Hands on what comes in to one owner after another, each of which `begin` starts.
pub async fn succeed(
    mut inbox: Inbox,
    (queue, max_age): (usize, Duration),
    mut begin: impl FnMut(Inbox),
) {
    let listeners = inbox.listeners.clone();
    let mut elders: Vec<Weak<Notify>> = Vec::new();
    let mut current = launch(queue, &listeners, &mut begin);
    let mut heir: Option<Current> = None;
    loop {
        let end = current.since.map(|since| since + max_age);
        let end = end.filter(|_| heir.is_none());
        // Every branch is cancel-safe: what is not taken is there at the next turn.
        tokio::select! {
            asked = inbox.asks.recv() => match asked {
                Some(asked) => {
                    // Its owner lives for as long as this can be said.
                    let _ = current.link.hand_on(asked).await;
                }
                None => return,
            },
            () = inbox.gone.notified() => {
                elders.retain(|elder| elder.upgrade().inspect(|elder| elder.notify_one()).is_some());
                current.link.gone();
            }
            () = current.ready.notified() => current.since = Some(clock::now()),
            () = is_ready(heir.as_ref()) => if let Some(mut new) = heir.take() {
                elders.push(current.link.identity());
                new.since = Some(clock::now());
                current = new;
            },
            () = sleep_until(end.unwrap_or_else(clock::now)), if end.is_some() => {
                heir = Some(launch(queue, &listeners, &mut begin));
            }
        }
    }
}

fn launch(queue: usize, listeners: &Listeners, begin: &mut impl FnMut(Inbox)) -> Current {
    let (link, inbox) = open(queue);
    let ready = Arc::<Notify>::default();
    begin(Inbox {
        ready: Some(ready.clone()),
        listeners: listeners.clone(),
        ..inbox
    });
    Current {
        link,
        ready,
        since: None,
    }
}

async fn is_ready(heir: Option<&Current>) {
    match heir {
        Some(heir) => heir.ready.notified().await,
        None => std::future::pending().await,
    }
}
