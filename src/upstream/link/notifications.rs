//! A bounded channel for notifications, from the link tasks to one client.
//!
//! Replies use channels of their own. Notifications and replies share one sequence, because the client runs on another
//! thread but must see them in the order of the link task. Laws: a notification is delivered only after every reply
//! sent before it was taken; a reply records the notifications sent before it; queued notifications are limited by
//! count and by bytes until the client has them. All link tasks run on one thread.
//!
//! Used by `gateway` and `link`.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::reply_slot::ServerRequest;
use super::stats::Delivery;
use dualgauge_model::pending::RequestError;

/// The size of a unit in bytes. A notification takes at least one unit.
const UNIT: usize = 512;
/// The units that notifications of shared links may take: 16,384 messages, or 8 MiB.
const SHARED: usize = 16 * 1024;
/// The units that notifications of the client's own links may take: 2,048 messages, or 1 MiB. The rest waits at the
/// server.
pub(super) const PER_CLIENT: usize = 2 * 1024;
/// The number of lost links that may wait in the channel.
const ENDS: usize = 64;

/// Counters of the replies and notifications that were sent to a client and taken by it.
#[derive(Debug)]
struct SequenceCounters {
    /// The number of notifications sent, by any link.
    notified: AtomicU64,
    /// The number of replies sent.
    answered: AtomicU64,
    /// The number of replies taken, in order.
    taken: AtomicU64,
    /// The positions of replies that were discarded before their turn.
    early: Mutex<Vec<u64>>,
    /// Notified when a reply is taken.
    turns: Notify,
    /// The number of notifications sent before the last reply that was taken.
    before_last_reply: AtomicU64,
    /// True if a link of the client's own is lost.
    lost: AtomicBool,
    /// True while the client misses notifications.
    misses: AtomicBool,
    shared: Arc<Semaphore>,
    per_client: Arc<Semaphore>,
}

/// The sending end, held by link tasks.
#[derive(Debug, Clone)]
pub struct NotificationSender {
    to: mpsc::Sender<SequencedNotification>,
    counters: Arc<SequenceCounters>,
}

/// A notification in the channel.
#[derive(Debug)]
struct SequencedNotification {
    notification: Notification,
    /// The number of replies sent before it.
    answers: u64,
}

/// A notification to a client.
#[derive(Debug)]
pub enum Notification {
    /// A message of the server; the permit is held until the client has it.
    Message(Bytes, QueuePermit),
    /// A link of the client's own is lost, and with it the state that the server kept for the client.
    Lost(LinkLost),
}

/// A permit for the units that a notification takes in the channel.
#[derive(Debug)]
pub struct QueuePermit(
    #[expect(dead_code, reason = "it is given back when it is dropped")] OwnedSemaphorePermit,
);

/// The loss of a link that belonged to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkLost {
    /// The name of the upstream.
    pub upstream: String,
    /// The party that caused the loss.
    pub through: LostBy,
}

/// The party that caused the loss of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostBy {
    /// The server, or the connection to it.
    Server,
    /// The client, which did not take its notifications.
    Client,
    /// The plan, which has replaced or removed the upstream.
    Plan,
}

/// A successful reply of a link task.
#[derive(Debug)]
pub enum LinkReply {
    /// The response to the request that was sent with this id.
    Answer(u64, Bytes),
    /// The response to the request that was sent with this id, which has opened a subscription.
    Subscribed(u64, Bytes),
    /// The notification was sent.
    Sent,
    /// A subscription ended in good order, without a response of the server.
    Ended,
    /// Not the last reply: the server sent a request during the call and waits for the answer.
    ServerRequest(Box<ServerRequest>),
}

/// A reply with its place in the sequence.
#[derive(Debug)]
pub(super) struct SequencedReply {
    pub(super) result: Result<LinkReply, RequestError>,
    /// The number of notifications sent to the client before it.
    sequence: u64,
    /// The number of replies sent to the client before it.
    position: u64,
    /// The counters of the client, if it has a notification channel.
    counters: Option<Arc<SequenceCounters>>,
}

/// The sending end of a caller's reply channel.
pub(super) type ReplySender = oneshot::Sender<SequencedReply>;

