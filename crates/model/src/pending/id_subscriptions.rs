//! Subscriptions that the server knows by an id of its own: a call opens one, notifications carry the id, and another
//! call ends it ([`SubscriptionRule`]).
//!
//! The call takes a slot until its response; the subscription takes none. Laws: a notification reaches the client whose
//! call opened its subscription, and no other; notifications that come before the response are delivered after it; the
//! server is told of each subscription that no client reads any more, also if its client leaves before the response; a
//! subscription ends with its link; all numbers are bounded.
//!
//! Used by `pending`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::link_machine::LinkMachine;
use super::subscriptions::SUBSCRIPTIONS;
use super::unattributed::UnattributedReply;
use super::{LinkOutput, Recipients, Ticket};
use crate::jsonrpc::{self, ResponseReply, parse_response};
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
type Key = (String, SubscriptionId);

/// A subscription that the server has opened.
#[derive(Debug)]
struct OpenSubscription {
    ticket: Ticket,
    rule: Arc<SubscriptionRule>,
}

/// A subscription whose response has not come yet.
#[derive(Debug)]
struct Opening {
    rule: Arc<SubscriptionRule>,
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
    open: HashMap<Key, OpenSubscription>,
    keys: HashMap<Ticket, Key>,
    /// The rules of the open subscriptions, and the number of subscriptions of each.
    rules: Vec<(Arc<SubscriptionRule>, usize)>,
    /// By the ids of their calls.
    opening: BTreeMap<u64, Opening>,
    early: VecDeque<EarlyNotification>,
    early_bytes: usize,
}

impl IdSubscriptions {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn has_capacity(&self) -> bool {
        self.open.len() < SUBSCRIPTIONS
    }

    /// Adds a call that opens a subscription.
    pub(super) fn begin(&mut self, id: u64, rule: Arc<SubscriptionRule>) {
        let is_abandoned = false;
        self.opening.insert(id, Opening { rule, is_abandoned });
    }

    /// Records that the client of a call has left. Only so many such calls are kept.
    pub(super) fn abandon(&mut self, id: u64) {
        let Some(opening) = self.opening.get_mut(&id) else {
            return;
        };
        opening.is_abandoned = true;
        let abandoned = self.opening.iter().filter(|(_, one)| one.is_abandoned);
        let abandoned: Vec<u64> = abandoned.map(|(id, _)| *id).collect();
        if let [first, ..] = abandoned[..]
            && abandoned.len() > SUBSCRIPTIONS
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
    fn forget_early(&mut self) {
        if self.opening.is_empty() {
            self.early.clear();
            self.early_bytes = 0;
        }
    }

    fn add(&mut self, key: Key, ticket: Ticket, rule: Arc<SubscriptionRule>) {
        match self.rules.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, count)) => *count += 1,
            None => self.rules.push((rule.clone(), 1)),
        }
        self.keys.insert(ticket, key.clone());
        self.open.insert(key, OpenSubscription { ticket, rule });
    }

    fn remove(&mut self, ticket: Ticket) -> Option<(SubscriptionId, Arc<SubscriptionRule>)> {
        let key = self.keys.remove(&ticket)?;
        let OpenSubscription { rule, .. } = self.open.remove(&key)?;
        if let Some((_, count)) = self.rules.iter_mut().find(|(known, _)| *known == rule) {
            *count -= 1;
        }
        self.rules.retain(|(_, count)| *count > 0);
        Some((key.1, rule))
    }

    /// Returns the key of the subscription that a notification may belong to.
    fn key(&self, method: &str, message: &Bytes, depth: u16) -> Option<Key> {
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
    fn keep(&mut self, key: Key, message: Bytes) {
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
    fn take_early(&mut self, key: &Key) -> Vec<Bytes> {
        let (own, others): (VecDeque<_>, _) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|early| early.key == *key);
        self.early = others;
        let own: Vec<Bytes> = own.into_iter().map(|early| early.message).collect();
        self.early_bytes -= own.iter().map(Bytes::len).sum::<usize>();
        own
    }

    fn clear(&mut self) -> Vec<Ticket> {
        let open = std::mem::take(self).keys;
        let mut tickets: Vec<Ticket> = open.into_keys().collect();
        tickets.sort_unstable();
        tickets
    }
}

impl LinkMachine {
    /// Returns the number of open subscriptions with ids of the server.
    #[must_use]
    pub fn subscribed(&self) -> usize {
        self.id_subscriptions.len()
    }

