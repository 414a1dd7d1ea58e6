//! The thread that writes recordings of calls. Used by `workers`.

use std::io;
use std::thread::{self, JoinHandle};

use tokio::sync::oneshot;

use crate::telemetry::recorder::Recorder;

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

    /// Ends the thread after the workers have ended, and the recording after the queued calls.
    pub(super) async fn end(self) {
        self.recorder.close();
        let _ = self.ended.await;
        // The thread has signalled its end, so this does not block.
        let _ = self.thread.join();
    }
}
