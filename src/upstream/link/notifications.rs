//! The way from the owners of links to one client, which hears here what servers tell.
//!
//! Answers go another way, to who has asked. Both are numbered, so that the client gets them in the order in which the
//! owner had them, though it runs on another thread. Laws: nothing told is handed out before the answers that went before
//! it were taken; an answer knows what was told before it; what waits for a client is bounded by count and by bytes, until
//! the client has it. All owners run on one thread.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::LinkReply;
use super::stats::Delivery;
use crate::domain::pending::RequestError;

/// What is told is counted in units of so many bytes, and takes one at least.
const UNIT: usize = 512;
/// How much of what links tell that all share may wait for a client: 16,384 messages, or 8 MiB.
const SHARED: usize = 16 * 1024;
/// How much of what its own links tell: 2,048 messages, or 1 MiB. What is more waits at the server.
pub(super) const OWN: usize = 2 * 1024;
/// How many ends of links may wait.
const ENDS: usize = 64;

/// What has gone to a client, and what it has taken.
#[derive(Debug)]
struct SequenceCounters {
    /// How much was told, by whomever.
    notified: AtomicU64,
    /// How many answers went to the client's calls.
    answered: AtomicU64,
    /// How many of these it has taken, in their order.
    taken: AtomicU64,
    /// The places of those that it did not want any more before their turn.
    early: Mutex<Vec<u64>>,
    /// Rung when one is taken.
    turns: Notify,
    /// How much was told before the last of those.
    behind: AtomicU64,
    /// Whether one of its own links is lost.
    lost: AtomicBool,
    /// Whether it misses something.
    misses: AtomicBool,
    shared: Arc<Semaphore>,
    own: Arc<Semaphore>,
}

/// The end of owners.
#[derive(Debug, Clone)]
pub struct NotificationSender {
    to: mpsc::Sender<SequencedNotification>,
    tally: Arc<SequenceCounters>,
}

/// Something on its way to the client.
#[derive(Debug)]
struct SequencedNotification {
    tidings: Notification,
    /// How many answers went before it.
    answers: u64,
}

/// What a client hears.
#[derive(Debug)]
pub enum Notification {
    /// A server tells this; the room is taken until the client has it.
    Message(Bytes, QueuePermit),
    /// A link that the client had for itself is gone, and with it what the server has kept for it.
    Lost(LinkLost),
}

/// The room that something takes while it waits for the client.
#[derive(Debug)]
pub struct QueuePermit(
    #[expect(dead_code, reason = "it is given back when it is dropped")] OwnedSemaphorePermit,
);

/// Why a client has lost a link of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkLost {
    /// Whose it was.
    pub upstream: String,
    /// Through whom.
    pub through: LostBy,
}

/// Through whom a link was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostBy {
    /// The server, or the way to it.
    Server,
    /// The client, which did not take what the server told.
    Client,
    /// The plan, which has another upstream in its place, or none.
    Plan,
}

/// What a caller is told, and when.
#[derive(Debug)]
pub(super) struct SequencedReply {
    pub(super) result: Result<LinkReply, RequestError>,
    /// How much the client was told before.
    sequence: u64,
    /// How many answers went to it before.
    position: u64,
}

/// Where a caller is told.
pub(super) type ReplySender = oneshot::Sender<SequencedReply>;

/// Both ends of the way to a client.
#[must_use]
pub fn channel() -> (NotificationSender, NotificationReceiver) {
    let (to, from) = mpsc::channel(SHARED + OWN + ENDS);
    let tally = Arc::new(SequenceCounters {
        notified: AtomicU64::new(0),
        answered: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        early: Mutex::default(),
        turns: Notify::new(),
        behind: AtomicU64::new(0),
        lost: AtomicBool::new(false),
        misses: AtomicBool::new(false),
        shared: Arc::new(Semaphore::new(SHARED)),
        own: Arc::new(Semaphore::new(OWN)),
    });
    let hearing = NotificationReceiver {
        from,
        next: None,
        heard: 0,
        tally: tally.clone(),
    };
    (NotificationSender { to, tally }, hearing)
}

/// How many units something takes of so many; what is longer than all of them takes all.
pub(super) fn units(text: &Bytes, most: usize) -> usize {
    (1 + text.len() / UNIT).min(most)
}

fn permits(text: &Bytes, most: usize) -> u32 {
    u32::try_from(units(text, most)).unwrap_or(u32::MAX)
}

impl NotificationSender {
    /// Whether the client is gone.
    pub(super) fn is_closed(&self) -> bool {
        self.to.is_closed()
    }

    /// Tells the client something that others hear as well, if it keeps up.
    pub(super) fn notify(&self, text: Bytes) -> Delivery {
        if self.is_closed() {
            return Delivery::NoSubscriber;
        }
        if self.tally.shared.available_permits() > SHARED / 2 {
            self.tally.misses.store(false, Ordering::Relaxed);
        }
        let shared = self.tally.shared.clone();
        match shared.try_acquire_many_owned(permits(&text, SHARED)) {
            Ok(room) => self.send(Notification::Message(text, QueuePermit(room))),
            Err(_) => Delivery::QueueFull,
        }
    }

    /// Whether this is the first thing that the client misses since it had taken half of all that may wait.
    pub(super) fn start_missing(&self) -> bool {
        !self.tally.misses.swap(true, Ordering::Relaxed)
    }

