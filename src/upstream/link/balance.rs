//! Load balancing between several shared links to one server: each request goes to the least busy link.
//!
//! Laws: one link task owns a request until it ends, so that everything that belongs to it uses the same link; a link
//! that is down gets no requests while another one is up; notifications for all clients are taken from one link.
//!
//! Used by `app::sockets`.

use std::sync::Arc;

use super::handle::{InFlightGuard, LinkHandle, RequestReceiver, open};
use super::stats::LinkStats;

/// One of the balanced links.
struct BalancedLink {
    link: LinkHandle,
    stats: Arc<LinkStats>,
    load: InFlightGuard,
}

impl BalancedLink {
    /// Returns the sort key: the link with the least cost takes the next request.
    fn cost(&self) -> (bool, usize) {
        (!self.stats.is_up(), Arc::strong_count(&self.load))
    }
}

/// Forwards requests to `count` link tasks, each of which `start` starts.
pub async fn balance(
    mut inbox: RequestReceiver,
    parent_stats: &Arc<LinkStats>,
    count: usize,
    queue: usize,
    mut start: impl FnMut(RequestReceiver, Arc<LinkStats>),
) {
    let mut all_stats: Vec<Arc<LinkStats>> = Vec::with_capacity(count);
    let mut members: Vec<BalancedLink> = Vec::with_capacity(count);
    for _ in 0..count {
        let (link, receiver) = open(queue);
        let stats = Arc::new(LinkStats::with_parent(parent_stats));
        let subscribers = inbox.subscribers.preceded_by(&all_stats);
        start(
            RequestReceiver {
                subscribers,
                ..receiver
            },
            stats.clone(),
        );
        all_stats.push(stats.clone());
        members.push(BalancedLink {
            link,
            stats,
            load: InFlightGuard::default(),
        });
    }
    loop {
        // Both branches are cancel-safe: nothing is lost before the next iteration.
        tokio::select! {
            request = inbox.requests.recv() => {
                let Some(mut request) = request else {
                    return;
                };
                if let Some(member) = members.iter().min_by_key(|member| member.cost()) {
                    request.load = Some(member.load.clone());
                    // The link task lives as long as its handle, so the send cannot fail.
                    let _ = member.link.forward(request).await;
                }
            }
            () = inbox.caller_gone.notified() => members.iter().for_each(|member| member.link.notify_caller_gone()),
        }
    }
}
