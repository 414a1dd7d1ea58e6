//! The thread of the recorder. It makes the lines of ended calls, and writes them in groups. Used by `recorder`.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::files::RecordingFiles;
use super::{
    BODIES, Command, GENERATION_SHIFT, QueuedCall, Recorder, RecordingEnd, RecordingSettings,
    RecordingStatus, StartRefused, StopReason, lock,
};
use crate::telemetry::clock::{self, Rfc3339};
use dualgauge_model::record::RecordedBodies;
use dualgauge_recording::recording::write_call;

/// The size of the lines that are written at once.
const GROUP_SIZE: usize = 64 * 1024;

/// The thread of the recorder.
#[derive(Debug)]
pub struct RecorderThread {
    recorder: Recorder,
    recording: Option<Recording>,
    /// The number of recordings that were started.
    generation: u32,
}

/// A running recording.
#[derive(Debug)]
struct Recording {
    recorder: Recorder,
    generation: u32,
    files: RecordingFiles,
    total_size: u64,
    deadline: Option<Instant>,
    status: RecordingStatus,
    /// Lines that are not written yet, and their number.
    lines: Vec<u8>,
    count: u64,
    /// The calls that had been dropped before the recording.
    dropped_before: u64,
}

/// The work that the thread woke up for.
struct Work {
    calls: VecDeque<QueuedCall>,
    commands: VecDeque<Command>,
    has_ended: bool,
}

/// The end of a recording, and its error.
type Stop = (StopReason, Option<io::Error>);

impl RecorderThread {
    pub(super) fn new(recorder: Recorder) -> RecorderThread {
        RecorderThread {
            recorder,
            recording: None,
            generation: 0,
        }
    }