/// Creates a notification channel to one client.
#[must_use]
pub fn channel() -> (NotificationSender, NotificationReceiver) {
    let (to, from) = mpsc::channel(SHARED + PER_CLIENT + ENDS);
    let counters = Arc::new(SequenceCounters {
        notified: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        early: Mutex::default(),
        turns: Notify::new(),
        before_last_reply: AtomicU64::new(0),
        lost: AtomicBool::new(false),
        misses: AtomicBool::new(false),
        shared: Arc::new(Semaphore::new(SHARED)),
        per_client: Arc::new(Semaphore::new(PER_CLIENT)),
    });
    let receiver = NotificationReceiver {
        from,
        next: None,
        delivered: 0,
        counters: counters.clone(),
    };
    (NotificationSender { to, counters }, receiver)
}

/// Returns the units that `text` takes, at most `most`.
pub(super) fn units(text: &Bytes, most: usize) -> usize {
    (1 + text.len() / UNIT).min(most)
}

fn permits(text: &Bytes, most: usize) -> u32 {
    u32::try_from(units(text, most)).unwrap_or(u32::MAX)
}

impl NotificationSender {
    /// Returns true if the client is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed()
    }

    /// Sends a notification of a shared link, or drops it if the channel is full.
    pub(super) fn notify(&self, text: Bytes) -> Delivery {
        if self.is_closed() {
            return Delivery::NoSubscriber;
        }
        if self.counters.shared.available_permits() > SHARED / 2 {
            self.counters.misses.store(false, Ordering::Relaxed);
        }
        let shared = self.counters.shared.clone();
        match shared.try_acquire_many_owned(permits(&text, SHARED)) {
            Ok(permit) => self.send(Notification::Message(text, QueuePermit(permit))),
            Err(_) => Delivery::QueueFull,
        }
    }

    /// Sends a request of the proxy to the client. Returns false if the channel is full, or the client is gone.
    #[must_use]
    pub fn ask(&self, text: Bytes) -> bool {
        self.notify(text) == Delivery::Delivered
    }

    /// Lets the client have all messages sent so far before the next reply that it takes.
    pub fn precede_reply(&self) {
        let notified = self.counters.notified.load(Ordering::Relaxed);
        self.counters
            .before_last_reply
            .fetch_max(notified, Ordering::Relaxed);
    }

    /// Returns true for the first drop since the channel was last less than half full.
    pub(super) fn is_first_drop(&self) -> bool {
        !self.counters.misses.swap(true, Ordering::Relaxed)
    }

    /// Returns a permit for a notification of the client's own link, if there is capacity.
    pub(super) fn permit(&self, text: &Bytes) -> Option<QueuePermit> {
        let per_client = self.counters.per_client.clone();
        per_client
            .try_acquire_many_owned(permits(text, PER_CLIENT))
            .ok()
            .map(QueuePermit)
    }

    /// Waits for such a permit; cancel-safe. Returns `None` if there will never be one.
    pub(super) async fn reserve(&self, text: &Bytes) -> Option<QueuePermit> {
        let per_client = self.counters.per_client.clone();
        per_client
            .acquire_many_owned(permits(text, PER_CLIENT))
            .await
            .ok()
            .map(QueuePermit)
    }

    /// Sends a notification with the permit it needs.
    pub(super) fn notify_with(&self, permit: QueuePermit, text: Bytes) -> Delivery {
        self.send(Notification::Message(text, permit))
    }

    /// Marks a link of the client's own as lost: it gets no other.
    pub(super) fn mark_lost(&self) {
        self.counters.lost.store(true, Ordering::Release);
    }

    /// Returns true if a link of the client's own is lost.
    pub(super) fn has_lost(&self) -> bool {
        self.counters.lost.load(Ordering::Acquire)
    }

    /// Tells the client that a link of its own is lost.
    pub(super) fn report_loss(&self, loss: LinkLost) {
        // The first loss ends the client, so `ENDS` slots suffice.
        self.send(Notification::Lost(loss));
    }

    fn send(&self, notification: Notification) -> Delivery {
        let counters = &self.counters;
        let answers = counters.answered.load(Ordering::Relaxed);
        match self.to.try_send(SequencedNotification {
            notification,
            answers,
        }) {
            Ok(()) => {
                counters.notified.fetch_add(1, Ordering::Relaxed);
                Delivery::Delivered
            }
            Err(mpsc::error::TrySendError::Full(_)) => Delivery::QueueFull,
            Err(mpsc::error::TrySendError::Closed(_)) => Delivery::NoSubscriber,
        }
    }
}

