//! The outgoing queue of a link of one client: notifications and replies, in order.
//!
//! Nothing is dropped for a slow client: messages that exceed its channel wait here, and once as much again waits, the
//! server is no longer read. Law: everything is sent in order, unless the client is gone or takes nothing for too long.
//!
//! Used by `link::subscribers` and `link::task`.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::notifications::{
    self, LinkLost, LinkReply, NotificationSender, PER_CLIENT, QueuePermit, ReplySender, units,
};
use super::stats::{Delivery, LinkStats};
use crate::telemetry::clock;
use dualgauge_model::pending::RequestError;

/// The longest time in which a client may take nothing from its queue.
const PATIENCE: Duration = Duration::from_secs(30);

/// The messages that wait for the client.
#[derive(Debug)]
pub(super) struct LinkClientQueue<'a> {
    notifier: NotificationSender,
    waiting: VecDeque<QueuedItem>,
    /// The size of the queued notifications, in units.
    units: usize,
    /// The time at which a message last left the queue.
    since: Instant,
    stats: &'a LinkStats,
}

#[derive(Debug)]
enum QueuedItem {
    Notification(Bytes),
    Answer(
        ReplySender,
        Option<NotificationSender>,
        Result<LinkReply, RequestError>,
    ),
}

impl<'a> LinkClientQueue<'a> {
    pub(super) fn new(notifier: NotificationSender, stats: &'a LinkStats) -> LinkClientQueue<'a> {
        LinkClientQueue {
            notifier,
            waiting: VecDeque::new(),
            units: 0,
            since: clock::now(),
            stats,
        }
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if the server must not be read for now. Below this limit its pings are still seen.
    pub(super) fn is_full(&self) -> bool {
        self.units >= PER_CLIENT
    }

    /// Returns the time by which the client must take a message, if any waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.since + PATIENCE)
    }

    /// Marks the client as one that has lost its link, so that it gets no other.
    pub(super) fn mark_lost(&self) {
        self.notifier.mark_lost();
    }

    /// Queues a notification.
    pub(super) fn notify(&mut self, text: Bytes) {
        self.units += units(&text, PER_CLIENT);
        self.push(QueuedItem::Notification(text));
    }

    /// Queues a reply to a caller.
    pub(super) fn answer(
        &mut self,
        (reply, notifier): (ReplySender, Option<NotificationSender>),
        result: Result<LinkReply, RequestError>,
    ) {
        self.push(QueuedItem::Answer(reply, notifier, result));
    }

    fn push(&mut self, item: QueuedItem) {
        if self.is_empty() {
            self.since = clock::now();
        }
        self.waiting.push_back(item);
        self.advance();
    }

    /// Sends everything that the client's channel has capacity for.
    fn advance(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            match first {
                QueuedItem::Notification(text) => match self.notifier.permit(&text) {
                    Some(permit) => self.send(permit, text),
                    None => return self.waiting.push_front(QueuedItem::Notification(text)),
                },
                QueuedItem::Answer(reply, notifier, result) => {
                    notifications::answer(reply, notifier.as_ref(), result)
                }
            }
        }
    }

    fn send(&mut self, permit: QueuePermit, text: Bytes) {
        self.since = clock::now();
        self.units -= units(&text, PER_CLIENT);
        self.stats
            .on_delivery(self.notifier.notify_with(permit, text));
    }

    /// Waits for capacity for the first queued notification and sends it; cancel-safe. Never completes while nothing
    /// waits.
    pub(super) async fn send_next(&mut self) {
        if let Some(QueuedItem::Notification(text)) = self.waiting.front()
            && let Some(permit) = self.notifier.reserve(text).await
        {
            if let Some(QueuedItem::Notification(text)) = self.waiting.pop_front() {
                self.send(permit, text);
            }
            return self.advance();
        }
        // Replies leave the queue at once, so only a notification can wait here; its semaphore is never closed.
        pending().await
    }

    /// Drops the queued notifications and counts them; replies are still sent.
    pub(super) fn drop_notifications(&mut self) {
        self.units = 0;
        for item in std::mem::take(&mut self.waiting) {
            match item {
                QueuedItem::Notification(_) => self.stats.on_delivery(Delivery::QueueFull),
                QueuedItem::Answer(reply, notifier, result) => {
                    notifications::answer(reply, notifier.as_ref(), result)
                }
            }
        }
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
            self.notifier.report_loss(loss);
        }
    }
}

#[cfg(test)]
mod tests;
