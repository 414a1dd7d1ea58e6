//! How a client tells that it does not want an answer any more, while it stays.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Whether a question is recalled by its client. The one who tells it may be on another thread than the one who hears.
#[derive(Debug, Default)]
pub struct Recall {
    rung: AtomicBool,
    bell: Notify,
}

impl Recall {
    /// The client does not want the answer any more.
    pub fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    /// Whether the client has said so.
    #[must_use]
    pub fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    /// Waits until it does; cancel-safe.
    pub async fn rings(&self) {
        self.bell.notified().await;
    }
}
