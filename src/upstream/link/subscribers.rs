//! Delivery of the notifications that a server sends on a link.
//!
//! On a link of one client, everything goes to that client. On a shared link, [`Recipients`] decide: one caller, every
//! subscriber, or none. Laws: a link of one client waits for it and drops nothing; a shared link never waits for a
//! client; every notification that is not delivered is counted.
//!
//! Used by `link::task`.

use bytes::Bytes;

use super::client_queue::LinkClientQueue;
use super::handle::ProgressSink;
use super::notifications::{self, LinkLost, LinkReply, NotificationSender, ReplySender};
use super::stats::{Delivery, LinkStats};
use super::subscriber_set::{JoinResult, Subscriber, SubscriberSet};
use dualgauge_model::jsonrpc::{progress_token, with_progress_token};
use dualgauge_model::pending::{Recipients, RequestError};

/// The recipients of the notifications of one link.
#[derive(Debug)]
pub(super) struct Subscribers<'a> {
    /// The queue to the owner, if the link belongs to one client.
    pub(super) owner: Option<LinkClientQueue<'a>>,
    all: SubscriberSet,
    upstream: &'a str,
    stats: &'a LinkStats,
    /// The maximum nesting depth of messages.
    depth: u16,
}

impl<'a> Subscribers<'a> {
    pub(super) fn new(
        owner: Option<NotificationSender>,
        all: SubscriberSet,
        upstream: &'a str,
        stats: &'a LinkStats,
        depth: u16,
    ) -> Subscribers<'a> {
        Subscribers {
            owner: owner.map(|notifier| LinkClientQueue::new(notifier, stats)),
            all,
            upstream,
            stats,
            depth,
        }
    }

    /// Subscribes a client to notifications for all clients.
    pub(super) fn join(&self, subscriber: Subscriber) {
        match self.all.join(subscriber) {
            JoinResult::Subscribed => {}
            JoinResult::RefusedFirst { limit } => {
                let upstream = self.upstream;
                tracing::warn!(
                    upstream,
                    most = limit,
                    "subscriber limit of the link reached; further clients miss notifications for all clients"
                );
                self.stats.on_delivery(Delivery::TooManySubscribers);
            }
            JoinResult::Refused => self.stats.on_delivery(Delivery::TooManySubscribers),
        }
    }

    /// Delivers a notification: to the client of the link, to the caller it belongs to, or to all subscribers.
    pub(super) fn deliver<'p>(
        &mut self,
        recipients: Recipients,
        message: Bytes,
        caller: Option<&NotificationSender>,
        mut progress_sinks: impl Iterator<Item = &'p ProgressSink>,
    ) {
        if let Some(owner) = &mut self.owner {
            return owner.notify(message);
        }
        match recipients {
            Recipients::Token => {
                let token = progress_token(&message, self.depth);
                let sink = progress_sinks.find(|sink| Some(&sink.token) == token.as_ref());
                let delivery = sink.and_then(|sink| {
                    let message = with_progress_token(&message, &sink.client_token, self.depth)?;
                    Some(self.notify(&sink.to, message))
                });
                self.count(delivery);
            }
            Recipients::Caller(_) => {
                self.count(caller.map(|notifier| self.notify(notifier, message)))
            }
            // A preceding link is up and delivers the same notifications.
            Recipients::All if self.all.has_active_predecessor() => {}
            Recipients::All => {
                let notify =
                    |subscriber: &NotificationSender| self.notify(subscriber, message.clone());
                self.count(self.all.each(notify));
            }
            // The link task delivers these.
            Recipients::Subscriber(_) | Recipients::NoClient => self.count([]),
        }
    }

    /// Delivers a notification of a subscription to its client.
    pub(super) fn notify_one(&self, reader: &NotificationSender, message: Bytes) -> Delivery {
        let delivery = reader.notify(message);
        self.stats.on_delivery(delivery);
        delivery
    }

    /// Returns true if the link belongs to one client.
    pub(super) fn is_per_client(&self) -> bool {
        self.owner.is_some()
    }

    /// Delivers a message that is not JSON-RPC to the owner of the link, which may understand it.
    pub(super) fn deliver_raw(&mut self, message: Bytes) {
        if let Some(owner) = &mut self.owner {
            owner.notify(message);
        }
    }

    /// Sends a reply to a caller, after the notifications that its client was sent before.
    pub(super) fn answer(
        &mut self,
        reply: ReplySender,
        notifier: Option<NotificationSender>,
        result: Result<LinkReply, RequestError>,
    ) {
        match &mut self.owner {
            Some(owner) => owner.answer(reply, notifier, result),
            None => notifications::answer(reply, notifier.as_ref(), result),
        }
    }

    /// Drains the queue of the owner and reports the loss of the link to it.
    pub(super) async fn end(self, loss: Option<LinkLost>) {
        if let Some(owner) = self.owner {
            owner.end(loss).await;
        }
    }

    /// Notifies a subscriber of a shared link. A full queue drops the notification, so that the link is not held up.
    fn notify(&self, subscriber: &NotificationSender, message: Bytes) -> Delivery {
        let delivery = subscriber.notify(message);
        if delivery == Delivery::QueueFull && subscriber.is_first_drop() {
            let upstream = self.upstream;
            tracing::warn!(
                upstream,
                "a client is too slow; notifications to it are dropped"
            );
        }
        delivery
    }

    fn count(&self, deliveries: impl IntoIterator<Item = Delivery>) {
        let mut deliveries = deliveries.into_iter().peekable();
        if deliveries.peek().is_none() {
            self.stats.on_delivery(Delivery::NoSubscriber);
        }
        deliveries.for_each(|delivery| self.stats.on_delivery(delivery));
    }
}
