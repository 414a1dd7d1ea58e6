//! The one place that starts tasks, so that drain can await every one of them.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::Outbox;

/// The tasks of one worker.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    shared: Rc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    running: Cell<usize>,
    ended: Notify,
    outbox: OnceCell<Outbox>,
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

    /// Where small messages of connections wait for the end of the turn. A task empties it, from the first use on.
    #[must_use]
    pub fn outbox(&self) -> Outbox {
        let outbox = self.shared.outbox.get_or_init(|| {
            let outbox = Outbox::default();
            self.start(outbox.clone().carry());
            outbox
        });
        outbox.clone()
    }

    /// How many tasks run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.running.get()
    }

    /// Waits until no task runs. From now on, what is written is sent at once.
    pub async fn idle(&self) {
        // Also one that is first asked for later: a connection may be opened until the last task has ended.
        self.shared.outbox.get_or_init(Outbox::default).close();
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

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn an_outbox_keeps_nobody_waiting_who_waits_for_the_last_task() {
        LocalSet::new()
            .run_until(async {
                for is_used in [true, false] {
                    let tasks = Tasks::default();
                    if is_used {
                        let _ = tasks.outbox();
                    }
                    tasks.start(tokio::task::yield_now());
                    let idle = tasks.idle();
                    let mut idle = std::pin::pin!(idle);
                    assert!(idle.as_mut().now_or_never().is_none());
                    let _ = tasks.outbox();
                    idle.await;
                    assert_eq!(tasks.running(), 0);
                }
            })
            .await;
    }
}