    /// Runs until the recorder is closed.
    pub fn run(mut self) {
        loop {
            let work = self.wait();
            for call in work.calls {
                self.record(call);
            }
            self.flush();
            for command in work.commands {
                self.obey(command);
            }
            let deadline = self.deadline();
            if deadline.is_some_and(|deadline| deadline <= clock::now()) {
                self.stop((StopReason::Time, None));
            }
            if work.has_ended {
                self.stop((StopReason::Shutdown, None));
                return;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.recording.as_ref()?.deadline
    }

    /// Waits for calls, commands, the end or the deadline.
    fn wait(&self) -> Work {
        let state = &self.recorder.0;
        let mut pending = lock(&state.pending);
        while pending.calls.is_empty() && pending.commands.is_empty() && !pending.has_ended {
            let left = self
                .deadline()
                .map(|deadline| deadline.saturating_duration_since(clock::now()));
            pending = match left {
                Some(left) if left.is_zero() => break,
                Some(left) => {
                    let waited = state.written.wait_timeout(pending, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let waited = state.written.wait(pending);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
        pending.bytes = 0;
        Work {
            calls: std::mem::take(&mut pending.calls),
            commands: std::mem::take(&mut pending.commands),
            has_ended: pending.has_ended,
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Start(settings, reply) => {
                // The requester was refused when its time was over.
                if reply.is_closed() {
                    return;
                }
                if let Err(Ok(_)) = reply.send(self.start(*settings)) {
                    let late = io::Error::from(io::ErrorKind::TimedOut);
                    self.stop((StopReason::Error, Some(late)));
                }
            }
            Command::Stop(why, reply) => {
                let _ = reply.send(self.stop((why, None)));
            }
        }
    }

    fn start(&mut self, settings: RecordingSettings) -> Result<RecordingStatus, StartRefused> {
        if self.recording.is_some() {
            return Err(StartRefused::Running);
        }
        let files = RecordingFiles::create(&settings.directory, settings.limits);
        let files = files.map_err(|source| StartRefused::File {
            directory: settings.directory.clone(),
            source,
        })?;
        // Zero is no generation.
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        let mut recording = Recording::new(self.recorder.clone(), files, &settings);
        recording.generation = self.generation;
        let status = recording.status.clone();
        tracing::info!(
            directory = %status.directory.display(),
            sample = status.sample,
            bodies = status.bodies,
            ends = status.ends,
            "recording calls"
        );
        let bodies = match settings.bodies {
            RecordedBodies::Omitted => 0,
            RecordedBodies::Redacted => BODIES,
        };
        let sample = u64::from(settings.sample.thousandths());
        let generation = u64::from(self.generation) << GENERATION_SHIFT;
        lock(&self.recorder.0.counts).bytes += recording.files.written;
        *lock(&self.recorder.0.status) = Some(status.clone());
        self.recording = Some(recording);
        self.recorder.0.is_stopping.store(false, Ordering::Relaxed);
        self.recorder
            .0
            .active
            .store(generation | sample | bodies, Ordering::Relaxed);
        Ok(status)
    }

    /// Adds a call to the recording that it was sampled for; if that has stopped, the call is dropped.
    fn record(&mut self, queued: QueuedCall) {
        let QueuedCall { generation, call } = queued;
        self.recorder.0.taken.fetch_add(1, Ordering::Relaxed);
        let Some(recording) = &mut self.recording else {
            return self.recorder.drop_call();
        };
        if recording.generation != generation {
            // The count of this recording does not include it.
            recording.dropped_before += 1;
            return self.recorder.drop_call();
        }
        // The call owns all its data, so a panic leaves nothing half-written.
        let Ok(call) = catch_unwind(AssertUnwindSafe(call)) else {
            tracing::error!("recording a call panicked");
            return self.recorder.drop_call();
        };
        let Some(line) = write_call(&call) else {
            return self.recorder.drop_call();
        };
        if let Err(stop) = recording.add(&line) {
            self.stop(stop);
        }
    }

    fn flush(&mut self) {
        if let Some(recording) = &mut self.recording {
            match recording.flush() {
                Ok(()) => recording.publish(),
                Err(stop) => drop(self.stop(stop)),
            }
        }
    }

    fn stop(&mut self, stop: Stop) -> Option<RecordingStatus> {
        self.recorder.0.active.store(0, Ordering::Relaxed);
        let mut recording = self.recording.take()?;
        let (reason, error) = match (stop, recording.flush()) {
            ((_, None), Err(stop)) => stop,
            (stop, _) => stop,
        };
        if let Some(index) = StopReason::ALL.iter().position(|one| *one == reason)
            && let Some(count) = lock(&self.recorder.0.counts).stops.get_mut(index)
        {
            *count += 1;
        }
        let end = RecordingEnd {
            reason,
            at: clock::rfc3339(),
            error: error.map(|error| error.to_string()),
        };
        log_end(&recording.status, &end);
        recording.status.stopped = Some(end);
        recording.publish();
        Some(recording.status)
    }
}

impl Drop for RecorderThread {
    /// Refuses calls and commands from now on, also after a panic.
    fn drop(&mut self) {
        self.recorder.0.active.store(0, Ordering::Relaxed);
        let mut pending = lock(&self.recorder.0.pending);
        pending.has_ended = true;
        let calls = std::mem::take(&mut pending.calls);
        let commands = std::mem::take(&mut pending.commands);
        drop(pending);
        for _ in calls {
            self.recorder.drop_call();
        }
        // Their senders learn that the recorder has ended.
        drop(commands);
    }
}

impl Recording {
    fn new(recorder: Recorder, files: RecordingFiles, settings: &RecordingSettings) -> Recording {
        let now = clock::wall();
        let limit = settings.limits.time;
        let ends = limit.and_then(|limit| now.checked_add(limit));
        let status = RecordingStatus {
            source: settings.source,
            directory: settings.directory.clone(),
            sample: settings.sample.to_string(),
            bodies: settings.bodies == RecordedBodies::Redacted,
            started: Rfc3339(now).to_string(),
            ends: ends.map(|ends| Rfc3339(ends).to_string()),
            file: files.name().to_owned(),
            files: files.begun,
            calls: 0,
            dropped: 0,
            bytes: files.written,
            stopped: None,
        };
        Recording {
            dropped_before: recorder.counts().dropped,
            recorder,
            generation: 0,
            files,
            total_size: settings.limits.total_size,
            deadline: limit.map(|limit| clock::now() + limit),
            status,
            lines: Vec::new(),
            count: 0,
        }
    }

    /// Adds a line, and writes the lines if there are enough.
    fn add(&mut self, line: &[u8]) -> Result<(), Stop> {
        let queued = (self.lines.len() + line.len()) as u64;
        if self.files.written + queued > self.total_size {
            self.recorder.drop_call();
            return Err((StopReason::Size, None));
        }
        if queued > self.files.left() && (self.files.has_calls() || !self.lines.is_empty()) {
            self.flush()?;
            let before = self.files.written;
            if let Err(error) = self.files.rotate() {
                self.recorder.drop_call();
                return Err((StopReason::of_error(&error), Some(error)));
            }
            lock(&self.recorder.0.counts).bytes += self.files.written - before;
        }
        self.lines.extend_from_slice(line);
        self.count += 1;
        match self.lines.len() >= GROUP_SIZE {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes the lines.
    fn flush(&mut self) -> Result<(), Stop> {
        let (lines, count) = (std::mem::take(&mut self.lines), self.count);
        self.count = 0;
        if lines.is_empty() {
            return Ok(());
        }
        if let Err(error) = self.files.write(&lines) {
            self.recorder.0.dropped.fetch_add(count, Ordering::Relaxed);
            return Err((StopReason::of_error(&error), Some(error)));
        }
        self.status.calls += count;
        let mut counts = lock(&self.recorder.0.counts);
        counts.recorded += count;
        counts.bytes += lines.len() as u64;
        Ok(())
    }

    /// Makes the state visible.
    fn publish(&mut self) {
        let dropped = self.recorder.counts().dropped;
        let status = &mut self.status;
        self.files.name().clone_into(&mut status.file);
        status.files = self.files.begun;
        status.bytes = self.files.written;
        status.dropped = dropped.saturating_sub(self.dropped_before);
        *lock(&self.recorder.0.status) = Some(status.clone());
    }
}

/// Logs the end of a recording; an operator must act on some.
fn log_end(status: &RecordingStatus, end: &RecordingEnd) {
    let (reason, error) = (end.reason.as_str(), end.error.as_deref());
    let (calls, bytes) = (status.calls, status.bytes);
    let directory = status.directory.display();
    match end.reason {
        StopReason::DiskFull => tracing::error!(
            reason, error, calls, bytes, %directory,
            "the recording stopped: the disk is full; calls go on. Free space, or lower `record.total_size`, and start it again"
        ),
        StopReason::Error => tracing::error!(
            reason, error, calls, bytes, %directory,
            "the recording stopped: its file cannot be written; calls go on. Check `record.directory`, and start it again"
        ),
        StopReason::Size => tracing::warn!(
            reason, calls, bytes, %directory,
            "the recording stopped: it has `record.total_size` bytes; calls go on"
        ),
        StopReason::Command | StopReason::Time | StopReason::Reload | StopReason::Shutdown => {
            tracing::info!(reason, calls, bytes, %directory, "the recording stopped");
        }
    }
}
