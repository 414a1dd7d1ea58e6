//! Several links at one server, which all share: each question goes over the one that is least busy.
//!
//! Laws: every question goes to one owner, who has it until it is over, so that what belongs to it goes over the same
//! link; a link that is down gets none while another one is up; what a server tells to all is taken from one of them.

use std::sync::Arc;

use super::LinkStats;
use super::handle::{LinkHandle, RequestReceiver, open};

/// A question that an owner has; as many live as it has questions.
pub(super) type InFlightGuard = Arc<()>;

/// One of the links.
struct BalancedLink {
    link: LinkHandle,
    standing: Arc<LinkStats>,
    load: InFlightGuard,
}

impl BalancedLink {
    /// The less, the sooner it is taken.
    fn cost(&self) -> (bool, usize) {
        (!self.standing.is_up(), Arc::strong_count(&self.load))
    }
}

/// Hands on what comes in to so many owners, each of which `begin` starts.
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
        // Either branch is cancel-safe: what is not taken is there at the next turn.
        tokio::select! {
            asked = inbox.asks.recv() => {
                let Some(mut asked) = asked else {
                    return;
                };
                if let Some(member) = members.iter().min_by_key(|member| member.cost()) {
                    asked.load = Some(member.load.clone());
                    // Its owner lives for as long as this can be said.
                    let _ = member.link.hand_on(asked).await;
                }
            }
            () = inbox.gone.notified() => members.iter().for_each(|member| member.link.is_closed()),
        }
    }
}
