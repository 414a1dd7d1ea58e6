//! The state of a recording, its end, and the counts of the recorder. Used throughout `recorder`.

use std::io;
use std::path::PathBuf;

use serde::Serialize;

/// The reason why there is a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordingSource {
    /// `record.sample`.
    Configuration,
    /// `dualgauge record`, or the admin API.
    Command,
}

/// The reason why a recording stopped, as a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The admin API.
    Command,
    /// The time limit.
    Time,
    /// `record.total_size`.
    Size,
    /// The disk, or a quota, is full.
    DiskFull,
    /// Another error of the file system.
    Error,
    /// A reload changed `[record]`.
    Reload,
    /// The process ended.
    Shutdown,
}

impl StopReason {
    /// All reasons, in the order of the metric.
    pub const ALL: [StopReason; 7] = [
        StopReason::Command,
        StopReason::Time,
        StopReason::Size,
        StopReason::DiskFull,
        StopReason::Error,
        StopReason::Reload,
        StopReason::Shutdown,
    ];

    /// Returns the metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            StopReason::Command => "command",
            StopReason::Time => "time",
            StopReason::Size => "size",
            StopReason::DiskFull => "disk_full",
            StopReason::Error => "error",
            StopReason::Reload => "reload",
            StopReason::Shutdown => "shutdown",
        }
    }

    /// Returns the reason of an error of the file system.
    pub(super) fn of_error(error: &io::Error) -> StopReason {
        let is_full = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        match is_full {
            true => StopReason::DiskFull,
            false => StopReason::Error,
        }
    }
}

/// The end of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingEnd {
    /// The reason.
    pub reason: StopReason,
    /// The time, in RFC 3339.
    pub at: String,
    /// The error of the file system, if there was one.
    pub error: Option<String>,
}

/// The state of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingStatus {
    /// The reason why there is a recording.
    pub source: RecordingSource,
    /// The folder of the files.
    pub directory: PathBuf,
    /// The percentage of calls that are recorded.
    pub sample: String,
    /// True if bodies are recorded.
    pub bodies: bool,
    /// The start, in RFC 3339.
    pub started: String,
    /// The end at the latest, in RFC 3339.
    pub ends: Option<String>,
    /// The name of the last file.
    pub file: String,
    /// The number of files that were begun.
    pub files: u64,
    /// The number of recorded calls.
    pub calls: u64,
    /// The number of calls that were not recorded because the queue was full, or their line too long.
    pub dropped: u64,
    /// The bytes that were written.
    pub bytes: u64,
    /// The end; `None` while the recording runs.
    pub stopped: Option<RecordingEnd>,
}

/// The reason why a recording did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartRefused {
    /// Another recording runs.
    #[error("a recording is running already")]
    Running,
    /// The first file could not be created.
    #[error("no recording can be written to `{}`", directory.display())]
    File {
        /// The folder.
        directory: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The disk did not respond in time. The recording does not start later either.
    #[error("the recording did not start: the disk of `{}` does not respond", directory.display())]
    TimedOut {
        /// The folder.
        directory: PathBuf,
    },
    /// The process is ending.
    #[error("the process is ending")]
    Ending,
}

/// The counts of the recorder since the start of the process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecorderCounts {
    /// The number of recorded calls.
    pub recorded: u64,
    /// The number of calls that were to be recorded, and were not.
    pub dropped: u64,
    /// The bytes that were written.
    pub bytes: u64,
    /// The number of recordings that stopped, in the order of [`StopReason::ALL`].
    pub stops: [u64; StopReason::ALL.len()],
    /// True while a recording runs.
    pub is_active: bool,
}
