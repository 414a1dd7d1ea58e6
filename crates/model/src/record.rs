//! The configured recording of calls.
//!
//! Used by `config`, `gateway` and `telemetry`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use super::redact::Redaction;
use super::rollout::Percent;

/// The recording of calls: what is recorded, where, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPlan {
    /// The folder of the files.
    pub directory: PathBuf,
    /// The percentage of calls that are recorded without a command; none if zero.
    pub sample: Percent,
    /// The bodies that are recorded.
    pub bodies: RecordedBodies,
    /// The headers that are recorded.
    pub headers: Vec<HeaderName>,
    /// The redaction rules of the plan and of `record.redact`.
    pub redaction: Arc<Redaction>,
    /// The bounds.
    pub limits: RecordLimits,
}

/// The bodies that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedBodies {
    /// None; of JSON-RPC messages, the method and the id.
    Omitted,
    /// JSON and forms.
    Redacted,
}

/// The bounds of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLimits {
    /// The size in bytes at which the next file begins.
    pub file_size: u64,
    /// The number of files that are kept in the folder.
    pub files: usize,
    /// The bytes after which the recording stops.
    pub total_size: u64,
    /// The time after which the recording stops.
    pub time: Option<Duration>,
}
