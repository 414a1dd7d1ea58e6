//! What the connections of one worker write in a turn of its loop is sent at the end of that turn, one message right behind
//! the other.
//!
//! To send to a peer that sleeps is to wake it, which costs the system as much again. Of messages that go out together, the
//! first one finds it asleep, and the others do not. Laws: what is deferred is sent when each task that was ready has had its
//! turn, or before, in the order of writing; no end waits for more than [`FULL`] others; once closed, nothing waits.

use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::deferring::WriteEnd;

/// So many ends are sent at once: whoever serves very many connections at a time lets none wait for all of them.
pub(super) const FULL: usize = 64;

/// The outbox of one worker. A connection that was upgraded may change its thread, so that it can be reached from others.
#[derive(Debug, Clone, Default)]
pub struct Outbox(Arc<Mutex<Tray>>);

#[derive(Debug)]
struct Tray {
    ends: Vec<WriteEnd>,
    /// Where this many have come together, they are sent.
    full: usize,
    carrier: Waker,
}

impl Default for Tray {
    fn default() -> Tray {
        Tray {
            ends: Vec::new(),
            full: FULL,
            carrier: Waker::noop().clone(),
        }
    }
}

/// Ends to be sent now, by whoever has them, and holds the lock of none.
#[derive(Debug)]
#[must_use]
pub(super) struct Bundle(Vec<WriteEnd>);

impl Bundle {
    pub(super) fn send(self) {
        self.0.iter().for_each(WriteEnd::send);
    }
}

impl Outbox {
    /// Adds an end that is not in it. Where that makes enough of them, all are to be sent now.
    pub(super) fn add(&self, end: &WriteEnd) -> Option<Bundle> {
        let mut tray = self.lock();
        tray.ends.push(end.clone());
        if tray.ends.len() >= tray.full {
            return Some(tray.take());
        }
        if tray.ends.len() == 1 {
            tray.carrier.wake_by_ref();
        }
        None
    }

    /// Sends what is deferred, at the end of each turn, until the outbox is closed.
    pub(super) async fn carry(self) {
        poll_fn(|cx| self.poll_carry(cx)).await;
    }

    pub(super) fn poll_carry(&self, cx: &Context<'_>) -> Poll<()> {
        let mut tray = self.lock();
        tray.carrier.clone_from(cx.waker());
        let is_closed = tray.full == 0;
        let bundle = tray.take();
        drop(tray);
        bundle.send();
        if is_closed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// From now on, what is written is sent at once.
    pub(super) fn close(&self) {
        let mut tray = self.lock();
        tray.full = 0;
        tray.carrier.wake_by_ref();
    }

    fn lock(&self) -> MutexGuard<'_, Tray> {
        // What a panic has left is as good as before.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tray {
    fn take(&mut self) -> Bundle {
        let room = Vec::with_capacity(self.ends.capacity());
        Bundle(mem::replace(&mut self.ends, room))
    }
}
