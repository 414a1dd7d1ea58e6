//! Subscriptions that the server knows by an id of its own: a call opens one, notifications carry the id, and another
//! call ends it ([`SubscriptionRule`]).
//!
//! The call takes a slot until its response; the subscription takes none. Laws: a notification reaches the client whose
//! call opened its subscription, and no other; notifications that come before the response are delivered after it, up to a
//! limit; the server is told of each subscription that no client reads any more, also if its client leaves before the response; a
//! subscription ends with its link; all numbers are bounded.
//!
//! Used by `pending`.

use std::sync::Arc;

use bytes::Bytes;

use super::id_subscription_table::{Key, Opening};
use super::link_machine::LinkMachine;
use super::unattributed::UnattributedReply;
use super::{LinkOutput, Recipients, Ticket};
use crate::jsonrpc::{self, ResponseReply, parse_response};
use crate::subscription::{SubscriptionId, SubscriptionRule};

impl LinkMachine {
    /// Returns the number of open subscriptions with ids of the server.
    #[must_use]
    pub fn open_id_subscriptions(&self) -> usize {
        self.id_subscriptions.len()
    }

    /// Handles the response to a call that opens a subscription.
    pub(super) fn id_subscription_answered(
        &mut self,
        id: u64,
        ticket: Ticket,
        rule: Arc<SubscriptionRule>,
        message: Bytes,
    ) {
        self.id_subscriptions.opening.remove(&id);
        let in_response = self.response_key(&rule, &message);
        let is_result = in_response.is_some();
        let is_new = |key: &Key| !self.id_subscriptions.open.contains_key(key);
        match in_response.flatten().filter(is_new) {
            Some(key) => {
                self.counts.subscriptions.opened += 1;
                let early = self.id_subscriptions.take_early(&key);
                let method = key.0.clone();
                self.id_subscriptions.add(key, ticket, rule);
                self.out.push_back(LinkOutput::Subscribed {
                    ticket,
                    id,
                    message,
                });
                self.out
                    .extend(early.into_iter().map(|message| LinkOutput::Notified {
                        method: method.clone(),
                        message,
                        recipients: Recipients::Subscriber(ticket),
                    }));
            }
            None => {
                self.counts.subscriptions.unusable += u64::from(is_result);
                self.out.push_back(LinkOutput::Answer {
                    ticket,
                    id,
                    message,
                });
            }
        }
        self.id_subscriptions.forget_early();
    }

    /// Returns the key in a response: `None` for an error, `Some(None)` for a result without an id.
    fn response_key(&self, rule: &SubscriptionRule, message: &Bytes) -> Option<Option<Key>> {
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
    pub(super) fn end_abandoned_subscription(&mut self, id: u64, message: &Bytes) {
        let Some(Opening { rule, .. }) = self.id_subscriptions.opening.remove(&id) else {
            return;
        };
        if let Some(Some(key)) = self.response_key(&rule, message)
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
            self.counts.subscriptions.lost += 1;
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
