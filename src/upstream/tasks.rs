//! The one place that starts tasks, so that a drain can wait for all of them.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;

use futures_util::FutureExt;
use tokio::sync::Notify;
use tokio::task::yield_now;

use super::WriteCoalescer;
use super::response_reader::SharedReadBuffer;

/// The tasks of one worker.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    shared: Rc<TaskState>,
}

#[derive(Debug, Default)]
struct TaskState {
    running: Cell<usize>,
    ended: Notify,
    outbox: OnceCell<WriteCoalescer>,
    room: SharedReadBuffer,
}

/// A guard that counts a task as ended, whether it returns, panics or is aborted.
struct TaskGuard(Rc<TaskState>);

impl Drop for TaskGuard {
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
        let running = TaskGuard(self.shared.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "the one owner of tasks; `idle` awaits them"
        )]
        // The handle is dropped: `TaskGuard` reports the end to `idle`. `map` instead of an async block, which would
        // reserve space for the captured future twice.
        drop(tokio::task::spawn_local(task.map(move |()| drop(running))));
    }

    /// Starts a task after the current turn of the worker; what was written in this turn is sent by then.
    pub fn start_after_turn(&self, task: impl Future<Output = ()> + Unpin + 'static) {
        self.start(async move {
            yield_now().await;
            task.await;
        });
    }

    /// Returns the coalescer of this worker's connections. The first use starts a task that flushes it.
    #[must_use]
    pub fn write_coalescer(&self) -> WriteCoalescer {
        let outbox = self.shared.outbox.get_or_init(|| {
            let outbox = WriteCoalescer::default();
            self.start(outbox.clone().flush());
            outbox
        });
        outbox.clone()
    }

    /// Returns the read buffer that this worker's connections share.
    pub(super) fn read_buffer(&self) -> SharedReadBuffer {
        self.shared.room.clone()
    }

    /// Returns the number of running tasks.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.running.get()
    }

    /// Waits until no task runs. From now on, writes are sent at once.
    pub async fn idle(&self) {
        // Also if it is first used later: a connection may be opened until the last task has ended.
        self.shared
            .outbox
            .get_or_init(WriteCoalescer::default)
            .close();
        loop {
            // Registered before the count is read, so that a task which ends in between is not missed.
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
    use std::io::Read;

    use futures_util::FutureExt;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;
    use crate::upstream::Socket;

    #[tokio::test]
    async fn a_write_coalescer_does_not_delay_the_wait_for_the_last_task() {
        LocalSet::new()
            .run_until(async {
                for is_used in [true, false] {
                    let tasks = Tasks::default();
                    if is_used {
                        let _ = tasks.write_coalescer();
                    }
                    tasks.start(tokio::task::yield_now());
                    let idle = tasks.idle();
                    let mut idle = std::pin::pin!(idle);
                    assert!(idle.as_mut().now_or_never().is_none());
                    let _ = tasks.write_coalescer();
                    idle.await;
                    assert_eq!(tasks.running(), 0);
                }
            })
            .await;
    }

    #[tokio::test]
    async fn a_task_after_the_turn_starts_when_the_writes_are_sent() {
        LocalSet::new()
            .run_until(async {
                let tasks = Tasks::default();
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let near = TcpStream::connect(listener.local_addr().unwrap()).await;
                let far = listener.accept().await.unwrap().0;
                let mut far = far.into_std().unwrap();
                let mut near = Socket::Plain(near.unwrap()).coalescing(tasks.write_coalescer());
                let (sender, receiver) = oneshot::channel();
                tasks.start_after_turn(Box::pin(async move {
                    // The kernel is asked at once, and does not wait.
                    let _ = sender.send(far.read(&mut [0; 8]).ok());
                }));
                tasks.start(async move {
                    near.write_all(b"answer").await.unwrap();
                });
                assert_eq!(receiver.await.unwrap(), Some(6));
            })
            .await;
    }
}