    /// Room for something that a link of the client's own tells, if there is some.
    pub(super) fn permit(&self, text: &Bytes) -> Option<QueuePermit> {
        let own = self.tally.own.clone();
        own.try_acquire_many_owned(permits(text, OWN))
            .ok()
            .map(QueuePermit)
    }

    /// The same once there is some, or the client is gone; cancel-safe. None where there never will be.
    pub(super) async fn reserve(&self, text: &Bytes) -> Option<QueuePermit> {
        let own = self.tally.own.clone();
        own.acquire_many_owned(permits(text, OWN))
            .await
            .ok()
            .map(QueuePermit)
    }

    /// Tells the client something in the room for it.
    pub(super) fn notify_with(&self, room: QueuePermit, text: Bytes) -> Delivery {
        self.send(Notification::Message(text, room))
    }

    /// A link of the client's own is lost: it gets no other.
    pub(super) fn lose(&self) {
        self.tally.lost.store(true, Ordering::Release);
    }

    /// Whether a link of the client's own is lost.
    pub(super) fn has_lost(&self) -> bool {
        self.tally.lost.load(Ordering::Acquire)
    }

    /// Tells the client that a link of its own is gone.
    pub(super) fn end(&self, loss: LinkLost) {
        // The first of them ends the client, so that there is room.
        self.send(Notification::Lost(loss));
    }

    fn send(&self, tidings: Notification) -> Delivery {
        let tally = &self.tally;
        let answers = tally.answered.load(Ordering::Relaxed);
        match self.to.try_send(SequencedNotification { tidings, answers }) {
            Ok(()) => {
                tally.notified.fetch_add(1, Ordering::Relaxed);
                Delivery::Delivered
            }
            Err(mpsc::error::TrySendError::Full(_)) => Delivery::QueueFull,
            Err(mpsc::error::TrySendError::Closed(_)) => Delivery::NoSubscriber,
        }
    }

    /// Waits until the client has taken the answers that went before this one; cancel-safe. They are there already.
    pub(super) async fn turn_for(&self, answered: &SequencedReply) {
        loop {
            let mut turn = pin!(self.tally.turns.notified());
            turn.as_mut().enable();
            if self.tally.taken.load(Ordering::Relaxed) >= answered.position {
                return;
            }
            turn.await;
        }
    }

    /// The client has an answer, or does not want it any more.
    pub(super) fn on_taken(&self, answered: &SequencedReply) {
        let tally = &self.tally;
        // What a thread that has panicked left is whole.
        let mut early = tally.early.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = tally.taken.load(Ordering::Relaxed);
        if answered.position == taken {
            // What was told before those that follow, which nobody wants, need not come before this one.
            tally.behind.store(answered.sequence, Ordering::Relaxed);
        }
        early.push(answered.position);
        while let Some(next) = early.iter().position(|place| *place == taken) {
            early.swap_remove(next);
            taken += 1;
        }
        tally.taken.store(taken, Ordering::Relaxed);
        tally.turns.notify_waiters();
    }
}

/// Tells a caller, whose client may have an ear.
pub(super) fn answer(
    reply: ReplySender,
    ear: Option<&NotificationSender>,
    said: Result<LinkReply, RequestError>,
) {
    let count = |count: fn(&SequenceCounters) -> &AtomicU64| {
        ear.map_or(0, |ear| count(&ear.tally).load(Ordering::Relaxed))
    };
    let answered = SequencedReply {
        result: said,
        sequence: count(|tally| &tally.notified),
        position: count(|tally| &tally.answered),
    };
    // One that no longer waits needs no answer.
    if reply.send(answered).is_ok()
        && let Some(ear) = ear
    {
        ear.tally.answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// The end of the client, whose calls are served by the task that has this.
#[derive(Debug)]
pub struct NotificationReceiver {
    from: mpsc::Receiver<SequencedNotification>,
    /// It waits for an answer that went before it.
    next: Option<SequencedNotification>,
    /// How much was handed out.
    heard: u64,
    tally: Arc<SequenceCounters>,
}

impl NotificationReceiver {
    /// What is told next, once the answers before it are taken. The task that asks is the one that takes them.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Notification> {
        if self.next.is_none() {
            self.next = ready!(self.from.poll_recv(cx));
        }
        // Whoever takes the answer that it waits for was rung when that came, which was before.
        match self.has_turn() {
            true => self.take().map_or(Poll::Pending, Poll::Ready),
            false => Poll::Pending,
        }
    }

    /// The same; cancel-safe.
    pub async fn next(&mut self) -> Notification {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// What is left of what was told before the answers that the client has taken.
    pub fn pending_before(&mut self) -> Option<Notification> {
        if self.heard >= self.tally.behind.load(Ordering::Relaxed) {
            return None;
        }
        if self.next.is_none() {
            self.next = Some(self.from.try_recv().ok()?);
        }
        self.take()
    }

    fn has_turn(&self) -> bool {
        let taken = self.tally.taken.load(Ordering::Relaxed);
        let next = self.next.as_ref();
        next.is_some_and(|next| next.answers <= taken)
    }

    fn take(&mut self) -> Option<Notification> {
        let heard = self.next.take()?;
        self.heard += 1;
        Some(heard.tidings)
    }
}

#[cfg(test)]
mod tests;
