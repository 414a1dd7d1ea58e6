//! The one place that starts tasks, so that a drain can wait for all of them.

use std::cell::OnceCell;
use std::rc::Rc;

use tokio::task::yield_now;
use tokio_util::task::TaskTracker;

use super::WriteCoalescer;
use super::response_reader::SharedReadBuffer;

/// The tasks of one worker.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    shared: Rc<TaskState>,
}

#[derive(Debug, Default)]
struct TaskState {
    tracker: TaskTracker,
    outbox: OnceCell<WriteCoalescer>,
    read_buffer: SharedReadBuffer,
}

impl Tasks {
    /// Starts a task on this worker's runtime.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that starts tasks"
    )]
    pub fn start(&self, task: impl Future<Output = ()> + 'static) {
        // The handle is dropped: the tracker reports the end to `idle`.
        drop(self.shared.tracker.spawn_local(task));
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
        self.shared.read_buffer.clone()
    }

    /// Returns the number of running tasks.
    #[must_use]
    pub fn running(&self) -> usize {
        self.shared.tracker.len()
    }

    /// Waits until no task runs. From now on, writes are sent at once.
    pub async fn idle(&self) {
        // Also if it is first used later: a connection may be opened until the last task has ended.
        self.shared
            .outbox
            .get_or_init(WriteCoalescer::default)
            .close();
        let tracker = &self.shared.tracker;
        tracker.close();
        // Again if a task was started just after the last one ended.
        while !tracker.is_empty() {
            tracker.wait().await;
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
    use crate::Socket;

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
