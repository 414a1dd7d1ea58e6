//! The outgoing queue of a link of one client: notifications and replies, in order.
//!
//! Nothing is dropped for a slow client: messages that exceed its channel wait here, and once as much again waits, the
//! server is no longer read. Law: everything is sent in order, unless the client is gone or takes nothing for too long.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, timeout};

use super::notifications::{
    self, LinkLost, NotificationSender, OWN, QueuePermit, ReplySender, units,
};
use super::stats::Delivery;
use super::{LinkReply, LinkStats};
use crate::domain::pending::RequestError;
use crate::telemetry::clock;

/// The longest time in which a client may take nothing from its queue.
const PATIENCE: Duration = Duration::from_secs(30);

/// The messages that wait for the client.
#[derive(Debug)]
pub(super) struct LinkClientQueue<'a> {
    ear: NotificationSender,
    waiting: VecDeque<QueuedItem>,
    /// The size of the queued notifications, in units.
    units: usize,
    /// The time at which a message last left the queue.
    since: Instant,
    standing: &'a LinkStats,
}

#[derive(Debug)]
enum QueuedItem {
    Told(Bytes),
    Answer(
        ReplySender,
        Option<NotificationSender>,
        Result<LinkReply, RequestError>,
    ),
}

impl<'a> LinkClientQueue<'a> {
    pub(super) fn new(ear: NotificationSender, standing: &'a LinkStats) -> LinkClientQueue<'a> {
        LinkClientQueue {
            ear,
            waiting: VecDeque::new(),
            units: 0,
            since: clock::now(),
            standing,
        }
    }

    /// Returns true if nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns true if the server must not be read for now. Below this limit its pings are still seen.
    pub(super) fn is_full(&self) -> bool {
        self.units >= OWN
    }

    /// Returns the time by which the client must take a message, if any waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.since + PATIENCE)
    }

    /// Marks the client as one that has lost its link, so that it gets no other.
    pub(super) fn lose(&self) {
        self.ear.lose();
    }

    /// Queues a notification.
    pub(super) fn notify(&mut self, text: Bytes) {
        self.units += units(&text, OWN);
        self.push(QueuedItem::Told(text));
    }

    /// Queues a reply to a caller.
    pub(super) fn answer(
        &mut self,
        (reply, ear): (ReplySender, Option<NotificationSender>),
        said: Result<LinkReply, RequestError>,
    ) {
        self.push(QueuedItem::Answer(reply, ear, said));
    }

    fn push(&mut self, outgoing: QueuedItem) {
        if self.is_empty() {
            self.since = clock::now();
        }
        self.waiting.push_back(outgoing);
        self.advance();
    }

    /// Sends everything that the client's channel has capacity for.
    fn advance(&mut self) {
        while let Some(first) = self.waiting.pop_front() {
            match first {
                QueuedItem::Told(text) => match self.ear.permit(&text) {
                    Some(room) => self.send(room, text),
                    None => return self.waiting.push_front(QueuedItem::Told(text)),
                },
                QueuedItem::Answer(reply, ear, said) => {
                    notifications::answer(reply, ear.as_ref(), said)
                }
            }
        }
    }

    fn send(&mut self, room: QueuePermit, text: Bytes) {
        self.since = clock::now();
        self.units -= units(&text, OWN);
        self.standing.on_delivery(self.ear.notify_with(room, text));
    }

    /// Waits for capacity for the first queued notification and sends it; cancel-safe. Never completes while nothing
    /// waits.
    pub(super) async fn go_on(&mut self) {
        if let Some(QueuedItem::Told(text)) = self.waiting.front()
            && let Some(room) = self.ear.reserve(text).await
        {
            if let Some(QueuedItem::Told(text)) = self.waiting.pop_front() {
                self.send(room, text);
            }
            return self.advance();
        }
        // Replies leave the queue at once, so only a notification can wait here; its semaphore is never closed.
        pending().await
    }

    /// Drops the queued notifications and counts them; replies are still sent.
    pub(super) fn give_up(&mut self) {
        self.units = 0;
        for outgoing in std::mem::take(&mut self.waiting) {
            match outgoing {
                QueuedItem::Told(_) => self.standing.on_delivery(Delivery::QueueFull),
                QueuedItem::Answer(reply, ear, said) => {
                    notifications::answer(reply, ear.as_ref(), said)
                }
            }
        }
    }

    /// Sends what the client takes in time, then reports the loss of the link, if the client is to get no other.
    pub(super) async fn end(mut self, loss: Option<LinkLost>) {
        while let Some(until) = self.deadline() {
            let left = until.saturating_duration_since(clock::now());
            if timeout(left, self.go_on()).await.is_err() {
                self.give_up();
            }
        }
        if let Some(loss) = loss {
            self.ear.end(loss);
        }
    }
}

#[cfg(test)]
mod tests;
