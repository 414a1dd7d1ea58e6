//! Load balancing between several shared links to one server: each request goes to the least busy link.
//!
//! Laws: one link task owns a request until it ends, so that everything that belongs to it uses the same link; a link
//! that is down gets no requests while another one is up; notifications for all clients are taken from one link.

use std::sync::Arc;

use super::LinkStats;
use super::handle::{LinkHandle, RequestReceiver, open};

/// A guard for a request in flight on a link; the strong count is the load.
pub(super) type InFlightGuard = Arc<()>;

/// One of the balanced links.
struct BalancedLink {
    link: LinkHandle,
    standing: Arc<LinkStats>,
    load: InFlightGuard,
}

impl BalancedLink {
    /// Returns the sort key: the link with the least cost takes the next request.
    fn cost(&self) -> (bool, usize) {
        (!self.standing.is_up(), Arc::strong_count(&self.load))
    }
}

/// Forwards requests to `count` link tasks, each of which `begin` starts.
pub async fn spread(
    mut inbox: RequestReceiver,
    whole: &Arc<LinkStats>,
    (count, queue): (usize, usize),
    mut begin: impl FnMut(RequestReceiver, Arc<LinkStats>),
) {
    let mut standings: Vec<Arc<LinkStats>> = Vec::with_capacity(count);
    let mut members: Vec<BalancedLink> = Vec::with_capacity(count);
    for _ in 0..count {
        let (link, own) = open(queue);
        let standing = Arc::new(LinkStats::part_of(whole));
        let listeners = inbox.listeners.succeeding(&standings);
        begin(RequestReceiver { listeners, ..own }, standing.clone());
        standings.push(standing.clone());
        members.push(BalancedLink {
            link,
            standing,
            load: InFlightGuard::default(),
        });
    }
    loop {
        // Both branches are cancel-safe: nothing is lost before the next iteration.
        tokio::select! {
            asked = inbox.asks.recv() => {
                let Some(mut asked) = asked else {
                    return;
                };
                if let Some(member) = members.iter().min_by_key(|member| member.cost()) {
                    asked.load = Some(member.load.clone());
                    // The link task lives as long as its handle, so the send cannot fail.
                    let _ = member.link.hand_on(asked).await;
                }
            }
            () = inbox.gone.notified() => members.iter().for_each(|member| member.link.notify_abandoned()),
        }
    }
}
