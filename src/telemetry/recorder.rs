//! The recorder of calls: a bounded queue, and a thread that writes recordings.
//!
//! ```text
//! mod       the queue and the handle of the workers
//! status    the state of a recording, its end, and the counts
//! files     the rotated files
//! thread    the thread
//! ```
//!
//! Laws: no call waits for the recorder; the queue is bounded in calls and bytes, and what exceeds it is dropped and
//! counted; a recording that cannot be written stops, and calls go on. Without a recording, a call costs one comparison.
//!
//! Used by `app` and `gateway`.

mod files;
mod status;
#[cfg(test)]
mod tests;
mod thread;

use std::collections::VecDeque;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use dualgauge_model::record::{RecordLimits, RecordedBodies};
use dualgauge_model::rollout::Percent;
use dualgauge_recording::recording::RecordedCall;

pub use status::{
    RecorderCounts, RecordingEnd, RecordingSource, RecordingStatus, StartRefused, StopReason,
};
pub use thread::RecorderThread;

/// The maximum number of calls in the queue.
const MAX_CALLS: usize = 1024;

/// The maximum size of the calls in the queue, in bytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The bit of [`QueueState::active`] that says that bodies are recorded; the lower ones are the sample, the upper ones the generation.
const BODIES: u64 = 1 << 31;

/// The bits of [`QueueState::active`] before the generation.
const GENERATION_SHIFT: u32 = 32;

/// The time that a command may take; a stalled disk must not block the control task. The workers apply a plan within
/// 3 s, which includes a stop and a start.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

/// A call that ended: makes its line on the thread of the recorder.
pub type EndedCall = Box<dyn FnOnce() -> RecordedCall + Send>;

/// The running recording, as workers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActiveRecording {
    /// The percentage of calls to record.
    pub sample: Percent,
    /// The bodies to record.
    pub bodies: RecordedBodies,
    /// The number of the recording in this process.
    pub generation: u32,
}

/// A call in the queue.
struct QueuedCall {
    /// The recording that the call was sampled for.
    generation: u32,
    call: EndedCall,
}

/// The settings of one recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingSettings {
    /// The reason why there is a recording.
    pub source: RecordingSource,
    /// The folder of the files.
    pub directory: PathBuf,
    /// The percentage of calls that are recorded.
    pub sample: Percent,
    /// The bodies that are recorded.
    pub bodies: RecordedBodies,
    /// The bounds.
    pub limits: RecordLimits,
}

/// A handle of the recorder for workers and the control task.
#[derive(Clone)]
pub struct Recorder(Arc<QueueState>);

struct QueueState {
    /// The sample in thousandths of a percent, [`BODIES`] and the generation; zero without a recording.
    active: AtomicU64,
    pending: Mutex<Pending>,
    /// Notifies the thread of calls and commands.
    written: Condvar,
    status: Mutex<Option<RecordingStatus>>,
    /// True if the recording was to stop, and had not stopped in time.
    is_stopping: AtomicBool,
    /// The number of calls that the thread has taken, which shows that it goes on.
    taken: AtomicU64,
    dropped: AtomicU64,
    counts: Mutex<RecorderCounts>,
}

#[derive(Default)]
struct Pending {
    calls: VecDeque<QueuedCall>,
    bytes: usize,
    /// Commands come after the calls that were queued before them. The control task sends one at a time.
    commands: VecDeque<Command>,
    has_ended: bool,
}

