//! The subscribers to notifications that several links to one server share.
//!
//! A server may send the same notification on each of its links. Law: notifications are taken from exactly one of the
//! links that are up; when it goes down, the next one takes over.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::LinkStats;
use super::notifications::NotificationSender;

/// The most subscribers to a shared link.
const LISTENERS: usize = 16 * 1024;

/// A subscriber, or one that is about to subscribe.
#[derive(Debug, Clone)]
pub(super) struct Subscriber {
    ear: NotificationSender,
    /// Lives as long as the subscription, or its preparation.
    hears: Arc<()>,
}

impl Subscriber {
    pub(super) fn new(ear: NotificationSender) -> Subscriber {
        let hears = Arc::default();
        Subscriber { ear, hears }
    }

    /// Returns a handle that can be upgraded while the subscription lives.
    pub(super) fn subscription(&self) -> Weak<()> {
        Arc::downgrade(&self.hears)
    }
}

/// The result of adding a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinResult {
    Subscribed,
    /// The set is full, and this subscriber is the first to be turned away. It may try again.
    First(usize),
    /// The set is full, and others were turned away before.
    Not,
}

/// The subscribers.
#[derive(Debug)]
struct SubscriberState {
    all: Vec<Subscriber>,
    most: usize,
    /// True if a subscriber was turned away since there was last space.
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

/// A set of subscribers, shared between links, with the links that take precedence over this one.
#[derive(Debug, Clone, Default)]
pub(super) struct SubscriberSet {
    crowd: Arc<Mutex<SubscriberState>>,
    /// The links whose notifications are used before those of this one.
    before: Vec<Arc<LinkStats>>,
}

impl SubscriberSet {
    /// Returns the same set for a link that is used only while none of `before` is up either.
    pub(super) fn succeeding(&self, before: &[Arc<LinkStats>]) -> SubscriberSet {
        let all = self.before.iter().chain(before);
        SubscriberSet {
            crowd: self.crowd.clone(),
            before: all.cloned().collect(),
        }
    }

    /// Adds a subscriber.
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

    /// Returns true if a link that takes precedence is up and delivers the same notifications.
    pub(super) fn has_active_predecessor(&self) -> bool {
        self.before.iter().any(|before| before.is_up())
    }

    /// Applies `tell` to each subscriber and returns the results.
    pub(super) fn each<T>(&self, mut tell: impl FnMut(&NotificationSender) -> T) -> Vec<T> {
        let crowd = self.there();
        crowd.all.iter().map(|known| tell(&known.ear)).collect()
    }

    /// Locks the state and removes closed subscribers. All link tasks run on one thread, so the lock is uncontended.
    fn there(&self) -> MutexGuard<'_, SubscriberState> {
        // An entry is added or removed whole, so a poisoned lock guards consistent data.
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
        assert!(!heir.has_active_predecessor());
        for other in &others {
            let mut share = StatsHandle::new(&**other);
            let up = LinkGauges {
                ready: 1,
                ..LinkGauges::default()
            };
            share.set_gauges(up, LinkCounts::default());
            assert!(heir.has_active_predecessor());
            drop(share);
            assert!(!heir.has_active_predecessor());
        }
    }
}
