//! The outgoing queue of a link of one client: notifications and replies, in order.
//!
//! Nothing is dropped for a slow client: messages that exceed its channel wait here, and once as much again waits, the
//! server is no longer read. Law: everything is sent in order, unless the client is gone or takes nothing for too long.
//!
//! Used by `link::subscribers` and `link::task`.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::notifications::{
    self, LinkLost, LinkReply, NotificationSender, PER_CLIENT, QueuePermit, ReplySender, units,
};
use super::stats::{Delivery, LinkStats};
use crate::telemetry::clock;
use crate::upstream::client_queue::{ClientChannel, ClientQueue};
use dualgauge_model::pending::RequestError;

/// The longest time in which a client may take nothing from its queue.
const PATIENCE: Duration = Duration::from_secs(30);

/// The messages that wait for the client.
#[derive(Debug)]
pub(super) struct LinkClientQueue<'a>(ClientQueue<LinkChannel<'a>>);

/// The notification channel of the client, and the load of the queue before it.
#[derive(Debug)]
struct LinkChannel<'a> {
    notifier: NotificationSender,
    /// The size of the queued notifications, in units.
    units: usize,
    /// The time at which a message last left the queue.
    since: Instant,
    stats: &'a LinkStats,
}

/// A reply to a caller, with the notification channel of its client.
#[derive(Debug)]
struct QueuedReply {
    reply: ReplySender,
    notifier: Option<NotificationSender>,
    result: Result<LinkReply, RequestError>,
}

impl ClientChannel for LinkChannel<'_> {
    type Message = Bytes;
    type Permit = QueuePermit;
    type Reply = QueuedReply;

    fn try_reserve(&self, text: &Bytes) -> Option<QueuePermit> {
        self.notifier.permit(text)
    }

    async fn reserve(&self, text: &Bytes) -> Option<QueuePermit> {
        self.notifier.reserve(text).await
    }

    fn send(&mut self, permit: QueuePermit, text: Bytes) {
        self.since = clock::now();
        self.units -= units(&text, PER_CLIENT);
        self.stats
            .on_delivery(self.notifier.notify_with(permit, text));
    }

    fn discard(&mut self, text: Bytes) {
        self.units -= units(&text, PER_CLIENT);
        self.stats.on_delivery(Delivery::QueueFull);
    }

    fn reply(&mut self, queued: QueuedReply) {
        notifications::answer(queued.reply, queued.notifier.as_ref(), queued.result);
    }
}

impl<'a> LinkClientQueue<'a> {
    pub(super) fn new(notifier: NotificationSender, stats: &'a LinkStats) -> LinkClientQueue<'a> {
        LinkClientQueue(ClientQueue::new(LinkChannel {
            notifier,
            units: 0,
            since: clock::now(),
            stats,
        }))
    }

    /// Returns true if the server must not be read for now. Below this limit its pings are still seen.
    pub(super) fn is_full(&self) -> bool {
        self.0.channel().units >= PER_CLIENT
    }

    /// Returns the time by which the client must take a message, if any waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.0.is_empty()).then_some(self.0.channel().since + PATIENCE)
    }

    /// Marks the client as one that has lost its link, so that it gets no other.
    pub(super) fn mark_lost(&self) {
        self.0.channel().notifier.mark_lost();
    }

    /// Queues a notification.
    pub(super) fn notify(&mut self, text: Bytes) {
        self.start_patience();
        self.0.channel_mut().units += units(&text, PER_CLIENT);
        self.0.notify(text);
    }

    /// Queues a reply to a caller.
    pub(super) fn answer(
        &mut self,
        reply: ReplySender,
        notifier: Option<NotificationSender>,
        result: Result<LinkReply, RequestError>,
    ) {
        self.start_patience();
        self.0.answer(QueuedReply {
            reply,
            notifier,
            result,
        });
    }

    /// Measures the client's patience from now on if nothing waited so far.
    fn start_patience(&mut self) {
        if self.0.is_empty() {
            self.0.channel_mut().since = clock::now();
        }
    }

    /// Waits for capacity for the first queued notification and sends it; cancel-safe. Never completes while nothing
    /// waits.
    pub(super) async fn send_next(&mut self) {
        self.0.send_next().await;
    }

    /// Drops the queued notifications and counts them; replies are still sent.
    pub(super) fn drop_notifications(&mut self) {
        self.0.drop_messages();
    }

    /// Sends what the client takes in time, then reports the loss of the link, if the client is to get no other.
    pub(super) async fn end(mut self, loss: Option<LinkLost>) {
        while let Some(until) = self.deadline() {
            let remaining = until.saturating_duration_since(clock::now());
            if timeout(remaining, self.send_next()).await.is_err() {
                self.drop_notifications();
            }
        }
        if let Some(loss) = loss {
            self.0.channel().notifier.report_loss(loss);
        }
    }
}

#[cfg(test)]
mod tests;
