//! A waker for tests that counts its wake-ups.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

/// The number of wake-ups of a task that is never polled.
#[derive(Debug, Default)]
pub(super) struct CountingWaker(AtomicUsize);

impl CountingWaker {
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
