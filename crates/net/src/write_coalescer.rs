//! Coalesced writes: the writes of a worker's connections within one turn of its event loop are sent at the end of
//! that turn, one after another.
//!
//! A write to a sleeping peer wakes it, which doubles the cost. Of writes sent together, only the first finds it
//! asleep. Laws: a deferred write is sent, in the order of writing, once each ready task has had its turn, or before;
//! at most [`FULL`] sockets and [`MANY`] bytes are deferred; after closing, nothing is.
//!
//! Used by `coalescing_socket`.

use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, Waker};

use super::thread_bound::ThreadBound;
use super::write_state::SocketHandle;

/// The number of sockets that are sent at once, so that a worker with very many connections delays none for all
/// others.
pub(super) const FULL: usize = 64;

/// The number of bytes that are sent at once. They occupy memory until then, and beside larger writes the cost of
/// waking a peer is small.
pub(super) const MANY: usize = 128 * 1024;

/// The coalescer of one worker.
#[derive(Debug, Clone, Default)]
pub struct WriteCoalescer(ThreadBound<CoalescerState>);

#[derive(Debug)]
struct CoalescerState {
    ends: Vec<SocketHandle>,
    /// The buffers of sent messages, for reuse.
    buffers: Vec<Vec<u8>>,
    /// The number of sockets at which all are sent; 0 once closed.
    full: usize,
    /// The deferred bytes of all sockets.
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

/// Sockets to be sent now. The caller must not borrow any of them while it sends the batch.
#[derive(Debug)]
#[must_use]
pub(super) struct Batch(Vec<SocketHandle>);

impl WriteCoalescer {
    /// Adds a socket. Returns the batch to send now when a limit is reached.
    pub(super) fn add(&self, end: &SocketHandle, bytes: usize) -> Option<Batch> {
        let mut batch = self.0.get();
        batch.ends.push(end.clone());
        if batch.ends.len() == 1 {
            batch.waker.wake_by_ref();
        }
        batch.record_size(bytes)
    }

    /// Counts more bytes of a socket that was added. Returns the batch to send now when a limit is reached.
    pub(super) fn grow(&self, bytes: usize) -> Option<Batch> {
        self.0.get().record_size(bytes)
    }

    /// Sends a batch.
    pub(super) fn send(&self, Batch(mut ends): Batch) {
        for end in ends.drain(..) {
            if let Some(buffer) = end.send() {
                self.0.get().return_buffer(buffer);
            }
        }
        // Keeps the allocation for the next batch.
        let mut batch = self.0.get();
        if batch.ends.capacity() == 0 {
            batch.ends = ends;
        }
    }

    /// Returns an empty buffer, usually one used before.
    pub(super) fn take_buffer(&self) -> Vec<u8> {
        self.0.get().buffers.pop().unwrap_or_default()
    }

    /// Sends deferred writes at the end of each turn, until the coalescer is closed.
    pub(super) async fn flush(self) {
        poll_fn(|cx| self.poll_flush_all(cx)).await;
    }

    pub(super) fn poll_flush_all(&self, cx: &Context<'_>) -> Poll<()> {
        let mut batch = self.0.get();
        batch.waker.clone_from(cx.waker());
        let is_closed = batch.full == 0;
        let bundle = batch.take();
        drop(batch);
        self.send(bundle);
        if is_closed {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Closes the coalescer: from now on, writes are sent at once.
    pub(super) fn close(&self) {
        let mut batch = self.0.get();
        batch.full = 0;
        batch.waker.wake_by_ref();
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

    /// Keeps a buffer for reuse: at most as many as sockets are sent at once, of at most 2 KiB each.
    fn return_buffer(&mut self, buffer: Vec<u8>) {
        if self.buffers.len() < FULL && buffer.capacity() > 0 {
            self.buffers.push(buffer);
        }
    }
}
