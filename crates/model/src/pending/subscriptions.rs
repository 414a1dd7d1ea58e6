//! Subscriptions: requests for which the server sends notifications until either end closes them (MCP 2026-07-28,
//! "Subscriptions").
//!
//! They take no slot of the calls and have no deadline once the server has acknowledged them. Laws: the notifications
//! of a subscription reach only its client, with the id that the client chose; a subscription ends with its link;
//! their number is bounded.
//!
//! Used by `descriptors` and `pending::link_machine`.

use std::time::Duration;

use bytes::Bytes;

use super::link_machine::LinkMachine;
use super::unattributed::CancelNotice;
use super::{LinkOutput, MessageOrigin, Recipients, Request, RequestError, SUBSCRIPTIONS, Ticket};
use crate::correlator::{Correlator, PendingCall};
use crate::jsonrpc::{RequestId, cancelled_id, subscription_of, with_client_id};
use crate::plan::CANCELLED;

/// A subscription that is written and has neither a response nor ended.
#[derive(Debug)]
struct Subscription {
    ticket: Ticket,
    /// The id that the client chose.
    client: RequestId,
    /// The time by which the server must acknowledge it; `None` once it has.
    until: Option<Duration>,
}

impl PendingCall for Subscription {
    fn ends(&self) -> Option<Duration> {
        self.until
    }
}

/// The subscriptions of a link, by their ids on it.
#[derive(Debug)]
pub(super) struct Subscriptions(Correlator<u64, Subscription>);

impl Default for Subscriptions {
    fn default() -> Subscriptions {
        Subscriptions(Correlator::new(SUBSCRIPTIONS))
    }
}

impl Subscriptions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has_capacity(&self) -> bool {
        self.0.has_capacity()
    }

    /// Returns true if an error without an id may be the response to one of them.
    pub(super) fn may_fail(&self) -> bool {
        self.0.alarm().is_some()
    }

    pub(super) fn begin(&mut self, id: u64, request: &Request, client: RequestId) {
        let subscription = Subscription {
            ticket: request.ticket,
            client,
            until: Some(request.deadline),
        };
        self.0.begin(id, subscription);
    }

    /// Returns the earliest time by which a subscription must be acknowledged.
    pub(super) fn alarm(&self) -> Option<Duration> {
        self.0.alarm()
    }

    /// Returns the ticket of the subscription with this id.
    pub(super) fn ticket(&self, id: u64) -> Option<Ticket> {
        self.0.get(id).map(|one| one.ticket)
    }
}

impl LinkMachine {
    /// Ends the subscription that a client has closed and notifies the server, even without a handshake. Returns false
    /// if `ticket` is no subscription.
    pub(super) fn unsubscribe(&mut self, ticket: Ticket) -> bool {
        let is_own = |one: &Subscription| (one.ticket == ticket).then_some(());
        let Some((id, ..)) = self.subscriptions.0.end_first(is_own) else {
            return false;
        };
        self.abandon(id, CancelNotice::Send);
        true
    }

    /// Ends all subscriptions normally, because no more requests go over this link.
    pub(super) fn end_subscriptions(&mut self) {
        for (id, one) in self.subscriptions.0.end_all() {
            self.out.push_back(LinkOutput::Ended(one.ticket));
            self.abandon(id, CancelNotice::Send);
        }
    }

    /// Fails all subscriptions, because they ended with the link.
    pub(super) fn cut_subscriptions(&mut self) {
        for (_, one) in self.subscriptions.0.end_all() {
            self.fail(one.ticket, RequestError::Cut);
        }
    }

    pub(super) fn expire_subscriptions(&mut self, now: Duration) {
        for (id, one) in self.subscriptions.0.end_expired(now) {
            self.fail(one.ticket, RequestError::Late);
            self.abandon(id, CancelNotice::Send);
        }
    }

    /// Delivers the response to a subscription, which ends it. Returns false if `id` is no subscription.
    pub(super) fn subscription_answered(&mut self, id: u64, message: &Bytes) -> bool {
        let Some(one) = self.subscriptions.0.end(id) else {
            return false;
        };
        self.out.push_back(LinkOutput::Answer {
            ticket: one.ticket,
            id,
            message: with_client_id(message, &one.client, self.settings.depth),
        });
        true
    }

    /// Ends a subscription that gets no response. An acknowledged one ends normally with its stream, since servers may
    /// end subscriptions that way.
    pub(super) fn subscription_failed(&mut self, id: u64, why: RequestError) {
        let Some(one) = self.subscriptions.0.end(id) else {
            return;
        };
        match (why, one.until) {
            (RequestError::Cut, None) => self.out.push_back(LinkOutput::Ended(one.ticket)),
            (why, _) => self.fail(one.ticket, why),
        }
    }

    /// Handles a notification that belongs to a subscription, or that ends one. Returns any other unchanged.
    pub(super) fn route_to_subscription(
        &mut self,
        method: &str,
        message: Bytes,
        origin: MessageOrigin,
    ) -> Option<(Bytes, Option<Recipients>)> {
        let depth = self.settings.depth;
        if method == CANCELLED && !self.subscriptions.is_empty() {
            let id = cancelled_id(&message, depth)?;
            let id = std::str::from_utf8(&id).ok().and_then(|id| id.parse().ok());
            return match id.and_then(|id: u64| self.subscriptions.0.end(id)) {
                Some(one) => {
                    self.out.push_back(LinkOutput::Ended(one.ticket));
                    None
                }
                None => Some((message, None)),
            };
        }
        let named = subscription_of(&message, depth);
        let stream = match origin {
            MessageOrigin::Subscription(id) => Some(id),
            MessageOrigin::Link | MessageOrigin::Call(_) | MessageOrigin::Abandoned => None,
        };
        let Some(id) = named.or(stream) else {
            return Some((message, None));
        };
        let Some(one) = self.subscriptions.0.get_mut(id) else {
            return Some((message, Some(Recipients::NoClient)));
        };
        one.until = None;
        let message = with_client_id(&message, &one.client, depth);
        Some((message, Some(Recipients::Caller(one.ticket))))
    }
}
