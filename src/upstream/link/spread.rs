//! Several links at one server, which all share: each question goes over the one that is least busy.
//!
//! Laws: every question goes to one owner, who has it until it is over, so that what belongs to it goes over the same
//! link; a link that is down gets none while another one is up; what a server tells to all is taken from one of them.

use std::sync::Arc;

use super::Standing;
use super::ask::{Inbox, LinkHandle, open};

/// A question that an owner has; as many live as it has questions.
pub(super) type Load = Arc<()>;

/// One of the links.
struct Member {
    link: LinkHandle,
    standing: Arc<Standing>,
    load: Load,
}

impl Member {
    /// The less, the sooner it is taken.
    fn cost(&self) -> (bool, usize) {
        (!self.standing.is_up(), Arc::strong_count(&self.load))
    }
}

/// Hands on what comes in to so many owners, each of which `begin` starts.
pub async fn spread(
    mut inbox: Inbox,
    whole: &Arc<Standing>,
    (count, queue): (usize, usize),
    mut begin: impl FnMut(Inbox, Arc<Standing>),
) {
    let mut standings: Vec<Arc<Standing>> = Vec::with_capacity(count);
    let mut members: Vec<Member> = Vec::with_capacity(count);
    for _ in 0..count {
        let (link, own) = open(queue);
        let standing = Arc::new(Standing::part_of(whole));
        let listeners = inbox.listeners.behind(&standings);
        begin(Inbox { listeners, ..own }, standing.clone());
        standings.push(standing.clone());
        members.push(Member {
            link,
            standing,
            load: Load::default(),
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
            () = inbox.gone.notified() => members.iter().for_each(|member| member.link.gone()),
        }
    }
}
