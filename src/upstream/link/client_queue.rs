//! What a link of one client has for it, in the order in which it came about: what the server tells, and answers.
//!
//! Nothing is lost for a client that reads slowly: what it has no room for waits here, and when that is as much again the
//! server is not read. Law: all of it goes out in its order, unless the client is gone or takes nothing for too long.

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

/// How long a client may take nothing of what waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

/// What waits to go out.
#[derive(Debug)]
pub(super) struct LinkClientQueue<'a> {
    ear: NotificationSender,
    waiting: VecDeque<QueuedItem>,
    /// How much of it is told, in units.
    units: usize,
    /// When something last went out.
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

    /// Whether all is out.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the server is not to be read for the time being. Up to there its pings are seen.
    pub(super) fn is_full(&self) -> bool {
        self.units >= OWN
    }

    /// Until when the client has to take something, if anything waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.is_empty()).then_some(self.since + PATIENCE)
    }

    /// The client gets no other link of its own.
    pub(super) fn lose(&self) {
        self.ear.lose();
    }

    /// The client is told this.
    pub(super) fn notify(&mut self, text: Bytes) {
        self.units += units(&text, OWN);
        self.push(QueuedItem::Told(text));
    }

    /// A caller is answered.
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

    /// Sends what there is room for.
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

    /// Waits for room for the first of what waits, and sends it; cancel-safe. Never ends where nothing waits.
    pub(super) async fn go_on(&mut self) {
        if let Some(QueuedItem::Told(text)) = self.waiting.front()
            && let Some(room) = self.ear.reserve(text).await
        {
            if let Some(QueuedItem::Told(text)) = self.waiting.pop_front() {
                self.send(room, text);
            }
            return self.advance();
        }
        // What is no notice has gone out, and there always will be room.
        pending().await
    }

    /// What the client has not taken by now it misses.
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

    /// All of it, as far as the client takes it in time, and at last that its link is gone, if it is not to get another.
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
