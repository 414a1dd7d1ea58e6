//! The thread that writes recordings of calls. Used by `workers`.

use std::io;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::telemetry::recorder::Recorder;

/// The time within which the thread must take a call from its queue, or end; a stalled disk must not keep the process.
const STALL: Duration = Duration::from_secs(1);

/// The thread and its queue.
#[derive(Debug)]
pub(super) struct RecorderHandle {
    recorder: Recorder,
    ended: oneshot::Receiver<()>,
    thread: JoinHandle<()>,
}

impl RecorderHandle {
    /// Starts the thread.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub(super) fn start() -> io::Result<RecorderHandle> {
        let (recorder, thread) = Recorder::open();
        let (over, ended) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || {
                thread.run();
                // Dropping the sender has the same effect.
                let _ = over.send(());
            })?;
        Ok(RecorderHandle {
            recorder,
            ended,
            thread,
        })
    }

    /// Returns the recorder.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Ends the thread after the workers have ended, and the recording after the queued calls. A thread whose disk does
    /// not respond is left to the end of the process.
    pub(super) async fn end(mut self) {
        self.recorder.close();
        let mut taken = self.recorder.taken();
        while timeout(STALL, &mut self.ended).await.is_err() {
            let before = std::mem::replace(&mut taken, self.recorder.taken());
            if before == taken {
                tracing::error!(
                    "the process ends without the last calls of the recording: its disk does not respond"
                );
                return;
            }
        }
        // The thread has signalled its end, so this does not block.
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stalled_disk_does_not_keep_the_process() {
        let (recorder, _thread) = Recorder::open();
        let (over, ended) = oneshot::channel();
        // The thread waits, as if for its disk.
        let (release, released) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let _ = released.recv();
            let _ = over.send(());
        });
        let handle = RecorderHandle {
            recorder,
            ended,
            thread,
        };
        let ending = timeout(2 * STALL, handle.end());
        ending.await.expect("the end waits for a time only");
        drop(release);
    }
}
