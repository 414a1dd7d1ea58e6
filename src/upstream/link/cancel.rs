//! Cancellation of a request by a client that stays connected. Used by `gateway` and `link`.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A cancellation flag with a notification. The client that sets it may be on another thread than the task that waits.
#[derive(Debug, Default)]
pub struct CancelSignal {
    is_cancelled: AtomicBool,
    notify: Notify,
}

impl CancelSignal {
    /// Marks the request as cancelled and wakes the waiting task.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Returns true if the client has cancelled the request.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits until the client cancels; cancel-safe.
    pub async fn cancelled(&self) {
        self.notify.notified().await;
    }
}
