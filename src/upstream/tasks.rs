//! The one place that starts tasks, so that drain can await every one of them.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::FutureExt;
use tokio::sync::Notify;

/// The tasks of one worker.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    shared: Rc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    running: Cell<usize>,
    ended: Notify,
}

/// Counts a task as ended however it ends: by its own end, a panic or an abort.
struct Running(Rc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.set(self.0.running.get() - 1);
        if self.0.running.get() == 0 {
            self.0.ended.notify_waiters();
        }
    }
}

impl Tasks {
    /// Starts a task on this worker's runtime.
    pub fn start(&self, task: impl Future<Output = ()> + 'static) {
        self.shared.running.set(self.shared.running.get() + 1);
        let running = Running(self.shared.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "the one owner of tasks; `idle` awaits them"
        )]
        // The handle is let go: `Running` tells `idle` when the task has ended.
        // A block that awaits what it has captured has room for it twice; this has not.
        drop(tokio::task::spawn_local(task.map(move |()| drop(running))));
    }

    /// How many tasks run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.running.get()
    }

    /// Waits until no task runs.
    pub async fn idle(&self) {
        loop {
            // Registered before the count is read, so that an end in between is not missed.
            let ended = self.shared.ended.notified();
            if self.running() == 0 {
                return;
            }
            ended.await;
        }
    }
}
