//! Who hears what a server tells to all, where several links at it have their listeners in common.
//!
//! A server may tell the same on each of its links. Law: of the links that are up, one is heard; where it drops the
//! next one is.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::LinkStats;
use super::notifications::NotificationSender;

/// How many may listen to a link that all share.
const LISTENERS: usize = 16 * 1024;

/// One who hears, or is on its way to.
#[derive(Debug, Clone)]
pub(super) struct Subscriber {
    ear: NotificationSender,
    /// It lives for as long as this one hears, or is on its way.
    hears: Arc<()>,
}

impl Subscriber {
    pub(super) fn new(ear: NotificationSender) -> Subscriber {
        let hears = Arc::default();
        Subscriber { ear, hears }
    }

    /// Whether it still hears, for who keeps this.
    pub(super) fn subscription(&self) -> Weak<()> {
        Arc::downgrade(&self.hears)
    }
}

/// What comes of one more who wants to hear.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinResult {
    Subscribed,
    /// There are as many as there may be, and it is the first who finds no room. It may try again.
    First(usize),
    /// The same for those after it.
    Not,
}

/// Those who hear.
#[derive(Debug)]
struct SubscriberState {
    all: Vec<Subscriber>,
    most: usize,
    /// Whether somebody found no room since there was some.
    is_full: bool,
}

impl SubscriberState {
    fn of_at_most(most: usize) -> SubscriberState {
        SubscriberState {
            all: Vec::new(),
            most,
            is_full: false,
        }
    }
}

impl Default for SubscriberState {
    fn default() -> SubscriberState {
        SubscriberState::of_at_most(LISTENERS)
    }
}

/// The listeners, and whether it is this link that they hear.
#[derive(Debug, Clone, Default)]
pub(super) struct SubscriberSet {
    crowd: Arc<Mutex<SubscriberState>>,
    /// Those that are heard before this one.
    before: Vec<Arc<LinkStats>>,
}

impl SubscriberSet {
    /// The same for a link that is heard while none of these is up, either.
    pub(super) fn succeeding(&self, before: &[Arc<LinkStats>]) -> SubscriberSet {
        let all = self.before.iter().chain(before);
        SubscriberSet {
            crowd: self.crowd.clone(),
            before: all.cloned().collect(),
        }
    }

    /// One more hears.
    pub(super) fn join(&self, listener: Subscriber) -> JoinResult {
        let mut crowd = self.there();
        if crowd.all.len() < crowd.most {
            crowd.is_full = false;
            crowd.all.push(listener);
            return JoinResult::Subscribed;
        }
        match std::mem::replace(&mut crowd.is_full, true) {
            false => JoinResult::First(crowd.most),
            true => JoinResult::Not,
        }
    }

    /// Whether another link says the same to them.
    pub(super) fn add(&self) -> bool {
        self.before.iter().any(|before| before.is_up())
    }

    /// What comes of telling each of them.
    pub(super) fn each<T>(&self, mut tell: impl FnMut(&NotificationSender) -> T) -> Vec<T> {
        let crowd = self.there();
        crowd.all.iter().map(|known| tell(&known.ear)).collect()
    }

    /// Those who have not left. All the links are owned on one thread, so that nobody waits here.
    fn there(&self) -> MutexGuard<'_, SubscriberState> {
        // An entry is whole or not there, so a poisoned lock guards nothing broken.
        let mut crowd = self.crowd.lock().unwrap_or_else(PoisonError::into_inner);
        crowd.all.retain(|known| !known.ear.is_closed());
        crowd
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::domain::pending::LinkCounts;
    use crate::upstream::link::{LinkGauges, StatsHandle, channel};

    #[test]
    fn who_finds_no_room_is_told_so_and_finds_some_when_another_has_left() {
        let listeners = SubscriberSet {
            crowd: Arc::new(Mutex::new(SubscriberState::of_at_most(1))),
            before: Vec::new(),
        };
        let (ear, leaves) = channel();
        let (other, _stays) = channel();
        let first = Subscriber::new(ear);
        let hears = first.subscription();
        assert_eq!(listeners.join(first), JoinResult::Subscribed);
        for joined in [JoinResult::First(1), JoinResult::Not] {
            let late = Subscriber::new(other.clone());
            let hears = late.subscription();
            assert_eq!(listeners.join(late), joined);
            assert_eq!(hears.strong_count(), 0);
        }
        assert_eq!(hears.strong_count(), 1);
        drop(leaves);
        let late = Subscriber::new(other.clone());
        let then = late.subscription();
        assert_eq!(listeners.join(late), JoinResult::Subscribed);
        assert_eq!((hears.strong_count(), then.strong_count()), (0, 1));
        assert_eq!(listeners.join(Subscriber::new(other)), JoinResult::First(1));
    }

    #[test]
    fn a_link_behind_others_is_heard_while_none_of_them_is_up() {
        let others = [(); 2].map(|()| Arc::<LinkStats>::default());
        let [member, elder] = &others;
        let listeners = SubscriberSet::default();
        let heir = listeners
            .succeeding(slice::from_ref(member))
            .succeeding(slice::from_ref(elder));
        assert!(!heir.add());
        for other in &others {
            let mut share = StatsHandle::new(&**other);
            let up = LinkGauges {
                ready: 1,
                ..LinkGauges::default()
            };
            share.set_gauges(up, LinkCounts::default());
            assert!(heir.add());
            drop(share);
            assert!(!heir.add());
        }
    }
}