    /// Handles the response to a call that opens a subscription.
    pub(super) fn subscribed_by(
        &mut self,
        id: u64,
        ticket: Ticket,
        rule: Arc<SubscriptionRule>,
        message: Bytes,
    ) {
        self.id_subscriptions.opening.remove(&id);
        let key = self.opened_key(&rule, &message);
        let is_new = |key: &Key| !self.id_subscriptions.open.contains_key(key);
        let Some(key) = key.map(|key| key.filter(is_new)) else {
            // An error.
            self.out.push_back(LinkOutput::Answer {
                ticket,
                id,
                message,
            });
            return self.id_subscriptions.forget_early();
        };
        let Some(key) = key else {
            self.counts.subscriptions.unusable += 1;
            self.out.push_back(LinkOutput::Answer {
                ticket,
                id,
                message,
            });
            return self.id_subscriptions.forget_early();
        };
        self.counts.subscriptions.opened += 1;
        let early = self.id_subscriptions.take_early(&key);
        let method = key.0.clone();
        self.id_subscriptions.add(key, ticket, rule);
        self.out.push_back(LinkOutput::Subscribed {
            ticket,
            id,
            message,
        });
        for message in early {
            self.out.push_back(LinkOutput::Notified {
                method: method.clone(),
                message,
                recipients: Recipients::Subscriber(ticket),
            });
        }
        self.id_subscriptions.forget_early();
    }

    /// Returns the key in a response: `None` for an error, `Some(None)` for a result without an id.
    fn opened_key(&self, rule: &SubscriptionRule, message: &Bytes) -> Option<Option<Key>> {
        let response = parse_response(message, self.settings.depth).ok()?;
        match response.reply {
            ResponseReply::Result(result) => {
                let id = rule.id_of_result(&result);
                Some(id.map(|id| (rule.method.clone(), id)))
            }
            ResponseReply::Error(_) => None,
        }
    }

    /// Ends the subscription that a response opened for a client that has left. Ignores other responses.
    pub(super) fn unwanted_response(&mut self, id: u64, message: &Bytes) {
        let Some(Opening { rule, .. }) = self.id_subscriptions.opening.remove(&id) else {
            return;
        };
        if let Some(Some(key)) = self.opened_key(&rule, message)
            && !self.id_subscriptions.open.contains_key(&key)
        {
            self.id_subscriptions.take_early(&key);
            self.send_unsubscribe(&key.1, &rule);
        }
        self.id_subscriptions.forget_early();
    }

    /// Ends the subscription of a client that has left, or is too slow. Returns false if `ticket` has none.
    pub(super) fn end_id_subscription(&mut self, ticket: Ticket) -> bool {
        let Some((id, rule)) = self.id_subscriptions.remove(ticket) else {
            return false;
        };
        self.send_unsubscribe(&id, &rule);
        true
    }

    /// Ends the subscription of a client that is too slow.
    pub(super) fn end_slow(&mut self, ticket: Ticket) {
        if self.end_id_subscription(ticket) {
            self.counts.subscriptions.slow += 1;
        }
    }

    fn send_unsubscribe(&mut self, id: &SubscriptionId, rule: &SubscriptionRule) {
        let call = self.next_id();
        self.unattributed.add(call, UnattributedReply::Own);
        let params = rule.unsubscribe_params(id);
        let message = jsonrpc::request(call, &rule.unsubscribe, params, &[]).into_bytes();
        // Bounded by the number of subscriptions.
        self.controls.push_back(message);
    }

    /// Ends all subscriptions, because no more requests go over this link.
    pub(super) fn end_id_subscriptions(&mut self) {
        let tickets: Vec<Ticket> = self.id_subscriptions.keys.keys().copied().collect();
        for ticket in tickets {
            self.end_id_subscription(ticket);
            self.out.push_back(LinkOutput::SubscriptionLost(ticket));
        }
    }

    /// Ends all subscriptions with the link.
    pub(super) fn cut_id_subscriptions(&mut self) {
        for ticket in self.id_subscriptions.clear() {
            self.counts.subscriptions.lost += 1;
            self.out.push_back(LinkOutput::SubscriptionLost(ticket));
        }
    }

    /// Delivers a notification to the client of its subscription. Returns it if it belongs to none.
    pub(super) fn route_by_id(
        &mut self,
        method: String,
        message: Bytes,
    ) -> Option<(String, Bytes)> {
        let key = self
            .id_subscriptions
            .key(&method, &message, self.settings.depth);
        let Some(key) = key else {
            return Some((method, message));
        };
        if let Some(open) = self.id_subscriptions.open.get(&key) {
            self.out.push_back(LinkOutput::Notified {
                method,
                message,
                recipients: Recipients::Subscriber(open.ticket),
            });
            return None;
        }
        if self.id_subscriptions.opening.is_empty() {
            return Some((method, message));
        }
        self.id_subscriptions.keep(key, message);
        None
    }
}
