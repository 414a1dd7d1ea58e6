//! What the connections of one worker write in a turn of its loop is sent at the end of that turn, one message right behind
//! the other.
//!
//! To send to a peer that sleeps is to wake it, which costs the system as much again. Of messages that go out together, the
//! first one finds it asleep, and the others do not. Laws: what is deferred is sent when each task that was ready has had its
//! turn, or before, in the order of writing; no end waits for more than [`FULL`] others, nor with more than [`MANY`]
//! bytes; once closed, nothing waits.

use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, Waker};

use super::coalescing_socket::SocketHandle;
use super::thread_bound::ThreadBound;

/// So many ends are sent at once: whoever serves very many connections at a time lets none wait for all of them.
pub(super) const FULL: usize = 64;

/// And so many bytes: they are held meanwhile, and of more of them, each is a small part of what it costs to wake a peer.
pub(super) const MANY: usize = 128 * 1024;

/// The outbox of one worker.
#[derive(Debug, Clone, Default)]
pub struct WriteCoalescer(ThreadBound<CoalescerState>);

#[derive(Debug)]
struct CoalescerState {
    ends: Vec<SocketHandle>,
    /// For small messages: the room of those that were sent.
    buffers: Vec<Vec<u8>>,
    /// Where this many have come together, they are sent.
    full: usize,
    /// What they have to send.
    bytes: usize,
    waker: Waker,
}

impl Default for CoalescerState {
    fn default() -> CoalescerState {
        CoalescerState {
            ends: Vec::new(),
            buffers: Vec::new(),
            full: FULL,
            bytes: 0,
            waker: Waker::noop().clone(),
        }
    }
}

/// Ends to be sent now, by whoever has them, and uses none of them.
#[derive(Debug)]
#[must_use]
pub(super) struct Batch(Vec<SocketHandle>);

impl WriteCoalescer {
    /// Adds an end that is not in it. Where that makes enough of them, all are to be sent now.
    pub(super) fn add(&self, end: &SocketHandle, bytes: usize) -> Option<Batch> {
        let mut tray = self.0.get();
        tray.ends.push(end.clone());
        if tray.ends.len() == 1 {
            tray.waker.wake_by_ref();
        }
        tray.record_size(bytes)
    }

    /// An end that is in it has more to send. Where that makes enough, all are to be sent now.
    pub(super) fn grow(&self, bytes: usize) -> Option<Batch> {
        self.0.get().record_size(bytes)
    }

    /// Sends what has come together.
    pub(super) fn send(&self, Batch(mut ends): Batch) {
        for end in ends.drain(..) {
            if let Some(room) = end.send() {
                self.0.get().return_buffer(room);
            }
        }
        // Its room is for the next ones.
        let mut tray = self.0.get();
        if tray.ends.capacity() == 0 {
            tray.ends = ends;
        }
    }

    /// An empty room for small messages, which most of the time another one has had before.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        self.0.get().buffers.pop().unwrap_or_default()
    }

    /// Sends what is deferred, at the end of each turn, until the outbox is closed.
    pub(super) async fn flush(self) {
        poll_fn(|cx| self.poll_flush_all(cx)).await;
    }

    pub(super) fn poll_flush_all(&self, cx: &Context<'_>) -> Poll<()> {
        let mut tray = self.0.get();
        tray.waker.clone_from(cx.waker());
        let is_closed = tray.full == 0;
        let bundle = tray.take();
        drop(tray);
        self.send(bundle);
        if is_closed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// From now on, what is written is sent at once.
    pub(super) fn close(&self) {
        let mut tray = self.0.get();
        tray.full = 0;
        tray.waker.wake_by_ref();
    }
}

impl CoalescerState {
    fn record_size(&mut self, bytes: usize) -> Option<Batch> {
        self.bytes += bytes;
        (self.ends.len() >= self.full || self.bytes >= MANY).then(|| self.take())
    }

    fn take(&mut self) -> Batch {
        self.bytes = 0;
        Batch(mem::take(&mut self.ends))
    }

    /// No more of them than are sent at once, of 2 KiB each at most.
    fn return_buffer(&mut self, room: Vec<u8>) {
        if self.buffers.len() < FULL && room.capacity() > 0 {
            self.buffers.push(room);
        }
    }
}
