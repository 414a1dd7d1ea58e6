//! The subscribers to notifications that several links to one server share.
//!
//! A server may send the same notification on each of its links. Law: notifications are taken from exactly one of the
//! links that are up; when it goes down, the next one takes over.
//!
//! Used by `link`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::notifications::NotificationSender;
use super::stats::LinkStats;

/// The most subscribers to a shared link.
const MAX_SUBSCRIBERS: usize = 16 * 1024;

/// A subscriber, or one that is about to subscribe.
#[derive(Debug, Clone)]
pub(super) struct Subscriber {
    notifier: NotificationSender,
    /// Lives as long as the subscription, or its preparation.
    alive: Arc<()>,
}

impl Subscriber {
    pub(super) fn new(notifier: NotificationSender) -> Subscriber {
        let alive = Arc::default();
        Subscriber { notifier, alive }
    }

    /// Returns a handle that can be upgraded while the subscription lives.
    pub(super) fn subscription(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

/// The result of adding a subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinResult {
    Subscribed,
    /// The set is full, and this subscriber is the first to be refused. It may try again.
    RefusedFirst {
        /// The limit of subscribers.
        limit: usize,
    },
    /// The set is full, and others were refused before.
    Refused,
}

/// The subscribers.
#[derive(Debug)]
struct SubscriberState {
    all: Vec<Subscriber>,
    limit: usize,
    /// True if a subscriber was refused since there was last space.
    is_full: bool,
}

impl SubscriberState {
    fn with_limit(limit: usize) -> SubscriberState {
        SubscriberState {
            all: Vec::new(),
            limit,
            is_full: false,
        }
    }
}

impl Default for SubscriberState {
    fn default() -> SubscriberState {
        SubscriberState::with_limit(MAX_SUBSCRIBERS)
    }
}

/// A set of subscribers, shared between links, with the links that take precedence over this one.
#[derive(Debug, Clone, Default)]
pub(super) struct SubscriberSet {
    state: Arc<Mutex<SubscriberState>>,
    /// The links whose notifications are used before those of this one.
    preceding: Vec<Arc<LinkStats>>,
}

impl SubscriberSet {
    /// Returns the same set for a link that is used only while none of `preceding` is up either.
    pub(super) fn preceded_by(&self, preceding: &[Arc<LinkStats>]) -> SubscriberSet {
        let all = self.preceding.iter().chain(preceding);
        SubscriberSet {
            state: self.state.clone(),
            preceding: all.cloned().collect(),
        }
    }

    /// Adds a subscriber.
    pub(super) fn join(&self, subscriber: Subscriber) -> JoinResult {
        let mut state = self.lock();
        if state.all.len() < state.limit {
            state.is_full = false;
            state.all.push(subscriber);
            return JoinResult::Subscribed;
        }
        match std::mem::replace(&mut state.is_full, true) {
            false => JoinResult::RefusedFirst { limit: state.limit },
            true => JoinResult::Refused,
        }
    }

    /// Returns true if a link that takes precedence is up and delivers the same notifications.
    pub(super) fn has_active_predecessor(&self) -> bool {
        self.preceding.iter().any(|preceding| preceding.is_up())
    }

    /// Applies `send` to each subscriber and returns the results.
    pub(super) fn each<T>(&self, mut send: impl FnMut(&NotificationSender) -> T) -> Vec<T> {
        let state = self.lock();
        state
            .all
            .iter()
            .map(|subscriber| send(&subscriber.notifier))
            .collect()
    }

    /// Locks the state and removes closed subscribers. All link tasks run on one thread, so the lock is uncontended.
    fn lock(&self) -> MutexGuard<'_, SubscriberState> {
        // An entry is added or removed whole, so a poisoned lock guards consistent data.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state
            .all
            .retain(|subscriber| !subscriber.notifier.is_closed());
        state
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;
    use crate::upstream::link::{LinkGauges, StatsHandle, channel};
    use dualgauge_model::pending::LinkCounts;

    #[test]
    fn a_full_set_refuses_a_subscriber_until_another_has_left() {
        let subscribers = SubscriberSet {
            state: Arc::new(Mutex::new(SubscriberState::with_limit(1))),
            preceding: Vec::new(),
        };
        let (notifier, leaves) = channel();
        let (other, _stays) = channel();
        let first = Subscriber::new(notifier);
        let alive = first.subscription();
        assert_eq!(subscribers.join(first), JoinResult::Subscribed);
        for joined in [JoinResult::RefusedFirst { limit: 1 }, JoinResult::Refused] {
            let late = Subscriber::new(other.clone());
            let alive = late.subscription();
            assert_eq!(subscribers.join(late), joined);
            assert_eq!(alive.strong_count(), 0);
        }
        assert_eq!(alive.strong_count(), 1);
        drop(leaves);
        let late = Subscriber::new(other.clone());
        let then = late.subscription();
        assert_eq!(subscribers.join(late), JoinResult::Subscribed);
        assert_eq!((alive.strong_count(), then.strong_count()), (0, 1));
        assert_eq!(
            subscribers.join(Subscriber::new(other)),
            JoinResult::RefusedFirst { limit: 1 }
        );
    }

    #[test]
    fn a_link_delivers_only_while_no_preceding_link_is_up() {
        let others = [(); 2].map(|()| Arc::<LinkStats>::default());
        let [member, older] = &others;
        let subscribers = SubscriberSet::default();
        let successor = subscribers
            .preceded_by(slice::from_ref(member))
            .preceded_by(slice::from_ref(older));
        assert!(!successor.has_active_predecessor());
        for other in &others {
            let mut share = StatsHandle::new(&**other);
            let up = LinkGauges {
                ready: 1,
                ..LinkGauges::default()
            };
            share.set_gauges(up, LinkCounts::default());
            assert!(successor.has_active_predecessor());
            drop(share);
            assert!(!successor.has_active_predecessor());
        }
    }
}
