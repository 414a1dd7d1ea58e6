//! How a client tells that it does not want an answer any more, while it stays.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether a question is recalled by its client. The one who tells it may be on another thread than the one who hears.
#[derive(Debug, Default)]
pub struct CancelSignal {
    is_cancelled: AtomicBool,
    notify: Notify,
}

impl CancelSignal {
    /// The client does not want the answer any more.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        self.notify.notify_one();
    }

    /// Whether the client has said so.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Waits until it does; cancel-safe.
    pub async fn cancelled(&self) {
        self.notify.notified().await;
    }
}
