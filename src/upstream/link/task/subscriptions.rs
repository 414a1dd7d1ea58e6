//! Clients that read subscriptions with ids of the server, and clients that have left. Used by `link::task`.

use bytes::Bytes;

use super::LinkTask;
use crate::telemetry::clock;
use crate::upstream::link::notifications::{LinkLost, LinkReply, LostBy};
use crate::upstream::link::stats::Delivery;
use crate::upstream::link::transport::Transport;
use dualgauge_model::pending::{LinkInput, Ticket};

impl<T: Transport> LinkTask<'_, T> {
    /// Replies to the caller whose request has opened a subscription, and delivers its notifications from now on.
    pub(super) fn on_subscribed(&mut self, ticket: Ticket, id: u64, message: Bytes) {
        let caller = self.callers.get(ticket);
        if let Some(notifier) = caller.and_then(|caller| caller.notifier.clone()) {
            self.readers.insert(ticket, notifier);
        }
        self.reply(ticket, Ok(LinkReply::Subscribed(id, message)));
        if !self.takes_requests {
            // The call was in flight when the link was told to end.
            self.take(LinkInput::Unsubscribe);
        }
    }

    /// Tells a client that its subscription ended with the link.
    pub(super) fn on_subscription_lost(&mut self, ticket: Ticket) {
        let through = match self.takes_requests {
            true => LostBy::Server,
            false => LostBy::Plan,
        };
        self.end_reader(ticket, through);
    }

    /// Delivers a notification of a subscription. A client that is too slow loses its subscription, not a part of it.
    pub(super) fn notify_reader(&mut self, ticket: Ticket, message: Bytes) {
        let Some(reader) = self.readers.get(&ticket) else {
            return;
        };
        match self.subscribers.notify_one(reader, message) {
            Delivery::Delivered => {}
            Delivery::QueueFull => {
                let upstream = self.name;
                tracing::warn!(upstream, "a client is too slow; its subscription ends");
                self.end_reader(ticket, LostBy::Client);
                self.take(LinkInput::Slow(ticket));
            }
            Delivery::NoSubscriber | Delivery::TooManySubscribers => self.forget_readers(),
        }
    }

    /// Ends the subscriptions of clients that have left.
    fn forget_readers(&mut self) {
        let gone = self.readers.extract_if(.., |_, reader| reader.is_closed());
        let gone: Vec<Ticket> = gone.map(|(ticket, _)| ticket).collect();
        for ticket in gone {
            self.last_used = clock::now();
            self.take(LinkInput::Cancel(ticket));
        }
    }

    /// Tells the server of callers and readers that have left.
    pub(super) fn forget_abandoned(&mut self) {
        self.forget_readers();
        for (ticket, caller) in self.callers.take_gone() {
            self.last_used = clock::now();
            let signal = caller.cancel_signal;
            let by_client = signal.is_some_and(|signal| signal.is_cancelled());
            self.take(match by_client {
                true => LinkInput::ClientCancel(ticket),
                false => LinkInput::Cancel(ticket),
            });
        }
    }

    fn end_reader(&mut self, ticket: Ticket, through: LostBy) {
        if let Some(reader) = self.readers.remove(&ticket) {
            reader.report_loss(LinkLost {
                upstream: self.name.to_owned(),
                through,
            });
        }
    }
}