impl SequencedReply {
    /// Waits until the client has taken all earlier replies, which are in its channels already; cancel-safe.
    pub(super) async fn wait_for_turn(&self) {
        let Some(counters) = &self.counters else {
            return;
        };
        loop {
            let mut turn = pin!(counters.turns.notified());
            turn.as_mut().enable();
            if counters.taken.load(Ordering::Relaxed) >= self.position {
                return;
            }
            turn.await;
        }
    }

    /// Records that the reply was taken or discarded.
    pub(super) fn mark_received(&self) {
        let Some(counters) = &self.counters else {
            return;
        };
        // The list is consistent even after a panic.
        let mut early = counters
            .early
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut taken = counters.taken.load(Ordering::Relaxed);
        if self.position == taken {
            // Later replies that were discarded do not raise this: their notifications need not precede this reply.
            counters
                .before_last_reply
                .store(self.sequence, Ordering::Relaxed);
        }
        early.push(self.position);
        while let Some(next) = early.iter().position(|position| *position == taken) {
            early.swap_remove(next);
            taken += 1;
        }
        counters.taken.store(taken, Ordering::Relaxed);
        counters.turns.notify_waiters();
    }
}

/// Sends a reply to a caller, and counts it if the caller's client has a notification channel.
pub(super) fn answer(
    reply: ReplySender,
    notifier: Option<&NotificationSender>,
    result: Result<LinkReply, RequestError>,
) {
    let count = |count: fn(&SequenceCounters) -> &AtomicU64| {
        notifier.map_or(0, |notifier| {
            count(&notifier.counters).load(Ordering::Relaxed)
        })
    };
    let answered = SequencedReply {
        result,
        sequence: count(|counters| &counters.notified),
        position: count(|counters| &counters.answered),
        counters: notifier.map(|notifier| notifier.counters.clone()),
    };
    // A caller that no longer waits needs no reply, and none is counted.
    if reply.send(answered).is_ok()
        && let Some(notifier) = notifier
    {
        notifier.counters.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// The receiving end, held by the task that serves the client's calls.
#[derive(Debug)]
pub struct NotificationReceiver {
    from: mpsc::Receiver<SequencedNotification>,
    /// A notification that waits for earlier replies to be taken.
    next: Option<SequencedNotification>,
    /// The number of notifications delivered.
    delivered: u64,
    counters: Arc<SequenceCounters>,
}

impl NotificationReceiver {
    /// Returns the next notification once all earlier replies are taken. The calling task must also take the replies.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Notification> {
        if self.next.is_none() {
            self.next = ready!(self.from.poll_recv(cx));
        }
        // No waker is needed: the task that takes the earlier reply was woken when that reply came.
        match self.has_turn() {
            true => self.take().map_or(Poll::Pending, Poll::Ready),
            false => Poll::Pending,
        }
    }

    /// Waits for the next notification, as [`NotificationReceiver::poll_next`] does; cancel-safe.
    pub async fn next(&mut self) -> Notification {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Returns a remaining notification that was sent before the replies that the client has taken.
    pub fn pending_before(&mut self) -> Option<Notification> {
        if self.delivered >= self.counters.before_last_reply.load(Ordering::Relaxed) {
            return None;
        }
        if self.next.is_none() {
            self.next = Some(self.from.try_recv().ok()?);
        }
        self.take()
    }

    fn has_turn(&self) -> bool {
        let taken = self.counters.taken.load(Ordering::Relaxed);
        let next = self.next.as_ref();
        next.is_some_and(|next| next.answers <= taken)
    }

    fn take(&mut self) -> Option<Notification> {
        let delivered = self.next.take()?;
        self.delivered += 1;
        Some(delivered.notification)
    }
}

#[cfg(test)]
mod tests;
