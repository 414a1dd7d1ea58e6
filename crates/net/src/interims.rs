//! Interim responses (1xx) on their way from a server to a client's connection.
//!
//! The upstream connection adds them; the client's connection takes and writes them. Laws: they are written in the
//! order of arrival; the final response waits until they are written; the bytes that wait for a slow client are
//! bounded.

use std::task::{Context, Poll, Waker};

use super::ThreadBound;

/// The bytes that may wait for a client. Further interim responses are dropped.
const MOST: usize = 64 * 1024;

/// The interim responses of the call that a client's connection serves.
#[derive(Debug, Clone)]
pub struct Interims(ThreadBound<PendingInterims>);

#[derive(Debug, Default)]
struct PendingInterims {
    bytes: Vec<u8>,
    /// Some were taken and are not written yet.
    is_writing: bool,
    /// The task that waits until they are written.
    waker: Option<Waker>,
}

impl Default for Interims {
    fn default() -> Interims {
        Interims(ThreadBound::new(PendingInterims::default()))
    }
}

impl Interims {
    /// Adds the head of an interim response.
    pub(super) fn add(&self, head: &[u8]) {
        let mut waiting = self.0.get();
        if waiting.bytes.len() + head.len() <= MOST {
            waiting.bytes.extend_from_slice(head);
        }
    }

    /// Takes all that wait. The caller writes them and then calls [`Interims::are_written`].
    #[must_use]
    pub fn take(&self) -> Vec<u8> {
        let mut waiting = self.0.get();
        if waiting.bytes.is_empty() {
            return Vec::new();
        }
        waiting.is_writing = true;
        std::mem::take(&mut waiting.bytes)
    }

    /// Records that those taken are written.
    pub fn are_written(&self) {
        let mut waiting = self.0.get();
        waiting.is_writing = false;
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    /// Drops those not taken yet, because the final response has arrived.
    pub fn clear(&self) {
        self.0.get().bytes.clear();
    }

    /// Returns true when there are none, or all are written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let waiting = self.0.get();
        waiting.bytes.is_empty() && !waiting.is_writing
    }

    /// Waits until all are written. Cancel-safe.
    pub fn poll_written(&self, cx: &Context<'_>) -> Poll<()> {
        if self.is_empty() {
            return Poll::Ready(());
        }
        self.0.get().waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
