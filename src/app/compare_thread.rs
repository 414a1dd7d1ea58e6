//! The thread that makes the long comparisons of all workers, so that none of them holds up a call.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::gateway::ComparePool;

/// The thread, and the desk at which it works.
#[derive(Debug)]
pub(super) struct CompareThread {
    desk: ComparePool,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl CompareThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// What the system says of it.
    pub(super) fn start() -> io::Result<CompareThread> {
        let (desk, clerk) = ComparePool::open();
        let (over, ended) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("comparing".to_owned())
            .spawn(move || {
                clerk.work();
                // Dropped, it says the same.
                let _ = over.send(());
            })?;
        Ok(CompareThread {
            desk,
            ended,
            thread,
        })
    }

    /// Where the workers hand over what is to be compared.
    pub(super) fn desk(&self) -> &ComparePool {
        &self.desk
    }

    /// Ends the thread when the workers have ended: at most one comparison is still in progress, and nobody waits for
    /// the others.
    pub(super) async fn end(self) {
        self.desk.close().await;
        let _ = self.ended.await;
        // It has sent its last word, so this is no wait.
        let _ = self.thread.join();
    }
}
