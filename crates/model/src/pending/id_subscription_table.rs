//! The table of the subscriptions that a server knows by ids of its own, and of the notifications that come before them.
//!
//! The messages are in [`super::id_subscriptions`]. Laws: an id is that of one client at most; all numbers are bounded.
//!
//! Used by `pending`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::{SUBSCRIPTIONS, Ticket};
use crate::subscription::{SubscriptionId, SubscriptionRule};
use dualgauge_patterns::json::Json;

/// The maximum number of notifications that wait for the response which opens their subscription.
const MOST_EARLY: usize = 1024;
/// The maximum size of these notifications in bytes.
const EARLY_BYTES: usize = 4 * 1024 * 1024;

/// Counters of the subscriptions of a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubscriptionCounts {
    /// Subscriptions that the server opened for a client.
    pub opened: u64,
    /// Subscriptions whose clients left.
    pub closed: u64,
    /// Subscriptions that ended because their client was too slow.
    pub slow: u64,
    /// Subscriptions that ended with the link.
    pub lost: u64,
    /// Subscriptions whose ids were missing, or in use already.
    pub unusable: u64,
}

/// The method of a subscription's notifications, and its id.
pub(super) type Key = (String, SubscriptionId);

/// A subscription that the server has opened.
#[derive(Debug)]
pub(super) struct OpenSubscription {
    pub(super) ticket: Ticket,
    rule: Arc<SubscriptionRule>,
}

/// A subscription whose response has not come yet.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) rule: Arc<SubscriptionRule>,
    /// True if its client has left.
    is_abandoned: bool,
}

/// A notification that came while subscriptions were opening.
#[derive(Debug)]
struct EarlyNotification {
    key: Key,
    message: Bytes,
}

/// The subscriptions of a link.
#[derive(Debug, Default)]
pub(super) struct IdSubscriptions {
    pub(super) open: HashMap<Key, OpenSubscription>,
    pub(super) keys: HashMap<Ticket, Key>,
    /// The rules of the open subscriptions, and the number of subscriptions of each.
    rules: Vec<(Arc<SubscriptionRule>, usize)>,
    /// By the ids of their calls.
    pub(super) opening: BTreeMap<u64, Opening>,
    early: VecDeque<EarlyNotification>,
    early_bytes: usize,
}

impl IdSubscriptions {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns true if another client may open a subscription.
    pub(super) fn has_capacity(&self) -> bool {
        let opening = self.opening.values().filter(|one| !one.is_abandoned);
        self.open.len() + opening.count() < SUBSCRIPTIONS
    }

    /// Adds a call that opens a subscription.
    pub(super) fn begin(&mut self, id: u64, rule: Arc<SubscriptionRule>) {
        let is_abandoned = false;
        self.opening.insert(id, Opening { rule, is_abandoned });
    }

    /// Records that the client of a call has left. At most [`SUBSCRIPTIONS`] such calls are kept; the oldest is
    /// forgotten.
    pub(super) fn abandon(&mut self, id: u64) {
        let Some(opening) = self.opening.get_mut(&id) else {
            return;
        };
        opening.is_abandoned = true;
        let mut abandoned = self.opening.iter().filter(|(_, one)| one.is_abandoned);
        let first = abandoned.next().map(|(id, _)| *id);
        if let Some(first) = first
            && abandoned.count() >= SUBSCRIPTIONS
        {
            self.opening.remove(&first);
        }
    }

    /// Forgets the calls that got no response. `is_in_flight` tells which still may.
    pub(super) fn forget_failed(&mut self, is_in_flight: impl Fn(u64) -> bool) {
        if self.opening.is_empty() {
            return;
        }
        self.opening
            .retain(|id, one| one.is_abandoned || is_in_flight(*id));
        self.forget_early();
    }

    /// Forgets notifications that no response can claim any more.
    pub(super) fn forget_early(&mut self) {
        if self.opening.is_empty() {
            self.early.clear();
            self.early_bytes = 0;
        }
    }

    pub(super) fn add(&mut self, key: Key, ticket: Ticket, rule: Arc<SubscriptionRule>) {
        match self.rules.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, count)) => *count += 1,
            None => self.rules.push((rule.clone(), 1)),
        }
        self.keys.insert(ticket, key.clone());
        self.open.insert(key, OpenSubscription { ticket, rule });
    }

    pub(super) fn remove(
        &mut self,
        ticket: Ticket,
    ) -> Option<(SubscriptionId, Arc<SubscriptionRule>)> {
        let key = self.keys.remove(&ticket)?;
        let OpenSubscription { rule, .. } = self.open.remove(&key)?;
        if let Some((_, count)) = self.rules.iter_mut().find(|(known, _)| *known == rule) {
            *count -= 1;
        }
        self.rules.retain(|(_, count)| *count > 0);
        Some((key.1, rule))
    }

    /// Returns the key of the subscription that a notification may belong to.
    pub(super) fn key(&self, method: &str, message: &Bytes, depth: u16) -> Option<Key> {
        let open = self.rules.iter().map(|(rule, _)| rule);
        let opening = self.opening.values().map(|one| &one.rule);
        let mut rules = open.chain(opening).filter(|rule| rule.method == method);
        let mut last = None;
        let first = rules.next()?;
        let params = Json::parse(message.clone(), depth).ok()?.member("params")?;
        for rule in std::iter::once(first).chain(rules) {
            let Some(id) = rule.id_of_params(&params) else {
                continue;
            };
            let key = (method.to_owned(), id);
            if self.open.contains_key(&key) {
                return Some(key);
            }
            last = Some(key);
        }
        last
    }

    /// Keeps a notification for a response that may come. The oldest are dropped.
    pub(super) fn keep(&mut self, key: Key, message: Bytes) {
        self.early_bytes += message.len();
        self.early.push_back(EarlyNotification { key, message });
        while self.early.len() > MOST_EARLY || self.early_bytes > EARLY_BYTES {
            let Some(dropped) = self.early.pop_front() else {
                return;
            };
            self.early_bytes -= dropped.message.len();
        }
    }

    /// Takes the notifications of a subscription that came before its response.
    pub(super) fn take_early(&mut self, key: &Key) -> Vec<Bytes> {
        let (own, others): (VecDeque<_>, _) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|early| early.key == *key);
        self.early = others;
        let own: Vec<Bytes> = own.into_iter().map(|early| early.message).collect();
        self.early_bytes -= own.iter().map(Bytes::len).sum::<usize>();
        own
    }

    pub(super) fn clear(&mut self) -> Vec<Ticket> {
        let open = std::mem::take(self).keys;
        let mut tickets: Vec<Ticket> = open.into_keys().collect();
        tickets.sort_unstable();
        tickets
    }
}
