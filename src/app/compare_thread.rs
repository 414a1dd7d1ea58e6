//! The thread for long comparisons of all workers, so that none of them delays a call. Used by `workers`.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::gateway::ComparePool;

/// The thread and its queue.
#[derive(Debug)]
pub(super) struct CompareThread {
    pool: ComparePool,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl CompareThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn start() -> io::Result<CompareThread> {
        let (pool, thread) = ComparePool::open();
        let (over, ended) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("comparing".to_owned())
            .spawn(move || {
                thread.run_jobs();
                // Dropping the sender has the same effect.
                let _ = over.send(());
            })?;
        Ok(CompareThread {
            pool,
            ended,
            thread,
        })
    }

    /// Returns the queue to which the workers send comparisons.
    pub(super) fn compare_pool(&self) -> &ComparePool {
        &self.pool
    }

    /// Ends the thread after the workers have ended. At most one comparison is still running; queued ones are dropped.
    pub(super) async fn end(self) {
        self.pool.close().await;
        let _ = self.ended.await;
        // The thread has signalled its end, so this does not block.
        let _ = self.thread.join();
    }
}