enum Command {
    Start(
        Box<RecordingSettings>,
        oneshot::Sender<Result<RecordingStatus, StartRefused>>,
    ),
    Stop(StopReason, oneshot::Sender<Option<RecordingStatus>>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The values are consistent even after a panic elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recorder {
    /// Creates an empty queue, and its thread side.
    #[must_use]
    pub fn open() -> (Recorder, RecorderThread) {
        let recorder = Recorder(Arc::new(QueueState {
            active: AtomicU64::new(0),
            pending: Mutex::default(),
            written: Condvar::new(),
            status: Mutex::default(),
            is_stopping: AtomicBool::new(false),
            taken: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            counts: Mutex::default(),
        }));
        let thread = RecorderThread::new(recorder.clone());
        (recorder, thread)
    }

    /// Returns the running recording; `None` without one.
    #[must_use]
    #[inline]
    pub fn active(&self) -> Option<ActiveRecording> {
        match self.0.active.load(Ordering::Relaxed) {
            0 => None,
            active => {
                let bodies = match active & BODIES {
                    0 => RecordedBodies::Omitted,
                    _ => RecordedBodies::Redacted,
                };
                let sample = u32::try_from(active & (BODIES - 1)).ok()?;
                Some(ActiveRecording {
                    sample: Percent::from_thousandths(sample)?,
                    bodies,
                    generation: u32::try_from(active >> GENERATION_SHIFT).ok()?,
                })
            }
        }
    }

    /// Queues a call of about this size in bytes that was sampled for this recording; a full queue drops and counts it.
    pub fn offer(&self, generation: u32, size: usize, call: EndedCall) {
        let mut pending = lock(&self.0.pending);
        let is_full = pending.calls.len() >= MAX_CALLS || pending.bytes + size > MAX_BYTES;
        if is_full || pending.has_ended {
            drop(pending);
            return self.drop_call();
        }
        pending.bytes += size;
        pending.calls.push_back(QueuedCall { generation, call });
        drop(pending);
        self.0.written.notify_one();
    }

    /// Counts a call that is not recorded.
    pub fn drop_call(&self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts a recording, and returns once its first file exists.
    ///
    /// # Errors
    /// [`StartRefused`].
    pub async fn start(
        &self,
        settings: RecordingSettings,
    ) -> Result<RecordingStatus, StartRefused> {
        let directory = settings.directory.clone();
        let (reply, mut started) = oneshot::channel();
        self.command(Command::Start(Box::new(settings), reply));
        match timeout(COMMAND_TIMEOUT, &mut started).await {
            Ok(result) => result.unwrap_or(Err(StartRefused::Ending)),
            // After the close, the thread either does not start or stops at once; a reply from before it counts.
            Err(_) => {
                started.close();
                let late = started.try_recv();
                late.unwrap_or(Err(StartRefused::TimedOut { directory }))
            }
        }
    }

    /// Stops the recording after the queued calls, and returns its final state; `None` if there was none. If the disk
    /// stalls, no more calls are sampled, and the recording stops once the disk responds.
    pub async fn stop(&self, why: StopReason) -> Option<RecordingStatus> {
        let (reply, stopped) = oneshot::channel();
        self.command(Command::Stop(why, reply));
        if let Ok(stopped) = timeout(COMMAND_TIMEOUT, stopped).await {
            return stopped.ok().flatten();
        }
        self.0.active.store(0, Ordering::Relaxed);
        self.0.is_stopping.store(true, Ordering::Relaxed);
        tracing::error!(
            "the recording has not stopped: its disk does not respond; calls go on and are no longer recorded"
        );
        None
    }

    /// Returns the state of the current recording, or of the last one.
    #[must_use]
    pub fn status(&self) -> Option<RecordingStatus> {
        lock(&self.0.status).clone()
    }

    /// Returns true if the last recording was to stop and did not in time. It may have stopped since.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::Relaxed)
    }

    /// Returns the number of calls that the thread has taken from the queue.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.0.taken.load(Ordering::Relaxed)
    }

    /// Returns the counts since the start of the process.
    #[must_use]
    pub fn counts(&self) -> RecorderCounts {
        RecorderCounts {
            dropped: self.0.dropped.load(Ordering::Relaxed),
            is_active: self.0.active.load(Ordering::Relaxed) != 0,
            ..lock(&self.0.counts).clone()
        }
    }

    /// Ends the thread after the queued calls.
    pub fn close(&self) {
        lock(&self.0.pending).has_ended = true;
        self.0.written.notify_one();
    }

    fn command(&self, command: Command) {
        let mut pending = lock(&self.0.pending);
        // A command that is dropped tells its sender that the recorder has ended.
        if !pending.has_ended {
            pending.commands.push_back(command);
        }
        drop(pending);
        self.0.written.notify_one();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}
